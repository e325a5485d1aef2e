"""Recovery from the remaining bytes: an archive cut at any length keeps each whole visit, byte for byte."""

import asyncio
import gzip
import io
import itertools
import json
import os
import random
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import pytest

from archiver.collection.layout import Layout
from archiver.collection.writer import Archive, PendingVisit, WarcIdentity
from archiver.config.scope_settings import ScopeSettings
from archiver.crawl.recovery.rebuild import Rebuild, RebuildResult
from archiver.crawl.recovery.recover import Recovered, Recovery
from archiver.crawl.recovery.scan import ScannedVisit, survey
from archiver.crawl.visit import conclude
from archiver.crawl.visit_rules import HostVisitRules, VisitRules
from archiver.errors import ArchiveError
from archiver.fetch.spool import MemoryBlock
from archiver.frontier.sqlite import SqliteFrontier
from archiver.http import read_stored
from archiver.model import Claim, Exchange, FileState, Hop, Link, Links, Lookup, Peer, Truncation
from archiver.policy.scope import Scope
from archiver.storage import OPEN
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from fixtures.queued_urls import waiting

T = TypeVar("T")

ORIGIN = "http://site.test"
SEEDS = tuple(f"{ORIGIN}/{number}" for number in range(6))
RULES = VisitRules(Scope(ScopeSettings(), SEEDS, str), HostVisitRules(3))
NOW = 1_800_000_000.0
LONG = bool(os.environ.get("ARCHIVER_LONG"))
STARTED = 1_800_000_000_000_000
COMMITTED = 2  # visits of which the database knows; those behind are on disk only


def _exchange(number: int, raw: bytes) -> Exchange:
    return Exchange(
        request=b"GET /%d HTTP/1.1\r\nHost: site.test\r\n\r\n" % number,
        response=MemoryBlock(raw),
        framing=read_stored(raw),
        digests=None,
        peer=Peer("127.0.0.1"),
        started=STARTED + number,
        duration=0.25,
        notes=("tls-unverified",),
        surplus=b"\x00surplus",
    )


def _page(number: int) -> bytes:
    body = b"<a href='/new-%d'>more</a>" % number
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@dataclass(frozen=True)
class Cut:
    """A collection as a crash leaves it, and where its visits end."""

    layout: Layout
    name: str
    whole: bytes
    ends: tuple[int, ...]  # of the visits

    def copy(self, folder: Path, length: int) -> "Cut":
        """The same, with the file cut to *length*."""
        shutil.copytree(self.layout.directory, folder)
        layout = Layout(folder)
        with (layout.archive / (self.name + OPEN)).open("r+b") as file:
            file.truncate(length)
        return Cut(layout, self.name, self.whole, self.ends)


def _sum(path: Path) -> str:
    return "sha256:" + sha256(path.read_bytes()).hexdigest()


def _archive(layout: Layout, size: int = 10**9) -> Archive:
    ids = itertools.count()
    serials = itertools.count()
    identity = WarcIdentity("test", "host", size, "sha256", (("software", "a test"),))
    return Archive(
        layout.archive, identity, lambda: next(serials), lambda: STARTED, lambda: f"<urn:uuid:{next(ids):036}>"
    )


async def _begun(directory: Path) -> Cut:
    layout = Layout(directory)
    layout.make()
    frontier = await SqliteFrontier.open(layout.database)
    await frontier.add_seeds(SEEDS)
    claims = await waiting(frontier, SEEDS)
    archive = _archive(layout)
    ends = []
    name = ""
    for number, seed in enumerate(SEEDS[:5]):
        exchange = _exchange(number, _page(number))
        links = Links((Link(f"{ORIGIN}/new-{number}", Hop.LINK, "a/@href"),), "utf-8")
        receipt = archive.append((PendingVisit(claims[seed], exchange, links),))
        ends.append(receipt.files[-1].size)
        name = receipt.files[-1].name
        if number < COMMITTED:
            settlement = conclude(RULES, claims[seed], exchange, links, NOW)
            await frontier.settle((settlement,), receipt.files)
    archive.abandon()
    await frontier.close()
    return Cut(layout, name, (layout.archive / (name + OPEN)).read_bytes(), tuple(ends))


