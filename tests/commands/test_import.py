"""`archiver import`: what comes in is what was there, to the byte; what is wrong is told; nothing is harmed by it."""

import gzip
import hashlib
import json
import shutil
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.cli import entry
from archiver.collection.imports import imported_files
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.model import ExitCode
from archiver.tools.ingest.names import collection_name, file_name, safe
from archiver.tools.verify.collection import verify
from archiver.tools.wacz.contents import read_contents
from archiver.warc import writer
from archiver.warc.cdxj import lookup_key
from fixtures.forks import Forks
from fixtures.handmade_warc import Collection, member, record
from fixtures.steps import IMPORTING

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello"


def warc(*numbers: int, wrap: Callable[[bytes], bytes] = member) -> bytes:
    """A sound file of foreign origin, with an answer for each of *numbers*."""
    return b"".join(
        [
            wrap(record("warcinfo", b"software: other\r\n", number=1000 + numbers[0])),
            *(wrap(record("response", ANSWER + b"%d" % number, number=number)) for number in numbers),
        ]
    )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wacz(path: Path, files: dict[str, bytes], **more: object) -> Path:
    """A package of *files*, with the list of them."""
    listed = [
        {"name": Path(name).name.lower(), "path": name, "hash": f"sha256:{sha256(data)}", "bytes": len(data)}
        for name, data in files.items()
    ]
    package = json.dumps({"profile": "data-package", "wacz_version": "1.1.1", "resources": listed} | more).encode()
    digest = json.dumps({"path": "datapackage.json", "hash": f"sha256:{sha256(package)}"}).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**files, "datapackage.json": package, "datapackage-digest.json": digest}.items():
            file.writestr(name, data)
    return path


PAGES = b'{"format": "json-pages-1.0", "id": "pages", "title": "All"}\n'


def contents(number: int = 1) -> dict[str, bytes]:
    return {"archive/data.warc.gz": warc(number), "indexes/index.cdx": b"x\n", "pages/pages.jsonl": PAGES}


def archived(directory: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()) for path in (directory / "archive").iterdir()}


def unlisted(directory: Path) -> set[str]:
    """The imported files of which no index has a line."""
    text = "".join(path.read_text() for path in (directory / "indexes").glob("*.cdxj"))
    return {each.name for each in imported_files(Layout(directory)) if f'"{each.name}"' not in text}


def index(directory: Path) -> list[dict[str, str]]:
    text = (directory / "indexes" / "index.cdxj").read_text()
    assert text.splitlines() == sorted(set(text.splitlines()))
    return [json.loads(line.split(" ", 2)[2]) for line in text.splitlines()]


@pytest.fixture(name="here")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bring(*arguments: str | Path) -> int:
    return entry.run(["import", *map(str, arguments)])


