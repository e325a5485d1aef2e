"""The report as text, JSON and one page: they agree, nothing from outside spoils them, and they are bounded."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import etree

from archiver.collection.named_crawl import NamedCrawl
from archiver.config.seeds import SEED_SETTING
from archiver.config.settings import Settings, with_values
from archiver.config.toml import render
from archiver.frontier import figures
from archiver.frontier.figures import TimeSlices
from archiver.frontier.totals import Totals, open_totals
from archiver.humanize import volume
from archiver.tools.report import files, html, plots
from archiver.tools.report.report import CrawlReport, FinishedRun, read_summary, report_lines
from archiver.tools.report.tables import ReportTable
from fixtures import handmade_crawls

NOW = 1_700_000_000.0
AS_LISTS = ("verdict", "failure-reasons", "broken-pages")  # tables that the page shows in another form
HOSTS = (
    "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] "
    "[#dup-by-hash-bytes] [#not-modified-urls] [#not-modified-bytes]"
)
EVIL = "</script><script>alert(1)</script>'\"&<img src=x onerror=alert(2)>\x1b[31m\u202e\x00\ud800]]>"
URL = (
    "INSERT INTO urls (id, url, host, state, hop, path, depth, off_scope_hops, priority, via, seed, status,"
    " failure, note) VALUES (?, ?, 1, ?, ?, ?, ?, 0, 0, ?, 1, ?, ?, ?)"
)
CAPTURE = (
    "INSERT INTO captures (url, timestamp, status, mime, payload_digest, payload_length, warc, offset, response_length,"
    " request_length, metadata_length, received, duration, truncated, revisit)"
    " VALUES (?, ?, ?, ?, '', ?, 1, ?, 1, 1, 1, ?, ?, ?, ?)"
)


@contextmanager
def empty(directory: Path) -> Iterator[sqlite3.Connection]:
    """A crawl of one host that has not met anything."""
    with handmade_crawls.database(directory) as db:
        db.execute("INSERT INTO hosts (id, key, robots) VALUES (1, 'https://a.example', 'known')")
        db.execute("INSERT INTO warcs (id, name, committed, closed) VALUES (1, 'w.warc.gz', 5000, 1)")
        yield db


def report(directory: Path, ending: str = "", run: FinishedRun | None = None) -> CrawlReport:
    with open_totals(directory) as db:
        return files.read_report(NamedCrawl.in_directory(directory), db, read_summary(db, ending, run), NOW)


def parsed(told: CrawlReport) -> etree._Element:
    """The page, which is well-formed to the letter."""
    text = "".join(html.render(told))
    assert text.startswith("<!DOCTYPE html>\n")
    return etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, no_network=True))


def words(element: etree._Element) -> str:
    return " ".join("".join(element.itertext()).split())


DESCRIBED = (
    {"url": "https://a.example/", "title": EVIL[:40], "note": EVIL[40:60], "collection": "all"},
    {"url": "https://gone.example/", "title": "Gone site", "collection": "old"},
)


def cells(root: etree._Element, table: str) -> list[list[str]]:
    """The cells of a table of the page: the numbers behind them, where they are numbers."""
    rows = root.findall(f".//section[@id='{table}']//tbody/tr")
    return [[cell.get("data-v", "".join(cell.itertext())) for cell in row] for row in rows]


def test_text_json_and_page_agree(tmp_path: Path) -> None:
    handmade_crawls.finished(tmp_path, NOW)
    (tmp_path / "crawl.toml").write_text(
        render(
            with_values(
                Settings(),
                {
                    "seeds": ("https://a.example/",),
                    "max_depth": 3,
                    "description": EVIL[:40],
                    "seed": tuple(map(SEED_SETTING.parse, DESCRIBED)),
                },
            )
        )
    )
    told = report(tmp_path, "nothing is left", FinishedRun(elapsed=90.0, visits=3, received=2400))
    root, text = parsed(told), "\n".join(report_lines(told))
    data = json.loads(files.as_json(told))
    totals = Totals(**{**data["totals"], "first": 0.0, "last": 0.0})
    cards = {words(card.find("span")): words(card.find("b")) for card in root.iterfind(".//ul[@class='cards']/li")}
    for state in ("failed", "excluded", "waiting"):
        assert cards[state] == str(getattr(totals, state))
        assert f"{cards[state]} {state}" in text
    assert cards["received"] == volume(totals.received)
    assert f"{totals.captures} captures of {cards['received']}" in text
    assert data["settings"] == {"max-depth": "3", "description": EVIL[:40]}
    assert "max-depth = 3" in text
    assert (
        next(words(each) for each in root.findall(".//section[@id='inputs']//dd")) == f"https://a.example/ {EVIL[:40]}"
    )
    moved, failed = root.findall(".//section[@id='failed-seeds']//li")
    assert words(moved) == "https://b.example/ redirects out of scope, to https://c.example/ (host)"
    assert words(failed).startswith("https://gone.example/ Gone site failed: dns")
    assert data["tables"]["seed-collections"]["rows"] == [["all", 1, 0, 8], ["old", 1, 1, 0], ["", 1, 1, 0]]
    for name, table in data["tables"].items():
        assert table["left_out"] == 0
        if name not in AS_LISTS:
            assert cells(root, name) == [[str(cell) for cell in row] for row in table["rows"]]
        for row in table["rows"] if name not in AS_LISTS else ():
            assert re.search(r" +".join(re.escape(str(cell)) for cell in row if cell != ""), text)
    assert sum(sum(column) for column in data["time_series"]["statuses"].values()) == totals.captures + totals.failed
    assert sum(data["time_series"]["received"]) == totals.received
    assert sum(kind["received"] for kind in data["time_series"]["media_types"]) == totals.received
    assert sum(host["captures"] for host in data["time_series"]["hosts"]) == totals.captures
    assert sum(data["time_series"]["response_times"].values()) == totals.captures
    assert sum(sum(states.values()) for states in data["time_series"]["depths"].values()) == 11


def test_what_is_told_of_the_odd_ones(tmp_path: Path) -> None:
    """Requisites that archived pages lack, captures that are not whole, and payloads that were not stored again."""
    with empty(tmp_path) as db:
        db.executemany(
            URL,
            [
                (1, "https://a.example/", "archived", "L", "", 0, None, 200, "", ""),
                (2, "https://a.example/gone.png", "archived", "E", "E", 0, 1, 404, "", ""),
                (3, "https://a.example/moved.css", "archived", "E", "E", 0, 1, 301, "", ""),
                (4, "https://a.example/lost.css", "failed", "R", "ER", 0, 3, 0, "timeout", "x"),
                (5, "https://a.example/forbidden.js", "excluded", "E", "LE", 1, 1, 0, "robots", "x"),
                (6, "https://a.example/page", "archived", "L", "L", 1, 1, 404, "", ""),
                (7, "https://a.example/guessed.js", "failed", "X", "X", 0, 1, 0, "timeout", ""),
                (8, "https://a.example/there.png", "archived", "E", "E", 0, 1, 200, "", ""),
                (9, "https://a.example/lost", "failed", "L", "L", 1, 1, 0, "timeout", ""),
                (10, "https://a.example/of-a-lost-page.png", "failed", "E", "LE", 1, 9, 0, "timeout", ""),
                (11, "https://a.example/later.png", "waiting", "E", "E", 0, 1, 0, "", ""),
                (12, "https://a.example/moved", "failed", "R", "LR", 1, 1, 0, "timeout", ""),
            ],
        )
        db.executemany(
            CAPTURE,
            [
                (1, 1, 200, "text/html", 10, 0, 100, 0.1, "", ""),
                (8, 2, 200, "image/png", 20, 10, 200, 0.1, "time", ""),
                (8, 3, 200, "image/png", 1000, 20, 1100, 0.1, "", "identical-payload-digest"),
                (8, 4, 200, "image/png", 500, 30, 600, 0.1, "", "identical-payload-digest"),
                (1, 5, 304, "text/html", 70, 40, 30, 0.1, "", "server-not-modified"),
            ],
        )
    tables = {table.name: table.rows for table in report(tmp_path).tables}
    assert tables["missing-requisites"] == (
        ("https://a.example/gone.png", "status 404", "https://a.example/"),
        ("https://a.example/lost.css", "timeout", "https://a.example/moved.css"),
        ("https://a.example/forbidden.js", "robots", "https://a.example/"),
    )
    assert tables["truncated"] == (("https://a.example/there.png", 200, 200, "time", "1970-01-01T00:00:00.000Z"),)
    assert tables["revisits"] == (("identical-payload-digest", 2, 1700, 1500), ("server-not-modified", 1, 30, 70))
    assert tables["hosts"] == (("https://a.example", 5, 5, 1, 1, 5, 2030, 3),)


def test_heritrix_reports(tmp_path: Path) -> None:
    """Column for column: names, order, and the space at the end of a line of hosts."""
    handmade_crawls.finished(tmp_path, NOW)
    with open_totals(tmp_path) as db:
        files.write_reports(NamedCrawl.in_directory(tmp_path), db, read_summary(db), tmp_path / "reports", NOW)
    told = {path.name: path.read_text() for path in (tmp_path / "reports").glob("*-report.txt")}
    assert told["hosts-report.txt"].splitlines()[:3] == [
        HOSTS,
        "2 2300 a.example 1 1 2 2300 0 0 0 0 ",
        "1 100 b.example 0 0 0 0 1 100 0 0 ",
    ]
    assert told["responsecode-report.txt"] == "[#urls] [rescode]\n1 -9998\n1 -5003\n1 -4\n1 -1\n1 200\n1 301\n1 404\n"
    assert told["mimetype-report.txt"].splitlines()[:3] == [
        "[#urls] [#bytes] [mime-types]",
        "1 100 unknown",
        r"1 300 a\x1b[31mred\x09and\x0d\x0amore\u202e",
    ]
    assert told["seeds-report.txt"] == (
        "[code] [status] [seed] [redirect]\n-1 NOTCRAWLED https://gone.example/\n301 CRAWLED https://b.example/\n"
        "200 CRAWLED https://a.example/\n"
    )
    assert "seeds crawled: 2\nseeds uncrawled: 1\n" in told["crawl-report.txt"]
    assert "novel URIs: 2\nduplicate-by-hash URIs: 1\nnot-modified URIs: 0\n" in told["crawl-report.txt"]
    assert "duration: 1m30s0ms\n" in told["crawl-report.txt"]
    assert "total crawled bytes: 2400 (2.3 KiB) \n" in told["crawl-report.txt"]


def test_a_host_has_one_name(tmp_path: Path) -> None:
    """For Heritrix's report: whatever the scheme and the port."""
    with handmade_crawls.database(tmp_path) as db:
        keys = (
            "http://a2.example",
            "https://a2.example:8443",
            "https://a2.example",
            "http://[::1]:80",
            "https://[::1]",
        )
        db.executemany(
            "INSERT INTO hosts (key, waiting, archived) VALUES (?, ?, 2)", ((key, len(key) % 7) for key in keys)
        )
    with open_totals(tmp_path) as opened:
        found = {host.key: host.archived for host in figures.named_hosts(opened)}
    assert found == {"a2.example": 6, "[::1]": 4}


