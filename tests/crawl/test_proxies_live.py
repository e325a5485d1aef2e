"""Whole crawls through proxies: the same archive as without one, and no connection that goes past the proxy."""

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.config.host_rules import HOST_RULE
from archiver.model import ExitCode
from fixtures.archives import captured, rows, states, warcs
from fixtures.command import archiver, ended, running, said
from fixtures.crawl_in_process import crawl
from fixtures.ports import free_port
from fixtures.proxies import (
    RestartedProxy,
    ScriptedProxy,
    microsocks,
    needs_microsocks,
    needs_squid,
    needs_tinyproxy,
    squid,
    tinyproxy,
)
from fixtures.rawserver import RawServer, Route
from fixtures.sites import message, ok, page, tree
from fixtures.thread_delay import MOST_JITTER

PROXY = "127.0.0.77"
SITE = tree(12)
KINDS = [
    pytest.param("http", marks=needs_tinyproxy),
    pytest.param("socks5", marks=needs_microsocks),
    pytest.param("socks5h", marks=needs_microsocks),
]


@contextmanager
def proxied(kind: str, folder: Path) -> Iterator[str]:
    with tinyproxy(folder, PROXY) if kind == "http" else microsocks(PROXY) as port:
        yield f"{kind}://127.0.0.1:{port}"


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_archive_is_the_same_as_without_a_proxy(tmp_path: Path, kind: str, *, tls: bool) -> None:
    """WARC-IP-Address is there only if we looked the name up, and each visit says which proxy it used."""
    allowed = ("localhost", "127.0.0.0/8")
    with RawServer(SITE.routes, tls=tls) as server, proxied(kind, tmp_path) as proxy:
        seed = server.url("/", "localhost")
        crawl(tmp_path / "direct", seed, allow_private=allowed)
        asked = len(server.log)
        ending = crawl(tmp_path / "c", seed, allow_private=allowed, proxy=(proxy,))
        assert ending.code is ExitCode.DONE, ending.reason
        assert {row.client for row in tuple(server.log)[asked:]} == {PROXY}
    assert captured(tmp_path / "c") == captured(tmp_path / "direct")
    if tls or kind != "http":  # plain http is the proxy's own message
        assert _blocks(tmp_path / "c") == _blocks(tmp_path / "direct")
    found = _fields(tmp_path / "c")
    assert {ip for ip, _ in found} == ({"127.0.0.1"} if kind == "socks5" else {None})
    assert all(f"remark: proxy:{proxy}\r\n" in notes for _, notes in found)
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE


def _blocks(directory: Path) -> set[tuple[str, str, bytes]]:
    """Kind, URL and exact bytes of all requests and responses."""
    found = set()
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type in ("request", "response"):
                    address = record.rec_headers.get_header("WARC-Target-URI")
                    found.add((record.rec_type, address, record.raw_stream.read()))
    return found


def _fields(directory: Path) -> list[tuple[str | None, str]]:
    """WARC-IP-Address of each response, and the metadata of its visit."""
    ips, notes = [], []
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type in ("response", "revisit"):
                    ips.append(record.rec_headers.get_header("WARC-IP-Address"))
                elif record.rec_type == "metadata" and record.rec_headers.get_header("WARC-Concurrent-To"):
                    notes.append(record.raw_stream.read().decode())
    return list(zip(ips, notes, strict=True))


def ways_of(pool: tuple[str, ...]) -> list[str]:
    return [word for proxy in pool for word in ("--proxy", proxy)]


