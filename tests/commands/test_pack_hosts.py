"""`archiver pack --host`: a package with the records of some hosts, and with what their revisits need to replay."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.handmade_collections import IDENTICAL
from fixtures.handmade_warc import member, record, sha256
from fixtures.packages import INFO, collection, described, index, members, pages, response, valid
from fixtures.pywb_server import plain_wayback
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page

A, SUB, B = "http://a.example", "http://www.a.example:8080", "http://b.example"
SHARED = b"<title>The same on both</title>"
OTHER = "127.0.0.2"


def visit(url: str, body: bytes, number: int, path: str = "L") -> list[bytes]:
    """Return the members of a response, its request and its metadata."""
    return [response(url, body, number=number), *beside(url, number, path)]


def beside(url: str, number: int, path: str) -> list[bytes]:
    """Return the members of the request and the metadata of the record with this *number*."""
    named = (("WARC-Target-URI", url), ("WARC-Concurrent-To", f"<urn:uuid:00000000-0000-4000-8000-{number:012}>"))
    return [
        member(record("request", b"GET / HTTP/1.1\r\n\r\n", *named, number=number + 1000)),
        member(record("metadata", f"hopsFromSeed: {path}\r\n".encode(), *named, number=number + 2000)),
    ]


def revisit(url: str, refers: str, number: int) -> list[bytes]:
    """Return the members of a revisit of what is shared."""
    fields = (
        *(("WARC-Target-URI", url), ("WARC-Profile", IDENTICAL), ("WARC-Payload-Digest", sha256(SHARED))),
        *(("WARC-Refers-To-Target-URI", refers), ("WARC-Refers-To-Date", "2020-09-13T12:26:40.123456Z")),
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return [member(record("revisit", head, *fields, number=number)), *beside(url, number, "E")]


HOME = visit(f"{A}/", b"<title>Home of a</title>", 1, "")
LEAF = visit(f"{SUB}/leaf", b"<title>Leaf</title>", 2)
ELSEWHERE = visit(f"{B}/shared", SHARED, 3)
FURTHER = visit(f"{B}/", b"<title>Home of b</title>", 4, "")
REPEATED = revisit(f"{A}/again", f"{B}/shared", 5)
PICTURE = member(record("resource", b"JPEG", ("WARC-Target-URI", f"urn:view:{A}/"), number=6))
LOOKUP, LOOKUP_OF_B = (
    member(record("resource", b"A 192.0.2.1", ("WARC-Target-URI", f"dns:{name}"), number=7))
    for name in ("a.example", "b.example")
)


@pytest.fixture(name="made")
def handmade(tmp_path: Path) -> Path:
    """Hosts in one file and in several; one revisit refers to a record of another host in another file."""
    made = collection(
        tmp_path / "c", [*FURTHER, LOOKUP_OF_B, LOOKUP, *HOME], [*ELSEWHERE, *LEAF], [*REPEATED, PICTURE], FURTHER
    )
    (made / "logs").mkdir()
    (made / "logs/crawl.log").write_text("b.example\n")
    return made


def test_only_what_is_chosen(made: Path) -> None:
    ran = archiver("pack", "c", "--host", "*.a.example", cwd=made.parent)
    assert (ran.returncode, ran.stdout) == (0, "c.wacz\n"), ran.stderr
    assert "packed: 3 WARC files, 6 records in the index, 2 pages" in ran.stderr
    package = made.parent / "c.wacz"
    assert valid(package)
    held = members(package)
    assert {name: data for name, data in held.items() if name.startswith("archive/")} == {
        "archive/hand-00000.warc.gz": b"".join([INFO, LOOKUP, *HOME]),
        "archive/hand-00001.warc.gz": b"".join([INFO, ELSEWHERE[0], *LEAF]),
        "archive/hand-00002.warc.gz": b"".join([INFO, *REPEATED, PICTURE]),
    }
    assert not any(name.startswith("logs/") for name in held)
    assert [each["url"] for each in pages(package)] == [f"{A}/"]
    assert [each["url"] for each in pages(package, "extraPages")] == [f"{SUB}/leaf"]
    assert described(package)["mainPageUrl"] == f"{A}/"
    assert len(index(package)) == 6
    assert sorted(path.name for path in made.parent.iterdir()) == ["c", "c.wacz"]


@pytest.mark.parametrize(
    ("hosts", "urls"),
    [
        (("a.example",), {f"{A}/", f"{A}/again", f"{B}/shared"}),
        (("www.a.example",), {f"{SUB}/leaf"}),
        (("WWW.a.example:8080",), {f"{SUB}/leaf"}),
        (("www.a.example:8080", "b.example"), {f"{SUB}/leaf", f"{B}/", f"{B}/shared"}),
    ],
)
def test_hosts_and_patterns(made: Path, hosts: tuple[str, ...], urls: set[str]) -> None:
    ran = archiver("pack", "c", *(word for host in hosts for word in ("--host", host)), "-o", "p.wacz", cwd=made.parent)
    assert ran.returncode == 0, ran.stderr
    listed = archiver("ls", "p.wacz", cwd=made.parent).stdout.split()
    assert {word for word in listed if word.startswith("http:")} == urls


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("c.example", "c holds no capture of c.example"),
        ("*.www.example", "c holds no capture of *.www.example"),
        ("http://a.example/", "'http://a.example/' is not a host; write it like example.org or *.example.org"),
        ("", "'' is not a host"),
        ("a.*", "'a.*' is not a host"),
    ],
)
def test_what_cannot_be_chosen(made: Path, host: str, told: str) -> None:
    ran = archiver("pack", "c", "--host", host, cwd=made.parent)
    assert (ran.returncode, ran.stdout) == (ExitCode.USAGE, "")
    (line,) = ran.stderr.splitlines()
    assert told in line
    assert [path.name for path in made.parent.iterdir()] == ["c"]


def test_an_existing_package_stays(made: Path) -> None:
    package = made.parent / "c.wacz"
    package.write_bytes(b"mine")
    left = made.parent / "c.wacz.chosen.tmp"
    left.mkdir()
    (left / "of a killed run").touch()
    ran = archiver("pack", "c", "--host", "a.example", cwd=made.parent)
    assert (ran.returncode, package.read_bytes()) == (ExitCode.USAGE, b"mine")
    assert "c.wacz already exists" in ran.stderr
    assert not left.exists()
    assert archiver("pack", "c", "--host", "a.example", "--force", cwd=made.parent).returncode == 0
    assert valid(package)


def view(url: str, text: str, number: int, *kinds: str) -> list[bytes]:
    """Return the members of the records of a view of the page *url*, and of others by browsertrix, in these *kinds*."""
    info = f'{{"url": "{url}", "ts": "2020-09-13T12:26:40.123Z", "title": "Shown: {text}"}}'.encode()
    blocks = {"pageinfo": info, "text": text.encode()}
    return [
        member(
            record(
                "resource", blocks.get(kind, b"JPEG"), ("WARC-Target-URI", f"urn:{kind}:{url}"), number=number + place
            )
        )
        for place, kind in enumerate(kinds)
    ]


def test_views_of_these_hosts_and_no_others(tmp_path: Path) -> None:
    """Whatever file they are in, with the titles and texts that their pages showed, and those by browsertrix too."""
    ours, theirs = ("pageinfo", "text", "view"), ("thumbnail", "fullPage", "fullPageFinal", "textFinal")
    home, leaf = view(f"{A}/", "home", 10, *ours, *theirs), view(f"{SUB}/leaf", "leaf", 20, *ours)
    shared, elsewhere = view(f"{B}/shared", "shared", 30, *ours, *theirs), view(f"{B}/?of={A}/", "odd", 40, *ours)
    collection(tmp_path / "c", [*HOME, *ELSEWHERE, *LEAF], [*shared, *home, *elsewhere], [*leaf], [*shared], REPEATED)
    ran = archiver("pack", "c", "--host", "*.a.example", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    package = tmp_path / "c.wacz"
    assert valid(package)
    assert {name: data for name, data in members(package).items() if name.startswith("archive/")} == {
        "archive/hand-00000.warc.gz": b"".join([INFO, *HOME, ELSEWHERE[0], *LEAF]),
        "archive/hand-00001.warc.gz": b"".join([INFO, *home]),
        "archive/hand-00002.warc.gz": b"".join([INFO, *leaf]),
        "archive/hand-00004.warc.gz": b"".join([INFO, *REPEATED]),
    }
    shown = [*pages(package), *pages(package, "extraPages")]
    assert [(each["url"], each["title"], each["text"]) for each in shown] == [
        (f"{A}/", "Shown: home", "home"),
        (f"{SUB}/leaf", "Shown: leaf", "leaf"),
    ]
    listed = archiver("ls", "c.wacz", cwd=tmp_path).stdout.split()
    expected = {f"urn:{kind}:{A}/" for kind in (*ours, *theirs)} | {f"urn:{kind}:{SUB}/leaf" for kind in ours}
    assert {word for word in listed if word.startswith("urn:")} == expected


def test_in_parts(made: Path) -> None:
    ran = archiver("pack", "c", "--host", "*.a.example", "--split", "1k", cwd=made.parent)
    assert ran.stdout.splitlines() == ["c-001.wacz", "c-002.wacz", "c-003.wacz", "c.json"], ran.stderr


def test_damage_is_left_out_and_named(tmp_path: Path) -> None:
    """That of other hosts is not; a header that cannot be read may be of any."""
    broken, foreign = bytearray(LEAF[0]), bytearray(response(f"{B}/large", Random(1).randbytes(300_000)))
    broken[-1] ^= 1
    foreign[-1] ^= 1
    made = collection(tmp_path / "c", [*HOME, bytes(foreign), *LEAF], [*HOME, b"junk", bytes(broken), *LEAF[1:]])
    ran = archiver("pack", "c", "--host", "*.a.example", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = [line for line in ran.stderr.splitlines() if line.endswith("left out")]
    assert len(said) == 2, ran.stderr
    assert all("hand-00001.warc.gz" in line for line in said)
    held = members(tmp_path / "c.wacz")
    assert held["archive/hand-00000.warc.gz"] == b"".join([INFO, *HOME, *LEAF])
    assert held["archive/hand-00001.warc.gz"] == b"".join([INFO, *HOME, *LEAF[1:]])
    assert made.is_dir()


def test_members_with_several_records_and_files_without_compression(tmp_path: Path) -> None:
    """A member is copied whole; a record without a URL goes with the record that it names."""
    plain = [record("response", b"HTTP/1.1 200 OK\r\n\r\n1", ("WARC-Target-URI", f"{host}/")) for host in (A, B)]
    alone = record("metadata", b"x: y\r\n", ("WARC-Concurrent-To", "<urn:uuid:00000000-0000-4000-8000-000000000001>"))
    alone = alone.replace(b"WARC-Target-URI: http://example.org/1\r\n", b"")
    made = collection(tmp_path / "c", [member(plain[0] + plain[1]), member(plain[1])])
    info = record("warcinfo", b"software: by hand\r\n")
    (made / "archive/plain.warc").write_bytes(b"".join([info, plain[1], plain[0], alone]))
    assert archiver("index", "c", cwd=tmp_path).returncode == 0
    ran = archiver("pack", "c", "--host", "a.example", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    held = members(tmp_path / "c.wacz")
    assert held["archive/hand-00000.warc.gz"] == INFO + member(plain[0] + plain[1])
    assert held["archive/plain.warc"] == b"".join([info, plain[0], alone])


@pytest.fixture(name="site")
def two_hosts() -> Iterator[RawServer]:
    shared = ok(b"body { color: red }" * 100, "text/css")
    routes: dict[str, Route] = {}
    with RawServer(routes, hosts=("127.0.0.1", OTHER)) as server:
        first, second = server.url(), server.url("/", OTHER)
        routes.update(
            {
                "//127.0.0.1/": ok(page("First", [second, f"{first}style.css"])),
                "//127.0.0.1/style.css": shared,
                f"//{OTHER}/": ok(page("Second", [f"{second}style.css"])),
                f"//{OTHER}/style.css": shared,
            }
        )
        yield server


@pytest.mark.replay
@pytest.mark.slow
def test_pywb_replays_the_hosts_of_a_crawl(tmp_path: Path, site: RawServer) -> None:
    """Also the revisit whose payload was stored for the other host."""
    first, second = site.url(), site.url("/", OTHER)
    crawl(tmp_path / "c", first, second, min_free_disk=0)
    kept, left = (second, first) if revisits(tmp_path / "c", second) else (first, second)
    assert revisits(tmp_path / "c", kept)
    ran = archiver("pack", "c", "--host", kept.split("/")[2], "-o", "p.wacz", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert valid(tmp_path / "p.wacz")
    assert [each["url"] for each in pages(tmp_path / "p.wacz")] == [kept]
    stored = sum(path.stat().st_size for path in warcs(tmp_path / "c"))
    assert sum(len(data) for name, data in members(tmp_path / "p.wacz").items() if name.startswith("archive/")) < stored
    manager = str(Path(sys.executable).with_name("wb-manager"))
    for words in (("init", "theirs"), ("add", "--unpack-wacz", "theirs", "p.wacz")):
        subprocess.run([manager, *words], cwd=tmp_path, check=True, capture_output=True)
    with plain_wayback(tmp_path / "collections" / "theirs") as pywb:
        assert pywb.get(kept).status == 200
        assert (pywb.get(f"{kept}style.css").status, pywb.get(f"{kept}style.css").body) == (
            200,
            b"body { color: red }" * 100,
        )
        assert pywb.get(left).status == 404


def revisits(collection_: Path, prefix: str) -> bool:
    """Return True if the style of the host *prefix* is a revisit."""
    return "warc/revisit" in archiver("ls", str(collection_), f"{prefix}style.css", cwd=collection_).stdout