@pytest.mark.parametrize("captures", [0, 1])
def test_a_crawl_of_nothing(tmp_path: Path, captures: int) -> None:
    with empty(tmp_path) as db:
        for number in range(captures):
            db.execute(URL, (1, "https://a.example/", "archived", "L", "", 0, None, 200, "", ""))
            db.execute(CAPTURE, (1, int(NOW * 1e6), 200, "text/html", 1, number, 0, 0.0, "", ""))
    told = report(tmp_path)
    assert [len(figure.findall(".//*[@class='k0']")) > 0 for figure in parsed(told).iterfind(".//figure")] == [
        *([True] * captures),  # by status
        *([False] * captures),  # nothing was received in its one second
        *([True] * captures),
        True,
        *([True, True] * captures),
    ]
    assert json.loads(files.as_json(told))["time_series"]["slices"] == captures
    assert "0 failed" in "\n".join(report_lines(told))


def test_nothing_from_outside_is_obeyed(tmp_path: Path) -> None:
    """Names, notes, types and settings that would break out; in what a page may hold there is only what we wrote."""
    folder = tmp_path / "a<b>&\"'"
    folder.mkdir()
    named = EVIL.replace("\x00", "").replace("\ud800", "")
    with empty(folder) as db:
        db.execute("UPDATE hosts SET key = ?", (f"https://{named}",))
        db.execute(URL, (1, f"https://{named}", "archived", "L", "", 0, None, 200, "", ""))
        db.execute(URL, (2, f"https://{named}/", "failed", "E", "E", 0, 1, 0, named, named))
        db.execute("INSERT INTO seeds VALUES (1, 0)")
        db.execute("INSERT INTO refusal_counts (rule, host, links) VALUES (?, ?, 7)", (f"x: {named}", named))
        db.execute(CAPTURE, (1, 1, 200, named, 1, 0, 100, 0.1, named, ""))
    (folder / "crawl.toml").write_text(render(with_values(Settings(), {"description": named})))
    told = report(folder, f"because {EVIL}")
    tables = (*told.tables, ReportTable(f"new-{EVIL}", (EVIL, "b"), ((EVIL[:-4], 1),), 2))
    root = parsed(CrawlReport(told.directory, NOW, told.summary, 1, told.inputs, told.time_series, tables))
    assert {element.tag for element in root.iter()} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "b", "span", "ul", "li", "i", "nav"),
        *("a", "div", "section", "dl", "dt", "dd", "figure", "figcaption", "footer", "script"),
        *("header", "main", "ol", "code", "details", "summary"),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *(f"{{http://www.w3.org/2000/svg}}{name}" for name in ("svg", "path", "rect", "text", "title")),
    }
    assert len(root.findall(".//script")) == 1
    for element in root.iter():
        assert not [name for name in element.attrib if name.startswith("on") or name in ("style", "src", "srcset")]
        assert element.get("href", "#").startswith("#")
    text = "".join(html.render(told))
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg\")[^<]*\"", text.partition("<body>")[0])
    assert words(root.find(".//section[@id='inputs']")).count("<script>alert(1)</script>") == 1


