"""`archiver adopt`: go on with a crawl that another program began."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from archiver.cli.directory import COLLECTIONS, check_collection, check_frontier, make_directory
from archiver.cli.options import define_command, output_option
from archiver.cli.terminal import ProgressLine, results, say
from archiver.collection import safe_paths
from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.addresses import DATABASE
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.humanize import count, printable
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.crawl.recovery.takeover import TakeoverResult
    from archiver.tools.adopt.source import AdoptedCrawl
    from archiver.tools.ingest.run import ImportResult
    from archiver.tools.ingest.sources import ArchiveFile

KINDS = ("wpull", "heritrix", "browsertrix", "wget", "httrack")
NOTES_SHOWN = 200  # lines about settings
URL_SHOWN = 200  # characters
VALUE_SHOWN = 60  # characters


@dataclass(frozen=True, slots=True)
class AdoptArguments:
    """The options of `archiver adopt`."""

    output: Path | None
    kind: str | None
    warcs: tuple[Path, ...]
    frontier: str
    dry_run: bool


def adopt(source: Path, **chosen: Any) -> ExitCode:
    """Make a crawl out of what another program left at *source*."""
    from archiver.tools.adopt.detect import adopted_crawl
    from archiver.tools.ingest import names

    given = AdoptArguments(**chosen)
    directory = given.output or COLLECTIONS / names.collection_name(source)
    _check_place(directory, source)
    crawl = adopted_crawl(source, given.kind or "")
    settings = _settings(crawl, source, given.frontier)
    links = [path for path in crawl.archives if path.is_symlink()]
    archives, left_out = _archives([*(path for path in crawl.archives if path not in links), *given.warcs], directory)
    left_out += [f"left out: {path} is a link; if you want its archive, name it with --warcs" for path in links]
    say(f"{source}: a crawl of {crawl.kind}")
    for line in (*crawl.remarks, *left_out, _taken(crawl), *_notes(crawl, None if given.dry_run else NOTES_SHOWN)):
        say(line)
    if not archives:
        say("it has no archive, so all of its URLs wait; if they are elsewhere, name them with --warcs")
    if given.dry_run:
        results(_plan(crawl, settings, archives, directory))
        return ExitCode.DONE
    check_frontier(given.frontier, new=True)
    make_directory(directory)
    with ProgressLine() as progress:
        imported = _imported(archives, directory, progress)
        done = _taken_over(crawl, settings, directory, imported, progress)
    if imported is not None and imported.faulty:
        say(f"some of its archives have faults; to list them: archiver verify {quote(str(directory))}")
    results(_lines(done, directory))
    return ExitCode.DONE


def _archives(paths: Sequence[Path], directory: Path) -> "tuple[list[ArchiveFile], list[str]]":
    """Return the archives that *paths* mean, and a line for each file that is none: an interruption leaves such.

    Those in *directory* are copies that a run before this one has made.
    """
    from archiver.tools.ingest.sources import NotAnArchiveError, find_archives

    found: dict[tuple[Path, str], ArchiveFile] = {}
    left_out: list[str] = []
    for path in paths:
        if path.resolve().is_relative_to(directory.resolve()):
            continue
        try:
            for each in find_archives([path]):
                found.setdefault((each.path.resolve(), each.member.name if each.member else ""), each)
        except NotAnArchiveError as error:
            left_out.append(f"left out: {error}")
    return list(found.values()), left_out


def _check_place(directory: Path, source: Path) -> None:
    """Refuse a directory that holds a crawl, or something else than a collection, or the source itself."""
    if realpath(directory) == realpath(source):  # these may be links in a circle
        raise ConfigError(f"{directory} is the source; name another directory with -o")
    if directory.is_dir():
        safe_paths.check_files(directory)
        if Layout(directory).settings.exists() or _has_own_files(directory):
            raise ConfigError(f"{directory} holds a crawl; choose another directory with -o")
    check_collection(directory)


def _has_own_files(directory: Path) -> bool:
    """Return True if *directory* has WARC files of a crawl of ours, whose settings may be lost."""
    from archiver.crawl.recovery.recover import ours, own_files

    return any(map(ours, own_files(Layout(directory))))


def _settings(crawl: "AdoptedCrawl", source: Path, frontier: str) -> Settings:
    """Return the settings of the crawl, as crawl.toml will have them."""
    if not crawl.settings.seeds:
        raise ConfigError(f"{source}: it names no http or https URL with which its crawl began, so there is no scope")
    values = {**crawl.settings.values, "seeds": crawl.settings.seeds}
    settings = with_values(Settings(), {**values, "frontier": frontier} if frontier else values)
    return with_values(Settings(), toml.parse(toml.render(settings), "the translated settings"))


def _taken(crawl: "AdoptedCrawl") -> str:
    """Return a line with the settings that are taken over."""
    names = sorted(crawl.settings.values)
    values = [f"{name.replace('_', '-')} ({_entries(crawl.settings.values[name])})" for name in names]
    return f"settings taken over into crawl.toml: {', '.join(values) or 'none'}"


def _entries(value: object) -> str:
    return count(len(value), "entry", "entries") if isinstance(value, tuple) else printable(str(value), VALUE_SHOWN)


def _notes(crawl: "AdoptedCrawl", most: int | None) -> Iterator[str]:
    """Yield a line for each setting without a counterpart; at most *most* of them."""
    notes = crawl.settings.notes
    yield from (f"no counterpart: {note}" for note in notes[:most])
    if most is not None and len(notes) > most:
        yield f"and {count(len(notes) - most, 'more setting')} without a counterpart; --dry-run lists all"


def _plan(
    crawl: "AdoptedCrawl", settings: Settings, archives: "Sequence[ArchiveFile]", directory: Path
) -> Iterator[str]:
    """Yield what would happen."""
    states: dict[str, int] = {}
    for each in crawl.urls():
        states[each.state.value] = states.get(each.state.value, 0) + 1
    yield f"would make a crawl in {directory} with {count(len(settings.seeds), 'seed')}"
    yield f"archives to import: {', '.join(each.label for each in archives) or 'none'}"
    for state, number in sorted(states.items()):
        yield f"{count(number, 'URL')} {state}"
    defaults = toml.render(Settings()).splitlines()
    yield from (line for line in toml.render(settings).splitlines() if line and line not in defaults)


def _imported(archives: "Sequence[ArchiveFile]", directory: Path, progress: ProgressLine) -> "ImportResult | None":
    """Import *archives*; None if there are none."""
    if not archives:
        return None
    from archiver.tools.ingest import run

    return run.import_archives(archives, directory, strict=False, convert=True, report=progress.show)


def _taken_over(
    crawl: "AdoptedCrawl",
    settings: Settings,
    directory: Path,
    imported: "ImportResult | None",
    progress: ProgressLine,
) -> "TakeoverResult":
    import asyncio

    from archiver.crawl.recovery.takeover import taken_over

    names = [] if imported is None else [each.name for each in imported.files]
    return asyncio.run(taken_over(Layout(directory), settings, crawl, names, progress.show))


def _lines(done: "TakeoverResult", directory: Path) -> Iterator[str]:
    """Yield what came of it."""
    where = quote(str(directory))
    yield f"{count(done.visits, 'capture')} of its archives settled: {count(done.counts.archived, 'URL')} archived"
    if done.in_doubt:
        yield f"{count(done.in_doubt, 'URL')} that it calls fetched, but without a whole capture: they wait"
    if done.failed:
        yield f"{count(done.failed, 'URL')} that it gave up stay failed; to try them again: archiver retry {where}"
    if done.placed.unusable:
        example = printable(done.placed.example, URL_SHOWN)
        entries = count(done.placed.unusable, "entry", "entries")
        yield f"{entries} of its queue left out, because they are no http or https URLs, such as {example}"
    if done.counts.excluded:
        named = f"to fetch them all the same: archiver retry {where} --failure rule"
        yield f"{count(done.counts.excluded, 'URL')} of its queue excluded by its own patterns; {named}"
    if done.counts.held:
        held = count(done.counts.held, "URL")
        yield f"{held} held as suspected traps; to see them: archiver urls {where} --state held"
    yield f"{count(done.counts.waiting, 'URL')} waiting; to continue: archiver resume {where}"


COMMAND = define_command(
    "adopt",
    adopt,
    """Continue a crawl that another program began.

    Makes a collection with the archives, queue, seen-set and settings of the crawl in SOURCE, which stays as it is: a
    folder or database of grab-site or wpull, a job or recovery log of Heritrix, a collection of browsertrix-crawler,
    WARC files of wget, or a mirror of HTTrack. Archived URLs are not requested again. URLs that were fetched but have
    no whole capture are queued. Prints a line for each setting without a counterpart. Then run archiver resume DIR. If
    it is interrupted, run the same command again.
    """,
    [
        click.Argument(["source"], metavar="SOURCE", type=click.Path(path_type=Path)),
        output_option("DIR", "Make the crawl in this collection. Default: collections/ and the name of SOURCE."),
        click.Option(["--kind"], type=click.Choice(KINDS), help="The program, if it is not recognized."),
        click.Option(
            ["--warcs"],
            multiple=True,
            metavar="PATH",
            type=click.Path(path_type=Path),
            help="Archives of the crawl that are elsewhere: files or folders. Repeatable.",
        ),
        click.Option(
            ["--frontier"],
            default="",
            metavar=DATABASE.metavar,
            type=DATABASE.parse,
            help="Keep the queue of URLs in this empty PostgreSQL database, not in crawl.db.",
        ),
        click.Option(["--dry-run"], is_flag=True, help="Print what would happen, and write nothing."),
    ],
    ("archiver adopt example.org-2026-11-01-0a1b2c3d -o taken", "a grab-site job; then: archiver resume taken"),
    ("archiver adopt --dry-run wpull.db", "see what would be taken over"),
)
