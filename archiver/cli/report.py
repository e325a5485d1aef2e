"""`archiver report`: the results of a crawl at any time, as text, JSON or an HTML page."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from archiver.cli.directory import named_crawl
from archiver.cli.options import crawl_argument, define_command, output_option
from archiver.cli.terminal import results, say
from archiver.collection.lock import Holder
from archiver.collection.named_crawl import NamedCrawl, holds_crawl
from archiver.errors import ConfigError
from archiver.model import ExitCode
from archiver.storage import replace_file
from archiver.tools.report import verdict
from archiver.tools.report.report import Summary, read_summary, report_lines


def report(place: Path | str, form: str, output: Path | None) -> ExitCode:
    """Write the results of the crawl at *place* to stdout or the file *output*; all reports to the folder *output*."""
    from archiver.tools.report import files, html

    crawl = named_crawl(place)
    with crawl.read() as db:
        found = read_summary(db, quotas=crawl.quotas(db))
        found = replace(found, ending=_state(found, crawl, crawl.holder(db)))
        if output is not None and output.is_dir():
            if holds_crawl(output):
                raise ConfigError(f"-o {output} holds a crawl; name a file such as report.html, or a folder of its own")
            files.write_reports(crawl, db, found, output, time.time())
            say(f"archiver: written to {output}")
            return ExitCode.DONE
        told = files.read_report(crawl, db, found, time.time())
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


def _state(found: Summary, crawl: NamedCrawl, holder: Holder | None) -> str:
    """Return that the crawl is running, or how it ended."""
    if holder:
        return f"it is running ({holder})"
    ended = verdict.ending(found.verdict.run)
    if found.totals.waiting:
        return f"{ended or 'stopped'}; to continue: {crawl.resume_command}"
    return ended or "done"


def _write(output: Path, pieces: Iterable[str]) -> None:
    if not output.absolute().parent.is_dir():
        raise ConfigError(f"-o {output} cannot be written: its folder does not exist; name a file in one that does")
    replace_file(output, lambda file: file.writelines(piece.encode() for piece in pieces))


COMMAND = define_command(
    "report",
    report,
    """Report the results of a crawl.

    Prints settings, how the crawl ended, and tables of seeds, hosts, status codes, media types, failures, missing parts
    of archived pages, truncated captures, slow hosts and held URLs. The HTML page also has plots; it is one file and
    loads nothing from the network. The same reports are written to DIR/reports at the end of each run. Changes nothing;
    works while the crawl runs. With an ADDRESS, the WARC
    files are not read, so of pages that link to a broken page only the first is named.
    """,
    [
        crawl_argument(),
        click.Option(["--text", "form"], flag_value="text", default=True, help="Print text (default)."),
        click.Option(["--json", "form"], flag_value="json", help="Print JSON."),
        click.Option(["--html", "form"], flag_value="html", help="Print one HTML page."),
        output_option("FILE|FOLDER", "Write to a file; or all reports, with full tables, to a folder that exists."),
    ],
    ("archiver report collections/example.org", "print it as text"),
    ("archiver report collections/example.org --html -o report.html", "make a page with plots, for a browser"),
    ("archiver report collections/example.org --json | jq '.tables.failures.rows'", "use it in a script"),
)