def test_what_is_long_is_cut(tmp_path: Path) -> None:
    """A page of a large crawl is no larger than a page; how much is missing stands there."""
    with empty(tmp_path) as db:
        db.execute(URL, (1, "https://a.example/", "archived", "L", "", 0, None, 200, "", ""))
        db.executemany(
            "INSERT INTO hosts (id, key) VALUES (?, ?)", ((n, f"https://h{n}.example") for n in range(2, 3001))
        )
        db.executemany(
            URL,
            ((n, f"https://a.example/{n}{'x' * 5000}", "failed", "E", "E", 0, 1, 0, "dns", "") for n in range(2, 2002)),
        )
    told = report(tmp_path)
    text = "".join(html.render(told))
    assert len(text) < 500_000
    root = parsed(told)
    assert len(cells(root, "failures")) == html.ROWS
    assert "1,800 more rows are in reports/failures.tsv." in words(root)
    data = json.loads(files.as_json(told))
    assert (len(data["tables"]["failures"]["rows"]), data["tables"]["failures"]["left_out"]) == (1000, 1000)
    assert "2988 other hosts" in text
    assert "  and 1980 more" in list(report_lines(told))


@pytest.mark.parametrize(
    ("seconds", "step", "slices"),
    [(0, 1, 1), (95, 1, 96), (96, 2, 49), (3600, 60, 61), (1_814_400, 21_600, 85), (400_000_000, 4_838_400, 84)],
)
def test_a_life_in_slices(seconds: int, step: int, slices: int) -> None:
    span = TimeSlices.of(Totals(captures=1, first=NOW, last=NOW + seconds))
    assert (span.step, span.slices) == (step, slices)
    assert span.begins <= NOW < span.begins + step
    assert span.begins + step * slices > NOW + seconds
    places = list(plots.marks(span))
    assert len(places) <= 7
    assert all(0 <= place <= slices for place, _ in places)
    assert len({word for _, word in places}) == len(places)


