"""What is said of a disk that takes no more, and when a crawl has too little room."""

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.collection.crawl_log import CrawlLog, LogLine
from archiver.collection.disk_space import LAST_RESERVE, DiskSpace
from archiver.collection.layout import Layout
from archiver.errors import ArchiveError, ShortageError
from archiver.fetch.spool import SPARE, FileBlock, SpoolFolder, spool_pieces
from archiver.storage import amount, free, replace_file, storage, words
from fixtures.mounts import mounted

LINE = LogLine(0.0, 200, 5, "http://a/", "", None, "text/plain", None, 0.0, "", ())


@pytest.mark.parametrize(
    ("number", "wanted", "said"),
    [
        (errno.EDQUOT, 9999, r"the disk quota is used up: 9999 bytes more were to be written"),
        (errno.EDQUOT, 0, r"the disk quota is used up: at least \d+ bytes more were to be written"),
        (errno.EFBIG, 9999, r"a file may not grow beyond what its file system can hold: 9999 bytes more were .*"),
        (errno.ENOSPC, 1, r"the disk is full: at least \d+ bytes more were to be written, \d+ bytes.* are free"),
        (errno.EROFS, 9, "Read-only file system"),
        (errno.EIO, 9, "Input/output error"),
    ],
)
def test_words(tmp_path: Path, number: int, wanted: int, said: str) -> None:
    error = OSError(number, os.strerror(number))
    assert re.fullmatch(said, words(error, tmp_path / "not/there", wanted))


