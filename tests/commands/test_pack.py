"""A WACZ file holds the collection as it is, and the reference tool finds it valid."""

import gzip
import json
import sys
from base64 import b64decode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from zipfile import ZipFile

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from zlib_ng import zlib_ng

from archiver.cli.entry import run
from archiver.collection.lock import Lock
from archiver.crawl.reader_process import ReaderProcess
from archiver.errors import ArchiveError
from archiver.model import ExitCode
from archiver.tools.wacz.contents import read_contents
from archiver.tools.wacz.pack import PackOptions, pack
from archiver.tools.wacz.zip import PackageWriter
from fixtures.crawl_in_process import crawl
from fixtures.handmade_warc import member, record
from fixtures.packages import HTML, collection, described, index, looked_up, members, notes, pages, response, valid
from fixtures.rawserver import RawServer
from fixtures.sites import oddities, ok, page

Pack = Callable[..., Path]

SITE = "http://example.org"
LONG = "x " * 200_000


@pytest.fixture(name="packed")
def packed_by_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """`archiver pack ARGUMENTS`, in this process; the files that it names."""
    monkeypatch.chdir(tmp_path)

    def pack_it(*arguments: str) -> list[str]:
        capsys.readouterr()  # what the reference tool says is not asked for
        assert run(("pack", *arguments)) == ExitCode.DONE, capsys.readouterr().err
        return capsys.readouterr().out.splitlines()

    return pack_it


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(("pack", *arguments)) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    return line


def wish(output: Path, **given: object) -> PackOptions:
    return PackOptions(output, "archiver/0", "2026-01-02T03:04:05Z", "A title", **given)  # type: ignore[arg-type]


def test_a_crawl(tmp_path: Path, packed: Callable[..., list[str]]) -> None:
    site = oddities()
    routes = {
        **site.routes,
        "/": ok(page("404", ["/odd", "/cyrillic", *site.routes], ["/i.gif"])),
        "/odd": ok("<title>a\u2028b&#x85;c\u202e 'd' </title><p>\U0001f600"),
        "/cyrillic": ok("<title>Привет</title>мир".encode("cp1251"), "text/html; charset=windows-1251"),
    }
    with RawServer(routes) as server:
        crawl(tmp_path / "Grüße (1)", server.url("/"), warc_size=4000, min_free_disk=0)
        start = server.url("/")
    assert packed("Grüße (1)") == ["Grüße (1).wacz"]
    made = tmp_path / "Grüße (1).wacz"
    assert valid(made)
    held = members(made)
    warcs = {f"archive/{path.name}": path.read_bytes() for path in (tmp_path / "Grüße (1)/archive").iterdir()}
    assert {name: data for name, data in held.items() if name.startswith("archive/")} == warcs
    assert len(warcs) > 2
    assert held["indexes/index.cdx"] == (tmp_path / "Grüße (1)/indexes/index.cdxj").read_bytes()
    assert held["logs/crawl.log"] == (tmp_path / "Grüße (1)/logs/crawl.log").read_bytes()
    (seed,) = pages(made)
    assert (seed["url"], seed["title"], seed["seed"]) == (start, "404", True)
    found = {row["url"].removeprefix(start): row for row in pages(made, "extraPages")}
    assert found["odd"]["title"] == "a b…c\u202e 'd'"
    assert found["odd"]["text"] == "\U0001f600"
    assert (found["cyrillic"]["title"], found["cyrillic"]["text"]) == ("Привет", "мир")
    assert {"chain/0", "relative", "cut", "empty"} <= set(found)  # as far as they came
    assert not {"moved", "gone", "broken", "i.gif", "wrong-type", "no-content", "dead-link"} & set(found)
    said = described(made)
    assert (said["title"], said["mainPageUrl"], said["mainPageDate"]) == ("Grüße (1)", start, seed["ts"])
    assert not list(tmp_path.glob("*.tmp"))


