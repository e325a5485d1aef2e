"""What the verdict says of seeds without a good answer, and which command helps."""

import json
import shlex
import signal
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, running
from fixtures.flag import Flag
from fixtures.rawserver import Answer, RawServer, Route, in_turn, keep, raising
from fixtures.sites import message, ok, page, redirect

FAST = ("--rate", "0", "--retries", "0", "--probe=off", "-q")


def error_page(status: str, links: list[str], **fields: str) -> Answer:
    body = page("Oops", links, styles=["/style.css"]).encode()
    return keep(message(status, body, content_type="text/html", **fields))


@pytest.mark.parametrize("further", [False, True], ids=["alone", "with another failed seed"])
def test_a_seed_that_robots_txt_forbids_gets_a_command_that_fetches_it(tmp_path: Path, *, further: bool) -> None:
    """The same request again would be forbidden again."""
    routes: dict[str, Route] = {"/robots.txt": ok("User-agent: *\nDisallow: /in/", "text/plain")}
    routes |= {"/in/": ok(page("Home", ["/in/a"])), "/in/a": ok("a")}
    with RawServer(routes) as server:
        seeds = [server.url("/in/"), *([server.url("/gone")] if further else [])]
        archiver("crawl", *seeds, "-o", "o", *FAST, cwd=tmp_path)
        told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)["verdict"]["findings"]
        commands = {each["command"] for each in told if each["topic"] == "seeds"}
        again = f"archiver retry o {server.url('/in/')} && archiver resume o --robots observe"
        other = f"archiver retry o {server.url('/gone')} && archiver resume o"
        assert commands == ({again, other} if further else {again})
        for command in again.split(" && "):
            ran = archiver(*shlex.split(command)[1:], cwd=tmp_path)
            assert ran.returncode == ExitCode.DONE, ran.stderr
        assert rows(tmp_path / "o", "SELECT status FROM urls WHERE url LIKE '%/in/%' ORDER BY url") == [(200,), (200,)]


def test_a_seed_that_redirects_to_what_robots_txt_forbids_gets_a_command_that_fetches_it(tmp_path: Path) -> None:
    routes: dict[str, Route] = {"/robots.txt": ok("User-agent: *\nDisallow: /in/", "text/plain")}
    routes |= {"/": redirect("/in/"), "/in/": ok("in")}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
    again = f"archiver retry o {server.url()} {server.url('/in/')} && archiver resume o --robots observe"
    assert again in ran.stderr


NOWHERE: dict[str, str] = {
    "no Location": "302 Found",
    "an empty one": "302 Found\r\nLocation: ",
    "a mail address": "301 Moved Permanently\r\nLocation: mailto:a@example.org",
    "no address": "307 Temporary Redirect\r\nLocation: http://[::1",
    "a file": "303 See Other\r\nLocation: file:///etc/passwd",
    "use proxy": "305 Use Proxy",
}


