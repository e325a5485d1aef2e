"""What is stored once, and what a revisit names: records that are on disk, whole and sound, whoever wrote them."""

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from archiver import storage
from archiver.collection.layout import Layout
from archiver.collection.writer import Archive, PendingVisit, WarcIdentity, WriteResult
from archiver.crawl.dedup import DedupWriter, has_trailers, may_refer
from archiver.fetch.spool import MemoryBlock
from archiver.frontier.dedup import Payloads
from archiver.frontier.sqlite import SqliteFrontier
from archiver.http import read_stored
from archiver.model import (
    Capture,
    Claim,
    Event,
    Exchange,
    Hop,
    Links,
    Peer,
    Profile,
    Revisit,
    Settlement,
    Span,
    Truncation,
)
from archiver.storage import OPEN
from archiver.warc import writer
from fixtures.queued_urls import waiting

ORIGIN = "http://site.test"
STARTED = 1_800_000_000_000_000
BODY = b"some text that comes again"
CLAIM = Claim(1, f"{ORIGIN}/page", 1, Hop.LINK, "L", 1, 0, 0)


def answer(body: bytes = BODY, status: int = 200, *fields: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d Word" % status, b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join([*lines, b"", body])


def chunked(body: bytes = BODY, end: bytes = b"0\r\n\r\n") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n" % (len(body), body) + end


def exchange(raw: bytes, number: int = 0) -> Exchange:
    return Exchange(
        request=b"GET / HTTP/1.1\r\n\r\n",
        response=MemoryBlock(raw),
        framing=read_stored(raw),
        digests=None,
        peer=Peer("127.0.0.1"),
        started=STARTED + number,
        duration=0.1,
    )


@dataclass
class Lane:
    """One of the lanes of a collection, and the frontier that is told of its batches."""

    layout: Layout
    frontier: SqliteFrontier
    store: DedupWriter
    claims: dict[str, Claim]
    clock: Iterable[int]

    def append(self, *raws: bytes) -> tuple[list[PendingVisit], WriteResult]:
        deposits = [
            PendingVisit(self.claims.popitem()[1], exchange(raw, number), Links())
            for raw, number in zip(raws, self.clock, strict=False)
        ]
        return deposits, self.store.append(deposits)

    async def settled(self, deposits: Sequence[PendingVisit], receipt: WriteResult) -> list[Capture]:
        told = [
            Settlement(deposit.claim, Event.CAPTURE, capture.status, capture=capture)
            for deposit, capture in zip(deposits, receipt.captures, strict=True)
        ]
        await self.frontier.settle(told, receipt.files)
        return list(receipt.captures)

    async def batch(self, *raws: bytes) -> list[Capture]:
        return await self.settled(*self.append(*raws))


async def lanes(folder: Path, number: int = 1, size: int = 10**9, smallest: int = 1) -> list[Lane]:
    layout = Layout(folder)
    layout.make()
    frontier = await SqliteFrontier.open(layout.database)
    await frontier.add_seeds([f"{ORIGIN}/{page}" for page in range(60)])
    claims = await waiting(frontier, [f"{ORIGIN}/{page}" for page in range(60)])
    ids, serials, clock = itertools.count(), itertools.count(), itertools.count()
    identity = WarcIdentity("test", "host", size, "sha256", (("software", "archiver/test"),))
    made = []
    for _ in range(number):
        archive = Archive(
            layout.archive, identity, lambda: next(serials), lambda: STARTED, lambda: f"<urn:uuid:{next(ids):036}>"
        )
        store = DedupWriter(archive, [Payloads(layout.database)], smallest)
        made.append(Lane(layout, frontier, store, claims, clock))
    return made


async def ended(*some: Lane) -> None:
    for lane in some:
        lane.store.abandon()
    await some[0].frontier.close()


def kinds(captures: Iterable[Capture]) -> list[Profile | None]:
    return [capture.revisit for capture in captures]


SAME = Profile.IDENTICAL


def read_back(layout: Layout) -> dict[str, bytes]:
    """The payload of each URL, looked for as a reader does: by URL and date of what a revisit names."""
    payloads: dict[tuple[str, str], bytes] = {}
    asked: dict[str, tuple[str, str]] = {}
    for path in layout.archive.iterdir():
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                header = record.rec_headers.get_header
                here = header("WARC-Target-URI"), header("WARC-Date")
                if record.rec_type == "response":
                    payloads[here] = record.content_stream().read()
                    asked[here[0]] = here
                elif record.rec_type == "revisit":
                    asked[here[0]] = header("WARC-Refers-To-Target-URI"), header("WARC-Refers-To-Date")
    return {url: payloads[there] for url, there in asked.items()}


VARIANTS = st.tuples(
    st.sampled_from([BODY, BODY + b".", b"short", b""]),
    st.sampled_from([200, 404, 302]),
    st.sampled_from([(), (b"X: 1",), (b"Content-Encoding: x",)]),
    st.booleans(),
)


@settings(max_examples=8, deadline=None)
@given(
    batches=st.lists(st.lists(VARIANTS, min_size=1, max_size=8), min_size=1, max_size=4),
    size=st.sampled_from([1, 10**9]),
)
def test_whatever_comes_can_be_read_back_and_is_stored_once(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[bytes, int, tuple[bytes, ...], bool]]], size: int
) -> None:
    async def run() -> None:
        (lane,) = await lanes(tmp_path_factory.mktemp("any") / "c", size=size, smallest=6)
        sent: dict[str, bytes] = {}
        once: set[tuple[bytes, int, bool, bool]] = set()
        for batch in batches:
            raws = [
                chunked(body) if in_chunks and status == 200 and not fields else answer(body, status, *fields)
                for body, status, fields, in_chunks in batch
            ]
            deposits, receipt = lane.append(*raws)
            captures = await lane.settled(deposits, receipt)
            for deposit, capture, (body, status, fields, in_chunks) in zip(deposits, captures, batch, strict=True):
                sent[deposit.claim.url] = body
                framed = in_chunks and status == 200 and not fields
                kind = (body, status, fields == (b"Content-Encoding: x",), framed)
                may = len(body) >= 6 and status != 302
                fitting = {kind, (*kind[:3], False)}  # what was stored in chunks fits only what comes in chunks
                assert (capture.revisit is not None) == (may and not fitting.isdisjoint(once))
                assert capture.received == deposit.exchange.response.length
                assert capture.payload_length == len(body)
                once.add(kind)
        await ended(lane)
        assert read_back(lane.layout) == sent

    asyncio.run(run())


