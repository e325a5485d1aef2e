"""`archiver pack --crawl` and `--since`: a package with what some crawls captured, and what their revisits need."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver.collection.earlier_crawls import stamp_for
from archiver.collection.layout import Layout, rounds
from archiver.collection.named_crawl import CollectedCrawl, collected_crawls
from archiver.model import ExitCode
from fixtures.archives import next_second, warcs
from fixtures.conditional_site import Page, served
from fixtures.forks import Forks, Ran
from fixtures.packages import index, members, pages, valid
from fixtures.pywb_server import plain_wayback
from fixtures.rawserver import RawServer, Route
from fixtures.sites import page

pytestmark = pytest.mark.slow

OPTIONS = ("--rate", "0", "--probe", "off", "--retries", "0", "--min-free-disk", "0", "-qq")
LONG = "<p>so long that it is stored once only</p>" * 60


def site(version: int) -> dict[str, Route]:
    """Pages that stay, by their ETag and by their payload, one that changes, and one with a frame."""
    links = ["/kept", "/steady", "/moving", "/frames", *(["/first-only"] if version == 1 else [])]
    return served(
        {
            "/": Page(page(f"Home {version}", links)),
            "/kept": Page(page("Kept", ["/below"], body=LONG), etag='"k"'),
            "/below": Page(page("Below", body=LONG), etag='"b"'),
            "/steady": Page(page("Steady", body=LONG)),
            "/moving": Page(page(f"Moving {version}", body=LONG), etag=f'"{version}"'),
            "/frames": Page(page("Frames", body='<iframe src="/frame"></iframe>'), etag='"f"'),
            "/frame": Page(page("A frame", body=LONG), etag='"p"'),
            **({"/first-only": Page(page("Only once", body=LONG))} if version == 1 else {}),
        }
    )


@dataclass(frozen=True)
class Crawled:
    """A collection of three crawls."""

    folder: Path
    server: RawServer
    crawls: list[CollectedCrawl]

    @property
    def directory(self) -> Path:
        return self.folder / "c"

    def files(self, number: int) -> dict[str, bytes]:
        """The WARC files of one crawl, as a package has them."""
        names = self.crawls[number - 1].files()
        return {f"archive/{path.name}": path.read_bytes() for path in warcs(self.directory) if path.name in names}

    def targets(self, package: Path, name: str = "pages") -> list[str]:
        return [each["url"].removeprefix(self.server.url("")) for each in pages(package, name)]


@pytest.fixture(name="crawled", scope="module")
def three_crawls(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("crawls")
    with RawServer({}) as server:
        words: tuple[str, ...] = ("crawl", server.url(), "-o", "c")
        for version in (1, 2, 2):
            server.routes = site(version)
            ran = forks.run(*words, *OPTIONS, cwd=folder)
            assert ran.code == ExitCode.DONE, ran.said
            words = ("recrawl", "c")
            next_second()
        yield Crawled(folder, server, collected_crawls(Layout(folder / "c")))


def packed(crawled: Crawled, forks: Forks, name: str, *options: str) -> Path:
    ran: Ran = forks.run("pack", "c", "-o", f"{name}.wacz", *options, cwd=crawled.folder)
    assert ran.code == ExitCode.DONE, ran.said
    package = crawled.folder / f"{name}.wacz"
    assert valid(package)
    assert sorted(crawled.folder.glob("*.tmp")) == []
    return package


def test_the_crawls_of_a_collection(crawled: Crawled) -> None:
    assert [each.number for each in crawled.crawls] == [1, 2, 3]
    stamps = [each.stamp for each in crawled.crawls]
    assert stamps == sorted(stamps)
    names = [each.files() for each in crawled.crawls]
    assert sorted(name for some in names for name in some) == sorted(path.name for path in warcs(crawled.directory))


def test_one_crawl_with_the_originals_of_its_revisits(crawled: Crawled, forks: Forks) -> None:
    package = packed(crawled, forks, "second", "--crawl", "2")
    held = {name: data for name, data in members(package).items() if name.startswith("archive/")}
    own = crawled.files(2)
    assert {name: data for name, data in held.items() if name in own} == own  # byte for byte
    others = {name: data for name, data in held.items() if name not in own}
    assert set(others) < set(crawled.files(1))
    assert all(len(data) < len(crawled.files(1)[name]) for name, data in others.items())
    moving = [line for line in index(package) if b"/moving" in line]
    assert len(moving) == 1  # the version of the first crawl is not there
    assert b"revisit" not in moving[0]
    assert [name for name in members(package) if name.startswith("logs/")] == [
        f"logs/crawl-{crawled.crawls[1].stamp}.log"
    ]
    # Pages that were not modified are listed with the capture that shows them; a frame is no page.
    assert crawled.targets(package) == ["/"]
    assert sorted(crawled.targets(package, "extraPages")) == ["/below", "/frames", "/kept", "/moving", "/steady"]


def test_since_a_crawl_or_a_date(crawled: Crawled, forks: Forks) -> None:
    whole = {**crawled.files(2), **crawled.files(3)}
    for name, since in (("number", "2"), ("date", crawled.crawls[1].date), ("stamp", crawled.crawls[1].stamp)):
        held = members(packed(crawled, forks, name, "--since", since))
        assert {each: data for each, data in held.items() if each in whole} == whole
    everything = members(packed(crawled, forks, "all", "--since", "2020"))
    assert {path: data for path, data in everything.items() if path.startswith("archive/")} == {
        **crawled.files(1),
        **whole,
    }
    again = members(packed(crawled, forks, "two", "--crawl", "1", "--crawl", crawled.crawls[2].date))
    assert set(crawled.files(1)) | set(crawled.files(3)) <= set(again)


def test_a_host_in_a_crawl(crawled: Crawled, forks: Forks) -> None:
    package = packed(crawled, forks, "host", "--crawl", "3", "--host", "127.0.0.1")
    assert crawled.targets(package) == ["/"]
    assert not any(name.startswith("logs/") for name in members(package))
    refused = forks.run("pack", "c", "--crawl", "3", "--host", "b.example", "-o", "no.wacz", cwd=crawled.folder)
    assert refused.code == ExitCode.USAGE
    assert "c holds no capture of b.example in crawl 3" in refused.said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--crawl", "4"), "--crawl '4' is the number of no crawl of this collection; write one of these: 1 ("),
        (("--crawl", "0"), "--crawl '0' is the number of no crawl"),
        (("--crawl", "2001-09"), "--crawl '2001-09' is the date of no crawl of this collection"),
        (("--crawl", "second"), "--crawl 'second' is not a date; use 2026"),
        (("--since", "9998"), "--since '9998' is after all crawls of this collection; the newest began 20"),
        (("--since", "9"), "--since '9' is the number of no crawl"),
    ],
)
def test_what_cannot_be_chosen(crawled: Crawled, forks: Forks, options: tuple[str, ...], told: str) -> None:
    ran = forks.run("pack", "c", *options, "-o", "no.wacz", cwd=crawled.folder)
    assert ran.code == ExitCode.USAGE
    (line,) = ran.said.splitlines()
    assert told in line
    assert not (crawled.folder / "no.wacz").exists()


@pytest.mark.replay
def test_pywb_replays_every_capture_of_the_crawl(crawled: Crawled, forks: Forks) -> None:
    """Also what is only confirmed there: its payload comes from the original, which the package has."""
    packed(crawled, forks, "replayed", "--crawl", "3")
    manager = str(Path(sys.executable).with_name("wb-manager"))
    for words in (("init", "theirs"), ("add", "--unpack-wacz", "theirs", "replayed.wacz")):
        subprocess.run([manager, *words], cwd=crawled.folder, check=True, capture_output=True)
    moment = crawled.crawls[2].stamp
    with plain_wayback(crawled.folder / "collections" / "theirs") as pywb:
        for target, title in (
            ("/", "Home 2"),
            ("/kept", "Kept"),
            ("/below", "Below"),
            ("/steady", "Steady"),
            ("/moving", "Moving 2"),
            ("/frame", "A frame"),
        ):
            shown = pywb.get(crawled.server.url(target), f"{moment}id_")
            assert (shown.status, f"<title>{title}</title>" in shown.body.decode()) == (200, True), target
        assert pywb.get(crawled.server.url("/first-only")).status == 404  # as it was at that time


def test_crawls_that_began_in_one_second_have_names_of_their_own(crawled: Crawled, tmp_path: Path) -> None:
    """The newest one has the name that its folder would get."""
    directory = tmp_path / "c"
    shutil.copytree(crawled.directory, directory)
    layout = Layout(directory)
    began = datetime(2026, 11, 26, 0, 7, 8, tzinfo=UTC)
    for number, crawl in enumerate(collected_crawls(layout)):
        with sqlite3.connect(crawl.layout.database) as db:
            db.execute("UPDATE captures SET timestamp = ?", (int((began.timestamp() + number / 10) * 1e6),))
        db.close()
    for number, folder in enumerate(sorted(layout.earlier.iterdir())):
        folder.rename(layout.earlier / f"2026112600070{8 + number}")
    assert [each.stamp for each in collected_crawls(layout)] == ["20261126000708", "20261126000709", "20261126000710"]


def test_the_name_of_a_pruned_crawl_is_not_given_again(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (layout.earlier / "20261126000708.pruned").mkdir(parents=True)
    began = datetime(2026, 11, 26, 0, 7, 8, tzinfo=UTC).timestamp()
    assert stamp_for(layout, began, rounds(layout)) == "20261126000709"
    assert stamp_for(layout, began + 1, rounds(layout)) == "20261126000709"
