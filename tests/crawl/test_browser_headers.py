"""`--browser`: a URL that was archived before a script asks for it with headers of its own. The user is told so."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, running
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.flag import Gate
from fixtures.postgres import PostgresServer
from fixtures.rawserver import Answer, RawServer
from fixtures.sites import message, ok

pytestmark = SLOW_IN_BROWSER
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off")
PAGE = """<!doctype html><title>Headers</title><link rel=preload as=fetch href=/early><div id=app></div><script>
const headers = { Accept: "application/json", "X-Requested-With": "XMLHttpRequest", "X-Mine": "of the page" }
const start = async () => {
    for (const name of ["early", "late"]) await fetch("/" + name, { headers })
}
start()
</script>"""


@pytest.fixture(name="site")
def served_site() -> Iterator[RawServer]:
    data = {f"/{name}": ok("{}", "application/json") for name in ("early", "late")}
    with RawServer({"/": ok(PAGE), **data}) as server:
        yield server


@pytest.fixture(name="frontier", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def options_of_frontier(request: pytest.FixtureRequest, postgres_server: PostgresServer | None) -> tuple[str, ...]:
    if request.param == "sqlite":
        return ()
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return "--frontier", postgres_server.new_database()


def done(folder: Path, *words: str) -> str:
    ran = archiver(*words, cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stdout + ran.stderr
    return " ".join((ran.stdout + ran.stderr).split())


def until(directory: Path, query: str) -> None:
    """Wait until *query* finds a row in the database of the running crawl."""
    end = time.monotonic() + 120
    while not rows(directory, query):
        assert time.monotonic() < end
        time.sleep(0.05)


def heads(site: RawServer, target: str) -> list[bytes]:
    return [row.request for row in site.log if row.target == target]


def test_headers_that_were_not_sent_are_named(tmp_path: Path, site: RawServer, frontier: tuple[str, ...]) -> None:
    """By the report and by explain, until they are sent. One that the user has set counts as sent."""
    early, late, sent = site.url("/early"), site.url("/late"), b"X-Requested-With: XMLHttpRequest"
    done(tmp_path, "crawl", site.url(), *OPTIONS, *frontier, "--header", "X-Mine: of the user")
    said = done(tmp_path, "resume", "c", "--browser", "auto")
    assert f"1 URL was archived without headers that scripts set, such as {early}" in said
    assert f"archiver explain c {early}" in said
    told = "scripts ask for it with headers that were not sent: Accept, X-Requested-With"
    assert f"answered 200; {told}" in done(tmp_path, "explain", "c", early)
    assert "not sent" not in done(tmp_path, "explain", "c", late)
    assert [sent in head for head in heads(site, "/early") + heads(site, "/late")] == [False, True]
    done(tmp_path, "retry", "c", early)
    assert "archived without" not in done(tmp_path, "resume", "c")
    assert [sent in head for head in heads(site, "/early")] == [False, True]
    assert "not sent" not in done(tmp_path, "explain", "c", early)
    assert rows(tmp_path / "c", "SELECT count(*) FROM asks") == [(2,)]
    done(tmp_path, "verify", "c")


WINDOW = """<!doctype html><title>Window</title>
<link rel=preload as=fetch href=/slow><link rel=preload as=fetch href=/early>
<div id=app></div><script>
const headers = { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" }
fetch("/early", { headers })
</script>"""


@pytest.mark.parametrize("at_once", ["1", "4"])
def test_headers_for_a_url_that_waits_are_sent_or_named(tmp_path: Path, site: RawServer, at_once: str) -> None:
    """It was queued without them: with four requests at once it is under way when the script asks, or waits."""
    gate = Gate()
    held = message("200 OK", b"{}", content_type="application/json")
    name = "slow" if at_once == "1" else "early"
    slow = {"/": ok(WINDOW), "/slow": ok("{}", "application/json"), f"/{name}": Answer((held[:20], gate, held[20:]))}
    site.routes = {**site.routes, **slow}
    words = ("crawl", site.url(), *OPTIONS, "--browser", "auto", "--host-concurrency", at_once)
    with running(*words, cwd=tmp_path) as process:
        gate.arrived.wait()
        until(tmp_path / "c", "SELECT 1 FROM asks")  # the script has asked
        gate.open()
        _, said = process.communicate(timeout=300)
    assert process.returncode == ExitCode.DONE, said
    (head,) = heads(site, "/early")
    sent = b"X-Requested-With: XMLHttpRequest" in head
    named = f"1 URL was archived without headers that scripts set, such as {site.url('/early')}" in " ".join(
        said.split()
    )
    assert (sent, named) == ((True, False) if at_once == "1" else (False, True))
