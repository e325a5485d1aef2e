"""`archiver pack`: pack a collection into one or more WACZ files."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from archiver import __version__, humanize
from archiver.cli.directory import check_files_are_here, check_idle, check_is_directory, dedup_from
from archiver.cli.options import define_command, directory_argument, output_option
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.layout import Layout, rounds
from archiver.collection.named_crawl import NamedCrawl, chosen_crawl, collected_crawls, crawls_since
from archiver.collection.settings_file import read_settings, seed_descriptions
from archiver.config.option_types import SIZE
from archiver.config.secret_settings import has_secrets
from archiver.config.seeds import SeedAbout
from archiver.config.settings import Settings, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable, second, volume
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.tools.wacz.contents import PackContents
    from archiver.tools.wacz.pack import PackProgress, PackResult
    from archiver.tools.wacz.pages import PageRow
    from archiver.tools.wacz.selection import CaptureSelection

SUFFIX = ".wacz"
MAX_NAME = 200  # characters of a name
MAX_PATH = 1000  # characters of a path
MAX_DAMAGE = 20  # places reported; `verify` reports all


@dataclass(frozen=True, slots=True)
class PackArguments:
    """The arguments of `archiver pack`."""

    output: Path | None = None
    title: str | None = None
    description: str = ""
    text: bool = True
    split: str | None = None
    sign: bool = False
    key: Path | None = None
    host: tuple[str, ...] = ()
    crawl: tuple[str, ...] = ()  # numbers or dates
    since: str | None = None
    force: bool = False


def pack_collection(directory: Path, arguments: PackArguments) -> ExitCode:
    """Pack the collection in *directory* and print the names of the files."""
    from archiver.crawl.reader_process import ReaderProcess
    from archiver.tools.wacz.contents import read_contents
    from archiver.tools.wacz.pack import PackOptions, foreign_part, pack, refuse_existing
    from archiver.tools.wacz.rendered import RenderedPages
    from archiver.tools.wacz.signature import Signer

    check_is_directory(directory)
    output = _output(directory, arguments.output)
    split = _split(arguments.split)
    check_idle(directory)
    check_files_are_here(directory)
    choice = _wanted(directory, arguments)
    about = _descriptions(choice)
    software = f"archiver/{__version__}"
    signer = Signer(software, arguments.key) if arguments.sign or arguments.key else None
    contents = read_contents(directory)
    options = PackOptions(
        output=output,
        software=software,
        created=second(time.time()),
        title=arguments.title or _name(directory),
        description=arguments.description,
        text=arguments.text,
        split=split,
        sign=signer,
        about=about,
    )
    with (
        ProgressLine() as progress_line,
        _selected(contents, choice, output, progress_line) as (chosen, lists),
        RenderedPages.open(directory) as rendered,
    ):
        options = replace(options, shown=rendered.of, lists=lists or options.lists)
        if not arguments.force:
            refuse_existing(options, chosen)
        made = pack(options, chosen, ReaderProcess(), lambda progress: progress_line.show(_progress_text(progress)))
    _print_summary(directory, contents, made, split)
    if (foreign := foreign_part(options, made)) is not None:
        say(f"{foreign}: left over from an earlier package with more parts; delete it")
    result("\n".join(str(path) for path in [*(each.path for each in made), *_description(output, made)]))
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the user wants to be packed."""

    wanted: "CaptureSelection | None"  # None: all captures
    crawls: tuple[Layout, ...]  # the oldest first
    logs: frozenset[Path] = frozenset()  # if not all


def _wanted(directory: Path, arguments: PackArguments) -> _Choice:
    """Return what the user chose."""
    from archiver.tools.wacz.selection import CaptureSelection, HostSelection

    hosts = HostSelection.parse(arguments.host) if arguments.host else None
    if not arguments.crawl and arguments.since is None:
        every = (*reversed(rounds(Layout(directory))), Layout(directory))
        return _Choice(None if hosts is None else CaptureSelection(hosts), every)
    known = collected_crawls(Layout(directory))
    chosen = [chosen_crawl(known, text, "--crawl") for text in arguments.crawl]
    if arguments.since is not None:
        chosen += crawls_since(known, arguments.since, "--since")
    crawls = sorted({each.number: each for each in chosen}.values(), key=lambda each: each.number)
    files = frozenset[str]().union(*(each.files() for each in crawls))
    named = f"crawl {' and '.join(str(each.number) for each in crawls)}"
    logs = frozenset(each.layout.log for each in crawls) if hosts is None else frozenset[Path]()
    return _Choice(CaptureSelection(hosts, files, named), tuple(each.layout for each in crawls), logs)


