"""`archiver get` and `archiver ls`: what people try first, on collections of any origin."""

import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from archiver.cli.entry import run
from archiver.model import ExitCode
from fixtures.command import COMMAND, archiver, environment
from fixtures.handmade_collections import Held, head, revisit
from fixtures.handmade_warc import record, sha256

ROOT = "http://example.org/"
PAGE = b"<p>gr\xfc\xdfe \x00\x1b[31m" * 30
ZIPPED = gzip.compress(PAGE, mtime=0)
CHUNKED = b"%x;a=b\r\n%b\r\n0\r\nT: 1\r\n\r\n" % (len(ZIPPED), ZIPPED)
ODD_HEAD = head("200 Fine", "Text/HTML; charset=latin-1", "Content-Encoding: gzip", "Transfer-Encoding:  chunked")
Get = Callable[..., tuple[int, bytes, str]]


@pytest.fixture(name="there", scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages, a redirect, a revisit without its original, and a record that is no answer; no crawl.db."""
    held = Held(tmp_path_factory.mktemp("held") / "c")
    held.add("https://example.org/", CHUNKED, ODD_HEAD, "20240101000000")
    held.add("https://example.org/", b"older", head(), "20200101000000")
    held.add(ROOT, b"moved", head("301 Moved", "", "Location: https://example.org/"), "20240101000001", "unk")
    held.add("http://example.org/a.png?x=1", b"\x89PNG", head(media="image/png"), mime="image/png")
    held.add("http://example.org/lost", b"gone", head("404 Not Found"))
    held.add("http://\u202eevil.example/\x1b[31m", b"x")
    made = revisit("http://example.org/again", b"elsewhere", "http://elsewhere.example/")
    held.add_record(made, "http://example.org/again", "warc/revisit", b"elsewhere")
    made = record("resource", b"a log", ("WARC-Target-URI", "urn:crawl:log"), ("WARC-Payload-Digest", sha256(b"a log")))
    held.add_record(made, "urn:crawl:log", "text/plain", b"a log")
    return held.write()


@pytest.fixture(name="get")
def got(there: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Get:
    """Exit code, stdout and stderr of a command, carried out in this process."""

    def run_it(name: str, *arguments: str) -> tuple[int, bytes, str]:
        code = run([name, str(there), *arguments])
        out, err = capfdbinary.readouterr()
        return code, out, err.decode()

    return run_it


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["https://example.org/"], PAGE),
        (["https://EXAMPLE.org:443/x/..#top"], PAGE),
        (["example.org"], PAGE),
        (["https://example.org/", "--at", "2020"], b"older"),
        (["https://example.org/", "--at", "2019-02-28T12:00:00+01:00"], b"older"),
        (["https://example.org/", "--raw"], ODD_HEAD + CHUNKED),
        (["https://example.org/", "--headers"], ODD_HEAD),
        ([ROOT], b"moved"),
        (["http://example.org/a.png?x=1"], b"\x89PNG"),
        (["example.org/a.png?x=1"], b"\x89PNG"),
        (["urn:crawl:log"], b"a log"),
        (["urn:crawl:log", "--headers"], b""),
    ],
)
def test_get(get: Get, arguments: list[str], wanted: bytes) -> None:
    assert get("get", *arguments) == (ExitCode.DONE, wanted, "")


def test_get_says_what_it_took_instead(get: Get) -> None:
    """The same key with another scheme, and with www, as pywb would show it."""
    code, out, err = get("get", "http://www.example.org/lost")
    assert (code, out) == (ExitCode.DONE, b"gone")
    assert err == "archiver: there is no capture of http://www.example.org/lost; printing http://example.org/lost\n"


def test_what_is_no_answer_to_a_get_is_found_too(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """By its URL, behind what a GET brought; and where a URL is missed, those most like it are named."""
    held = Held(tmp_path / "c").add("http://example.org/a", b"got").add("http://example.org/form", b"posted")
    held.add("http://example.org/a", b"posted", stamp="20240101000000")
    for number in (1, 2):
        url, _, rest = held.lines[number].partition(" ")
        held.lines[number] = f"{url}?__wb_method=post&x=1 {rest}"
    directory = str(held.write())
    for name, wanted in (("form", b"posted"), ("a", b"got")):
        assert run(["get", directory, f"http://example.org/{name}"]) == ExitCode.DONE
        assert capfdbinary.readouterr().out == wanted
    assert run(["ls", directory, "http://example.org/a"]) == ExitCode.DONE
    assert capfdbinary.readouterr().out.count(b"\n") == 2
    assert run(["get", directory, "http://example.org/from"]) == ExitCode.USAGE
    assert b"similar: http://example.org/form http://example.org/a" in capfdbinary.readouterr().err


@pytest.mark.parametrize("name", ["get", "ls", "verify"])
def test_a_result_that_cannot_be_written(there: Path, name: str) -> None:
    """It is stdout that is named, and the count of what was not read is not told."""
    with Path("/dev/full").open("wb") as full:
        words = [*COMMAND, name, str(there), *(["https://example.org/"] if name == "get" else [])]
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=environment(), check=False)
    assert ran.returncode == ExitCode.STORAGE
    assert ran.stderr.decode() == "archiver: stdout cannot be written: No space left on device\n"


def test_get_record(get: Get, there: Path) -> None:
    """As it stands in the file, without the compression."""
    code, out, _ = get("get", ROOT, "--record")
    assert code == ExitCode.DONE
    assert out in gzip.decompress((there / "archive" / "hand.warc.gz").read_bytes())
    assert out.startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
    assert out.endswith(b"\r\n\r\nmoved\r\n\r\n")


def test_get_into_a_file(get: Get, tmp_path: Path) -> None:
    assert get("get", "example.org", "-o", str(tmp_path / "page")) == (ExitCode.DONE, b"", "")
    assert (tmp_path / "page").read_bytes() == PAGE
    code, _, err = get("get", "example.org", "-o", str(tmp_path))
    assert (code, err) == (ExitCode.USAGE, f"archiver: -o {tmp_path} is a directory; give the name of a file\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, _, err = get("get", "example.org", "-o", str(pipe))
    assert (code, pipe.is_fifo()) == (ExitCode.USAGE, True)
    assert f"{pipe} is a named pipe, which archiver does not replace; name another file" in err
    code, _, err = get("get", "example.org", "-o", "/dev/stdout")
    assert (code, Path("/dev/stdout").is_symlink()) == (ExitCode.USAGE, True)
    assert "/dev/stdout is a link to an open file, which archiver does not replace; name another file" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["https://example.org/a.png"], ExitCode.USAGE, "similar: http://example.org/a.png?x=1"),
        (["https://example.net/"], ExitCode.USAGE, "holds no capture of https://example.net/"),
        (["http://"], ExitCode.USAGE, "holds no capture of http://"),
        (["example.org", "--at", "then"], ExitCode.USAGE, "--at 'then' is not a date; use 2026"),
        (["http://example.org/again"], ExitCode.STORAGE, "is in another collection"),
    ],
)
def test_get_refuses(get: Get, arguments: list[str], code: int, words: str) -> None:
    found, out, err = get("get", *arguments)
    assert (found, out) == (code, b"")
    assert words in err
    assert err.count("\n") == 1


def test_a_damaged_record(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """What is damaged is told, and no file is left that looks whole."""
    directory = Held(tmp_path / "c").add(ROOT, bytes(range(256)) * 4).write()
    warc = directory / "archive" / "hand.warc.gz"
    warc.write_bytes(warc.read_bytes()[:-20])
    assert run(["get", str(directory), ROOT, "-o", str(tmp_path / "out")]) == ExitCode.STORAGE
    assert b"hand.warc.gz: at offset 0" in capfdbinary.readouterr().err
    assert not list(tmp_path.glob("out*"))
    warc.unlink()
    assert run(["get", str(directory), ROOT]) == ExitCode.STORAGE
    assert b"is missing" in capfdbinary.readouterr().err


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('"offset": "0"', '"offset": "-5"'),
        ('"offset": "0"', '"offset": "1000000000000000000000000000000"'),
        ('"offset": "0"', '"offset": "3"'),
        ("hand.warc.gz", "../c/archive/hand.warc.gz"),
        ("hand.warc.gz", "/dev/zero"),
        ("hand.warc.gz", "a\\u0000b"),
        ("hand.warc.gz", "x" * 5000),
        ("hand.warc.gz", "\\ud800"),
    ],
)
def test_an_index_that_lies(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], said: str, instead: str) -> None:
    """It is told in one line, and nothing outside of the archive is read."""
    held = Held(tmp_path / "c").add(ROOT, b"x")
    held.lines[0] = held.lines[0].replace(said, instead)
    directory = str(held.write())
    assert run(["get", directory, ROOT]) == ExitCode.STORAGE
    out, err = capfdbinary.readouterr()
    assert (out, err.count(b"\n")) == (b"", 1)
    assert run(["ls", directory]) == ExitCode.DONE
    assert run(["export", directory, "--to", str(tmp_path / "out")]) in (ExitCode.STORAGE, ExitCode.USAGE)
    assert b"Traceback" not in capfdbinary.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [("", b""), ("old.cdx", b" CDX A b e a m s c k r V v D d g M n\n"), ("old.idx", b"com,example)/ 2020\tx\n")],
)
def test_an_index_that_cannot_be_read(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, name: str, text: bytes
) -> None:
    """What to call is said; when that is done, that there are two."""
    monkeypatch.chdir(tmp_path)
    Held(tmp_path / "c").add(ROOT, b"x").write()
    (tmp_path / "c/indexes/index.cdxj").unlink()
    if name:
        (tmp_path / "c/indexes" / name).write_bytes(text)
    else:
        (tmp_path / "c/indexes").rmdir()
    for command in (["ls", "c"], ["get", "c", ROOT], ["export", "c", "--to", "out"]):
        assert run(command) == (ExitCode.STORAGE if name else ExitCode.USAGE)
        said = capfdbinary.readouterr().err.decode()
        assert said.endswith(": archiver index c\n")
        assert name in said
        assert said.count("\n") == 1
    assert run(["index", "c"]) == ExitCode.DONE
    assert (f"pywb also reads {name}" in capfdbinary.readouterr().err.decode()) == bool(name)
    (tmp_path / "c/indexes" / (name or "x.cdx")).unlink(missing_ok=True)
    assert run(["ls", "c"]) == ExitCode.DONE
    (tmp_path / "some.wacz").touch()
    assert run(["status", "some.wacz"]) == ExitCode.USAGE
    assert capfdbinary.readouterr().err.endswith(b"archiver import some.wacz\n")


def _packed(path: Path, index: str, *, deflated: bool = False) -> str:
    """A package of one page in *path*, whose index holds *index*."""
    held = Held(path.with_suffix("")).add(ROOT, PAGE)
    with ZipFile(path, "w") as file:
        file.writestr("archive/hand.warc.gz", b"".join(held.parts), ZIP_DEFLATED if deflated else ZIP_STORED)
        if index:
            file.writestr("indexes/index.cdx", index.format(line=held.lines[0]))
    return str(path)


def test_a_package_and_a_file_are_read_where_they_lie(
    there: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the collection of which they were made, and nothing is left behind."""
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(drafts))
    package, warc = str(tmp_path / "there.wacz"), str(there / "archive" / "hand.warc.gz")
    assert run(["pack", str(there), "-o", package]) == ExitCode.DONE
    listed = []
    for path in (str(there), package):
        capfdbinary.readouterr()
        assert run(["ls", path, "--json"]) == ExitCode.DONE
        listed.append({json.loads(line)["url"] for line in capfdbinary.readouterr().out.splitlines()})
        assert run(["get", path, "https://example.org/"]) == ExitCode.DONE
        assert capfdbinary.readouterr().out == PAGE
    assert listed[0] == listed[1]
    assert run(["get", warc, "http://example.org/a.png?x=1"]) == ExitCode.DONE
    assert capfdbinary.readouterr().out == b"\x89PNG"
    assert not any(drafts.iterdir())


