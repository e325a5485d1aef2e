"""`archiver crawl` and `archiver resume`: from what was typed to a crawl that runs, and its report when it has ended.

Everything is checked before anything is written.

`archiver recrawl`, and `archiver crawl --since`: a site visited anew, into the collection that has it already.

Everything is checked before the crawl before is set aside; how that is done stands in `succession`.

A crawl of other people's sites should say whom they can turn to: one line for who forgot.
"""

import asyncio
import logging
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
from archiver.cli import directory as place
from archiver.cli import runner
from archiver.cli.progress import face_for
from archiver.cli.runner import RunResult, run_crawl
from archiver.cli.seeds import gathered, together
from archiver.cli.terminal import colours, complain, say, show, width
from archiver.collection.dedup_sources import indexes_of
from archiver.collection.disk_space import DiskSpace
from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.seeds import unknown
from archiver.config.settings import Settings, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.humanize import printable
from archiver.model import ExitCode
from archiver.tools.report import files, summary, verdict
from archiver.tools.report.summary import FinishedRun, Summary
from archiver.tools.report.verdict import FindingStyle

_OWN = ("localhost", "local", "lan", "internal", "home.arpa", "test", "invalid", "example")  # RFC 6761, 6762, 8375


def warning(settings: Settings) -> str:
    """What to tell a person whose crawl leaves their own machines and networks without a contact; "" otherwise."""
    fetch = settings.fetch
    given = " ".join((fetch.user_agent, *fetch.header))
    if fetch.contact or "@" in given or "://" in given:
        return ""
    away = next((url.host(seed) for seed in settings.seeds if not _is_near(url.host(seed))), None)
    if away is None:
        return ""
    return (
        f"the owner of {away} cannot tell who crawls it: give --contact, a URL or mail address by which you can be "
        "reached (--contact you@example.org)"
    )


def _is_near(host: str) -> bool:
    """Whether *host* is on this machine or a network of its own."""
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        labels = host.rstrip(".")
        return "." not in labels or labels.endswith(tuple(f".{name}" for name in _OWN))


QUIET = -1  # the end only
SILENT = -2  # errors only


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """What was typed after `archiver crawl`."""

    urls: tuple[str, ...]
    lists: tuple[str, ...]  # files of seeds
    output: Path | None
    config: Path | None
    given: dict[str, Any]  # settings
    verbosity: int


@dataclass(frozen=True, slots=True)
class ExistingCrawl:
    """What is there of a crawl, and what is to become of its crawl.toml."""

    resume: bool  # there is a database to go on with
    text: str = ""  # crawl.toml is to hold this; "": what it holds
    read: str = ""  # what it held when the settings were made of it; "": it was not read


def crawl(wish: CrawlRequest) -> ExitCode:
    """Begin a crawl."""
    settings = wished(wish, {})
    directory = wish.output or place.default_for(settings.seeds[0])
    settings = with_places(settings, directory)
    place.check_free(directory)
    check_room(directory, settings)
    place.make_directory(directory)
    return carried_out(directory, settings, wish.verbosity, ExistingCrawl(resume=False, text=toml.render(settings)))


def wished(wish: CrawlRequest, before: dict[str, Any]) -> Settings:
    """The settings of a new crawl as *wish* has them, and what stood *before* where it says nothing."""
    values = {**before, **(place.read_settings(wish.config) if wish.config else {}), **wish.given}
    given = gathered(wish.urls, wish.lists, values.get("seeds", ()))
    others = set(values.get("seeds", ())) - set(given.urls)  # of the file; they are not to be crawled
    own = together((one for one in values.get("seed_setting", ()) if one.url not in others), given.own)
    settings = with_values(Settings(), {**values, "seeds": given.urls, "seed_setting": own})
    _check_own(settings, "")
    return settings


def resume(directory: Path, given: dict[str, Any], verbosity: int) -> ExitCode:
    """Go on with a crawl."""
    place.finish_turn(directory)
    place.check_begun(directory)
    layout = Layout(directory)
    read = place.settings_text(layout.settings)
    settings = with_values(Settings(), {**toml.parse(read, str(layout.settings)), **given})
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: seeds: there is none; right would be seeds = ["https://example.org/"]')
    _check_own(settings, f"{layout.settings}: ")
    place.check_named_here(directory, settings, given)
    settings = with_places(settings, directory)
    check_room(directory, settings)
    written = toml.render(settings) if given else ""
    return carried_out(
        directory, settings, verbosity, ExistingCrawl(resume=layout.database.exists(), text=written, read=read)
    )


def _check_own(settings: Settings, where: str) -> None:
    """Refuse settings for a seed that there is not: they would hold for nothing, and nobody would be told."""
    if wrong := unknown(settings.seeds, settings.scope.seed_setting):
        raise ConfigError(where + wrong)


def with_places(settings: Settings, directory: Path) -> Settings:
    """*settings* with the other archives by their whole paths, each of which can be used."""
    others = tuple(str(Path(path).absolute()) for path in settings.dedup.dedup_from)
    if settings.dedup.dedup == "on":
        indexes_of(others, directory)
    return with_values(settings, {"dedup_from": others})


def check_room(directory: Path, settings: Settings) -> None:
    """Refuse to begin what would stop at once."""
    shortage = DiskSpace(Layout(directory), settings.limits.min_free_disk).shortage()
    if shortage:
        raise ArchiveError(shortage)