def _descriptions(choice: _Choice) -> dict[str, SeedAbout]:
    """Return what the user has said about the seeds that are packed, in the newest crawl that has them as seeds."""
    found: dict[str, SeedAbout] = {}
    for crawl in choice.crawls:
        try:
            found |= seed_descriptions(crawl)
        except ConfigError as error:
            say(f"archiver: {error}; the titles and notes that it has for seeds are left out")
    hosts = choice.wanted.hosts if choice.wanted is not None else None
    return {address: about for address, about in found.items() if hosts is None or hosts.covers(address)}


def _logs(contents: "PackContents", wanted: frozenset[Path]) -> tuple[tuple[str, Path], ...]:
    return tuple((place, path) for place, path in contents.logs if path in wanted)


@contextmanager
def _selected(
    contents: "PackContents",
    choice: _Choice,
    output: Path,
    progress_line: ProgressLine,
) -> "Iterator[tuple[PackContents, Callable[[PageRow], bool] | None]]":
    """Yield what is packed: all *contents*, or what they have by *choice*; and a function that lists pages, or None."""
    wanted = choice.wanted
    if wanted is None:
        yield contents, None
        return
    from archiver.tools.wacz.selection import selected

    def show(number: int, files: int) -> None:
        progress_line.show(f"packing: choosing records in file {number} of {files}")

    with selected(contents, wanted, output, show) as chosen:
        for each in chosen.damage[:MAX_DAMAGE]:
            say(f"{each}; left out")
        yield replace(chosen.contents, logs=_logs(contents, choice.logs)), chosen.lists


def _name(directory: Path) -> str:
    return printable(directory.resolve().name, MAX_NAME) or "archive"


def _output(directory: Path, given: Path | None) -> Path:
    """Return the file to write: by default in the current directory, but never inside the collection."""
    whole = directory.resolve()
    name = f"{whole.name or 'archive'}{SUFFIX}"
    if given is None:
        return whole.parent / name if Path.cwd().is_relative_to(whole) else Path(name)
    output = given / name if given.is_dir() else given
    if output.suffix != SUFFIX:
        raise ConfigError(f"-o {given}: the name of a WACZ file must end with {SUFFIX}")
    if not output.parent.is_dir():
        raise ConfigError(f"-o {given}: there is no directory {output.parent}")
    return output