def test_the_limit_of_a_file_is_named(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(ArchiveError) as raised:
            replace_file(tmp_path / "file", lambda file: file.writelines([bytes(50_000)]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(raised.value).startswith(f"{tmp_path}/file: a file may not grow beyond 20000 bytes here (ulimit -f): ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (999_999, "999999 bytes"),
        (1_250_000, "1250000 bytes (1.2 MB)"),
        (10**9, "1000000000 bytes (1.0 GB)"),
    ],
)
def test_amounts(count: int, said: str) -> None:
    assert amount(count) == said


def test_a_disk_without_room_for_a_name(tmp_path: Path) -> None:
    with mounted(tmp_path / "d", "1m", "nr_inodes=2"):
        replace_file(tmp_path / "d/1", lambda file: file.writelines([b"x"]))
        with pytest.raises(ArchiveError) as raised:
            replace_file(tmp_path / "d/2", lambda file: file.writelines([b"x"]))
    assert re.fullmatch(
        r"\S+/d/2: the disk is full: it can hold no more files \(no inode is free\).*", str(raised.value)
    )


def test_what_was_to_be_replaced_stays_and_a_draft_takes_no_room(tmp_path: Path) -> None:
    with mounted(tmp_path / "d", "64k"):
        path = tmp_path / "d/file"
        replace_file(path, lambda file: file.writelines([b"old"]))
        with pytest.raises(ArchiveError) as raised:
            replace_file(path, lambda file: file.writelines([bytes(1000)] * 100), lambda: 100_000)
        left = free(path)
        assert list(path.parent.iterdir()) == [path]
        assert path.read_bytes() == b"old"
    assert left == 61440
    assert str(raised.value) == (
        f"{path}: the disk is full: 100000 bytes more were to be written, {left} bytes are free; "
        f"at least {100_000 - left} bytes are missing"
    )


def test_the_spool(tmp_path: Path) -> None:
    """What it takes can be read back any number of times; what it does not take is said, and leaves nothing."""
    with mounted(tmp_path / "d", "64k"):
        block = spool_pieces(tmp_path / "d", [b"one", b"two"])
        assert [b"".join(block.pieces()) for _ in range(2)] == [b"onetwo"] * 2
        assert block.head(4) == b"onet"
        with pytest.raises(ArchiveError, match=rf"{tmp_path}/d: a response cannot be spooled: the disk is full: "):
            spool_pieces(tmp_path / "d", [bytes(50_000)] * 2)
        block.close()
        assert free(tmp_path / "d") == 65536
    with pytest.raises(ArchiveError, match=r"d/gone: a response cannot be spooled: No such file or directory"):
        spool_pieces(tmp_path / "d/gone", [])


def test_large_answers_do_not_take_the_last_descriptors(tmp_path: Path) -> None:
    """Where few files more may be open, they are for the archive; what is refused leaves nothing open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + SPARE, before[1]))
        ceiling = SpoolFolder(tmp_path).ceiling
        assert taken[0] < ceiling < taken[0] + SPARE - 8
        while taken[-1] < ceiling - 1:
            spool_pieces(tmp_path, [b"x"]).close()
            taken.append(os.dup(taken[0]))
        for _ in range(2):
            with pytest.raises(ShortageError, match="a response cannot be spooled: Too many open files"):
                spool_pieces(tmp_path, [b"x"])
        os.close(taken.pop())
        spool_pieces(tmp_path, [b"x"]).close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in taken:
            os.close(number)


def test_a_response_that_cannot_be_read_back(tmp_path: Path) -> None:
    """Reading a folder fails, as reading from a broken disk does."""
    folder = SpoolFolder(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    with (
        (tmp_path / "file").open("ab") as file,
        pytest.raises(ArchiveError, match="cannot be read back from the spool"),
    ):
        list(FileBlock(file, 1, folder).pieces())


def test_room(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "d")
    with mounted(layout.directory, "1m"):
        layout.make()
        left = free(layout.directory)
        spool = SpoolFolder(layout.spool)
        spool.hold(2)
        assert DiskSpace(layout, 0, spool).shortage() == ""
        assert DiskSpace(layout, left).shortage() == ""
        assert f"{layout.directory}: {amount(left)} are free" in DiskSpace(layout, left + 7).shortage()
        assert DiskSpace(layout, left + 7).shortage().endswith(": 7 bytes are missing")
        assert DiskSpace(layout, left + 7).shortage(LAST_RESERVE) == ""
        spooling = DiskSpace(layout, left, spool).shortage()
        assert "2 bytes of them for responses in the spool" in spooling
        assert spooling.endswith(": 2 bytes are missing")
        spool.hold(9, "http://a.example/iso")
        large = DiskSpace(layout, left, spool).shortage()
        assert large.endswith("; the largest response under way is http://a.example/iso, 9 bytes so far")
        with mounted(layout.archive, "8k"):  # the WARCs may lie elsewhere
            assert DiskSpace(layout, left).shortage().startswith(f"{layout.archive}: 8192 bytes are free")


def test_room_where_nothing_is_yet(tmp_path: Path) -> None:
    left = free(tmp_path / "a/b/c")
    assert left == pytest.approx(free(tmp_path), rel=0.1)
    assert DiskSpace(Layout(tmp_path / "a/b"), left * 3).shortage()


def test_a_line_of_the_log_that_was_cut_off_stays_by_itself(tmp_path: Path) -> None:
    """The line after it is whole, though the disk was full in the middle of one."""
    path = tmp_path / "d/crawl.log"
    with mounted(tmp_path / "d", "4k") as small:
        log = CrawlLog(path)
        with pytest.raises(ArchiveError, match=r"crawl\.log: the disk is full: .* are missing"):
            log.write([LINE] * 100)
        log.abandon()
        assert path.stat().st_size == 4096
        small.resize("64k")
        log = CrawlLog(path)
        log.write([LINE])
        log.close()
        lines = path.read_text().splitlines()
        assert lines[-1] == LINE.render()
        assert all(line == LINE.render() for line in lines[:-2])
        assert LINE.render().startswith(lines[-2])


def test_an_error_that_has_a_path_of_its_own_names_that(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=rf"{tmp_path}/other: No such file"), storage(tmp_path / "one"):
        (tmp_path / "other").open("rb")


_SHORT_OF_FILES = """
import os, resource, sys, threading
from pathlib import Path
from archiver.errors import ArchiveError
from archiver.storage import replace_file

def write():
    try:
        replace_file(Path(sys.argv[1]), lambda file: file.write(b"whole"))
    except ArchiveError as error:
        print(error)

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
write()
writer = threading.Thread(target=write)
writer.start()
writer.join(0.5)
print("waits" if writer.is_alive() else "gave up")
for each in taken:
    os.close(each)
writer.join()
"""


def test_a_thread_waits_for_a_free_descriptor(tmp_path: Path) -> None:
    """The main thread does not, because it runs the requests, which give theirs back."""
    path = tmp_path / "file"
    said = subprocess.run(
        [sys.executable, "-c", _SHORT_OF_FILES, str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines() == [f"{path}: Too many open files", "waits"]
    assert path.read_bytes() == b"whole"
