"""What a crawl says at its end: exit codes, counts, what went wrong, and the command that goes on from there."""

import asyncio
import json
from pathlib import Path

import pytest

from archiver.config import toml
from archiver.crawl.build import open_crawl
from archiver.crawl.engine import Crawl
from archiver.crawl.recrawl import set_aside
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl, settings
from fixtures.rawserver import Answer, End, RawServer, Route, keep
from fixtures.sites import PIXEL, message, ok, page, redirect, tree

FAST = ("--rate", "0", "--retries", "0", "--probe=off", "-q")


def answer(status: str, body: bytes = b"no\n") -> Answer:
    """An answer with *status*, on a connection that stays open."""
    return keep(message(status, body, content_type="text/plain"))


def troubled() -> dict[str, Route]:
    """Sixty pages: some are not there, some are broken; a picture is missing, a directory is forbidden."""
    links = [f"/p{number}" for number in range(60)]
    routes: dict[str, Route] = {name: ok(page(name)) for name in links}
    routes |= {f"/p{number}": answer("404 Not Found") for number in range(0, 60, 12)}
    routes |= {f"/p{number}": answer("500 Internal Server Error") for number in range(6, 48, 12)}
    routes["/"] = ok(page("Home", [*links, "/private/x"], ["/a.png", "/gone.png"]))
    routes["/a.png"] = ok(PIXEL, "image/gif")
    routes["/robots.txt"] = ok("User-agent: *\nDisallow: /private/", "text/plain")
    return routes


@pytest.mark.parametrize(
    "seed",
    [
        answer("403 Forbidden"),
        answer("404 Not Found"),
        answer("429 Too Many Requests"),
        answer("500 Internal Server Error"),
        answer("503 Service Unavailable"),
        b"",
    ],
    ids=["403", "404", "429", "500", "503", "no answer"],
)
def test_a_lone_seed_without_a_usable_answer(tmp_path: Path, seed: Route) -> None:
    with RawServer({"/": seed}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert ran.returncode == ExitCode.NO_SEED, ran.stderr
        assert f"seeds     {server.url()} " in ran.stderr
        assert f"archiver retry o {server.url()} && archiver resume o" in ran.stderr
    assert rows(tmp_path / "o", "SELECT exit_code FROM runs") == [(ExitCode.NO_SEED,)]


def test_one_usable_seed_is_enough(tmp_path: Path) -> None:
    with RawServer({"/": answer("403 Forbidden"), "/moved": redirect("/a"), "/a": ok(page("A"))}) as server:
        ending = crawl(tmp_path, server.url(), server.url("/moved"), retries=0)
    assert ending.code is ExitCode.DONE


def test_retries_that_are_used_up_are_no_usable_answer(tmp_path: Path) -> None:
    with RawServer({"/": answer("503 Service Unavailable")}) as server:
        assert crawl(tmp_path, server.url(), retries=1).code is ExitCode.NO_SEED
        assert server.log.targets().count("/") == 2


def test_the_verdict_in_words_and_as_json(tmp_path: Path) -> None:
    with RawServer(troubled()) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE
        for words in (
            "verdict   61 pages: 52 ok, 5 not found (404), 4 server errors (500)\n",
            "archiver urls o --status 4xx,5xx --why",
            "2 images, styles and scripts: 1 ok, 1 not found (404); missing:",
            "archiver urls o --missing --why",
            f"robots    1 URL is forbidden by robots.txt, such as {server.url('/private/x')}",
        ):
            assert words in ran.stderr
        assert "URLs      63 archived, 0 failed, 1 excluded, 0 waiting\n" in ran.stderr  # robots.txt is none of them
        told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)
        assert told["verdict"]["pages"]["by_status"] == {"200": 52, "404": 5, "500": 4}
        assert told["verdict"]["trouble"] is True
        assert next(iter(told["tables"])) == "verdict"
        status = archiver("status", "o", cwd=tmp_path).stdout
        report = archiver("report", "o", cwd=tmp_path).stdout
        line = "verdict   61 pages: 52 ok, 5 not found (404), 4 server errors (500)\n"
        assert line in status
        assert report.splitlines()[0] == (
            "result    Finished, but 9 of 61 pages gave no usable answer and 1 image, style or script is missing."
        )
        assert report.splitlines(keepends=True)[1] == line
        listed = archiver("urls", "o", "--status", "404,5xx", cwd=tmp_path).stdout.splitlines()
        assert len(listed) == 10
        missing = archiver("urls", "o", "--missing", "--why", cwd=tmp_path).stdout
        assert missing == f"{server.url('/gone.png')}\tarchived: answered 404\n"
        broken = (tmp_path / "o" / "reports" / "broken-pages.tsv").read_text().splitlines()
        assert broken[0] == "url\tstatus\tlinked_from\tfailure"
        assert broken[1] == f"{server.url('/p0')}\t404\t{server.url()}\t"
        assert len(broken) == 10