FOUND = {  # hop path (None: no metadata record), media type and body; whether it is a page, and a seed
    "seed": ("", HTML, b"<p>a", "seed"),
    "moved-seed": ("RR", HTML, b"<p>a", "seed"),
    "picture-as-seed": ("", "image/gif", b"GIF89a", "seed"),
    "link": ("L", HTML, b"<p>a", "page"),
    "moved-link": ("LLR", HTML, b"<p>a", "page"),
    "of-sitemap": ("MM", HTML, b"<p>a", "page"),
    "xhtml": ("L", "application/xhtml+xml", b"<html xmlns='http://www.w3.org/1999/xhtml'/>", "page"),
    "no-type": ("L", "*/*\r\nX: y", b"<p>a", ""),
    "frame": ("LE", HTML, b"<p>a", ""),
    "link-in-frame": ("LEL", HTML, b"<p>a", "page"),
    "guess": ("LX", HTML, b"<p>a", ""),
    "robots": ("P", HTML, b"<p>a", ""),
    "picture": ("L", "image/gif", b"GIF89a", ""),
    "lie": ("L", HTML, b"GIF89a", ""),
    "feed": ("L", HTML, b"<?xml version='1.0'?><rss></rss>", ""),
}


def test_what_is_a_page(tmp_path: Path) -> None:
    parts = []
    for number, (name, (path, mime, body, _)) in enumerate(FOUND.items(), 1):
        parts += [response(f"{SITE}/{name}", body, number=number, head=mime), notes(path, number)]
    stock = read_contents(collection(tmp_path / "c", parts))
    (made,) = pack(wish(tmp_path / "c.wacz"), stock, ReaderProcess())
    wanted = {kind: {name for name, row in FOUND.items() if row[3] == kind} for kind in ("seed", "page")}
    assert {row["url"].rpartition("/")[2] for row in pages(made.path)} == wanted["seed"]
    assert {row["url"].rpartition("/")[2] for row in pages(made.path, "extraPages")} == wanted["page"]
    assert (made.seeds, made.pages) == (len(wanted["seed"]), len(wanted["page"]))


def test_archives_of_others(tmp_path: Path) -> None:
    """Without a word on how they were found, HTML answers are pages, and the first of each host stands for it."""
    gone = response(f"{SITE}/gone", b"<p>a", number=4, status=404)
    parts = [response(f"{SITE}/a", b"<title>1", number=1), response(f"{SITE}/b.css", b"", number=2, head="text/css")]
    parts += [response(f"{SITE}/c", b"<title>2", number=3), gone, response("http://other.example", b"<p>", number=5)]
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(collection(tmp_path / "c", parts)), ReaderProcess())
    assert [row["url"] for row in pages(made.path)] == [f"{SITE}/a", "http://other.example"]
    assert [row["url"] for row in pages(made.path, "extraPages")] == [f"{SITE}/c"]
    assert valid(made.path)


def test_html_resources_are_pages(tmp_path: Path) -> None:
    def file(number: int, name: str, mime: str, body: bytes) -> bytes:
        return member(record("resource", body, ("WARC-Target-URI", name), ("Content-Type", mime), number=number))

    text = "<title>Grüße</title>".encode("latin-1")
    parts = [
        file(1, f"{SITE}/a.html", "text/html; charset=latin-1", text),
        file(2, f"{SITE}/b.html", "text/html", b"GIF89a"),
        file(3, f"{SITE}/c.txt", "text/plain", text),
        file(4, "metadata://example.org/d", "text/html", text),
    ]
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(collection(tmp_path / "c", parts)), ReaderProcess())
    assert valid(made.path)
    (row,) = pages(made.path)
    assert (row["url"], row["title"], row["seed"], made.pages) == (f"{SITE}/a.html", "Grüße", True, 0)