def test_lanes_do_not_name_what_the_other_has_not_committed(tmp_path: Path) -> None:
    async def run() -> None:
        one, two = await lanes(tmp_path / "c", 2)
        first = one.append(answer())
        assert kinds(await two.batch(answer())) == [None]
        await one.settled(*first)
        assert kinds(await two.batch(answer(BODY + b"."), answer())) == [None, SAME]
        await ended(one, two)

    asyncio.run(run())


@pytest.mark.parametrize("damage", ["none", "gone", "a byte", "cut", "elsewhere"])
def test_what_is_not_sound_any_more_is_named_by_nobody(tmp_path: Path, damage: str) -> None:
    async def run() -> None:
        one, two = await lanes(tmp_path / "c", 2)
        (capture,) = await one.batch(answer())
        await one.frontier.settle((), one.store.close())
        path = one.layout.archive / capture.warc
        whole, place = path.read_bytes(), capture.response.offset
        match damage:
            case "gone":
                path.unlink()
            case "a byte":
                at = place + capture.response.length - 20
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            case "cut":
                path.write_bytes(whole[: place + 99])
            case "elsewhere":  # a whole record begins there, and it is another one
                path.write_bytes(whole[:place] + whole[capture.request.offset :])
        assert kinds(await two.batch(answer(), answer())) == ([SAME, SAME] if damage == "none" else [None, SAME])
        await ended(two)

    asyncio.run(run())


@pytest.mark.parametrize(
    "stored",
    [
        chunked(end=b"0\r\nX: 1\r\n\r\n"),
        chunked().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n", 3),  # the head alone has whole line ends
        chunked().replace(b"\r\n\r\n1a\r", b"\r\n\r\n1a;" + b"x" * 70 + b"\r"),
        b"ICY" + answer().removeprefix(b"HTTP/1.1"),
    ],
    ids=["with trailers", "in chunks with bare LF", "with a long extension", "with another protocol"],
)
def test_what_readers_stumble_over_is_named_by_nobody(tmp_path: Path, stored: bytes) -> None:
    """They would find another payload in it, or none, also for the address whose own answer was sound."""
    sound = answer() if stored.startswith(b"ICY") else chunked()

    async def run() -> None:
        (lane,) = await lanes(tmp_path / "c")
        assert kinds(await lane.batch(stored)) == [None]
        assert kinds(await lane.batch(sound)) == [None]
        assert kinds(await lane.batch(sound)) == [SAME]
        await ended(lane)

    asyncio.run(run())


