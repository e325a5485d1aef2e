"""In which order a crawl's bytes, names and commits reach the disk, read from what strace saw of a real process.

Checked after each write to the database, not only at its sync: a power cut may keep the write. Each check is shown
to fail on the same record with one kind of sync taken out of it.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from random import Random

import pytest

from fixtures.crash_state import known_lengths
from fixtures.powercut import NAME, Ground, Recording
from fixtures.simulated_disk import Disk, Loss, Tree
from fixtures.strace import Operation, Rename, Sync, SyncFolder, Write, without

DATABASE = f"{NAME}/crawl.db"
WAL = f"{DATABASE}-wal"
ARCHIVE = f"{NAME}/archive"
OPEN = ".open"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which sees every sync"),
]


@pytest.mark.parametrize("record", ["crawl", "recovery"])
def test_order(record: str, crawled: Ground, recovered: Recording) -> None:
    operations = crawled.operations if record == "crawl" else recovered.operations
    assert list(spoken_too_early(operations)) == []
    assert list(named_too_early(operations)) == []
    assert list(replaced_too_early(operations)) == []
    commits = [each for each in operations if isinstance(each, Sync) and each.path == WAL]
    names = [each for each in operations if isinstance(each, Rename) and each.path.endswith(OPEN)]
    drafts = [each for each in operations if isinstance(each, Rename) and each.path.endswith(".tmp")]
    assert len(commits) > 5
    assert len(names) > 2
    assert len(drafts) > 10


def test_the_collection_itself_is_certain_before_its_first_commit(crawled: Ground) -> None:
    disk = Disk()
    for each in crawled.operations:
        disk.take((each,))
        if isinstance(each, Sync) and each.path in (DATABASE, WAL):
            assert NAME in disk.after(Loss.LOST, Random()).folders, "a power cut takes the whole collection away"


def synced(ending: str) -> Callable[[Operation], bool]:
    return lambda each: isinstance(each, Sync) and each.path.endswith(ending)


def synced_folder(name: str) -> Callable[[Operation], bool]:
    return lambda each: isinstance(each, SyncFolder) and each.path == name


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        ("spoken", synced(".warc.gz.open")),
        ("spoken", synced_folder(ARCHIVE)),
        ("spoken", synced_folder(NAME)),
        ("named", synced("crawl.db-wal")),
        ("replaced", synced(".cdxj.tmp")),
        ("replaced", synced("crawl.toml.tmp")),
        ("replaced", synced_folder(f"{NAME}/indexes")),
        ("replaced", synced_folder(f"{NAME}/reports")),
    ],
    ids=["bytes", "names", "folders", "commits", "index", "settings", "index-names", "report-names"],
)
def test_the_check_sees_what_is_not_synced(check: str, fault: Callable[[Operation], bool], crawled: Ground) -> None:
    checks = {"spoken": spoken_too_early, "named": named_too_early, "replaced": replaced_too_early}
    operations = without(crawled.operations, fault)
    assert len(operations) < len(crawled.operations)
    assert list(checks[check](operations))


def spoken_too_early(operations: Sequence[Operation]) -> Iterator[str]:
    """Each write after which the database, were all of it kept, speaks of WARC bytes that are not certain."""
    for number, each, disk in walk(operations):
        if isinstance(each, Write) and each.path in (DATABASE, WAL):
            certain = disk.after(Loss.LOST, Random()).files
            for name, length in committed(disk.after(Loss.KEPT, Random())).items():
                data = certain.get(f"{ARCHIVE}/{name}", certain.get(f"{ARCHIVE}/{name}{OPEN}", b""))
                if len(data) < length:
                    yield f"{number}: {length} bytes of {name} are committed, {len(data)} are certain"


def named_too_early(operations: Sequence[Operation]) -> Iterator[str]:
    """Each WARC that gets its final name before it is certain that the database knows all of it."""
    for number, each, disk in walk(operations):
        if isinstance(each, Rename) and each.path.endswith(OPEN):
            size = len(disk.after(Loss.KEPT, Random()).files[each.target])
            known = committed(disk.after(Loss.LOST, Random())).get(PurePosixPath(each.target).name, 0)
            if known < size:
                yield f"{number}: {each.target} is named at {size} bytes, {known} are committed for certain"


def replaced_too_early(operations: Sequence[Operation]) -> Iterator[str]:
    """Each draft that replaces a file before its bytes are certain, or without its name made certain right after.

    Only live.json may be lost: nothing depends on it.
    """
    for number, each, disk in walk(operations):
        if isinstance(each, Rename) and each.path.endswith(".tmp") and not each.target.endswith("/live.json"):
            if not disk.synced(each.file):
                yield f"{number}: {each.target} is replaced by bytes that are not synced"
            after = next((later for later in operations[number + 1 :] if later.thread == each.thread), None)
            if not isinstance(after, SyncFolder) or after.path != str(PurePosixPath(each.target).parent):
                yield f"{number}: the new {each.target} may have its old name: {after} comes next"


def walk(operations: Sequence[Operation]) -> Iterator[tuple[int, Operation, Disk]]:
    """Each operation with the disk right after it."""
    disk = Disk()
    for number, each in enumerate(operations):
        yield number, each, disk.take((each,))


def committed(tree: Tree) -> dict[str, int]:
    """The committed length of each WARC in the database that lies in *tree*."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in (DATABASE, WAL, f"{DATABASE}-journal"):
            if path in tree.files:
                Path(scratch, PurePosixPath(path).name).write_bytes(tree.files[path])
        return known_lengths(Path(scratch))


def test_a_copy_shows_what_the_database_says(crawled: Ground) -> None:
    with closing(sqlite3.connect(crawled.folder / "crawled" / DATABASE)) as db:
        known = dict(db.execute("SELECT name, committed FROM warcs"))
    assert committed(Disk().take(crawled.operations).after(Loss.KEPT, Random())) == known
