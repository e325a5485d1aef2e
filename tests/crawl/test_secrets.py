"""Secret headers: sent, kept with the requests as they were sent, and nowhere else in what a crawl hands on."""

import gzip
import shutil
import stat
import zipfile
from base64 import b64encode
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.config.option_types import LEFT_OUT
from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.forks import Forks
from fixtures.proxies import needs_tinyproxy, tinyproxy
from fixtures.rawserver import RawServer
from fixtures.sites import tree

SECRET = "hunter2-in-the-cookie"
HEADERS = ("--header", f"Cookie: id={SECRET}", "--header", f"X-Api-Key: {SECRET}", "--header", "X-Plain: said")


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """A collection `c` of a crawl with secret headers, and the packages made of it."""
    folder = tmp_path_factory.mktemp("secrets")
    with RawServer(tree(4).routes) as server:
        done = forks.archiver("crawl", server.url(), "-o", f"{folder}/c", "--rate", "0", *HEADERS, cwd=folder)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert SECRET not in done.stderr
        asked = [row.request for row in server.log if row.target == "/"]
        assert all(SECRET.encode() in raw for raw in asked)
    packed = forks.archiver("pack", "c", cwd=folder)
    assert packed.returncode == ExitCode.DONE, packed.stderr
    assert "request records" in packed.stderr
    return folder


def _records(path: Path) -> list[tuple[str, bytes]]:
    with path.open("rb") as file:
        return [(each.rec_type, each.raw_stream.read()) for each in ArchiveIterator(file, no_record_parse=True)]


def test_the_request_keeps_what_was_sent_and_nothing_else_does(folder: Path) -> None:
    found = [kind for path in warcs(folder / "c") for kind, block in _records(path) if SECRET.encode() in block]
    assert set(found) == {"request"}


def test_settings_are_told_without_their_secrets(folder: Path) -> None:
    blocks = [block for path in warcs(folder / "c") for kind, block in _records(path) if kind != "request"]
    assert any(f'header = ["Cookie: {LEFT_OUT}"]'.encode() in block for block in blocks)
    assert any(b"X-Plain: said" in block for block in blocks)


def test_no_report_has_them_nor_a_path_of_this_machine(folder: Path, forks: Forks) -> None:
    texts = {path.name: path.read_text() for path in (folder / "c/reports").iterdir()}
    for form in ("text", "json", "html"):
        texts[form] = forks.archiver("report", str(folder / "c"), "--format", form, cwd=folder).stdout
    for name, text in texts.items():
        assert SECRET not in text, name
        assert str(folder) not in text, name
        assert "Traceback" not in text
    assert LEFT_OUT in texts["report.txt"]


