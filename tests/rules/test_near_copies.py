"""Pages that are near copies are fetched if lists that end name them; of endless lists they are held."""

import re

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.policy.patterns import variety
from archiver.policy.traps import Traps
from fixtures import near_copies, trap_lookalikes
from fixtures.simulated_crawl import HOME, Simulation

MOST = 1500  # requests that a trap may cost


@pytest.mark.parametrize("name", near_copies.SITES)
def test_near_copies_are_all_fetched(name: str) -> None:
    family = trap_lookalikes.family(name, near_copies.SITES[name]())
    simulation = Simulation(family.site).run()
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) == len(family.real)
    assert not simulation.held


@pytest.mark.parametrize("name", near_copies.TRAPS)
def test_pages_of_endless_lists_are_held(name: str) -> None:
    simulation = Simulation(near_copies.TRAPS[name]()).run(3 * MOST)
    assert len(simulation.asked) < MOST
    assert simulation.held


@pytest.mark.parametrize("view", near_copies.VIEWS)
def test_views_that_repeat_listed_pages_cost_the_budget(view: str) -> None:
    """There are 2,990 of them; each topic names ten that differ in their query."""
    simulation = Simulation(near_copies.forum(view)).run()
    assert {f"/topic/{number}" for number in range(1, 300)} <= set(simulation.asked)
    assert sum(target.startswith("/view?") for target in simulation.asked) < MOST
    assert simulation.held[f"{HOME}/view?of"] >= MOST


def test_other_views_by_a_query_of_listed_pages_cost_the_budget() -> None:
    """Each list names its entries, and each of them in a second view."""
    shown = near_copies.stamps(way="/stamp/{}")

    def site(target: str) -> bytes | None:
        body = shown(target.partition("?rows=")[0])
        return body and re.sub(rb'<a href="(/stamp/[0-9]+)">', rb'<a href="\1?rows=9">as a table</a> \g<0>', body)

    simulation = Simulation(site).run()
    assert {f"/stamp/{number}" for number in range(3000)} <= set(simulation.asked)
    assert sum("?rows=" in target for target in simulation.asked) < MOST
    assert simulation.held[f"{HOME}/stamp/N?rows"] >= MOST


def test_a_later_run_goes_on_with_near_copies() -> None:
    """What is queued is fetched although the budget was spent before, and what ends is no longer known."""
    family = trap_lookalikes.family("stamps", near_copies.stamps())
    first = Simulation(family.site).run(2500)
    known = dict(first.tallies)
    later = Traps(TrapSettings(), known.values())
    left = [target for target in family.real if target.startswith("/stamp/") and target not in first.asked]
    assert len(left) > 400
    home = "http://site.test"
    assert not any(later.waits(home + target, f"{home}/stamps?page=1").rule for target in left)


@pytest.mark.parametrize("stops", [(600,), (1200,), (500, 1000, 1500, 2000)])
@pytest.mark.parametrize("name", [name for name in near_copies.SITES if "query" in name])
def test_near_copies_are_fetched_whole_although_the_crawl_stops(name: str, stops: tuple[int, ...]) -> None:
    family = trap_lookalikes.family(name, near_copies.SITES[name]())
    simulation = Simulation(family.site)
    for stop in stops:
        simulation.run(stop)
    simulation.run()
    assert family.real <= set(simulation.asked)


def test_memory_of_variety_is_bounded() -> None:
    watch = variety.Variety()
    for number in range(3 * variety.MOST_PATTERNS):
        for each in range(2 * variety.ENOUGH):
            shape = f"{HOME}/{number}?id"
            watch.brought(shape, each)
            watch.saw_barren(f"{shape}=1{each:03}", shape, b"<title>1%03d" % each, [b"title>1%03d" % each], [])
    assert len(watch._pages) == variety.MOST_PATTERNS
    assert max(len(pages.shown) for pages in watch._pages.values()) == variety.ENOUGH
    assert watch.differs(f"{HOME}/{3 * variety.MOST_PATTERNS - 1}?id")
    assert not watch.differs(f"{HOME}/0?id")
