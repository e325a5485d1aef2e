"""What is wrong with a seed, in words, and the tables of seeds: for the verdict and the report."""

from collections.abc import Iterable, Iterator, Mapping

from archiver.config.seeds import NO_ABOUT, SeedAbout
from archiver.frontier.totals import SeedAccount
from archiver.humanize import printable
from archiver.policy.scope import OUTSIDE

SEED_COLUMNS = ("seed", "state", "status", "urls_found", "problem", "title", "note", "collection")
COLLECTION_COLUMNS = ("collection", "seeds", "failed", "urls_found")


def seed_label(about: SeedAbout) -> str:
    """Return title and collection of a seed on one line; "" if it has neither."""
    return "; ".join(filter(None, (about.title, about.collection and f"collection {about.collection}")))


def seed_rows(seeds: Iterable[SeedAccount], about: Mapping[str, SeedAbout]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each of *seeds*; *about* has the descriptions by URL."""
    for seed in seeds:
        texts = about.get(seed.url, NO_ABOUT)
        yield (
            *(seed.url, seed.state, seed.status or "", seed.followed, seed_problem(seed)),
            *(texts.title, texts.note, texts.collection),
        )


def collection_rows(seeds: Iterable[SeedAccount], about: Mapping[str, SeedAbout]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each collection of *seeds* by name, then one for seeds without; none if no seed has one."""
    found: dict[str, list[int]] = {}
    for seed in seeds:
        counts = found.setdefault(about.get(seed.url, NO_ABOUT).collection, [0, 0, 0])
        counts[:] = counts[0] + 1, counts[1] + has_failed(seed), counts[2] + seed.followed
    if any(found):
        yield from ((name, *found[name]) for name in sorted(found, key=lambda name: (not name, name.casefold(), name)))


def has_failed(seed: SeedAccount) -> bool:
    """Return True if *seed* has been asked for and gave no usable answer."""
    return seed.state in {"failed", "excluded"} or (seed.state == "archived" and not _is_good(seed.status))


def _is_good(status: int) -> bool:
    return 200 <= status < 400 or status == 0  # 0 is a response without a status line


def seed_problem(seed: SeedAccount) -> str:
    """Return what is wrong with a seed; empty if nothing is."""
    if seed.state == "failed":
        return f"failed: {_why(seed)}"
    if seed.state == "excluded":
        return f"is excluded: {_why(seed)}"
    if seed.refused:
        return f"redirects out of scope, to {printable(seed.refused)} ({printable(seed.rule)})"
    if seed.state == "archived" and seed.note.endswith(OUTSIDE):
        return f"{printable(seed.note)}; only its in-scope links are followed"
    if seed.state == "archived" and not _is_good(seed.status):
        return f"returned status {seed.status}"
    return ""


def _why(seed: SeedAccount) -> str:
    reason = seed.failure or (f"status {seed.status}" if seed.status else "")
    repeated = reason and seed.note.startswith(reason)  # a note may begin with the reason's own word
    return printable(seed.note if repeated else ", ".join(filter(None, (reason, seed.note))))