@needs_tinyproxy
@needs_microsocks
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_hosts_of_a_pool_keep_their_proxy_and_their_rate(tmp_path: Path, *, tls: bool) -> None:
    """They do when the crawl is killed and resumed, too."""
    hosts = tuple(f"127.0.0.{number}" for number in range(2, 8))
    names = [f"/{number}" for number in range(3)]
    routes = {"/": ok(page("Front", names)), **{name: ok(page(name)) for name in names}}
    ways = {"127.0.0.77", "127.0.0.78"}
    with ExitStack() as stack:
        server = stack.enter_context(RawServer(routes, hosts=hosts, tls=tls))
        ports = stack.enter_context(tinyproxy(tmp_path, "127.0.0.77")), stack.enter_context(microsocks("127.0.0.78"))
        pool = (f"http://127.0.0.1:{ports[0]}", f"socks5h://127.0.0.1:{ports[1]}")
        seeds = [server.url("/", host) for host in hosts]
        options = (*("-o", "c", "--rate", "1", "--robots", "ignore", "--probe", "off"), *ways_of(pool))
        with running("crawl", *seeds, *options, cwd=tmp_path) as process:
            server.log.holds(8).wait()
            process.kill()
            process.wait()
        killed = time.monotonic()
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        came = {host: [row for row in server.log if row.host == host] for host in hosts}
    for found in came.values():
        assert {row.target for row in found} == {"/", *names}
        assert len({row.client for row in found}) == 1
        for first, later in itertools.pairwise(found):
            assert later.arrived - first.arrived > 1 - MOST_JITTER or first.arrived < killed < later.arrived
    assert {row.client for found in came.values() for row in found} <= ways


@needs_microsocks
def test_a_proxy_for_some_hosts(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("Front"))}, hosts=("127.0.0.2", "127.0.0.3")) as server, microsocks(PROXY) as port:
        rule = HOST_RULE.parse(f"127.0.0.3 proxy=socks5://127.0.0.1:{port}")
        crawl(tmp_path, *(server.url("/", host) for host in server.hosts), host=(rule,))
        assert {(row.host, row.client == PROXY) for row in server.log} == {("127.0.0.2", False), ("127.0.0.3", True)}


@pytest.mark.parametrize("dead", [False, True], ids=["no proxy", "dead proxy"])
def test_an_onion_never_goes_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dead: bool) -> None:
    """Not as link, redirect or requisite; the crawl's other hosts have a proxy or none. No name is looked up."""
    asked: list[object] = []
    look_up = socket.getaddrinfo

    def remember(host: str | bytes, *rest: object, **terms: object) -> object:
        asked.append(host)
        return look_up(host, *rest, **terms)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", remember)
    moved = message("302 Found", b"", location="http://a.onion/moved")
    rules = ("http://a.onion/link", "http://b.onion/dot.gif", "http://a.onion/moved")
    with RawServer({"/go": moved, "/": ok(page("Front", ["/go", rules[0]], images=[rules[1]]))}) as server:
        rule = HOST_RULE.parse(f"*.onion proxy=socks5h://127.0.0.1:{free_port()}")
        hosts = (rule,) if dead else ()
        ending = crawl(tmp_path / "c", server.url(), "http://a.onion/", host=hosts, offline_patience=1.0)
        assert ending.code is (ExitCode.LIMIT if dead else ExitCode.DONE), ending.reason
        assert {row.name for row in server.log} == {"127.0.0.1"}
    assert not [host for host in asked if "onion" in str(host)]
    found = states(tmp_path / "c")
    assert {found.get(address) for address in rules} <= {"waiting" if dead else "failed"}


def test_an_onion_without_a_proxy_fails_with_the_reason(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("Front", ["http://abcdef.onion/"]))}) as server:
        ending = crawl(tmp_path, server.url(), "http://ghijkl.onion/x")
    assert ending.code is ExitCode.DONE
    assert states(tmp_path)["http://ghijkl.onion/x"] == "failed"
    [(note,)] = rows(tmp_path, "SELECT note FROM urls WHERE url = 'http://ghijkl.onion/x'")
    assert "only a proxy that resolves names leads to .onion; use --proxy '*.onion socks5h://HOST:PORT'" in str(note)


@needs_microsocks
def test_private_links_stay_refused_behind_a_proxy(tmp_path: Path) -> None:
    with RawServer(hosts=("127.0.0.1", "127.0.0.2")) as server, microsocks(PROXY) as port:
        images = [server.url("/dot.gif", "127.0.0.2"), "http://router.lan/x.gif", server.url("/y.gif", "localhost")]
        server.routes = {"/": ok(page("Front", images=images))}
        crawl(tmp_path, server.url(), proxy=(f"socks5h://127.0.0.1:{port}",))
        assert {row.host for row in server.log} == {"127.0.0.1"}
    assert {states(tmp_path)[image] for image in images} == {"excluded"}