@pytest.mark.parametrize(
    ("index", "deflated", "code", "said"),
    [
        ("{line}", False, ExitCode.DONE, ""),
        ("", False, ExitCode.USAGE, "it has no index; import it first: archiver import "),
        ("{line}", True, ExitCode.USAGE, "is compressed again in it; import it first"),
        (" CDX x y z\n", False, ExitCode.USAGE, "its index cannot be used; import it first"),
    ],
)
def test_what_a_package_may_lack(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], index: str, code: int, said: str, *, deflated: bool
) -> None:
    path = _packed(tmp_path / "a.wacz", index, deflated=deflated)
    assert run(["get", path, ROOT]) == code
    out, err = capfdbinary.readouterr()
    assert said in err.decode()
    assert err.count(b"\n") == bool(said)
    assert out == (b"" if said else PAGE)


@pytest.mark.parametrize(("said", "instead"), [('"offset": "0"', '"offset": "99999"'), ("hand.warc.gz", "other.gz")])
def test_an_index_in_a_package_that_lies(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], said: str, instead: str
) -> None:
    line = Held(tmp_path / "c").add(ROOT, PAGE).lines[0].replace(said, instead)
    path = _packed(tmp_path / "a.wacz", line.replace("{", "{{").replace("}", "}}"))
    assert run(["get", path, ROOT]) == ExitCode.STORAGE
    assert b"which does not exist" in capfdbinary.readouterr().err


