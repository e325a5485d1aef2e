"""The header lines of requests, side by side with wget and curl, and the Accept fields that you may set."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import brotlicffi
import pytest

from archiver.config.host_rules import HOST_RULE
from archiver.config.option_types import REFERER, OptionType
from archiver.config.responses import ACCEPT, ACCEPT_ENCODING, LANGUAGES
from archiver.errors import ConfigError
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl
from fixtures.log import Log, Row
from fixtures.pywb_server import plain_wayback
from fixtures.rawserver import RawServer, Route, Sendable
from fixtures.sites import PIXEL, ok, page

DOCUMENT = Path(__file__).parents[2] / "docs/explanation/requests.md"
FOR_PAGES = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
SITE: dict[str, Route] = {
    "/": ok(page("Front", ["/next"], ["/picture.gif"]), set_cookie="seen=1"),
    "/next": ok(page("Next")),
    "/picture.gif": ok(PIXEL, "image/gif"),
}


def sent(log: Log) -> dict[str, dict[str, str]]:
    """The header fields of each request, by target; ports are left out."""
    found: dict[str, dict[str, str]] = {}
    for row in log:
        lines = row.request.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")[1:]
        fields = dict(line.split(": ", 1) for line in lines)
        assert len(fields) == len(lines)
        port = fields["Host"].rpartition(":")[2]
        found[row.target] = {name: value.replace(f":{port}", "") for name, value in fields.items()}
    return found


def test_accept_is_that_of_a_browser_for_pages_and_anything_for_the_rest(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        crawl(tmp_path, server.url())
        accepted = {target: fields["Accept"] for target, fields in sent(server.log).items()}
    assert accepted == {"/robots.txt": "*/*", "/": FOR_PAGES, "/next": FOR_PAGES, "/picture.gif": "*/*"}


def test_accept_fields_can_be_set_for_all_and_for_one_host(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "127.0.0.2")
    with RawServer({"/": ok(page("Front"))}, hosts=hosts) as server:
        rule = HOST_RULE.parse("127.0.0.2 accept-language='de, en;q=0.5' accept=text/plain accept-encoding=identity")
        values: dict[str, Any] = {
            "accept_language": "fr",
            "accept_encoding": "gzip, br",
            "robots": "ignore",
            "host": (rule,),
        }
        for host in hosts:
            crawl(tmp_path / host, server.url("/", host), **values)
        lines = [row.request.decode().split("\r\n") for row in server.log]
    names = ("Accept:", "Accept-Encoding:", "Accept-Language:")
    assert [{line for line in each if line.startswith(names)} for each in lines] == [
        {f"Accept: {FOR_PAGES}", "Accept-Encoding: gzip, br", "Accept-Language: fr"},
        {"Accept: text/plain", "Accept-Encoding: identity", "Accept-Language: de, en;q=0.5"},
    ]


def test_a_header_of_the_user_replaces_each_of_them(tmp_path: Path) -> None:
    own = ("accept: a/b", "Accept-Language: nl", "accept-encoding: deflate")
    with RawServer({"/": ok(page("Front"))}) as server:
        crawl(tmp_path, server.url(), header=own, robots="ignore", accept="c/d", accept_language="fr")
        fields = sent(server.log)["/"]
    accepted = {name: value for name, value in fields.items() if name.lower().startswith("accept")}
    assert accepted == {"accept": "a/b", "Accept-Language": "nl", "accept-encoding": "deflate"}


def test_links_are_read_in_a_coding_that_was_asked_for(tmp_path: Path) -> None:
    def front(row: Row) -> Sendable:
        if b"Accept-Encoding: gzip, br\r\n" not in row.request:
            return ok(page("Front"))
        return ok(brotlicffi.compress(page("Front", ["/next"]).encode()), content_encoding="br")

    with RawServer({"/": front, "/next": ok(page("Next"))}) as server:
        assert crawl(tmp_path, server.url(), accept_encoding="gzip, br", robots="ignore").code is ExitCode.DONE
    assert [row[0] for row in rows(tmp_path, "SELECT status FROM urls")] == [200, 200]


def test_the_document_shows_what_wget_curl_and_archiver_send(tmp_path: Path) -> None:
    """The last request of each program in the document's table: for the picture of a page that set a cookie."""
    programs = [shutil.which(name) for name in ("wget", "curl")]
    if None in programs:
        pytest.skip("wget or curl is not installed")
    seen: list[dict[str, str]] = []
    with RawServer(SITE) as server:
        targets = ("/", "/picture.gif")
        for command in (
            ("wget", "--no-config", "-q", "-r", "-l", "1", "-p", "-t", "1", "-T", "20", server.url()),
            ("curl", "-q", "-s", "-m", "20", "-o", "one", "-o", "two", *map(server.url, targets)),
        ):
            subprocess.run(command, cwd=tmp_path, check=True, timeout=60, env={"PATH": os.environ["PATH"]})
            seen.append(sent(server.log)["/picture.gif"])
        crawl(tmp_path / "c", server.url())
        seen.append(sent(server.log)["/picture.gif"])
    seen = [{name: _shown(value) for name, value in fields.items() if name != "Host"} for fields in seen]
    shown = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    names = sorted({name for fields in seen for name in fields})
    assert shown == [f"| `{name}` | {' | '.join(fields.get(name, '') for fields in seen)} |" for name in names]


