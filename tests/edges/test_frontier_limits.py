"""What hosts have cost, and which of them may still be asked, in a real database."""

import asyncio
from pathlib import Path

import pytest

from archiver.config.host_rules import HOST_RULE
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.frontier.port import Selection
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Capture, Claim, Event, FileState, Settlement, Span
from archiver.policy.quotas import Quotas
from fixtures.archives import rows
from fixtures.queued_urls import two_hosts

LATER = 1000.0
BY_URLS = "--max-urls-per-host 3 is reached by 1 host, for which 3 URLs wait"

OTHER = "--max-bytes-per-host 90 is reached by 1 host, for which 4 URLs wait"


async def visit(frontier: SqliteFrontier, host: int, events: dict[int, Event], size: int = 100) -> None:
    """Settle waiting URLs of *host* by their place in its window; an answer has *size* bytes."""
    claims = (await frontier.window(host, LATER, 99, prerequisites=False)).claims
    settlements = [_settled(claims[place], event, size) for place, event in events.items()]
    await frontier.settle(settlements, (FileState("w", 1 << 20, closed=False),))


def _settled(claim: Claim, event: Event, size: int) -> Settlement:
    if event not in {Event.CAPTURE, Event.RETRY}:
        return Settlement(claim, event, failure="connect")
    place = Span(1000 * claim.id + claim.tries, 1)
    capture = Capture(claim.url, 1, 200, "text/html", "d", 7, size, "w", place, place, place)
    return Settlement(claim, event, 200, capture=capture)


def quotas(urls: int = 0, size: int = 0, *rules: str) -> Quotas:
    values = {"max_urls_per_host": urls, "max_bytes_per_host": size, "host": tuple(map(HOST_RULE.parse, rules))}
    return Quotas(SettingsByHost(with_values(Settings(), values)))


async def due(frontier: SqliteFrontier, allowance: Quotas) -> list[int]:
    return [row.id for row in await frontier.due_hosts(LATER, 9, (), allowance)]


@pytest.mark.parametrize(
    ("allowance", "words"),
    [
        (quotas(urls=4), ""),
        (quotas(urls=3), BY_URLS),
        (quotas(size=301), ""),
        (quotas(size=300), "--max-bytes-per-host 300 is reached by 1 host, for which 3 URLs wait"),
        (
            quotas(urls=3, size=90),
            f"{BY_URLS} and --max-bytes-per-host 90 is reached by 1 host, for which 4 URLs wait",
        ),
        (quotas(0, 0, "h0.example max-urls-per-host=3"), BY_URLS),
        (
            quotas(
                1,
                1,
                "h0.example max-urls-per-host=3 max-bytes-per-host=0",
                "* max-bytes-per-host=0 max-urls-per-host=9",
            ),
            BY_URLS,
        ),
        (quotas(3, 0, "*.example max-urls-per-host=0"), ""),
        (quotas(3, 90, "h0.example max-urls-per-host=0 max-bytes-per-host=0"), OTHER),
    ],
)
def test_a_host_that_has_reached_a_limit_is_not_due(crawl_folder: Path, allowance: Quotas, words: str) -> None:
    """Its visited URLs count, failed and waiting for another try; what was forbidden does not."""

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await visit(frontier, 1, {0: Event.CAPTURE, 1: Event.RETRY}, 150)
            await visit(frontier, 1, {1: Event.GIVE_UP, 2: Event.FORBID})
            await visit(frontier, 2, {0: Event.CAPTURE})
            await visit(frontier, 1, {0: Event.GIVE_UP})
            await frontier.add_seeds([f"http://h0.example/more{number}" for number in range(2)])
        async with two_hosts(crawl_folder) as frontier:
            held = [number for number in (1, 2) if f"{'34'[number - 1]} URLs" in words]
            assert await due(frontier, allowance) == [number for number in (1, 2) if number not in held]
            assert (await frontier.held_back(allowance)).limits == words
            await frontier.ask_robots_of((1,))
            assert 1 in await due(frontier, allowance)

    asyncio.run(run())
    assert rows(crawl_folder, "SELECT visited, received FROM hosts ORDER BY id") == [(3, 300), (1, 100)]


def test_what_is_made_due_again_costs_again(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await visit(frontier, 1, {0: Event.GIVE_UP, 1: Event.GIVE_UP})
            assert await due(frontier, quotas(urls=2)) == [2]
            assert await frontier.queue_again(Selection(failures=("connect",))) == 2
            assert await due(frontier, quotas(urls=2)) == [1, 2]

    asyncio.run(run())
    assert rows(crawl_folder, "SELECT visited FROM hosts") == [(0,), (0,)]