def test_nobody_reads_on(tmp_path: Path) -> None:
    """A broken pipe is no fault, of either command."""
    held = Held(tmp_path / "c").add(ROOT, b"0123456789" * 300_000)
    for number in range(3000):
        held.lines.append(held.lines[0].replace("2020", str(3000 + number), 1))
    held.write()
    for command in ("get", "ls"):
        with subprocess.Popen(
            [*COMMAND, command, "c", ROOT],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process:
            assert process.stdout is not None
            assert process.stdout.read(5)
            process.stdout.close()
            assert process.stderr is not None
            assert b"Traceback" not in process.stderr.read()
        assert process.returncode == ExitCode.DONE


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["https://example.org/"], ["20200101000000", "20240101000000"]),
        (["example.org/"], ["20200101000000", "20240101000000", "20240101000001"]),
        (["https://example.org/*"], ["20200101000000", "20240101000000"]),
        (["--from", "2023"], ["20240101000000", "20240101000001"]),
        (["--to", "20200101", "--host", "Example.ORG"], ["20200101000000"]),
        (["--status", "3xx"], ["20240101000001"]),
        (["--type", "image/*", "--type", "text/css"], ["20200913122640"]),
        (["--type", "warc/revisit"], ["20200913122640"]),
        (["example.org/*", "--status", "404", "--status", "301"], ["20240101000001", "20200913122640"]),
        (["--host", "example.net"], []),
        (["*.org", "--status", "2xx", "--type", "text/html"], ["20200101000000", "20240101000000"]),
        (["*.example.org/*", "--from", "2023"], ["20240101000000", "20240101000001"]),
        (["*.ample.org"], []),
    ],
)
def test_ls_chooses(get: Get, arguments: list[str], wanted: list[str]) -> None:
    code, out, err = get("ls", *arguments, "--json")
    assert code == ExitCode.DONE
    assert [json.loads(line)["timestamp"] for line in out.splitlines()] == wanted
    assert err.startswith(f"archiver: {len(wanted)} capture")


