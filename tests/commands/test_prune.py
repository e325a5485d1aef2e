"""`archiver prune`: whole WARC files of earlier crawls go, and nothing that a file which stays refers to."""

import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.named_crawl import collected_crawls
from archiver.model import ExitCode
from archiver.tools.retention.plan import unneeded
from archiver.tools.verify.collection import verify
from fixtures.archives import warcs
from fixtures.conditional_site import Page, served
from fixtures.forks import Forks, Ran
from fixtures.rawserver import RawServer, Route
from fixtures.sites import page
from fixtures.steps import PRUNING

OPTIONS = ("--rate", "0", "--probe", "off", "--retries", "0", "--min-free-disk", "0", "--host-concurrency", "1", "-qq")


@pytest.mark.parametrize(
    ("candidates", "named", "gone"),
    [
        ("", {}, ""),
        ("ab", {}, "ab"),
        ("ab", {"x": "a"}, "b"),
        ("ab", {"x": "a", "a": "b"}, ""),  # what stays may refer to more
        ("abc", {"a": "b", "b": "a"}, "abc"),  # nothing that stays refers to them
        ("abc", {"a": "b", "b": "c", "y": "c"}, "ab"),
        ("ab", {"x": "y", "y": "b"}, "a"),
    ],
)
def test_what_nothing_refers_to(candidates: str, named: dict[str, str], gone: str) -> None:
    assert unneeded(candidates, "xyabc", named) == set(gone)


NAMES = st.sampled_from("abcdefgh")


@given(st.sets(NAMES), st.dictionaries(NAMES, st.sets(NAMES)))
def test_no_file_that_stays_refers_to_one_that_goes(candidates: set[str], named: dict[str, set[str]]) -> None:
    gone = unneeded(candidates, "abcdefgh", named)
    assert gone <= candidates
    for name in set("abcdefgh") - gone:
        assert gone.isdisjoint(named.get(name, ()))
    for name in candidates - gone:  # and nothing stays without a reason
        assert any(name in named.get(other, ()) for other in set("abcdefgh") - gone - {name}) or name in named.get(
            name, ()
        )


def site(version: int) -> dict[str, Route]:
    """Pages that change each time, stay from the first or from the second crawl on; each in a WARC file of its own."""

    def long(words: str, since: int = 0) -> str:
        return "".join(f"<p>{words} {number * 7919 % 10007} {since}</p>" for number in range(1500))

    later = min(version, 2)
    return served(
        {
            "/": Page(page(f"Home {version}", ["/first", "/moving", "/second", "/steady"])),
            "/first": Page(page("First", body=long("first")), etag='"f"'),
            "/moving": Page(page(f"Moving {version}", body=long("moving", version)), etag=f'"m-{version}"'),
            "/second": Page(page("Second", body=long("second", later)), etag=f'"{later}"'),
            "/steady": Page(page("Steady", body=long("steady"))),
        }
    )


@dataclass(frozen=True)
class Crawled:
    """A collection of four crawls, with a WARC file for nearly every page."""

    folder: Path
    server: RawServer

    def copied(self, folder: Path) -> Path:
        shutil.copytree(self.folder / "c", folder / "c")
        return folder / "c"


@pytest.fixture(name="crawled", scope="module")
def four_crawls(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("pruned")
    with RawServer({}) as server:
        words: tuple[str, ...] = ("crawl", server.url(), "-o", "c", "--warc-size", "6000")
        for version in (1, 2, 3, 4):
            server.routes = site(version)
            done(forks.run(*words, *OPTIONS, cwd=folder))
            words = ("recrawl", "c")
        yield Crawled(folder, server)


def done(ran: Ran) -> str:
    assert ran.code == ExitCode.DONE, ran.said
    return ran.said


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in warcs(directory)}


