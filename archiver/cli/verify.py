"""`archiver index` and `archiver verify`: the index made anew, and everything read back."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from archiver import humanize
from archiver.cli import directory as place
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.index_search import besides_cdxj
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.reindex import rebuild
from archiver.errors import ConfigError
from archiver.humanize import printable, volume
from archiver.model import ExitCode
from archiver.tools import verify as reading
from archiver.tools.ingest import verify_wacz
from archiver.tools.verify import Fault, Severity, VerifyProgress, VerifyReport

_LONGEST = 1000  # characters of a message


def index(directory: Path) -> ExitCode:
    """Build the index of *directory* anew."""
    place.check_is_directory(directory)
    if not Layout(directory).archive.is_dir():
        raise ConfigError(f"{directory} holds no crawl: there is no archive/ in it")
    place.check_idle(directory)
    lock = Lock(Layout(directory).lock)  # what is added to the index meanwhile would be lost
    try:
        lines = rebuild(directory)
    finally:
        lock.release()
    result(f"{lines} lines in {Layout(directory).indexes / 'index.cdxj'}")
    if others := besides_cdxj(Layout(directory).indexes):
        say(
            f"{', '.join(others)} lies there too, so that pywb shows each capture twice; take it away if this is enough"
        )
    return ExitCode.DONE


def verify(paths: Sequence[Path], *, as_json: bool) -> ExitCode:
    """Read back what *paths* name, and show every finding."""
    packages = [path for path in dict.fromkeys(paths) if path.name.lower().endswith(".wacz") and path.is_file()]
    others = [path for path in paths if path not in packages]
    with ProgressLine() as meter:

        def tell(progress: VerifyProgress) -> None:
            meter.show(_standing(progress))

        reports = [reading.verify(others, tell)] if others else []
        reports += [verify_wacz.verify_package(path, tell) for path in packages]
    report = reading.merge_reports(reports)
    result(json.dumps(report.as_json(), indent=2) if as_json else "\n".join(_lines(report)))
    return ExitCode.DONE if report.ok else ExitCode.FAULTS


def _standing(progress: VerifyProgress) -> str:
    share = progress.bytes_done / progress.bytes_total if progress.bytes_total else 1.0
    return (
        f"reading: {share:.0%} of {volume(progress.bytes_total)}, file {progress.files_done} of {progress.files_total}"
    )


def _lines(report: VerifyReport) -> Iterator[str]:
    for fault in report.faults:
        yield fault_line(fault)
    kept = len(report.faults)
    total = sum(report.counts.values())
    if total > kept:
        yield f"and {total - kept} more of the same kinds"
    numbers = ", ".join(humanize.count(report.count(severity), severity.value) for severity in Severity)
    records = sum(read.records for read in report.files)
    size = volume(sum(read.size for read in report.files))
    yield f"{humanize.count(len(report.files), 'file')}, {humanize.count(records, 'record')}, {size}: {numbers}"


def fault_line(fault: Fault) -> str:
    """One finding, for a person."""
    where = printable(fault.file, _LONGEST) + ("" if fault.offset is None else f":{fault.offset}")
    about = f" [{printable(fault.url, _LONGEST)}]" if fault.url else ""
    return f"{where}: {fault.severity.value} {fault.code}: {printable(fault.message, _LONGEST)}{about}"
