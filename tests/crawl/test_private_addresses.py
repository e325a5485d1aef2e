"""A page on the public web does not reach inside: whole crawls, with real servers at several loopback addresses.

Here the seed's own host is inside, which is allowed; every other address of the loopback network stands for what lies
behind somebody's firewall.
"""

import select
import socket
from pathlib import Path

import pytest

from archiver.config.settings import with_values
from archiver.config.toml import render
from archiver.fetch.name_servers import Resolver
from archiver.fetch.private_networks import ResolveResult
from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl, settings
from fixtures.rawserver import RawServer
from fixtures.sites import PIXEL, ok, page, redirect

INSIDE = "127.0.0.2"


def untouched(listener: socket.socket) -> bool:
    """Whether nobody has even tried to connect."""
    return not select.select([listener], [], [], 0)[0]


def log_of(directory: Path) -> list[list[str]]:
    return [line.split() for line in (directory / "logs" / "crawl.log").read_text().splitlines()]


@pytest.mark.parametrize("robots", ["obey", "ignore"])
def test_a_redirect_inside_is_refused_without_a_connection(tmp_path: Path, robots: str) -> None:
    with RawServer() as server, socket.create_server((INSIDE, server.port)) as listener:
        away = server.url("/secret", INSIDE)
        server.routes = {"/": redirect(away)}
        assert crawl(tmp_path, server.url(), robots=robots).code is ExitCode.DONE
        assert untouched(listener)
    found = rows(tmp_path, f"SELECT state, failure, note, tries, status FROM urls WHERE url = '{away}'")
    told = f"private: {INSIDE} is a loopback address; use --allow-private {INSIDE} to allow it"
    assert found == [("excluded", "private", told, 0, 0)]
    line = next(line for line in log_of(tmp_path) if line[3] == away)
    assert line[1] == "-5001"
    assert line[-1].startswith("err=private:%20127.0.0.2")
    asked = [line for line in log_of(tmp_path) if INSIDE in line[3] and line[3].endswith("/robots.txt")]
    assert len(asked) == (robots == "obey")
    assert all(line[1] == "-5001" for line in asked)


def test_allow_private_takes_it(tmp_path: Path) -> None:
    for number, word in enumerate((INSIDE, "127.0.0.0/8")):
        with RawServer(hosts=("127.0.0.1", INSIDE)) as server:
            away = server.url("/secret", INSIDE)
            server.routes = {"/": redirect(away), "/secret": ok(page("Secret"))}
            directory = tmp_path / str(number)
            assert crawl(directory, server.url(), allow_private=(word,)).code is ExitCode.DONE
            assert states(directory)[away] == "archived"


def test_a_picture_from_inside_is_not_asked_for(tmp_path: Path) -> None:
    with RawServer(hosts=("127.0.0.1", INSIDE)) as server:
        away = server.url("/dot.gif", INSIDE)
        server.routes = {"/": ok(page("Front", images=[away])), "/dot.gif": ok(PIXEL, "image/gif")}
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert states(tmp_path)[away] == "excluded"
        assert {row.host for row in server.log} == {"127.0.0.1"}


def test_what_was_refused_can_be_taken_later(tmp_path: Path) -> None:
    """Its robots.txt, which was refused too, is asked for first."""
    with RawServer(hosts=("127.0.0.1", INSIDE)) as server:
        away = server.url("/dot.gif", INSIDE)
        server.routes = {"/": ok(page("Front", images=[away])), "/dot.gif": ok(PIXEL, "image/gif")}
        crawl(tmp_path, server.url())
        opened = with_values(settings(server.url()), {"allow_private": (INSIDE,)})
        (tmp_path / "crawl.toml").write_text(render(opened))
        again = archiver("retry", str(tmp_path), "--host", INSIDE, cwd=tmp_path)
        assert again.returncode == ExitCode.DONE, again.stderr
        assert crawl(tmp_path, server.url(), resume=True, allow_private=(INSIDE,)).code is ExitCode.DONE
        assert states(tmp_path)[away] == "archived"
        assert [row.target for row in server.log if row.host == INSIDE] == ["/robots.txt", "/dot.gif"]


