"""`archiver prune`: delete the WARC files of earlier crawls that nothing refers to any more."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import click

from archiver.cli.directory import check_has_archive, check_idle, check_is_directory
from archiver.cli.options import define_command, directory_argument
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection import safe_paths
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.named_crawl import CollectedCrawl, collected_crawls, crawls_since
from archiver.errors import ConfigError
from archiver.humanize import count, iso, printable, volume
from archiver.model import ExitCode

MAX_NAME = 200  # characters of the name of a file


@dataclass(frozen=True, slots=True)
class Retention:
    """The crawls that a person wants to keep; the newest one always stays."""

    last: int | None = None  # so many
    since: str | None = None  # those that began then or later

    def old(self, known: Sequence[CollectedCrawl]) -> list[CollectedCrawl]:
        """Return those of *known*, oldest first, that are not kept."""
        if self.last is not None:
            return list(known[: -self.last])
        kept = {each.number for each in crawls_since(known, self.since or "", "--keep-since")}
        return [each for each in known[:-1] if each.number not in kept]


def prune(directory: Path, *, keep_last: int | None, keep_since: str | None, dry_run: bool) -> ExitCode:
    """Delete the WARC files of earlier crawls in *directory* that nothing refers to."""
    from archiver.tools.retention.delete import carry_out, finish
    from archiver.tools.retention.plan import check_prunable, plan_for

    check_is_directory(directory, pruning=True)
    check_has_archive(directory)
    layout = Layout(directory)
    begun = layout.pruning.exists()
    if (keep_last is None) == (keep_since is None) and not (begun and keep_last is None):
        raise ConfigError("say what to keep: --keep-last N or --keep-since DATE")
    check_idle(directory)
    if begun and dry_run:
        raise ConfigError(f"an earlier prune was interrupted; finish it first: archiver prune {quote(str(directory))}")
    with nullcontext() if dry_run else Lock(layout.lock):
        if begun:
            files = finish(layout)
            result(f"finished an earlier prune: {count(files, 'WARC file')} deleted")
            if keep_last is None and keep_since is None:
                return ExitCode.DONE
        safe_paths.check_files(directory)
        known = collected_crawls(layout)
        check_prunable(layout, known)
        old = Retention(keep_last, keep_since).old(known)
        with ProgressLine() as meter:
            when = iso(time.time()) or ""
            plan = plan_for(layout, old, when, lambda at: meter.show(f"checking: {volume(at.bytes_done)} read"))
        for file in plan.needed:
            result(f"needed  {volume(file.size):>9}  {printable(file.name, MAX_NAME)}  crawl of {file.crawl}")
        for file in plan.deleted:
            result(f"delete  {volume(file.size):>9}  {printable(file.name, MAX_NAME)}  crawl of {file.crawl}")
        if plan.deleted or plan.crawls:
            say("collections that were crawled with --dedup-from this one may refer to its files; prune does not look")
        if not dry_run and (plan.deleted or plan.crawls):
            carry_out(layout, plan)
    done = "would be deleted" if dry_run else "deleted"
    crawls = f"{count(len(plan.crawls), 'crawl')} of {len(known)}"
    result(
        f"{crawls} pruned: {count(len(plan.deleted), 'WARC file')} of {volume(plan.size)} {done}; "
        f"{count(len(plan.needed), 'file')} of earlier crawls stay, because others refer to them"
    )
    return ExitCode.DONE


COMMAND = define_command(
    "prune",
    prune,
    """Delete the WARC files of earlier crawls that nothing refers to any more.

    Reads the whole collection first, as archiver verify does, and deletes nothing if it has a fault. A file with a
    record that a revisit in another file refers to stays, so every capture of the crawls that are kept replays as
    before. Files are deleted whole, and never changed. A pruned crawl is no earlier crawl any more: recrawls do not
    compare with it, and request and store again what only it has. Its log, settings and reports stay in DIR/crawls.

    If it is interrupted, run archiver prune DIR again; until then other commands refuse the collection. Refuses a
    collection that is in use, has its queue in PostgreSQL, or was copied to a store.
    """,
    [
        directory_argument(),
        click.Option(
            ["--keep-last"],
            type=click.IntRange(1),
            metavar="N",
            help="Keep the newest N crawls of the collection, and prune all others.",
        ),
        click.Option(
            ["--keep-since"],
            metavar="DATE|N",
            help="Keep crawls that began on this date or later, or crawl N and later ones; and always the newest.",
        ),
        click.Option(["--dry-run"], is_flag=True, help="Only show what would be deleted, and what would stay."),
    ],
    ("archiver prune collections/example.org --keep-last 10 --dry-run", "see what would be deleted"),
    ("archiver prune collections/example.org --keep-last 10", "keep the newest ten crawls, and what they need"),
    ("archiver prune collections/example.org --keep-since 2020", "keep the crawls since 2020"),
)