@needs_tinyproxy
def test_a_dead_proxy_costs_no_host_and_no_retry(tmp_path: Path) -> None:
    """The crawl waits, says for which proxy, and goes on when the proxy is there."""
    port = free_port()
    with RawServer(SITE.routes) as server:
        options = ("--rate", "0", "--retries", "0", "--proxy", f"http://127.0.0.1:{port}", "-o", "c", "--probe", "off")
        with running("crawl", server.url(), *options, cwd=tmp_path) as process:
            line = said(process, "its hosts wait")
            assert (
                f"proxy http://127.0.0.1:{port}: Connection refused; its hosts wait, and no URL loses a retry" in line
            )
            with tinyproxy(tmp_path, PROXY, port=port):
                said(process, "answers again")
                code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert {row.client for row in server.log} == {PROXY}
    assert set(states(tmp_path / "c").values()) == {"archived"}
    assert {tries for (tries,) in rows(tmp_path / "c", "SELECT tries FROM urls")} == {1}


def test_a_crawl_ends_if_its_proxy_stays_dead(tmp_path: Path) -> None:
    ending = crawl(tmp_path, "http://127.0.0.1:1/", proxy=(f"http://127.0.0.1:{free_port()}",), offline_patience=1.0)
    assert ending.code is ExitCode.LIMIT
    assert "Connection refused; --offline-patience 1 is over" in ending.reason
    assert states(tmp_path)["http://127.0.0.1:1/"] == "waiting"


REFUSAL = message("407 Proxy Authentication Required", b"who?", proxy_authenticate="Basic")


