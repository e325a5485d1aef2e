"""What is large goes to the disk in steps, in threads that stand back."""

import asyncio
import gzip
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from archiver import storage
from archiver.crawl.batch_writer import NICE, lower_priority
from archiver.fetch import spool
from archiver.fetch.spool import Spool, SpoolFolder
from archiver.model import Framing
from archiver.warc.writer import WarcFile

MIB = 1 << 20
NOISE = os.urandom(MIB)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large a file was at each sync."""
    sizes: list[int] = []
    name = "fdatasync" if hasattr(os, "fdatasync") else "fsync"
    sync = getattr(os, name)

    def noted(handle: int) -> None:
        sync(handle)
        sizes.append(os.fstat(handle).st_size)

    monkeypatch.setattr(os, name, noted)
    return sizes


def noise(count: int) -> Iterator[bytes]:
    """So many MiB that do not compress."""
    return iter([NOISE] * count)


def test_a_large_record_is_synced_while_it_is_written(tmp_path: Path, synced: list[int]) -> None:
    file = WarcFile(tmp_path, "a.warc.gz")
    synced.clear()  # of the folder
    span = file.append(b"header", noise(18), 18 * MIB)
    assert len(synced) == 18 * MIB // (storage.STEP + MIB)
    assert all(storage.STEP <= later - earlier < storage.STEP + 2 * MIB for earlier, later in pairwise([0, *synced]))
    file.sync()
    assert synced[-1] == span.length == file.size
    file.abandon()
    assert gzip.decompress((tmp_path / "a.warc.gz.open").read_bytes()) == b"header" + NOISE * 18 + b"\r\n\r\n"


def test_a_large_response_does_not_pile_up_in_the_spool(tmp_path: Path, synced: list[int]) -> None:
    framing = Framing(status=200, head_length=0, chunked=False, media_type="", fields=())
    with ThreadPoolExecutor(1) as writer:

        async def spooled() -> Spool:
            made = Spool(SpoolFolder(tmp_path), "sha256", writer)
            for piece in noise(40):
                if made.add(piece):
                    await made.flush(framing)
            return made

        block = asyncio.run(spooled()).block()
    assert synced == [spool.STEP, 2 * spool.STEP]
    assert b"".join(block.pieces()) == NOISE * 40
    block.close()
    assert synced[2:] == [40 * MIB - spool.STEP, 40 * MIB - 2 * spool.STEP], "nor is it freed at once"


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_only_the_thread_that_asks_stands_back() -> None:
    with ThreadPoolExecutor(1, "spool", lower_priority) as patient, ThreadPoolExecutor(1) as other:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        now = [pool.submit(os.getpriority, os.PRIO_PROCESS, 0).result() for pool in (patient, other)]
    assert now == [min(before + NICE, 19), before]
