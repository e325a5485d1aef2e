"""Language variants: the URLs whose responses vary are fetched once in each further language, whatever happens."""

import asyncio
import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from zipfile import ZipFile

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.config.host_rules import HOST_RULE
from archiver.config.option_types import Rate
from archiver.config.responses import LANGUAGE_LIST
from archiver.config.scope_settings import ScopeSettings
from archiver.config.settings import with_values
from archiver.crawl.visit_rules import HostVisitRules, VisitRules, varies
from archiver.errors import ConfigError
from archiver.frontier.address import write_address
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Claim, Event, ExitCode, Framing, Hop
from archiver.policy.scope import Scope
from archiver.tools.verify.collection import verify
from archiver.warc.cdxj import LANGUAGE
from fixtures import browser, replayweb_page
from fixtures.archives import rows, states, warcs
from fixtures.auth_servers import command
from fixtures.crawl_in_process import crawl, settings
from fixtures.debian import NotToBeHad
from fixtures.devtools import needs_chromium
from fixtures.forks import Forks
from fixtures.log import Log, Row
from fixtures.ports import free_port, run_server
from fixtures.postgres import PostgresServer
from fixtures.pywb_server import archiver_replay, plain_wayback
from fixtures.rawserver import RawServer, Route, Sendable, keep
from fixtures.replayweb_page import Capture, hosted, opened_at
from fixtures.sites import message, ok, page
from fixtures.steps import COMMIT, RECOVERY
from fixtures.thread_delay import MOST_JITTER

CAPTURES = """
SELECT urls.url, captures.language, captures.status, revisit FROM captures JOIN urls ON urls.id = captures.url
WHERE urls.priority >= 0 ORDER BY captures.id
"""
LANGUAGES = ("fr", "de")
STATES = "SELECT url, state, status, language, tries FROM urls ORDER BY url"
SCOPE = Scope(ScopeSettings(), ["http://example.org/"], str)
OPTIONS = ("-o", "c", "--rate", "0", "--host-concurrency", "1", "--probe", "off", "--min-free-disk", "0", "-qq")


def language(row: Row) -> str:
    """Return the Accept-Language of a request."""
    found = re.search(rb"\r\nAccept-Language: ([^\r]*)", row.request)
    return found[1].decode() if found else ""


def negotiated(
    name: str, links: tuple[str, ...] = (), vary: str = "Accept-Encoding, accept-language"
) -> Callable[[Row], Sendable]:
    """A page that links to one more page in each language."""

    def route(row: Row) -> Sendable:
        spoken = language(row) or "en"
        further = (f"/{spoken}-only",) if name == "/" else ()
        return ok(page(f"{name} in {spoken}", (*links, *further)), vary=vary, content_language=spoken)

    return route


SITE: dict[str, Route] = {
    "/": negotiated("/", ("/a", "/plain", "/moved", "/picture", "/missing", "/anything")),
    "/a": negotiated("/a", ("/",)),
    "/same": ok(page("The same" * 500), vary="Accept-Language"),
    "/plain": ok(page("Plain", ("/same",)), vary="Accept-Encoding, Cookie"),
    "/anything": ok(page("Anything"), vary="*"),
    "/moved": lambda row: keep(
        message("302 Found", b"", location=f"/home-{language(row) or 'en'}", vary="Accept-Language")
    ),
    **{f"/home-{each}": ok(page(f"Home {each}")) for each in ("en", *LANGUAGES)},
    **{f"/{each}-only": ok(page(f"Only {each}")) for each in ("en", *LANGUAGES)},
    "/missing": lambda _: keep(message("404 Not Found", b"no", vary="Accept-Language")),
}
VARYING = ("/", "/a", "/same", "/moved")
STEADY = ("/plain", "/anything", "/missing", "/picture", *(f"/{kind}" for kind in ("en-only", "fr-only", "de-only")))
KILLS = [(each.name, 3 + 2 * (number % 3)) for number, each in enumerate((*COMMIT, *RECOVERY))]
WANTED = Counter(
    [(url, each) for url in VARYING for each in ("", *LANGUAGES)]
    + [(url, "") for url in (*STEADY, *(f"/home-{each}" for each in ("en", *LANGUAGES)))]
)