def test_files_packages_folders_and_collections(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.warc.gz").write_bytes(warc(1))
    (here / "b.warc").write_bytes(warc(2, wrap=bytes))
    (here / "folder" / "deep").mkdir(parents=True)
    (here / "folder" / "deep" / "c.warc.gz").write_bytes(warc(3))
    (here / "folder" / "notes.txt").write_text("no archive")
    wacz(here / "folder" / "d.wacz", contents(4))
    (here / "other" / "archive").mkdir(parents=True)
    (here / "other" / "archive" / "e.warc.gz").write_bytes(warc(5))
    assert bring("a.warc.gz", "b.warc", "folder", "other", "-o", "all") == ExitCode.DONE
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "archive/a.warc.gz: 2 records of a.warc.gz"
    assert "archive/data.warc.gz: 2 records of folder/d.wacz: archive/data.warc.gz" in out
    assert archived(Path("all")) == {
        "a.warc.gz": sha256(warc(1)),
        "b.warc": sha256(warc(2, wrap=bytes)),
        "c.warc.gz": sha256(warc(3)),
        "data.warc.gz": sha256(warc(4)),
        "e.warc.gz": sha256(warc(5)),
    }
    assert [entry["url"] for entry in index(Path("all"))] == [f"http://example.org/{number}" for number in range(1, 6)]
    assert verify([Path("all")]).ok
    told = {each.name: each for each in imported_files(Layout(Path("all")))}
    assert told["data.warc.gz"].source == str(here / "folder" / "d.wacz")
    assert told["data.warc.gz"].member == "archive/data.warc.gz"
    assert (Path("all") / told["data.warc.gz"].package / "pages" / "pages.jsonl").read_bytes() == PAGES
    assert all(each.sha256 == archived(Path("all"))[each.name] and each.indexed for each in told.values())


def test_the_directory_is_named_after_the_first_file(here: Path) -> None:
    (here / "my crawl.warc.gz").write_bytes(warc(1))
    assert bring("my crawl.warc.gz") == ExitCode.DONE
    assert archived(here / "collections" / "my_crawl") == {"my_crawl.warc.gz": sha256(warc(1))}


def test_what_is_there_is_known_by_its_bytes_and_never_overwritten(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "one").mkdir()
    (here / "a.warc.gz").write_bytes(warc(1))
    (here / "same.warc.gz").write_bytes(warc(1))
    (here / "one" / "A.warc.gz").write_bytes(warc(2))
    assert bring("a.warc.gz", "-o", "c") == ExitCode.DONE
    assert bring("a.warc.gz", "same.warc.gz", "one/A.warc.gz", "-o", "c") == ExitCode.DONE
    assert archived(Path("c")) == {
        "a.warc.gz": sha256(warc(1)),
        f"A-{sha256(warc(2))[:8]}.warc.gz": sha256(warc(2)),
    }
    assert "same.warc.gz: already imported as a.warc.gz" in capsys.readouterr().out
    assert len(index(Path("c"))) == 2
    wacz(here / "p.wacz", {"archive/x.warc.gz": warc(3), "archive/sub/x.warc.gz": warc(3)})
    assert bring("p.wacz", "-o", "c") == ExitCode.DONE
    assert len(archived(Path("c"))) == 3


def test_into_the_collection_of_a_crawl(here: Path) -> None:
    """Its index and its frontier stay as they are; the new file is no fault to verify."""
    collection = Collection(here / "c", surt=lookup_key)
    (here / "a.warc.gz").write_bytes(warc(7))
    before = verify([collection.folder]).counts
    assert bring("a.warc.gz", "-o", "c") == ExitCode.DONE
    assert set(collection.lines) <= set(collection.index.read_text().splitlines(keepends=True))
    assert len(index(collection.folder)) == len(collection.lines) + 1
    report = verify([collection.folder])
    assert report.ok
    assert "warc-unknown" not in report.counts
    assert set(before) <= set(report.counts)
    path = here / "c" / "archive" / "a.warc.gz"
    path.write_bytes(path.read_bytes()[:-1])
    assert "file-changed" in verify([collection.folder]).counts
    path.unlink()
    assert "import-missing" in verify([collection.folder]).counts


def test_a_lost_index_is_made_of_all_files(here: Path) -> None:
    (here / "a.warc.gz").write_bytes(warc(1))
    (here / "b.warc.gz").write_bytes(warc(2))
    assert bring("a.warc.gz", "-o", "c") == ExitCode.DONE
    (here / "c" / "indexes" / "index.cdxj").unlink()
    assert bring("b.warc.gz", "-o", "c") == ExitCode.DONE
    assert len(index(Path("c"))) == 2


def test_not_while_somebody_works_in_the_collection(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.warc.gz").write_bytes(warc(1))
    (here / "c" / "archive").mkdir(parents=True)
    lock = Lock(here / "c" / "crawl.lock")
    try:
        assert bring("a.warc.gz", "-o", "c") == ExitCode.USAGE
    finally:
        lock.release()
    assert "is working in it" in capsys.readouterr().err
    assert archived(Path("c")) == {}


def test_no_room(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said before a byte is copied."""
    with (here / "a.warc").open("wb") as file:
        file.write(b"WARC/1.1\r\n")
        file.truncate(1 << 42)
    assert bring("a.warc", "-o", "c") == ExitCode.STORAGE
    assert "4398046511104 bytes" in capsys.readouterr().err
    assert archived(Path("c")) == {}


WRONG = ("WARC-Block-Digest", f"sha256:{'0' * 64}")
DAMAGED = {
    "cut": (warc(1, 2)[:-9], "gzip-cut"),
    "broken in the middle": (warc(1) + b"\0" * 40 + warc(2), "not-gzip"),
    "a wrong digest": (warc(1) + member(record("response", ANSWER, WRONG, number=5)), "block-digest"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_what_is_damaged_comes_in_as_it_is_and_is_told(
    here: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, code = DAMAGED[what]
    (here / "a.warc.gz").write_bytes(data)
    assert bring("a.warc.gz", "--strict", "-o", "c") == ExitCode.FAULTS
    assert archived(Path("c")) == {}
    assert bring("a.warc.gz", "-o", "c") == ExitCode.FAULTS
    assert "a.warc.gz:" in capsys.readouterr().err
    assert archived(Path("c")) == {"a.warc.gz": sha256(data)}
    [told] = imported_files(Layout(Path("c")))
    assert code in told.faults
    assert index(Path("c"))


DOUBTS: dict[str, Callable[[Path], Path]] = {
    "nothing that lists": lambda path: spoilt(path, without="datapackage.json"),
    "does not match datapackage-digest.json": lambda path: spoilt(path, changed={"datapackage.json": b"{}"}),
    "pages/pages.jsonl does not match": lambda path: spoilt(path, changed={"pages/pages.jsonl": b"{}\n"}),
    "archive/data.warc.gz does not match": lambda path: spoilt(path, changed={"archive/data.warc.gz": warc(9)}),
    "lists 'pages/pages.jsonl', which is not in it": lambda path: spoilt(path, without="pages/pages.jsonl"),
    "does not list 'archive/more.warc.gz'": lambda path: spoilt(path, changed={"archive/more.warc.gz": warc(8)}),
    "more.warc.gz: not a WARC or WACZ file: it is empty; left out": lambda path: spoilt(
        path, changed={"archive/more.warc.gz": b""}
    ),
}


def spoilt(path: Path, without: str = "", changed: dict[str, bytes] | None = None) -> Path:
    """A package that is not what its list says."""
    with zipfile.ZipFile(wacz(path, contents())) as file:
        held = {name: file.read(name) for name in file.namelist() if name != without}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**held, **(changed or {})}.items():
            file.writestr(name, data)
    return path


@pytest.mark.parametrize("words", DOUBTS)
def test_a_package_that_is_not_what_it_says(here: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    DOUBTS[words](here / "p.wacz")
    assert bring("p.wacz", "--strict", "-o", "c") == ExitCode.FAULTS
    assert archived(Path("c")) == {}
    assert bring("p.wacz", "-o", "c") == ExitCode.FAULTS
    assert words.replace("nothing that lists", "it has no datapackage.json") in capsys.readouterr().err
    assert archived(Path("c"))


def test_a_damaged_paper_of_a_package_keeps_nothing_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """But it is told; a damaged archive comes in as it lies there, unless it is packed and cannot be unpacked."""
    whole = wacz(here / "p.wacz", contents()).read_bytes()
    (here / "p.wacz").write_bytes(whole.replace(PAGES, PAGES.replace(b"All", b"Alt"), 1))
    assert bring("p.wacz", "-o", "c") == ExitCode.FAULTS
    assert "pages/pages.jsonl cannot be unpacked" in capsys.readouterr().err
    assert archived(Path("c")) == {"data.warc.gz": sha256(warc(1))}
    (here / "q.wacz").write_bytes(whole.replace(warc(1), warc(1)[:-1] + b"x", 1))
    assert bring("q.wacz", "-o", "d") == ExitCode.FAULTS
    assert "q.wacz: archive/data.warc.gz does not match datapackage.json" in capsys.readouterr().err
    assert archived(Path("d")) == {"data.warc.gz": sha256(warc(1)[:-1] + b"x")}
    with zipfile.ZipFile(here / "r.wacz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.warc", gzip.decompress(warc(1)))
        place = file.getinfo("archive/data.warc").header_offset + 80
    packed = bytearray((here / "r.wacz").read_bytes())
    packed[place] ^= 255
    (here / "r.wacz").write_bytes(packed)
    assert bring("r.wacz", "-o", "e") == ExitCode.USAGE
    assert "r.wacz: archive/data.warc cannot be unpacked" in capsys.readouterr().err
    assert not Path("e").exists() or not archived(Path("e"))


def zipped(names: list[str], compress: int = zipfile.ZIP_STORED, data: bytes = b"x") -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        with zipfile.ZipFile(path, "w", compress) as file:
            for name in names:
                info = zipfile.ZipInfo("archive/a.warc.gz")
                info.filename, info.compress_type = name, compress
                file.writestr(info, data)
        return path

    return make


def patched(old: bytes, new: bytes) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        path.write_bytes(wacz(path, contents()).read_bytes().replace(old, new))
        return path

    return make


def written(data: bytes) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        path.write_bytes(data)
        return path

    return make


def overlapping(path: Path) -> Path:
    """Two names for one place."""
    data = wacz(path, {"archive/a.warc.gz": warc(1), "archive/b.warc.gz": warc(1)}).read_bytes()
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    path.write_bytes(data[: second + 42] + data[first + 42 : first + 46] + data[second + 46 :])
    return path


REFUSED: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "leads out of the package": ("p.wacz", zipped(["archive/../../a.warc.gz"])),
    "its name leads out": ("p.wacz", zipped(["/archive/a.warc.gz"])),
    "name leads out of the": ("p.wacz", zipped(["archive/a.warc.gz", "c:/a"])),
    "its name occurs twice": ("p.wacz", patched(b"indexes/index.cdx", b"pages/pages.jsonl"[:17])),
    "it overlaps another member": ("p.wacz", overlapping),
    "neither stored nor deflated": ("p.wacz", zipped(["archive/a.warc.gz"], zipfile.ZIP_BZIP2)),
    "a ZIP bomb: ": ("p.wacz", zipped(["archive/a.warc"], zipfile.ZIP_DEFLATED, b"\0" * (70 << 20))),
    ": a ZIP bomb: ": ("p.wacz", zipped(["archive/a.warc", "pages/b"], zipfile.ZIP_DEFLATED, b"\0" * (33 << 20))),
    "perhaps the download was incomplete": (
        "p.wacz",
        lambda path: written(wacz(path, contents()).read_bytes()[:-30])(path),
    ),
    "not a WACZ": ("p.wacz", zipped(["a.txt"])),
    "begins like a ZIP file, but cannot be read": ("p.wacz", written(b"PK\x03\x04 and no more")),
    "it has no complete record": ("a.arc", written(b"filedesc://a.arc 0.0.0.0 2020 text/plain 76\n1 0 x\n")),
    "an ARC file, which a package must not contain": (
        "p.wacz",
        zipped(["archive/a.warc.gz"], data=member(b"filedesc://a")),
    ),
    "it is empty": ("a.warc.gz", written(b"")),
    "not a WARC or WACZ file: it begins with": ("a.txt", written(b"words")),
    "no complete record": ("a.warc.gz", written(member(b"WARC/1.1 and no more"))),
    "a multi-WACZ without packages": ("a.json", written(b'{"profile": "multi-wacz-package", "resources": []}')),
    "nor the JSON of a multi-WACZ": ("a.json", written(b'{"resources": []}')),
    "is not in the same folder": (
        "a.json",
        written(b'{"profile": "multi-wacz-package", "resources": [{"path": "https://a.b/x.wacz"}]}'),
    ),
    "download it first": (
        "a.json",
        written(b'{"profile": "multi-wacz-package", "resources": [{"path": "../x.wacz"}]}'),
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_imported_is_refused_in_one_line(
    here: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, make = REFUSED[words]
    (here / "sound.warc.gz").write_bytes(warc(1))
    path = make(here / name)
    assert bring("sound.warc.gz", path, "-o", "c") == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"archiver: {path}")
    assert words in captured.err
    assert not (here / "c" / "archive").exists() or archived(Path("c")) == {}
    assert not (here / "c" / "imports.json").exists()


def test_an_encrypted_member(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(wacz(here / "p.wacz", contents()).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (here / "p.wacz").write_bytes(data)
    assert bring("p.wacz", "-o", "c") == ExitCode.USAGE
    assert "it is encrypted" in capsys.readouterr().err


def test_places_that_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.warc.gz").write_bytes(warc(1))
    (here / "empty").mkdir()
    (here / "home").mkdir()
    (here / "home" / "letter.txt").write_text("dear")
    assert bring("missing.warc.gz") == ExitCode.USAGE
    assert bring("https://example.org/a.wacz") == ExitCode.USAGE
    assert bring("empty") == ExitCode.USAGE
    assert bring("a.warc.gz", "-o", "home") == ExitCode.USAGE
    assert bring("a.warc.gz", "-o", "a.warc.gz") == ExitCode.USAGE
    assert bring("a.warc.gz", "-o", "c") == ExitCode.DONE
    assert bring("c", "-o", "c") == ExitCode.USAGE
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("archiver: ")]
    assert len(said) == 6
    assert said[1].endswith("a.wacz: no such file or directory; download it first, for example with curl -O")
    assert not (here / "collections").exists()


def test_a_package_of_packages(here: Path) -> None:
    wacz(here / "one.wacz", contents(1))
    wacz(here / "two.wacz", contents(2))
    told = {"profile": "multi-wacz-package", "resources": [{"path": "one.wacz"}, {"name": "two.wacz"}]}
    (here / "all.json").write_text(json.dumps(told))
    assert bring("all.json", "-o", "c") == ExitCode.DONE
    assert sorted(archived(Path("c")).values()) == sorted([sha256(warc(1)), sha256(warc(2))])


@pytest.mark.parametrize(
    ("name", "compressed", "wanted"),
    [
        ("a.warc.gz", True, "a.warc.gz"),
        ("A B.warc", False, "A_B.warc"),
        ("a.warc", True, "a.warc.gz"),
        ("a.warc.gz", False, "a.warc"),
        ("a.gz", True, "a.warc.gz"),
        ("a.warc.gz.open", True, "a.warc.gz"),
        ("a", False, "a.warc"),
        ("..", True, "import.warc.gz"),
        ("-rf.warc", False, "rf.warc"),
        (".hidden.warc", False, "hidden.warc"),
        ("é\u202e\n.warc", False, "import.warc"),
        ("x" * 500 + ".warc", False, "x" * 180 + ".warc"),
        ("TAKEN.warc", False, "TAKEN-00000000.warc"),
    ],
)
def test_names(name: str, wanted: str, *, compressed: bool) -> None:
    assert file_name(name, "0" * 64, {"taken.warc"}, compressed=compressed) == wanted


def test_names_of_collections(here: Path) -> None:
    assert collection_name(here / "a.wacz") == "a"
    assert collection_name(here / "other" / "archive") == "other"
    assert collection_name(Path("/")) == "imported"
    assert safe("../../etc/passwd") == "etc_passwd"


SHARED = member(warc(2, 3, wrap=bytes))  # each record gets its own member on the way


@pytest.fixture(name="begun", scope="module")
def a_collection_and_what_comes_into_it(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    (folder / "base.warc.gz").write_bytes(warc(1))
    (folder / "a.warc.gz").write_bytes(SHARED)
    wacz(folder / "p.wacz", contents(4))
    assert forks.run("import", "base.warc.gz", "-o", "c", cwd=folder).code == ExitCode.DONE
    return folder


@pytest.mark.parametrize("step", [step.name for step in IMPORTING])
def test_killed_at_each_step_and_called_again(tmp_path: Path, begun: Path, forks: Forks, step: str) -> None:
    """Nothing has a name that is not whole, and the second call does what is left."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    ran = forks.run("import", "p.wacz", "a.warc.gz", "-o", "c", cwd=tmp_path, step=step)
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
    whole = {sha256(warc(1)), sha256(warc(2, 3, wrap=writer.member)), sha256(warc(4))}
    named = {name: digest for name, digest in archived(tmp_path / "c").items() if not name.endswith(".tmp")}
    assert set(named.values()) <= whole
    assert [entry["url"][-1] for entry in index(tmp_path / "c")] in (["1"], ["1", "2", "3", "4"])
    report = verify([tmp_path / "c"])
    assert report.ok, report.findings
    packed, left = read_contents(tmp_path / "c").warcs, unlisted(tmp_path / "c") & named.keys()
    assert {each.path.name for each in packed} == named.keys() - left
    assert bool(left) == ("import-unfinished" in report.counts)
    again = forks.run("import", "p.wacz", "a.warc.gz", "-o", "c", cwd=tmp_path)
    assert again.code == ExitCode.DONE, again.said
    assert set(archived(tmp_path / "c").values()) == whole
    assert len(archived(tmp_path / "c")) == 3
    assert [entry["url"][-1] for entry in index(tmp_path / "c")] == ["1", "2", "3", "4"]
    assert all(each.indexed for each in imported_files(Layout(tmp_path / "c")))
    assert len(imported_files(Layout(tmp_path / "c"))) == 3
    assert [path.read_bytes() for path in (tmp_path / "c" / "imports" / "originals").iterdir()] == [SHARED]
    assert not list((tmp_path / "c" / "indexes").glob("run-*"))
    assert verify([tmp_path / "c"]).ok
