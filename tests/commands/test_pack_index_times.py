"""A package has milliseconds in its index where replayweb.page would take one capture for another, and is sorted."""

from pathlib import Path

import pytest

from archiver.crawl.reader_process import ReaderProcess
from archiver.tools.wacz import contents
from archiver.tools.wacz.contents import read_contents
from archiver.tools.wacz.pack import PackOptions, pack
from fixtures.handmade_warc import member, record
from fixtures.packages import collection, index, looked_up, members, response, valid

SITE = "http://example.org"
SECOND = "2026-01-02T03:04:05"


def dated(url: str, date: str, number: int) -> bytes:
    return response(url, b"%d" % number, ("WARC-Date", date), number=number, head="image/png")


def revisit(url: str, date: str, number: int) -> bytes:
    named = (("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/server-not-modified"),)
    return member(record("revisit", b"", ("WARC-Target-URI", url), ("WARC-Date", date), *named, number=number))


def packed(tmp_path: Path, *files: list[bytes]) -> Path:
    stock = read_contents(collection(tmp_path / "c", *files))
    (made,) = pack(
        PackOptions(tmp_path / "c.wacz", "archiver/0", "2026-01-02T03:04:05Z", "A title"), stock, ReaderProcess()
    )
    assert valid(made.path)
    return made.path


def dates(path: Path, key: str) -> list[tuple[str, bool]]:
    """The dates of the lines with this key, and whether they are those of revisits."""
    lines = [line.decode().split(" ", 2) for line in index(path)]
    return [(date, "warc/revisit" in rest) for known, date, rest in lines if known == key]


def test_lines_of_one_url_are_told_apart(tmp_path: Path) -> None:
    """In the order of their dates, also within one second, in which the index of the collection has them otherwise."""
    path = packed(
        tmp_path,
        [
            dated(f"{SITE}/twice", f"{SECOND}.900001Z", 1),
            dated(f"{SITE}/once", f"{SECOND}.900001Z", 2),
            dated(f"{SITE}/whole", f"{SECOND}Z", 3),
        ],
        [
            dated("http://www.example.org/twice", f"{SECOND}.100999Z", 4),
            revisit(f"{SITE}/twice", "2026-02-02T03:04:05.5Z", 5),
            revisit(f"{SITE}/whole", "2026-02-02T03:04:05.5Z", 6),
        ],
    )
    assert index(path) == sorted(index(path))
    twice = [("20260102030405100", False), ("20260102030405900", False), ("20260202030405", True)]
    assert dates(path, "org,example)/twice") == twice
    assert dates(path, "org,example)/once") == [("20260102030405", False)]
    assert dates(path, "org,example)/whole") == [("20260102030405000", False), ("20260202030405", True)]


def test_where_nothing_is_a_revisit_lines_are_those_of_the_collection(tmp_path: Path) -> None:
    path = packed(tmp_path, [dated(f"{SITE}/twice", f"{SECOND}.{number}00001Z", number) for number in (1, 9)])
    assert b"".join(index(path)) == (tmp_path / "c" / "indexes" / "index.cdxj").read_bytes()


def test_what_cannot_be_told_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that is not there, a line of another file, and one URL with more captures than memory is given."""
    made = collection(tmp_path / "c", [dated(f"{SITE}/a", f"{SECOND}.5Z", 1), dated(f"{SITE}/a", f"{SECOND}.7Z", 2)])
    (name,) = (path.name for path in (made / "archive").iterdir())
    lines = (made / "indexes" / "index.cdxj").read_bytes().splitlines(keepends=True)
    away = [line.replace(b'"offset": "', b'"offset": "99') for line in lines]
    folder = made / "archive"
    assert b" 20260102030405500 " in next(contents.with_milliseconds(lines, folder, {name}))
    assert list(contents.with_milliseconds(lines, folder, {"another"})) == lines
    assert list(contents.with_milliseconds(away, folder, {name})) == away
    monkeypatch.setattr(contents, "MAX_CAPTURES", 1)
    assert list(contents.with_milliseconds(lines, folder, {name})) == lines


def test_blocks_begin_with_the_lines_that_they_hold(tmp_path: Path) -> None:
    """A large index is in blocks of lines that have their milliseconds already."""
    url = f"{SITE}/many"
    made = collection(tmp_path / "c", [dated(url, f"{SECOND}.5Z", 1), revisit(url, "2026-02-02T03:04:05.5Z", 2)])
    (line, again) = (made / "indexes" / "index.cdxj").read_bytes().splitlines(keepends=True)
    others = [line.replace(b")/many ", b")/m%05d " % number).replace(b"/many", b"/m") for number in range(10_000)]
    (made / "indexes" / "index.cdxj").write_bytes(b"".join(sorted([*others, line, again])))
    (package,) = pack(
        PackOptions(tmp_path / "c.wacz", "archiver/0", "2026-01-02T03:04:05Z", "A title"),
        read_contents(made),
        ReaderProcess(),
    )
    found = looked_up(members(package.path), b"org,example)/many")
    assert [each.split(b" ")[1] for each in found] == [b"20260102030405500", b"20260202030405"]