@pytest.fixture(name="crashed", scope="module")
def crashed_collection(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return asyncio.run(_begun(tmp_path_factory.mktemp("crashed") / "c"))


def _with_frontier(layout: Layout, work: Callable[[SqliteFrontier], Awaitable[T]]) -> tuple[T, dict[str, Claim]]:
    """Do *work* with the database; what it came to, and who waits then."""

    async def run() -> tuple[T, dict[str, Claim]]:
        frontier = await SqliteFrontier.open(layout.database)
        try:
            result = await work(frontier)
            everybody = [*SEEDS, *(f"{ORIGIN}/new-{number}" for number in range(5))]
            return result, await waiting(frontier, everybody)
        finally:
            await frontier.close()

    return asyncio.run(run())


def _recover(layout: Layout) -> tuple[Recovered, dict[str, Claim]]:
    """Recover; what it came to, and who waits then."""
    return _with_frontier(layout, lambda frontier: Recovery(layout, frontier, RULES).run())


def _rebuild(layout: Layout) -> tuple[RebuildResult, dict[str, Claim]]:
    """Make the database anew; what it came to, and who waits then."""

    async def work(frontier: SqliteFrontier) -> RebuildResult:
        await frontier.add_seeds(SEEDS)
        return await Rebuild(layout, frontier, RULES).run()

    return _with_frontier(layout, work)


@pytest.mark.slow
def test_every_length_of_the_last_4_kib(crashed: Cut, tmp_path: Path) -> None:
    """A scan from the last whole visit but one finds exactly the whole visits, and one gap behind them.

    Without ARCHIVER_LONG it takes every seventh length, and all around the ends of visits.
    """
    last = len(crashed.whole)
    ends = {end + near for end in crashed.ends for near in (-1, 0, 1) if last - 4096 <= end + near <= last}
    for length in sorted({*range(last - 4096, last + 1, 1 if LONG else 7), *ends}):
        whole = [end for end in crashed.ends if end <= length]
        begin = whole[-2] if len(whole) > 1 else _first(crashed)
        found = list(survey(io.BytesIO(crashed.whole[:length]), "name", begin, tmp_path))
        assert [each.end for each in found if isinstance(each, ScannedVisit)] == [end for end in whole if end > begin]
        gaps = [(each.start, each.end) for each in found if not isinstance(each, ScannedVisit)]
        assert gaps == ([(whole[-1], length)] if length > whole[-1] else [])


def _lengths(crashed: Cut) -> list[int]:
    ends = crashed.ends[COMMITTED - 1 :]
    return sorted(
        {*range(ends[0], ends[-1], 137), *ends, *(end - 1 for end in ends[1:]), *(end + 1 for end in ends[:-1])}
    )


def test_recovery_at_many_lengths(crashed: Cut, tmp_path: Path) -> None:
    for length in _lengths(crashed):
        remains = crashed.copy(tmp_path / f"c{length}", length)
        recovered, waiting = _recover(remains.layout)
        kept = sum(end <= length for end in crashed.ends)
        end = crashed.ends[kept - 1]
        assert recovered.adopted == kept - COMMITTED
        assert (remains.layout.archive / crashed.name).read_bytes() == crashed.whole[:end]
        assert set(waiting) == {*SEEDS[kept:], *(f"{ORIGIN}/new-{number}" for number in range(kept))}
        tails = sorted(remains.layout.damaged.glob("*.tail"))
        assert [tail.read_bytes() for tail in tails] == ([crashed.whole[end:length]] if length > end else [])
        assert recovered.cut == ((crashed.name,) if length > end else ())
        assert [path.name for path in remains.layout.archive.iterdir()] == [crashed.name]
        assert _recover(remains.layout)[0] == Recovered()


def test_the_note_beside_a_tail(crashed: Cut, tmp_path: Path) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[2] + 5)
    _recover(remains.layout)
    (note,) = remains.layout.damaged.glob("*.json")
    assert json.loads(note.read_text()) == {
        "file": crashed.name,
        "offset": crashed.ends[2],
        "bytes": 5,
        "why": "the file ends inside the header of a gzip member",
    }