def named_by(directory: Path, files: set[str]) -> set[str]:
    """The WARC files that revisits in *files* refer to, by another reader: warcio."""
    places: dict[str, str] = {}
    named: dict[str, set[str]] = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                places[record.rec_headers.get_header("WARC-Record-ID")] = path.name
                if record.rec_type == "revisit":
                    named.setdefault(path.name, set()).add(record.rec_headers.get_header("WARC-Refers-To"))
    found, waiting = set(files), list(files)
    while waiting:
        more = {places[each] for each in named.get(waiting.pop(), ())} - found
        found |= more
        waiting += more
    return found


def shown(forks: Forks, directory: Path, server: RawServer) -> dict[str, str]:
    """Each page of the newest crawl as a replay shows it."""
    return {
        target: done(forks.run("get", directory.name, server.url(target), cwd=directory.parent))
        for target in ("/", "/first", "/moving", "/second", "/steady")
    }


@pytest.mark.slow
def test_a_dry_run_shows_all_and_changes_nothing(crawled: Crawled, tmp_path: Path, forks: Forks) -> None:
    directory = crawled.copied(tmp_path)
    before = {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}
    said = done(forks.run("prune", "c", "--keep-last", "1", "--dry-run", cwd=tmp_path))
    assert {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()} == before
    newest = set(collected_crawls(Layout(directory))[-1].files())
    stays = named_by(directory, newest)
    lines = [line.split() for line in said.splitlines() if line.startswith(("delete ", "needed "))]
    assert {line[3] for line in lines if line[0] == "needed"} == stays - newest
    assert {line[3] for line in lines if line[0] == "delete"} == set(contents(directory)) - stays
    assert f"3 crawls of 4 pruned: {len(contents(directory)) - len(stays)} WARC files of " in said
    assert "would be deleted" in said


@pytest.mark.slow
def test_only_what_nothing_refers_to_goes(crawled: Crawled, tmp_path: Path, forks: Forks) -> None:
    directory = crawled.copied(tmp_path)
    before, newest = contents(directory), set(collected_crawls(Layout(directory))[-1].files())
    stays, pages = named_by(directory, newest), shown(forks, directory, crawled.server)
    assert newest < stays < set(before)  # files of earlier crawls stay, and others go
    done(forks.run("prune", "c", "--keep-last", "1", cwd=tmp_path))
    assert contents(directory) == {name: before[name] for name in stays}
    assert shown(forks, directory, crawled.server) == pages
    assert (report := verify([directory])).findings == (), report.findings
    assert [each.number for each in collected_crawls(Layout(directory))] == [1]
    retired = sorted((directory / "crawls").iterdir())
    assert [path.suffix for path in retired] == [".pruned"] * 3
    assert all((path / "logs" / "crawl.log").exists() and not (path / "crawl.db").exists() for path in retired)
    assert not (directory / "prune.json").exists()
    listed = json.loads((directory / "imports.json").read_text())["files"]
    assert {each["name"] for each in listed} == stays - newest
    _check_next_crawls(directory, crawled.server, forks, stays - newest)


def _check_next_crawls(directory: Path, server: RawServer, forks: Forks, needed: set[str]) -> None:
    """The next crawl stores what only pruned crawls had; then a prune deletes what had stayed for others."""
    server.routes = site(5)
    done(forks.run("recrawl", "c", *OPTIONS, cwd=directory.parent))
    (directory / "crawl.db").unlink()
    done(forks.run("rebuild", "c", cwd=directory.parent))  # it takes no file of a pruned crawl for its own
    assert needed.isdisjoint(collected_crawls(Layout(directory))[-1].files())
    assert (report := verify([directory])).ok, report.findings
    done(forks.run("resume", "c", "-qq", cwd=directory.parent))
    pages = shown(forks, directory, server)
    done(forks.run("prune", "c", "--keep-last", "1", cwd=directory.parent))
    assert needed.isdisjoint(contents(directory))
    assert shown(forks, directory, server) == pages
    assert (report := verify([directory])).findings == (), report.findings


