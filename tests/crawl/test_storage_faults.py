"""A disk that is nearly full, read-only or broken, and too few open files: a line, exit code 3, and nothing is lost."""

import json
import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from urllib.request import urlopen

import pytest

from archiver.cli import runner
from archiver.frontier import totals
from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from fixtures.archives import captured, rows
from fixtures.command import archiver, ended, running, said
from fixtures.crawl_in_process import crawl
from fixtures.flag import Gate
from fixtures.log import Row
from fixtures.mounts import mounted
from fixtures.rawserver import NOT_FOUND, Answer, RawServer, keep
from fixtures.sites import tree

pytestmark = pytest.mark.slow

SITE = tree(30)
ALL = SITE.reachable | {"/robots.txt"}
FAST = ("--rate", "0", "--probe", "off", "-qq")
NO_FLOOR = ("--min-free-disk", "0")
FLOOR = ("--min-free-disk", "10M")
NEARLY_FULL = re.compile(
    r"\S*c: (\d+) bytes \(.*?\) are free on its disk, and --min-free-disk is (\d+) bytes \(10\.0 MB\): "
    r"(\d+) bytes (?:\(.*?\) )?are missing"  # fewer than a million are not told in MB, where it was seen early
    r"(; free space(?:, choose another disk with -o,)? or give a smaller --min-free-disk)?"
)


@pytest.fixture(name="server", scope="module")
def a_server() -> Iterator[RawServer]:
    """Serves the site."""
    with RawServer(SITE.routes) as server:
        yield server


def complaint(err: str) -> str:
    """The one line that was said, which is no traceback."""
    assert re.fullmatch(r"archiver: [^\n]+\n", err), err
    return err.removeprefix("archiver: ").rstrip()


def goes_on(directory: Path, server: RawServer) -> None:
    """Another run ends the crawl in *directory* complete, and verify finds no fault."""
    ending = crawl(directory, server.url(), resume=True, min_free_disk=10_000_000)
    assert ending.code is ExitCode.DONE, ending
    assert [url for url, _ in captured(directory)] == sorted(map(server.url, ALL))
    report = verify([directory])
    assert report.ok, report.findings


def test_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    """Somebody else fills the disk while the crawl runs: it ends in order, with room left; and begins not before."""
    directory = tmp_path / "disk" / "c"
    foreign = tmp_path / "disk" / "foreign"

    usual = SITE.routes["/p5.html"]
    assert isinstance(usual, Answer)

    def fills(_: Row) -> Answer:
        foreign.write_bytes(bytes(15_000_000))
        return usual

    with mounted(directory.parent, "20m"), RawServer({**SITE.routes, "/p5.html": fills}) as server:
        with running(
            "crawl", server.url(), "-o", "c", "--rate", "15", "--probe", "off", "-qq", *FLOOR, cwd=directory.parent
        ) as process:
            code, err = ended(process)
        assert code == ExitCode.STORAGE, err
        found = NEARLY_FULL.fullmatch(complaint(err))
        assert found, err
        free, floor, missing = map(int, found.groups()[:3])
        assert 1_000_000 < free < floor == 10_000_000
        assert missing == floor - free
        committed = rows(directory, "SELECT url, offset FROM captures")
        assert 5 < len(committed) < len(ALL)
        assert len(server.log) == len(committed)  # what was asked for was kept
        assert not list(directory.glob("archive/*.open"))

        before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
        refused = archiver("resume", "c", cwd=directory.parent)
        assert refused.returncode == ExitCode.STORAGE
        told = NEARLY_FULL.fullmatch(complaint(refused.stderr))
        assert told is not None
        assert told[4] is not None
        assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before

        foreign.unlink()
        goes_on(directory, server)
        assert set(committed) <= set(rows(directory, "SELECT url, offset FROM captures"))


