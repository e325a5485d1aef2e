"""The reports of a crawl: what they say, and that nothing a server sent can spoil a line."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from archiver.collection.named_crawl import NamedCrawl
from archiver.config import toml
from archiver.config.seeds import SEED_SETTING
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.frontier import figures, totals
from archiver.frontier.connection import Reader
from archiver.policy.quotas import Quotas
from archiver.tools.report import files
from archiver.tools.report.report import FinishedRun, read_summary, summary_lines
from archiver.tools.report.seed_problems import seed_problem
from fixtures import handmade_crawls
from fixtures.growth import seconds

NOW = 1_700_000_000.0


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A crawl's directory."""
    handmade_crawls.finished(tmp_path, NOW)
    return tmp_path


@pytest.fixture
def db(crawl: Path) -> Iterator[Reader]:
    """Its database."""
    with totals.open_totals(crawl) as opened:
        yield opened


def test_totals(db: Reader) -> None:
    assert totals.totals(db) == totals.Totals(
        waiting=4,
        archived=3,
        failed=2,
        excluded=1,
        captures=3,
        received=2400,
        warcs=1,
        stored=5000,
        refused=11,
        first=NOW - 100,
        last=NOW - 10,
        revisits=1,
        spared=50,
        held=1,
    )


def test_what_each_host_waits_for(db: Reader) -> None:
    waits = {host.key: (host.waiting, host.why, host.until) for host in totals.hosts(db, NOW)}
    assert waits == {
        "https://a.example": (1, "", 0.0),
        "https://b.example": (0, "", 0.0),
        "https://parked.example": (1, "retry-after", NOW + 60),
        "https://later.example": (1, "retry", NOW + 30),
        "https://new.example": (1, "robots.txt", 0.0),
    }


def test_no_host_waits_for_a_robots_txt_that_is_ignored(db: Reader) -> None:
    for text in ('robots = "ignore"', 'host = ["*.example robots=ignore"]'):
        quotas = Quotas(SettingsByHost(with_values(Settings(), toml.parse(text, ""))))
        waits = {host.key: host.why for host in totals.hosts(db, NOW, quotas=quotas)}
        assert (waits["https://new.example"], waits["https://later.example"]) == ("", "retry")


def test_hosts_can_be_limited(db: Reader) -> None:
    assert [host.key for host in totals.hosts(db, NOW, 1)] == ["https://a.example"]


def test_recent_rate(db: Reader) -> None:
    assert totals.recent_rate(db, NOW) == pytest.approx(2 / 60)
    assert totals.recent_rate(db, NOW + 3600) == 0


def test_seeds(db: Reader) -> None:
    assert [(seed.url, seed.followed, seed_problem(seed)) for seed in totals.seeds(db)] == [
        ("https://a.example/", 8, ""),
        ("https://b.example/", 0, "redirects out of scope, to https://c.example/ (host)"),
        ("https://gone.example/", 0, "failed: dns: no such host"),
    ]


def test_a_seed_that_leads_out_of_scope_is_named() -> None:
    seed = totals.SeedAccount(
        "https://a.example/", "archived", 302, "", "redirects to https://b.example/, which is outside the scope", 2
    )
    assert seed_problem(seed) == (
        "redirects to https://b.example/, which is outside the scope; only its in-scope links are followed"
    )


def test_counts(db: Reader) -> None:
    assert totals.statuses(db) == [(200, 1), (301, 1), (404, 1)]
    assert totals.failures(db) == [("dns", 1), ("robots", 1), ("timeout", 1)]
    assert totals.refusals(db) == [("host", 7), ("max-repeats: 3", 4)]
    assert {mime: count for mime, count, _ in totals.media_types(db)} == {
        "": 1,
        "text/html": 1,
        handmade_crawls.HOSTILE: 1,
    }


