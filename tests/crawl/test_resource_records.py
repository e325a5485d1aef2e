"""What is stored beside the visits: each look-up of a name once, and at the end of a run the crawl's own papers."""

import asyncio
import hashlib
import json
import re
import shutil
import socket
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from cdxj_indexer.main import CDXJIndexer
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.writer import WarcIdentity
from archiver.crawl import commit, metadata_warc
from archiver.crawl.metadata_warc import MetadataPart, MetadataWarc
from archiver.errors import ArchiveError, ConfigError
from archiver.fetch.dns import GuardedResolver
from archiver.fetch.name_servers import Resolver
from archiver.fetch.private_networks import AddressGuard, ResolveResult
from archiver.model import ExitCode
from fixtures.archives import resources, rows, warcs
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl, settings
from fixtures.pywb_server import archiver_replay
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

RECORDS = (
    "SELECT uri, timestamp, mime, resources.digest, name, offset, length FROM resources JOIN warcs ON warcs.id = warc"
)
PLACE = "metadata://archiver.invalid/crawl/"


class Names(Resolver):
    """Every name leads to this machine; some by a second address too, at which nobody answers."""

    asked: tuple[str, ...] = ()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        Names.asked += (host,)
        places = [("127.0.0.1", socket.AF_INET)] + [("::1", socket.AF_INET6)] * host.startswith("two.")
        return [
            ResolveResult(hostname=host, host=place, port=port, family=kind, proto=0, flags=0) for place, kind in places
        ]

    async def close(self) -> None:
        pass


def site(server: RawServer) -> tuple[str, ...]:
    """Three hosts, one of them without a name."""
    server.routes = {"/": ok(page("Front", ["/a", "/b", "/c"])), **{f"/{name}": ok(page(name)) for name in "abc"}}
    return tuple(server.url(host=host) for host in ("one.example", "two.example", "127.0.0.1"))


def store(directory: Path, *seeds: str) -> str:
    return asyncio.run(metadata_warc.stored(directory, settings(*seeds)))


def types(path: Path) -> list[tuple[str, str]]:
    with path.open("rb") as file:
        return [(each.rec_type, each.rec_headers.get_header("WARC-Target-URI") or "") for each in ArchiveIterator(file)]


def indexed(directory: Path, scratch: Path) -> list[bytes]:
    """The lines of the index, which are those that cdxj-indexer writes."""
    CDXJIndexer(str(scratch), [str(path) for path in warcs(directory)], sort=True).process_all()
    lines = (directory / "indexes" / "index.cdxj").read_bytes().splitlines()
    assert lines == scratch.read_bytes().splitlines()
    return lines


