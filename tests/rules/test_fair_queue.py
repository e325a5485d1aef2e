"""The slow lane's turns: each host gets the same share of time."""

from collections import Counter

from archiver.config.option_types import Rate
from archiver.crawl.commit import TURN, FairShares
from archiver.crawl.visit import Visited
from archiver.model import Claim, Hop
from archiver.policy.schedule import Schedule


def visits(host: int, number: int) -> list[Visited]:
    return [Visited(Claim(1000 * host + n, f"http://h{host}/{n}", host, Hop.LINK, "L", 1, 0, 0)) for n in range(number)]


def shares_of(*hosts: int) -> FairShares:
    """The shares of leased *hosts*."""
    schedule = Schedule(Rate(0), 1)
    for host in hosts:
        schedule.lease(host, f"http://h{host}", 0.0)
    return FairShares(schedule)


def served(queue: list[Visited], cost: dict[int, float], seconds: float) -> Counter[int]:
    """How many visits of each host are done in so many *seconds*, if each costs as much as *cost* says."""
    shares, done, spent = shares_of(1, 2), Counter[int](), 0.0
    while spent < seconds and queue:
        for visited in shares.next(queue, [False] * len(queue)):
            host = visited.claim.host
            done[host] += 1
            spent += cost[host]
            shares.charge(host, cost[host], slow=True)
    return done


def test_hosts_share_time_and_not_visits() -> None:
    done = served([*visits(1, 200), *visits(2, 200)], {1: 1.0, 2: 0.1}, 40.0)
    assert abs(done[1] * 1.0 - done[2] * 0.1) <= 2.0


def test_a_host_with_little_to_do_waits_for_one_turn_of_another_alone() -> None:
    shares, queue = shares_of(1, 2), visits(1, 50)
    for visited in shares.next(queue, [False] * 50):
        shares.charge(visited.claim.host, 3.0, slow=True)
    queue += visits(2, 1)
    assert shares.next(queue, [False] * len(queue))[0].claim.host == 2


def test_a_host_that_comes_late_has_saved_nothing_up() -> None:
    shares, queue = shares_of(1, 2), visits(1, 20)
    for _ in range(10):
        for visited in shares.next(queue, [False] * len(queue)):
            shares.charge(visited.claim.host, TURN, slow=True)
        queue += visits(1, 1)
    queue += visits(2, 100)
    turns = Counter[int]()
    for _ in range(10):
        for visited in shares.next(queue, [False] * len(queue)):
            turns[visited.claim.host] += 1
            shares.charge(visited.claim.host, TURN, slow=True)
    assert turns[1] >= 4


def test_visits_keep_their_order_within_a_host_and_large_ones_go_alone() -> None:
    shares, queue = shares_of(1, 2), visits(1, 5)
    order = []
    while queue:
        batch = shares.next(queue, [visited.claim.id == 1002 for visited in queue])
        assert len(batch) == 1 or all(visited.claim.id != 1002 for visited in batch)
        order += [visited.claim.id for visited in batch]
    assert order == [1000, 1001, 1002, 1003, 1004]


def test_a_host_whose_visits_cost_much_is_dear_until_they_do_not() -> None:
    shares = shares_of(1, 2)
    assert not shares.is_dear(1)
    shares.expect(1, 2.0)
    assert shares.is_dear(1)
    for _ in range(20):
        shares.charge(1, 0.001, slow=True)
    assert not shares.is_dear(1)
