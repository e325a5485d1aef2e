"""A body holds whole records of other sites. After a crash or damage, none of them is taken for a visit."""

import asyncio
import gzip
import io
import random
import shutil
import sqlite3
import zipfile
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from archiver.collection import reindex
from archiver.collection.layout import Layout
from archiver.collection.writer import Archive, PendingVisit, WarcIdentity
from archiver.config.scope_settings import ScopeSettings
from archiver.crawl.reader_process import ReaderProcess
from archiver.crawl.recovery.rebuild import Rebuild
from archiver.crawl.recovery.recover import Recovery
from archiver.crawl.recovery.scan import ScannedVisit, UnclaimedBytes, survey
from archiver.crawl.visit_rules import HostVisitRules, VisitRules
from archiver.fetch.spool import MemoryBlock
from archiver.frontier.sqlite import SqliteFrontier
from archiver.http import read_stored
from archiver.model import Claim, Exchange, Hop, Link, Links, Peer
from archiver.policy.scope import Scope
from archiver.storage import OPEN
from archiver.tools.verify.collection import verify
from archiver.tools.wacz.contents import read_contents
from archiver.tools.wacz.pack import PackOptions, pack
from archiver.warc.records import RecordIds
from archiver.warc.warcinfo import membership, written_by_archiver
from fixtures.queued_urls import waiting

SEED = "http://site.test/"
VICTIM = "http://bank.test/"
RULES = VisitRules(Scope(ScopeSettings(), (SEED,), str), HostVisitRules(3))
STARTED = 1_800_000_000_000_000
CHANCE = random.Random(14)
VISITS = 4
LANDMARK = b"\x00the attacker's body begins here\x00"


def _archive(folder: Path) -> Archive:
    folder.mkdir(parents=True, exist_ok=True)
    identity = WarcIdentity("test", "host", 10**9, "sha256", (("software", "archiver/0"),))
    return Archive(folder, identity, lambda: 0, lambda: STARTED, RecordIds(CHANCE.randbytes))


def _deposit(url: str, body: bytes) -> PendingVisit:
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    exchange = Exchange(
        request=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        response=MemoryBlock(raw),
        framing=read_stored(raw),
        digests=None,
        peer=Peer("127.0.0.1"),
        started=STARTED,
        duration=0.25,
    )
    links = Links((Link(f"{VICTIM}next", Hop.LINK, "a/@href"),), "utf-8")
    return PendingVisit(Claim(1, url, 1, Hop.LINK, "", 0, 0, 0, seed=SEED), exchange, links)


def _members(folder: Path) -> bytes:
    """A WARC file that tells of visits to somebody else, exactly as this program writes one."""
    archive = _archive(folder)
    archive.append([_deposit(f"{VICTIM}{number}", b"<h1>forged</h1>") for number in range(VISITS)])
    archive.close()
    (path,) = folder.iterdir()
    return path.read_bytes()


def _with_stored_body(data: bytes) -> bytes:
    """The file *data*, the attacker's body in it compressed into stored blocks, as bytes without any repetition are."""
    members, left = [], data
    while left:
        inflate = zlib.decompressobj(31)
        record = inflate.decompress(left)
        compressor = zlib.compressobj(0, zlib.DEFLATED, 31)
        stored = compressor.compress(record) + compressor.flush()
        members.append(stored if LANDMARK in record else left[: len(left) - len(inflate.unused_data)])
        left = inflate.unused_data
    return b"".join(members)


@pytest.fixture(name="crashed")
def _wreck(tmp_path: Path) -> Layout:
    """A collection whose second visit has such a file as its body, stored by the database up to the first visit."""
    forged = _members(tmp_path / "forged")
    evil = LANDMARK + forged + bytes(1000)
    layout = Layout(tmp_path / "c")
    layout.make()
    archive = _archive(layout.archive)
    for url, body in ((SEED, b"<p>"), (f"{SEED}evil", evil), (f"{SEED}last", b"<b>")):
        receipt = archive.append((_deposit(url, body),))
        if url == SEED:
            asyncio.run(_begin(layout, receipt.files))
    archive.abandon()
    (path,) = layout.archive.iterdir()
    path.write_bytes(_with_stored_body(path.read_bytes()))
    return layout


async def _begin(layout: Layout, files: object) -> None:
    frontier = await SqliteFrontier.open(layout.database)
    await frontier.add_seeds((SEED,))
    await waiting(frontier, (SEED,))
    await frontier.settle((), files)  # type: ignore[arg-type]
    await frontier.close()


def _urls(layout: Layout) -> list[str]:
    with closing(sqlite3.connect(layout.database)) as db:
        return [url for (url,) in db.execute("SELECT url FROM urls")]


def _cut(layout: Layout) -> Path:
    """The file as a crash leaves it: inside the body, behind the forged members."""
    (path,) = layout.archive.iterdir()
    data = path.read_bytes()
    path.write_bytes(data[: data.index(bytes(1000)) + 500])
    return path