@pytest.mark.parametrize("crawlers", [("1", "1"), ("2", "2"), ("2", "1"), ("1", "2")], ids="-".join)
@pytest.mark.parametrize("way", ["room", "go"])
def test_a_crawl_that_pauses_while_the_disk_is_low_goes_on(tmp_path: Path, way: str, crawlers: tuple[str, str]) -> None:
    """With one crawler process or two, before and after. A crawl takes back what any of its crawlers has ordered."""
    directory = tmp_path / "disk" / "c"
    foreign = tmp_path / "disk" / "foreign"
    told_low = Gate()

    def answer(row: Row) -> Answer:
        """Fill the disk at the sixth page; from then on, answer once the crawl has said that the disk is low."""
        usual = SITE.routes.get(row.target, keep(NOT_FOUND))
        assert isinstance(usual, Answer)
        assert isinstance(usual.pieces, tuple)
        if row.target == "/p5.html" and not told_low.opened.up:
            foreign.write_bytes(bytes(13_000_000))  # the last reserve stays free
        return Answer((told_low, *usual.pieces), usual.end) if foreign.exists() else usual

    with mounted(directory.parent, "20m"), RawServer(otherwise=answer) as server:
        options = ("-o", "c", "--rate", "15", "--probe", "off", "--on-low-disk", "pause", *FLOOR)
        more = ("--on", "all", "true", "--processes", crawlers[0])
        with running("crawl", server.url(), *options, *more, cwd=directory.parent) as process:
            said(process, "the crawl pauses until there is room")
            told_low.open()
            held = json.loads(archiver("status", "c", "--json", cwd=directory.parent).stdout)
            assert (held["state"], held["paused"]) == ("paused", True)
            assert "are free on its disk" in held["why_paused"]
            assert len(server.log) < len(ALL)
            process.kill()
            process.communicate()
        with running("resume", "c", "--processes", crawlers[1], cwd=directory.parent) as process:
            said(process, "paused")
            if way == "go":
                ran = archiver("go", "c", cwd=directory.parent)
                assert ran.stdout == "the crawl goes on\n", ran.stderr
            else:
                foreign.unlink()
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        listed = archiver("orders", "c", "--json", cwd=directory.parent).stdout
        given = [json.loads(line) for line in listed.splitlines()]
        assert [verb for verb, _ in groupby(each["verb"] for each in given)] == ["pause", "go"]
        assert all(bool(each["arguments"]) == (each["verb"] == "pause" or way == "room") for each in given)
        assert all(each["answer"] and each["answered"] for each in given)
        told = [kind for (kind,) in rows(directory, "SELECT kind FROM events")]
        assert told.count("crawl-paused") == [each["verb"] for each in given].count("pause")
        assert "disk-low" in told
        goes_on(directory, server)


def test_a_crawl_does_not_begin_below_the_floor(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "5m"):
        refused = archiver("crawl", "http://127.0.0.1:1/", "-o", "disk/c", *FLOOR, cwd=tmp_path)
        assert refused.returncode == ExitCode.STORAGE
        told = NEARLY_FULL.fullmatch(complaint(refused.stderr))
        assert told is not None
        assert told[4] is not None
        assert not list((tmp_path / "disk").iterdir())


def test_a_read_only_disk(tmp_path: Path, server: RawServer) -> None:
    """Nothing can be begun or gone on with; what only reads works, also where a crawl was killed."""
    folder = tmp_path / "disk"
    with mounted(folder, "50m") as disk:
        for name in ("c", "empty", "killed"):
            (folder / name).mkdir()
        assert archiver("crawl", server.url(), "-o", "c", "--max-urls", "9", *FAST, *NO_FLOOR, cwd=folder).returncode
        with running(
            "crawl", server.url(), "-o", "killed", "--rate", "9", "--probe", "off", "-v", *NO_FLOOR, cwd=folder
        ) as process:
            asked = len(server.log)
            server.log.holds(asked + 12).wait()
            process.kill()
            ended(process)
        shutil.copytree(folder / "killed", folder / "copied", ignore=shutil.ignore_patterns("*-shm"))
        assert (folder / "copied/crawl.db-wal").stat().st_size
        disk.forbid_writing()

        for arguments in (
            ("crawl", server.url(), "-o", "new"),
            ("crawl", server.url(), "-o", "empty"),
            ("resume", "copied"),
        ):
            refused = archiver(*arguments, *FAST, *NO_FLOOR, cwd=folder)
            assert refused.returncode == ExitCode.STORAGE, arguments
            assert re.fullmatch(rf"{arguments[-1]}\S*: Read-only file system", complaint(refused.stderr))
        for name in ("c", "killed", "copied"):
            assert verify([folder / name]).ok
            with totals.open_totals(folder / name) as db:
                assert totals.totals(db).captures >= 5
        assert archiver("status", "copied", cwd=folder).returncode == ExitCode.DONE

        disk.allow_writing()
        goes_on(folder / "c", server)


