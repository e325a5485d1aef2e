"""`archiver status`: the progress of a crawl, as text or JSON, even while it runs."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote

from archiver.cli.directory import check_is_directory, host_quotas
from archiver.cli.options import define_command, directory_argument, json_option
from archiver.cli.terminal import WIDTH, colours, result
from archiver.collection import lock
from archiver.collection.layout import Layout
from archiver.collection.lock import Holder
from archiver.frontier import totals
from archiver.frontier.totals import HostAccount
from archiver.humanize import duration, iso, printable
from archiver.model import ExitCode
from archiver.tools.report import verdict
from archiver.tools.report.report import Summary, read_summary, summary_json, summary_lines
from archiver.tools.report.verdict import FindingStyle

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

    @property
    def state(self) -> str:
        """running; or, where no process works in it, stopped or done."""
        if self.holder:
            return "running"
        return "stopped" if self.found.totals.waiting else "done"


def status(directory: Path, *, as_json: bool) -> ExitCode:
    """Print the progress of the crawl in *directory*."""
    from archiver.collection.earlier_crawls import rounds, stamp_of

    check_is_directory(directory)
    now = time.time()
    holder = lock.holder(directory)
    shown = HOSTS_IN_JSON if as_json else HOSTS_SHOWN
    with totals.open_totals(directory) as db:
        found = read_summary(db)
        standing = CrawlStatus(
            now,
            holder,
            found if holder else replace(found, ending=verdict.ending(found.verdict.run)),
            totals.recent_rate(db, now),
            tuple(totals.hosts(db, now, shown, quotas=host_quotas(directory))),
            tuple(map(stamp_of, rounds(Layout(directory)))),
        )
    result(_json(standing, directory) if as_json else "\n".join(_lines(standing, _view(directory, holder))))
    return ExitCode.DONE


def _view(directory: Path, holder: Holder | None) -> FindingStyle:
    """For a terminal where stdout is one; what waits is no finding while a process works on it."""
    columns = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    without = ("waiting",) if holder else ()
    return FindingStyle(quote(printable(str(directory), LONGEST)), columns, without, colours(sys.stdout))


def _lines(standing: CrawlStatus, view: FindingStyle) -> Iterator[str]:
    by = f" ({printable(str(standing.holder))})" if standing.holder else ""
    yield f"{'state':<9} {standing.state}{by}, {standing.rate:.1f}/s in the last minute"
    if standing.earlier:
        number, before = len(standing.earlier) + 1, standing.earlier[0]
        yield f"{'crawl':<9} number {number} of this collection; the one before began {before}"
    yield from summary_lines(standing.found, view)
    for number, host in enumerate(standing.hosts):
        label = "" if number else "hosts"
        counts = f"{host.waiting} waiting, {host.archived} archived"
        yield f"{label:<9} {printable(host.key)}: {counts}{_wait(host, standing)}"


def _wait(host: HostAccount, standing: CrawlStatus) -> str:
    pause = f" in {duration(host.until - standing.now)}" if host.why and host.until > standing.now else ""
    return "".join(f", {words}" for words in (f"{host.why}{pause}", host.slowed) if words)


def _json(standing: CrawlStatus, directory: Path) -> str:
    holder = standing.holder
    return json.dumps(
        {
            "directory": str(directory),
            "state": standing.state,
            "running": asdict(holder) if holder else None,
            "rate": round(standing.rate, 3),
            "earlier": standing.earlier,
            **summary_json(standing.found),
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
    [directory_argument(), json_option()],
    ("archiver status collections/example.org", "print it as text"),
    ("archiver status collections/example.org --json | jq .totals.waiting", "use it in a script"),
)