def test_titles_and_texts(tmp_path: Path) -> None:
    """Numbers as titles, none at all, long ones; a page that came again has the title that it had."""
    chunked = "text/html\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip"
    packed_body = gzip.compress(b"<title>packed</title>")
    parts = [response(f"{SITE}/{number}", b"<title>%d</title>" % number, number=number) for number in range(1, 130)]
    parts += [
        response(f"{SITE}/none", b"<p>", number=200),
        response(f"{SITE}/long", f"<title>{LONG}</title>{LONG}".encode(), number=201),
        response(f"{SITE}/coded", b"%x\r\n%b\r\n0\r\n\r\n" % (len(packed_body), packed_body), number=202, head=chunked),
        response(f"{SITE}/bomb", gzip.compress(b"a" * 9_000_000), number=203, head=f"{HTML}\r\nContent-Encoding: gzip"),
        response(f"{SITE}/marked", b"\xff\xfe" + "<title>é".encode("utf-16-le"), number=204),
    ]
    again = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    digest = ("WARC-Payload-Digest", f"sha256:{sha256(b'<title>7</title>').hexdigest()}")
    parts += [
        member(record("revisit", again, ("WARC-Target-URI", f"{SITE}/again"), digest, number=205)),
        member(record("revisit", b"HTTP/1.1 304 X\r\n\r\n", ("WARC-Target-URI", f"{SITE}/304"), digest, number=206)),
    ]
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(collection(tmp_path / "c", parts)), ReaderProcess())
    assert valid(made.path)
    found = {row["url"].rpartition("/")[2]: row for row in [*pages(made.path), *pages(made.path, "extraPages")]}
    assert "title" not in found["none"]
    assert len(found["long"]["title"]) == 499
    assert 100_000 < len(found["long"]["text"]) <= 102_400
    assert (found["coded"]["title"], found["marked"]["title"], found["again"]["title"]) == ("packed", "é", "7")
    assert len(found["bomb"]["text"]) == 102_400
    assert "304" not in found
    (bare,) = pack(wish(tmp_path / "bare.wacz", text=False), read_contents(tmp_path / "c"), ReaderProcess())
    rows = [*pages(bare.path), *pages(bare.path, "extraPages")]
    assert rows
    assert not any("text" in row for row in rows)


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    stock = read_contents(collection(tmp_path / "c", [response(f"{SITE}/", b"<title>a"), notes("")]))
    packs = [
        pack(wish(tmp_path / f"{number}.wacz"), stock, ReaderProcess())[0].path.read_bytes() for number in range(2)
    ]
    assert packs[0] == packs[1]


def test_nothing_captured(tmp_path: Path) -> None:
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(collection(tmp_path / "c", [])), ReaderProcess())
    assert valid(made.path)
    assert (made.captures, made.seeds, index(made.path), pages(made.path)) == (0, 0, [], [])


def test_where_it_goes(tmp_path: Path, packed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    directory = collection(tmp_path / "c", [response(f"{SITE}/")])
    (tmp_path / "other").mkdir()
    assert packed("c/") == ["c.wacz"]
    assert packed(str(directory), "-o", "other") == ["other/c.wacz"]
    assert packed("c", "-o", "other/x y.wacz", "--title", "T", "--description", "D") == ["other/x y.wacz"]
    said = described(tmp_path / "other/x y.wacz")
    assert (said["title"], said["description"], said["profile"]) == ("T", "D", "data-package")
    monkeypatch.chdir(directory / "archive")
    assert packed("..", "--force") == [str(tmp_path / "c.wacz")]
    assert {path.name for path in directory.iterdir()} == {"archive", "indexes"}


def test_a_collection_that_changes_meanwhile(tmp_path: Path) -> None:
    stock = read_contents(collection(tmp_path / "c", [response(f"{SITE}/")]))
    lines = (tmp_path / "c/indexes/index.cdxj").read_bytes()
    for path, data in ((stock.indexes[0], b""), (stock.warcs[0].path, b"x")):
        path.write_bytes(data)
        with pytest.raises(ArchiveError, match="it changed while it was packed"):
            pack(wish(tmp_path / "c.wacz"), stock, ReaderProcess())
        assert [each.name for each in tmp_path.iterdir()] == ["c"]
        stock.indexes[0].write_bytes(lines)


def test_logs_of_earlier_crawls(tmp_path: Path) -> None:
    directory = collection(tmp_path / "c", [])
    for place in ("logs", "crawls/20260102030405/logs"):
        (directory / place).mkdir(parents=True)
        (directory / place / "crawl.log").write_text(place)
        (directory / place).with_name("crawl.db").touch()  # without one it would be no crawl
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(directory), ReaderProcess())
    assert valid(made.path)
    assert {name: data for name, data in members(made.path).items() if name.startswith("logs/")} == {
        "logs/crawl.log": b"logs",
        "logs/crawl-20260102030405.log": b"crawls/20260102030405/logs",
    }


def many(count: int) -> list[str]:
    """URLs with what makes keys hard to search: siblings that sort before a slash, and captures of one second."""
    words = ("a", "a-b", "a.html", "a/", "a/b", "a!", "aa", "a?x=1", "a/?x=1")
    return [f"{SITE}/{number % 1500:05}{words[number % len(words)]}" for number in range(count)]