@pytest.mark.parametrize("seed", ["http://127.0.0.1:1/", "https://127.0.0.1:1/"])
def test_a_refused_login_is_bad_input(tmp_path: Path, seed: str) -> None:
    """One line, code 2, and all URLs wait for the right password."""
    with ScriptedProxy((REFUSAL,)) as proxy:
        place = f"http://127.0.0.1:{proxy.port}"
        ran = archiver("crawl", seed, "-o", "c", "--proxy", place, cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert f"proxy {place}: it refuses the login" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert states(tmp_path / "c")[seed] == "waiting"
    assert rows(tmp_path / "c", "SELECT count(*) FROM captures") == [(0,)]


@needs_tinyproxy
def test_a_crawl_goes_on_with_the_right_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAY_IN", "ann:hunter2")
    with RawServer(SITE.routes) as server, tinyproxy(tmp_path, PROXY, "BasicAuth ann hunter2") as port:
        ran = archiver("crawl", server.url(), "-o", "c", "--proxy", f"http://127.0.0.1:{port}", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE, ran.stderr
        assert not len(server.log)
        options = ("--proxy", f"http://env:WAY_IN@127.0.0.1:{port}", "--rate", "0", "--probe", "off")
        ran = archiver("resume", "c", *options, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert set(states(tmp_path / "c").values()) == {"archived"}


@needs_squid
def test_many_requests_at_once_log_in_with_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They overtake each other, so squid finds counts of its nonce used; no URL loses a retry."""
    monkeypatch.setenv("WORD", "hunter2")
    names = [f"/{number}" for number in range(150)]
    routes = {"/": ok(page("Front", names)), **{name: ok(page(name)) for name in names}}
    with RawServer(routes) as server, squid(PROXY, "ann", "hunter2", "Digest") as port:
        proxy = f"http://ann:env:WORD@127.0.0.1:{port}"
        ending = crawl(tmp_path, server.url(), proxy=(proxy,), host_concurrency=16, retries=0)
        assert ending.code is ExitCode.DONE, ending.reason
        assert {row.client for row in server.log} == {PROXY}
    assert set(states(tmp_path).values()) == {"archived"}
    assert len(server.log) == len(names) + 2, "each URL and robots.txt once"


@pytest.mark.parametrize("program", [pytest.param("tinyproxy", marks=needs_tinyproxy), *KINDS[1:2]])
def test_a_proxy_that_dies_and_comes_back_costs_no_url(tmp_path: Path, program: str) -> None:
    names = [f"/{number}" for number in range(60)]
    routes = {"/": ok(page("Front", names)), **{name: ok(page(name)) for name in names}}
    with ExitStack() as stack:
        server = stack.enter_context(RawServer(routes))
        proxy = RestartedProxy("microsocks" if program == "socks5" else program, PROXY, tmp_path)
        options = ("--rate", "1/0.02", "--probe", "off", "--proxy", proxy.url, "-o", "c")
        with proxy:
            process = stack.enter_context(running("crawl", server.url(), *options, cwd=tmp_path))
            server.log.holds(20).wait()
        said(process, "its hosts wait")
        with proxy:
            said(process, "answers again")
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert {row.client for row in server.log} == {PROXY}
    assert set(states(tmp_path / "c").values()) == {"archived"}
    assert {address for address, _ in captured(tmp_path / "c")} == {
        server.url(target) for target in ("/", "/robots.txt", *names)
    }


def test_an_onion_that_failed_can_be_taken_later(tmp_path: Path) -> None:
    seed = "http://ghijkl.onion/x"
    options = ("--rate", "0", "--probe", "off")
    assert archiver("crawl", seed, "-o", "c", *options, cwd=tmp_path).returncode == ExitCode.NO_SEED
    with ScriptedProxy((message("200 OK", b"hidden", content_type="text/plain"),)) as proxy:
        assert archiver("retry", "c", seed, cwd=tmp_path).returncode == ExitCode.DONE
        ran = archiver("resume", "c", "--proxy", f"*.onion http://127.0.0.1:{proxy.port}", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        asked = [data.split(b" ")[1] for data in proxy.heard]
    assert states(tmp_path / "c")[seed] == "archived"
    assert asked == [b"http://ghijkl.onion/robots.txt", b"http://ghijkl.onion/x"]


@needs_tinyproxy
def test_a_site_cannot_end_the_crawl_with_407(tmp_path: Path) -> None:
    routes: dict[str, Route] = {"/": ok(page("Front", ["/odd", "/b"])), "/odd": REFUSAL, "/b": ok(page("B"))}
    with RawServer(routes) as server, tinyproxy(tmp_path, PROXY) as port:
        ending = crawl(tmp_path / "c", server.url(), proxy=(f"http://127.0.0.1:{port}",), robots="ignore")
    assert ending.code is ExitCode.DONE, ending.reason
    assert set(states(tmp_path / "c").values()) == {"archived"}


def test_a_missing_login_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for option in (("--proxy", "http://env:NO_SUCH_VAR@p:1"), ("--host", "*.a proxy=http://env:NO_SUCH_VAR@p:1")):
        ran = archiver("crawl", "http://127.0.0.1:1/", "-o", "c", *option, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "the environment variable NO_SUCH_VAR is not set" in ran.stderr
        assert ran.stderr.count("\n") == 1
    for option in (("--proxy", "http://ann:hunter2@p:1"), ("--host", "*.a proxy=http://ann:hunter2@p:1")):
        ran = archiver("crawl", "http://127.0.0.1:1/", "-o", "c", *option, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "http://USER:env:NAME@p:1" in ran.stderr
        assert "hunter2" not in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_resume_after_kill_goes_through_the_proxy_again(tmp_path: Path, kind: str) -> None:
    with RawServer(SITE.routes) as server, proxied(kind, tmp_path) as proxy:
        options = ("--rate", "0", "--probe", "off", "--proxy", proxy, "-o", "c")
        with running("crawl", server.url(), *options, cwd=tmp_path) as process:
            server.log.holds(8).wait()
            process.kill()
            process.wait()
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert {row.client for row in server.log} == {PROXY}
        wanted = {server.url(target) for target in (*SITE.reachable, "/robots.txt")}
    assert {url for url, state in states(tmp_path / "c").items() if state == "archived"} == wanted
    assert len(captured(tmp_path / "c")) == len({url for url, _ in captured(tmp_path / "c")})
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