def _split(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        size = int(SIZE.parse(given))
    except ConfigError as error:
        raise ConfigError(f"--split: {error}") from None
    if not size:
        raise ConfigError("--split: 0 is too small; give the largest size of a package, for example 10G")
    return size


def _description(output: Path, made: Sequence["PackResult"]) -> list[Path]:
    return [output.with_suffix(".json")] if len(made) > 1 else []


def _progress_text(progress: "PackProgress") -> str:
    if progress.listing:
        return f"packing: index and page lists, after file {progress.file} of {progress.files}"
    share = progress.done / progress.total if progress.total else 1.0
    return f"packing: {share:.0%} of {volume(progress.total)}, file {progress.file} of {progress.files}"


def _print_summary(directory: Path, contents: "PackContents", made: Sequence["PackResult"], split: int | None) -> None:
    """Print what was packed, and what the user should know about it."""
    for name, why in contents.left_out:
        say(f"{directory / 'archive' / printable(name, MAX_NAME)}: left out: {why}")
    for each in made:
        for damage in each.damage:
            say(f"{damage}; its bytes are packed as they are")
        if each.damage:
            say(f"to list all damage: archiver verify {quote(str(directory))}")
        if each.without_text:
            say(f"{each.path}: {humanize.count(each.without_text, 'page')} listed without text, for lack of space")
        if split is not None and each.size > split:
            why = ", because a WARC file is never split" if each.warcs == 1 else ""
            say(f"{each.path}: {volume(each.size)}, larger than --split{why}")
    _warn_about_lost_files(directory)
    _warn_about_secrets(directory)
    _warn_about_other_archives(directory, contents)
    captures, pages = (sum(each.captures for each in made), sum(each.seeds + each.pages for each in made))
    files, size = sum(each.warcs for each in made), sum(each.size for each in made)
    listed = f"{humanize.count(captures, 'record')} in the index, {humanize.count(pages, 'page')}"
    say(f"packed: {humanize.count(files, 'WARC file')}, {listed}, {volume(size)}")


def _warn_about_lost_files(directory: Path) -> None:
    """Warn if WARC files are missing or shorter than they were, so that the package lacks captures."""
    from archiver.frontier import totals

    with suppress(ConfigError, ArchiveError), totals.open_totals(directory) as db:
        if (lost := NamedCrawl.in_directory(directory).lost(db)).names:
            say(f"the package is not complete: {lost.example}; for more: archiver verify {quote(str(directory))}")


def _warn_about_secrets(directory: Path) -> None:
    """Warn if the request records hold secret headers; all other parts of the package are free of them."""
    path = Layout(directory).settings
    try:
        settings = with_values(Settings(), read_settings(path)) if path.is_file() else Settings()
    except ConfigError:  # reported elsewhere
        return
    if has_secrets(settings) or settings.warc.recording or _has_private_cookies(directory):
        say(
            "the request records hold secret headers, or pages were shown to you alone; share the package only with "
            "people who may see them"
        )


def _has_private_cookies(directory: Path) -> bool:
    """Return whether the user brought cookies to the crawl in *directory* or to one before it."""
    from archiver.frontier import totals
    from archiver.frontier.cookies import any_private

    for place in (directory, *(folder.directory for folder in rounds(Layout(directory)))):
        with suppress(ConfigError, ArchiveError), totals.open_totals(place) as db:
            if any_private(db):
                return True
    return False


def _warn_about_other_archives(directory: Path, contents: "PackContents") -> None:
    """Warn about payloads that the package cannot show because other archives hold them (`--dedup-from`)."""
    if not any(warc.revisits for warc in contents.warcs):
        return
    held = {warc.path.name for warc in contents.warcs}
    try:
        others = [str(path) for path in dedup_from(directory) if not _is_held(path, held)]
    except ConfigError as error:
        say(f"cannot tell if other archives hold payloads of this one: {error}")
        return
    if others:
        say(
            f"the package cannot show payloads that only {printable(' and '.join(others), MAX_PATH)} holds; to pack "
            "all of them, first make one collection: "
            f"archiver import {printable(' '.join(map(quote, [*others, str(directory)])), MAX_PATH)} -o ALL"
        )


def _is_held(other: Path, held: set[str]) -> bool:
    """Return whether the WARC files of the collection *other* are all among the files *held*."""
    names = {path.name for path in Layout(other).archive.glob("*.warc*")}
    return bool(names) and names <= held


def _run(directory: Path, **chosen: Any) -> int:
    return pack_collection(directory, PackArguments(**chosen))


COMMAND = define_command(
    "pack",
    _run,
    """Pack a collection into a WACZ file.

    The package opens in replayweb.page. It holds the WARC files unchanged, their index, a list of pages with titles and
    text, your descriptions of seeds, and the logs. By default it is named after DIR and written to the current
    directory (beside DIR if DIR is the current directory). The file appears when it is complete, and its name is
    printed. Writes nothing to DIR. The crawl must not be running.
    """,
    [
        directory_argument(),
        output_option("FILE.wacz", "Write to this file, or into this directory."),
        click.Option(["--title"], metavar="TEXT", help="Title of the collection. [default: the name of DIR]"),
        click.Option(["--description"], default="", metavar="TEXT", help="Description of the collection, in Markdown."),
        click.Option(
            ["--text/--no-text"],
            default=True,
            help="Include the text of pages, so that they can be searched. [default: yes]",
        ),
        click.Option(
            ["--split"],
            metavar="BYTES",
            help="Make packages of at most this size (10G): FILE-001.wacz and so on, and FILE.json, which opens them "
            "as one. A WARC file is never split. If one package is enough, only one is made.",
        ),
        click.Option(
            ["--host"],
            multiple=True,
            metavar="HOST",
            help="Pack only the captures of this host, or of *.DOMAIN: the domain and all hosts below it. Logs, which "
            "name all hosts, are left out. Needs room for the package twice. Repeatable.",
        ),
        click.Option(
            ["--crawl"],
            multiple=True,
            metavar="N|DATE",
            help="Pack only what this crawl captured (1: the oldest), and what its revisits refer to. Needs room for "
            "the package twice. Repeatable.",
        ),
        click.Option(
            ["--since"],
            metavar="DATE|N",
            help="Pack only what crawls captured that began on this date or later, or crawl N and later ones.",
        ),
        click.Option(["--sign"], is_flag=True, help="Sign the package with a new key, which is not kept."),
        click.Option(
            ["--key"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Sign the package with the private key in FILE (P-384, PEM). If FILE does not exist, a key is made.",
        ),
        click.Option(["--force"], is_flag=True, help="Replace existing files."),
    ],
    ("archiver pack collections/example.org", "make example.org.wacz"),
    ("archiver pack collections/example.org -o /srv/waczs/ --title 'Example, 2026'", "choose the place and the title"),
    ("archiver pack collections/example.org --split 10G", "make packages of at most 10 GB"),
    ("archiver pack collections/example.org --host example.org -o site.wacz", "leave out what came from other hosts"),
    ("archiver pack collections/example.org --since 2020", "only what crawls since 2020 captured"),
    ("archiver pack collections/example.org --crawl 2 -o second.wacz", "only what the second crawl captured"),
    ("archiver pack collections/example.org --key library.pem", "sign it as the owner of this key"),
)
