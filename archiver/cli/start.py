"""Start, continue or repeat a crawl: check the settings, run the crawl, report on it.

Everything is checked before anything is written. `archiver.crawl.recrawl` says how the previous crawl is set aside.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from typing import Any

from archiver import url
from archiver.cli import runner
from archiver.cli.cookies import load
from archiver.cli.directory import (
    check_free,
    check_frontier,
    check_idle,
    check_is_directory,
    check_named_files,
    check_resumable,
    check_same_frontier,
    default_directory,
    finish_switch_over,
    make_directory,
    read_settings,
    settings_text,
    with_tls_paths,
)
from archiver.cli.options import combine_seed_settings, read_seeds
from archiver.cli.progress import display_for
from archiver.cli.runner import RunResult, run_crawl
from archiver.cli.terminal import colours, complain, log_to_stderr, say, show, width
from archiver.collection.dedup_sources import indexes_of
from archiver.collection.disk_space import DiskSpace
from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.addresses import LOCAL_KEYS
from archiver.config.fetch_settings import NetworkSettings, TlsSettings
from archiver.config.seeds import conflict
from archiver.config.settings import Settings, SettingsByHost, all_values_of, replaced_values, with_values
from archiver.config.tls import TLS_KEYS
from archiver.crawl.secrets import read_secrets
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.frontier.address import write_address
from archiver.humanize import printable
from archiver.model import Cookie, ExitCode
from archiver.tools.report import files, verdict
from archiver.tools.report.report import FinishedRun, Summary, read_summary, summary_facts
from archiver.tools.report.verdict import FindingStyle

QUIET = -1  # print the end of the run only
SILENT = -2  # print errors only
LOCAL_DOMAINS = (
    "localhost",
    "local",
    "lan",
    "internal",
    "home.arpa",
    "test",
    "invalid",
    "example",
)  # RFC 6761, 6762, 8375
LONGEST_ADDRESS = 4000  # characters of a path or a file: URL that is printed


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """The arguments of `archiver crawl`."""

    urls: tuple[str, ...]
    lists: tuple[str, ...]  # files of seeds
    output: Path | None
    config: Path | None
    given: dict[str, Any]  # settings
    verbosity: int
    cookies: tuple[str, ...] = ()  # files
    trusted: bool = False  # follow all of a crawl.toml that is there already


@dataclass(frozen=True, slots=True)
class ExistingCrawl:
    """The crawl that is already in the directory, and the new text of its crawl.toml."""

    resume: bool  # there is a database to continue with
    text: str = ""  # the new crawl.toml; "": leave it as it is
    read: str = ""  # crawl.toml when the settings were read from it; "": it was not read
    cookies: tuple[Cookie, ...] = ()  # the user's own


def crawl(request: CrawlRequest) -> ExitCode:
    """Start a crawl."""
    settings = new_settings(request, {})
    directory = request.output or default_directory(settings.seeds[0])
    settings = with_absolute_paths(settings, directory)
    check_secrets(settings)  # nothing happens if one is missing
    check_free(directory)
    check_disk_space(directory, settings)
    cookies = load(request.cookies, settings)
    check_store(settings)
    check_frontier(settings.limits.frontier, new=True)
    make_directory(directory)
    write_address(Layout(directory).database, settings.limits.frontier)
    new = ExistingCrawl(resume=False, text=toml.render(settings), cookies=cookies)
    return run_and_report(directory, settings, request.verbosity, new)


def resume(directory: Path, request: CrawlRequest) -> ExitCode:
    """Continue the crawl in *directory*; what *request* gives overrides its crawl.toml."""
    given = request.given
    finish_switch_over(directory)
    layout = Layout(directory)
    if layout.address.exists() and given.get("frontier"):  # the database was moved, or the user trusts it
        check_idle(directory)
        check_frontier(given["frontier"], new=False)
        write_address(layout.database, given["frontier"])
    check_resumable(directory)
    read = settings_text(layout.settings)
    settings = with_values(Settings(), {**toml.parse(read, str(layout.settings)), **given})
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: no seeds; add, for example, seeds = ["https://example.org/"]')
    check_seed_settings(settings, f"{layout.settings}: ")
    check_proxies(settings)
    check_network_choices(settings)
    check_named_files(directory, settings, given, trusted=request.trusted)
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    check_secrets(settings)  # nothing happens if one is missing
    check_store(settings, resumed=True)
    check_same_frontier(layout, settings)
    text = toml.render(settings) if given else ""
    loaded = load(request.cookies, settings)
    existing = ExistingCrawl(resume=layout.has_frontier(), text=text, read=read, cookies=loaded)
    return run_and_report(directory, settings, request.verbosity, existing)


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
    if layout.address.exists():
        raise ConfigError(f"{layout.address}: a crawl in PostgreSQL cannot be followed here; give a new directory")
    read = settings_text(layout.settings)
    before = toml.parse(read, str(layout.settings))
    settings = new_settings(request, before)
    named = {**(read_settings(request.config) if request.config else {}), **request.given}
    check_named_files(directory, settings, named, trusted=request.trusted)
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    check_secrets(settings)  # nothing happens if one is missing
    check_store(settings)
    from archiver.crawl.recrawl import set_aside

    cookies = load(request.cookies, settings)
    ending = with_values(Settings(), before)
    left = asyncio.run(set_aside(directory, ending, toml.render(settings), read, cookies))
    if left is not None and left.waiting and request.verbosity > SILENT:
        complain(
            f"the previous crawl ends with {left.waiting} URLs still queued; its database is kept in "
            f"{layout.earlier / left.stamp}"
        )
    return run_and_report(directory, settings, request.verbosity, ExistingCrawl(resume=False))


def new_settings(request: CrawlRequest, before: dict[str, Any]) -> Settings:
    """Return the settings of a new crawl: those of *request*, and those of *before* for all that it does not set."""
    values = {**before, **(read_settings(request.config) if request.config else {}), **request.given}
    given = read_seeds(request.urls, request.lists, values.get("seeds", ()))
    dropped = set(values.get("seeds", ())) - set(given.urls)  # seeds of the file; they are not crawled
    kept = (one for one in values.get("seed", ()) if one.url not in dropped)
    own = combine_seed_settings(kept, given.own)
    settings = with_values(Settings(), {**values, "seeds": given.urls, "seed": own})
    check_seed_settings(settings, "")
    check_proxies(settings)
    check_network_choices(settings)
    return settings


def check_seed_settings(settings: Settings, where: str) -> None:
    """Refuse seeds of one host with different settings for it: only those of one would have an effect."""
    if wrong := conflict(settings.scope.seed):
        raise ConfigError(where + wrong)


def check_proxies(settings: Settings) -> None:
    """Refuse proxies that cannot be used together, and environment variables that are no proxies."""
    if all_values_of(settings, "proxy"):
        from archiver.fetch.proxy import ProxyRoutes

        ProxyRoutes(SettingsByHost(settings))


def check_network_choices(settings: Settings) -> None:
    """Refuse addresses from which no connection can leave, and addresses of hosts that a proxy would look up."""
    if settings.network != NetworkSettings() or any(key in LOCAL_KEYS for _, key, _ in replaced_values(settings)):
        from archiver.fetch.network import check_network

        check_network(settings)


def check_secrets(settings: Settings) -> None:
    """Refuse secrets, client certificates and certificate authorities that cannot be read."""
    secrets = read_secrets(settings)
    if settings.tls != TlsSettings() or any(key in TLS_KEYS for _, key, _ in replaced_values(settings)):
        from archiver.fetch.tls import check_tls

        check_tls(secrets.filled(settings))


def with_absolute_paths(settings: Settings, directory: Path) -> Settings:
    """Return *settings* with absolute paths. Raises `ConfigError` if another archive cannot be used."""
    others = tuple(str(Path(path).absolute()) for path in settings.dedup.dedup_from)
    if settings.dedup.dedup == "on":
        indexes_of(others, directory)
    return with_tls_paths(with_values(settings, {"dedup_from": others}))


def check_disk_space(directory: Path, settings: Settings) -> None:
    """Refuse to start a crawl that would stop at once because the disk is full."""
    shortage = DiskSpace(Layout(directory), settings.limits.min_free_disk).shortage()
    if shortage:
        raise ArchiveError(shortage)


def run_and_report(directory: Path, settings: Settings, verbosity: int, existing: ExistingCrawl) -> ExitCode:
    """Run the crawl in *directory* until it ends, write its reports, and print how it ended."""
    from archiver.crawl.build import open_crawl, open_processes
    from archiver.crawl.processes import crawlers_of

    if verbosity > 0:
        log_to_stderr(debug=verbosity > 1)
    if verbosity > QUIET:
        say(f"archiver: {'continuing' if existing.resume else 'archiving into'} {directory}")
    if verbosity > SILENT and (warning := contact_warning(settings)):
        complain(warning)
    settings = _within_open_files(settings)
    opening = open_crawl if crawlers_of(settings) == 1 else open_processes
    code = run_crawl(
        opening(
            directory,
            settings,
            resume=existing.resume,
            text=existing.text,
            read=existing.read,
            cookies=existing.cookies,
        ),
        display_for(sys.stderr, verbosity),
        settings.limits.drain_timeout,
        partial(_finish, directory, settings, verbosity),
    )
    if settings.warc.store and code is not ExitCode.STOPPED:
        from archiver.cli.store import send
        from archiver.collection.store import Store

        send(directory, Store(settings.warc.store))
    return code


def check_store(settings: Settings, *, resumed: bool = False) -> None:
    """Refuse a store that cannot be written to; a crawl that is *resumed* goes on without it."""
    if not settings.warc.store:
        return
    from archiver.collection.store import Store

    store = Store(settings.warc.store)
    try:
        store.check()
    except ConfigError as error:
        if not resumed:
            raise
        complain(f"{error}; the crawl goes on, and files are sent later")


def contact_warning(settings: Settings) -> str:
    """Return a warning if a public site is crawled without a contact; "" otherwise."""
    fetch = settings.fetch
    given = " ".join((fetch.user_agent, *fetch.header))
    if fetch.contact or "@" in given or "://" in given:
        return ""
    public = next((url.host(seed) for seed in settings.seeds if not _is_local(url.host(seed))), None)
    if public is None:
        return ""
    return (
        f"the owner of {public} cannot tell who is crawling; give a URL or mail address where they can reach you: "
        "--contact you@example.org"
    )


def _is_local(host: str) -> bool:
    """Return whether *host* is this machine or in a private network."""
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        labels = host.rstrip(".")
        return "." not in labels or labels.endswith(tuple(f".{name}" for name in LOCAL_DOMAINS))


def _within_open_files(settings: Settings) -> Settings:
    """Return *settings* with no more concurrency than this process may have open files and sockets for."""
    limit = runner.raise_open_files_limit(settings.limits.concurrency)
    fits = runner.fitting_concurrency(limit, settings.limits.concurrency)
    if fits == settings.limits.concurrency:
        return settings
    complain(
        f"only {limit} open files are allowed (ulimit -n), so this run uses --concurrency {fits} instead of "
        f"{settings.limits.concurrency}, which needs {runner.open_files_needed(settings.limits.concurrency)}"
    )
    return with_values(settings, {"concurrency": fits})


def _finish(directory: Path, settings: Settings, verbosity: int, outcome: RunResult) -> ExitCode:
    """Write the reports of a run that has ended, and print how it ended."""
    last, ended = outcome.last, outcome.ended
    if ended.code in (ExitCode.STORAGE, ExitCode.USAGE):
        complain(ended.reason)
    with totals.open_totals(directory) as db:
        found = read_summary(db, ended.reason, FinishedRun(last.elapsed, last.visits, last.received))
        found = files.write_reports(directory, db, found, time.time())
        needs_login = totals.needs_login(db)
    try:
        if settings.warc.metadata_warc and ended.code is not ExitCode.STORAGE:
            _write_metadata_warc(directory, settings)
    finally:  # print how it ended even if the metadata WARC cannot be written
        if verbosity > SILENT:
            show(list(_closing_lines(directory, ended.code, last.visits, found, needs_login=needs_login)))
    strictly = settings.limits.strict and ended.code is ExitCode.DONE and found.verdict.trouble
    return ExitCode.TROUBLE if strictly else ended.code


def _closing_lines(directory: Path, code: ExitCode, visits: int, found: Summary, *, needs_login: bool) -> Iterator[str]:
    """Yield the summary, where the report is, the verdict, and what to do next."""
    view = FindingStyle(
        quote(printable(str(directory), LONGEST_ADDRESS)), width(), without=("waiting",), colours=colours(sys.stderr)
    )
    yield from summary_facts(found)
    page = (Layout(directory).reports / files.PAGE).absolute().as_uri()
    yield f"{'report':<9} {printable(page, LONGEST_ADDRESS)}"
    yield from verdict.lines(found.verdict, view)
    steps = [*NEXT_STEPS.get(code, ())]
    if code is ExitCode.DONE and not visits:
        steps.insert(0, CRAWL_AGAIN)
    if found.totals.waiting and not (code is ExitCode.DONE and found.verdict.paused):
        steps.insert(
            0, (verdict.resume_command(found.verdict.run), f"continue: {found.totals.waiting} URLs are queued")
        )
    if needs_login:
        steps.insert(0, LOGIN)
    for number, (command, meaning) in enumerate(steps):
        yield verdict.command(command, meaning, view, "next" if number == 0 else "")


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