def test_a_pause_is_seen(tmp_path: Path) -> None:
    with empty(tmp_path) as db:
        db.execute(URL, (1, "https://a.example/", "archived", "L", "", 0, None, 200, "", ""))
        moments = [0, 1, 2, 30, 31]
        db.executemany(
            CAPTURE,
            ((1, int((NOW + n) * 1e6), 200, "text/html", 1, n, 100, 0.1, "", "") for n in moments),
        )
    drawn = report(tmp_path).time_series
    assert drawn.pauses == ((3, 27),)
    assert drawn.statuses["2xx"] == [int(n in moments) for n in range(32)]
    svg = next(plot.svg for plot in plots.draw_plots(drawn) if plot.title == "Responses over time")
    assert "idle for 27.0 s" in svg


@pytest.mark.parametrize(
    ("highest", "last"), [(0, 1e-9), (1, 1), (3.4, 4), (99, 100), (100, 100), (101, 150), (12_345, 15_000)]
)
def test_ticks(highest: float, last: float) -> None:
    found = plots.ticks(highest)
    assert found[0] == 0
    assert found[-1] == pytest.approx(last)
    assert 2 <= len(found) <= 6
    assert plots.ticks(min(highest, 2), whole=True) == [0, 1, 2][: 2 + (highest > 1)]


def test_beside_a_crawl_that_runs(tmp_path: Path) -> None:
    """What is committed is told of, though the write-ahead file has it still; the crawl is not held up."""
    handmade_crawls.finished(tmp_path, NOW)
    writer = sqlite3.connect(tmp_path / "crawl.db", timeout=1)
    writer.execute("UPDATE urls SET state = 'archived' WHERE id = 10")
    writer.commit()
    with open_totals(tmp_path) as db:
        assert (
            files.read_report(NamedCrawl.in_directory(tmp_path), db, read_summary(db), NOW).summary.totals.archived == 4
        )
        writer.execute("UPDATE urls SET state = 'waiting' WHERE id = 10")
        writer.commit()
    writer.close()
