"""`archiver look`: show archived pages in a browser without a network, and name what their replay would miss."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from archiver.cli.directory import check_files_are_here, dedup_from, named_crawl
from archiver.cli.get import open_holdings, parse_url
from archiver.cli.look.fetching import UrlState, check_all_is_here, queue, states
from archiver.cli.options import complete_urls, define_command, directory_argument, output_option
from archiver.cli.terminal import ProgressLine, result, results, say
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings
from archiver.collection.settings_file import read_settings
from archiver.config.addresses import DATABASE
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.frontier import totals
from archiver.humanize import count, printable
from archiver.model import ExitCode
from archiver.storage import replace_file
from archiver.storage.temporary import temporary_folder

if TYPE_CHECKING:
    from archiver.browser.chromium import Chromium
    from archiver.collection.browser_answers import ArchiveAnswers
    from archiver.tools.look.look import LookFindings, LookOptions, MissingUrl
    from archiver.tools.look.pages import ChosenPages, PageToView

EACH = 3  # pages of a URL pattern
SHOWN = 20  # lines of a list
MAX_URL = 500  # characters


@dataclass(frozen=True, slots=True)
class LookRequest:
    """The arguments of `archiver look`."""

    urls: tuple[str, ...]
    every: bool
    fetch: bool
    records: bool
    screenshots: bool
    behavior: tuple[str, ...]
    browser: str
    tabs: int
    output: Path | None
    crawl: str | None  # the address of its frontier, for a directory with the captures of all its machines

    def place(self, directory: Path) -> Path | str:
        """Return the crawl of *directory*."""
        return self.crawl or directory


def look(directory: Path, request: LookRequest) -> ExitCode:
    """View pages of the archive *directory* and print what is missing; with `fetch`, queue it."""
    import asyncio

    from archiver.browser.chromium import Chromium, find, why_no_namespace
    from archiver.browser.devtools import BrowserGoneError
    from archiver.collection.browser_answers import ArchiveAnswers
    from archiver.crawl.metadata_warc import store_views
    from archiver.tools.look.look import LookFindings

    command = find(request.browser)
    if why := why_no_namespace():
        raise ConfigError(
            f"look runs the browser without a network, in a network namespace, and none can be made: {why}"
        )
    _check_changeable(directory, request)
    check_files_are_here(directory)
    if not directory.is_file():
        check_all_is_here(directory)
    options = _options(request, command)
    found = LookFindings()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("look"))
        archives = _archives(stack, directory)
        chosen = _chosen(archives[0], directory, request)
        start = partial(Chromium, options.command, network=False)
        try:
            stored = asyncio.run(_look(chosen.pages, ArchiveAnswers(archives), options, start, found, folder))
        except BrowserGoneError as error:
            raise ConfigError(f"{command[0]}: {error}") from None
        known = states(request.place(directory), found.missing.values())
        results(_lines(directory, request, chosen, found, known))  # first, so that no error after it loses them
        if stored:
            name = asyncio.run(store_views(directory, _settings(directory), stored))
            say(f"archiver: {count(len(stored), 'record')} of views stored in {name}")
    if request.fetch and found.lasting:
        result(queue(request.place(directory), found.lasting, known))
    _write_table(_table(found, known), directory, request.output)
    return ExitCode.FAULTS if found.lasting or found.unfinished else ExitCode.DONE


def _options(request: LookRequest, browser: Sequence[str]) -> "LookOptions":
    """Return how pages are viewed. Raises `ConfigError` if a behavior is faulty."""
    from archiver.browser.behavior_files import check_behaviors, read_behaviors
    from archiver.browser.behaviours import BehaviourPlan
    from archiver.browser.tab import ViewLimits
    from archiver.browser.view import FLAGS
    from archiver.tools.look.look import LookOptions

    command, behaviors = (*browser, *FLAGS), read_behaviors(request.behavior)
    check_behaviors(behaviors, command)
    limits = ViewLimits(behaviours=BehaviourPlan(files=behaviors))
    return LookOptions(command, request.tabs, request.records, request.screenshots, limits)


def _check_changeable(directory: Path, request: LookRequest) -> None:
    """Refuse to change what holds no crawl."""
    if request.crawl:
        if directory.is_file() or Layout(directory).has_frontier():
            raise ConfigError(
                f"--crawl is for a directory that archiver index ADDRESS has made; {directory} is another"
            )
        named_crawl(request.crawl)
    given = {
        "--fetch": request.fetch and not request.crawl,
        "--records": request.records,
        "--screenshots": request.screenshots,
    }
    option = next((name for name, wanted in given.items() if wanted), "")
    if option and (directory.is_file() or not Layout(directory).has_frontier()):
        raise ConfigError(f"{option}: {directory} holds no crawl, so it cannot be changed")


def _settings(directory: Path) -> Settings:
    return with_values(Settings(), read_settings(Layout(directory).settings))


async def _look(
    pages: "Sequence[PageToView]",
    answers: "ArchiveAnswers",
    options: "LookOptions",
    start: "partial[Chromium]",
    found: "LookFindings",
    folder: Path,
) -> list[tuple[str, str, Path]]:
    """View *pages*, add the results to *found*, and return the records to store, whose bytes are in *folder*."""
    from archiver.tools.look.look import look as look_at

    records: list[tuple[str, str, Path]] = []
    with ProgressLine() as progress:
        progress.show(f"starting {options.command[0]}")
        async for each in look_at(pages, answers, options, start):
            found.add(each)
            missing = f", {len(found.missing)} URLs missing" if found.missing else ""
            progress.show(f"{found.pages} of {count(len(pages), 'page')}{missing}")
            for record in each.records:
                records.append((record.uri, record.type, folder / str(len(records))))
                records[-1][2].write_bytes(record.block)
    return records


def _archives(stack: ExitStack, directory: Path) -> list[Holdings]:
    """Open the archive, and those that hold payloads of its revisits."""
    others = [] if directory.is_file() else [path for path in dedup_from(directory) if Layout(path).archive.is_dir()]
    return [stack.enter_context(open_holdings(path)) for path in (directory, *others)]


def _chosen(holdings: Holdings, directory: Path, request: LookRequest) -> "ChosenPages":
    from archiver.tools.look.pages import ChosenPages, choose, named_pages

    if request.urls:
        pages = []
        for address, page in named_pages(holdings, [parse_url(text)[0] for text in request.urls]):
            if page is None:
                near = holdings.near(address)
                hint = f"; similar: {' '.join(near)}" if near else ""
                raise ConfigError(f"{directory} holds no capture of {printable(address, MAX_URL)}{hint}")
            pages.append(page)
        return ChosenPages(tuple(pages), 0)
    chosen = choose(holdings, _seeds(request.place(directory)), 0 if request.every else EACH)
    if not chosen.pages:
        raise ConfigError(f"{directory} holds no page to look at")
    return chosen


def _seeds(place: Path | str) -> list[str]:
    if isinstance(place, Path) and (place.is_file() or not Layout(place).has_frontier()):
        return []
    with totals.open_totals(place) as db:
        return [seed.url for seed in totals.seeds(db)]


def _table(found: "LookFindings", known: dict[str, UrlState]) -> list[str]:
    """Return the header and one line for each missing URL, by pattern."""
    from archiver.tools.report.files import IN_REPLAY_COLUMNS

    rows = [
        (
            each.url,
            each.method,
            each.kind,
            str(each.pages),
            each.page,
            "yes" if each.volatile else "no",
            known[each.url].text if each.url in known else "",
        )
        for each in _sorted(found.missing.values())
    ]
    return ["\t".join(printable(cell, len(cell)) for cell in row) for row in (IN_REPLAY_COLUMNS, *rows)]


def _write_table(table: Sequence[str], directory: Path, output: Path | None) -> None:
    """Write *table* to the file *output*; without one to the reports of *directory*, if it has any."""
    from archiver.tools.report.files import IN_REPLAY

    reports = Layout(directory).reports
    if output is None and not reports.is_dir():
        return
    if output is None and not os.access(reports, os.W_OK):  # as on a read-only disk
        say(f"archiver: {reports} is not writable, so no list of missing URLs is written; name a file for it with -o")
        return
    path = output or reports / f"{IN_REPLAY}.tsv"
    replace_file(path, lambda file: file.writelines(f"{line}\n".encode() for line in table))
    say(f"archiver: {count(len(table) - 1, 'missing URL')} listed in {path}")


def _sorted(missing: "Iterable[MissingUrl]") -> "list[MissingUrl]":
    return sorted(missing, key=lambda each: (each.volatile, each.pattern, each.method, each.url))


def _lines(
    directory: Path, request: LookRequest, chosen: "ChosenPages", found: "LookFindings", known: dict[str, UrlState]
) -> Iterator[str]:
    left = f"; {chosen.left_out} more were not looked at (--all)" if chosen.left_out else ""
    yield f"looked at  {count(found.pages, 'page')}, {count(found.asked, 'request')}{left}"
    yield f"complete   {count(found.whole, 'page')}"
    yield from _listed("missing", _patterns(found.lasting, known))
    volatile = [each for each in found.missing.values() if each.volatile]
    yield from _listed("volatile", _patterns(volatile, known))
    if volatile:
        yield "           no replay asks for these again: they differ each time the page is shown"
    yield from _listed("live only", [f"{address}  on {page}" for address, page in found.live.items()])
    yield from _listed("behaviors", [f"{fault}, on {page}" for fault, page in found.faults.items()])
    yield from _listed("cut short", [f"{page}: {why}" for page, why in found.unfinished])
    if found.lasting and not request.fetch and (request.crawl or Layout(directory).has_frontier()):
        of = f" --crawl {quote(request.crawl)}" if request.crawl else ""
        yield f"next       archiver look {quote(str(directory))}{of} --fetch   # queue what is missing"


def _patterns(missing: "Iterable[MissingUrl]", known: dict[str, UrlState]) -> list[str]:
    """Return a line for each URL pattern: its URLs, its kind, and the page that asks for the first."""
    lines = []
    for (shape, method, kind), group in groupby(
        _sorted(missing), key=lambda each: (each.pattern, each.method, each.kind)
    ):
        each = list(group)
        state = known.get(each[0].url)
        why = f"; {state.text}" if state is not None else ""
        name = printable(each[0].url if len(each) == 1 else shape, MAX_URL)
        what = kind if method == "GET" else f"{method} {kind}"
        lines.append(f"{len(each):>4}  {name}  {what}, on {printable(each[0].page, MAX_URL)}{why}")
    return lines


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines[:SHOWN]):
        yield f"{'' if number else title:<10} {line}"
    if len(lines) > SHOWN:
        yield f"           and {len(lines) - SHOWN} more"


def _address(text: str) -> str:
    try:
        return str(DATABASE.parse(text))
    except ConfigError as error:
        raise ConfigError(f"--crawl: {error}") from None


def _run(directory: Path, **chosen: Any) -> int:
    return look(directory, LookRequest(**chosen))


COMMAND = define_command(
    "look",
    _run,
    """Show archived pages in a browser, and name what their replay would lack.

    Shows pages in Chromium, which has no network: each request is answered only from the archive. Looks at the seeds
    and at three pages of each URL pattern, at most 100, or at the URLs given. Prints what pages request and the archive
    lacks, by URL pattern, and writes DIR/reports/missing-in-replay.tsv. Exits with 7 if something is missing. Changes
    nothing without --fetch, --records or --screenshots. DIR may also be a WACZ or WARC file.
    """,
    [
        directory_argument(),
        click.Argument(["urls"], nargs=-1, metavar="[URL]...", shell_complete=complete_urls),
        click.Option(["--all", "every"], is_flag=True, help="Look at all pages."),
        click.Option(["--fetch"], is_flag=True, help="Queue what is missing; archiver resume fetches it."),
        click.Option(
            ["--crawl"],
            metavar="ADDRESS",
            type=_address,
            help="Queue it in this crawl, whose machines have captured what is in DIR (archiver index ADDRESS -o DIR).",
        ),
        click.Option(
            ["--records"],
            is_flag=True,
            help="Store what each page requested, its title and its text, as urn:pageinfo:URL and urn:text:URL; "
            "packages then list these titles and texts.",
        ),
        click.Option(["--screenshots"], is_flag=True, help="Store a picture of each page, as urn:view:URL (JPEG)."),
        click.Option(
            ["--behavior"],
            multiple=True,
            metavar="FILE",
            help="Run this behavior: a class in JavaScript as for browsertrix-crawler, or a flow in JSON. Repeatable.",
        ),
        click.Option(["--browser"], default="", metavar="COMMAND", help="Start this browser. Default: Chromium."),
        click.Option(
            ["--tabs"], type=click.IntRange(1, 32), default=2, metavar="N", help="Show N pages at once. [default: 2]"
        ),
        output_option("FILE", "Write the table to FILE."),
    ],
    ("archiver look collections/example.org", "check the seeds and three pages of each URL pattern"),
    ("archiver look collections/example.org https://example.org/a.html", "check this page"),
    ("archiver look collections/example.org --fetch && archiver resume collections/example.org", "get what is missing"),
)
