"""Real pages with hardly any words are fetched whole; traps with as few end as others do."""

import pytest

from fixtures import scarce_sites, trap_lookalikes
from fixtures.simulated_crawl import Simulation

MOST = 1500  # requests that a trap may cost


@pytest.mark.parametrize("name", scarce_sites.SITES)
def test_sites_with_few_words_are_fetched_whole(name: str) -> None:
    family = trap_lookalikes.family(name, scarce_sites.SITES[name]())
    simulation = Simulation(family.site).run()
    assert family.real <= set(simulation.asked)
    assert not simulation.held


@pytest.mark.parametrize("name", ["thesaurus of links", "thesaurus by a query", "reference without descriptions"])
@pytest.mark.parametrize("stops", [(600,), (1200,), (1600,), (500, 1000, 1500)])
def test_sites_with_few_words_are_fetched_whole_although_the_crawl_stops(name: str, stops: tuple[int, ...]) -> None:
    family = trap_lookalikes.family(name, scarce_sites.SITES[name]())
    simulation = Simulation(family.site)
    for stop in stops:
        simulation.run(stop)
    simulation.run()
    assert family.real <= set(simulation.asked)
    assert not simulation.held


def test_orders_beside_lists_of_folders_cost_no_page() -> None:
    family = trap_lookalikes.family("folders that the server lists and sorts", scarce_sites.listing(sorts=True))
    simulation = Simulation(family.site).run()
    assert {target for target in family.real if "?" not in target} <= set(simulation.asked)
    assert sum("?" in target for target in simulation.asked) < MOST
    assert simulation.held


@pytest.mark.parametrize("name", scarce_sites.TRAPS)
def test_traps_with_few_words_are_held(name: str) -> None:
    simulation = Simulation(scarce_sites.TRAPS[name]()).run(2 * MOST)
    assert len(simulation.asked) < MOST
    assert simulation.held


@pytest.mark.parametrize("name", scarce_sites.TRAPS)
def test_traps_with_few_words_are_held_although_the_crawl_stops(name: str) -> None:
    simulation = Simulation(scarce_sites.TRAPS[name]())
    for stop in (500, 1000, 1250, 2 * MOST):
        simulation.run(stop)
    assert len(simulation.asked) < MOST
    assert simulation.held