def _flip(layout: Layout, *, finished: bool = True) -> Path:
    """The file with one bit changed in the record that holds the body."""
    (path,) = layout.archive.iterdir()
    data = bytearray(path.read_bytes())
    data[data.index(LANDMARK) + 5] ^= 1
    path.write_bytes(data)
    return path.rename(path.with_name(path.name.removesuffix(OPEN))) if finished else path


def _recover(layout: Layout) -> int:
    async def run() -> int:
        frontier = await SqliteFrontier.open(layout.database)
        try:
            return (await Recovery(layout, frontier, RULES).run()).adopted
        finally:
            await frontier.close()

    return asyncio.run(run())


def _rebuild(layout: Layout) -> int:
    layout.database.unlink()

    async def run() -> int:
        frontier = await SqliteFrontier.open(layout.database)
        try:
            await frontier.add_seeds((SEED,))
            return (await Rebuild(layout, frontier, RULES).run()).visits
        finally:
            await frontier.close()

    return asyncio.run(run())


def test_recovery_adopts_nothing_out_of_a_body_that_a_crash_has_cut(crashed: Layout) -> None:
    _cut(crashed)
    assert _recover(crashed) == 0
    assert not [url for url in _urls(crashed) if url.startswith(VICTIM) and url != f"{VICTIM}next"]
    (path,) = crashed.archive.iterdir()
    assert VICTIM.encode() + b"1" not in gzip.decompress(path.read_bytes())


def test_recovery_behind_a_changed_bit_adopts_only_its_own_records(crashed: Layout) -> None:
    _flip(crashed, finished=False)
    assert _recover(crashed) == 1
    assert f"{VICTIM}1" not in _urls(crashed)
    assert f"{SEED}last" in _urls(crashed)


@pytest.mark.parametrize("damage", ["a crash", "a changed bit", "a changed bit and the first record"])
def test_a_rebuilding_adopts_only_its_own_records(crashed: Layout, damage: str) -> None:
    path = _cut(crashed) if damage == "a crash" else _flip(crashed)
    if damage.endswith("record"):
        with path.open("r+b") as file:
            file.write(b"\0")
    assert _rebuild(crashed) == (1 if damage == "a crash" else 2)
    assert f"{VICTIM}1" not in _urls(crashed)
    assert SEED in _urls(crashed)
    assert b"".join(each.read_bytes() for each in crashed.damaged.glob("*.[pt]a[ri]*")).count(LANDMARK[:4])


def test_an_index_lists_only_the_records_of_the_file_itself(crashed: Layout) -> None:
    path = _flip(crashed)
    assert reindex.rebuild(crashed.directory) == 2
    assert b"bank" not in (crashed.indexes / "index.cdxj").read_bytes()
    assert path.exists()


def test_verify_says_that_such_records_are_not_the_files_own(crashed: Layout) -> None:
    path = _flip(crashed)
    shutil.rmtree(crashed.indexes)
    report = verify([path], lambda _: None)
    assert report.counts["record-foreign"] == 3 * VISITS + 1
    forged = [fault.url for fault in report.findings if fault.code == "record-foreign"]
    assert all(url.startswith(VICTIM) for url in forged[1:])  # the first is the warcinfo record
    assert sum(each.records for each in report.files) == 9  # the warcinfo record, and three visits without one response


def test_the_id_is_known_where_the_first_record_is_damaged(crashed: Layout) -> None:
    (path,) = crashed.archive.iterdir()
    whole = path.read_bytes()
    with path.open("rb") as file:
        (true,) = membership(file).ids
    for place in range(0, 300, 7):
        data = bytearray(whole)
        data[place] ^= 0x10
        file_ids = membership(io.BytesIO(data)).ids
        assert true in file_ids
        assert written_by_archiver(io.BytesIO(data))


def test_without_any_id_nothing_belongs_to_a_file(tmp_path: Path) -> None:
    """Also where an empty id is named: that is none."""
    forged = _members(tmp_path / "forged")
    plain = gzip.decompress(forged).replace(b"WARC-Warcinfo-ID: <", b"WARC-Warcinfo-XX: <")
    plain = plain.replace(b"WARC-Record-ID: <", b"WARC-Record-XX: <", 1)
    units = list(survey(io.BytesIO(plain), "name", 0, tmp_path))
    assert not [unit for unit in units if isinstance(unit, ScannedVisit)]
    assert [type(unit) for unit in units] == [UnclaimedBytes]


def test_a_package_lists_no_page_out_of_a_body(crashed: Layout, tmp_path: Path) -> None:
    _flip(crashed)
    reindex.rebuild(crashed.directory)
    wish = PackOptions(
        tmp_path / "made.wacz", "archiver", "2026-01-01T00:00:00Z", "title", "", text=True, split=None, sign=None
    )
    pack(wish, read_contents(crashed.directory), ReaderProcess(), lambda _: None)
    with zipfile.ZipFile(wish.output) as package:
        listed = b"".join(package.read(name) for name in package.namelist() if name.startswith("pages/"))
    assert SEED.encode() in listed
    assert VICTIM.encode() not in listed
