"""`archiver import`: archives that others made, brought into a collection."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from archiver import humanize
from archiver.cli import directory as place
from archiver.cli.terminal import ProgressLine, complain, results, say
from archiver.cli.verify import fault_line
from archiver.collection import safe_paths
from archiver.errors import ConfigError
from archiver.humanize import printable
from archiver.model import ExitCode
from archiver.tools import ingest

SHOWN = 20  # faults; verify shows the others
LONGEST = 1000  # characters of a path


def bring_in(files: Sequence[Path], output: Path | None, *, strict: bool, convert: bool) -> ExitCode:
    """Import *files*, and say what became of each."""
    directory = output or place.COLLECTIONS / ingest.collection_name(files[0])
    _check_collection(directory)
    found = ingest.find_archives(files)
    place.make_directory(directory)
    with ProgressLine() as meter:
        outcome = ingest.bring(found, directory, strict=strict, convert=convert, tell=meter.show)
    faults = [fault for fault in outcome.faults if fault.severity.value == "fault"]
    for line in (*outcome.signatures, *outcome.doubts[:SHOWN], *map(fault_line, faults[:SHOWN])):
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
    safe_paths.check_files(directory)
    if any(directory.iterdir()) and not (directory / "archive").is_dir():
        raise ConfigError(f"{directory} holds something else than a collection; name another one with -o")


def _line(each: ingest.ImportedSource) -> str:
    label = printable(each.label, LONGEST)
    if each.known:
        return f"{label}: is there already, as {printable(each.name, LONGEST)}"
    line = f"archive/{each.name}: {humanize.count(each.records, 'record')} of {label}"
    return f"{line}, which is kept as {each.original}" if each.original else line
