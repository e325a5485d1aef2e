"""After a power cut in a crawl or a recovery nothing is lost or duplicated, whichever unsynced changes survive.

The tests take one step of each kind, and a random state before or after it (four with ARCHIVER_LONG).
`fixtures/powercut.py` holds the requirements. Run as a program, it tries all states.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from fixtures.powercut import NAME, Ground, Recording, State, states_of
from fixtures.simulated_disk import Disk, Loss, Tree
from fixtures.strace import Operation, Sync, SyncFolder, Write, without

EACH = 4 if os.environ.get("ARCHIVER_LONG") else 1  # states of each kind of step
DATABASE = f"{NAME}/crawl.db"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which records the crawl"),
]


def kind(operation: Operation) -> str:
    """Return the kind of operation and of file; parts of names that differ in each run are left out."""
    path = re.sub(r"-[0-9]{17}-[^.]*|-[0-9]{5}(?=[.])|(?<=reports/)[^.]*", "", getattr(operation, "path", ""))
    return f"{operation.kind} {path}"


def sample(operations: Sequence[Operation], start: int, seed: int) -> dict[str, list[State]]:
    """Return some states around one step of each kind from *start* on, and at least one of each loss that occurs."""
    random = Random(seed)
    by_kind: dict[str, list[int]] = {}
    for place in range(start, len(operations)):
        if not isinstance(operations[place], Write):
            by_kind.setdefault(kind(operations[place]), []).append(place)
    chosen = {name: random.choice(places) for name, places in by_kind.items()}
    around = {point for place in chosen.values() for point in (place, place + 1)}
    found: dict[int, list[State]] = {}
    for state in states_of(operations, around, seed):
        found.setdefault(state.point, []).append(state)
    near = {name: [*found.get(place, ()), *found.get(place + 1, ())] for name, place in chosen.items()}
    sampled = {name: random.sample(states, min(EACH, len(states))) for name, states in near.items() if states}
    losses = {state.loss for states in sampled.values() for state in states}
    for name, states in near.items():
        for state in states:
            if state.loss not in losses:
                losses.add(state.loss)
                sampled[name].append(state)
    return sampled


def failures(crawled: Ground, states: dict[str, list[State]]) -> Iterator[str]:
    """Yield each state that the crawl does not survive."""
    for name, each in states.items():
        for state in each:
            try:
                crawled.survive(state)
            except Exception as error:  # noqa: BLE001 - report all of them at once
                yield f"{name}, {state}: {type(error).__name__}: {error}"


def test_in_a_crawl(crawled: Ground) -> None:
    states = sample(crawled.operations, 0, seed=1)
    for step in (
        f"Create {NAME}/archive/archiver.warc.gz.open",
        f"Sync {NAME}/archive/archiver.warc.gz.open",
        f"SyncFolder {NAME}/archive",
        f"Rename {NAME}/archive/archiver.warc.gz.open",
        f"Sync {DATABASE}-wal",
        f"Sync {DATABASE}",
        f"Rename {NAME}/indexes/run-archiver.warc.gz.cdxj.tmp",
        f"Unlink {NAME}/indexes/run-archiver.warc.gz.cdxj",
        f"Rename {NAME}/indexes/index.cdxj.tmp",
        f"Sync {NAME}/reports/.txt.tmp",
    ):
        assert step in states
    assert {state.loss for each in states.values() for state in each} == set(Loss)
    assert list(failures(crawled, states)) == []


def test_in_a_recovery(crawled: Ground, recovered: Recording) -> None:
    states = sample(recovered.operations, recovered.start, seed=2)
    assert f"Sync {NAME}/archive/archiver.warc.gz.open" in states
    assert any(step.startswith(f"Rename {NAME}/damaged/") for step in states)
    assert list(failures(crawled, states)) == []


def test_before_anything_was_captured(crawled: Ground) -> None:
    """Without settings the command reports that there is nothing to continue; with settings the crawl starts."""
    paths = [getattr(each, "path", "") for each in crawled.operations]
    begin = paths.index(DATABASE)
    first = next(place for place, path in enumerate(paths) if path.endswith(".warc.gz.open"))
    found = list(states_of(crawled.operations, [*range(begin), begin + 9, first], seed=3))
    gone_on = [crawled.survive(state) for state in found]
    assert set(gone_on) == {True, False}
    for state, begun in zip(found, gone_on, strict=True):
        assert begun == (f"{NAME}/crawl.toml" in state.tree.files)
        if not begun:
            assert set(state.tree.files) <= {f"{NAME}/crawl.lock", f"{NAME}/crawl.toml.tmp"}


def dropped(ending: str) -> Callable[[Operation], bool]:
    return lambda each: isinstance(each, Sync | SyncFolder) and each.path.endswith(ending)


@pytest.mark.parametrize("ending", [".warc.gz.open", "/archive"], ids=["bytes", "names"])
def test_what_is_not_synced_is_missed(crawled: Ground, ending: str) -> None:
    """A crawl without one kind of sync does not survive, so the requirements can fail."""
    operations = without(crawled.operations, dropped(ending))
    commits = [at for at, each in enumerate(operations) if isinstance(each, Sync) and each.path == f"{DATABASE}-wal"]
    lost = [state for state in states_of(operations, [commits[-1]], seed=4) if state.loss is Loss.LOST]
    assert list(failures(crawled, {"lost": lost}))


def test_all_of_it_kept_is_what_the_process_left(crawled: Ground) -> None:
    left = Disk().take(crawled.operations).after(Loss.KEPT, Random())
    assert left == Tree.of(crawled.folder / "crawled")
    assert left.files


def test_all_of_it_kept_is_what_two_processes_left(recovered: Recording) -> None:
    assert len(recovered.operations) > recovered.start > 0
    assert Disk().take(recovered.operations).after(Loss.KEPT, Random()) == Tree.of(recovered.folder)
