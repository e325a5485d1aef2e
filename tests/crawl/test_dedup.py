"""Payloads that come again become revisits, of one crawl, across hosts and across crawls; never where they may not."""

from pathlib import Path

from cdxj_indexer.main import write_cdx_index
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import Answer, End, RawServer, Route, keep

BODY = b"".join(b"line %d of a document that many hosts have\n" % number for number in range(100))
OTHER = BODY[::-1]
SMALL = b"x" * 1023


def ok(body: bytes, *fields: bytes, status: bytes = b"200 OK", kind: bytes = b"text/plain") -> Answer:
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body), *fields]
    return keep(b"\r\n".join([*lines, b"", body]))


def chunked(body: bytes, trailer: bytes = b"") -> Answer:
    half = len(body) // 2
    framed = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    return keep(head + framed + b"0\r\n" + trailer + b"\r\n")


def page(*targets: str) -> Answer:
    return ok("".join(f'<a href="{target}">.</a>' for target in targets).encode(), kind=b"text/html")


def kinds(directory: Path) -> dict[str, str]:
    """Each URL's path, and the type of record it lies in."""
    found = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type in ("response", "revisit"):
                    target = record.rec_headers.get_header("WARC-Target-URI")
                    found[target.split("/", 3)[3]] = record.rec_type
    return found