@pytest.mark.parametrize("line", NOWHERE.values(), ids=NOWHERE)
@pytest.mark.parametrize("moved", [False, True], ids=["at once", "after a redirect"])
def test_a_seed_that_redirects_nowhere_has_failed(tmp_path: Path, line: str, *, moved: bool) -> None:
    answer = keep(message(line, b"<p>moved", content_type="text/html"))
    with RawServer({"/": redirect("/on") if moved else answer, "/on": answer}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
    did = f"redirects to {server.url('/on')}:" if moved else "returned"
    assert f"{server.url()} {did} status {line[:3]} without a usable Location" in " ".join(ran.stderr.split())
    assert ran.returncode == ExitCode.DONE  # documented: any 3xx is an answer
    assert archiver("resume", "o", "--strict", cwd=tmp_path).returncode == ExitCode.TROUBLE


HEADLESS = {
    "no status line": b"<p>hello, this is HTTP/0.9\r\n",
    "zero": b"HTTP/1.1 000 None\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\n<p>hello",
    "below 100": b"HTTP/1.1 099 Low\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\n<p>hello",
    "no number": b"HTTP/1.1 fine OK\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\n<p>hello",
}


@pytest.mark.parametrize("raw", HEADLESS.values(), ids=HEADLESS)
def test_an_answer_without_a_usable_status_is_no_good_answer(tmp_path: Path, raw: bytes) -> None:
    """It is archived, and browsers show an error in its place."""
    with RawServer({"/": raw, "/moved": redirect("/")}) as server:
        ran = archiver("crawl", server.url(), server.url("/moved"), "-o", "o", *FAST, cwd=tmp_path)
    said = " ".join(ran.stderr.split())
    assert f"{server.url()} returned no usable status" in said
    assert f"{server.url('/moved')} redirects to {server.url()}: no usable status" in said
    assert "2 pages: 1 redirect, 1 no usable status archiver urls o --status 0xx --why" in said
    assert ran.returncode == ExitCode.DONE  # documented: any 3xx is an answer
    assert rows(tmp_path / "o", "SELECT 1 FROM urls WHERE state = 'archived' AND status < 100")
    chosen = archiver("urls", "o", "--status", "0xx", cwd=tmp_path).stdout
    assert server.url() in chosen
    assert server.url("/moved") not in chosen


def test_a_seed_that_lets_the_reader_choose_has_not_failed(tmp_path: Path) -> None:
    """Browsers show the body of a response 3xx without Location, and its links are followed."""
    choice = keep(message("300 Multiple Choices", page("Choose", ["/a"]).encode(), content_type="text/html"))
    with RawServer({"/": choice, "/a": ok("a")}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert "/a" in server.log.targets()
    assert "Location" not in ran.stderr


def test_an_answer_304_to_a_first_request_is_named(tmp_path: Path) -> None:
    """Nothing is stored that it could confirm."""
    with RawServer({"/": keep(b"HTTP/1.1 304 Not Modified\r\n\r\n")}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
    assert "returned status 304 without a stored version" in " ".join(ran.stderr.split())


STATUSES = ["401 Unauthorized", "403 Forbidden", "404 Not Found", "410 Gone", "500 Oops", "503 Service Unavailable"]
SITE: dict[str, Route] = {
    "/a": ok(page("A", ["/b", "/dead"])),
    "/b": ok("b"),
    "/style.css": ok("body {}", "text/css"),
    "/dead": error_page("404 Not Found", ["/deeper"]),
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("moved", [False, True], ids=["at once", "after a redirect"])
def test_the_links_on_the_error_page_of_a_seed_are_followed(tmp_path: Path, status: str, *, moved: bool) -> None:
    """A site whose start page is an error may have its whole navigation there. Those of other error pages are not."""
    broken = error_page(status, ["/a", "/b"])
    routes = {**SITE, "/": redirect("/home") if moved else broken, "/home": broken}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        asked = {*server.log.targets()}
    assert {"/a", "/b", "/style.css", "/dead"} <= asked
    assert "/deeper" not in asked
    if not moved:
        assert ran.returncode == ExitCode.NO_SEED
        assert f"returned status {status[:3]}; 4 URLs were found on its page" in " ".join(ran.stderr.split())
    before = rows(tmp_path / "o", "SELECT url, state, status, path, note FROM urls ORDER BY url")
    assert archiver("verify", "o", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("rebuild", "o", cwd=tmp_path).returncode == ExitCode.DONE
    assert rows(tmp_path / "o", "SELECT url, state, status, path, note FROM urls ORDER BY url") == before


def test_the_links_of_an_error_that_is_retried_wait_for_the_last_try(tmp_path: Path) -> None:
    """A busy site gets no further requests, and the next answer may be the page itself."""
    busy = error_page("503 Service Unavailable", ["/only-on-the-error-page"])
    answers = [busy, ok(page("Home", ["/a"]))]
    with RawServer({**SITE, "/": lambda _: answers.pop(0)}) as server:
        ran = archiver(
            "crawl", server.url(), "-o", "o", "--rate", "0", "--retries", "2", "--probe=off", "-q", cwd=tmp_path
        )
        assert "/only-on-the-error-page" not in server.log.targets()
    assert ran.returncode == ExitCode.DONE, ran.stderr


def test_nothing_on_a_challenge_page_is_requested(tmp_path: Path) -> None:
    challenge = b"<title>Just a moment...</title><a href=/help>Help</a><script src=/cdn-cgi/challenge.js></script>"
    blocked = keep(
        message("403 Forbidden", challenge, content_type="text/html", server="cloudflare", cf_mitigated="challenge")
    )
    with RawServer({"/": blocked}) as server:
        archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert {*server.log.targets()} <= {"/robots.txt", "/"}


ALONE = "has no links to other pages of its site"


@pytest.mark.parametrize(
    ("body", "words", "command"),
    [
        ("<title>Maintenance</title><h1>Back soon</h1>", ALONE, "archiver resume o --browser auto"),
        ('<title>One</title><a href="/">home</a><a href="#top">top</a>', ALONE, "archiver resume o --browser auto"),
        ('<div id="root"></div><script>fetch("/api")</script>', ALONE, "archiver resume o --browser auto"),
        (
            '<a href="http://other.example/buy">Buy</a><a href="http://other.example/more">this domain</a>',
            "links only to pages out of scope, such as http://other.example/buy",
            "archiver add o http://other.example/buy && archiver resume o",
        ),
        ('<div id="root"></div><script src="/app.js"></script>', "has 1 script and hardly any links", "--browser auto"),
    ],
    ids=["maintenance", "only to itself", "script inside", "out of scope", "script file"],
)
@pytest.mark.parametrize("moved", [False, True], ids=["at once", "after a redirect"])
def test_a_site_of_one_page_gets_a_hint(tmp_path: Path, body: str, words: str, command: str, *, moved: bool) -> None:
    routes = {"/": redirect("/home") if moved else ok(body), "/home": ok(body), "/app.js": ok("f()", "text/javascript")}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, "--strict", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        told = " ".join(ran.stderr.split())
        assert (told.count(words), told.count(ALONE)) == (1, int(words == ALONE))
        assert command in told
        ran = archiver("crawl", server.url(), "-o", "narrow", *FAST, "--scope", "page", cwd=tmp_path)
        assert not any(each in " ".join(ran.stderr.split()) for each in (ALONE, "links only to", "hardly any")), (
            ran.stderr
        )


def test_a_site_with_pages_gets_no_hint(tmp_path: Path) -> None:
    routes: dict[str, Route] = {"/": ok(page("Home", ["/a"])), "/a": ok("a"), "/text": ok("text", "text/plain")}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), server.url("/text"), "-o", "o", *FAST, cwd=tmp_path)
    assert ALONE not in " ".join(ran.stderr.split())


@pytest.mark.parametrize(("seconds", "told"), [("86400", True), ("1", False)])
def test_a_host_that_asks_us_to_wait_long_is_named_at_once(tmp_path: Path, seconds: str, *, told: bool) -> None:
    """The crawl of other hosts goes on meanwhile, and Ctrl+C leaves the rest for later."""
    hosts = ("127.0.0.1", "127.0.0.2")
    busy = keep(message("503 Service Unavailable", b"later", retry_after=seconds))
    routes: dict[str, Route] = {"//127.0.0.1/": ok(page("One", ["/a"])), "//127.0.0.2/": ok(page("Two", ["/x"]))}
    routes |= {"//127.0.0.1/a": in_turn(busy, ok("a"))}
    last = Flag()
    routes["//127.0.0.2/x"] = ok(page("X", ["/y"]))
    routes["//127.0.0.2/y"] = raising(last, ok("y"))
    options = ("--rate", "0", "--probe=off", "-o", "o")
    with (
        RawServer(routes, hosts=hosts) as server,
        running("crawl", server.url(), server.url(host="127.0.0.2"), *options, cwd=tmp_path) as crawl,
    ):
        assert crawl.stderr is not None
        words = f"{server.url('')} asks us to wait until 20"
        if told:
            assert any(words in line for line in crawl.stderr)
            last.wait()
            crawl.send_signal(signal.SIGINT)
        said = crawl.communicate(timeout=60)[1]
    assert crawl.returncode == (ExitCode.STOPPED if told else ExitCode.DONE), said
    assert words not in said
