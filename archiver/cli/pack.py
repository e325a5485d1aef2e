"""`archiver pack`: a collection as a WACZ file, or as several."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from archiver import __version__, humanize
from archiver.cli import directory as place
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.layout import Layout
from archiver.config.option_types import SIZE
from archiver.config.secrets import has_secrets
from archiver.config.settings import Settings, with_values
from archiver.crawl.reader_process import ReaderProcess
from archiver.errors import ConfigError
from archiver.humanize import printable, second, volume
from archiver.model import ExitCode
from archiver.tools.wacz import (
    PackContents,
    PackOptions,
    PackProgress,
    PackResult,
    Signer,
    foreign_part,
    pack,
    refuse_existing,
    take_stock,
)

SUFFIX = ".wacz"
_SHOWN = 200  # characters of a name
_LONGEST = 1000  # characters of a path


@dataclass(frozen=True, slots=True)
class PackArguments:
    """The options as they were given."""

    output: Path | None = None
    title: str | None = None
    description: str = ""
    text: bool = True
    split: str | None = None
    sign: bool = False
    key: Path | None = None
    force: bool = False


def pack_collection(directory: Path, asked: PackArguments) -> ExitCode:
    """Pack the collection in *directory*, and print the names of the files."""
    place.check_is_directory(directory)
    output = _output(directory, asked.output)
    split = _split(asked.split)
    place.check_idle(directory)
    software = f"archiver/{__version__}"
    signer = Signer(software, asked.key) if asked.sign or asked.key else None
    stock = take_stock(directory)
    wish = PackOptions(
        output=output,
        software=software,
        created=second(time.time()),
        title=asked.title or _name(directory),
        description=asked.description,
        text=asked.text,
        split=split,
        sign=signer,
    )
    if not asked.force:
        refuse_existing(wish, stock)
    with ProgressLine() as meter:
        made = pack(wish, stock, ReaderProcess(), lambda progress: meter.show(_standing(progress)))
    _tell(directory, stock, made, split)
    if (foreign := foreign_part(wish, made)) is not None:
        say(f"{foreign}: is no part of this package, but of one that was made before; take it away")
    result("\n".join(str(path) for path in [*(each.path for each in made), *_description(output, made)]))
    return ExitCode.DONE


def _name(directory: Path) -> str:
    return printable(directory.resolve().name, _SHOWN) or "archive"


def _output(directory: Path, given: Path | None) -> Path:
    """The file that is to be made: where we are, unless it is told; but not in the collection itself."""
    whole = directory.resolve()
    name = f"{whole.name or 'archive'}{SUFFIX}"
    if given is None:
        return whole.parent / name if Path.cwd().is_relative_to(whole) else Path(name)
    output = given / name if given.is_dir() else given
    if output.suffix != SUFFIX:
        raise ConfigError(f"-o {given}: the name of a WACZ file ends with {SUFFIX}")
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
        raise ConfigError("--split: 0: nothing is so small; give the largest size that a package may have (10G)")
    return size


def _description(output: Path, made: Sequence[PackResult]) -> list[Path]:
    return [output.with_suffix(".json")] if len(made) > 1 else []


def _standing(progress: PackProgress) -> str:
    if progress.listing:
        return f"packing: the index and the lists of pages, after file {progress.file} of {progress.files}"
    share = progress.done / progress.total if progress.total else 1.0
    return f"packing: {share:.0%} of {volume(progress.total)}, file {progress.file} of {progress.files}"


def _tell(directory: Path, stock: PackContents, made: Sequence[PackResult], split: int | None) -> None:
    """What a person should know of it."""
    for name, why in stock.left_out:
        say(f"{directory / 'archive' / printable(name, _SHOWN)}: left out, because {why}")
    for each in made:
        for damage in each.damage:
            say(f"{damage}; its bytes are packed as they are")
        if each.damage:
            say(f"all that is damaged is named by: archiver verify {directory}")
        if each.without_text:
            say(f"{each.path}: there was no room for the text of pages; listed without it: {each.without_text}")
        if split is not None and each.size > split:
            why = ", because a WARC file is never cut" if each.warcs == 1 else ""
            say(f"{each.path}: {volume(each.size)}, more than --split{why}")
    _tell_of_secrets(directory)
    _tell_of_others(directory, stock)
    captures, pages = (sum(each.captures for each in made), sum(each.seeds + each.pages for each in made))
    files, size = sum(each.warcs for each in made), sum(each.size for each in made)
    listed = f"{humanize.count(captures, 'record')} in the index, {humanize.count(pages, 'page')}"
    say(f"packed: {humanize.count(files, 'WARC file')}, {listed}, {volume(size)}")


def _tell_of_secrets(directory: Path) -> None:
    """Say that the requests of the crawl have secret headers; everything else is without them."""
    path = Layout(directory).settings
    try:
        settings = with_values(Settings(), place.read_settings(path)) if path.is_file() else Settings()
    except ConfigError:  # of settings that cannot be read others complain
        return
    if has_secrets(settings):
        say("the request records hold secret headers as they were sent; hand the package on only to who may know them")


def _tell_of_others(directory: Path, stock: PackContents) -> None:
    """What a package by itself cannot show, for it lies in other archives (`--dedup-from`)."""
    if not any(warc.revisits for warc in stock.warcs):
        return
    held = {warc.path.name for warc in stock.warcs}
    try:
        others = [str(path) for path in place.dedup_from(directory) if not _is_held(path, held)]
    except ConfigError as error:
        say(f"whether payloads lie elsewhere is not known: {error}")
        return
    if others:
        say(
            f"payloads that are not stored twice lie in {printable(' and '.join(others), _LONGEST)}, and the package "
            "cannot show them; pack one collection of all, which this makes: "
            f"archiver import {printable(' '.join(map(quote, [*others, str(directory)])), _LONGEST)} -o ALL"
        )


def _is_held(other: Path, held: set[str]) -> bool:
    """Whether the collection *other* was brought into that which has the WARC files *held*."""
    names = {path.name for path in Layout(other).archive.glob("*.warc*")}
    return bool(names) and names <= held