@pytest.fixture(autouse=True)
def one_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep visits from the slow writer, which would make a second file on a busy machine."""
    monkeypatch.setattr(commit, "DEAR", 600.0)


def test_look_ups_and_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look-up once, before the first visit that used it; the same index live, restored, rebuilt and by others."""
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: Names())
    directory, scratch = tmp_path / "c", tmp_path / "theirs"
    Names.asked = ()
    with RawServer() as server:
        seeds = site(server)
        assert crawl(directory, *seeds, allow_private=("127.0.0.1", "::1")).code is ExitCode.DONE
    (path,) = warcs(directory)
    found = types(path)
    lookups = [place for place, (kind, _) in enumerate(found) if kind == "resource"]
    assert sorted(found[place][1] for place in lookups) == ["dns:one.example", "dns:two.example"]
    assert sorted(Names.asked) == ["one.example", "two.example"]
    for place in lookups:
        host = found[place][1].removeprefix("dns:")
        visited = [uri for kind, uri in found if kind == "response" and f"//{host}:" in uri]
        assert found[place + 1] == ("response", visited[0])
    blocks = dict(resources(directory))
    assert re.fullmatch(rb"[0-9]{14}\none.example.\tIN\tA\t127.0.0.1\n", blocks["dns:one.example"])
    assert blocks["dns:two.example"].endswith(b"\ntwo.example.\tIN\tA\t127.0.0.1\ntwo.example.\tIN\tAAAA\t::1\n")
    indexed(directory, scratch)

    name = store(directory, *seeds)
    assert re.fullmatch(r"archiver-\d{17}-00001-.+-meta\.warc\.gz", name)
    whole = indexed(directory, scratch)
    for each in warcs(directory):
        with each.open("rb") as file:
            assert all(record.verify_block_digest() for record in FastIterator(file, parse_http=False))
    known = sorted(rows(directory, RECORDS))
    (directory / "indexes" / "index.cdxj").unlink()
    assert crawl(directory, *seeds, resume=True).code is ExitCode.DONE
    assert indexed(directory, scratch) == whole
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    (copy / "crawl.db").unlink()
    assert archiver("rebuild", "copy", cwd=tmp_path).returncode == 0
    assert sorted(rows(copy, RECORDS)) == known
    assert indexed(copy, scratch) == whole
    assert store(directory, *seeds) == ""
    checked = archiver("verify", "c", cwd=tmp_path)
    assert "0 faults, 0 warnings" in checked.stdout, checked.stdout
    with closing(sqlite3.connect(copy / "crawl.db")) as db:
        db.execute("UPDATE resources SET mime = 'text/html' WHERE uri = 'dns:one.example'")
        db.execute("DELETE FROM resources WHERE uri = 'dns:two.example'")
        db.execute(f"UPDATE resources SET offset = offset + 1 WHERE uri = '{PLACE}seeds.txt'")
        db.commit()
    checked = archiver("verify", "copy", cwd=tmp_path)
    codes = re.findall(r"fault ([a-z-]+): .*\[(.*)\]", checked.stdout)
    assert sorted(codes) == [
        ("capture-mismatch", "dns:one.example"),
        ("capture-missing", "dns:two.example"),
        ("capture-missing", f"{PLACE}seeds.txt"),
        ("capture-place", f"{PLACE}seeds.txt"),
    ]
    with archiver_replay(directory) as wayback:
        assert wayback.get(f"{seeds[0]}a").status == 200
        listed = wayback.get("cdx?url=dns:two.example&output=json", moment="")  # of which it shows no page
        assert json.loads(listed.body)["mime"] == "text/dns"
        assert wayback.get(f"{PLACE}seeds.txt").body.decode().split() == [*seeds]


def test_each_line_of_the_log_is_stored_once(tmp_path: Path) -> None:
    with RawServer() as server:
        seed = site(server)[2]
        crawl(tmp_path, seed)
    log = tmp_path / "logs" / "crawl.log"
    first = log.read_bytes()

    def parts() -> list[tuple[str, bytes]]:
        found = [(uri.partition("?")[2], block) for uri, block in resources(tmp_path) if "/crawl.log?" in uri]
        return [(query.partition("&")[2], block) for query, block in found]

    assert store(tmp_path, seed)
    assert store(tmp_path, seed) == ""
    with log.open("ab") as file:
        file.write(first)  # as a run that was killed leaves it, and then one that ended
    assert store(tmp_path, seed)
    size = len(first)
    expected = [(f"from=0&to={size}", first), (f"from={size}&to={2 * size}", first)]
    assert parts() == expected
    log.write_bytes(first[:24].replace(b"2", b"1") + first[24:] * 3)  # rotated: another log, and a longer one
    assert store(tmp_path, seed)
    expected.append((f"from=0&to={log.stat().st_size}", log.read_bytes()))
    assert parts() == expected
    log.unlink()
    assert store(tmp_path, seed) == ""
    (tmp_path / "crawl.toml").write_text("# changed\n")
    assert store(tmp_path, seed)
    assert parts() == expected


