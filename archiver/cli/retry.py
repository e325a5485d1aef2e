"""`archiver retry` and `forget`: queue URLs of a crawl again, whether it is stopped or running."""

import shutil
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from archiver import humanize
from archiver.cli.directory import named_crawl, resume_hint
from archiver.cli.explain import say_if_without_scheme
from archiver.cli.options import (
    complete_urls,
    crawl_argument,
    define_command,
    host_option,
    last_status_option,
    output_option,
)
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.named_crawl import NamedCrawl, check_changeable
from archiver.collection.named_urls import find_in_crawl, has_scheme
from archiver.collection.orders.retry import RetryRequest
from archiver.collection.orders.retry import retry as queue_again
from archiver.config.settings import Settings
from archiver.errors import ConfigError, Failure
from archiver.frontier import machines
from archiver.frontier.figures import MICRO
from archiver.humanize import iso, printable, volume
from archiver.model import ExitCode
from archiver.storage import replace_file, storage

if TYPE_CHECKING:
    from archiver.frontier.sqlite import SqliteFrontier

LONGEST = 10_000  # characters of an answer


def retry(place: Path | str, request: RetryRequest) -> ExitCode:
    """Queue the URLs of *request* again."""
    crawl = named_crawl(place)
    given = queue_again(crawl, request)
    if not request.held and not all(map(has_scheme, request.urls)):
        with crawl.read() as db:
            settings = crawl.settings(db)
            for text in request.urls:
                say_if_without_scheme(text, find_in_crawl(db, text, settings))
    result(f"{printable(given.order.answer, LONGEST)}{resume_hint(given.urls, crawl, running=given.running)}")
    return ExitCode.DONE


def forget(name: str, place: Path | str, *, output: Path | None, dry_run: bool, force: bool) -> ExitCode:
    """Write the machine *name* off: queue the URLs again whose only captures were in its lost files."""
    crawl = named_crawl(place)
    settings = check_changeable(crawl)
    with crawl.read() as db:
        known = {each.name: each for each in machines.accounts(db)} if crawl.address else {}
        if name not in known:
            names = f"; its machines are {', '.join(sorted(known))}" if known else "; it runs on one machine"
            raise ConfigError(f"{printable(name, 100)} is not a machine of this crawl{printable(names, 1000)}")
        if known[name].crawlers and not force:
            raise ConfigError(f"{name} is alive; stop it, or say --force if you know that it never comes back")
        written = machines.files_of(db, name)
        stored = _stored(settings, written)
        lost = [file.name for file in written if file.name not in stored]
        found = machines.losses(db, lost)
        if (path := _losses_path(crawl, output, dry_run=dry_run)) is not None:
            _write_losses(path, name, machines.lost_captures(db, lost), keep=output is None)
    for file in written:
        result(f"{'lost' if file.name in lost else 'stored'}  {volume(file.size):>9}  {file.name}")
    if dry_run:
        result(f"{_counted(found.urls)} would be queued again")
        return ExitCode.DONE

    async def write_off(frontier: "SqliteFrontier") -> int:
        await frontier.forget(name, lost)
        return found.urls + await frontier.queue_again_without_payload(_nothing)

    count = _change(crawl, write_off)
    result(f"{name} is written off; {_counted(count)} queued again{resume_hint(count, crawl, running=False)}")
    return ExitCode.DONE


def _losses_path(crawl: NamedCrawl, output: Path | None, *, dry_run: bool) -> Path | None:
    """Return the file for the list of what is lost; None if the user names none and there is no folder of reports."""
    from archiver.tools.report.files import WRITTEN_OFF

    if output is not None or crawl.layout is None or dry_run:
        return output
    with storage(crawl.layout.reports):
        crawl.layout.reports.mkdir(exist_ok=True)
    return crawl.layout.reports / f"{WRITTEN_OFF}.tsv"


def _write_losses(path: Path, machine: str, lost: Iterable[machines.LostCapture], *, keep: bool) -> None:
    """Write one line for each *lost* capture of *machine* to *path*; *keep*: after the lines that it has."""
    from archiver.tools.report.files import WRITTEN_OFF_COLUMNS

    count = 0

    def fill(file: BinaryIO) -> None:
        nonlocal count
        if keep and path.exists():
            with path.open("rb") as known:
                shutil.copyfileobj(known, file)
        else:
            file.write(_line(WRITTEN_OFF_COLUMNS))
        for each in lost:
            date = iso(each.timestamp / MICRO) or ""
            file.write(_line((each.url, each.lost, each.file, date, str(each.status), machine)))
            count += 1

    replace_file(path, fill)
    say(f"archiver: {humanize.count(count, 'lost capture')} listed in {path}")