@pytest.mark.replay
def test_a_replay_from_a_read_only_disk(tmp_path: Path, server: RawServer) -> None:
    with mounted(tmp_path / "disk", "50m") as disk:
        assert archiver("crawl", server.url(), "-o", "disk/c", *FAST, *NO_FLOOR, cwd=tmp_path).returncode == 0
        disk.forbid_writing()
        with running("replay", "disk/c", "--port", "0", cwd=tmp_path) as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            with urlopen(address.replace("/http", "/mp_/http"), timeout=300) as answer:
                assert answer.status == 200


# the call; when it fails, counted in each thread; how; of which file only; the path in the line
BROKEN = {
    "a sync": ("fdatasync", 3, "EIO", "", r"c/\S+"),
    "the sync of a commit": ("fdatasync", 2, "EIO", "crawl.db-wal", r"c/crawl\.db"),
    "a write to the database": ("pwrite64", 12, "EIO", "crawl.db-wal", r"c/crawl\.db"),
    "a write to crawl.log": ("write", 2, "EROFS", "logs/crawl.log", r"c/logs/crawl\.log"),
    "a name": ("rename", 2, "EROFS", "", r"c/\S+"),
}
REASON = r"(Input/output error|Read-only file system|disk I/O error \(\w+\))"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which lets a call fail")
@pytest.mark.parametrize("which", BROKEN)
def test_an_error_of_the_disk(tmp_path: Path, server: RawServer, which: str) -> None:
    """One call fails, once; the crawl ends, and what was not synced is not taken for committed."""
    call, number, error, about, named = BROKEN[which]
    only = ("-P", str(tmp_path / "c" / about)) if about else ()
    fault = f"inject={call}:error={error}:when={number}"
    strace = ("strace", "-f", "-qq", "-o", str(tmp_path / "trace"), *only, "-e", f"trace={call}", "-e", fault)
    with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path, before=strace) as process:
        code, err = ended(process)
    assert code == ExitCode.STORAGE, err
    assert re.fullmatch(f"{named}: {REASON}", complaint(err)), err
    if call == "fdatasync" and ".warc.gz.open: " in err:
        written = sum(path.stat().st_size for path in tmp_path.glob("c/archive/*"))
        committed = rows(tmp_path / "c", "SELECT coalesce(sum(committed), 0) FROM warcs")
        assert committed < [(written,)]
    goes_on(tmp_path / "c", server)


def test_few_open_files(tmp_path: Path, server: RawServer) -> None:
    """The limit is read, concurrency adapted and a line says so; where the limit may be raised, it is."""
    few = ("bash", "-c", 'ulimit -Sn 100; ulimit -Hn 260; exec "$@"', "bash")
    with running("crawl", server.url(), "-o", "c", *FAST, *NO_FLOOR, cwd=tmp_path, before=few) as process:
        code, err = ended(process)
    assert code == ExitCode.DONE, err
    fits = runner.fitting_concurrency(260, 32)
    assert 1 < fits < 32
    assert f"260 open files are allowed (ulimit -n), so this run uses --concurrency {fits} instead of 32" in complaint(
        err
    )
    assert "concurrency = 32" in (tmp_path / "c/crawl.toml").read_text()
    soft = ("bash", "-c", 'ulimit -Sn 100; exec "$@"', "bash")
    with running("crawl", server.url(), "-o", "d", *FAST, *NO_FLOOR, cwd=tmp_path, before=soft) as process:
        assert ended(process) == (ExitCode.DONE, "")