def test_a_hole_in_the_middle_costs_no_visit_but_the_one_it_is_in(crashed: Cut, tmp_path: Path) -> None:
    """As a power cut leaves it, when later blocks of a file have reached the disk and earlier ones have not."""
    remains = crashed.copy(tmp_path / "c", len(crashed.whole))
    start, end = crashed.ends[2], crashed.ends[3]
    holed = crashed.whole[: start + 10] + bytes(end - start - 10) + crashed.whole[end:]
    (remains.layout.archive / (crashed.name + OPEN)).write_bytes(holed)
    recovered, waiting = _recover(remains.layout)
    assert recovered == Recovered(adopted=2, cut=(crashed.name,))
    assert set(SEEDS) & set(waiting) == {SEEDS[3], SEEDS[5]}
    path = remains.layout.archive / crashed.name
    assert path.read_bytes() == crashed.whole[:start] + crashed.whole[end:]
    (kept,) = remains.layout.damaged.glob("*.part")
    assert kept.name == f"{crashed.name}.{start}.part"
    assert kept.read_bytes() == holed[start:end]
    assert not [each for each in remains.layout.archive.iterdir() if each != path]
    assert _recover(remains.layout)[0] == Recovered()


def _units(data: bytes, folder: Path, *, lenient: bool) -> dict[str, bytes]:
    """The bytes of each visit in *data*, by URL."""
    found = {}
    for unit in survey(io.BytesIO(data), "name", 0, folder, lenient=lenient):
        if isinstance(unit, ScannedVisit):
            found[unit.capture.url] = data[unit.start : unit.end]
    return found


@pytest.mark.slow
def test_one_changed_byte_costs_no_visit_but_the_one_it_is_in(crashed: Cut, tmp_path: Path) -> None:
    """Every other visit is found, byte for byte, in each of many files with one changed byte."""
    whole = _units(crashed.whole, tmp_path, lenient=False)
    assert len(whole) == 5
    chance = random.Random(20)
    for _ in range(2000 if LONG else 300):
        data = bytearray(crashed.whole)
        place = chance.randrange(len(data))
        data[place] ^= chance.randrange(1, 256)
        hit = {SEEDS[number] for number, end in enumerate(crashed.ends) if place < end}
        others = set(whole) - {min(hit)} if hit and place >= _first(crashed) else set(whole)
        found = _units(bytes(data), tmp_path, lenient=False)
        assert {url: found.get(url) for url in others} == {url: whole[url] for url in others}


def test_a_rebuilding_keeps_every_whole_response(crashed: Cut, tmp_path: Path) -> None:
    """A damaged request or metadata record does not take its response with it."""
    chance = random.Random(21)
    with_response_only = 0
    for _ in range(300):
        data = bytearray(crashed.whole)
        data[chance.randrange(_first(crashed), len(data))] ^= chance.randrange(1, 256)
        responses = {each.first("WARC-Target-URI") for each in _whole_records(bytes(data)) if each.type == "response"}
        found = _units(bytes(data), tmp_path, lenient=True)
        assert set(found) == responses
        with_response_only += len(_units(bytes(data), tmp_path, lenient=False)) < len(found)
    assert with_response_only > 20


