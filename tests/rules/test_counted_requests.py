"""The requests that count, and how many of them go to hosts that have not answered quickly yet."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from archiver.config.option_types import Rate
from archiver.crawl.requests import ActiveRequest, CountedRequests
from archiver.policy.schedule import Schedule

HOSTS = 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, HOSTS - 1)),
        st.tuples(st.just("remove"), st.integers(0, 20)),
        st.tuples(st.sampled_from(["quick", "slow"]), st.integers(0, HOSTS - 1)),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_number_is_that_of_looking_at_each_request(steps: list[tuple[str, int]]) -> None:
    schedule = Schedule(Rate(0), 9)
    for host in range(HOSTS):
        schedule.lease(host, f"http://{host}.example", 0.0)
    counted = CountedRequests(schedule)
    tasks: list[Any] = []

    async def idle() -> None:
        """A task that is never run."""

    async def main() -> None:
        for step, number in steps:
            if step == "add":
                tasks.append(asyncio.create_task(idle()))
                counted.add(tasks[-1], ActiveRequest(number, 0.0))
            elif step == "remove" and number < len(tasks):
                counted.remove(tasks[number])  # perhaps once more
            elif step != "remove":
                counted.prove(number, proven=step == "quick")
            unproven = [each for each in counted.active.values() if not schedule.host(each.host).proven]
            assert counted.unproven == len(unproven)
        await asyncio.gather(*tasks)

    asyncio.run(main())