@pytest.mark.slow
def test_by_date_and_twice(crawled: Crawled, tmp_path: Path, forks: Forks) -> None:
    directory = crawled.copied(tmp_path)
    crawls = collected_crawls(Layout(directory))
    kept = set(crawls[2].files() | crawls[3].files())
    done(forks.run("prune", "c", "--keep-since", crawls[2].date, cwd=tmp_path))
    assert [each.stamp for each in collected_crawls(Layout(directory))] == [each.stamp for each in crawls[2:]]
    assert kept <= set(contents(directory)) == named_by(directory, set(contents(directory)))
    before = contents(directory)
    assert "0 crawls of 2 pruned: 0 WARC files" in done(forks.run("prune", "c", "--keep-last", "2", cwd=tmp_path))
    assert contents(directory) == before
    assert "0 crawls of 2 pruned" in done(forks.run("prune", "c", "--keep-since", "1", cwd=tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("step", [each.name for each in PRUNING])
def test_a_kill_loses_nothing_else(crawled: Crawled, tmp_path: Path, forks: Forks, step: str) -> None:
    directory = crawled.copied(tmp_path)
    before, newest = contents(directory), set(collected_crawls(Layout(directory))[-1].files())
    stays = named_by(directory, newest)
    ran = forks.run("prune", "c", "--keep-last", "1", cwd=tmp_path, step=step)
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
    left = contents(directory)
    assert stays <= set(left)
    assert all(left[name] == before[name] for name in left)
    if (directory / "prune.json").exists():
        for words in (
            ("resume", "c"),
            ("recrawl", "c"),
            ("verify", "c"),
            ("prune", "c", "--keep-last", "1", "--dry-run"),
        ):
            refused = forks.run(*words, cwd=tmp_path)
            assert (refused.code, "archiver prune c" in refused.said) == (ExitCode.USAGE, True), refused.said
        assert "finished an earlier prune" in done(forks.run("prune", "c", cwd=tmp_path))
    else:
        done(forks.run("prune", "c", "--keep-last", "1", cwd=tmp_path))
    assert contents(directory) == {name: before[name] for name in stays}
    assert (report := verify([directory])).findings == (), report.findings
    assert len(collected_crawls(Layout(directory))) == 1


@pytest.mark.slow
def test_what_is_refused(crawled: Crawled, tmp_path: Path, forks: Forks) -> None:
    directory = crawled.copied(tmp_path)
    before = contents(directory)

    def refused(*words: str) -> str:
        ran = forks.run("prune", "c", *words, cwd=tmp_path)
        assert ran.code == ExitCode.USAGE, ran.said
        assert contents(directory) == before
        (line,) = ran.said.splitlines()[-1:]
        return line

    assert "say what to keep: --keep-last N or --keep-since DATE" in refused()
    assert "say what to keep" in refused("--keep-last", "1", "--keep-since", "2020")
    assert "--keep-since '9998' is after all crawls of this collection" in refused("--keep-since", "9998")
    with Lock(Layout(directory).lock):
        assert "in use" in refused("--keep-last", "1")
    done(forks.run("store", "send", "c", "--store", f"file://{tmp_path}/store", cwd=tmp_path))
    assert "was copied to a store" in refused("--keep-last", "1")
    (directory / "stored.jsonl").unlink()
    (directory / "crawl.db.address").write_text("postgresql://nowhere/crawl\n")
    (directory / "crawl.db.address").rename(Layout(directory).address)
    assert refused("--keep-last", "1")
    Layout(directory).address.unlink()
    path = next(path for path in warcs(directory) if path.stat().st_size > 2000)
    whole = path.read_bytes()
    path.write_bytes(whole[:-700] + bytes([whole[-700] ^ 1]) + whole[-699:])
    before[path.name] = path.read_bytes()
    assert "c has faults, so nothing is deleted; to see them: archiver verify c" in refused("--keep-last", "1")