def test_the_seed_s_host_is_asked_on_every_port(tmp_path: Path) -> None:
    with RawServer({"/dot.gif": ok(PIXEL, "image/gif")}) as other, RawServer() as server:
        server.routes = {"/": ok(page("Front", images=[other.url("/dot.gif")]))}
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert states(tmp_path)[other.url("/dot.gif")] == "archived"


def test_localhost(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("Front", ["/next"])), "/next": ok(page("Next"))}) as server:
        seed = server.url(host="localhost")
        assert crawl(tmp_path, seed).code is ExitCode.DONE
        assert {state for url, state in states(tmp_path).items() if "robots" not in url} == {"archived"}


def test_no_spelling_of_an_address_gets_through(tmp_path: Path) -> None:
    with RawServer() as server, socket.create_server((INSIDE, server.port)) as listener:
        spelled = ("0x7f.2", "2130706434", "0177.0.0.2", "127.2", "[::ffff:127.0.0.2]", "①②⑦.0.0.2", "127.0.0.2.")
        images = [f"http://{host}:{server.port}/{number}.gif" for number, host in enumerate(spelled)]
        server.routes = {"/": ok(page("Front", images=images))}
        crawl(tmp_path, server.url(), robots="ignore")
        assert untouched(listener)
    refused = rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'excluded' AND failure = 'private'")
    assert refused == [(len(spelled),)]


class Names(Resolver):
    """Every name leads to this machine, by its first or its second address."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = "127.0.0.1" if host.startswith("wiki.") else INSIDE
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        pass


def test_names_that_lead_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads inside is asked only where a person names it, be it that of a seed or not."""
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: Names())
    with RawServer() as server, socket.create_server((INSIDE, server.port)) as listener:
        away = server.url("/dot.gif", "printer.example")
        server.routes = {"/": ok(page("Front", ["/next"], [away])), "/next": ok(page("Next"))}
        seed = server.url(host="wiki.example")
        assert crawl(tmp_path / "refused", seed).code is ExitCode.NO_SEED
        assert len(server.log) == 0
        assert crawl(tmp_path, seed, allow_private=("wiki.example",)).code is ExitCode.DONE
        assert untouched(listener)
    told = rows(tmp_path / "refused", f"SELECT note FROM urls WHERE url = '{seed}'")[0][0]
    why = "wiki.example resolves to a private address: 127.0.0.1 is a loopback address"
    assert told == f"private: {why}; use --allow-private wiki.example to allow it"
    assert states(tmp_path)[f"{seed}next"] == "archived"
    note = rows(tmp_path, f"SELECT note FROM urls WHERE url = '{away}'")[0][0]
    assert str(note).startswith(
        "private: printer.example resolves to a private address: 127.0.0.2 is a loopback address"
    )


def test_ports_of_other_protocols_are_not_asked(tmp_path: Path) -> None:
    """Neither for a link, an image or a redirect; the rule says which."""
    with RawServer() as server:
        mail = [f"http://127.0.0.1:25/{word}" for word in ("link", "image", "moved")]
        routes = {"/": ok(page("Front", [mail[0], "/go"], [mail[1]])), "/go": redirect(mail[2])}
        server.routes = routes
        assert crawl(tmp_path, server.url(), scope="any").code is ExitCode.DONE
    assert not set(mail) & set(states(tmp_path))
    found = rows(tmp_path, "SELECT rule, sum(links) FROM refusal_counts GROUP BY rule")
    assert ("blocked-port: 25", 3) in found
    note = rows(tmp_path, "SELECT note FROM urls WHERE url LIKE '%/go'")[0][0]
    assert "not followed (blocked-port: 25)" in str(note)
