"""`archiver report`: the results of a crawl at any time, as text, JSON or an HTML page."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from archiver.cli.directory import check_is_directory
from archiver.cli.options import define_command, directory_argument, output_option
from archiver.cli.terminal import results, say
from archiver.collection import lock
from archiver.collection.lock import Holder
from archiver.errors import ConfigError
from archiver.frontier import totals
from archiver.model import ExitCode
from archiver.storage import replace_file
from archiver.tools.report import verdict
from archiver.tools.report.report import Summary, read_summary, report_lines


def report(directory: Path, form: str, output: Path | None) -> ExitCode:
    """Write the results of the crawl in *directory* to stdout or to the file *output*."""
    from archiver.tools.report import files, html

    check_is_directory(directory)
    holder = lock.holder(directory)
    with totals.open_totals(directory) as db:
        found = read_summary(db)
        told = files.read_report(directory, db, replace(found, ending=_state(found, holder)), time.time())
    pieces: Iterable[str]
    match form:
        case "json":
            pieces = [files.as_json(told), "\n"]
        case "html":
            pieces = html.render(told)
        case _:
            pieces = (f"{line}\n" for line in report_lines(told))
    if output is None:
        results("".join(pieces).removesuffix("\n").split("\n"))
    else:
        _write(output, pieces)
        say(f"archiver: written to {output}")
    return ExitCode.DONE


def _state(found: Summary, holder: Holder | None) -> str:
    """Return that the crawl is running, or how it ended."""
    if holder:
        return f"it is running ({holder})"
    ended = verdict.ending(found.verdict.run)
    if found.totals.waiting:
        return f"{ended or 'stopped'}; to continue: archiver resume"
    return ended or "done"


def _write(output: Path, pieces: Iterable[str]) -> None:
    if output.is_dir() or not output.absolute().parent.is_dir():
        wrong = "is a directory" if output.is_dir() else "cannot be written: its folder does not exist"
        raise ConfigError(f"-o {output} {wrong}; give the name of a file, such as report.html")
    replace_file(output, lambda file: file.writelines(piece.encode() for piece in pieces))


COMMAND = define_command(
    "report",
    report,
    """Report the results of a crawl.

    Prints settings, how the crawl ended, and tables of seeds, hosts, status codes, media types, failures, missing parts
    of archived pages, truncated captures, slow hosts and held URLs. The HTML page also has plots; it is one file and
    loads nothing from the network. The same reports are written to DIR/reports at the end of each run. Changes nothing;
    works while the crawl runs.
    """,
    [
        directory_argument(),
        click.Option(["--text", "form"], flag_value="text", default=True, help="Print text (default)."),
        click.Option(["--json", "form"], flag_value="json", help="Print JSON."),
        click.Option(["--html", "form"], flag_value="html", help="Print one HTML page."),
        output_option("FILE", "Write to FILE instead of stdout."),
    ],
    ("archiver report collections/example.org", "print it as text"),
    ("archiver report collections/example.org --html -o report.html", "make a page with plots, for a browser"),
    ("archiver report collections/example.org --json | jq '.tables.failures.rows'", "use it in a script"),
)
