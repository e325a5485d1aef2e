"""URLs that views queue: the planner hears of each, or knows that there may be some."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from archiver.crawl.views.requests import AddedUrls


async def added(gate: asyncio.Event) -> Counter[int]:
    await gate.wait()
    return Counter({7: 2, 8: 1})


def test_what_may_be_committed_is_unheard_until_it_is_taken() -> None:
    async def run() -> None:
        urls, gate = AddedUrls(), asyncio.Event()
        task = asyncio.create_task(urls.queue(added(gate)))
        await asyncio.sleep(0)
        assert urls.unheard
        assert urls.take() == (0, set())
        gate.set()
        assert await task == 3
        assert urls.unheard
        assert urls.take() == (3, {7, 8})
        assert not urls.unheard

    asyncio.run(run())


def test_urls_count_although_their_view_was_cancelled() -> None:
    """Their rows are in the frontier all the same."""

    async def run() -> None:
        urls, gate = AddedUrls(), asyncio.Event()
        task = asyncio.create_task(urls.queue(added(gate)))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert urls.unheard
        gate.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert urls.take() == (3, {7, 8})

    asyncio.run(run())


def test_an_addition_that_fails_is_no_longer_under_way() -> None:
    async def failing() -> Counter[int]:
        raise OSError

    async def run() -> None:
        urls = AddedUrls()
        with pytest.raises(OSError):
            await urls.queue(failing())
        assert not urls.unheard

    asyncio.run(run())
