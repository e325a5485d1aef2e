"""A disk that loses power, and the record of what a process did to it: judged by tables and by real files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.crash_state import put_together
from fixtures.simulated_disk import Disk, Loss, Tree
from fixtures.strace import (
    Create,
    MakeFolder,
    Operation,
    Reader,
    RemoveFolder,
    Rename,
    Sync,
    SyncFolder,
    Truncate,
    Unlink,
    Write,
    traced,
    without,
)

Files = dict[str, bytes]

BORN = [MakeFolder(1, "d"), SyncFolder(1, ".", 1), Create(1, "d/a", 0)]  # the name d/a is not certain yet
NAMED = [*BORN, SyncFolder(1, "d", 3)]
SYNCED = [*NAMED, Write(1, "d/a", 0, 0, b"old"), Sync(1, "d/a", 0, 5)]


def left(loss: Loss, operations: Sequence[Operation], seed: int = 0) -> Files:
    """The files that lie there after *loss*."""
    return dict(Disk().take(operations).after(loss, Random(seed)).files)


@pytest.mark.parametrize(
    ("operations", "loss", "files"),
    [
        (BORN, Loss.LOST, {}),
        (BORN, Loss.KEPT, {"d/a": b""}),
        (NAMED, Loss.LOST, {"d/a": b""}),
        ([*BORN, Write(1, "d/a", 0, 0, b"x"), Sync(1, "d/a", 0, 4)], Loss.LOST, {}),  # synced, but without a name
        ([*BORN, Write(1, "d/a", 0, 0, b"x"), Sync(1, "d/a", 0, 4)], Loss.EMPTY, {"d/a": b"x"}),
        ([*NAMED, Write(1, "d/a", 0, 0, b"x")], Loss.LOST, {"d/a": b""}),
        ([*NAMED, Write(1, "d/a", 0, 0, b"x")], Loss.EMPTY, {"d/a": b""}),
        ([*NAMED, Write(1, "d/a", 0, 0, b"x")], Loss.ZEROS, {"d/a": b"\0"}),
        ([*BORN, Write(1, "d/a", 0, 0, b"x")], Loss.NAMELESS, {}),
        ([*NAMED, Write(1, "d/a", 0, 0, b"x")], Loss.NAMELESS, {"d/a": b"x"}),
        ([*SYNCED, Write(1, "d/a", 0, 1, b"EW!")], Loss.ZEROS, {"d/a": b"old\0"}),
        ([*SYNCED, Write(1, "d/a", 0, 1, b"EW!")], Loss.KEPT, {"d/a": b"oEW!"}),
        ([*SYNCED, Write(1, "d/a", 0, 5, b"!")], Loss.KEPT, {"d/a": b"old\0\0!"}),
        ([*SYNCED, Truncate(1, "d/a", 0, 1)], Loss.LOST, {"d/a": b"old"}),
        ([*SYNCED, Truncate(1, "d/a", 0, 1)], Loss.KEPT, {"d/a": b"o"}),
        ([*SYNCED, Truncate(1, "d/a", 0, 0), Write(1, "d/a", 0, 0, b"new!")], Loss.ZEROS, {"d/a": bytes(4)}),
        ([*SYNCED, Rename(1, "d/a", "d/b", 0)], Loss.LOST, {"d/a": b"old"}),
        ([*SYNCED, Rename(1, "d/a", "d/b", 0), SyncFolder(1, "d", 7)], Loss.LOST, {"d/b": b"old"}),
        ([*SYNCED, Rename(1, "d/a", "d/b", 0), SyncFolder(1, ".", 7)], Loss.LOST, {"d/a": b"old"}),
        ([*SYNCED, Unlink(1, "d/a", 0)], Loss.LOST, {"d/a": b"old"}),
        ([*SYNCED, Unlink(1, "d/a", 0), SyncFolder(1, "d", 7)], Loss.LOST, {}),
        ([*SYNCED, Create(1, "d/t", 1), Rename(1, "d/t", "d/a", 1), SyncFolder(1, "d", 8)], Loss.LOST, {"d/a": b""}),
        ([*SYNCED[:-1], Sync(1, "d/a", 0, 4)], Loss.LOST, {"d/a": b""}),  # the sync began before the write was over
        ([*BORN[:2], Create(1, "d/a", 0), SyncFolder(1, "d", 2)], Loss.LOST, {}),
    ],
)
def test_what_is_left(operations: Sequence[Operation], loss: Loss, files: Files) -> None:
    assert left(loss, operations) == files


@pytest.mark.parametrize(
    ("loss", "offset", "length", "size"),
    [
        (Loss.SECTOR, 0, 1000, 512),
        (Loss.SECTOR, 0, 1024, 512),
        (Loss.SECTOR, 0, 512, 0),
        (Loss.SECTOR, 600, 100, 0),
        (Loss.SECTOR, 500, 600, 1024),
        (Loss.PAGE, 0, 5000, 4096),
        (Loss.PAGE, 0, 4000, 0),
        (Loss.PAGE, 4000, 5000, 8192),
    ],
)
def test_the_last_write_is_torn(loss: Loss, offset: int, length: int, size: int) -> None:
    operations = [*NAMED, Write(1, "d/a", 0, offset, b"x" * length)]
    found = left(loss, operations)["d/a"]
    assert found == (bytes(offset) + b"x" * length)[:size]


def test_only_the_last_write_is_torn() -> None:
    operations = [*NAMED, Create(1, "d/b", 1), Write(1, "d/a", 0, 0, b"x" * 600), Write(1, "d/b", 1, 0, b"y" * 600)]
    assert left(Loss.SECTOR, operations) == {"d/a": b"x" * 600, "d/b": b"y" * 512}


def test_a_folder_that_is_lost_takes_its_files_with_it() -> None:
    operations = [MakeFolder(1, "d"), Create(1, "d/a", 0), SyncFolder(1, "d", 2)]
    assert left(Loss.LOST, operations) == {}
    assert left(Loss.LOST, [*operations, SyncFolder(1, ".", 3)]) == {"d/a": b""}


def test_chance_leaves_all_that_can_be_left() -> None:
    operations = [*SYNCED, Write(1, "d/a", 0, 0, b"n" * 5000), Rename(1, "d/a", "d/b", 0)]
    found = {(name, data) for seed in range(300) for name, data in left(Loss.CHANCE, operations, seed).items()}
    assert {name for name, _ in found} == {"d/a", "d/b"}
    first, second = b"n" * 4096, b"n" * 904
    old = b"old".ljust(4096, b"\0")
    assert {data for _, data in found} == {
        b"old",
        first,
        first + second,
        old + second,
        old + bytes(904),
        first + bytes(904),
    }


def test_chance_keeps_a_rename_of_which_the_creation_was_lost() -> None:
    operations = [*SYNCED, Create(1, "d/t", 1), Rename(1, "d/t", "d/a", 1)]
    found = {tuple(sorted(left(Loss.CHANCE, operations, seed).items())) for seed in range(100)}
    assert found == {(("d/a", b"old"),), (("d/a", b"old"), ("d/t", b"")), (("d/a", b""),)}


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """What may be done to a handful of files in a folder, and in the folder above it."""
    done: list[Operation] = [MakeFolder(1, "d")]
    names: dict[str, int] = {}
    made = 0
    for _ in range(draw(st.integers(1, 25))):
        path = draw(st.sampled_from(["d/a", "d/b", "d/c", "e"]))
        if path not in names:
            done.append(Create(1, path, made))
            names[path] = made
            made += 1
            continue
        file = names[path]
        match draw(st.sampled_from(["write", "cut", "sync", "names", "rename", "unlink"])):
            case "write":
                data = draw(st.binary(min_size=1, max_size=20)) * draw(st.sampled_from([1, 300]))
                done.append(Write(1, path, file, draw(st.integers(0, 5000)), data))
            case "cut":
                done.append(Truncate(1, path, file, draw(st.integers(0, 6000))))
            case "sync":
                done.append(Sync(1, path, file, len(done)))
            case "names":
                done.append(SyncFolder(1, draw(st.sampled_from(["d", "."])), len(done)))
            case "rename" if path != "e":
                target = draw(st.sampled_from(["d/a", "d/b", "d/c"]))
                if target != path:
                    done.append(Rename(1, path, target, names.pop(path)))
                    names[target] = file
            case "unlink":
                done.append(Unlink(1, path, names.pop(path)))
    return done


@given(histories(), st.sampled_from(Loss), st.integers(0, 9))
def test_what_is_synced_survives_every_loss(history: list[Operation], loss: Loss, seed: int) -> None:
    disk = Disk().take(history)
    for file in {each.file for each in history if isinstance(each, Create)}:
        disk.take([Sync(1, "", file, disk.done)])
    disk.take([SyncFolder(1, ".", disk.done), SyncFolder(1, "d", disk.done + 1)])
    assert disk.after(loss, Random(seed)) == disk.after(Loss.KEPT, Random())


@given(histories(), st.sampled_from(Loss), st.integers(0, 9))
def test_a_state_is_written_as_it_is_and_is_one_that_can_be(history: list[Operation], loss: Loss, seed: int) -> None:
    tree = Disk().take(history).after(loss, Random(seed))
    assert tree == Disk().take(history).after(loss, Random(seed))
    assert tree.folders <= {"d"}
    known = {each.path for each in history if isinstance(each, Create)}
    known |= {each.target for each in history if isinstance(each, Rename)}
    assert set(tree.files) <= known
    assert all("/" not in path or "d" in tree.folders for path in tree.files)


def test_a_tree_is_read_as_it_was_written(tmp_path: Path) -> None:
    tree = Tree(frozenset({"d", "d/e"}), {"a": b"1", "d/e/b": b"22", "d/c": b""})
    tree.write(tmp_path / "here")
    assert Tree.of(tmp_path / "here") == tree
    assert Tree.of(tmp_path / "here").key == tree.key
    (tmp_path / "here" / "d" / "c").write_bytes(b"3")
    assert Tree.of(tmp_path / "here").key != tree.key


def test_without_keeps_what_each_sync_covers() -> None:
    operations = [*SYNCED, Write(1, "d/a", 0, 0, b"new"), Sync(1, "d/a", 0, 7), SyncFolder(1, "d", 8)]
    fewer = without(operations, lambda each: isinstance(each, Sync) and each.began == 5)
    assert fewer == [*SYNCED[:-1], Write(1, "d/a", 0, 0, b"new"), Sync(1, "d/a", 0, 6), SyncFolder(1, "d", 7)]
    assert without(operations, lambda _: False) == operations


def test_parts_that_were_taken_out_are_put_back() -> None:
    aside = {"w.gz.2.part": b"CD", "w.gz.6.tail": b"GH", "w.gz.2.part.json": b"{}", "v.gz.0.tail": b"?"}
    assert put_together(b"ABEF", "w.gz", aside) == b"ABCDEFGH"
    assert put_together(b"ABEF", "u.gz", aside) == b"ABEF"


STRANGE = """
import os, shutil, sqlite3, tempfile, threading
os.mkdir("d"); os.mkdir("gone"); os.rmdir("gone")
file = open("d/a", "wb"); file.write(b"0123456789"); file.flush()
file.seek(4); file.write(b"four"); file.flush(); os.fsync(file.fileno())
copy = os.dup(file.fileno()); os.write(copy, b"behind"); os.close(copy)
file.truncate(12); os.writev(file.fileno(), [b"x", b"yz"]); file.close()
with open("d/a", "ab") as more: more.write(b"at the end")
with open("d/a", "r+b") as again: again.read(3); again.seek(3); again.write(b"!"); again.seek(0, 2); again.write(b"?")
with open("d/t", "wb") as draft: draft.write(b"\\0\\xff\\"\\n" * 999)
os.replace("d/t", "d/r"); os.rename(os.path.abspath("d/r"), "d/s")
with open("d/u", "wb") as lost: os.unlink("d/u"); lost.write(b"nobody sees this")
with open("d/n", "wb") as late: os.rename("d/n", "d/m"); late.write(b"under another name")
with open("d/a2", "wb") as target, open("d/a", "rb") as source: shutil.copyfileobj(source, target)
with tempfile.TemporaryFile(dir="d") as nameless: nameless.write(b"z" * 99); nameless.flush()
with open("d/o", "wb") as over: over.write(b"long")
with open("d/o", "wb") as over: over.write(b"s")
def one(name):
    with open(name, "wb", buffering=0) as out:
        for number in range(200): out.write(b"%d " % number); os.fsync(out.fileno())
threads = [threading.Thread(target=one, args=(f"d/thread{number}",)) for number in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
db = sqlite3.connect("d/db", isolation_level=None); db.execute("PRAGMA journal_mode=WAL")
db.execute("CREATE TABLE t (x)"); db.execute("INSERT INTO t SELECT randomblob(9000)"); os._exit(0)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which records the process")
class TestRecord:
    def test_its_operations_make_what_the_process_made(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir()
        subprocess.run([*traced(tmp_path / "record"), sys.executable, "-c", STRANGE], cwd=home, check=True)
        reader = Reader(home)
        reader.read(tmp_path / "record")
        made = Tree.of(home)
        assert Disk().take(reader.operations).after(Loss.KEPT, Random()) == Tree(
            made.folders, {path: data for path, data in made.files.items() if not path.endswith("-shm")}
        )
        assert {"d/a", "d/s", "d/m", "d/thread3", "d/db-wal"} <= set(made.files)
        threads = {each.thread for each in reader.operations if isinstance(each, Write) and "thread" in each.path}
        assert len(threads) == 4
        assert any(isinstance(each, RemoveFolder) for each in reader.operations)

    def test_a_second_process_goes_on_with_the_same_files(self, tmp_path: Path) -> None:
        home, reader = tmp_path / "home", Reader(tmp_path / "home")
        home.mkdir()
        for number, code in enumerate(('open("a", "w").write("one")', 'f = open("a", "a"); f.write("two"); f.close()')):
            record = tmp_path / str(number)
            subprocess.run([*traced(record), sys.executable, "-c", code], cwd=home, check=True)
            reader.read(record)
        assert [type(each) for each in reader.operations] == [Create, Write, Write]
        assert left(Loss.KEPT, reader.operations) == {"a": b"onetwo"}

    def test_a_call_that_is_killed_is_not_an_operation(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir()
        code = 'import os; f = os.open("a", os.O_WRONLY | os.O_CREAT); os.write(f, b"1"); os.pwrite(f, b"2", 1)'
        command = [*traced(tmp_path / "record", "pwrite64:signal=SIGKILL:when=1"), sys.executable, "-c", code]
        assert subprocess.run(command, cwd=home, check=False).returncode != os.EX_OK
        reader = Reader(home)
        reader.read(tmp_path / "record")
        assert left(Loss.KEPT, reader.operations) == {"a": b"1"} == {"a": (home / "a").read_bytes()}

    def test_a_call_that_is_not_understood_ends_the_reading(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir()
        code = 'import os; f = os.open("a", os.O_WRONLY | os.O_CREAT); os.posix_fallocate(f, 0, 99)'
        subprocess.run([*traced(tmp_path / "record"), sys.executable, "-c", code], cwd=home, check=True)
        with pytest.raises(NotImplementedError, match="fallocate"):
            Reader(home).read(tmp_path / "record")