SITE: dict[str, Route] = {
    "/a": ok(BODY),
    "/b": ok(BODY, b"X-Other: 1"),
    "/chunked": chunked(BODY),
    "/trailers": chunked(BODY, b"X-Sum: 1\r\n"),
    "/coded": ok(BODY, b"Content-Encoding: identity"),
    "/error": ok(BODY, status=b"404 Not Found"),
    "/error-too": ok(BODY, status=b"404 Not Found"),
    "/moved": ok(BODY, b"Location: /a", status=b"302 Found"),
    "/moved-too": ok(BODY, b"Location: /a", status=b"302 Found"),
    "/small": ok(SMALL),
    "/small-too": ok(SMALL),
    "/cut": Answer((b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 9999\r\n\r\n" + OTHER,), End.CLOSE),
    "/whole": ok(OTHER),
    "/large": ok(bytes(9 << 20)),
    "/large-too": ok(bytes(9 << 20)),
}


REVISITS = {"b", "chunked", "error-too", "large-too"}


def test_what_becomes_a_revisit(tmp_path: Path) -> None:
    """And others read it, and say the same of it; the database and the index can be made anew from it."""
    routes = {**SITE, "/": page(*SITE), "/robots.txt": ok(b"User-agent: *\nDisallow:\n#" + BODY)}
    with RawServer(routes) as server:
        assert crawl(tmp_path / "c", server.url(), retries=0, host_concurrency=1).code is ExitCode.DONE
    found = kinds(tmp_path / "c")
    assert {name for name, kind in found.items() if kind == "revisit"} == REVISITS
    assert len(found) == len(routes)
    assert refers(tmp_path / "c")["b"] == originals(tmp_path / "c")["a"]
    log = (tmp_path / "c/logs/crawl.log").read_text().splitlines()
    lines = {line.split()[3].split("/", 3)[3]: line.split() for line in log}
    assert {name for name, words in lines.items() if words[-1] == "duplicate:digest"} == REVISITS
    assert lines["b"][2] == lines["a"][2] == str(len(BODY))
    paths = [str(path) for path in warcs(tmp_path / "c")]
    index = (tmp_path / "c/indexes/index.cdxj").read_text()
    assert _indexed_by_others(paths, tmp_path) == index.splitlines()
    for path in paths:
        with Path(path).open("rb") as file:
            records = FastIterator(file, record_types=WarcRecordType.any_type, verify_digests=False, parse_http=False)
            assert all(record.verify_block_digest() for record in records)
    captures = rows(tmp_path / "c", CAPTURES)
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert rows(tmp_path / "c", CAPTURES) == captures
    assert (tmp_path / "c/indexes/index.cdxj").read_text() == index


CAPTURES = """
SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, offset, received, truncated, revisit
FROM captures JOIN urls ON urls.id = captures.url ORDER BY urls.url
"""


def _indexed_by_others(paths: list[str], folder: Path) -> list[str]:
    written = folder / "theirs.cdxj"
    write_cdx_index(str(written), paths, {"sort": True})
    return written.read_text().splitlines()


def test_what_lost_its_payload_is_visited_again(tmp_path: Path) -> None:
    """The file in which the payload lay is gone: what named it waits again, and in the end all is there."""
    targets = [f"/{number}" for number in range(12)]
    routes: dict[str, Route] = {target: ok(BODY) for target in targets}
    routes["/"] = page(*targets)
    with RawServer(routes) as server:
        crawl(tmp_path / "c", server.url(), warc_size=1, host_concurrency=1)
        (tmp_path / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\n')
        (lost,) = rows(
            tmp_path / "c",
            "SELECT warcs.name FROM captures JOIN warcs ON warcs.id = captures.warc WHERE mime = 'text/plain' "
            "AND captures.status = 200 AND revisit = ''",
        )
        (tmp_path / "c/archive" / str(lost[0])).unlink()
        told = archiver("rebuild", "c", cwd=tmp_path)
        assert told.returncode == ExitCode.DONE
        assert "11 revisits are lost" in told.stderr
        asked = len(server.log)
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        assert len(server.log) - asked >= len(targets)
    here = originals(tmp_path / "c")
    named = refers(tmp_path / "c").values()  # the latest of each URL
    assert len(named) == len(targets) - 1
    assert all(url in {there for there, _, _ in here.values()} for url, _, _ in named)
    assert set(named) <= set(here.values())
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE


def test_off_is_off(tmp_path: Path) -> None:
    routes = {"/": page("/a", "/b", "/c"), "/a": ok(BODY), "/b": ok(BODY), "/c": ok(BODY)}
    with RawServer(routes) as server:
        crawl(tmp_path / "c", server.url(), dedup="off", dedup_from=("/nowhere",))
    assert set(kinds(tmp_path / "c").values()) == {"response"}


def test_what_is_no_archive_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for given, said in (("nothing", "nothing: there is no such file"), ("", "is not the directory of an archive")):
        told = archiver("crawl", "http://127.0.0.1:1/", "-o", "c", "--dedup-from", given, cwd=tmp_path)
        assert told.returncode == ExitCode.USAGE
        assert said in told.stderr
        assert "Traceback" not in told.stderr
    assert not list(tmp_path.iterdir())


def test_the_other_archive_is_remembered_by_its_whole_path(tmp_path: Path) -> None:
    routes = {"/": page("/a"), "/a": ok(BODY), "/2": page("/b"), "/b": ok(BODY)}
    with RawServer(routes) as server:
        crawl(tmp_path / "one", server.url())
        told = archiver(
            *("crawl", server.url("/2"), "-o", "two", "--dedup-from", "one", "--max-urls", "1", "--rate", "0"),
            cwd=tmp_path,
        )
        assert told.returncode == ExitCode.LIMIT, told.stderr
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (tmp_path / "two/dedup.db").write_bytes(b"broken" * 999)
        told = archiver("resume", str(tmp_path / "two"), "--max-urls", "0", cwd=elsewhere)
        assert told.returncode == ExitCode.DONE, told.stderr
        assert list(refers(tmp_path / "two")) == ["b"]
        (tmp_path / "one").rename(tmp_path / "three")
        told = archiver("resume", "two", cwd=tmp_path)
        assert told.returncode == ExitCode.USAGE
        assert f"{tmp_path / 'one'}: there is no such file" in told.stderr


Names = dict[str, tuple[str, str, str]]  # of each URL's path: URL, date and id of a record


def refers(directory: Path) -> Names:
    """What each revisit names."""
    return _names(directory, "revisit", ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Refers-To"))


def originals(directory: Path) -> Names:
    """What each response says of itself."""
    return _names(directory, "response", ("WARC-Target-URI", "WARC-Date", "WARC-Record-ID"))


def _names(directory: Path, kind: str, names: tuple[str, str, str]) -> Names:
    found: Names = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == kind:
                    header = record.rec_headers.get_header
                    url, date, record_id = (header(name) or "" for name in names)
                    found[header("WARC-Target-URI").split("/", 3)[3]] = url, date, record_id
    return found


def test_across_crawls(tmp_path: Path) -> None:
    routes = {
        "/": page("/a", "/b"),
        "/a": ok(BODY),
        "/b": ok(OTHER),
        "/2": page("/c", "/d", "/e"),
        "/c": ok(BODY),
        "/d": ok(BODY + b"."),
        "/e": ok(OTHER),
    }
    with RawServer(routes) as server:
        crawl(tmp_path / "one", server.url())
        there = originals(tmp_path / "one")
        before = {path: path.read_bytes() for path in (tmp_path / "one").rglob("*") if path.is_file()}
        crawl(tmp_path / "two", server.url("/2"), dedup_from=(str(tmp_path / "one"),))
        crawl(tmp_path / "three", server.url("/2"), dedup_from=(str(tmp_path / "one/indexes/index.cdxj"),))
        (tmp_path / "alone.cdxj").write_bytes((tmp_path / "one/indexes/index.cdxj").read_bytes())
        crawl(tmp_path / "four", server.url("/2"), dedup_from=(str(tmp_path / "alone.cdxj"),))
        (tmp_path / "one/archive").rename(tmp_path / "one/elsewhere")
    assert refers(tmp_path / "two") == {"c": there["a"], "e": there["b"]}
    assert refers(tmp_path / "three") == refers(tmp_path / "two")
    seconds = {name: (url, f"{date[:19]}Z", "") for name, (url, date, _) in there.items()}
    assert refers(tmp_path / "four") == {"c": seconds["a"], "e": seconds["b"]}
    assert {path: path.read_bytes() for path in before if "archive" not in path.parts} == {
        path: data for path, data in before.items() if "archive" not in path.parts
    }