def test_ls_is_for_people_and_programs(get: Get) -> None:
    _, out, err = get("ls")
    lines = out.decode().splitlines()
    assert len(lines) == 8
    assert "\x1b" not in out.decode()
    assert "\u202e" not in out.decode()
    assert lines[3].split()[:3] == ["2024-01-01T00:00:01Z", "301", "unk"]
    assert err.startswith("archiver: 7 captures, 1 of them revisits, and 1 other record, ")
    _, out, _ = get("ls", "https://example.org/", "--json", "--from", "2024")
    found = json.loads(out)
    assert (found["url"], found["status"], found["type"]) == ("https://example.org/", 200, "text/html")
    assert (found["revisit"], found["digest"], found["warc"]) == (False, sha256(CHUNKED), "hand.warc.gz")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--status", "20"], "--status '20' is not valid; write it like 404, 2xx for a class, or 0xx for none"),
        (["--type", "html"], "--type 'html' is not valid; write it like text/html or image/*"),
        (["--host", "http://example.org/"], "--host 'http://example.org/' is not a host; write it like example.org"),
        (["--to", "later"], "--to 'later' is not a date"),
    ],
)
def test_ls_refuses(get: Get, arguments: list[str], words: str) -> None:
    code, out, err = get("ls", *arguments)
    assert (code, out) == (ExitCode.USAGE, b"")
    assert words in err


