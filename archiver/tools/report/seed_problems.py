"""What is wrong with a seed, in words, and the tables of seeds: for the verdict and the report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

from archiver import url
from archiver.config.seeds import NO_ABOUT, SeedAbout
from archiver.errors import Failure
from archiver.frontier.gathered.redirects import is_usable, status_words
from archiver.frontier.totals import SeedAccount
from archiver.humanize import count, printable
from archiver.policy.scope import OUTSIDE

SEED_COLUMNS = ("seed", "state", "status", "urls_found", "problem", "title", "note", "collection")
COLLECTION_COLUMNS = ("collection", "seeds", "failed", "urls_found")
MAX_SEEDS = 5  # in the verdict; the table of seeds has all
MAX_AGAIN, LONGEST_AGAIN = 3, 300  # seeds named in one command, and their characters
MEANINGS = {"--robots": "if you may: robots.txt is then logged only", "--allow-private": "if you may request that"}


class SeedMessage(NamedTuple):
    """What is wrong with a seed, for the verdict."""

    message: str
    command: str = ""
    meaning: str = ""
    failed: bool = False


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
    if seed.state == "archived":
        return not is_usable(seed.status) or bool(seed.refused or seed.lost)
    return seed.state in {"failed", "excluded"}


def moved_to(seed: SeedAccount) -> str:
    """Return where *seed* has moved to, out of the scope, so that a person may want to add that; "" if it has not."""
    if seed.why == Failure.PRIVATE:
        return seed.lost
    if seed.state != "archived" or seed.refused:
        return seed.refused if seed.rule.startswith("redirects:") else ""
    return seed.note.removesuffix(f", {OUTSIDE}").rpartition(" ")[2] if seed.note.endswith(OUTSIDE) else ""


def to_retry(seed: SeedAccount) -> tuple[str, ...]:
    """Return the URLs to request again for a *seed* that failed: itself, and where its redirects ended."""
    answered = seed.why.partition(" ")[0] in {"status", "no", *Failure}
    return (seed.url, seed.lost) if answered and seed.lost != seed.url else (seed.url,)


def seed_problem(seed: SeedAccount) -> str:
    """Return what is wrong with a seed; empty if nothing is."""
    if seed.state == "failed":
        return f"failed: {_why(seed)}"
    if seed.state == "excluded":
        return f"is excluded: {_why(seed)}"
    if seed.refused:
        return f"redirects out of scope, to {printable(seed.refused)} ({printable(seed.rule)})"
    if seed.lost == seed.url and seed.why.startswith("status "):
        return f"returned {seed.why}"
    if seed.lost:
        return f"redirects to {printable(seed.lost)}: {printable(seed.why)}"
    if seed.state == "archived" and seed.note.endswith(OUTSIDE):
        return f"{printable(seed.note)}; only its in-scope links are followed"
    if seed.state == "archived" and not is_usable(seed.status):
        found = count(seed.followed, "URL was", "URLs were")
        return f"returned {status_words(seed.status)}" + (f"; {found} found on its page" if seed.followed else "")
    return ""


def _why(seed: SeedAccount) -> str:
    reason = seed.failure or (f"status {seed.status}" if seed.status else "")
    repeated = reason and seed.note.startswith(reason)  # a note may begin with the reason's own word
    return printable(seed.note if repeated else ", ".join(filter(None, (reason, seed.note))))


def _named(seed: str, title: str) -> str:
    """Return the URL of a *seed*, with its *title* if that is known."""
    return f"{printable(seed)} ({printable(title)})" if title else printable(seed)


def seed_messages(seeds: Iterable[SeedAccount], titles: Mapping[str, str]) -> Iterator[SeedMessage]:
    """Yield what is wrong with each of *seeds*, and the command that helps; *titles* are those of seeds, by URL."""
    seeds = sorted(seeds, key=_rank)
    helps = [_remedy(seed) if _may_retry(seed) else None for seed in seeds]
    for number, (seed, remedy) in enumerate(zip(seeds[:MAX_SEEDS], helps, strict=False)):
        command = meaning = ""
        if remedy is not None and remedy not in helps[number + 1 : MAX_SEEDS]:  # the last one that is shown
            alike = [each for each, other in zip(seeds, helps, strict=True) if other == remedy]
            command = f"archiver retry DIR {_again(alike)}".rstrip() + f" && archiver resume DIR {remedy}".rstrip()
            meaning = MEANINGS.get(remedy.partition(" ")[0], "retry")
        elif target := moved_to(seed):
            command, meaning = f"archiver add DIR {quote(target)} && archiver resume DIR", "crawl that too"
        words = f"{_named(seed.url, titles.get(seed.url, ''))} {seed_problem(seed)}"
        yield SeedMessage(words, command, meaning, has_failed(seed))
    if len(seeds) > MAX_SEEDS:
        yield SeedMessage(f"and {len(seeds) - MAX_SEEDS} more; reports/seeds.tsv lists all")


def _may_retry(seed: SeedAccount) -> bool:
    return has_failed(seed) and not (seed.refused or moved_to(seed))


def _rank(seed: SeedAccount) -> tuple[bool, bool, str]:
    """Return where a seed comes in the list: failed ones first, and those that need the same command together."""
    return not has_failed(seed), not _may_retry(seed), _remedy(seed)


def _remedy(seed: SeedAccount) -> str:
    """Return the options without which another request for *seed* ends in the same way; "" if none is needed."""
    if seed.state == "excluded" and seed.failure == Failure.PRIVATE and "--allow-private" in seed.note:
        return f"--allow-private {quote(url.host(seed.url))}"
    forbidden = seed.failure == Failure.ROBOTS if seed.state == "excluded" else seed.why == Failure.ROBOTS
    return "--robots observe" if forbidden else ""


def _again(seeds: Sequence[SeedAccount]) -> str:
    """Return the URLs of *seeds* for a command; "" if that would be too long."""
    again = " ".join(quote(name) for seed in seeds for name in to_retry(seed) if name.isprintable())
    return again if len(seeds) <= MAX_AGAIN and len(again) <= LONGEST_AGAIN else ""
