"""`archiver import`: archives that others made, brought into a collection."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from archiver.cli.command import command
from archiver.cli.terminal import complain, results, say
from archiver.errors import ConfigError
from archiver.model import ExitCode
from archiver.stats import printable

if TYPE_CHECKING:
    from archiver.importing import Arrived

SHOWN = 20  # faults; verify shows the others
LONGEST = 1000  # characters of a path


def bring_in(files: Sequence[Path], output: Path | None, *, strict: bool) -> ExitCode:
    """Import *files*, and say what became of each. What it needs is imported when it is called."""
    from archiver import importing  # noqa: PLC0415
    from archiver.cli import directory as place  # noqa: PLC0415
    from archiver.cli.checking import fault_line  # noqa: PLC0415
    from archiver.cli.meter import Meter  # noqa: PLC0415

    directory = output or place.COLLECTIONS / importing.collection_name(files[0])
    _check_collection(directory)
    found = importing.sources(files)
    place.made(directory)
    with Meter() as meter:
        outcome = importing.bring(found, directory, strict=strict, tell=meter.show)
    faults = [fault for fault in outcome.faults if fault.severity.value == "fault"]
    for line in (*outcome.doubts[:SHOWN], *map(fault_line, faults[:SHOWN])):
        say(line)
    if len(outcome.doubts) > SHOWN or len(faults) > SHOWN:
        say("and more; archiver verify FILE... names every fault")
    if outcome.refused:
        complain("nothing was imported, for --strict was given and there are faults")
        return ExitCode.FAULTS
    results(_line(each) for each in outcome.files)
    say(f"look at it with: archiver replay {quote(str(directory))}")
    return ExitCode.FAULTS if outcome.faulty else ExitCode.DONE


def _check_collection(directory: Path) -> None:
    """Refuse a directory into which nothing can be imported."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory; name another one with -o")
    if any(directory.iterdir()) and not (directory / "archive").is_dir():
        raise ConfigError(f"{directory} holds something else than a collection; name another one with -o")


def _line(each: "Arrived") -> str:
    label = printable(each.label, LONGEST)
    if each.known:
        return f"{label}: is there already, as {printable(each.name, LONGEST)}"
    return f"archive/{each.name}: {each.records} record{'' if each.records == 1 else 's'} of {label}"


_PATH = click.Path(path_type=Path)
COMMANDS = (
    command(
        "import",
        bring_in,
        """Bring archives that others made into a collection: WARC and WACZ files, folders, other collections.

    Each file is copied byte for byte into DIR/archive, read whole as archiver verify does, and listed in the index, so
    that archiver replay DIR shows it. Nothing that is there is overwritten, and what is there already is not copied
    again. What is damaged is imported as it is, and told; the exit code is 7 then. Killed, it is called once more.
    """,
        [
            click.Argument(["files"], nargs=-1, required=True, metavar="FILE...", type=_PATH),
            click.Option(
                ["-o", "--output"],
                type=_PATH,
                metavar="DIR",
                help="The collection, new or not. Default: collections/ and the name of the first FILE.",
            ),
            click.Option(["--strict"], is_flag=True, help="Import nothing at all where there is any fault."),
        ],
        ("archiver import crawl.wacz", "a package, into collections/crawl"),
        ("archiver import old/*.warc.gz -o collections/example.org", "files, into a collection of your own"),
        ("archiver import --strict ~/collections/other -o all", "all files of another collection, if all are sound"),
    ),
)