@pytest.mark.parametrize("words", [("ls",), ("get", ROOT)])
def test_a_folder_of_several_collections(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in ("b", "a's"):
        Held(tmp_path / name).write()
    (tmp_path / "notes").mkdir()
    ran = archiver(words[0], ".", *words[1:], cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (ExitCode.USAGE, "")
    assert ran.stderr == "archiver: . holds no archive, but 2 collections; name one of them: 'a'\"'\"'s' b\n"
    ran = archiver("ls", "notes", cwd=tmp_path)
    assert "notes holds no archive: there is no archive/ in it; name a collection" in ran.stderr


def test_answers_without_a_usable_status(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """As `urls` and `retry` take them: below 100, or none. Records that are no answers have no status either."""
    digest = f'"digest": "sha256:{0:064}", "length": "100", "offset": "0", "filename": "a.warc.gz"'
    fields = {
        "http://example.org/1": '"mime": "text/html", "status": "-"',
        "http://example.org/2": '"mime": "text/html", "status": "99"',
        "http://example.org/3": '"mime": "text/html", "status": "099"',
        "http://example.org/4": '"mime": "text/html", "status": "0"',
        "http://example.org/5": '"mime": "text/html", "status": "100"',
        "http://example.org/6": '"mime": "text/html", "status": "999"',
        "http://example.org/7": '"mime": "warc/revisit"',
        "urn:text:http://example.org/8": '"mime": "text/plain"',
    }
    (tmp_path / "c/archive").mkdir(parents=True)
    (tmp_path / "c/indexes").mkdir()
    lines = (
        f'{key} 20260101000000 {{"url": "{url}", {each}, {digest}}}\n'
        for key, (url, each) in zip("abcdefgh", fields.items(), strict=True)
    )
    (tmp_path / "c/indexes/index.cdxj").write_text("".join(lines))
    assert run(["ls", str(tmp_path / "c"), "--status", "0XX", "--json"]) == ExitCode.DONE
    listed = [json.loads(line)["url"] for line in capfdbinary.readouterr().out.splitlines()]
    assert listed == [f"http://example.org/{number}" for number in (1, 2, 3, 4)]


def test_a_revisit_has_the_type_of_what_it_revisits(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Of a record of its own URL, and of another one; that of one that is not held is not known."""
    held = Held(tmp_path / "c")
    picture, page = ROOT + "a.png", ROOT + "page"
    held.add(picture, b"png", head(media="image/png"), "20200101000000", "image/png")
    held.add(page, b"<p>page", head(), "20200101000000")
    for url, payload, original in (
        (picture, b"png", picture),
        (ROOT + "b.png", b"png", picture),
        (page, b"<p>page", page),
    ):
        made = revisit(url, payload, original, "2020-01-01T00:00:00Z")
        held.add_record(made, url, "warc/revisit", payload, stamp="20210101000000")
    made = revisit(ROOT + "lost", b"lost", ROOT + "nowhere")
    held.add_record(made, ROOT + "lost", "warc/revisit", b"lost", stamp="20210101000000")
    held.write()
    found = {}
    for types in ("image/png", "text/html", "image/*", "warc/revisit", "text/css"):
        assert run(["ls", str(tmp_path / "c"), "--type", types]) == ExitCode.DONE
        out, err = capfdbinary.readouterr()
        found[types] = [line.rpartition("/")[2] for line in out.decode().splitlines()]
        revisits = sum("warc/revisit" in line for line in out.decode().splitlines())
        assert (f"{revisits} of them revisits" in err.decode()) == bool(revisits)
    pictures = ["a.png", "a.png", "b.png"]
    every = ["a.png", "b.png", "lost", "page"]
    assert found == {
        "image/png": pictures, "text/html": ["page", "page"], "image/*": pictures, "warc/revisit": every, "text/css": []
    }  # fmt: skip


@pytest.mark.parametrize("name", ["index.html", "index.php", "default.htm"])
def test_the_page_of_a_folder_comes_first(tmp_path: Path, name: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """However many other files of the folder are held, and look more like it."""
    held = Held(tmp_path / "c")
    for number in range(2100):
        held.add(f"{ROOT}dir/a{number}", b"x")
    held.add(f"{ROOT}dir/{name}", b"page")
    held.write()
    for address in (f"{ROOT}dir/", f"{ROOT}dir"):
        assert run(["get", str(tmp_path / "c"), address]) == ExitCode.USAGE
        assert f"similar: {ROOT}dir/{name} " in capfdbinary.readouterr()[1].decode() + " "
