"""`archiver verify`: read archives back and report every fault."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archiver import humanize
from archiver.cli.directory import check_is_directory, check_no_address
from archiver.cli.options import define_command, json_option, store_option
from archiver.cli.terminal import ProgressLine, result
from archiver.humanize import printable, volume
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.tools.verify.findings import VerifyFinding, VerifyProgress, VerifyReport

MAX_TEXT = 1000  # characters of a part of a finding


def verify(paths: Sequence[Path], *, as_json: bool, store: str | None = None) -> ExitCode:
    """Check the collections and files *paths* and print every finding; files that are in *store* are read there."""
    from archiver.tools.verify import collection
    from archiver.tools.verify.findings import merge_reports

    for path in paths:
        check_no_address(path)
    opened = None
    if store:
        from archiver.collection.store import Store

        opened = Store(store)
        for path in paths:
            check_is_directory(path)
    packages = [path for path in dict.fromkeys(paths) if path.name.lower().endswith(".wacz") and path.is_file()]
    others = [path for path in paths if path not in packages]
    with ProgressLine() as meter:

        def tell(progress: "VerifyProgress") -> None:
            meter.show(_progress_text(progress))

        reports = [collection.verify(others, tell, opened)] if others else []
        if packages:
            from archiver.tools.ingest.packages import verify_package

            reports += [verify_package(path, tell) for path in packages]
    report = merge_reports(reports)
    result(json.dumps(report.as_json(), indent=2) if as_json else "\n".join(_lines(report)))
    return ExitCode.DONE if report.ok else ExitCode.FAULTS


def _progress_text(progress: "VerifyProgress") -> str:
    share = progress.bytes_done / progress.bytes_total if progress.bytes_total else 1.0
    return (
        f"reading: {share:.0%} of {volume(progress.bytes_total)}, file {progress.files_done} of {progress.files_total}"
    )


def _lines(report: "VerifyReport") -> Iterator[str]:
    from archiver.tools.verify.findings import Severity

    for finding in report.findings:
        yield finding_line(finding)
    kept = len(report.findings)
    total = sum(report.counts.values())
    if total > kept:
        yield f"and {total - kept} more of the same kinds"
    numbers = ", ".join(humanize.count(report.count(severity), severity.value) for severity in Severity)
    records = sum(read.records for read in report.files)
    size = volume(sum(read.size for read in report.files))
    yield f"{humanize.count(len(report.files), 'file')}, {humanize.count(records, 'record')}, {size}: {numbers}"


def finding_line(finding: "VerifyFinding") -> str:
    """Return a finding as one line of text."""
    where = printable(finding.file, MAX_TEXT) + ("" if finding.offset is None else f":{finding.offset}")
    about = f" [{printable(finding.url, MAX_TEXT)}]" if finding.url else ""
    return f"{where}: {finding.severity.value} {finding.code}: {printable(finding.message, MAX_TEXT)}{about}"


COMMAND = define_command(
    "verify",
    verify,
    """Check archives and report every fault.

    Reads every WARC file and checks its structure and digests. For a DIR, also checks the index and the database
    against the WARC files; for a WACZ file, each file against the list in the package. With --store, reads WARC files
    in the store, one at a time; TMPDIR needs room for the largest. The exit code is 0 only if there is no fault.
    """,
    [
        click.Argument(["paths"], nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)),
        store_option("Check the WARC files of DIR that were sent to this store, as they are there."),
        json_option(),
    ],
    ("archiver verify collections/example.org", "check a whole crawl"),
    ("archiver verify *.warc.gz", "check WARC files of any origin"),
    ("archiver verify collections/example.org --store s3://archives/example", "check what is in the store"),
    ("archiver verify example.wacz", "check a package"),
)