def test_a_rebuilding_keeps_no_part_of_the_visit_that_was_being_written(crashed: Cut, tmp_path: Path) -> None:
    """At every length of an open file, also where some of the records of its last visit are whole."""
    boundaries = {each.offset for each in _whole_records(crashed.whole)}
    for length in sorted({*boundaries, *_lengths(crashed)} - {0}):
        remains = crashed.copy(tmp_path / f"c{length}", length)
        remains.layout.database.unlink()
        rebuilt, waiting = _rebuild(remains.layout)
        kept = sum(end <= length for end in crashed.ends)
        end = crashed.ends[kept - 1] if kept else _first(crashed)
        assert rebuilt.visits == kept
        assert (remains.layout.archive / crashed.name).read_bytes() == crashed.whole[:end]
        assert set(waiting) == {*SEEDS[kept:], *(f"{ORIGIN}/new-{number}" for number in range(kept))}
        tails = sorted(remains.layout.damaged.glob("*.tail"))
        assert [tail.read_bytes() for tail in tails] == ([crashed.whole[end:length]] if length > end else [])


def test_a_rebuilding_keeps_a_response_behind_which_another_visit_lies(crashed: Cut, tmp_path: Path) -> None:
    """Also in an open file: there it was not the writer that was stopped."""
    remains = crashed.copy(tmp_path / "c", len(crashed.whole))
    data = bytearray(crashed.whole)
    data[crashed.ends[3] - 20] ^= 1  # in the metadata record
    (remains.layout.archive / (crashed.name + OPEN)).write_bytes(data)
    remains.layout.database.unlink()
    assert _rebuild(remains.layout)[0].visits == 5


def _first(crashed: Cut) -> int:
    """Where the first visit begins: behind the warcinfo record."""
    first = next(iter(_whole_records(crashed.whole)))
    return first.length or 0


def _whole_records(data: bytes) -> list[Record]:
    found = []
    for record in scan(io.BytesIO(data)):
        if isinstance(record, Record):
            with suppress(DamagedRecord):
                for _ in record.pieces():
                    pass
                found.append(record)
    return found


@pytest.mark.parametrize("length", [0, 1, 100])
def test_a_file_without_one_whole_record_is_gone(crashed: Cut, tmp_path: Path, length: int) -> None:
    """A second file, of which the database knows nothing."""
    remains = crashed.copy(tmp_path / "c", crashed.ends[-1])
    other = remains.layout.archive / f"other.warc.gz{OPEN}"
    other.write_bytes(crashed.whole[:length])
    recovered, _ = _recover(remains.layout)
    assert recovered.cut == (("other.warc.gz",) if length else ())
    assert [path.name for path in remains.layout.archive.iterdir()] == [crashed.name]


def test_a_file_of_which_the_database_knows_nothing_is_read_from_its_beginning(crashed: Cut, tmp_path: Path) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[1])
    other = remains.layout.archive / f"other.warc.gz{OPEN}"
    other.write_bytes(crashed.whole)
    recovered, waiting = _recover(remains.layout)
    assert recovered.adopted == 5  # the first two are known from another file; here they lie once more
    assert set(SEEDS) & set(waiting) == {SEEDS[5]}
    assert (remains.layout.archive / "other.warc.gz").read_bytes() == crashed.whole


def test_renamed_but_not_yet_known_as_closed(crashed: Cut, tmp_path: Path) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[-1])
    (remains.layout.archive / (crashed.name + OPEN)).rename(remains.layout.archive / crashed.name)
    assert _recover(remains.layout)[0] == Recovered(adopted=3)
    assert _recover(remains.layout)[0] == Recovered()


def test_somebody_elses_finished_file_is_left_alone(crashed: Cut, tmp_path: Path) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[1])
    foreign = remains.layout.archive / "foreign.warc.gz"
    foreign.write_bytes(crashed.whole + b"\x1f\x8btorn")
    assert _recover(remains.layout)[0] == Recovered()
    assert foreign.read_bytes() == crashed.whole + b"\x1f\x8btorn"