def asked(log: Log) -> Counter[tuple[str, str]]:
    return Counter((row.target, language(row)) for row in log if row.target != "/robots.txt")


def records(directory: Path) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield type, URL, language and block of each request and response record, as warcio reads them."""
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                header = record.rec_headers.get_header
                if record.rec_type in {"request", "response", "revisit"}:
                    block = record.raw_stream.read()
                    yield record.rec_type, header("WARC-Target-URI"), header("acceptLanguage") or "", block


def captures(directory: Path, root: str) -> list[tuple[str, str, int, str]]:
    found = rows(directory, CAPTURES)
    return [(str(url).removeprefix(root.rstrip("/")), str(a), int(str(b)), str(c)) for url, a, b, c in found]


def stored_once(directory: Path, root: str) -> None:
    """Check that each response is stored once, in its language, and that the archive is sound."""
    assert Counter((url, spoken) for url, spoken, _, _ in captures(directory, root)) == WANTED
    assert set(states(directory).values()) == {"archived"}
    assert rows(directory, "SELECT count(*) FROM urls WHERE language <> '' OR tries_before <> 0") == [(0,)]
    assert rows(directory, "SELECT sum(visited), sum(waiting) FROM hosts") == [(len({url for url, _ in WANTED}), 0)]
    report = verify([directory])
    assert report.ok, report.counts


@pytest.mark.parametrize(
    ("vary", "status", "expected"),
    [
        ((), 200, False),
        (("Accept-Language",), 200, True),
        (("ACCEPT-LANGUAGE",), 302, True),
        (("Accept-Encoding,accept-language , Cookie",), 200, True),
        (("Accept-Encoding", "Accept-Language"), 304, True),
        (("Accept-Language-Of-Mine",), 200, False),
        (("*",), 200, False),
        (("Accept-Language",), 404, False),
        (("Accept-Language",), 503, False),
    ],
)
def test_which_responses_vary(vary: tuple[str, ...], status: int, *, expected: bool) -> None:
    fields = tuple(("vary", value) for value in vary)
    assert varies(Framing(status, 0, chunked=False, media_type="", fields=fields)) is expected


@pytest.mark.parametrize(
    ("asked_in", "event", "expected"),
    [
        ("", Event.CAPTURE, (Event.VARIANT, "fr")),
        ("", Event.RETRY, (Event.RETRY, "")),
        ("", Event.GIVE_UP, (Event.GIVE_UP, "")),
        ("", Event.FORBID, (Event.FORBID, "")),
        ("fr", Event.CAPTURE, (Event.VARIANT, "de")),
        ("fr", Event.RETRY, (Event.RETRY, "fr")),
        ("fr", Event.GIVE_UP, (Event.VARIANT, "de")),
        ("de", Event.CAPTURE, (Event.CAPTURE, "")),
        ("de", Event.GIVE_UP, (Event.CAPTURE, "")),
        ("de", Event.FORBID, (Event.CAPTURE, "")),
        ("it", Event.CAPTURE, (Event.CAPTURE, "")),
    ],
)
def test_what_comes_after_a_visit(asked_in: str, event: Event, expected: tuple[Event, str]) -> None:
    rules = VisitRules(SCOPE, HostVisitRules(3, languages=LANGUAGES))
    claim = Claim(1, "http://example.org/", 1, Hop.LINK, "", 0, 0, 0, language=asked_in)
    framing = Framing(200, 0, chunked=False, media_type="", fields=(("vary", "accept-language"),))
    assert rules.follow_up(claim, event, framing) == expected


def test_robots_and_a_plain_crawl_have_no_variants() -> None:
    framing = Framing(200, 0, chunked=False, media_type="", fields=(("vary", "accept-language"),))
    robots = Claim(1, "http://example.org/robots.txt", 1, Hop.PREREQUISITE, "P", 0, 0, 0, priority=-1)
    plain = Claim(1, "http://example.org/", 1, Hop.LINK, "", 0, 0, 0)
    rules = VisitRules(SCOPE, HostVisitRules(3, languages=LANGUAGES))
    assert rules.follow_up(robots, Event.CAPTURE, framing) == (Event.CAPTURE, "")
    off = VisitRules(SCOPE, HostVisitRules(3))
    assert off.follow_up(plain, Event.CAPTURE, framing) == (Event.CAPTURE, "")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"also_accept_language": "fr, de"}, ("fr", "de")),
        ({"also_accept_language": "fr, FR, de"}, ("FR", "de")),
        ({"also_accept_language": "fr, de", "accept_language": "FR"}, ("de",)),
        ({"also_accept_language": "fr, de", "accept_language": "fr, en;q=0.5"}, ("fr", "de")),
        ({"also_accept_language": "fr, de", "header": ("accept-language: de",)}, ("fr",)),
        ({}, ()),
    ],
)
def test_which_languages_are_left(values: dict[str, object], expected: tuple[str, ...]) -> None:
    assert HostVisitRules.of(with_values(settings("http://example.org/"), values)).languages == expected


@pytest.mark.parametrize("text", ["fr;q=0.5", "*", "fr de", "-", "a" * 9, ",".join(["fr"] * 11), "f\r\n"])
def test_what_is_no_list_of_languages(text: str) -> None:
    with pytest.raises(ConfigError):
        LANGUAGE_LIST.parse(text)


def test_each_variant_is_fetched_once_and_its_links_are_followed(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        ending = crawl(tmp_path, server.url(), also_accept_language="fr, de")
        assert ending.code is ExitCode.DONE
        assert asked(server.log) == WANTED
        stored_once(tmp_path, server.url())
        found = captures(tmp_path, server.url())
    assert [(spoken, revisit) for url, spoken, _, revisit in found if url == "/same"] == [
        ("", ""),
        *((each, "identical-payload-digest") for each in LANGUAGES),
    ]
    log = (tmp_path / "logs" / "crawl.log").read_text()
    assert log.count("language:fr") == log.count("language:de") == len(VARYING)


def test_nothing_is_asked_twice_when_it_is_off_or_for_another_host(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "127.0.0.2")
    with RawServer(SITE, hosts=hosts) as server:
        rule = HOST_RULE.parse("127.0.0.2 also-accept-language=it")
        crawl(tmp_path, *(server.url("/a", host) for host in hosts), host=(rule,), scope="page")
        found = Counter((row.name, language(row)) for row in server.log if row.target == "/a")
    assert found == {("127.0.0.1", ""): 1, ("127.0.0.2", ""): 1, ("127.0.0.2", "it"): 1}


def test_a_variant_that_fails_leaves_its_url_archived(tmp_path: Path) -> None:
    def route(row: Row) -> Sendable:
        if language(row) == "fr":
            return keep(message("503 Service Unavailable", b"later", retry_after="0"))
        return negotiated("/x")(row)

    with RawServer({"/": route}) as server:
        assert crawl(tmp_path, server.url(), also_accept_language="fr, de", retries=1).code is ExitCode.DONE
        found = asked(server.log)
    assert {each: found[each] for each in (("/", ""), ("/", "fr"), ("/", "de"))} == {
        ("/", ""): 1,
        ("/", "fr"): 2,
        ("/", "de"): 1,
    }
    assert rows(tmp_path, "SELECT state, status, note FROM urls WHERE priority >= 0") == [
        ("archived", 200, "fr: status 503")
    ]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_cookie_wall_that_varies(tmp_path: Path, forks: Forks, concurrency: int) -> None:
    """The page behind the wall is fetched in the language of the settings too."""

    def route(row: Row) -> Sendable:
        if b"\r\nCookie: seen=1" in row.request:
            return negotiated("/x")(row)
        return keep(
            message("302 Found", b"", location="/check", set_cookie="seen=1; Path=/", vary="Accept-Language, Cookie")
        )

    check = keep(message("302 Found", b"", location="/"))
    with RawServer({"/": route, "/check": check}) as server:
        assert (
            crawl(tmp_path, server.url(), also_accept_language="fr, de", host_concurrency=concurrency).code
            is ExitCode.DONE
        )
        found = captures(tmp_path, server.url())
    assert ("/", "", 200, "") in found
    assert {(spoken, status) for url, spoken, status, _ in found if url == "/"} >= {
        ("", 302),
        ("", 200),
        ("fr", 200),
        ("de", 200),
    }
    assert len(found) <= 10
    assert verify([tmp_path]).ok
    before = rows(tmp_path, STATES)
    assert forks.run("rebuild", str(tmp_path), cwd=tmp_path).code == ExitCode.DONE
    assert rows(tmp_path, STATES) == before


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("from_a_backup", [False, pytest.param(True, marks=pytest.mark.postgres)])
def test_visits_are_settled_by_date_whatever_files_they_are_in(
    tmp_path: Path, forks: Forks, postgres_server: PostgresServer | None, *, seed: int, from_a_backup: bool
) -> None:
    """Several crawlers, and the slow writer of each, put the visits of one URL into files of any order.

    A rebuild reads all of them, and so does a crawl whose database is a backup from the time before it began.
    """
    if from_a_backup and postgres_server is None:
        pytest.skip("PostgreSQL is not installed")

    def wall(row: Row) -> Sendable:
        if b"\r\nCookie: seen=1" in row.request:
            return negotiated("/", ("/a", "/late"))(row)
        return keep(message("302 Found", location="/check", set_cookie="seen=1; Path=/", vary="Accept-Language"))

    late = iter([keep(message("503 Service Unavailable", retry_after="0")), ok(page("Late"))])
    check = keep(message("302 Found", b"", location="/"))
    with RawServer({"/": wall, "/check": check, "/a": negotiated("/a"), "/late": lambda _: next(late)}) as server:
        ended = crawl(tmp_path, server.url(), also_accept_language="fr, de", host_concurrency=1, warc_size=1)
        assert ended.code is ExitCode.DONE
    before = rows(tmp_path, STATES)
    paths = warcs(tmp_path)
    assert len(paths) > 8
    names = [path.name for path in paths]
    Random(seed).shuffle(names)
    for number, path in enumerate(paths):
        path.rename(path.with_name(f"{number}"))
    for number, name in enumerate(names):
        paths[number].with_name(f"{number}").rename(paths[number].with_name(name))
    if from_a_backup:
        assert postgres_server is not None
        (tmp_path / "crawl.db").unlink()
        write_address(tmp_path / "crawl.db", postgres_server.new_database())
        asyncio.run(_add_seed(tmp_path, server.url()))
        (tmp_path / "crawl.toml").write_text(f'seeds = ["{server.url()}"]\n')  # it tells that the files are its own
        ended = crawl(tmp_path, server.url(), also_accept_language="fr, de", resume=True)  # the server is closed
        assert ended.code is ExitCode.DONE
    else:
        assert forks.run("rebuild", str(tmp_path), cwd=tmp_path).code == ExitCode.DONE
    assert rows(tmp_path, STATES) == before


async def _add_seed(folder: Path, seed: str) -> None:
    async with await SqliteFrontier.open(folder / "crawl.db") as frontier:
        await frontier.add_seeds([seed])


def test_a_cookie_with_the_language_of_a_variant_is_not_kept(tmp_path: Path) -> None:
    def route(row: Row) -> Sendable:
        kept = re.search(rb"\r\nCookie: spoken=([a-z]+)", row.request)
        spoken = kept[1].decode() if kept else language(row) or "en"
        further = {"set_cookie": f"spoken={spoken}; Path=/"} if language(row) else {}
        return ok(page(f"In {spoken}", ("/a", "/b")), vary="Accept-Language, Cookie", **further)

    with RawServer(dict.fromkeys(("/", "/a", "/b"), route)) as server:
        crawl(tmp_path, server.url(), also_accept_language="fr", robots="ignore", host_concurrency=1)
    answers = [(spoken, block) for kind, _, spoken, block in records(tmp_path) if kind == "response"]
    assert len(answers) == 6
    assert all((f"In {spoken or 'en'}").encode() in block for spoken, block in answers)
    assert rows(tmp_path, "SELECT name, value FROM cookies") == []


def test_the_rate_holds_between_variants(tmp_path: Path) -> None:
    with RawServer({"/": negotiated("/x")}) as server:
        crawl(tmp_path, server.url(), also_accept_language="fr, de", rate=Rate(1), robots="ignore")
        arrived = [row.arrived for row in server.log]
    assert len(arrived) == 3
    assert all(later - earlier > 1 - MOST_JITTER for earlier, later in pairwise(arrived))


def test_a_limit_keeps_the_variants_for_the_next_run(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        assert crawl(tmp_path, server.url(), also_accept_language="fr, de", max_urls=1).code is ExitCode.LIMIT
        crawl(tmp_path, server.url(), also_accept_language="fr, de", resume=True)
        assert asked(server.log) == WANTED
        stored_once(tmp_path, server.url())


@pytest.mark.slow
@pytest.mark.parametrize(("step", "passing"), KILLS)
def test_a_kill_loses_no_variant_and_repeats_none(tmp_path: Path, forks: Forks, step: str, passing: int) -> None:
    with RawServer(SITE) as server:
        begin = ("crawl", server.url(), *OPTIONS, "--also-accept-language", "fr,de")
        in_recovery = step in {each.name for each in RECOVERY}
        first = forks.run(*begin, cwd=tmp_path, step="transaction-to-end" if in_recovery else step, passing=passing)
        assert first.code in {-signal.SIGKILL, ExitCode.DONE}, first.said
        if in_recovery:
            forks.run("resume", "c", "-qq", cwd=tmp_path, step=step)
        ran = forks.run("resume", "c", "-qq", cwd=tmp_path)
        assert ran.code == ExitCode.DONE, ran.said
        stored_once(tmp_path / "c", server.url())
        before = sorted(captures(tmp_path / "c", server.url()))
        ran = forks.run("rebuild", "c", cwd=tmp_path)
        assert ran.code == ExitCode.DONE, ran.said
        assert sorted(captures(tmp_path / "c", server.url())) == before
        log = len(server.log)
        assert forks.run("resume", "c", "-qq", cwd=tmp_path).code == ExitCode.DONE
        assert len(server.log) == log
        stored_once(tmp_path / "c", server.url())


@pytest.mark.slow
def test_a_recrawl_asks_for_each_variant_without_conditions(tmp_path: Path, forks: Forks) -> None:
    def route(row: Row) -> Sendable:
        spoken = language(row) or "en"
        tag = f'"{spoken}"'
        if f"If-None-Match: {tag}\r\n".encode() in row.request:
            return keep(f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\nVary: Accept-Language\r\n\r\n".encode())
        return ok(page(f"In {spoken}" * 100), vary="Accept-Language", etag=tag)

    with RawServer({"/": route}) as server:
        begin = ("crawl", server.url(), *OPTIONS, "--also-accept-language", "fr")
        assert forks.run(*begin, cwd=tmp_path).code == ExitCode.DONE
        ran = forks.run("recrawl", "c", "-qq", cwd=tmp_path)
        assert ran.code == ExitCode.DONE, ran.said
        sent = [(language(row), b"If-None-Match" in row.request) for row in server.log if row.target == "/"]
        assert sent == [("", False), ("fr", False), ("", True), ("fr", False)]
        found = [row[1:] for row in captures(tmp_path / "c", server.url())]
    assert found == [("", 304, "server-not-modified"), ("fr", 200, "")]
    assert verify([tmp_path / "c"]).ok


@pytest.mark.slow
@pytest.mark.parametrize("serve", [archiver_replay, plain_wayback])
def test_pywb_shows_the_language_of_the_settings_first(tmp_path: Path, serve: object) -> None:
    """Also where a variant is the newer capture, and for a page with the payload of a variant."""
    directory = tmp_path / "collections" / "site"
    routes: dict[str, Route] = {
        "/": negotiated("/", ("/other?b=2&a=1", "/page-in-fr")),
        "/other?b=2&a=1": negotiated("/other"),
        "/page-in-fr": ok(page("/other in fr")),
    }
    with RawServer(routes) as server:
        assert crawl(directory, server.url(), also_accept_language="fr, de", probe="off").code is ExitCode.DONE
        root = server.url().rstrip("/")
    with serve(directory) as wayback:  # type: ignore[operator]
        for moment in ("id_", "2100id_", "1999id_"):
            assert b"/ in en" in wayback.get(f"{root}/", moment).body
            assert b"/other in en" in wayback.get(f"{root}/other?b=2&a=1", moment).body
        for spoken in LANGUAGES:
            name = f"__wb_accept_language={spoken}"
            assert f"/ in {spoken}".encode() in wayback.get(f"{root}/?{name}").body
            assert f"/other in {spoken}".encode() in wayback.get(f"{root}/other?b=2&a=1&{name}").body
        assert wayback.get(f"{root}/?unknown=1").status == 404  # nor by its rules for queries
        assert b"/ in en" in wayback.get(f"{root}/?_=1").body
        assert wayback.get(f"{root}/page-in-fr").body == page("/other in fr").encode()


@pytest.mark.browser
@pytest.mark.replay
@pytest.mark.slow
@pytest.mark.timeout(400)
@needs_chromium
def test_replayweb_shows_the_language_of_the_settings(tmp_path: Path, forks: Forks) -> None:
    """Whatever the date; it does not find variants."""
    try:
        replayweb_page.files()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    with RawServer({"/": negotiated("/")}) as server:
        begin = ("crawl", server.url(), *OPTIONS, "--also-accept-language", "fr,de")
        assert forks.run(*begin, cwd=tmp_path).code == ExitCode.DONE
        root = server.url()
    assert forks.run("pack", "c", "-o", "c.wacz", cwd=tmp_path).code == ExitCode.DONE
    urls = (root, f"{root}?{LANGUAGE}fr", f"{root}?{LANGUAGE}de")

    async def look() -> list[tuple[int, bytes]]:
        async with browser.opened(tmp_path / "profile") as shown, hosted(tmp_path / "c.wacz") as host:
            viewing = await opened_at(shown, host)
            asked = [Capture(url, moment) for moment in ("20991231000000", "20000101000000") for url in urls]
            return await viewing.payloads(asked)

    found = asyncio.run(look())
    assert [status for status, _ in found] == 2 * [200, 404, 404]  # it wants the URL of the record
    assert [b"/ in en" in body for _, body in found] == 2 * [True, False, False]


@pytest.mark.slow
def test_commands_take_the_language_of_the_settings(tmp_path: Path, forks: Forks) -> None:
    with RawServer(SITE) as server:
        begin = ("crawl", server.url(), *OPTIONS, "--also-accept-language", "fr,de")
        assert forks.run(*begin, cwd=tmp_path).code == ExitCode.DONE
        root = server.url()

    def out(*words: str) -> str:
        ran = forks.run(*words, cwd=tmp_path)
        assert ran.code == ExitCode.DONE, ran.said
        return ran.out

    assert "/ in en" in out("get", "c", root)
    assert "/ in de" in out("get", "c", f"{root}?__wb_accept_language=de")
    keys = [json.loads(line)["key"].partition(")")[2] for line in out("ls", "c", root, "--json").splitlines()]
    assert keys == ["/", "/?__wb_accept_language=de", "/?__wb_accept_language=fr"]
    assert [line.rpartition(" ")[2] for line in out("ls", "c", root).splitlines()] == [root, "(de)", "(fr)"]
    assert "in further languages: 8 captures" in out("report", "c")
    assert "Accept-Language: fr" in out("explain", "c", root)
    out("export", "c", "--to", "site")
    assert any("/ in en" in path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    assert not any("/ in fr" in path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    lines = (tmp_path / "c" / "indexes" / "index.cdxj").read_bytes()
    out("index", "c")
    assert (tmp_path / "c" / "indexes" / "index.cdxj").read_bytes() == lines
    out("pack", "c", "-o", "c.wacz")
    assert "/ in en" in out("get", "c.wacz", root)
    with ZipFile(tmp_path / "c.wacz") as package:
        listed = "".join(package.read(f"pages/{name}.jsonl").decode() for name in ("pages", "extraPages"))
    assert listed.count('in en", ') == 2
    assert not any(f" in {each}" in listed for each in LANGUAGES)


def test_records_name_the_language(tmp_path: Path) -> None:
    with RawServer({"/": negotiated("/x")}) as server:
        crawl(tmp_path, server.url(), also_accept_language="fr", robots="ignore")
    found = [(kind, spoken, b"\r\nAccept-Language: fr" in block) for kind, _, spoken, block in records(tmp_path)]
    plain = [("response", "", False), ("request", "", False)]
    assert found[:4] == [*plain, ("response", "fr", False), ("request", "", True)]


APACHE = """
ServerRoot {folder}
PidFile {folder}/pid
ErrorLog {folder}/error.log
Listen 127.0.0.1:{port}
ServerName 127.0.0.1
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule mime_module {modules}/mod_mime.so
LoadModule dir_module {modules}/mod_dir.so
LoadModule negotiation_module {modules}/mod_negotiation.so
DocumentRoot {folder}/site
TypesConfig /dev/null
AddType text/html .html
AddLanguage en .en
AddLanguage fr .fr
AddLanguage de .de
LanguagePriority en fr de
ForceLanguagePriority Prefer Fallback
<Directory {folder}/site>
    Options +MultiViews
    DirectoryIndex index
