"""Start, continue or repeat a crawl: check the settings, run the crawl, report on it.

Everything is checked before anything is written. `archiver.crawl.recrawl` says how the previous crawl is set aside.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from archiver.cli.config.named_files import check_named_files
from archiver.cli.config.sources import (
    GivenSettings,
    check_disk_space,
    check_network_choices,
    check_proxies,
    check_secrets,
    check_seed_settings,
    check_views,
    contact_warning,
    new_settings,
    usable_in,
    user_defaults,
    with_absolute_paths,
)
from archiver.cli.cookies import load
from archiver.cli.directory import (
    check_free,
    check_frontier,
    check_idle,
    check_is_directory,
    check_one_machine,
    check_resumable,
    check_same_frontier,
    check_store,
    default_directory,
    finish_switch_over,
    lacks_frontier,
    make_directory,
)
from archiver.cli.events.sending import reporting
from archiver.cli.progress import display_for
from archiver.cli.runner import RunningCrawl, RunResult, run_crawl, within_open_files
from archiver.cli.terminal import colours, complain, log_to_stderr, say, show, width
from archiver.cli.watch.beside import WatchRequest, served
from archiver.cli.watch.metrics import MetricsRequest, metrics_served
from archiver.collection import settings_file
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, recorded_only
from archiver.collection.named_files import store_uses, vouch
from archiver.config import toml
from archiver.config.addresses import DATABASE
from archiver.config.profiles import SettingOrigin, Source, recorded
from archiver.config.secret_settings import on_this_machine
from archiver.config.settings import Settings, with_values
from archiver.crawl.crawler_process import crawler_processes
from archiver.crawl.hooks.plugins import extractors
from archiver.crawl.shared_settings import check_runs_alone, newest_settings, settings_for_others, settings_to_join
from archiver.errors import ConfigError
from archiver.frontier.address import LONGEST_MACHINE, MACHINE, address_of, machine_of, write_address
from archiver.humanize import count, printable
from archiver.model import Cookie, ExitCode

if TYPE_CHECKING:
    from archiver.frontier.connection import Reader
    from archiver.tools.report.report import Summary

QUIET = -1  # print the end of the run only
SILENT = -2  # print errors only
LONGEST_ADDRESS = 4000  # characters of a path or a file: URL that is printed


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """The arguments of `archiver crawl`."""

    urls: tuple[str, ...]
    lists: tuple[str, ...]  # files of seeds
    output: Path | None
    given: GivenSettings
    verbosity: int
    cookies: tuple[str, ...] = ()  # files
    trusted: bool = False  # follow all of a crawl.toml that is there already
    watch: WatchRequest | None = None  # serve the page of the crawl while it runs
    metrics: MetricsRequest | None = None  # serve the metrics of the crawl while it runs
    own_defaults: bool = True  # of a new crawl: the user's own defaults count too


@dataclass(frozen=True, slots=True)
class ExistingCrawl:
    """The crawl that is already in the directory, and the new text of its crawl.toml."""

    resume: bool  # there is a database to continue with
    text: str = ""  # the new crawl.toml; "": leave it as it is
    read: str = ""  # crawl.toml when the settings were read from it; "": it was not read
    cookies: tuple[Cookie, ...] = ()  # the user's own
    origins: Mapping[str, SettingOrigin] | None = None  # of the values in the new crawl.toml; None: as before


@dataclass(frozen=True, slots=True)
class PreparedCrawl:
    """A crawl whose settings were checked, ready to run."""

    directory: Path
    settings: Settings
    existing: ExistingCrawl


def crawl(request: CrawlRequest) -> ExitCode:
    """Start a crawl."""
    return run_and_report(prepare_crawl(request), request)


def prepare_crawl(request: CrawlRequest) -> PreparedCrawl:
    """Return a new crawl, whose directory exists from now on."""
    own = user_defaults() if request.own_defaults else Source({}, {})
    settings, origins = new_settings(request.urls, request.lists, own, request.given.whole())
    directory = request.output or default_directory(settings.seeds[0])
    settings = with_absolute_paths(settings, directory)
    check_secrets(settings)  # nothing happens if one is missing
    check_free(directory)
    check_disk_space(directory, settings)
    cookies = load(request.cookies, settings)
    check_store(settings)
    check_views(settings)
    check_frontier(settings.limits.frontier, new=True)
    text = settings_file.check_length(toml.render(settings))
    make_directory(directory)
    write_address(Layout(directory).database, settings.limits.frontier)
    new = ExistingCrawl(False, text, "", cookies, recorded(settings, origins, {}))
    return PreparedCrawl(directory, settings, new)


def resume(directory: Path, request: CrawlRequest) -> ExitCode:
    """Continue the crawl in *directory*; what *request* gives overrides its crawl.toml."""
    return run_and_report(prepare_resume(directory, request), request)


def prepare_resume(directory: Path, request: CrawlRequest) -> PreparedCrawl:
    """Return the crawl in *directory* as `resume` continues it."""
    given = request.given.now().values
    finish_switch_over(directory)
    layout = Layout(directory)
    # The database was moved, the user trusts it, or a recrawl was interrupted before it wrote the address.
    if given.get("frontier") and (layout.address.exists() or lacks_frontier(layout, given["frontier"])):
        check_idle(directory)
        check_frontier(given["frontier"], new=False)
        write_address(layout.database, given["frontier"])
    return _continued(directory, request)


def join(address: str, name: str, request: CrawlRequest) -> ExitCode:
    """Crawl with the other machines of the crawl at *address*; *name*: of this machine, or "" for that of the host."""
    address = DATABASE.parse(address)
    check_frontier(address, new=False)
    if name and MACHINE.fullmatch(name) is None:
        raise ConfigError(f"--name {printable(name, 100)}: use at most {LONGEST_MACHINE} of A-Z a-z 0-9 . -")
    shared = settings_for_others(address)
    named = on_this_machine(settings_file.read_settings(request.given.config), {}) if request.given.config else {}
    given = {**named, **request.given.now().values, "frontier": address}
    settings = settings_to_join(shared, named, given)
    directory = request.output or default_directory(settings.seeds[0])
    layout = Layout(directory)
    if not (layout.address.exists() and address_of(layout.database) == address):  # we tried to join before
        check_free(directory)
    make_directory(directory)
    write_address(layout.database, address, name, shared.revision)
    vouch(layout, store_uses(settings))  # who names the database, names the store of its crawl
    settings_file.put_settings(layout, toml.render(settings))
    joined = replace(request, given=GivenSettings(given))
    return run_and_report(_continued(directory, joined), joined)


def _continued(directory: Path, request: CrawlRequest) -> PreparedCrawl:
    """Return the crawl in *directory*, which no switch-over keeps waiting."""
    now, layout = request.given.now(), Layout(directory)
    given = now.values
    check_resumable(directory)
    read = settings_file.settings_text(layout.settings)
    own = toml.parse(read, str(layout.settings))
    newest = newest_settings(layout, own)
    settings = with_values(Settings(), {**newest, **given})
    if settings.warc.recording:
        raise ConfigError(recorded_only(directory))
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: no seeds; add, for example, seeds = ["https://example.org/"]')
    check_seed_settings(settings, f"{layout.settings}: ")
    check_proxies(settings)
    check_network_choices(settings)
    check_named_files(directory, settings, given, trusted=request.trusted)
    settings = usable_in(directory, settings)
    check_store(settings, resumed=True)
    check_views(settings)
    check_same_frontier(layout, settings)
    check_runs_alone(layout, settings)
    text = toml.render(settings) if given or newest is not own else ""
    kept = recorded(settings, now.origins, settings_file.read_origins(layout)) if given else None
    existing = ExistingCrawl(layout.has_frontier(), text, read, load(request.cookies, settings), kept)
    return PreparedCrawl(directory, settings, existing)


def recrawl(directory: Path, request: CrawlRequest) -> ExitCode:
    """Crawl the site in *directory* again, with its settings and seeds for all that *request* does not set."""
    if request.output is not None and request.output.resolve() != directory.resolve():
        raise ConfigError(
            f"-o {request.output}: a crawl since {directory} is written to that directory, so that both replay "
            "together; leave out -o"
        )
    check_is_directory(directory)
    finish_switch_over(directory)
    check_resumable(directory)
    layout = Layout(directory)
    check_one_machine(layout)
    machine = machine_of(layout.database)
    read = settings_file.settings_text(layout.settings)
    before = toml.parse(read, str(layout.settings))
    if before.get("recording") and not (request.urls or request.lists):
        raise ConfigError(recorded_only(directory))
    kept = {} if before.get("recording") else before  # what a recording needs is not for a crawl
    given = request.given.whole()
    settings, origins = new_settings(request.urls, request.lists, Source(kept, {}), given)
    check_named_files(directory, settings, given.values, trusted=request.trusted)
    settings = usable_in(directory, settings)
    check_store(settings)
    check_views(settings)
    check_frontier(settings.limits.frontier, new=True)
    from archiver.crawl.recrawl import set_aside

    text = settings_file.check_length(toml.render(settings))
    cookies = load(request.cookies, settings)
    ending = with_values(Settings(), before)
    left = asyncio.run(set_aside(directory, ending, text, read, cookies))
    if left is not None and left.waiting and request.verbosity > SILENT:
        complain(
            f"the previous crawl ends with {count(left.waiting, 'URL')} still queued; its database is kept in "
            f"{layout.earlier / left.stamp}"
        )
    write_address(layout.database, settings.limits.frontier, machine)
    new = ExistingCrawl(resume=False, origins=recorded(settings, origins, settings_file.read_origins(layout)))
    return run_and_report(PreparedCrawl(directory, settings, new), request)


def run_and_report(prepared: PreparedCrawl, request: CrawlRequest) -> ExitCode:
    """Run *prepared* until it ends, write its reports, and print how it ended."""
    directory, settings, verbosity = prepared.directory, prepared.settings, request.verbosity
    if verbosity > 0:
        log_to_stderr(debug=verbosity > 1)
    if verbosity > QUIET:
        say(f"archiver: {'continuing' if prepared.existing.resume else 'archiving into'} {directory}")
    if verbosity > QUIET and (found := extractors(settings.hooks)):
        say(f"archiver: extractors of other programs (--plugins off leaves them out): {', '.join(map(str, found))}")
    if verbosity > SILENT and (warning := contact_warning(settings)):
        complain(warning)
    settings = within_open_files(settings)
    with served(directory, request.watch), reporting(directory, settings), ExitStack() as stack:
        stack.enter_context(metrics_served(directory, request.metrics, quiet=verbosity <= QUIET))
        code = run_crawl(
            opening(stack, directory, settings, prepared.existing),
            display_for(sys.stderr, QUIET if settings.events.fills_stderr else verbosity),
            settings.limits.drain_timeout,
            partial(finish, directory, settings, verbosity),
        )
    send_to_store(directory, settings, code)
    return code


def send_to_store(directory: Path, settings: Settings, code: ExitCode) -> None:
    """Send finished files of a run that ended with *code* to the store, if there is one."""
    if settings.warc.store:
        from archiver.cli.store import delete_stored, send, tell_stored
        from archiver.collection.store import Store

        if code is ExitCode.STOPPED:  # a person waits for the end; `resume` sends the rest too
            tell_stored(directory, Store(settings.warc.store).address)
        else:
            store = Store(settings.warc.store)
            if send(directory, store) and not settings.warc.keep_local:
                delete_stored(directory, store)


@asynccontextmanager
async def opening(
    stack: ExitStack, directory: Path, settings: Settings, existing: ExistingCrawl
) -> AsyncIterator[RunningCrawl]:
    """Open the crawl; its processes, if it has several, have started and end with *stack*."""
    async with _opened(stack, directory, settings, existing) as crawl:
        if existing.origins is not None:  # the directory is locked now
            settings_file.put_origins(Layout(directory), existing.origins)
        yield crawl


def _opened(
    stack: ExitStack, directory: Path, settings: Settings, existing: ExistingCrawl
) -> AbstractAsyncContextManager[RunningCrawl]:
    """Return what opens the crawl; its processes, if it has several, have started and end with *stack*."""
    from archiver.crawl.build import Opening, open_crawl, open_processes
    from archiver.crawl.processes import crawlers_of, may_be_joined, with_supervisor
    from archiver.crawl.rules import Provided

    how = Opening(existing.resume, existing.text, existing.read, may_be_joined(settings))
    named = NamedCrawl.in_directory(directory)

    def result(db: "Reader") -> Mapping[str, object]:
        from archiver.tools.report.report import ended_json

        return ended_json(db, named.quotas(db))

    by = Provided(existing.cookies, result)
    if with_supervisor(settings):
        processes = stack.enter_context(crawler_processes(crawlers_of(settings)))
        return open_processes(directory, settings, how, by, processes)
    return open_crawl(directory, settings, resume=how.resume, text=how.text, read=how.read, by=by)


def finish(directory: Path, settings: Settings, verbosity: int, outcome: RunResult) -> ExitCode:
    """Write the reports of a run that has ended, and print how it ended."""
    from archiver.frontier import totals
    from archiver.tools.report import files, report

    last, ended = outcome.last, outcome.ended
    if ended.code in (ExitCode.STORAGE, ExitCode.USAGE):
        complain(ended.reason)
    with totals.open_totals(directory) as db:
        named = NamedCrawl.in_directory(directory)
        run = report.FinishedRun(last.elapsed, last.visits, last.received, outcome.began)
        found = report.summary_of(named, db, ended.reason, run)
        found = files.write_reports(named, db, found, Layout(directory).reports, time.time())
        needs_login = totals.needs_login(db)
    try:
        if settings.warc.metadata_warc and ended.code is not ExitCode.STORAGE:
            _write_metadata_warc(directory, settings)
    finally:  # print how it ended even if the metadata WARC cannot be written
        if verbosity > SILENT:
            show(list(_closing_lines(directory, ended.code, last.visits, found, needs_login=needs_login)))
    strictly = settings.limits.strict and ended.code is ExitCode.DONE and found.verdict.trouble
    if strictly:
        return ExitCode.TROUBLE
    return ExitCode.FAULTS if ended.code is ExitCode.DONE and found.verdict.lost.names else ended.code


def _closing_lines(
    directory: Path, code: ExitCode, visits: int, found: "Summary", *, needs_login: bool
) -> Iterator[str]:
    """Yield the summary, where the report is, the verdict, and what to do next."""
    from archiver.tools.report import files, findings, report, verdict

    view = findings.FindingStyle(
        quote(printable(str(directory), LONGEST_ADDRESS)), width(), without=("waiting",), colours=colours(sys.stderr)
    )
    yield from report.summary_facts(found)
    page = (Layout(directory).reports / files.PAGE).absolute().as_uri()
    yield f"{'report':<9} {printable(page, LONGEST_ADDRESS)}"
    yield from findings.lines(found.verdict.findings, view)
    steps = [*NEXT_STEPS.get(code, ())]
    if code is ExitCode.DONE and not visits:
        steps.insert(0, CRAWL_AGAIN)
    if (left := report.work_left(found)) and not (code is ExitCode.DONE and found.verdict.paused):
        steps.insert(0, (verdict.resume_command(found.verdict.run), f"continue: {left}"))
    if needs_login:
        steps.insert(0, LOGIN)
    for number, (command, meaning) in enumerate(steps):
        yield findings.command(command, meaning, view, "next" if number == 0 else "")


def _write_metadata_warc(directory: Path, settings: Settings) -> None:
    """Store settings, log and reports in a WARC file."""
    from archiver.crawl.metadata_warc import stored

    try:
        asyncio.run(stored(directory, settings))
    except ConfigError as error:  # another process has resumed the crawl already
        complain(f"settings, log and reports will be stored at the end of the next run: {error}")


LOGIN = "archiver login DIR", "log in with a browser window before you continue"
CRAWL_AGAIN = "archiver recrawl DIR", "nothing was left to do; crawl the site again"
LOOK = (("archiver replay DIR", "view the archive in a browser"), ("archiver verify DIR", "check all files"))
NEXT_STEPS = {
    ExitCode.DONE: LOOK,
    ExitCode.STOPPED: LOOK,
    ExitCode.LIMIT: LOOK,
    ExitCode.STORAGE: (("archiver resume DIR", "continue when there is room"), *LOOK),
    ExitCode.NO_SEED: (("archiver status DIR", "see the result of each seed"),),
}