def test_a_database_older_than_the_files_is_refused(crashed: Cut, tmp_path: Path) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[-1])
    remains.layout.settings.write_text(f'seeds = ["{SEEDS[0]}"]\n', "utf-8")
    block = f"software: archiver/1\r\nseed: {SEEDS[0]}\r\n".encode()
    head = b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: %d\r\n\r\n" % len(block)
    own = remains.layout.archive / "later.warc.gz"
    own.write_bytes(gzip.compress(head + block + b"\r\n\r\n") + crashed.whole)
    with pytest.raises(ArchiveError, match=r"does not know later\.warc\.gz, .* archiver rebuild "):
        _recover(remains.layout)
    remains.layout.settings.write_text('seeds = ["http://other.test/"]\n', "utf-8")  # then it is of another crawl
    assert _recover(remains.layout)[0] == Recovered(adopted=3)


def test_a_missing_file_is_named_and_nothing_else_changes(
    crashed: Cut, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[1])
    (remains.layout.archive / (crashed.name + OPEN)).unlink()
    assert _recover(remains.layout)[0] == Recovered(damaged=(crashed.name,))
    assert "is missing; its captures cannot be replayed" in caplog.text


def test_a_file_that_lost_bytes_is_named(crashed: Cut, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[0])
    assert _recover(remains.layout)[0] == Recovered(damaged=(crashed.name + OPEN,))
    assert f"shorter than it was: {crashed.ends[0]} bytes of {crashed.ends[1]}" in caplog.text


def test_drafts_are_swept_away(crashed: Cut, tmp_path: Path) -> None:
    remains = crashed.copy(tmp_path / "c", crashed.ends[-1])
    drafts = [remains.layout.indexes / "run-x.cdxj.tmp", remains.layout.directory / "crawl.toml.tmp"]
    for draft in drafts:
        draft.write_bytes(b"half")
    _recover(remains.layout)
    assert not any(draft.exists() for draft in drafts)


def test_a_visit_comes_back_as_it_was(tmp_path: Path) -> None:
    """What recovery reads is what was handed in, settlement included."""
    layout = Layout(tmp_path / "c")
    layout.make()
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n5\r\nhello\r\n"
    exchange = _exchange(0, raw)
    exchange = Exchange(
        exchange.request,
        exchange.response,
        exchange.framing,
        None,
        exchange.peer,
        exchange.started,
        exchange.duration,
        Truncation.DISCONNECT,
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        exchange.surplus,
        exchange.notes,
    )
    links = Links((Link(f"{ORIGIN}/a b".replace(" ", "%20"), Hop.REQUISITE),), "windows-1252", "a note")
    claim = Claim(1, SEEDS[0], 1, Hop.LINK, "LR", 1, 0, 2, via=f"{ORIGIN}/", seed=SEEDS[1])
    archive = _archive(layout)
    receipt = archive.append((PendingVisit(claim, exchange, links),))
    archive.abandon()
    with next(layout.archive.iterdir()).open("rb") as file:
        (found,) = survey(file, receipt.captures[0].warc, 0, layout.spool)
    assert isinstance(found, ScannedVisit)
    assert found.notes is not None
    assert found.capture == receipt.captures[0]
    assert found.notes.links == links
    assert (found.notes.path, found.notes.tries, found.notes.via, found.notes.seed) == ("LR", 2, claim.via, claim.seed)
    assert (found.exchange.request, b"".join(found.exchange.response.pieces())) == (exchange.request, raw)
    assert (found.exchange.interim, found.exchange.surplus) == (exchange.interim, exchange.surplus)
    assert conclude(RULES, claim, found.exchange, found.notes.links, NOW) == conclude(
        RULES, claim, exchange, links, NOW
    )


