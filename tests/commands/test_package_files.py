"""`archiver replay` and `archiver verify` of a package: what is in it is shown, and what is wrong with it is told."""

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from archiver.collection.reindex import rebuild
from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.handmade_warc import member, record
from fixtures.packages import response
from fixtures.pywb_server import archiver_replay

HOME, OTHER = "http://example.org/", "http://example.org/other"
PAGES = {HOME: b"<title>home</title><p>home", OTHER: b"<title>other</title><p>other"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    (folder / "c" / "archive").mkdir(parents=True)
    for number, (url, body) in enumerate(PAGES.items()):
        info = member(record("warcinfo", b"software: by hand\r\n", number=100 + number))
        path = folder / "c" / "archive" / f"hand-{number:05}.warc.gz"
        path.write_bytes(info + response(url, body, number=number))
    rebuild(folder / "c")
    assert archiver("pack", "c", cwd=folder).returncode == ExitCode.DONE
    return folder / "c.wacz"


def remade(package: Path, to: Path, change: Callable[[str, bytes], bytes | None], *, packed: bool = False) -> Path:
    """*package* with other members: those for which *change* gives None are left out."""
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(to, "w", kind) as new:
        for info in old.infolist():
            data = change(info.filename, old.read(info))
            if data is not None:
                new.writestr(info.filename, data)
    return to


def same(_name: str, data: bytes) -> bytes:
    return data


def findings(path: Path) -> tuple[int, Mapping[str, int]]:
    ran = archiver("verify", path.name, "--json", cwd=path.parent)
    told = json.loads(ran.stdout)
    assert str(path.parent) not in ran.stdout.replace(path.name, "")
    assert "/tmp/" not in json.dumps([fault["file"] for fault in told["findings"]])
    return ran.returncode, told["codes"]


@pytest.mark.replay
@pytest.mark.parametrize("packed", [False, True])
def test_replay_of_a_package(package: Path, tmp_path: Path, *, packed: bool) -> None:
    """Each page, from WARC files that lie in it as they are, and from some that are compressed once more."""
    given = remade(package, tmp_path / "given.wacz", same, packed=packed)
    before = given.read_bytes()
    with archiver_replay(given) as wayback:
        assert wayback.collection == "given"
        for url, body in PAGES.items():
            answer = wayback.get(url)
            assert (answer.status, answer.body) == (200, body)
    assert sorted(tmp_path.iterdir()) == [given]
    assert given.read_bytes() == before


@pytest.mark.replay
def test_replay_of_a_warc_file(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as whole:
        name = next(name for name in whole.namelist() if name.endswith("00001.warc.gz"))
        (tmp_path / "one.warc.gz").write_bytes(whole.read(name))
    with archiver_replay(tmp_path / "one.warc.gz") as wayback:
        assert wayback.collection == "one"
        assert wayback.get(OTHER).body == PAGES[OTHER]
        assert wayback.get(HOME).status == 404


def test_verify_of_a_package(package: Path, tmp_path: Path) -> None:
    """A sound one has no fault, also with its WARC files compressed once more; others may be named with it."""
    given = Path(shutil.copy(package, tmp_path))
    code, counts = findings(given)
    assert (code, {"no-frontier", "index-missing"} & counts.keys()) == (ExitCode.DONE, set())
    remade(package, tmp_path / "packed.wacz", same, packed=True)
    ran = archiver("verify", "packed.wacz", given.name, "--json", cwd=tmp_path)
    files = json.loads(ran.stdout)["files"]
    assert (ran.returncode, len(files)) == (ExitCode.DONE, 4)
    assert {each["file"].partition("/archive/")[0].rpartition("/")[2] for each in files} == {"packed.wacz", given.name}


def _spoiled(data: bytes) -> bytes:
    return data[:400] + bytes([data[400] ^ 1]) + data[401:]


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (
            lambda name, data: _spoiled(data) if name.endswith("00001.warc.gz") else data,
            {"package-file", "gzip-broken"},
        ),
        (lambda name, data: None if name.endswith("00001.warc.gz") else data, {"package-list", "index-file"}),
        (lambda name, data: data + b" " if name == "datapackage.json" else data, {"package-list"}),
        (lambda name, data: None if name.startswith("datapackage") else data, {"package-list"}),
        (lambda name, data: data + b"{}" if name.startswith("pages/") else data, {"package-file"}),
        (lambda name, data: None if name.startswith("indexes/") else data, {"package-list", "package-index"}),
        (lambda name, data: b"nonsense" if name.startswith("indexes/") else data, {"package-file"}),
        (lambda name, data: b"" if name.endswith("00001.warc.gz") else data, {"no-record", "index-file"}),
    ],
)
def test_what_is_wrong_with_a_package(
    package: Path, tmp_path: Path, change: Callable[[str, bytes], bytes | None], codes: set[str]
) -> None:
    code, counts = findings(remade(package, tmp_path / "given.wacz", change))
    assert code == ExitCode.FAULTS
    assert codes <= counts.keys()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 and no more", b"no zip at all" * 100, None],
)
def test_what_is_no_package(tmp_path: Path, content: bytes | None) -> None:
    """A report, too, and so is a bomb."""
    if content is None:
        with zipfile.ZipFile(tmp_path / "given.wacz", "w", zipfile.ZIP_DEFLATED) as bomb:
            bomb.writestr("archive/a.warc", bytes(100 << 20))
    else:
        (tmp_path / "given.wacz").write_bytes(content)
    assert findings(tmp_path / "given.wacz") == (ExitCode.FAULTS, {"unreadable": 1})
