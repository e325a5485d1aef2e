"""The queue of another program as rows: each URL once, below what led to it, whatever the order in which it comes."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.frontier import adopted
from archiver.frontier.adopted import LONGEST_PATH, AdoptedState, AdoptedUrl, hop_path, shortened
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Hop
from archiver.policy.scope import PATH_KEPT, extend, hops
from fixtures.archives import database_rows

SEED = "http://example.org/"
WAITING = AdoptedState.WAITING
ROWS = """
SELECT urls.url, above.url, seed.url FROM urls LEFT JOIN urls AS above ON above.id = urls.via
LEFT JOIN urls AS seed ON seed.id = urls.seed
"""
COUNTS = "SELECT sum(waiting), (SELECT count(*) FROM urls) FROM hosts"


def placed(database: Path, *batches: list[AdoptedUrl]) -> dict[str, tuple[str | None, str | None]]:
    """Return what led to each URL, and its seed, after *batches* were placed one by one."""

    async def run() -> None:
        async with await SqliteFrontier.open(database) as frontier:
            await frontier.add_seeds([SEED])
            for batch in batches:
                async with frontier.exclusive_transaction() as writer:
                    await writer.run(adopted.place, batch)

    asyncio.run(run())
    [(waiting, urls)] = database_rows(database, COUNTS)
    assert waiting == urls
    found = database_rows(database, ROWS)
    assert len(found) == len({row[0] for row in found})
    texts = [[None if value is None else str(value) for value in row] for row in found]
    return {str(address): (above, seed) for address, above, seed in texts}


def url(number: int) -> str:
    return SEED if number == 0 else f"{SEED}{number}"


def test_what_led_to_a_url_may_come_behind_it_in_one_batch(crawl_folder: Path) -> None:
    chain = [AdoptedUrl(url(number), WAITING, via=url(number - 1)) for number in range(1, 30)]
    ring = [AdoptedUrl(url(100), WAITING, via=url(101)), AdoptedUrl(url(101), WAITING, via=url(100))]
    others = [AdoptedUrl(url(200), WAITING, via="http://nowhere.example/"), AdoptedUrl(url(1), WAITING, via=url(200))]
    found = placed(crawl_folder / "crawl.db", [*ring, *others, *chain[:5][::-1]], chain)
    assert found[url(200)] == (None, None)
    assert found[url(1)][0] == url(200)  # the first of its entries counts
    assert all(found[url(number)][0] == url(number - 1) for number in range(2, 30))
    assert {url(100), url(101)} <= set(found)


def test_urls_without_a_seed_have_that_of_what_led_to_them(crawl_folder: Path) -> None:
    given_seed = AdoptedUrl(url(2), WAITING, via=url(1), seed=SEED)
    batch = [AdoptedUrl(url(1), WAITING, via=SEED), given_seed, AdoptedUrl(url(3), WAITING, via=url(2))]
    found = placed(crawl_folder / "crawl.db", batch)
    assert {seed for _, seed in found.values()} == {SEED}


@given(st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12), max_size=3))
def test_each_url_is_there_once_and_below_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[int, int]]]
) -> None:
    named: dict[str, str] = {SEED: ""}
    for number, via in (pair for batch in batches for pair in batch):
        named.setdefault(url(number), url(via))
    folder = tmp_path_factory.mktemp("adopted")
    urls = [[AdoptedUrl(url(one), WAITING, via=url(via) * (one != via)) for one, via in batch] for batch in batches]
    found = placed(folder / "crawl.db", *urls)
    assert set(found) == set(named)
    for address, (above, _) in found.items():
        assert above in (None, named[address])


@given(st.integers(-5, 2 * LONGEST_PATH), st.integers(-5, 400))
def test_a_path_has_the_hops_that_were_counted(links: int, requisites: int) -> None:
    path = hop_path(links, requisites)
    bounded = [min(max(number, 0), LONGEST_PATH) for number in (links, requisites)]
    assert hops(path) == sum(bounded)
    assert len(path) <= PATH_KEPT + 6


@given(st.text("LEXRM", max_size=600))
def test_a_path_is_shortened_as_that_of_a_crawl_is(letters: str) -> None:
    ours = ""
    for letter in letters:
        ours = extend(ours, Hop(letter))
    assert shortened(letters) == ours