def test_a_revisit_of_an_unknown_profile_is_counted_as_such(crawl: Path) -> None:
    """As a later version may have stored it."""
    with closing(sqlite3.connect(crawl / "crawl.db", isolation_level=None)) as writer:
        writer.execute("UPDATE captures SET revisit = 'of-the-future' WHERE revisit = ''")
    with totals.open_totals(crawl) as db:
        assert sorted((profile, captures) for profile, captures, _, _ in figures.revisits(db)) == [
            ("identical-payload-digest", 1),
            ("unknown", 2),
        ]
        found = read_summary(db, "nothing is left", FinishedRun(elapsed=90.0, visits=3, received=2400))
        files.write_reports(NamedCrawl.in_directory(crawl), db, found, crawl / "reports", NOW)
    assert "unknown\t2\t" in (crawl / "reports/revisits.tsv").read_text()


def test_files(crawl: Path, db: Reader) -> None:
    texts = {"title": "Gone \u202e", "note": "N", "collection": "c"}
    own = {"url": "https://gone.example/", **texts}
    (crawl / "crawl.toml").write_text(toml.render(with_values(Settings(), {"seed": (SEED_SETTING.parse(own),)})))
    found = read_summary(db, "nothing is left", FinishedRun(elapsed=90.0, visits=3, received=2400))
    files.write_reports(NamedCrawl.in_directory(crawl), db, found, crawl / "reports", NOW)
    folder = crawl / "reports"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [
            *("summary.txt", "summary.json", "report.txt", "report.json", "report.html"),
            *("hosts-report.txt", "responsecode-report.txt", "mimetype-report.txt"),
            *("seeds-report.txt", "crawl-report.txt"),
            *(f"{name}.tsv" for name in files.TABLES),
        ]
    )
    for name, (head, _) in files.TABLES.items():
        lines = (folder / f"{name}.tsv").read_text().split("\n")
        assert lines.pop() == ""
        assert lines[0].split("\t") == list(head)
        assert len(lines) > 1
        for line in lines:
            assert len(line.split("\t")) == len(head)
            assert line.replace("\t", "").isprintable()
    assert (folder / "failures.tsv").read_text().splitlines()[1:] == [
        "https://gone.example/\tdns\tdns: no such host\t",
        "https://a.example/y\ttimeout\ta\\x1b[31mred\\x09and\\x0d\\x0amore\\u202e\thttps://a.example/",
        "https://a.example/z\trobots\tDisallow: /z\thttps://a.example/",
    ]
    assert [line.split("\t")[5:] for line in (folder / "seeds.tsv").read_text().splitlines()] == [
        ["title", "note", "collection"],
        *[["", "", ""]] * 2,
        ["Gone \\u202e", "N", "c"],
    ]
    assert (folder / "seed-collections.tsv").read_text().splitlines()[1:] == ["c\t1\t1\t0", "\t2\t1\t8"]
    seeds = json.loads((folder / "summary.json").read_text())["seeds"]
    assert [each.get("about") for each in seeds] == [None, None, texts]
    assert (folder / "slowest-hosts.tsv").read_text().splitlines()[1] == "https://b.example\t4.000\t1\t4.0"
    assert json.loads((folder / "summary.json").read_text())["totals"]["archived"] == 3


def test_files_are_replaced_whole(crawl: Path, db: Reader) -> None:
    folder = crawl / "reports"
    folder.mkdir()
    (folder / "summary.txt").write_text("old")
    (folder / "summary.txt.tmp").write_text("left by a crash")
    files.write_reports(NamedCrawl.in_directory(crawl), db, read_summary(db), crawl / "reports", NOW)
    assert (folder / "summary.txt").read_text().startswith("URLs      3 archived")
    assert not list(folder.glob("*.tmp"))


