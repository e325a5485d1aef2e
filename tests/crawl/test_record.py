"""`archiver record`: what crosses the wire is what is stored, and what the client gets."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import CODES, Severity
from fixtures import badserver
from fixtures.archives import rows, states
from fixtures.badserver import BAD, Verdict
from fixtures.command import archiver, ended, said
from fixtures.flag import Flag, Gate
from fixtures.rawserver import Answer, RawServer, Route, keep, raising, silence
from fixtures.recording import (
    Exchanged,
    RecordingProxy,
    authority_file,
    body_of,
    exchanges,
    recording,
    rest_of,
)
from fixtures.sites import ok, page

LARGE = b"".join(b"%08d" % number for number in range(200_000))
ODD = b"HTTP/1.1 200 Fine\r\nX-Odd:\t two  words \r\nset-cookie: a=1\r\nContent-Length: 4\r\n\r\nbody"
ROUTES: dict[str, Route] = {
    "/": ok(page("Start", [], ["/picture.gif"])),
    "/odd?q=%c3%A9/../x": keep(ODD),
    "/large": ok(LARGE, "application/octet-stream"),
    "/form": ok("thanks", "text/plain"),
    "/pieces": keep(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nfour\r\n0\r\n\r\n"),
    "/empty": keep(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "/robots.txt": ok("User-agent: *\nDisallow: /\n", "text/plain"),
    "/error": keep(b"HTTP/1.1 503 Busy\r\nRetry-After: 60\r\nContent-Length: 4\r\n\r\nbusy"),
    "/head": keep(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
}


def faults(directory: Path) -> list[str]:
    """Return what is wrong with the collection in *directory*; many answers here are cut or odd on purpose."""
    report = verify([directory])
    return [str(each) for each in report.findings if CODES[each.code].severity is Severity.FAULT]


@pytest.fixture(name="server")
def a_server() -> Iterator[RawServer]:
    """Serves the site, and answers that break HTTP."""
    with RawServer({**badserver.routes(), **ROUTES}) as server:
        yield server


@pytest.fixture(name="proxy")
def a_proxy(tmp_path: Path) -> Iterator[RecordingProxy]:
    """Records into a collection, which is sound at the end."""
    with recording(tmp_path / "c") as proxy:
        yield proxy
        proxy.end()
        assert faults(proxy.directory) == []


def stored(proxy: RecordingProxy, url: str) -> Exchanged:
    """Return what is stored last for *url*."""
    return [each for each in exchanges(proxy.directory) if each.url == url][-1]


def test_requests_and_responses_are_stored_as_they_crossed_the_wire(server: RawServer, proxy: RecordingProxy) -> None:
    url = server.url("/odd?q=%c3%A9/../x")
    host = f"127.0.0.1:{server.port}".encode()
    request = (
        b"GET %b HTTP/1.1\r\nhost: %b\r\nUser-Agent: curious\r\nX-Odd:\t two  words \r\nCookie: b=2\r\n"
        b"Proxy-Connection: keep-alive\r\nConnection: close\r\n\r\n" % (url.encode(), host)
    )
    answer = proxy.ask(request)
    each = stored(proxy, url)
    assert each.response == ODD
    assert answer == ODD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    sent = (
        b"GET /odd?q=%%c3%%A9/../x HTTP/1.1\r\nhost: %b\r\nUser-Agent: curious\r\nX-Odd:\t two  words \r\n"
        b"Cookie: b=2\r\n\r\n" % host
    )
    assert each.request == sent
    assert [row.request for row in server.log if row.target.startswith("/odd")] == [sent]


def test_the_client_gets_what_is_stored(server: RawServer, proxy: RecordingProxy) -> None:
    for target in ("/", "/large", "/pieces", "/empty", "/robots.txt", "/error"):
        answer, each = proxy.get(server.url(target)), stored(proxy, server.url(target))
        assert body_of(answer) == body_of(each.response)
        assert answer.partition(b"\r\n")[0] == each.response.partition(b"\r\n")[0]
        assert each.truncated == ""


NO_STATUS = {"http-0.9", "status-in-words", "garbage"}  # the client gets a line in place of it


def test_answers_that_break_http_are_stored_as_they_came(server: RawServer, proxy: RecordingProxy) -> None:
    answers = {name: proxy.get(server.url(f"/{name}")) for name in BAD}
    found = {each.url: each for each in exchanges(proxy.directory)}
    for name, bad in BAD.items():
        answer, each = answers[name], found[server.url(f"/{name}")]
        assert each.response == bad.block if bad.exact else bad.block.startswith(each.response)
        if name in NO_STATUS:
            assert answer.startswith(b"HTTP/1.1 502 ")
        elif each.truncated:
            assert answer.startswith(b"HTTP/1.1 502 ") or len(body_of(answer)) <= len(bad.block)
        else:
            assert each.response.endswith(body_of(answer))
        assert bad.verdict is not Verdict.TRUNCATED or each.truncated


def test_a_client_can_send_one_request_after_the_other(server: RawServer, proxy: RecordingProxy) -> None:
    with closing(proxy.connect()) as client:
        for _ in range(3):
            head = f"GET {server.url('/pieces')} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
            client.sendall(head.encode())
            answer = b""
            while not answer.endswith(b"0\r\n\r\n"):
                answer += client.recv(1 << 16)
            assert b"Connection: keep-alive" in answer


def test_requests_sent_together_are_answered_in_order(server: RawServer, proxy: RecordingProxy) -> None:
    host = f"Host: 127.0.0.1:{server.port}\r\n"
    both = (
        f"\r\nPOST {server.url('/form')} HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\na=1"
        f"GET {server.url('/pieces')} HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
    )
    answer = proxy.ask(both.encode())
    assert answer.index(b"thanks") < answer.index(b"four")


def test_the_body_of_a_request_is_stored_with_it(server: RawServer, proxy: RecordingProxy) -> None:
    url, host = server.url("/form"), f"127.0.0.1:{server.port}".encode()
    for size in (0, 3, 300_000):
        fields = b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n" % size
        head = b"POST %b HTTP/1.1\r\nHost: %b\r\n%b" % (url.encode(), host, fields)
        assert proxy.ask(head + b"Connection: close\r\n\r\n" + LARGE[:size]).endswith(b"thanks")
        each = stored(proxy, url)
        assert each.request == b"POST /form HTTP/1.1\r\nHost: %b\r\n%b\r\n%b" % (host, fields, LARGE[:size])
        assert list(server.log)[-1].request == each.request


def test_a_chunked_request_reaches_the_server_with_its_length(server: RawServer, proxy: RecordingProxy) -> None:
    url, host = server.url("/form?chunked"), f"127.0.0.1:{server.port}".encode()
    head = b"PUT %b HTTP/1.1\r\nHost: %b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" % (
        url.encode(),
        host,
    )
    proxy.ask(head + b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n")
    assert stored(proxy, url).request.endswith(b"\r\nContent-Length: 5\r\n\r\nabcde")


def test_a_client_that_asks_first_may_go_on(server: RawServer, proxy: RecordingProxy) -> None:
    host = f"127.0.0.1:{server.port}"
    head = f"POST {server.url('/form?asked')} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\nConnection: close\r\n"
    with closing(proxy.connect()) as client:
        client.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hi")
        rest_of(client)
    assert stored(proxy, server.url("/form?asked")).request.endswith(b"Content-Length: 2\r\n\r\nhi")


def test_the_head_alone_is_stored_and_listed_nowhere(server: RawServer, proxy: RecordingProxy) -> None:
    host = f"127.0.0.1:{server.port}"
    head = f"HEAD {server.url('/head')} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    with closing(proxy.connect()) as client:
        client.sendall(head.encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += client.recv(1)
        client.sendall(head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode())  # the connection goes on
        assert rest_of(client).startswith(b"HTTP/1.1 200 OK")
    each = stored(proxy, server.url("/head"))
    assert each.response == b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    assert each.truncated == ""


SMUGGLED = (
    b"POST http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET http://127.0.0.1/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
)
BY_HAND = (
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),  # as a page of a browser without a proxy would ask
    (b"\x16\x03\x01\x02\x00\x01\x00", 0),
    (b"hello\r\n\r\n", 400),
    (b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: example.org\r\n\r\n", 400),
    (b"GET http://127.0.0.1:25/ HTTP/1.1\r\nHost: 127.0.0.1:25\r\n\r\n", 403),
    (b"TRACE http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 501),
    (b"CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    (b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    (b"POST http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999999\r\n\r\n", 413),
    (b"POST http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\n0\n\n", 400),
    (SMUGGLED, 400),
    (
        b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        501,
    ),
)


def test_what_is_no_request_is_refused_and_not_recorded(proxy: RecordingProxy) -> None:
    for sent, status in BY_HAND:
        with closing(proxy.connect()) as client:
            client.sendall(sent)
            if not status:
                client.shutdown(1)
            answer = rest_of(client)
        assert answer.startswith(b"HTTP/1.1 %d " % status) if status else answer == b""
        assert answer.count(b"HTTP/1.1 ") == (status > 0)
    assert exchanges(proxy.directory) == []


def test_the_proxy_does_not_ask_itself(proxy: RecordingProxy) -> None:
    answer = proxy.get(f"{proxy.address}/")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"is this proxy itself" in answer


def test_a_host_that_does_not_answer_is_named(proxy: RecordingProxy) -> None:
    with closing(proxy.connect()) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/gone"
    answer = proxy.get(url)
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert f"{url}: connect:".encode() in answer
    assert states(proxy.directory)[url] == "failed"


def test_private_addresses_are_refused_unless_they_are_named(server: RawServer, tmp_path: Path) -> None:
    with recording(tmp_path / "c", private=False) as proxy:
        answer = proxy.get(server.url("/"))
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"--allow-private" in answer
        assert "--allow-private" in proxy.end()
    assert exchanges(tmp_path / "c") == []


def test_a_payload_is_stored_once_also_in_the_next_recording(server: RawServer, tmp_path: Path) -> None:
    for _ in range(2):
        with recording(tmp_path / "c") as proxy:
            assert body_of(proxy.get(server.url("/large"))) == LARGE
            proxy.end()
    first, second = exchanges(tmp_path / "c")
    assert (body_of(first.response), body_of(second.response)) == (LARGE, b"")
    assert rows(tmp_path / "c", "SELECT revisit FROM captures ORDER BY id") == [("",), ("identical-payload-digest",)]
    assert faults(tmp_path / "c") == []


@pytest.fixture(name="secure")
def a_secure_server() -> Iterator[RawServer]:
    """Serves the site over TLS."""
    with RawServer(ROUTES, tls=True, hosts=("127.0.0.1",)) as server:
        yield server


def test_what_goes_over_tls_is_recorded_too(secure: RawServer, tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_bytes(secure.authority)
    with recording(tmp_path / "c", "--ca-file", "server.pem") as proxy:
        request = ("curl", "-s", "-x", proxy.address, "--cacert", str(authority_file()))
        asked = subprocess.run([*request, secure.url("/large")], capture_output=True, check=True)
        assert asked.stdout == LARGE
        posted = subprocess.run([*request, "-d", "a=1", secure.url("/form")], capture_output=True, check=True)
        assert posted.stdout == b"thanks"
        proxy.end()
    assert [each.url for each in exchanges(tmp_path / "c")] == [secure.url("/large"), secure.url("/form")]
    assert [row.request for row in secure.log][-2:] == [each.request for each in exchanges(tmp_path / "c")]
    assert faults(tmp_path / "c") == []


def test_a_host_whose_certificate_does_not_verify_gets_nothing_unless_it_is_named(
    secure: RawServer, tmp_path: Path
) -> None:
    asked = len(list(secure.log))
    for options, status in (((), b"502"), (("--insecure-secrets", "127.0.0.1"), b"200")):
        with recording(tmp_path / "c", *options) as proxy:
            with closing(proxy.tunnel(f"127.0.0.1:{secure.port}", authority_file())) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % secure.port)
                answer = rest_of(client)
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert (b"--insecure-secrets 127.0.0.1" in answer) == (status == b"502")
            proxy.end()
        asked += status == b"200"
        assert len(list(secure.log)) == asked
    assert "remark: tls-unverified" in exchanges(tmp_path / "c")[-1].notes


def test_a_tunnel_may_hold_plain_http(server: RawServer, proxy: RecordingProxy) -> None:
    with closing(proxy.tunnel(f"127.0.0.1:{server.port}")) as client:
        client.sendall(b"GET /odd?tunnel HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % server.port)
        assert rest_of(client).startswith(b"HTTP/1.1 404 ")
    assert stored(proxy, server.url("/odd?tunnel")).request.startswith(b"GET /odd?tunnel HTTP/1.1\r\n")


def test_a_client_that_does_not_trust_the_authority_is_named_in_the_log(secure: RawServer, tmp_path: Path) -> None:
    with recording(tmp_path / "c") as proxy:
        asked = subprocess.run(["curl", "-s", "-x", proxy.address, secure.url("/")], capture_output=True, check=False)
        assert asked.returncode == 60  # curl: the certificate cannot be verified
        err = proxy.end()
    assert f"let it trust {authority_file()}" in err


def test_the_second_signal_cuts_what_is_under_way(tmp_path: Path) -> None:

    asked = Flag()
    with RawServer({"/": raising(asked, silence())}) as server, recording(tmp_path / "c") as proxy:
        with closing(proxy.connect()) as client:
            client.sendall(f"GET {server.url('/')} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            asked.wait()
            proxy.signal()
            said(proxy.process, "stopping")
            proxy.signal()
            assert rest_of(client) == b""
        code, err = ended(proxy.process)
    assert code == ExitCode.STOPPED
    assert "were cut, and are not recorded" in err
    assert exchanges(tmp_path / "c") == []


def test_the_first_signal_lets_a_request_end(tmp_path: Path) -> None:

    gate = Gate()
    answer = Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha", gate, b"lf"))
    with RawServer({"/": answer}) as server, recording(tmp_path / "c") as proxy:
        with closing(proxy.connect()) as client:
            client.sendall(f"GET {server.url('/')} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            gate.arrived.wait()
            proxy.signal()
            said(proxy.process, "stopping")
            gate.open()
            assert rest_of(client).endswith(b"half")
        assert ended(proxy.process)[0] == ExitCode.DONE
    assert exchanges(tmp_path / "c")[0].response.endswith(b"half")


def test_a_client_that_leaves_does_not_cost_the_record(tmp_path: Path) -> None:

    gate = Gate()
    size = 3_000_000
    answer = Answer((b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, LARGE[:1000], gate, bytes(size - 1000)))
    with RawServer({"/": answer}) as server, recording(tmp_path / "c") as proxy:
        with closing(proxy.connect()) as client:
            client.sendall(f"GET {server.url('/')} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            assert client.recv(10)
        gate.open()
        proxy.end()
    each = exchanges(tmp_path / "c")[0]
    assert (len(body_of(each.response)), each.truncated) == (size, "")


def test_what_a_client_has_seen_to_its_end_survives_a_kill(server: RawServer, tmp_path: Path) -> None:
    directory = tmp_path / "c"
    targets = ["/", "/large", "/pieces", "/robots.txt"]
    for run in range(3):
        with recording(directory) as proxy:
            for target in targets:
                assert proxy.get(server.url(target)).startswith(b"HTTP/1.1 200 ")
            answer = proxy.ask(
                b"POST %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                b"Content-Length: 5\r\nConnection: close\r\n\r\nrun=%d"
                % (server.url("/form").encode(), server.port, run)
            )
            assert answer.endswith(b"thanks")
            proxy.kill()
    with recording(directory) as proxy:
        proxy.end()
    assert [each.url for each in exchanges(directory)] == [server.url(one) for one in (*targets, "/form")] * 3
    assert set(states(directory).values()) == {"archived"}
    assert faults(directory) == []
    index = (directory / "indexes" / "index.cdxj").read_text()
    assert archiver("index", str(directory), cwd=tmp_path).returncode == 0
    assert (directory / "indexes" / "index.cdxj").read_text() == index
    assert "form?__wb_method=post&run=2" in index


def test_a_kill_among_many_requests_costs_nothing_that_a_client_has_seen(tmp_path: Path) -> None:
    directory, seen = tmp_path / "c", set[str]()
    with RawServer(otherwise=lambda row: ok(f"{row.target} {'x' * 2000}", "text/plain")) as server:

        def browse(proxy: RecordingProxy, name: str, enough: threading.Barrier) -> None:
            for number in range(10_000):
                target = f"/{name}/{number}"
                with suppress(OSError):
                    if body_of(proxy.get(server.url(target))).startswith(f"{target} ".encode()):
                        seen.add(server.url(target))
                if proxy.process.poll() is not None:
                    return
                if number == 20:
                    enough.wait()

        for run in range(3):
            with recording(directory) as proxy:
                enough = threading.Barrier(5)
                clients = [threading.Thread(target=browse, args=(proxy, f"{run}-{n}", enough)) for n in range(4)]
                for client in clients:
                    client.start()
                enough.wait()  # each client is in the middle of its work
                proxy.kill()
                for client in clients:
                    client.join()
    with recording(directory) as proxy:
        proxy.end()
    assert len(seen) >= 3 * 4 * 20
    assert seen <= {url for url, state in states(directory).items() if state == "archived"}
    assert seen <= {each.url for each in exchanges(directory)}
    assert set(states(directory).values()) == {"archived"}
    assert faults(directory) == []