def test_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every finished file with its size, sum and warcinfo; and what was too long."""
    monkeypatch.setattr(metadata_warc, "LARGEST", 10)
    with RawServer() as server:
        seed = site(server)[2]
        crawl(tmp_path, seed, warc_size=3000)
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "a b.html").write_bytes(b"<p>")
    (reports / "long.tsv").write_bytes(b"x" * 11)
    (reports / "half.tmp").write_bytes(b"x")
    (reports / "link.txt").symlink_to(tmp_path / "crawl.db")
    files = warcs(tmp_path)
    assert len(files) > 1
    name = store(tmp_path, seed)
    with (tmp_path / "archive" / name).open("rb") as file:
        blocks = [(each.rec_type, each.raw_stream.read().decode()) for each in ArchiveIterator(file)]
    kind, manifest = blocks[-1]
    assert kind == "metadata"
    expected = []
    for path in files:
        with path.open("rb") as file:
            warcinfo = next(ArchiveIterator(file)).rec_headers.get_header("WARC-Record-ID")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        expected.append(f"warc: {path.name} {path.stat().st_size} sha256:{digest} {warcinfo}")
    assert manifest.splitlines() == [*expected, "left-out: reports/long.tsv 11"]
    assert [uri for uri, _ in resources(tmp_path) if "/reports/" in uri] == [f"{PLACE}reports/a%20b.html"]


def begun(folder: Path) -> MetadataWarc:
    identity = WarcIdentity("test", "host", 1, "sha256", (("software", "a test"),))
    return MetadataWarc(folder, identity, 0, 1_795_000_000_000_000, lambda: "<urn:uuid:0>")


def test_a_long_log_is_streamed(tmp_path: Path) -> None:
    log = tmp_path / "crawl.log"
    with log.open("wb") as file:
        file.truncate(48 << 20)
    folder = tmp_path / "archive"
    folder.mkdir()
    warc = begun(folder)
    tracemalloc.start()
    try:
        warc.add(MetadataPart("logs/crawl.log", "text/plain", log, 0, 48 << 20))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    warc.finish(())
    assert warc.name().closed
    assert most < 8 << 20


def test_what_fails_takes_no_room(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    (tmp_path / "log").write_bytes(b"short")
    warc = begun(folder)
    with pytest.raises(ArchiveError, match="log: it was cut short while it was stored: 5 bytes are missing"):
        warc.add(MetadataPart("logs/crawl.log", "text/plain", tmp_path / "log", 0, 10))
    warc.discard()
    assert list(folder.iterdir()) == []


def test_who_goes_on_at_once_stores_them_later(tmp_path: Path) -> None:
    Layout(tmp_path).make()
    lock = Lock(tmp_path / "crawl.lock")
    try:
        with pytest.raises(ConfigError, match=r"process [0-9]+ on .*; wait until it ends, or stop it"):
            store(tmp_path, "http://one.example/")
    finally:
        lock.release()
    assert warcs(tmp_path) == []


def test_a_look_up_is_told_once() -> None:
    async def main() -> None:
        resolver = GuardedResolver(AddressGuard(("127.0.0.1",), ()), Names())
        await resolver.resolve("one.example", 80)
        first = resolver.answer("one.example.", 80)
        assert first is not None
        assert resolver.answer("one.example", 443) is None
        assert first is resolver.answer("one.example", 80)
        lookup = first.take()
        assert lookup is not None
        assert (lookup.host, lookup.addresses) == ("one.example", ("127.0.0.1",))
        assert first.take() is None
        await resolver.resolve("one.example", 80)  # when the first was forgotten
        second = resolver.answer("one.example", 80)
        assert second is not None
        assert second.take() is not None

    asyncio.run(main())


def test_it_can_be_left_out(tmp_path: Path) -> None:
    with RawServer() as server:
        seed = site(server)[2]
        ran = archiver("crawl", seed, "-o", "c", "--rate", "0", "--no-metadata-warc", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert len(warcs(tmp_path / "c")) == 1
