"""Links that need not be looked up again: with the memory of them the database holds the same as without, always."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.frontier.links import RecentLinks
from archiver.frontier.port import Selection
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Claim, Event, Hop, NewUrl, Settlement
from fixtures.archives import rows
from fixtures.queued_urls import SEEDS, two_hosts

EVENTS = (Event.CAPTURE, Event.FORBID, Event.RETRY, Event.GIVE_UP, Event.HOLD, Event.DELAY)
NAMES = [*SEEDS[:2], *(f"http://h0.example/{name}" for name in "abcd"), "http://h0.example/robots.txt"]
WAYS = [("L", Hop.LINK), ("LX", Hop.SPECULATIVE), ("LXR", Hop.REDIRECT), ("LLE", Hop.REQUISITE)]

LINKS = st.lists(
    st.builds(
        lambda name, way, depth, priority, held: NewUrl(name, way[1], way[0], depth, 0, priority, held),
        st.sampled_from(NAMES),
        st.sampled_from(WAYS),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from(["", "trap-budget: 5: http://h0.example/N"]),
    ),
    max_size=4,
)
SETTLED = st.tuples(st.just("settle"), st.integers(0, 9), st.sampled_from(EVENTS), LINKS)
ACTS = ("again", "seeds", "elsewhere", "robots", "excluded", "taken back", "first")
OTHERS = st.tuples(st.sampled_from(ACTS), st.integers(0, 9), st.none(), st.none())


class NoOffers(RecentLinks):
    """Remembers nothing."""

    def remember(self, links: Any) -> None:
        pass


async def ordered(other: SqliteFrontier, act: str, name: str) -> None:
    """Let another process do *act*."""
    if act == "excluded":
        await other.exclude(name, name.__eq__)
    elif act == "taken back":
        await other.take_back(name)
    elif act == "first":
        await other.put_first(name.__eq__)
    else:
        await other.add_seeds([name], 1.0)


async def lived(folder: Path, life: Sequence[Any], offers: RecentLinks) -> list[tuple[Any, ...]]:
    """All rows of URLs after *life*."""
    async with two_hosts(folder) as frontier:
        frontier._recent = offers
        for number, (act, chosen, event, links) in enumerate(life):
            if act == "settle":
                row = chosen % rows(folder, "SELECT max(id) FROM urls")[0][0] + 1
                (found,) = rows(folder, f"SELECT url, host FROM urls WHERE id = {row}")
                claim = Claim(row, str(found[0]), int(str(found[1])), Hop.LINK, "LX" if chosen % 2 else "L", 1, 0, 0)
                settlement = Settlement(claim, event, found=tuple(links), settled=float(number), priority=number)
                await frontier.settle([settlement], [])
            elif act == "again":
                await frontier.queue_again(Selection(statuses=((0, 999),)))
            elif act == "seeds":
                await frontier.add_seeds([NAMES[chosen % len(NAMES)]], 1.0)
            elif act == "robots":
                await frontier.ask_robots_of((1,))
            else:
                async with await SqliteFrontier.open(folder / "crawl.db") as other:
                    await ordered(other, act, NAMES[chosen % len(NAMES)])
    return rows(folder, "SELECT * FROM urls ORDER BY id") + rows(folder, "SELECT * FROM hosts ORDER BY id")


def test_a_life_with_the_memory_is_one_without(new_crawl: Callable[[], Path], request: pytest.FixtureRequest) -> None:
    examples = 4 if request.node.get_closest_marker("postgres") else 10

    @settings(max_examples=examples, deadline=None)
    @given(st.lists(st.one_of(SETTLED, SETTLED, SETTLED, OTHERS), max_size=14))
    def test(life: list[Any]) -> None:
        offers = (RecentLinks(), RecentLinks(2), NoOffers())
        told = [asyncio.run(lived(new_crawl(), life, each)) for each in offers]
        assert told[0] == told[2]
        assert told[1] == told[2]

    test()


def links_of(count: int, padding: str = "") -> list[NewUrl]:
    return [NewUrl(f"http://h0.example/{number}{padding}", Hop.LINK, "L", 1, 0, 2) for number in range(count)]


def news(offers: RecentLinks, links: Sequence[NewUrl]) -> list[NewUrl]:
    return [new for new, _ in offers.select_new(links, 1)]


def test_what_was_committed_is_no_news_and_what_is_better_is() -> None:
    offers, links = RecentLinks(), links_of(3)
    assert news(offers, links) == links
    offers.remember(links)
    assert news(offers, links) == []
    new = links[0]
    worse = [new._replace(depth=2), new._replace(path="LX"), new._replace(priority=3)]
    better = [new._replace(depth=0), new._replace(priority=1)]
    assert news(offers, [*worse, *better]) == better
    offers.forget()
    assert news(offers, links) == links


@pytest.mark.parametrize(("padding", "most"), [("", 8), ("a" * 1000, 4)])
def test_it_holds_a_bounded_number_of_links_and_of_bytes(padding: str, most: int) -> None:
    offers, links = RecentLinks(4, 2100), links_of(100, padding)
    for link in links:
        offers.remember([link])
    forgotten = news(offers, links)
    assert len(links) - most <= len(forgotten) < len(links)
    assert links[-1] not in forgotten


def test_what_is_held_may_be_released_by_the_same_link() -> None:
    offers, new = RecentLinks(), NewUrl("http://example.org/a", Hop.LINK, "L", 1, 0, 2)
    offers.remember([new])
    assert offers.select_new([new], 1) == []
    offers.drop(new.url)
    assert offers.select_new([new], 1) == [(new, 1)]