def _shown(value: str) -> str:
    """Return *value* as the document shows it: without the version of a program."""
    plain = value.replace("http://127.0.0.1/", "http://example.org/")
    shown = re.sub(r"(Wget|curl|archiver)/[0-9][0-9.a-z+-]*", r"\1/…", plain)
    return f"`{shown}`"


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (ACCEPT, "text/html,*/*;q=0.8", "text/html, */*;q=0.8"),
        (ACCEPT, "image/*;v=b3;q=0.7", "image/*;v=b3;q=0.7"),
        (ACCEPT, "", ""),
        (LANGUAGES, "fr,en-GB ; q=0.5, *;q=0", "fr, en-GB ; q=0.5, *;q=0"),
        (LANGUAGES, "", ""),
        (ACCEPT_ENCODING, "BR,gzip,br", "br, gzip"),
        (ACCEPT_ENCODING, "identity", "identity"),
        (REFERER, "off", "off"),
    ],
)
def test_values_that_are_understood(kind: OptionType, given: str, expected: str) -> None:
    assert kind.parse(given) == expected
    assert kind.parse(kind.write(expected)) == expected


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (ACCEPT, "jpg,png", "media types"),  # wget's --accept
        (ACCEPT, "text/html\r\nX: y", "media types"),
        (LANGUAGES, "fr;q=2", "languages"),
        (LANGUAGES, "deutsch!", "languages"),
        (ACCEPT_ENCODING, "gzip,zstd", "pywb does not decode zstd"),
        (ACCEPT_ENCODING, "lzma", "gzip, br, deflate, identity"),
        (ACCEPT_ENCODING, "", "gzip, br, deflate, identity"),
        (REFERER, "https://example.org/", "--header 'Referer: URL'"),  # wget's --referer
    ],
)
def test_values_that_are_refused(kind: OptionType, given: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace("(", r"\(")):
        kind.parse(given)


@pytest.mark.slow
def test_br_is_replayed_as_it_was_sent(tmp_path: Path) -> None:
    """By pywb as it came, and decoded with its links rewritten."""
    text = page("Front", ["/next"], body="<p>compressed by br</p>" * 50)
    sent_body = brotlicffi.compress(text.encode())

    def front(row: Row) -> Sendable:
        wanted = b"Accept-Encoding: br, gzip\r\n" in row.request
        return ok(sent_body, content_encoding="br") if wanted else ok(text)

    directory = tmp_path / "collections" / "site"
    with RawServer({"/": front, "/next": ok(page("Next"))}) as server:
        assert crawl(directory, server.url(), accept_encoding="br, gzip", robots="ignore").code is ExitCode.DONE
        root = server.url()
    assert [row[0] for row in rows(directory, "SELECT status FROM urls")] == [200, 200]
    with plain_wayback(directory) as wayback:
        stored, shown = wayback.get(root, "id_"), wayback.get(root, "2100mp_")
    assert (stored.headers.get("content-encoding"), stored.body) == ("br", sent_body)
    assert b"compressed by br" in shown.body
    assert f"/site/2100mp_/{root}next".encode() in shown.body or f"mp_/{root}next".encode() in shown.body