def cut(body: bytes) -> Answer:
    """An answer that ends before its length."""
    whole = message("200 OK", body, content_type="text/html").replace(b"Content-Length: ", b"Content-Length: 9")
    return Answer((whole,), End.CLOSE)


def test_pages_that_were_cut_are_no_good_pages_until_they_are_whole(tmp_path: Path) -> None:
    routes: dict[str, Route] = {"/": ok(page("Home", ["/a", "/b"], ["/a.png"]))}
    routes |= {"/a": cut(page("A").encode()), "/b": cut(page("B").encode()), "/a.png": cut(PIXEL)}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, "--strict", cwd=tmp_path)
        assert ran.returncode == ExitCode.TROUBLE, ran.stderr
        assert "verdict   3 pages: 1 ok, 2 truncated\n" in ran.stderr
        assert "1 image, style or script: 1 truncated\n" in ran.stderr
        assert "archiver retry o --truncated && archiver resume o" in ran.stderr
        told = archiver("report", "o", cwd=tmp_path).stdout
        assert told.startswith("result    Finished, but 2 pages are truncated.\n")
        listed = archiver("urls", "o", "--truncated", "--why", cwd=tmp_path).stdout
        assert listed.splitlines() == [
            f"{server.url(name)}\tarchived: answered 200; cut: disconnect" for name in ("/a", "/b", "/a.png")
        ]
        routes |= {"/a": ok(page("A")), "/b": ok(page("B")), "/a.png": ok(PIXEL, "image/gif")}
        assert "3 URLs queued again" in archiver("retry", "o", "--truncated", cwd=tmp_path).stdout
        ran = archiver("resume", "o", "-q", cwd=tmp_path)
    assert "verdict   3 pages: 3 ok\n" in ran.stderr, ran.stderr
    shown = json.loads(archiver("status", "o", "--json", cwd=tmp_path).stdout)
    assert shown["verdict"]["pages"] == {
        "total": 3,
        "bad": 0,
        "by_status": {"200": 3},
        "blocked": {},
        "truncated": {},
        "unanswered": {},
    }


def test_a_page_that_was_blocked_before_it_was_cut_is_truncated(tmp_path: Path) -> None:
    challenge = b"<title>Just a moment...</title>Enable JavaScript and cookies to continue"
    routes: dict[str, Route] = {"/": ok(page("Home", ["/a"]))}
    routes["/a"] = keep(message("403 Forbidden", challenge, content_type="text/html", server="cloudflare"))
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert "verdict   2 pages: 1 ok, 1 challenge or block page (403)\n" in ran.stderr
        routes["/a"] = cut(page("A").encode())
        assert "1 URL queued again" in archiver("retry", "o", "--blocked", cwd=tmp_path).stdout
        ran = archiver("resume", "o", "-q", cwd=tmp_path)
    assert "verdict   2 pages: 1 ok, 1 truncated\n" in ran.stderr


@pytest.mark.parametrize(("gone", "command"), [(1, "--truncated"), (3, "--status 4xx,5xx")])
def test_the_command_is_about_what_is_most_wrong(tmp_path: Path, gone: int, command: str) -> None:
    links = ["/a", "/b", *(f"/gone{number}" for number in range(gone))]
    routes: dict[str, Route] = {"/": ok(page("Home", links)), "/a": cut(b"a"), "/b": cut(b"b")}
    with RawServer(routes, answer("404 Not Found")) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
    assert f"verdict   {3 + gone} pages: 1 ok, 2 truncated, {gone} not found (404)\n" in ran.stderr
    assert f"archiver urls o {command} --why" in ran.stderr


