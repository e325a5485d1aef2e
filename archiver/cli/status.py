"""`archiver status`: the progress of a crawl, as text or JSON, even while it runs."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote

import click

from archiver.cli.directory import check_is_directory, named_crawl
from archiver.cli.options import crawl_argument, define_command, json_option
from archiver.cli.terminal import WIDTH, colours, complain, result
from archiver.collection.layout import Layout
from archiver.collection.live import ENDED, Live, Pulse, current_live, last_live, pulse
from archiver.collection.lock import Holder, holder
from archiver.collection.named_crawl import NamedCrawl, check_holds_crawl
from archiver.config.seeds import descriptions
from archiver.errors import ConfigError
from archiver.frontier import machines, totals
from archiver.frontier.connection import Reader
from archiver.frontier.machines import MachineAccount
from archiver.frontier.orders.table import Verb, latest_pause
from archiver.frontier.port import LEASE
from archiver.frontier.totals import HostAccount
from archiver.humanize import count, duration, iso, printable, volume
from archiver.model import ExitCode
from archiver.tools.report import verdict
from archiver.tools.report.findings import FindingStyle, command
from archiver.tools.report.report import Summary, summary_json, summary_lines, summary_of, work_left
from archiver.tools.report.seed_problems import seed_label

HOSTS_SHOWN = 15
HOSTS_IN_JSON = 1000
LONGEST = 4000  # characters of a path


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """A crawl at one moment, seen from outside."""

    now: float
    holder: Holder | None
    found: Summary
    rate: float  # captures a second, in the last minute
    hosts: tuple[HostAccount, ...]
    earlier: tuple[str, ...]  # when earlier crawls of the collection began, newest first
    machines: tuple[MachineAccount, ...] = ()  # that crawl together, or did
    paused: bool = False  # by archiver pause, or because the disk is low
    why_paused: str = ""
    store: tuple[str, int, int] | None = None  # its address, files in it, and finished files that it lacks
    recording: Live | None = None  # what a recording that goes on says of itself

    @property
    def state(self) -> str:
        """Say "running", "recording" or "paused"; or, where no process works in it, "stopped" or "done"."""
        if self.holder and self.recording is not None:
            return "recording"
        if self.holder:
            return "paused" if self.paused else "running"
        return "stopped" if work_left(self.found) else "done"


def status(place: Path | str, *, as_json: bool, check: bool) -> ExitCode:
    """Print the progress of the crawl at *place*; with *check* only whether it runs."""
    from archiver.collection.earlier_crawls import stamp_of
    from archiver.collection.layout import rounds

    now = time.time()
    if check:
        if as_json:
            raise ConfigError("--check prints one line for people; leave out --json, or read live.json")
        return _check(place, now)
    crawl = named_crawl(place)
    shown = HOSTS_IN_JSON if as_json else HOSTS_SHOWN
    with crawl.read() as db:
        works = crawl.holder(db)
        quotas = crawl.quotas(db)
        found = replace(_described(summary_of(crawl, db), crawl, db), recording=crawl.is_recording)
        standing = CrawlStatus(
            now,
            works,
            found if works else replace(found, ending=verdict.ending(found.verdict.run)),
            totals.recent_rate(db, now),
            tuple(totals.hosts(db, now, shown, quotas=quotas)),
            () if crawl.layout is None else tuple(map(stamp_of, rounds(crawl.layout))),
            tuple(machines.accounts(db)) if crawl.address else (),
            *_pause(db),
            _store(crawl.layout, others=not works),
            current_live(crawl.layout, now) if crawl.layout is not None and crawl.is_recording else None,
        )
    result(_json(standing, crawl) if as_json else "\n".join(_lines(standing, _view(crawl, works))))
    return ExitCode.DONE


def _described(found: Summary, crawl: NamedCrawl, db: Reader) -> Summary:
    """Return *found* with what the user says of its seeds."""
    if crawl.layout is not None and not crawl.layout.settings.exists():
        return found
    try:
        about = descriptions(crawl.settings(db).scope.seed)
    except ConfigError as error:
        complain(f"{error}; the titles and collections of seeds are not shown")
        return found
    titles = {address: label for address, one in about.items() if (label := seed_label(one))}
    return replace(found, about=about, verdict=replace(found.verdict, titles=titles))


def _check(place: Path | str, now: float) -> ExitCode:
    """Print whether a process of this machine crawls in the directory *place*; the exit code says it too.

    Only the lock and live.json are read: the database may be away, which is no fault of the process.
    """
    if isinstance(place, str):
        raise ConfigError("--check needs the directory of a crawl on this machine, not the address of a database")
    check_is_directory(place)
    layout = Layout(place)
    since = layout.lock.stat().st_mtime if layout.lock.exists() else now
    works, live = holder(place), last_live(layout)
    if works is None and sys.platform == "win32" and live is not None and live.is_current(now):
        works = Holder(live.pid)  # which lock is held cannot be seen there
    if works is None:
        check_holds_crawl(NamedCrawl.in_directory(place))
        result(f"not running: {_last_run(live, now)}")
        return ExitCode.STOPPED
    how, who = pulse(live, works.pid, since, now), printable(str(works))
    if live is None or how is Pulse.BUSY:
        result(f"busy: {who} starts, ends or repairs")
    elif how is Pulse.RUNS:
        result(f"running: {who}, {live.state}")
    else:
        result(f"hangs: {who} has reported nothing for {duration(live.silence(now))}")
    return ExitCode.FAULTS if how is Pulse.HANGS else ExitCode.DONE


def _last_run(live: Live | None, now: float) -> str:
    if live is None:
        return "no process works in it"
    ago = f"{duration(now - live.written)} ago"
    return f"it ended {ago}" if live.state == ENDED else f"it was killed {ago}; archiver resume continues it"


def _pause(db: Reader) -> tuple[bool, str]:
    """Return whether the crawl is paused, and why, if it paused itself."""
    latest = latest_pause(db)
    paused = latest is not None and latest.verb == Verb.PAUSE
    return paused, " ".join(latest.arguments) if latest is not None and paused else ""


def _store(layout: Layout | None, *, others: bool) -> tuple[str, int, int] | None:
    """Return what the store of *layout* has and lacks; *others*: index and log too, which change during a crawl."""
    from archiver.cli.store import store_of
    from archiver.collection.store import StoredFiles, unsent

    try:
        address = store_of(layout).rstrip("/") if layout else ""
        if layout is None or not address:
            return None
        return address, len(StoredFiles(layout).read(address)), len(unsent(layout, address, others=others))
    except (ConfigError, FileNotFoundError):  # its settings cannot be read, or a file was packed just now
        return None


def _view(crawl: NamedCrawl, holder: Holder | None) -> FindingStyle:
    """For a terminal where stdout is one; what waits is no finding while a process works on it."""
    columns = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    without = ("waiting",) if holder else ()
    name = quote(printable(crawl.name, LONGEST))
    shown = FindingStyle(name, columns, without, colours(sys.stdout), is_address=crawl.layout is None)
    return replace(shown, past=crawl.is_recording)


def _lines(standing: CrawlStatus, view: FindingStyle) -> Iterator[str]:
    by = f" ({printable(str(standing.holder))})" if standing.holder else ""
    yield f"{'state':<9} {standing.state}{by}, {standing.rate:.1f}/s in the last minute"
    if standing.paused:
        why = f" ({printable(standing.why_paused, LONGEST)})" if standing.why_paused else ""
        yield f"{'paused':<9} no request starts until archiver go{why}"
    if standing.holder and (live := standing.recording) is not None:
        words = f"{count(live.visits, 'exchange')} of {volume(live.received)} in {duration(live.elapsed)}"
        yield f"{'this run':<9} {words}, {count(live.active, 'request')} under way"
    if standing.earlier:
        number, before = len(standing.earlier) + 1, standing.earlier[0]
        yield f"{'crawl':<9} number {number} of this collection; the one before began {before}"
    for number, machine in enumerate(standing.machines):
        yield f"{'' if number else 'machines':<9} {_machine(machine)}"
    yield from summary_lines(standing.found, view)
    if standing.store:
        address, stored, left = standing.store
        yield f"{'stored':<9} {count(stored, 'file')} in {printable(address, LONGEST)}, {left} not sent yet"
        if left and not standing.holder:
            yield command("archiver store send DIR", "send the rest", view, "")
    for number, host in enumerate(standing.hosts):
        label = "" if number else "hosts"
        waiting = "" if view.past else f"{host.waiting} waiting, "
        counts = f"{waiting}{host.archived} archived"
        yield f"{label:<9} {printable(host.key)}: {counts}{_wait(host, standing)}"


def _machine(one: MachineAccount) -> str:
    words = f"no crawler, last seen {duration(one.silent)} ago"
    if one.crawlers:
        leased = sum(each.groups for each in one.crawlers)
        words = f"{count(len(one.crawlers), 'crawler')}, {count(leased, 'host')} leased"
        if (silent := max(each.silent for each in one.crawlers)) > LEASE / 2:  # it renews them more often
            words += f", no word for {duration(silent)}"
    return f"{printable(one.name)}: {words}, {count(one.warcs, 'WARC file')} of {volume(one.stored)}"


def _wait(host: HostAccount, standing: CrawlStatus) -> str:
    pause = f" in {duration(host.until - standing.now)}" if host.why and host.until > standing.now else ""
    return "".join(f", {words}" for words in (f"{host.why}{pause}", host.slowed) if words)


def _this_run(standing: CrawlStatus) -> dict[str, int] | None:
    """Return what a recording that goes on has brought; None if there is none."""
    if standing.holder is None or (live := standing.recording) is None:
        return None
    return {"exchanges": live.visits, "received": live.received, "active": live.active}


def _json(standing: CrawlStatus, crawl: NamedCrawl) -> str:
    holder = standing.holder
    return json.dumps(
        {
            "directory": None if crawl.layout is None else str(crawl.layout.directory),
            "frontier": crawl.address,
            "state": standing.state,
            "paused": standing.paused,
            "why_paused": standing.why_paused,
            "running": asdict(holder) if holder else None,
            "rate": round(standing.rate, 3),
            "this_run": _this_run(standing),
            "earlier": standing.earlier,
            **summary_json(standing.found),
            "store": dict(zip(("address", "stored", "unsent"), standing.store, strict=True))
            if standing.store
            else None,
            "machines": [asdict(machine) for machine in standing.machines],
            "hosts": [{**asdict(host), "until": iso(host.until)} for host in standing.hosts],
        },
        indent=2,
    )


COMMAND = define_command(
    "status",
    status,
    """Show the progress of a crawl.

    Prints counts, the rate, the result of each seed, and what each host waits for. Works while the crawl runs.
    """,
    [
        crawl_argument(),
        json_option(),
        click.Option(
            ["--check"],
            is_flag=True,
            help="Only say whether a process of this machine runs the crawl in DIR. Exits with 0 if it runs, 4 if it "
            "does not, 7 if it hangs: it has reported nothing for a minute.",
        ),
    ],
    ("archiver status collections/example.org", "print it as text"),
    ("archiver status postgresql://me@db.example/mycrawl", "from any machine, of a crawl with --frontier"),
    ("archiver status collections/example.org --json | jq .totals.waiting", "use it in a script"),
    ("archiver status collections/example.org --check || echo look at it", "notice that it has ended, or hangs"),
)
