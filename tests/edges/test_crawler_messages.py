"""Messages of a crawler to its supervisor, through a pipe that is full."""

import os
import pickle
from collections.abc import Iterator
from io import FileIO

from archiver.collection.live import Live
from archiver.crawl.crawler_process import LENGTH, Ended, Logged, Message, Messages
from archiver.crawl.stats import Snapshot

FILLS = Logged("archiver", 20, "x" * (1 << 20))  # more than a pipe takes


def live(visits: int) -> Live:
    return Live(pid=1, written=0.0, state="crawling", visits=visits)


def snapshot(visits: int) -> Snapshot:
    return Snapshot("crawling", 1.0, 0, 0, 0, 0, 0, 0, 0.0, visits=visits)


def sent(pipe: FileIO) -> Iterator[Message]:
    with os.fdopen(pipe.fileno(), "rb", closefd=False) as file:
        while head := file.read(LENGTH.size):
            yield pickle.loads(file.read(LENGTH.unpack(head)[0]))


def test_of_figures_that_wait_only_the_newest_are_sent() -> None:
    """Those of each kind keep their place in the queue; nothing else is left out, and the end comes last."""
    ours, theirs = (FileIO(number, mode) for number, mode in zip(os.pipe(), ("r", "w"), strict=True))
    with ours, theirs:
        messages = Messages(theirs)
        messages.put(FILLS)
        for visits in (1, 2, 3):
            messages.put(live(visits))
            messages.put(snapshot(visits))
            messages.put(Logged("archiver", 20, f"{visits}"))
        ended = Ended(None, snapshot(4), live(4))
        messages.put(ended)
        found = sent(ours)
        arrived = [*iter(found.__next__, ended), ended]
        messages.put(live(5))
        arrived.append(next(found))
        messages.finish()
    logs = [Logged("archiver", 20, f"{visits}") for visits in (1, 2, 3)]
    assert arrived == [FILLS, live(3), snapshot(3), *logs, ended, live(5)]