def test_strict(tmp_path: Path) -> None:
    """What is trouble ends with a code of its own; a missing picture alone is none."""
    with RawServer(troubled()) as server:
        assert archiver("crawl", server.url(), "-o", "o", *FAST, "--strict", cwd=tmp_path).returncode == 8
        assert archiver("resume", "o", "-q", cwd=tmp_path).returncode == 8  # crawl.toml knows
        assert archiver("resume", "o", "-q", "--no-strict", cwd=tmp_path).returncode == 0
    with RawServer({"/": ok(page("Home", [], ["/gone.png"]))}) as server:
        assert archiver("crawl", server.url(), "-o", "fine", *FAST, "--strict", cwd=tmp_path).returncode == 0


def test_answers_without_a_usable_status_are_a_class(tmp_path: Path) -> None:
    """Those without any, or below 100; a URL without an answer is none of them."""
    low = b"HTTP/1.1 099 Low\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\n<p>hello"
    routes: dict[str, Route] = {
        "/": ok(page("Home", ["/low", "/none", "/silent", "/gone"])),
        "/low": low,
        "/none": b"just text, as HTTP/0.9 had it",
        "/silent": b"",
    }
    with RawServer(routes, answer("404 Not Found")) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, "--retries", "0", cwd=tmp_path)
        assert "archiver urls o --status 0xx,4xx,5xx --why" in ran.stderr
        found = {
            text: set(archiver("urls", "o", "--status", text, cwd=tmp_path).stdout.split())
            for text in ("0xx", "0XX,200", "099")
        }
        assert found == {
            "0xx": {server.url("/low"), server.url("/none")},
            "0XX,200": {server.url("/low"), server.url("/none"), server.url()},
            "099": {server.url("/low")},
        }
        again = archiver("retry", "o", "--status", "0xx", cwd=tmp_path)
        assert "2 URLs queued again" in again.stdout, again.stderr


@pytest.mark.parametrize("text", ["40", "4x", "404,", "x04", "2000"])
def test_what_is_no_status_is_refused(tmp_path: Path, text: str) -> None:
    with RawServer({"/": ok("fine")}) as server:
        crawl(tmp_path, server.url())
    ran = archiver("urls", str(tmp_path), "--status", text, cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert "is not a status; write 404, or 5xx for 500 to 599, or 0xx for none" in ran.stderr


def test_why_a_run_ended_is_kept(tmp_path: Path) -> None:
    with RawServer(tree(20).routes) as server:
        archiver("crawl", server.url(), "-o", "o", *FAST, "--max-urls", "5", cwd=tmp_path)
        assert "ended     --max-urls 5 is reached\n" in archiver("status", "o", cwd=tmp_path).stdout
        assert "--max-urls 5 is reached" in archiver("report", "o", cwd=tmp_path).stdout
        assert "archiver resume o --max-urls 0" in archiver("status", "o", cwd=tmp_path).stdout
        ended = archiver("resume", "o", "--max-urls", "0", "-q", cwd=tmp_path)
        assert ended.returncode == ExitCode.DONE
        assert "ended     done\n" in archiver("status", "o", cwd=tmp_path).stdout
    assert [code for (code,) in rows(tmp_path / "o", "SELECT exit_code FROM runs ORDER BY id")] == [5, 0]


def test_a_run_that_was_killed_is_said_to_be(tmp_path: Path) -> None:
    with RawServer(tree(20).routes) as server:
        crawl(tmp_path, server.url(), max_urls=5)

        async def killed() -> None:
            async with open_crawl(tmp_path, settings(server.url()), resume=True) as lifetime:
                await lifetime._frontier.begin_run(1.0)  # what a run writes first, and nothing more

        asyncio.run(killed())
    assert "ended     the process was killed" in archiver("status", ".", cwd=tmp_path).stdout


def test_what_waits_is_never_less_than_nothing(tmp_path: Path) -> None:
    """A second crawl finds nothing by its links, and asks for what the first has had."""
    site = tree(30)
    lowest: list[int] = []

    async def look(lifetime: Crawl) -> None:
        while True:
            lowest.append(lifetime.snapshot().waiting)
            await asyncio.sleep(0.005)

    async def again(seed: str) -> None:
        wanted = settings(seed)
        async with open_crawl(tmp_path, wanted, resume=False, text=toml.render(wanted)) as lifetime:
            looking = asyncio.create_task(look(lifetime))
            await lifetime.run()
            lowest.append(lifetime.snapshot().waiting)
            looking.cancel()

    routes = dict(site.routes)
    with RawServer(routes) as server:
        asyncio.run(again(server.url()))
        text = (tmp_path / "crawl.toml").read_text()
        asyncio.run(set_aside(tmp_path, settings(server.url()), text, text))
        routes["/"] = ok(page("Nothing leads on"))
        asyncio.run(again(server.url()))
    assert min(lowest) >= 0
    assert rows(tmp_path, "SELECT count(*) > 30 FROM urls") == [(1,)]


@pytest.mark.parametrize("scope", ["prefix", "page"])
def test_a_redirect_out_of_the_scope_is_told_as_it_is(tmp_path: Path, scope: str) -> None:
    """Its links into the scope are followed, so nobody may say that its links are not."""
    routes: dict[str, Route] = {
        "/blog/": redirect("/home/"),
        "/home/": ok(page("Home", ["/home/a", "/blog/x"])),
        "/home/a": ok("a"),
        "/blog/x": ok("x"),
    }
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url("/blog/"), "-o", "o", *FAST, "--scope", scope, cwd=tmp_path)
        followed = server.log.targets()
    assert "links are not followed" not in ran.stderr
    assert "only its in-scope links are followed" in " ".join(ran.stderr.split())
    assert ("/blog/x" in followed) is (scope == "prefix")