def test_large_responses_come_back_from_a_file(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "c")
    layout.make()
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + bytes(range(250)) * 12_000
    claim = Claim(1, SEEDS[0], 1, Hop.LINK, "", 0, 0, 0)
    archive = _archive(layout)
    receipt = archive.append((PendingVisit(claim, _exchange(0, raw), Links()),))
    archive.close()
    with (layout.archive / receipt.captures[0].warc).open("rb") as file:
        (found,) = survey(file, receipt.captures[0].warc, 0, layout.spool)
        assert isinstance(found, ScannedVisit)
        assert b"".join(found.exchange.response.pieces()) == raw
        found.exchange.response.close()
    assert found.capture == receipt.captures[0]


def test_rotation_names_a_file_only_when_its_receipt_is_known(tmp_path: Path) -> None:
    """A sealed file keeps its .open name until the next batch."""
    layout = Layout(tmp_path / "c")
    layout.make()
    archive = _archive(layout, size=1)
    claim = Claim(1, SEEDS[0], 1, Hop.LINK, "", 0, 0, 0)
    deposits = [PendingVisit(claim, _exchange(number, _page(number)), Links()) for number in range(3)]
    first = archive.append(deposits[:2])
    assert [file.closed for file in first.files] == [False, False]
    assert all(path.name.endswith(OPEN) for path in layout.archive.iterdir())
    second = archive.append(deposits[2:])
    names = [file.name for file in first.files]
    closed = [layout.archive / file.name for file in first.files]
    assert second.files[:2] == tuple(
        FileState(path.name, size, closed=True, digest=_sum(path), modified=path.stat().st_mtime_ns)
        for path, size in zip(closed, (file.size for file in first.files), strict=True)
    )
    assert {path.name for path in layout.archive.iterdir()} >= set(names)
    assert [file.closed for file in archive.close()] == [True]
    assert not [path for path in layout.archive.iterdir() if path.name.endswith(OPEN)]
    for file in first.files:
        assert (layout.archive / file.name).stat().st_size == file.size


def test_look_ups_that_are_whole_are_known_again(tmp_path: Path) -> None:
    """Of three visits, each with a look-up before it, cut behind every record: a whole look-up is never lost."""

    async def begun(layout: Layout) -> tuple[str, bytes]:
        layout.make()
        frontier = await SqliteFrontier.open(layout.database)
        await frontier.add_seeds(SEEDS)
        claims = await waiting(frontier, SEEDS)
        await frontier.close()
        archive = _archive(layout)
        for number, seed in enumerate(SEEDS[:3]):
            lookup = Lookup(f"{number}.test", ("127.0.0.1", "::1"), STARTED + number)
            exchange = replace(_exchange(number, _page(number)), lookup=lookup)
            receipt = archive.append((PendingVisit(claims[seed], exchange, Links()),))
            assert [each.uri for each in receipt.resources] == [f"dns:{number}.test"]
        archive.abandon()
        (path,) = layout.archive.iterdir()
        return path.name.removesuffix(OPEN), path.read_bytes()

    async def known(layout: Layout, name: str) -> list[tuple[str, int, int]]:
        frontier = await SqliteFrontier.open(layout.database)
        try:
            found = await frontier.resources(name, -1, 10)
            return [(each.uri, each.span.offset, each.span.offset + each.span.length) for each in found]
        finally:
            await frontier.close()

    name, data = asyncio.run(begun(Layout(tmp_path / "c")))
    records = _whole_records(data)
    lookups = [each for each in records if each.type == "resource"]
    for cut in records[1:]:
        end = cut.offset + (cut.length or 0)
        remains = Cut(Layout(tmp_path / "c"), name, data, ()).copy(tmp_path / f"c{cut.offset}", end)
        _recover(remains.layout)
        whole = [each for each in lookups if each.offset < end]
        expected = [(each.first("WARC-Target-URI"), each.offset, each.offset + (each.length or 0)) for each in whole]
        assert asyncio.run(known(remains.layout, name)) == expected
        kept = (remains.layout.archive / name).read_bytes()
        assert data.startswith(kept)
        assert len(kept) >= expected[-1][2]
        assert _recover(remains.layout)[0] == Recovered()
