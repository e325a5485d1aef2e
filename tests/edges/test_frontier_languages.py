"""The language of a URL's next visit, in a real database: its tries, its end, and a visit that comes too late."""

import asyncio
from pathlib import Path

from archiver.frontier.connections import execute
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Claim, Event, Settlement
from fixtures.archives import rows
from fixtures.queued_urls import SEEDS, two_hosts, waiting

URL = SEEDS[0]
ROW = f"SELECT state, status, failure, note, language, tries, tries_before FROM urls WHERE url = '{URL}'"


async def claimed(frontier: SqliteFrontier) -> Claim:
    return (await waiting(frontier, (URL,)))[URL]


async def settled(frontier: SqliteFrontier, event: Event, language: str = "", *, status: int = 200) -> None:
    """Settle the next visit of the URL."""
    claim = await claimed(frontier)
    await frontier.settle((Settlement(claim, event, status, note="a note", settled=1.0, language=language),), ())


def test_each_language_has_its_own_tries(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            first = await claimed(frontier)
            assert (first.language, first.tries, first.counts) == ("", 0, True)
            await settled(frontier, Event.RETRY, status=503)
            assert (await claimed(frontier)).tries == 1
            await settled(frontier, Event.VARIANT, "fr")
            assert rows(crawl_folder, ROW) == [("waiting", 200, "", "a note", "fr", 2, 2)]
            for tries in range(3):
                claim = await claimed(frontier)
                assert (claim.language, claim.tries, claim.counts) == ("fr", tries, False)
                await frontier.settle((Settlement(claim, Event.RETRY, 503, settled=2.0, language="fr"),), ())
            await settled(frontier, Event.VARIANT, "de", status=404)
            assert rows(crawl_folder, ROW) == [("waiting", 200, "", "a note; a note", "de", 6, 6)]
            await settled(frontier, Event.CAPTURE)
            assert (await frontier.counts()).visited == 1

    asyncio.run(run())
    assert rows(crawl_folder, ROW) == [("archived", 200, "", "a note; a note; a note", "", 7, 0)]
    assert rows(crawl_folder, "SELECT visited, archived, waiting FROM hosts WHERE id = 1") == [(1, 1, 4)]


def test_a_host_that_is_given_up_leaves_what_is_archived(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await settled(frontier, Event.VARIANT, "fr")
            assert await frontier.give_up(1, "connect", "gone", 1000.0) == 5

    asyncio.run(run())
    assert rows(crawl_folder, ROW) == [("archived", 200, "", "gone", "", 1, 0)]
    assert rows(crawl_folder, "SELECT archived, failed FROM hosts WHERE id = 1") == [(1, 4)]


def test_a_visit_in_another_language_than_the_next_changes_nothing(crawl_folder: Path) -> None:
    """A cookie wall queued the URL again while its variant was under way."""

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await settled(frontier, Event.VARIANT, "fr")
            late = await claimed(frontier)
            await frontier._on_writer(execute, "UPDATE urls SET language = '', tries_before = 0")
            await frontier.settle((Settlement(late, Event.CAPTURE, 500, settled=2.0),), ())
            assert (await claimed(frontier)).language == ""

    asyncio.run(run())
    assert rows(crawl_folder, ROW) == [("waiting", 200, "", "a note", "", 1, 0)]