def carried_out(directory: Path, settings: Settings, verbosity: int, begun: ExistingCrawl) -> ExitCode:
    """Run the crawl in *directory* until it ends, and tell how it did."""
    from archiver.crawl.build import open_crawl  # noqa: PLC0415 - the network and the database; bad input is refused without

    if verbosity > 0:
        logging.basicConfig(level=logging.INFO if verbosity == 1 else logging.DEBUG, format="%(name)s: %(message)s")
    if verbosity > QUIET:
        say(f"archiver: {'going on with' if begun.resume else 'archiving into'} {directory}")
    if verbosity > SILENT and (advice := warning(settings)):
        complain(advice)
    settings = _within_open_files(settings)
    return run_crawl(
        open_crawl(directory, settings, resume=begun.resume, text=begun.text, read=begun.read),
        face_for(sys.stderr, verbosity),
        settings.limits.drain_timeout,
        partial(_told, directory, settings, verbosity),
    )


def _within_open_files(settings: Settings) -> Settings:
    """*settings* with a concurrency for which this process may hold enough files and sockets open."""
    limit = runner.raised(settings.limits.concurrency)
    fits = runner.fitting(limit, settings.limits.concurrency)
    if fits == settings.limits.concurrency:
        return settings
    complain(
        f"{limit} open files are allowed (ulimit -n), so --concurrency is {fits} in this run, "
        f"not {settings.limits.concurrency}; that needs {runner.needed(settings.limits.concurrency)}"
    )
    return with_values(settings, {"concurrency": fits})


def _told(directory: Path, settings: Settings, verbosity: int, outcome: RunResult) -> ExitCode:
    """Write the reports of a run that has ended, and say how it did."""
    last, ended = outcome.last, outcome.ended
    if ended.code is ExitCode.STORAGE:
        complain(ended.reason)
    with totals.open_totals(directory) as db:
        found = summary.gathered(db, ended.reason, FinishedRun(last.elapsed, last.visits, last.received))
        found = files.write_reports(directory, db, found, time.time())
    try:
        if settings.warc.metadata_warc and ended.code is not ExitCode.STORAGE:
            _store_papers(directory, settings)
    finally:  # where they cannot be stored, that is said too
        if verbosity > SILENT:
            show(list(_last_words(directory, ended.code, last.visits, found)))
    strictly = settings.limits.strict and ended.code is ExitCode.DONE and found.verdict.trouble
    return ExitCode.TROUBLE if strictly else ended.code


def _last_words(directory: Path, code: ExitCode, visits: int, found: Summary) -> Iterator[str]:
    """The summary, where the report lies, the verdict, and what to do next."""
    view = FindingStyle(
        quote(printable(str(directory), _LONGEST)), width(), without=("waiting",), colours=colours(sys.stderr)
    )
    yield from summary.facts(found)
    page = (Layout(directory).reports / files.PAGE).absolute().as_uri()
    yield f"{'report':<9} {printable(page, _LONGEST)}"
    yield from verdict.lines(found.verdict, view)
    steps = [*_STEPS.get(code, ())]
    if code is ExitCode.DONE and not visits:
        steps.insert(0, _AGAIN)
    if found.totals.waiting and not (code is ExitCode.DONE and found.verdict.paused):
        steps.insert(0, (verdict.go_on(found.verdict.run), f"go on: {found.totals.waiting} URLs wait"))
    for number, (command, meaning) in enumerate(steps):
        yield verdict.command(command, meaning, view, "next" if number == 0 else "")


def _store_papers(directory: Path, settings: Settings) -> None:
    """Settings, log and reports go into the archive, too."""
    from archiver.crawl.metadata_warc import stored  # noqa: PLC0415 - as for `opened`

    try:
        asyncio.run(stored(directory, settings))
    except ConfigError as error:  # somebody goes on with the crawl already
        complain(f"settings, log and reports are stored at the end of the next run: {error}")


_LONGEST = 4000  # characters of the address of a page
_AGAIN = "archiver recrawl DIR", "nothing was left to do; crawl the site again"
_LOOK = (("archiver replay DIR", "look at it"), ("archiver verify DIR", "read everything back"))
_STEPS = {
    ExitCode.DONE: _LOOK,
    ExitCode.STOPPED: _LOOK,
    ExitCode.LIMIT: _LOOK,
    ExitCode.STORAGE: (("archiver resume DIR", "go on when there is room"), *_LOOK),
    ExitCode.NO_SEED: (("archiver status DIR", "what became of each seed"),),
}


def recrawl(directory: Path, wish: CrawlRequest) -> ExitCode:
    """Crawl again what is archived in *directory*; its settings and seeds hold where *wish* says nothing."""
    if wish.output is not None and wish.output.resolve() != directory.resolve():
        raise ConfigError(
            f"-o {wish.output}: a crawl since {directory} goes into that directory, so that both replay together; "
            "leave -o out"
        )
    place.check_is_directory(directory)
    place.finish_turn(directory)
    place.check_begun(directory)
    layout = Layout(directory)
    read = place.settings_text(layout.settings)
    before = toml.parse(read, str(layout.settings))
    settings = wished(wish, before)
    place.check_named_here(directory, settings, wish.given)
    settings = with_places(settings, directory)
    check_room(directory, settings)
    from archiver.crawl.switch_over import set_aside  # noqa: PLC0415 - the network and the database, as in `crawling`

    left = asyncio.run(set_aside(directory, with_values(Settings(), before), toml.render(settings), read))
    if left is not None and left.waiting and wish.verbosity > SILENT:
        complain(
            f"{left.waiting} URLs still waited in the crawl before, which is not gone on with; "
            f"it is kept in {layout.earlier / left.stamp}"
        )
    return carried_out(directory, settings, wish.verbosity, ExistingCrawl(resume=False))