</Directory>
"""
MODULES = Path("/usr/lib/apache2/modules")
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
    access_log off; default_type text/html;
    client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
    uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
    map $http_accept_language $spoken {{ default en; ~*^fr fr; ~*^de de; }}
    server {{
        listen 127.0.0.1:{port}; root {folder}/site;
        location / {{ add_header Vary Accept-Language; try_files $uri.html.$spoken $uri/index.html.$spoken =404; }}
    }}
}}
"""


@contextmanager
def server_of(name: str, folder: Path) -> Iterator[str]:
    """Run apache2 with MultiViews, or nginx with a map, on a site in three languages."""
    port = free_port()
    (folder / "site").mkdir(parents=True)
    for spoken in ("en", *LANGUAGES):
        front = page(f"Front in {spoken}", ("/about", f"/only-{spoken}"))
        for target, text in (("index", front), ("about", page(f"About in {spoken}"))):
            (folder / "site" / f"{target}.html.{spoken}").write_text(text)
        (folder / "site" / f"only-{spoken}.html.en").write_text(page(f"Only in {spoken}"))
    text = (APACHE if name == "apache2" else NGINX).format(folder=folder, port=port, modules=MODULES)
    (folder / "server.conf").write_text(text)
    path = str(folder / "server.conf")
    words = ("-X", "-f", path) if name == "apache2" else ("-p", str(folder), "-c", path)
    program = command(name)
    assert program is not None
    with run_server(port, program, *words):
        yield f"http://127.0.0.1:{port}/"


@pytest.mark.parametrize("name", ["apache2", "nginx"])
def test_real_servers(tmp_path: Path, name: str) -> None:
    if command(name) is None:
        pytest.skip(f"{name} is not installed")
    with server_of(name, tmp_path / "server") as root:
        assert crawl(tmp_path / "c", root, also_accept_language="fr,de", robots="ignore").code is ExitCode.DONE
        found = Counter(captures(tmp_path / "c", root))
    for target in ("/", "/about"):
        assert {spoken for url, spoken, status, _ in found if (url, status) == (target, 200)} == {"", "fr", "de"}
    assert {f"/only-{each}" for each in ("en", *LANGUAGES)} <= {url for url, *_ in found}
    assert max(found.values()) == 1
    answers = (each for each in records(tmp_path / "c") if each[:2] == ("response", root))
    texts = {spoken: re.findall(rb"<title>(Front in [a-z]+)", block) for _, _, spoken, block in answers}
    assert texts == {"": [b"Front in en"], "fr": [b"Front in fr"], "de": [b"Front in de"]}