def test_summary_in_words(db: Reader) -> None:
    assert list(summary_lines(read_summary(db, "a limit was reached", FinishedRun(90.0, 180, 2400)))) == [
        "ended     a limit was reached",
        "URLs      3 archived, 2 failed, 1 excluded, 4 waiting, 1 held",
        "archive   3 captures of 2.4 kB in 1 WARC file of 5.0 kB",
        "          deduplicated: 1 payload of 50 B",
        "this run  180 visits in 1:30, 2.0/s, 2.4 kB",
        "seeds     https://gone.example/ failed: dns: no such host",
        "          archiver retry DIR https://gone.example/ && archiver resume DIR   # retry",
        "          https://b.example/ redirects out of scope, to https://c.example/ (host)",
        "verdict   4 pages: 1 ok, 1 redirect, 1 not found (404), 1 no response (dns)",
        "          archiver urls DIR --status 4xx,5xx --why   # which URLs, and why",
        "          1 image, style or script: 1 no response (timeout); missing: https://a.example/y (timeout)",
        "          archiver urls DIR --missing --why   # all missing ones",
        "robots    1 URL is forbidden by robots.txt, such as https://a.example/z",
        "          archiver urls DIR --state excluded --why   # which URLs, and by which rule",
        "held      1 URL is held: https://a.example/day/N looks endless (trap-budget: 500), such as",
        "          https://a.example/day/9",
        "          archiver retry DIR --held https://a.example/day/N && archiver resume DIR   # fetch them",
    ]


def test_beside_a_writer(crawl: Path) -> None:
    """The account is one moment, whatever the crawl commits meanwhile, and holds nobody up."""
    with totals.open_totals(crawl) as db:
        before = totals.totals(db)
        writer = sqlite3.connect(crawl / "crawl.db", timeout=1)
        writer.execute("UPDATE urls SET state = 'archived' WHERE id = 10")
        writer.commit()
        writer.close()
        assert totals.totals(db) == before
    with totals.open_totals(crawl) as db:
        assert totals.totals(db).archived == before.archived + 1


def test_nothing_can_be_written(db: Reader) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("UPDATE urls SET tries = 1")


@pytest.mark.alone
def test_large_crawl_is_quick(tmp_path: Path) -> None:
    """A status of 10⁵ URLs, 2000 hosts and 1000 seeds takes no part of a second for each."""
    with handmade_crawls.database(tmp_path) as db:
        db.executemany("INSERT INTO hosts (id, key) VALUES (?, ?)", ((n, f"http://h{n}") for n in range(1, 2001)))
        db.executemany(
            "INSERT INTO urls (id, url, host, hop, path, depth, off_scope_hops, priority, seed)"
            " VALUES (?, ?, ?, 'L', 'L', 1, 0, 0, ?)",
            ((n, f"http://h{n % 2000 + 1}/{n}", n % 2000 + 1, n % 1000 + 1) for n in range(1, 100_001)),
        )
        db.executemany("INSERT INTO seeds VALUES (?, ?)", ((n, n) for n in range(1, 1001)))

    def run() -> None:
        with totals.open_totals(tmp_path) as opened:
            assert read_summary(opened).totals.waiting == 100_000
            assert len(list(totals.hosts(opened, NOW))) == 2000

    assert seconds(run) < 20  # under a second; one look at all URLs for each host would take minutes


def test_held_patterns_that_often_brought_news_come_first(crawl: Path) -> None:
    """Several calendars have more held URLs than the wiki, of which most pages are real."""
    tallies = {"http://wiki.example/doku?id": (280, 164), **{f"http://cal{n}.example/N": (1200, 100) for n in range(6)}}
    with closing(sqlite3.connect(crawl / "crawl.db")) as held, held:
        for name, (visits, fruitful) in tallies.items():
            held.execute(
                "INSERT INTO pattern_tallies (pattern, visits, fruitful, streak) VALUES (?, ?, ?, 0)",
                (name, visits, fruitful),
            )
            for number in range(3 if "wiki" in name else 5):
                held.execute(
                    "INSERT INTO urls (url, host, state, hop, path, depth, off_scope_hops, priority, note) "
                    "VALUES (?, 1, 'held', 'L', 'L', 1, 0, 2, ?)",
                    (f"{name}{number}", f"trap-budget: 1100: {name}"),
                )
    with totals.open_totals(crawl) as db:
        words = " ".join(" ".join(summary_lines(read_summary(db, "done", None))).split())
    assert (
        "3 URLs are held: http://wiki.example/doku?id looks endless (trap-budget: 1100), although 164 of its" in words
    )
    assert "280 pages brought something new" in words
    assert words.count("brought something new") == 1
    assert words.index("wiki.example") < words.index("cal0.example")
    assert "and 3 more patterns" in words
