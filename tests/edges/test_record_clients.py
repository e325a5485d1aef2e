"""Clients of the recording proxy that are slow, silent or too many: each wait ends, and no record is lost."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from archiver.cli.record.settings import recording_settings
from archiver.config import toml
from archiver.crawl.build import Opening
from archiver.crawl.record import client_answer, proxy, recording
from archiver.crawl.record import websocket as websocket_module
from archiver.crawl.record.authority import Authority
from archiver.crawl.record.recording import Clients, Recording, open_recording
from archiver.crawl.record.websocket import PassedOn
from archiver.errors import ArchiveError
from archiver.http import body
from archiver.model import ExitCode
from fixtures.flag import Gate
from fixtures.rawserver import Answer, End, Piece, RawServer
from fixtures.recording import body_of, exchanges


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run *test* in an event loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SHORT = 0.3  # seconds for what a test waits for
PATIENT: dict[str, Any] = {"connect_timeout": 60.0, "first_byte_timeout": 60.0}  # the machine may be busy
SIZE = 30_000_000  # bytes: more than the buffers of the system take


@asynccontextmanager
async def running(
    directory: Path, largest: int = 1000, *, websockets: bool = False, **given: object
) -> AsyncIterator[tuple[Recording, int]]:
    """Record into *directory*; yield the recording and its port."""
    settings = recording_settings({"allow_private": ("127.0.0.1",), "min_free_disk": 0, **given})
    where = socket.create_server(("127.0.0.1", 0))
    clients = Clients(where, Authority(directory.parent / "ca"), largest, websockets)
    async with open_recording(directory, settings, clients, Opening(False, toml.render(settings), "")) as opened:
        run = asyncio.create_task(opened.run())
        yield opened, where.getsockname()[1]
        opened.drain()
        assert (await run).code is ExitCode.DONE


async def lost(reader: asyncio.StreamReader) -> bool:
    """Return True if the connection of *reader* ends with an error."""
    try:
        while await reader.read(1 << 20):
            pass
    except ConnectionError:
        return True
    return False


async def asked(port: int, data: bytes) -> bytes:
    """Return what comes for *data*."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


def request(server: RawServer, target: str = "/", fields: str = "Connection: close\r\n") -> bytes:
    """Return a request through a proxy."""
    return f"GET {server.url(target)} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{fields}\r\n".encode()


@in_a_loop
async def test_a_client_that_reads_nothing_does_not_cost_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client_answer, "STALLED", SHORT)
    answer = Answer((b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE, bytes(SIZE)), End.CLOSE)
    async with RawServer({"/": answer}) as server, running(tmp_path / "c") as (opened, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(request(server))
        while not opened.snapshot().so_far.recorded:  # noqa: ASYNC110  it has no event for tests
            await asyncio.sleep(0.01)
        assert await lost(reader)
        writer.close()
    assert len(body_of(exchanges(tmp_path / "c")[0].response)) == SIZE
    assert "the client takes too long; the answer is recorded" in caplog.text


@pytest.mark.parametrize(
    ("constant", "sent", "said"),
    [
        ("HEAD_TIME", b"GET http://127.0.0.1/ HTTP/1.1\r\nHos", b"HTTP/1.1 408 "),
        ("IDLE_TIME", b"", b""),
        ("BODY_TIME", b"POST http://x.test/ HTTP/1.1\r\nHost: x.test\r\nContent-Length: 3\r\n\r\nab", b"HTTP/1.1 408 "),
        ("IDLE_TIME", b"CONNECT x.test:443 HTTP/1.1\r\nHost: x.test:443\r\n\r\n", b"HTTP/1.1 200 "),
        ("HEAD_TIME", b"CONNECT x.test:443 HTTP/1.1\r\nHost: x.test:443\r\n\r\n\x16\x03", b"HTTP/1.1 200 "),
    ],
)
@in_a_loop
async def test_a_client_that_says_no_more_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constant: str, sent: bytes, said: bytes
) -> None:
    monkeypatch.setattr(proxy, constant, SHORT)
    async with running(tmp_path / "c") as (_, port):
        assert (await asked(port, sent)).startswith(said)


@in_a_loop
async def test_there_are_not_too_many_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_CONNECTIONS", 1)
    async with RawServer({"/": b"HTTP/1.1 200 OK\r\n\r\n"}) as server, running(tmp_path / "c") as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await asked(port, request(server))).startswith(b"HTTP/1.1 503 ")
        writer.close()


@in_a_loop
async def test_a_body_may_not_be_too_long(tmp_path: Path) -> None:
    head = b"POST http://x.test/ HTTP/1.1\r\nHost: x.test\r\n"
    async with running(tmp_path / "c") as (_, port):
        for rest in (b"Content-Length: 1001\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + bytes(1001)):
            assert (await asked(port, head + rest)).startswith(b"HTTP/1.1 413 ")
    assert exchanges(tmp_path / "c") == []


@in_a_loop
async def test_a_response_without_an_end_is_cut_and_the_client_sees_that(tmp_path: Path) -> None:
    answer = Answer((b"HTTP/1.1 200 OK\r\n\r\nfirst", b" and no more"), End.HANG)
    async with RawServer({"/": answer}) as server, running(tmp_path / "c", **PATIENT, timeout=SHORT) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(server))
        assert await lost(reader)
        writer.close()
    each = exchanges(tmp_path / "c")[0]
    assert (body_of(each.response), each.truncated) == (b"first and no more", "time")


