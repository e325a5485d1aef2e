"""`archiver replay` of WARC files that are in a store and not here any more."""

import shutil
import urllib.error
from pathlib import Path

import pytest

from fixtures.archives import warcs
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.s3_server import BUCKET, s3
from fixtures.sites import ok, page
from tests.commands.test_replay_several import body, replaying

pytestmark = pytest.mark.replay
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--warc-size", "10k")
LARGE = page("large", [], body="<p>" + "".join(f"{number:07}" for number in range(400_000)))  # 2.8 MB: several reads
PAGES = {
    "/": page("One", ["/two", "/three", "/large"]),
    "/two": page("Two", body="<p>the same" * 500),
    "/three": page("Two", body="<p>the same" * 500),  # a revisit, with its payload in another record
    "/large": LARGE,
}


def crawl_to(store: str, folder: Path) -> dict[str, bytes]:
    """Crawl to `c` in *folder*, keep the WARC files in *store* only, and return the body of each URL."""
    with RawServer({target: ok(content) for target, content in PAGES.items()}) as server:
        ran = archiver("crawl", *OPTIONS, "--store", store, server.url(), cwd=folder)
        assert ran.returncode == 0, ran.stderr
        assert any(b"warc/revisit" in path.read_bytes() for path in (folder / "c/indexes").iterdir())
        for path in warcs(folder / "c"):
            path.unlink()
        return {server.url(target): content.encode() for target, content in PAGES.items()}


def test_from_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3(monkeypatch):
        bodies = crawl_to(f"s3://{BUCKET}/a/b", tmp_path)
        with replaying("c", cwd=tmp_path) as ([first], said):
            root = first[: first.index("/c/") + 3]
            for address, held in bodies.items():
                assert body(f"{root}20300101000000id_/{address}") == held
            assert b"One" in body(f"{root}20300101000000mp_/{min(bodies)}")
        assert len(said) == 1, said
    written = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert b"secret-word" not in written


def test_a_stranger_names_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection that was received cannot make us ask a store; the user can."""
    store = f"file://{tmp_path}/a store"
    bodies = crawl_to(store, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    url = min(bodies)
    with replaying("c", cwd=tmp_path) as ([first], said):
        root = first[: first.index("/c/") + 3]
        with pytest.raises(urllib.error.HTTPError) as refused:
            body(f"{root}20300101000000id_/{url}")
        refused.value.close()
    assert [line for line in said if f"if you trust it: --store '{store}'" in line]
    with replaying("c", "--store", store, cwd=tmp_path) as ([first], said):
        root = first[: first.index("/c/") + 3]
        assert body(f"{root}20300101000000id_/{url}") == bodies[url]
    assert len(said) == 1, said


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_an_object_that_is_gone(tmp_path: Path, damage: str) -> None:
    """Its captures are errors, and the others are shown."""
    bodies = crawl_to(f"file://{tmp_path}/store", tmp_path)
    [large] = [path for path in (tmp_path / "store/archive").iterdir() if path.stat().st_size > 100_000]
    if damage == "missing":
        large.unlink()
    else:
        large.write_bytes(b"")
    with replaying("c", cwd=tmp_path) as ([first], _):
        root = first[: first.index("/c/") + 3]
        assert body(f"{root}20300101000000id_/{min(bodies)}") == bodies[min(bodies)]
        with pytest.raises(urllib.error.HTTPError) as refused:
            body(f"{root}20300101000000id_/{next(url for url in bodies if url.endswith('/large'))}")
        refused.value.close()


def test_a_local_file_comes_first(tmp_path: Path) -> None:
    """The store is not asked for what is here."""
    bodies = crawl_to(f"file://{tmp_path}/store", tmp_path)
    (tmp_path / "c/archive").rmdir()
    shutil.move(tmp_path / "store/archive", tmp_path / "c/archive")
    with replaying("c", cwd=tmp_path) as ([first], _):
        root = first[: first.index("/c/") + 3]
        for address, held in bodies.items():
            assert body(f"{root}20300101000000id_/{address}") == held