def test_a_seed_that_only_scripts_fill_is_named(tmp_path: Path) -> None:
    shell = '<!doctype html><title>App</title><div id="app"></div><script src="/app.js"></script>'
    script = ok("console.log(1)", "text/javascript")
    with RawServer({"/": ok(shell), "/app.js": script}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
    assert "has 1 script and hardly any links" in ran.stderr
    linked = page("Home", ["/a", "/b"], body='<script src="/app.js"></script>')
    with RawServer({"/": ok(linked), "/app.js": script, "/a": ok("a"), "/b": ok("b")}) as server:
        ran = archiver("crawl", server.url(), "-o", "linked", *FAST, cwd=tmp_path)
        assert "hardly any links" not in ran.stderr
        ran = archiver("crawl", server.url(), "-o", "narrow", *FAST, "--scope", "page", cwd=tmp_path)
        assert "hardly any links" not in ran.stderr


def test_a_broken_page_with_all_that_link_to_it(tmp_path: Path) -> None:
    links = {"/": ["/a", "/b", "/dead"], "/a": ["/dead", "/b"], "/b": ["/", "/dead"]}
    routes: dict[str, Route] = {name: ok(page(name, named)) for name, named in links.items()}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE
        broken = (tmp_path / "o" / "reports" / "broken-pages.tsv").read_text().splitlines()[1:]
        assert sorted(broken) == sorted(f"{server.url('/dead')}\t404\t{server.url(name)}\t" for name in links)
        for warc in (tmp_path / "o" / "archive").iterdir():
            warc.unlink()
        told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)
        assert told["tables"]["broken-pages"]["rows"] == [[server.url("/dead"), 404, server.url(), ""]]


@pytest.mark.parametrize(
    ("routes", "problem", "more"),
    [
        (
            {"/": redirect("/there"), "/there": answer("403 Forbidden")},
            "redirects to HOME/there: status 403",
            " HOME/there",
        ),
        ({"/": redirect("/")}, "redirects to HOME/: a redirect loop", ""),
        ({"/": redirect("/a"), "/a": redirect("/b"), "/b": redirect("/a")}, "redirects to HOME/b: a redirect loop", ""),
        (
            {"/": redirect("/0"), **{f"/{number}": redirect(f"/{number + 1}") for number in range(12)}},
            "redirects to HOME/10: max-redirects: 10",
            "",
        ),
        (
            {
                "/": redirect("/private"),
                "/robots.txt": ok("User-agent: *\nDisallow: /private\n", "text/plain"),
                "/private": ok(page("P")),
            },
            "redirects to HOME/private: robots",
            " HOME/private",
        ),
        (
            {"/": redirect("http://127.0.0.1:1/")},
            "redirects out of scope, to http://127.0.0.1:1/ (blocked-port: 1)",
            "",
        ),
    ],
    ids=["403", "itself", "loop", "too many", "robots.txt", "refused"],
)
def test_a_lone_seed_that_redirects_to_nothing(
    tmp_path: Path, routes: dict[str, Route], problem: str, more: str
) -> None:
    """The seed gave an answer, so the exit code is 0; the words say that not one page of the site is there."""
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        home = server.url("")
        assert f"seeds     {home}/ {problem.replace('HOME', home)}\n" in ran.stderr
        again = f"archiver retry o {home}/{more.replace('HOME', home)} && archiver resume o"
        assert (again in ran.stderr) == ("out of scope" not in problem)
        told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)
    assert told["headline"]["text"].startswith("No seed gave a usable answer")
    assert told["failed_seeds"] == [f"{home}/"]


