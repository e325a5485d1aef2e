"""`archiver report`: the results of a crawl at any time, as text, JSON or an HTML page."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import click

from archiver.cli.directory import named_crawl
from archiver.cli.options import crawl_argument, define_command, host_option, output_option
from archiver.cli.terminal import results, say
from archiver.collection.layout import holds_crawl
from archiver.collection.lock import Holder
from archiver.collection.named_crawl import LONGEST_NUMBER, NamedCrawl, chosen_crawl, collected_crawls
from archiver.collection.named_urls import canonical_url
from archiver.errors import ConfigError
from archiver.humanize import printable
from archiver.model import ExitCode
from archiver.storage import replace_file
from archiver.tools.report import verdict
from archiver.tools.report.crawl_part import CrawlPart
from archiver.tools.report.report import Summary, report_lines

MAX_PATH = 4000  # characters of a path


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The arguments of `archiver report`."""

    form: str  # text, json or html
    output: Path | None
    host: str | None
    seed: str | None
    since: str | None  # a date, or the number of a crawl
    crawl: str | None = None  # the same

    @property
    def part(self) -> CrawlPart:
        """The part of the crawl to report on."""
        if self.host and self.seed:
            raise ConfigError("--host and --seed cannot be given together; a report is about one of them")
        return CrawlPart(self.host or "", canonical_url(self.seed) if self.seed else "")


def report(place: Path | str, request: ReportRequest) -> ExitCode:
    """Write the results of the crawl at *place* to stdout or a file; all reports to a folder."""
    from archiver.tools.report import files, html

    output, part = request.output, request.part
    crawl, since = _ends(named_crawl(place), request)
    with crawl.read() as whole:
        db, found = files.read_part(crawl, whole, part, since)
        holder = crawl.holder(whole)
        found = replace(found, ending=_state(found, crawl, holder), running=holder is not None)
        if output is not None and output.is_dir():
            if holds_crawl(output):
                raise ConfigError(f"-o {output} holds a crawl; name a file such as report.html, or a folder of its own")
            files.write_reports(crawl, db, found, output, time.time())
            say(f"archiver: written to {output}")
            return ExitCode.DONE
        told = files.read_report(crawl, db, found, time.time())
    pieces: Iterable[str]
    match request.form:
        case "json":
            pieces = [files.as_json(told), "\n"]
        case "html":
            pieces = html.render(told)
        case _:
            name = quote(printable(crawl.name, MAX_PATH))
            pieces = (f"{line}\n" for line in report_lines(told, style=replace(told.summary.style, directory=name)))
    if output is None:
        results("".join(pieces).removesuffix("\n").split("\n"))
    else:
        _write(output, pieces)
        say(f"archiver: written to {output}")
    return ExitCode.DONE


def _ends(newest: NamedCrawl, request: ReportRequest) -> tuple[NamedCrawl, str]:
    """Return the crawl to report on, and the date of the one to compare it with: "" for the one before."""
    if newest.layout is None:
        for option, given in (("--since", request.since), ("--crawl", request.crawl)):
            if given:
                raise ConfigError(f"{option} needs the files of an earlier crawl; give the directory of the crawl")
        return newest, ""
    known = collected_crawls(newest.layout) if request.crawl or request.since else []
    last = chosen_crawl(known, request.crawl, "--crawl") if request.crawl else None
    since = request.since or ""
    if since.strip().isdigit() and len(since.strip()) <= LONGEST_NUMBER:
        earlier = known[: last.number - 1] if last is not None else known[:-1]
        since = chosen_crawl(earlier, since, "--since").stamp
    return newest if last is None else last.as_named(newest.layout), since


def _state(found: Summary, crawl: NamedCrawl, holder: Holder | None) -> str:
    """Return that the crawl is running, or how it ended."""
    if holder:
        return f"it is running ({holder})"
    ended = verdict.ending(found.verdict.run)
    if found.totals.waiting and crawl.stamp:
        return f"{ended or 'stopped'}; another crawl followed"
    if found.totals.waiting:
        return f"{ended or 'stopped'}; to continue: {crawl.resume_command}"
    return ended or "done"


def _write(output: Path, pieces: Iterable[str]) -> None:
    if not output.absolute().parent.is_dir():
        raise ConfigError(f"-o {output} cannot be written: its folder does not exist; name a file in one that does")
    replace_file(output, lambda file: file.writelines(piece.encode() for piece in pieces))


def _run(place: Path | str, **chosen: Any) -> int:
    return report(place, ReportRequest(**chosen))


COMMAND = define_command(
    "report",
    _run,
    """Report the results of a crawl.

    Begins with what to act on: the result in one sentence, seeds that failed, findings and failures by reason with the
    commands for them, broken pages with the pages that link to them, and what a recrawl changed. Then come settings,
    and tables of hosts, status codes, media types, truncated captures and more. --host and --seed report on a part of
    the crawl. --crawl reports on an earlier crawl of the collection, and --since compares with a crawl other than the
    previous one. The HTML page also has plots; it is one file and loads nothing from the network. The same reports are
    written to DIR/reports at the end of each run. Changes nothing; works while the crawl runs. With an ADDRESS, the
    WARC files are not read, so only the first page that links to a broken page is named.
    """,
    [
        crawl_argument(),
        click.Option(["--text", "form"], flag_value="text", default=True, help="Print text (default)."),
        click.Option(["--json", "form"], flag_value="json", help="Print JSON."),
        click.Option(["--html", "form"], flag_value="html", help="Print one HTML page."),
        output_option("FILE|FOLDER", "Write to a file; or all reports, with full tables, to a folder that exists."),
        host_option(several=False),
        click.Option(["--seed"], metavar="URL", help="Only URLs that were found from this seed."),
        click.Option(
            ["--since"],
            metavar="DATE|N",
            help="Compare with the earlier crawl that began then (2026-11-21, 2026-11-21T10:30:00Z), or with crawl N, "
            "where 1 is the oldest. [default: the crawl before]",
        ),
        click.Option(
            ["--crawl"],
            metavar="N|DATE",
            help="Report on this crawl of the collection. With --since, what changed between any two crawls. [default: "
            "the newest crawl]",
        ),
    ],
    ("archiver report collections/example.org", "print it as text"),
    ("archiver report collections/example.org --html -o report.html", "make a page with plots, for a browser"),
    ("archiver report collections/example.org --host img.example.org", "one host only"),
    ("archiver report collections/example.org --since 2026-10", "what has changed since the crawl of October"),
    ("archiver report collections/example.org --since 1 --crawl 2", "what had changed from crawl 1 to crawl 2"),
    ("archiver report collections/example.org --json | jq '.tables.failures.rows'", "use it in a script"),
)
