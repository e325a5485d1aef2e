"""Pages that are near copies are fetched if lists that end name them; of endless lists they are held."""

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.policy.traps import Traps
from fixtures import near_copies, trap_lookalikes
from fixtures.simulated_crawl import Simulation

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