def test_a_large_index_is_searched_as_a_small_one(tmp_path: Path) -> None:
    directory = collection(tmp_path / "c", [response(f"{SITE}/")])
    (line,) = (directory / "indexes/index.cdxj").read_text().splitlines()
    _, _, said = line.split(" ", 2)
    from archiver.warc.cdxj import lookup_key  # noqa: PLC0415

    lines = sorted(
        {f"{lookup_key(url)} {20260101000000 + number // 40} {said}\n" for number, url in enumerate(many(16_000))}
    )
    (directory / "indexes/index.cdxj").write_text("".join(lines[::2]))
    (directory / "indexes/run-x.cdxj").write_text("".join([*lines[1::2], *lines[-1:]]))
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(directory), ReaderProcess())
    assert valid(made.path)
    held = members(made.path)
    assert "indexes/index.cdx" not in held
    plain = [text.encode() for text in lines]
    assert index(made.path) == plain
    begins = [row.split(b" {")[0] for row in held["indexes/index.idx"].splitlines()[1:]]
    assert len(begins) >= 4
    assert len(set(begins)) == len(begins)
    keys = [text.split(b" ")[0] for text in plain]
    for wanted in {*keys[::1999], b"org,example)/nothing"}:
        assert looked_up(held, wanted) == [text for key, text in zip(keys, plain, strict=True) if key == wanted]
    known = set(keys)
    for begin in begins[1:]:  # what replayweb.page looks for with a slash at its end is not parted from its key
        first = begin.split(b" ")[0]
        assert not {first[:end] for end in range(len(first)) if first[end : end + 1] < b"/"} & known


def test_several_packages(tmp_path: Path, packed: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for number in range(1, 7):
        film = response(f"{SITE}/f{number}", Random(number).randbytes(280_000), number=number, head="video/mp4")
        files.append([film, response(f"{SITE}/p{number}", b"<title>a</title>%d" % number, number=10 + number)])
    collection(tmp_path / "c", *files)
    *parts, description = packed("c", "--split", "900k", "--title", "Éé")
    assert parts == [f"c-{number:03}.wacz" for number in range(1, len(parts) + 1)]
    assert len(parts) >= 2
    seen: list[str] = []
    lines: list[bytes] = []
    for part in parts:
        path = tmp_path / part
        assert path.stat().st_size <= 900_000
        assert valid(path)
        seen += [name for name in members(path) if name.startswith("archive/")]
        lines += index(path)
        others = [other["filename"] for other in described(path)["relation"]["requires"]]
        assert others == [name for name in parts if name != part]
    assert seen == [f"archive/hand-{number:05}.warc.gz" for number in range(6)]
    assert sorted(lines) == (tmp_path / "c/indexes/index.cdxj").read_bytes().splitlines(keepends=True)
    said = json.loads((tmp_path / description).read_text())
    assert (said["profile"], said["title"]) == ("multi-wacz-package", "Éé")
    for part, row in zip(parts, said["resources"], strict=True):
        data = (tmp_path / part).read_bytes()
        assert row == {
            "name": part,
            "path": part,
            "hash": f"sha256:{sha256(data).hexdigest()}",
            "bytes": len(data),
        }
    assert packed("c", "--split", "1G") == ["c.wacz"]
    assert "relation" not in described(tmp_path / "c.wacz")
    assert run(("pack", "c", "--force")) == ExitCode.DONE
    assert "c-001.wacz: left over from an earlier package" in capsys.readouterr().err


def test_where_a_file_alone_is_too_large_its_pages_keep_their_texts(
    tmp_path: Path, packed: Callable[..., list[str]]
) -> None:
    collection(tmp_path / "c", [response(f"{SITE}/", b"<p>words to be found")])
    assert packed("c", "--split", "1") == ["c.wacz"]
    assert [row["text"] for row in pages(tmp_path / "c.wacz")] == ["words to be found"]


def test_logs_of_packages_that_were_imported_go_on_with_them(tmp_path: Path, packed: Callable[..., list[str]]) -> None:
    collection(tmp_path / "c", [response(f"{SITE}/")])
    for folder, name in (("a-1", "crawl.log"), ("b-2", "crawl.log"), ("b-2", "pages.txt"), ("b-2", "ragged.csv")):
        log = tmp_path / "c" / "imports" / folder / "logs" / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"1,2\n{folder}\n")
    (made,) = packed("c")
    assert valid(tmp_path / made)
    logs = {name: data for name, data in members(tmp_path / made).items() if name.startswith("logs/")}
    assert list(logs) == ["logs/crawl.log", "logs/b-2-crawl.log", "logs/pages.txt"]
    assert logs["logs/crawl.log"] == b"1,2\na-1\n"


