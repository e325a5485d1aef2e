"""`archiver index ADDRESS`: one index of what all machines have stored; what it names is replayed from the store."""

from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from archiver.collection.layout import Layout
from archiver.collection.store import StoredFiles
from archiver.model import ExitCode
from archiver.warc import cdx
from fixtures.archives import warcs
from fixtures.command import archiver
from fixtures.postgres import PostgresServer
from fixtures.several_hosts import several_hosts
from tests.commands.test_replay_several import body, replaying

pytestmark = pytest.mark.postgres
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--warc-size", "10k")


class StoredCrawl(NamedTuple):
    """A crawl that has ended, with its files in a store."""

    folder: Path  # its directory is `c` in there, the store `store`
    address: str

    @property
    def store(self) -> str:
        """The address of the store."""
        return f"file://{self.folder}/store"

    @property
    def lines(self) -> list[bytes]:
        """The lines of its own index."""
        return (self.folder / "c/indexes/index.cdxj").read_bytes().splitlines(keepends=True)


@pytest.fixture(name="crawl", scope="module")
def stored_crawl(postgres_server: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> StoredCrawl:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    crawl = StoredCrawl(tmp_path_factory.mktemp("all"), postgres_server.new_database())
    words = ("crawl", *OPTIONS, "--frontier", crawl.address, "--store", crawl.store)
    with several_hosts(hosts=2) as hosts:
        ran = archiver(*words, *hosts.seeds, cwd=crawl.folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return crawl


def test_one_index(crawl: StoredCrawl) -> None:
    ran = archiver("index", crawl.address, "-o", "whole", cwd=crawl.folder)
    assert (ran.returncode, ran.stdout) == (0, f"{len(crawl.lines)} lines in whole/indexes/index.cdxj\n"), ran.stderr
    whole = crawl.folder / "whole"
    assert (whole / "indexes/index.cdxj").read_bytes().splitlines(keepends=True) == crawl.lines
    assert [path.name for path in (whole / "indexes").iterdir()] == ["index.cdxj"]
    noted = StoredFiles(Layout(whole)).read(crawl.store)
    known = StoredFiles(Layout(crawl.folder / "c")).read(crawl.store)
    assert {(each.key, each.size, each.digest) for each in noted.values()} == {
        (each.key, each.size, each.digest) for each in known.values() if each.key.startswith("archive/")
    }
    assert len(noted) == len(warcs(crawl.folder / "c")) > 1


def test_an_open_file_has_its_final_name(postgres_server: PostgresServer | None, tmp_path: Path) -> None:
    """So a line stays right when the file, which another machine writes, is finished."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres_server.new_database()
    with several_hosts(hosts=1) as hosts:
        archiver("crawl", *OPTIONS, "--frontier", address, *hosts.seeds, cwd=tmp_path)
    with psycopg.connect(address) as db:
        db.execute("UPDATE warcs SET closed = 0")
    ran = archiver("index", address, "-o", "whole", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "0 finished WARC files: not here; copy them to whole/archive, or name --store" in ran.stderr
    assert (tmp_path / "whole/indexes/index.cdxj").read_bytes() == (tmp_path / "c/indexes/index.cdxj").read_bytes()


@pytest.mark.replay
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in pywb
def test_a_long_index_is_compressed(crawl: StoredCrawl) -> None:
    """Our reader and that of pywb find each line in it; a short index takes its place again."""
    from pywb.warcserver.index.zipnum import ZipNumIndexSource  # noqa: PLC0415 - of the extra `replay`

    indexes = crawl.folder / "long/indexes"
    ran = archiver("index", crawl.address, "-o", "long", "--zipnum-above", "3", cwd=crawl.folder)
    assert (ran.returncode, ran.stdout) == (0, f"{len(crawl.lines)} lines in long/indexes/index.idx\n"), ran.stderr
    assert sorted(path.name for path in indexes.iterdir()) == ["index.cdxj.gz", "index.idx", "index.loc"]
    assert [line for _, line in cdx.zipnum_lines(indexes / "index.idx")] == crawl.lines
    source = ZipNumIndexSource(str(indexes / "index.idx"))
    for entry in filter(None, map(cdx.parse_line, crawl.lines)):
        found = [(each["url"], int(each["offset"])) for each in source.load_index({"url": entry.url})]
        assert (entry.url, entry.offset) in found
    listed = archiver("ls", "long", cwd=crawl.folder)
    assert listed.stdout == archiver("ls", "c", cwd=crawl.folder).stdout
    ran = archiver("index", crawl.address, "-o", "long", cwd=crawl.folder)
    assert [path.name for path in indexes.iterdir()] == ["index.cdxj"], ran.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ADDRESS",), "name a directory for the index of all machines: -o DIR"),
        (("ADDRESS", "-o", "c"), "-o c: it holds a crawl, whose index would be lost; name a new directory"),
        (("ADDRESS", "-o", "other", "--store", "ftp://x"), "--store: 'ftp://x'"),
        (("c", "-o", "other"), "c: -o and --store are for the index of a crawl that you name by its address"),
    ],
)
def test_refused(crawl: StoredCrawl, words: tuple[str, ...], told: str) -> None:
    given = [crawl.address if word == "ADDRESS" else word for word in words]
    ran = archiver("index", *given, cwd=crawl.folder)
    assert ran.returncode == ExitCode.USAGE, ran.stdout
    assert told in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.replay
def test_it_is_replayed_from_the_store(crawl: StoredCrawl) -> None:
    archiver("index", crawl.address, "-o", "shown", cwd=crawl.folder)
    first = next(filter(None, map(cdx.parse_line, crawl.lines)))
    with replaying("shown", cwd=crawl.folder) as ([address], said):
        root = address[: address.index("/shown/") + len("/shown/")]
        assert b"<title>" in body(f"{root}20300101000000id_/{first.url}")
    assert len(said) == 1, said
    assert not any((crawl.folder / "shown/archive").iterdir())


def test_the_store_is_verified(crawl: StoredCrawl) -> None:
    """Against what the database says, without a WARC file here."""
    archiver("index", crawl.address, "-o", "checked", cwd=crawl.folder)
    ran = archiver("verify", "checked", "--store", crawl.store, cwd=crawl.folder)
    assert ran.returncode == 0, ran.stdout
    assert f"{len(warcs(crawl.folder / 'c'))} files, " in ran.stdout
    first = warcs(crawl.folder / "c")[0].name
    notes = crawl.folder / "checked/stored.jsonl"
    notes.write_text(notes.read_text().replace("sha256:", "sha256:0", 1))
    ran = archiver("verify", "checked", "--store", crawl.store, cwd=crawl.folder)
    assert ran.returncode == ExitCode.FAULTS
    assert f"{crawl.store}/archive/{first}: fault file-changed: its bytes have changed" in ran.stdout