@in_a_loop
async def test_a_stream_without_an_end_goes_on_while_its_client_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "SAMPLE", 10)
    monkeypatch.setattr(body, "SAMPLE_TIME", 0.0)
    gate = Gate()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    more: list[Piece] = [b"data: more\n\n", 0.05]
    answer = Answer((head, b"data: first event\n\n", gate, *more * 100), End.HANG)
    async with RawServer({"/": answer}) as server, running(tmp_path / "c") as (opened, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(server))
        assert (await reader.readuntil(b"event\n\n")).endswith(b"data: first event\n\n")
        gate.open()
        assert await reader.readuntil(b"more\n\n") == b"data: more\n\n"
        writer.close()
        while not opened.snapshot().so_far.recorded:  # noqa: ASYNC110  as above
            await asyncio.sleep(0.01)
    each = exchanges(tmp_path / "c")[0]
    assert body_of(each.response).startswith(b"data: first event\n\ndata: more\n\n")
    assert each.truncated == "length"
    assert "remark: endless:events" in each.notes


@in_a_loop
async def test_a_server_that_says_nothing_is_a_gateway_timeout(tmp_path: Path) -> None:
    async with (
        RawServer({"/": Answer((), End.HANG)}) as server,
        running(tmp_path / "c", connect_timeout=60.0, first_byte_timeout=SHORT) as (opened, port),
    ):
        assert (await asked(port, request(server))).startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
        assert opened.snapshot().so_far.failed == 1


@in_a_loop
async def test_nothing_is_asked_for_while_the_disk_is_low(tmp_path: Path) -> None:
    async with RawServer({}) as server, running(tmp_path / "c", min_free_disk=1 << 60) as (_, port):
        answer = await asked(port, request(server))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"not recorded, so not fetched" in answer
        assert list(server.log) == []


@asynccontextmanager
async def reads_only_heads(answer: bytes) -> AsyncIterator[str]:
    """Run a server that answers each head with *answer*, and takes nothing more; yield its host and port."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await over.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024) as server:
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            over.set()


@in_a_loop
async def test_a_server_may_answer_before_it_has_read_the_whole_request(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
    async with reads_only_heads(answer) as place, running(tmp_path / "c", largest=SIZE) as (_, port):
        head = f"POST http://{place}/ HTTP/1.1\r\nHost: {place}\r\n"
        request = f"{head}Content-Length: {SIZE}\r\nConnection: close\r\n\r\n".encode() + bytes(SIZE)
        assert (await asked(port, request)).endswith(b"no")
    each = exchanges(tmp_path / "c")[0]
    assert each.response == answer
    assert "remark: request-cut" in each.notes


@in_a_loop
async def test_the_database_away_ends_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> None:
        raise ArchiveError("crawl.db: disk I/O error")

    async with RawServer({}) as server:
        with pytest.raises(ArchiveError, match=r"crawl\.db: disk I/O error"):  # noqa: PT012  it ends with the block
            async with running(tmp_path / "c") as (opened, port):
                monkeypatch.setattr(opened._frontier, "record_visits", fails)
                answer = await asked(port, request(server))
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert b"is not recorded: crawl.db: disk I/O error" in answer


SWITCH = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
OPEN = "Connection: Upgrade\r\nUpgrade: websocket\r\n"


@asynccontextmanager
async def websocket(tmp_path: Path, after: tuple[Piece, ...]) -> AsyncIterator[tuple[Recording, Streams]]:
    """Open a WebSocket connection to a server that sends *after*, and then hangs. In the end no task is left."""
    before = asyncio.all_tasks()
    async with RawServer({"/": Answer((SWITCH, *after), End.HANG)}) as server:
        async with running(tmp_path / "c", websockets=True) as (opened, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(server, fields=OPEN))
            assert await reader.readuntil(b"\r\n\r\n") == SWITCH
            yield opened, (reader, writer)
            writer.close()
        assert asyncio.all_tasks() == before
    assert [each.response for each in exchanges(tmp_path / "c")] == [SWITCH]


@in_a_loop
async def test_a_websocket_connection_that_is_silent_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "SILENT", SHORT)
    async with websocket(tmp_path, (b"word",)) as (opened, (reader, _)):
        assert await reader.read() == b"word"
        assert opened.snapshot().passed == PassedOn(1, 0, 0, 4, opened.snapshot().passed.names)


@in_a_loop
async def test_a_server_that_takes_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is slowed down meanwhile: what it has sent beyond the buffers of systems stays with it."""
    monkeypatch.setattr(websocket_module, "STALLED", SHORT)
    monkeypatch.setattr(websocket_module, "LINGER", SHORT)
    async with reads_only_heads(SWITCH) as place, running(tmp_path / "c", websockets=True) as (opened, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{OPEN}\r\n"
        writer.write(head.encode())
        assert await reader.readuntil(b"\r\n\r\n") == SWITCH
        writer.write(bytes(SIZE))
        assert await lost(reader)
        passed = opened.snapshot().passed
        assert (passed.open, passed.sent < SIZE) == (0, True)
        writer.transport.abort()


@in_a_loop
async def test_a_client_that_takes_nothing_of_a_websocket_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_module, "STALLED", SHORT)
    monkeypatch.setattr(websocket_module, "LINGER", SHORT)
    async with websocket(tmp_path, (bytes(SIZE),)) as (opened, _):
        while opened.snapshot().passed.open:  # noqa: ASYNC110  as above
            await asyncio.sleep(0.01)
        assert opened.snapshot().passed.received < SIZE