def test_what_lies_elsewhere_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A revisit of what another collection holds is of no use in a package by itself."""
    monkeypatch.chdir(tmp_path)
    common = (("WARC-Target-URI", f"{SITE}/"), ("WARC-Payload-Digest", "sha256:" + 64 * "0"))
    again = member(record("revisit", b"HTTP/1.1 200 X\r\n\r\n", *common, number=7))
    collection(tmp_path / "c", [again])
    (tmp_path / "c" / "crawl.toml").write_text(f'dedup-from = ["{tmp_path}/april"]\n')
    assert run(("pack", "c")) == ExitCode.DONE
    first, second = capsys.readouterr().err.splitlines()
    assert f"that only {tmp_path}/april holds" in first
    assert f"archiver import {tmp_path}/april c -o ALL" in first
    assert second.startswith("packed: 1 WARC file, 1 record in the index, ")
    collection(tmp_path / "april", [again])  # a file of that name is in the other by now
    assert run(("pack", "c", "--force")) == ExitCode.DONE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_signature_holds(tmp_path: Path, packed: Callable[..., list[str]]) -> None:
    collection(tmp_path / "c", [response(f"{SITE}/")])
    keys = []
    for arguments in (("--key", "k.pem"), ("--key", "k.pem"), ("--sign",)):
        (name,) = packed("c", "--force", *arguments)
        assert valid(tmp_path / name)
        held = members(tmp_path / name)
        digest = json.loads(held["datapackage-digest.json"])
        signed = digest["signedData"]
        assert set(signed) == {"hash", "created", "software", "version", "signature", "publicKey"}
        assert signed["hash"] == digest["hash"] == f"sha256:{sha256(held['datapackage.json']).hexdigest()}"
        assert signed["created"] == json.loads(held["datapackage.json"])["created"]
        key = serialization.load_der_public_key(b64decode(signed["publicKey"]))
        assert isinstance(key, ec.EllipticCurvePublicKey)
        raw = b64decode(signed["signature"])
        r, s = int.from_bytes(raw[:48]), int.from_bytes(raw[48:])
        key.verify(utils.encode_dss_signature(r, s), signed["hash"].encode(), ec.ECDSA(hashes.SHA256()))
        keys.append(signed["publicKey"])
    assert keys[0] == keys[1] != keys[2]
    assert (tmp_path / "k.pem").stat().st_mode & 0o777 == 0o600 or sys.platform == "win32"


def test_what_is_damaged_is_packed_and_told(
    tmp_path: Path, packed: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [response(f"{SITE}/{number}", b"<title>%d" % number, number=number) for number in range(1, 4)]
    directory = collection(tmp_path / "c", parts)
    warc = next((directory / "archive").iterdir())
    data = bytearray(warc.read_bytes())
    data[data.index(parts[1]) + 60] ^= 0xFF
    warc.write_bytes(data + b"and more")
    (directory / "archive/notes.txt").write_text("x")
    assert run(("pack", "c")) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out == "c.wacz\n"
    assert "c/archive/notes.txt: left out" in err
    assert "c/archive/hand-00000.warc.gz: at offset" in err
    assert "its bytes are packed as they are" in err
    assert "archiver verify c" in err
    assert members(tmp_path / "c.wacz")[f"archive/{warc.name}"] == warc.read_bytes()
    listed = [*pages(tmp_path / "c.wacz"), *pages(tmp_path / "c.wacz", "extraPages")]
    assert [row["title"] for row in listed] == ["1", "3"]


def test_uncompressed_files_and_names_of_all_kinds(tmp_path: Path) -> None:
    directory = collection(tmp_path / "c", [response(f"{SITE}/")])
    plain = gzip.decompress(response(f"{SITE}/plain", b"<title>p"))
    for name in ("My File(1) ü.warc", "my file[1] ü.warc"):
        (directory / "archive" / name).write_bytes(plain)
    assert run(("index", str(directory))) == ExitCode.DONE
    (made,) = pack(wish(tmp_path / "c.wacz"), read_contents(directory), ReaderProcess())
    assert valid(made.path)
    assert members(made.path)["archive/My File(1) ü.warc"] == plain
    with ZipFile(made.path) as package:
        assert len({row["name"] for row in described(made.path)["resources"]}) == len(package.namelist()) - 2


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {  # what is done to the collection; what the line must say
    "no archive": (lambda c: (c / "archive").rename(c / "x"), "it has no archive/"),
    "no WARC": (lambda c: (c / "archive/hand-00000.warc.gz").unlink(), "has no WARC file to pack"),
    "no index": (lambda c: (c / "indexes/index.cdxj").unlink(), "make it with: archiver index c"),
    "cut off": (lambda c: (c / "archive/b.warc.gz.open").touch(), "archiver resume c, or close the file"),
    "unlisted": (
        lambda c: (c / "archive/b.warc.gz").write_bytes(response(f"{SITE}/b")),
        "b.warc.gz: the index has none of its records; rebuild it with: archiver index c",
    ),
    "unknown": (
        lambda c: (c / "archive/hand-00000.warc.gz").rename(c / "archive/b.warc.gz"),
        "names 'hand-00000.warc.gz', which is missing",
    ),
    "garbage": (lambda c: (c / "indexes/x.cdxj").write_text("zz nonsense\n"), "a line that is not CDXJ"),
    "unsorted": (
        lambda c: (c / "indexes/index.cdxj").write_bytes(
            b"z" + (c / "indexes/index.cdxj").read_bytes() + (c / "indexes/index.cdxj").read_bytes()
        ),
        "is not sorted; rebuild it",
    ),
    "endless line": (lambda c: (c / "indexes/x.cdxj").write_bytes(b"z" * (1 << 20)), "has a line of more than"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_packed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil, said = REFUSED[name]
    spoil(collection(tmp_path / "c", [response(f"{SITE}/")]))
    assert said in refusal(capsys, "c")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_what_is_asked_for_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    directory = collection(tmp_path / "c", [response(f"{SITE}/")])
    (tmp_path / "c.wacz").write_text("precious")
    assert "c.wacz already exists; choose another name with -o, or replace it with --force" in refusal(capsys, "c")
    assert "must end with .wacz" in refusal(capsys, "c", "-o", "c.zip")
    assert "there is no directory x" in refusal(capsys, "c", "-o", "x/c.wacz")
    assert "--split: 0 is too small" in refusal(capsys, "c", "-o", "d.wacz", "--split", "0")
    assert "--split: " in refusal(capsys, "c", "-o", "d.wacz", "--split", "much")
    assert "not a PEM private key of curve P-384" in refusal(capsys, "c", "-o", "d.wacz", "--key", "c.wacz")
    assert "x does not exist" in refusal(capsys, "x")
    lock = Lock(directory / "crawl.lock")
    try:
        assert "stop that first" in refusal(capsys, "c", "-o", "d.wacz")
    finally:
        lock.release()
    assert (tmp_path / "c.wacz").read_text() == "precious"
    assert not list(tmp_path.glob("d*"))


def test_members_are_compressed_by_the_quick_compressor(tmp_path: Path) -> None:
    """It is set in a way that `zipfile` does not promise."""
    text = b"".join(b"line %d\n" % (number * number) for number in range(10_000))
    with (tmp_path / "p.wacz").open("w+b") as draft:
        package = PackageWriter(draft)
        package.add("pages/pages.jsonl", [text[:100], text[100:]])
        package.finish({"created": "2026-11-24T00:00:00Z"}, None)
    quick = zlib_ng.compressobj(5, zlib_ng.DEFLATED, -15)
    with ZipFile(tmp_path / "p.wacz") as opened:
        assert opened.read("pages/pages.jsonl") == text
        size = opened.getinfo("pages/pages.jsonl").compress_size
    assert size == len(quick.compress(text[:100]) + quick.compress(text[100:]) + quick.flush())