def test_a_package_holds_them_in_requests_alone(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(folder / "c.wacz") as package:
        for name in package.namelist():
            data = package.read(name)
            if name.endswith(".gz") and name.startswith("archive/"):
                (tmp_path / "one.warc.gz").write_bytes(data)
                kinds = {kind for kind, block in _records(tmp_path / "one.warc.gz") if SECRET.encode() in block}
                assert kinds <= {"request"}
            else:
                assert SECRET.encode() not in (gzip.decompress(data) if name.endswith(".gz") else data)


def test_files_with_secrets_are_their_owners_alone(folder: Path) -> None:
    holding = [path for path in (folder / "c").rglob("*") if path.is_file() and SECRET.encode() in _plain(path)]
    assert folder / "c/crawl.toml" in holding
    assert {path.parent.name for path in holding} == {"c", "archive"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in holding} == {0o600}


def _plain(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_a_settings_file_that_all_may_read_is_closed_at_the_next_run(folder: Path, forks: Forks) -> None:
    settings = folder / "c/crawl.toml"
    settings.chmod(0o644)
    assert forks.archiver("resume", "c", cwd=folder).returncode == ExitCode.DONE
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600


def test_a_rebuilt_crawl_asks_for_them_again(folder: Path, forks: Forks, tmp_path: Path) -> None:
    """It never sends the words that stand in their place."""
    shutil.copytree(folder / "c", tmp_path / "c")
    (tmp_path / "c/crawl.toml").unlink()
    done = forks.archiver("rebuild", "c", cwd=tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "give them again with --header" in done.stderr
    text = (tmp_path / "c/crawl.toml").read_text()
    assert "X-Plain: said" in text
    assert LEFT_OUT not in text
    (tmp_path / "c/crawl.toml").write_text(f'seeds = ["http://127.0.0.1:9/"]\nheader = ["Cookie: {LEFT_OUT}"]\n')
    refused = forks.archiver("resume", "c", cwd=tmp_path)
    assert refused.returncode == ExitCode.USAGE
    assert "the value of Cookie is a secret that was left out" in refused.stderr


def test_loaded_cookies_are_in_requests_and_the_database_alone(tmp_path: Path, forks: Forks) -> None:
    (tmp_path / "cookies.txt").write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t{SECRET}\n")
    with RawServer(tree(4).routes) as server:
        given = ("-o", "c", "--rate", "0", "--load-cookies", "cookies.txt", "-vv")
        done = forks.archiver("crawl", server.url(), *given, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        asked = [row.request for row in server.log]
        assert all(SECRET.encode() in raw for raw in asked)
    shown = [done.stderr, *(forks.archiver(command, "c", cwd=tmp_path).stdout for command in ("cookies", "report"))]
    assert not [text for text in shown if SECRET in text]
    found = {kind for path in warcs(tmp_path / "c") for kind, block in _records(path) if SECRET.encode() in block}
    assert found == {"request"}
    holding = [path for path in (tmp_path / "c").rglob("*") if path.is_file() and SECRET.encode() in _plain(path)]
    assert {path.parent.name if path.suffix == ".gz" else path.name for path in holding} <= {"archive", "crawl.db"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in holding} == {0o600}
    assert "secret headers" in forks.archiver("pack", "c", cwd=tmp_path).stderr
    with zipfile.ZipFile(tmp_path / "c.wacz") as package:
        for name in package.namelist():
            data = package.read(name)
            if not name.startswith("archive/"):
                assert SECRET.encode() not in (gzip.decompress(data) if name.endswith(".gz") else data)


@needs_tinyproxy
@pytest.mark.parametrize("place", ["env:WAY_IN", "file:{folder}/word"])
def test_nothing_holds_the_password_of_a_proxy(
    tmp_path: Path, forks: Forks, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Not records, the database, settings, reports, packages or messages; whether the login is right or wrong."""
    secrets = (SECRET, "not-the-password")
    coded = [b64encode(f"ann:{word}".encode()).decode() for word in secrets]
    shown = []
    with RawServer(tree(4).routes) as server, tinyproxy(tmp_path, "127.0.0.77", f"BasicAuth ann {SECRET}") as port:
        proxy = f"http://ann:{place.format(folder=tmp_path)}@127.0.0.1:{port}"
        for word in secrets[::-1]:
            monkeypatch.setenv("WAY_IN", word)
            (tmp_path / "word").write_text(word + "\n")
            (tmp_path / "word").chmod(0o600)
            seeds = (server.url(), server.url("/", "localhost").replace("http:", "https:"))
            given = ("--proxy", proxy, "-o", f"c-{word[:3]}", "--rate", "0", "--retries", "0", "-vv")
            done = forks.archiver("crawl", *(seeds[:1] if word == SECRET else seeds), *given, cwd=tmp_path)
            assert done.returncode == (ExitCode.DONE if word == SECRET else ExitCode.USAGE), done.stderr
            shown += [done.stdout, done.stderr]
        assert {row.client for row in server.log} == {"127.0.0.77"}
    made = tmp_path / f"c-{SECRET[:3]}"
    assert proxy in (made / "crawl.toml").read_text()
    for command in (
        ("report", "--format", "json"),
        ("report", "--format", "html"),
        ("pack",),
        ("explain", server.url()),
    ):
        done = forks.archiver(command[0], made.name, *command[1:], cwd=tmp_path)
        shown += [done.stdout, done.stderr]
    assert "secret headers" not in shown[-3], "a package needs no warning: no request holds it"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tmp_path]
    data = [_plain(path) for path in files] + [text.encode() for text in shown]
    with zipfile.ZipFile(made.with_suffix(".wacz")) as package:
        packed = {name: package.read(name) for name in package.namelist()}
    data += [gzip.decompress(held) if name.endswith(".gz") else held for name, held in packed.items()]
    for word in (*secrets, *coded, "roxy-Authorization"):
        assert not [text for text in data if word.encode() in text]
