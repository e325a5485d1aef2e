"""`archiver import` of what nobody can replay as it is: every record comes in to the byte, and so does the file."""

import gzip
import hashlib
import itertools
import json
import shutil
import struct
import sys
import zipfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

from archiver.cli import entry
from archiver.collection.imports import imported_files
from archiver.collection.layout import Layout
from archiver.model import ExitCode
from archiver.tools.ingest.streams import ZstdStream
from archiver.tools.verify.collection import verify
from archiver.tools.wacz.signature import SignatureStatus, Signer, check_signature
from archiver.warc import arc
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import read_records
from fixtures.handmade_warc import member, record

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-TYPE : text/html\r\n\r\n<p>hello"
LARGE = b"HTTP/1.0 200 OK\r\n\r\n" + bytes(range(256)) * 5000  # more than what is held in memory
RECORDS = (
    record("warcinfo", b"software: other\r\n", number=1000),
    record("response", ANSWER, number=1).replace(b"WARC-Type: ", b"warc-type:  "),
    record("response", LARGE, number=2),
    record("request", b"GET /2 HTTP/1.1\r\n\r\n", number=3),
)
WHOLE = b"".join(RECORDS)
_ABOUT = b"1 0 Other\nURL IP-address Archive-date Content-type Archive-length\n"
DESCRIPTION = b"filedesc://a.arc 0.0.0.0 20010203040506 text/plain %d\n%b\n" % (len(_ABOUT), _ABOUT)