def _line(cells: Sequence[str]) -> bytes:
    return ("\t".join(printable(cell, len(cell)) for cell in cells) + "\n").encode()


def _nothing(_digests: Collection[str]) -> Collection[str]:
    """Return the digests of payloads that earlier crawls hold: none, in a crawl with other machines."""
    return ()


def _counted(urls: int) -> str:
    return humanize.count(urls, "URL")


def _stored(settings: Settings, written: Sequence[machines.WrittenFile]) -> set[str]:
    """Return the names of those *written* files that the store of the crawl holds, by all of their bytes."""
    if not settings.warc.store:
        return set()
    from archiver.collection.store import Store, StoredFile

    store, found = Store(settings.warc.store), set()
    with ProgressLine() as meter:
        for number, file in enumerate(written):
            meter.show(f"checking the store: {number} of {len(written)} files")
            there = StoredFile(f"archive/{file.name}", file.size, file.digest, 0, store.address)
            if file.closed and file.digest and not store.fault(there, read=True):
                found.add(file.name)
    return found


def _change(crawl: NamedCrawl, change: Callable[["SqliteFrontier"], Coroutine[Any, Any, int]]) -> int:
    """Return the result of *change* on the database of *crawl*."""
    import asyncio

    from archiver.frontier.sqlite import SqliteFrontier

    async def opened() -> int:
        async with await SqliteFrontier.open(crawl.frontier) as frontier:
            return await change(frontier)

    return asyncio.run(opened())


def _run(place: Path | str, urls: tuple[str, ...], host: tuple[str, ...], **chosen: Any) -> int:
    return retry(place, RetryRequest(urls, host, **chosen))


COMMAND = define_command(
    "retry",
    _run,
    """Queue failed URLs again.

    Queues all URLs that failed or were excluded; with --status, --blocked or --truncated also archived ones with such
    an answer; or exactly the URLs given. If a robots.txt was the reason, it is requested again first. Retries start
    from zero. A running crawl starts on them within seconds; otherwise archiver resume does. Prints the number of URLs.

    With --held: queues URLs that were held as a suspected trap: all, or those of a PATTERN that archiver status shows.
    Each pattern gets another budget. The pages that link to the URLs are not fetched again.
    """,
    [
        crawl_argument(),
        click.Argument(["urls"], nargs=-1, metavar="[URL|PATTERN]...", shell_complete=complete_urls),
        click.Option(
            ["--held"], is_flag=True, help="Queue URLs held as a suspected trap: those of the PATTERNs given, or all."
        ),
        host_option(),
        last_status_option(),
        click.Option(
            ["--failure", "failures"],
            multiple=True,
            type=click.Choice([failure.value for failure in Failure]),
            help="Only URLs that failed in this way. Repeatable.",
        ),
        click.Option(["--blocked"], is_flag=True, help="Only URLs whose last answer was a challenge or block page."),
        click.Option(["--truncated"], is_flag=True, help="Only URLs with an incomplete or undecodable answer."),
    ],
    ("archiver retry collections/example.org", "all that failed or were excluded"),
    ("archiver retry collections/example.org --status 5xx,429", "URLs that the server was too busy to answer"),
    ("archiver retry collections/example.org --blocked", "URLs that the site refused to show"),
    ("archiver retry collections/example.org --host img.example.org --failure timeout", "one host that was down"),
    ("archiver retry collections/example.org https://example.org/a", "this URL, even if it is archived"),
    ("archiver retry collections/example.org --held", "all that was held as a suspected trap"),
    ("archiver retry collections/example.org --held 'https://example.org/item/N'", "held URLs of this pattern"),
)


FORGET = define_command(
    "forget",
    forget,
    """Write off a machine that does not come back.

    For a crawl that machines share in PostgreSQL. Keeps WARC files of the machine that are in the store; what was only
    on its disk is lost, and those URLs are queued again. Prints each file and the number of URLs, and lists each lost
    capture in DIR/reports/written-off.tsv.
    """,
    [
        click.Argument(["name"], metavar="NAME"),
        crawl_argument(),
        output_option("FILE", "Write the list of lost captures to FILE. Needed for a list with ADDRESS or --dry-run."),
        click.Option(["--dry-run"], is_flag=True, help="Print what would be lost, and change nothing."),
        click.Option(["--force"], is_flag=True, help="Write it off even if the database shows it as alive."),
    ],
    ("archiver forget worker-3 postgresql://crawl@db.example/crawl --dry-run", "see what only its disk held"),
    ("archiver forget worker-3 postgresql://crawl@db.example/crawl -o lost.tsv", "queue that again, and list it"),
)
