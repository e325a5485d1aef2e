"""An index that a power cut or a full disk damaged is never taken for one of fewer captures."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from archiver.cli.entry import run
from archiver.cli.replay import first_urls
from archiver.collection import index_search
from archiver.model import ExitCode
from archiver.url import surt
from fixtures.handmade_collections import Held
from fixtures.handmade_warc import Collection

ROOT = "http://example.org/"
READERS = (["ls", "c"], ["get", "c", ROOT], ["export", "c", "--to", "out"], ["pack", "c", "-o", "c.wacz"])

Damage = Callable[[bytes], bytes]

TORN: dict[str, Damage] = {
    "zeros": lambda index: bytes(len(index)),
    "zeros at the end": lambda index: index[:-40] + bytes(40),
    "zeros in the middle": lambda index: index[:40] + bytes(40) + index[80:],
    "cut in the last line": lambda index: index[:-40],
    "cut in the key of the last line": lambda index: b"".join(index.splitlines(keepends=True)[:-1]) + b"org,exa",
}
SHORTENED: dict[str, Damage] = {
    "empty": lambda _: b"",
    "cut at a line's end": lambda index: b"".join(index.splitlines(keepends=True)[:-1]),
    "without its first line": lambda index: b"".join(index.splitlines(keepends=True)[1:]),
}


def _refused(said: str) -> bool:
    return said.count("\n") == 1 and said.endswith("archiver index c\n")


@pytest.mark.parametrize("damage", TORN.values(), ids=TORN)
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_torn_index_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, damage: Damage, *, large: bool
) -> None:
    """Also without crawl.db."""
    monkeypatch.chdir(tmp_path)
    Held(tmp_path / "c").add(ROOT, b"x").add(f"{ROOT}z", b"y").write()
    index = tmp_path / "c/indexes/index.cdxj"
    index.write_bytes(damage(index.read_bytes()))
    if large:
        monkeypatch.setattr(index_search, "SMALL", 0)
    for command in READERS:
        assert run(command) in (ExitCode.STORAGE, ExitCode.USAGE)
        assert _refused(capfd.readouterr().err)
    assert run(["index", "c"]) == ExitCode.DONE
    assert run(["get", "c", ROOT]) == ExitCode.DONE


@pytest.mark.parametrize("damage", (TORN | SHORTENED).values(), ids=TORN | SHORTENED)
def test_an_index_that_lacks_captures_of_the_crawl_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, damage: Damage
) -> None:
    monkeypatch.chdir(tmp_path)
    made = Collection(tmp_path / "c", surt=surt)
    made.index.write_bytes(damage(made.index.read_bytes()))
    for command in READERS:
        assert run(command) in (ExitCode.STORAGE, ExitCode.USAGE)
        assert _refused(capfd.readouterr().err)
    assert run(["index", "c"]) == ExitCode.DONE
    for command in READERS[1:]:
        assert run(command) == ExitCode.DONE


def test_replay_names_a_damaged_index(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It serves what pywb can read, and the seeds of the crawl are known."""
    made = Collection(tmp_path / "c", surt=surt)
    made.sql("INSERT INTO seeds SELECT id, 1 FROM urls ORDER BY id LIMIT 1")
    made.index.write_bytes(b"")
    assert first_urls(made.folder)
    assert capfd.readouterr().err.endswith(f"archiver index {made.folder}\n")


def test_an_index_may_lack_records_that_cannot_be_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`archiver index` leaves them out; to advise it again would lead nowhere."""
    made = Collection(tmp_path / "c", surt=surt)
    with closing(sqlite3.connect(made.database)) as db:
        ((offset, length),) = db.execute("SELECT offset, response_length FROM captures ORDER BY offset DESC LIMIT 1")
    data = bytearray(made.warc.read_bytes())
    data[offset : offset + length] = bytes(length)
    made.warc.write_bytes(data)
    assert run(["index", str(made.folder)]) == ExitCode.DONE
    capfd.readouterr()
    assert run(["ls", str(made.folder)]) == ExitCode.DONE
    assert len(capfd.readouterr().out.splitlines()) == len(made.lines) - 1


def test_an_index_may_lack_a_file_that_was_removed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = Collection(tmp_path / "c", surt=surt)
    made.warc.unlink()
    assert run(["index", str(made.folder)]) == ExitCode.DONE
    assert run(["ls", str(made.folder)]) == ExitCode.DONE
    assert capfd.readouterr().err.endswith("0 captures, 0 B\n")


@pytest.mark.parametrize("shortened", SHORTENED.values(), ids=SHORTENED)
def test_the_index_of_a_running_crawl_may_be_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], shortened: Damage
) -> None:
    """A batch is in the database before its lines are in the index."""
    made = Collection(tmp_path / "c", surt=surt)
    made.sql("UPDATE warcs SET indexed = 0")
    made.index.write_bytes(shortened(made.index.read_bytes()))
    assert run(["ls", str(made.folder)]) == ExitCode.DONE
    assert "not complete" not in capfd.readouterr().err


def test_the_index_of_a_running_crawl_may_end_within_a_line(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    directory = Held(tmp_path / "c").add(ROOT, b"x").add(f"{ROOT}z", b"y").write()
    growing = (tmp_path / "c/indexes/index.cdxj").rename(tmp_path / "c/indexes/run-hand.cdxj")
    growing.write_bytes(growing.read_bytes()[:-40])
    assert run(["get", str(directory), ROOT]) == ExitCode.DONE
    assert capfdbinary.readouterr().out == b"x"


def test_a_last_line_needs_no_line_end(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    directory = Held(tmp_path / "c").add(ROOT, b"x").write()
    index = tmp_path / "c/indexes/index.cdxj"
    index.write_bytes(index.read_bytes().removesuffix(b"\n"))
    assert run(["get", str(directory), ROOT]) == ExitCode.DONE
    assert capfdbinary.readouterr().out == b"x"