@pytest.fixture(name="here", autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bring(*arguments: str) -> int:
    return entry.run(["import", *arguments, "-o", "c"])


def dictionary() -> Any:
    return zstd.train_dict([b"WARC/1.1 WARC-Type: response %d" % number * 9 for number in range(400)], 2000)


def framed(content: bytes, magic: int = 0x184D2A5D) -> bytes:
    return struct.pack("<II", magic, len(content)) + content


def by_dictionary(*, packed: bool) -> bytes:
    known = dictionary()
    head = framed(zstd.compress(known.dict_content) if packed else known.dict_content)
    return head + b"".join(zstd.compress(each, zstd_dict=known) + framed(b"x", 0x184D2A50) for each in RECORDS)


WARCS: dict[str, Callable[[], bytes]] = {
    "all.warc.gz": lambda: member(WHOLE),
    "two.warc.gz": lambda: member(RECORDS[0]) + member(RECORDS[1] + RECORDS[2]) + member(RECORDS[3]),
    "blocks.warc.gz": lambda: (
        b"".join(member(WHOLE[at : at + 900_000]) for at in range(0, len(WHOLE), 900_000)) + member(b"")
    ),
    "parts.warc.gz": lambda: b"".join(member(each[:90]) + member(each[90:]) for each in RECORDS),
    "plain.warc.zst": lambda: b"".join(map(zstd.compress, RECORDS)),
    "dict.warc.zst": lambda: by_dictionary(packed=False),
    "packed.warc.zst": lambda: by_dictionary(packed=True),
}


def test_records_get_a_place_of_their_own_and_stay_as_they_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, make in WARCS.items():
        (here / name).write_bytes(make())
        shutil.rmtree("c", ignore_errors=True)
        assert bring(name) == ExitCode.DONE
        made = Path(name).with_suffix(".gz").name
        out = capsys.readouterr().out
        assert out == f"archive/{made}: 4 records of {name}; the original is kept as imports/originals/{name}\n"
        path = here / "c" / "archive" / made
        assert gzip.decompress(path.read_bytes()) == WHOLE
        with path.open("rb") as file:
            assert [each.length is not None for each in list(read_records(file))] == [True] * 4
        assert (here / "c" / "imports" / "originals" / name).read_bytes() == make()
        assert len((here / "c" / "indexes" / "index.cdxj").read_text().splitlines()) == 2
        assert bring(name) == ExitCode.DONE
        assert f"{name}: already imported as {made}" in capsys.readouterr().out
        assert verify([here / "c"]).ok
    assert len(imported_files(Layout(here / "c"))) == 1
    (here / "c" / "imports" / "originals" / "packed.warc.zst").write_bytes(b"x")
    assert "file-changed" in verify([here / "c"]).counts
    (here / "c" / "imports" / "originals" / "packed.warc.zst").unlink()
    assert "import-missing" in verify([here / "c"]).counts


def test_without_it_they_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in {"a.arc": DESCRIPTION, **{name: make() for name, make in WARCS.items()}}.items():
        (here / name).write_bytes(data)
        assert bring(name, "--no-convert") == ExitCode.USAGE
        said = capsys.readouterr().err
        assert said.startswith(f"archiver: {name}: ")
        assert "--convert makes a WARC of it" in said
    assert not list((here / "c" / "archive").iterdir())


def test_originals_of_one_name(here: Path) -> None:
    for folder, number in (("x", 1), ("y", 2)):
        (here / folder).mkdir()
        (here / folder / "a.warc.gz").write_bytes(member(RECORDS[number] * 2))
    bring("x", "y")
    kept = sorted(path.read_bytes() for path in (here / "c" / "imports" / "originals").iterdir())
    assert kept == sorted((here / folder / "a.warc.gz").read_bytes() for folder in "xy")


DAMAGED: dict[str, tuple[bytes, bytes, str]] = {
    "a.warc.gz": (gzip.compress(WHOLE)[:-20], b"".join(RECORDS[:3]), "gzip-cut"),
    "b.warc.gz": (
        member(b"".join(RECORDS[:2]) + b"stray" + RECORDS[3]),
        b"".join((*RECORDS[:2], RECORDS[3])),
        "no record",
    ),
    "c.warc.gz": (member(WHOLE[:-4]), WHOLE, "line ends were added"),
    "j.warc.gz": (
        b"".join(member(each[:90]) + member(each[90:]) for each in RECORDS)[:-4],
        b"".join(RECORDS[:3]),
        "ends inside a gzip member",
    ),
    "d.warc.zst": (b"".join(map(zstd.compress, RECORDS))[:-4], b"".join(RECORDS[:3]), "ends inside a frame"),
    "e.warc.zst": (zstd.compress(RECORDS[0]) + b"what is this?", RECORDS[0], "no frame begins"),
    "f.warc.zst": (zstd.compress(RECORDS[0]) + zstd.compress(b"a" * 99)[:-9] + b"?" * 9, RECORDS[0], "zstd data is"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_told_and_all_that_is_whole_comes_in(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, whole, words = DAMAGED[name]
    (here / name).write_bytes(data)
    assert bring(name, "--strict") == ExitCode.FAULTS
    assert not list((here / "c" / "archive").iterdir())
    capsys.readouterr()
    assert bring(name) == ExitCode.FAULTS
    said = capsys.readouterr().err
    assert words in said
    assert gzip.decompress(next((here / "c" / "archive").iterdir()).read_bytes()) == whole
    assert (here / "c" / "imports" / "originals" / name).read_bytes() == data
    assert imported_files(Layout(here / "c"))[0].doubts


def test_zstd_data_that_cannot_be_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    too_large = struct.pack("<II", 0x184D2A5D, 1 << 30) + b"x"
    bomb = framed(zstd.compress(bytes(9 << 20)))
    for data in (too_large, bomb, framed(b"no dictionary"), framed(b"")[:6], zstd.compress(b"no WARC")):
        (here / "a.warc.zst").write_bytes(data)
        assert bring("a.warc.zst") == ExitCode.USAGE
        assert "no complete record" in capsys.readouterr().err
    with (here / "a.warc.zst").open("wb+") as file:
        for each in RECORDS:
            file.write(zstd.compress(each))
        stream = ZstdStream(file)
        assert b"".join(iter(lambda: stream.read(7000), b"")) == WHOLE
        assert stream.read(0) == b""
        with pytest.raises(OSError, match="start"):
            stream.seek(1)


def arc_record(url: str, block: bytes, *, ip: str = "192.0.2.1", mime: str = "text/html", length: int = -1) -> bytes:
    size = len(block) if length < 0 else length
    return f"{url} {ip} 20010203040506 {mime} {size}\n".encode("latin-1") + block + b"\n"


ARC = [
    (arc_record("http://example.org/1", ANSWER), ("response", "http://example.org/1", ANSWER)),
    (arc_record("http://e.org/a b?c=é", LARGE, ip="2001:DB8::1"), ("response", "http://e.org/a%20b?c=%E9", LARGE)),
    (arc_record("dns:example.org", b"1.2.3.4\n", mime="text/dns"), ("resource", "dns:example.org", b"1.2.3.4\n")),
    (arc_record("http://e.org/no-head", b"words", mime="no-type"), ("resource", "http://e.org/no-head", b"words")),
    (arc_record("ftp://e.org/x", b"", ip="0.0.0.0", mime="a/b"), ("resource", "ftp://e.org/x", b"")),
]


@pytest.mark.parametrize("name", ["a.arc", "a.arc.gz", "one.arc.gz"])
def test_an_arc(here: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [DESCRIPTION, *(data for data, _ in ARC)]
    data = b"".join(member(part) if name == "a.arc.gz" else part for part in parts)
    (here / name).write_bytes(gzip.compress(data) if name == "one.arc.gz" else data)
    assert bring(name) == ExitCode.DONE
    assert capsys.readouterr().out.startswith(f"archive/{name.removesuffix('.gz').replace('.arc', '.warc.gz')}: 7 ")
    path = next((here / "c" / "archive").iterdir())
    with path.open("rb") as file:
        found = [
            (each.type, each.first("WARC-Target-URI"), b"".join(each.pieces()), each) for each in read_records(file)
        ]
    assert [each[:3] for each in found[2:]] == [wanted for _, wanted in ARC]
    assert found[1][2].startswith(b"1 0 Other\nURL IP")
    assert [each[3].first("WARC-IP-Address") for each in found[2:]] == [
        "192.0.2.1",
        "2001:db8::1",
        *["192.0.2.1"] * 2,
        None,
    ]
    assert {each[3].first("WARC-Date") for each in found} == {"2001-02-03T04:05:06Z"}
    assert found[5][3].first("Content-Type") == "application/octet-stream"
    assert verify([here / "c"]).ok
    before = path.read_bytes()
    shutil.rmtree("c")
    assert bring(name) == ExitCode.DONE
    assert path.read_bytes() == before, "the same ARC becomes the same bytes"


def test_an_arc_that_is_damaged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What follows a record that is none is found; what is cut is marked."""
    cut = arc_record("http://e.org/cut", ANSWER, length=999)
    (here / "a.arc").write_bytes(
        DESCRIPTION + b"stray\nlines\n" + ARC[0][0] + b"\0" * 100_000 + b"\n" + ARC[2][0] + cut
    )
    assert bring("a.arc") == ExitCode.FAULTS
    said = capsys.readouterr().err
    assert said.count("no ARC record begins here") == 2
    assert "it was imported as far as it goes" in said
    with next((here / "c" / "archive").iterdir()).open("rb") as file:
        found = [(each.first("WARC-Target-URI"), each.first("WARC-Truncated")) for each in read_records(file)]
    assert found[2:] == [
        ("http://example.org/1", None),
        ("dns:example.org", None),
        ("http://e.org/cut", "unspecified"),
    ]


def test_the_second_version_and_lines_that_are_none(here: Path) -> None:
    second = b"http://e.org/ 192.0.2.1 20010203040506 text/html 200 sum - 7 a.arc 3\nabc\n"
    good = [b"filedesc://a 0.0.0.0 200102030405 text/plain 3\n2 0\n", second]
    bad = [
        b"http://e.org/ 192.0.2.1 20011303040506 text/html 3\n",
        b"http://e.org/ 192.0.2.1 2001 text/html 3\n",
        b"words 192.0.2.1 20010203040506 text/html 3\n",
        b"http://e.org/ 192.0.2.1 20010203040506 text/html -1\n",
        b"http://e.org/ 192.0.2.1 20010203040506 " + b"x" * 70_000 + b" 3\n",
        b"\xff" * 70_000,
    ]
    for line in bad:
        (here / "a").write_bytes(good[0] + line + b"\n" + good[1])
        with (here / "a").open("rb") as file:
            first, torn, last = arc.records(file)
        assert isinstance(first, arc.ArcRecord)
        assert first.is_description
        assert isinstance(torn, DamagedRecord)
        assert torn.word == "not-arc"
        assert isinstance(last, arc.ArcRecord)
        assert (last.mime, last.size, last.date) == ("text/html", 3, "2001-02-03T04:05:06Z")
    (here / "a").write_bytes(member(good[0]) + member(b"") + member(good[1])[:-9])
    with (here / "a").open("rb") as file:
        assert [each.word for each in arc.records(file) if isinstance(each, DamagedRecord)] == ["gzip-cut"]


def signed_package(path: Path, change: Callable[[dict[str, str]], object] = lambda _: None) -> str:
    """The bytes of a collection's package, signed, its signed data changed; its hash."""
    (path / "archive").mkdir(parents=True)
    (path / "archive" / "a.warc.gz").write_bytes(member(RECORDS[1]))
    entry.run(["index", str(path)])
    entry.run(["pack", str(path), "--sign"])
    package = path.with_suffix(".wacz")
    with zipfile.ZipFile(package) as file:
        held = {name: file.read(name) for name in file.namelist()}
    digest = json.loads(held["datapackage-digest.json"])
    change(digest["signedData"])
    with zipfile.ZipFile(package, "w") as file:
        for name, data in (held | {"datapackage-digest.json": json.dumps(digest).encode()}).items():
            file.writestr(name, data)
    return str(digest["hash"])


def test_signatures_of_packages(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signed_package(here / "p")
    assert bring("p.wacz", "--strict") == ExitCode.DONE
    assert "p.wacz: the signature is valid: made with the private key of " in capsys.readouterr().err
    assert imported_files(Layout(here / "c"))[0].signature.startswith("the signature is valid")
    signed_package(here / "q", lambda signed: signed.update(signature=b64encode(b"\1" * 96).decode()))
    shutil.rmtree("c")
    assert bring("q.wacz", "--strict") == ExitCode.FAULTS
    assert not list((here / "c" / "archive").iterdir())
    assert bring("q.wacz") == ExitCode.FAULTS
    assert "q.wacz: the signature is not valid: it does not match its key" in capsys.readouterr().err


def test_what_a_signature_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = f"sha256:{hashlib.sha256(b'').hexdigest()}"
    good = dict(Signer("x")(digest, ""))
    assert check_signature(good, digest).status is SignatureStatus.VALID
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    der = key.sign(digest.encode(), ec.ECDSA(hashes.SHA256()))
    of_der = good | {"publicKey": b64encode(public).decode(), "signature": b64encode(der).decode()}
    assert check_signature(of_der, digest).status is SignatureStatus.VALID
    bad: list[object] = [
        *(None, [], {}, "x"),
        *(
            good | {name: value}
            for name, value in itertools.product(("hash", "signature", "publicKey"), (1, "", "é", "eA=="))
        ),
        of_der | {"publicKey": good["publicKey"]},
        {name: value for name, value in good.items() if name != "publicKey"} | {"domainCert": "-----BEGIN"},
    ]
    for each in bad:
        assert check_signature(each, digest).status is SignatureStatus.NOT_VALID, each
    assert check_signature(good, f"sha256:{'0' * 64}").status is SignatureStatus.NOT_VALID
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert str(check_signature(good, digest)).endswith("install it in the checkout with: pip install '.[sign]'")
