"""A form is sent with POST exactly once, on a connection of its own, and only where its secrets are safe."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from archiver.errors import Failure, FetchError
from archiver.http.form_post import FormPost
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.rawserver import Answer, End, RawServer, keep

FORM = FormPost(b"user=me&password=hunter2", "application/x-www-form-urlencoded", "http://example.org/login?next=/")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_form_is_in_the_request_as_it_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path) as fetcher:
            taken(await fetcher.fetch(server.url("/"), gate))
            exchange = await fetcher.fetch(server.url("/login"), gate, form=FORM)
            assert taken(exchange) == OK
            assert exchange.request == server.log[-1].request
            taken(await fetcher.fetch(server.url("/"), gate))
        assert gate.passed == 3

    with RawServer({"/": keep(OK), "/login": keep(OK)}) as server:
        asyncio.run(main())
        requests = [row.request for row in server.log]
    assert [each.split(b" ")[0] for each in requests] == [b"GET", b"POST", b"GET"]
    lines = requests[1].split(b"\r\n")
    assert b"Origin: http://example.org" in lines
    assert b"Referer: http://example.org/login?next=/" in lines
    assert b"Content-Length: 24" in lines


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
def test_a_form_without_an_answer_is_not_sent_again(tmp_path: Path, end: End) -> None:
    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path) as fetcher:
            taken(await fetcher.fetch(server.url("/"), gate))
            with pytest.raises(FetchError):
                await fetcher.fetch(server.url("/login"), gate, form=FORM)

    with RawServer({"/": keep(OK), "/login": Answer((), end)}) as server:
        asyncio.run(main())
        assert Counter(server.log.targets()) == {"/": 1, "/login": 1}


def test_a_form_does_not_go_over_a_connection_that_is_not_verified(tmp_path: Path) -> None:
    async def main(*insecure: str) -> None:
        async with fetching(tmp_path, insecure_secrets=insecure) as fetcher:
            taken(await fetcher.fetch(server.url("/login"), CountingGate(), form=FORM))

    with RawServer({"/login": keep(OK)}, tls=True) as server:
        with pytest.raises(FetchError, match="the certificate does not verify") as caught:
            asyncio.run(main())
        assert caught.value.failure is Failure.TLS
        assert not len(server.log)


def test_the_password_is_not_in_the_repr() -> None:
    assert "hunter2" not in repr(FORM)
