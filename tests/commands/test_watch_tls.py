"""The control room over TLS: a real handshake, what it trusts, and what is refused."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page
from fixtures.watching import Watching, watching

QUICK = ("--rate", "0", "--robots", "ignore", "--probe", "off", "--min-free-disk", "0", "-qq")
WORDS = ("crawls", "--cert", "cert.pem", "--key", "key.pem")


class Secured(NamedTuple):
    """A control room over TLS, and the folder with its certificate."""

    room: Watching
    folder: Path

    def link(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        """Shake hands as *context* says."""
        name, _, port = self.room.host.rpartition(":")
        return context.wrap_socket(socket.create_connection((name, int(port)), timeout=60), server_hostname=name)


@pytest.fixture(name="secured", scope="module")
def room_over_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A control room with a certificate of an authority that only the test trusts."""
    folder = tmp_path_factory.mktemp("tls")
    with RawServer({"/": ok(page("Home", []))}) as server:
        ran = archiver("crawl", *QUICK, "-o", "crawls/c", server.url(), cwd=folder)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1", "localhost")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    for blob in leaf.cert_chain_pems:
        blob.write_to_path(folder / "cert.pem", append=True)
    trust = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    with watching(*WORDS, cwd=folder, trust=trust) as room:
        yield Secured(room, folder)


def test_the_page_is_served_over_tls_and_its_cookie_stays_there(secured: Secured) -> None:
    room = secured.room
    assert room.trust is not None
    with secured.link(room.trust) as link:
        assert link.version() in {"TLSv1.2", "TLSv1.3"}
    reply = Watching(room.host, "", trust=room.trust).post("/api/session", {"token": room.token})
    assert reply.status == 204
    assert {"secure", "httponly"} <= {part.strip().lower() for part in reply.headers["set-cookie"].split(";")}
    assert [each["name"] for each in room.crawls] == ["c"]
    order = {"verb": "note", "arguments": ["over TLS"]}
    path = f"/api/crawls/{room.crawls[0]['id']}/orders"
    assert room.post(path, order, Origin=f"http://{room.host}").status == 403  # the same name, without TLS
    assert room.post(path, order).json["answer"] == "noted"
    with room.stream(room.crawls[0]["id"]) as stream:
        assert next(stream)[0]


def test_a_client_without_the_authority_ends_the_handshake(secured: Secured) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        secured.link(ssl.create_default_context())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_are_refused(secured: Secured) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match=r"(?i)version|alert|protocol"):
        secured.link(context)


def test_nothing_is_answered_without_tls(secured: Secured) -> None:
    name, _, port = secured.room.host.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=60) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        found = b""
        with suppress(ConnectionError):
            found = link.recv(1000)
    assert b"HTTP" not in found
    assert secured.room.get("/api/session").status == 200  # others are served as before


def test_a_key_of_another_certificate_is_one_line(secured: Secured) -> None:
    other = trustme.CA().issue_cert("127.0.0.1")
    other.private_key_pem.write_to_path(secured.folder / "other.pem")
    for key, words in (("other.pem", "mismatch"), ("missing.pem", "No such file")):
        ran = archiver("watch", "crawls", "--cert", "cert.pem", "--key", key, "--port", "0", cwd=secured.folder)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (ExitCode.USAGE, 1), ran.stderr
        assert f"--key {key} cannot be used" in ran.stderr
        assert words.lower() in ran.stderr.lower()