@pytest.mark.parametrize("observe", [(), ("--robots", "observe")], ids=["obeyed", "observed"])
def test_a_seed_that_redirects_to_a_page_is_usable(tmp_path: Path, observe: tuple[str, ...]) -> None:
    rules = ok("User-agent: *\nDisallow: /" if observe else "", "text/plain")
    moved: dict[str, Route] = {"/": redirect("/a,"), "/a,": redirect("/b;"), "/b;": ok(page("B")), "/robots.txt": rules}
    with RawServer(moved) as server:
        seeds = server.url("/"), server.url("/b;")  # the first leads to the second
        ran = archiver("crawl", *seeds, "-o", "o", *FAST, *observe, "--strict", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "seeds  " not in ran.stderr


def test_a_seed_without_a_page_where_it_redirects_is_read_itself(tmp_path: Path) -> None:
    """Browsers show the page of a redirect that says no place."""
    home = keep(message("302 Found", page("Home", ["/a"]).encode(), content_type="text/html"))
    with RawServer({"/": home, "/a": ok(page("A"))}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        assert "/a" in server.log.targets()
    assert ran.returncode == ExitCode.DONE, ran.stderr


@pytest.mark.parametrize("allowed", [(), ("--allow-private", "127.0.0.0/8")], ids=["private", "outside"])
def test_a_seed_that_has_moved_names_the_command_that_crawls_it_there(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    with RawServer({"/": ok(page("Home", ["/a"])), "/a": ok(page("A"))}, hosts=("127.0.0.2",)) as there:
        with RawServer({"/": redirect(there.url())}) as server:
            ran = archiver("crawl", server.url(), "-o", "o", *FAST, *allowed, cwd=tmp_path)
            first, _, second = f"archiver add o {there.url()} && archiver resume o".partition(" && ")
            assert f"{first} && {second}" in ran.stderr
            for command in (first, second):
                assert archiver(*command.split()[1:], cwd=tmp_path).returncode == ExitCode.DONE
        assert "/a" in there.log.targets()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (ok("<h1>Zugriff gesperrt</h1><p>Bitte warten.</p>"), "30 of 61 pages have the same content, such as HOME/p59"),
        (ok(""), "30 of 61 pages have the same content, such as HOME/p59"),
        (redirect("/login?next=x"), "30 of 62 pages redirect to one page, HOME/login, such as HOME/p59"),
        (redirect("/"), "30 of 61 pages redirect to one page, HOME/, such as HOME/p59"),
    ],
    ids=["block page", "empty", "login", "home"],
)
def test_pages_that_are_alike_are_named(tmp_path: Path, other: Route, words: str) -> None:
    """Nothing else may show that a site has turned us away, so the crawl does not call itself complete."""
    names = [f"/p{number}" for number in range(60)]
    routes: dict[str, Route] = {name: ok(page(name)) for name in names} | dict.fromkeys(names[30:], other)
    routes |= {"/": ok(page("Home", names)), "/login?next=x": ok(page("Log in"))}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
        said = " ".join(ran.stderr.split())
        assert f"alike {words.replace('HOME', server.url(''))} archiver " in said
        told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)
        assert told["headline"] == {"grade": "attention", "text": f"Finished, but {words.split(',', maxsplit=1)[0]}."}
        (finding,) = (each for each in told["verdict"]["findings"] if each["topic"] == "alike")
        shown = archiver(*finding["command"].split()[1:], cwd=tmp_path)
        assert shown.returncode == ExitCode.DONE, shown.stderr


def test_some_pages_that_are_alike_are_no_news(tmp_path: Path) -> None:
    names = [f"/p{number}" for number in range(120)]
    routes: dict[str, Route] = {name: ok(page(name)) for name in names}
    routes |= dict.fromkeys(names[:10], ok(page("the same"))) | dict.fromkeys(names[10:19], redirect("/"))
    with RawServer({"/": ok(page("Home", names)), **routes}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *FAST, cwd=tmp_path)
    assert "\nalike " not in ran.stderr
