"""Whole sites, crawled without a network: real ones are fetched whole, and traps end by themselves."""

from functools import cache, partial

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.policy.novelty import READ
from fixtures import endless_sites, trap_lookalikes
from fixtures.simulated_crawl import Simulation

MOST = 1500  # requests that a trap may cost
PARTS = cache(partial(trap_lookalikes.family, "parts", trap_lookalikes.parts(150)))


@pytest.mark.parametrize("name", trap_lookalikes.FAMILIES)
def test_a_site_of_real_pages_is_fetched_whole(name: str) -> None:
    family = trap_lookalikes.named_family(name)
    asked = {trap_lookalikes.plain(target) for target in Simulation(family.site).run().asked}
    assert family.real <= asked


@pytest.mark.parametrize("name", endless_sites.TRAPS)
def test_a_trap_ends_by_itself(name: str) -> None:
    simulation = Simulation(endless_sites.alone(name)).run(2 * MOST)
    assert len(simulation.asked) < MOST
    assert simulation.held


@pytest.mark.parametrize("name", endless_sites.TRAPS)
def test_a_trap_beside_a_real_site_costs_none_of_its_pages(name: str) -> None:
    family = PARTS()
    simulation = Simulation(endless_sites.beside(family.site, name), TrapSettings(trap_budget=200)).run(MOST)
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) - len(family.real) < 500  # a budget of 200, and what is seen before it counts


@pytest.mark.parametrize("name", ["reply, share and print links", "facets in every order", "session ids in the path"])
def test_a_trap_of_large_pages_ends_by_itself(name: str) -> None:
    """Of large pages only samples are read, and of most of them only the opening is remembered."""
    trap = endless_sites.alone(name)
    menu, foot = (
        b"".join(b"<li>%b %d of all pages</li>" % (word, n) for n in range(300)) for word in (b"Menu", b"Foot")
    )

    def site(target: str) -> bytes | None:
        body = trap(target)
        return None if body is None else menu + body + foot

    assert len(site("/") or b"") > 2 * READ
    simulation = Simulation(site, TrapSettings(trap_budget=200)).run(MOST)
    assert len(simulation.asked) < 300
    assert simulation.held


def test_several_traps_on_one_site_share_one_budget() -> None:
    family = trap_lookalikes.family("weather", trap_lookalikes.weather())
    names = [name for name in endless_sites.TRAPS if "made-up" not in name]
    simulation = Simulation(endless_sites.beside(family.site, *names)).run(5 * MOST)
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) - len(family.real) < 1.5 * MOST  # what each of them shows first is new


def test_how_many_answers_are_under_way_costs_no_page() -> None:
    family = trap_lookalikes.family("weather", trap_lookalikes.weather(20, 12))
    simulation = Simulation(endless_sites.beside(family.site, "calendar with a page for each day"), width=40).run(
        3 * MOST
    )
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) - len(family.real) < MOST


def test_a_budget_that_is_spent_holds_what_is_left() -> None:
    settings = TrapSettings(trap_budget=300)
    simulation = Simulation(endless_sites.alone("calendar with a page for each day"), settings).run(MOST)
    assert 300 <= len(simulation.asked) < 450
    assert sum(simulation.held.values()) > 50