def test_the_target_is_on_disk_before_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one batch there is a sync between what is new and what names it, and none more where nothing does."""
    steps: list[str] = []
    sync, append = storage.sync_data, writer.WarcFile.append

    def synced(file: BinaryIO) -> None:
        steps.append("sync")
        sync(file)

    def appended(self: writer.WarcFile, header: bytes, block: Iterable[bytes], length: int) -> Span:
        steps.append(header.split(b"\r\n")[1].decode().removeprefix("WARC-Type: "))
        return append(self, header, block, length)

    monkeypatch.setattr(writer, "sync_data", synced)
    monkeypatch.setattr(writer.WarcFile, "append", appended)

    async def run() -> None:
        (lane,) = await lanes(tmp_path / "c")
        new, again = ["response", "request", "metadata"], ["revisit", "request", "metadata"]
        captures = await lane.batch(answer(), answer(), answer(b"other"))
        assert kinds(captures) == [None, SAME, None]
        assert steps == ["warcinfo", *new, *new, "sync", *again, "sync"]
        steps.clear()
        assert kinds(await lane.batch(answer(), answer(b"new"))) == [SAME, None]
        assert steps == [*again, *new, "sync"]
        await ended(lane)

    asyncio.run(run())


def test_a_sealed_file_keeps_its_open_name_until_the_database_knows(tmp_path: Path) -> None:
    """Also where one batch is written in two parts, each of which fills a file."""

    async def run() -> None:
        (lane,) = await lanes(tmp_path / "c", size=1)
        deposits, receipt = lane.append(answer(), answer(b"other"), answer())
        assert kinds(receipt.captures) == [None, None, SAME]
        assert [path.name.endswith(OPEN) for path in lane.layout.archive.iterdir()] == [True] * 3
        assert {file.closed for file in receipt.files} == {False}
        await lane.settled(deposits, receipt)
        _, receipt = lane.append(answer())
        assert sum(file.closed for file in receipt.files) == 3
        await ended(lane)

    asyncio.run(run())


def test_a_revisit_that_is_handed_in_stays_what_it_is(tmp_path: Path) -> None:
    """Such as a 304, which has no payload of its own."""
    raw = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    revisit = Revisit(Profile.NOT_MODIFIED, f"{ORIGIN}/old", "2020-01-01T00:00:00Z", "<urn:uuid:1>", "sha256:0", 9)

    async def run() -> None:
        (lane,) = await lanes(tmp_path / "c")
        (claim,) = [lane.claims.popitem()[1]]
        deposit = PendingVisit(claim, exchange(raw), Links(), revisit)
        (capture,) = await lane.settled([deposit], lane.store.append([deposit]))
        assert (capture.revisit, capture.status, capture.payload_digest) == (Profile.NOT_MODIFIED, 304, "sha256:0")
        assert (capture.payload_length, capture.received) == (9, len(raw))
        await ended(lane)

    asyncio.run(run())


WHOLE = exchange(answer())


@pytest.mark.parametrize(
    ("claim", "came", "may"),
    [
        (CLAIM, WHOLE, True),
        (CLAIM, exchange(answer(status=404)), True),
        (CLAIM, exchange(answer(status=503)), True),
        (CLAIM, exchange(answer(status=301)), False),
        (CLAIM, exchange(answer(status=304)), False),
        (CLAIM, exchange(BODY * 2), False),
        (CLAIM, replace(WHOLE, truncated=Truncation.LENGTH), False),
        (CLAIM, replace(WHOLE, framing=replace(WHOLE.framing, faults=("chunk",))), False),
        (CLAIM, exchange(answer(BODY[1:])), False),
        (replace(CLAIM, url=f"{ORIGIN}/robots.txt"), WHOLE, False),
        (replace(CLAIM, url="http://other.test/rules", path="PR"), WHOLE, False),
    ],
)
def test_what_may_be_a_revisit(claim: Claim, came: Exchange, *, may: bool) -> None:
    assert may_refer(claim, came, len(BODY)) is may


@pytest.mark.parametrize(
    ("raw", "has"),
    [
        (answer(), False),
        (answer(b"0\r\nX: 1\r\n\r\n"), False),
        (chunked(), False),
        (chunked(end=b"0\r\nX: 1\r\n\r\n"), True),
        (chunked(end=b"0;x=1\r\n\r\n"), True),
    ],
)
def test_what_stands_behind_a_payload(raw: bytes, *, has: bool) -> None:
    assert has_trailers(exchange(raw)) is has


def test_an_earlier_crawl_into_the_same_archive_counts_too(tmp_path: Path) -> None:
    """By its own database, at rest; one that cannot be read is passed over."""

    async def run() -> None:
        (one,) = await lanes(tmp_path / "c")
        await one.batch(answer())
        await one.frontier.settle((), one.store.close())
        await one.frontier.close()
        kept = one.layout.earlier / "20200101"
        kept.mkdir(parents=True)
        one.layout.database.rename(kept / "crawl.db")
        (kept / "broken.db").write_bytes(b"no database" * 999)
        (two,) = await lanes(tmp_path / "c")
        databases = [two.layout.database, kept / "broken.db", kept / "crawl.db"]
        known = [Payloads(path, at_rest=path.parent == kept) for path in databases]
        two.store = DedupWriter(two.store._archive, known, 1)
        assert kinds(await two.batch(answer(), answer(b"new"))) == [SAME, None]
        await ended(two)

    asyncio.run(run())
