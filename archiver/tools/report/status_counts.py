"""URLs counted by their last response, in words and as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from archiver import humanize
from archiver.frontier.gathered.redirects import LOWEST, NO_STATUS, is_usable
from archiver.frontier.outcomes import OutcomeGroup
from archiver.humanize import printable

_CLASSES = {2: "ok", 3: "redirect", 4: "client error", 5: "server error"}
_NAMES = {401: "login required", 403: "forbidden", 404: "not found", 410: "gone", 429: "too many requests"}


def urls_in(counts: Iterable[tuple[object, int]]) -> int:
    """Return the number of URLs in *counts*."""
    return sum(count for _, count in counts)


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """The URLs of one kind, by their last response."""

    by_status: tuple[tuple[int, int], ...] = ()  # (last status, URLs)
    blocked: tuple[tuple[int, int], ...] = ()  # challenge and block pages among them
    unanswered: tuple[tuple[str, int], ...] = ()  # (failure, URLs)
    truncated: tuple[tuple[int, int], ...] = ()  # incomplete ones among `by_status` that are no errors and not blocked
    undecodable: tuple[tuple[int, int], ...] = ()  # the same for a broken Content-Encoding

    @property
    def total(self) -> int:
        """The number of URLs."""
        return urls_in(self.by_status) + urls_in(self.unanswered)

    @property
    def bad(self) -> int:
        """The number without a usable response: errors, no status, challenges, incomplete ones, and no response."""
        return self.total - sum(count for status, count in self._answered() if is_usable(status))

    @property
    def cut(self) -> int:
        """The number whose body is incomplete or does not decode."""
        return self._cut().total()

    def format(self, noun: str, nouns: str) -> str:
        """Format as `554 pages: 520 ok, 30 not found (404), 4 server errors (500)`."""
        total, parts = humanize.count(self.total, noun, nouns), [*self._answers()]
        if self.unanswered:
            parts.append(f"{urls_in(self.unanswered)} no response ({listed(self.unanswered)})")
        return f"{total}: {', '.join(parts)}" if parts else total

    def _answered(self) -> list[tuple[int, int]]:
        """The statuses of complete responses that are no known challenges."""
        others = Counter(dict(self.blocked)) + self._cut()
        left = ((status, count - others[status]) for status, count in self.by_status)
        return [(status, count) for status, count in left if count > 0]

    def _cut(self) -> Counter[int]:
        return Counter(dict(self.truncated)) + Counter(dict(self.undecodable))

    def _answers(self) -> Iterator[str]:
        classes: dict[str, Counter[int]] = {}
        for status, count in self._answered():
            classes.setdefault(_class(status), Counter())[status] += count
        for name in ("ok", "redirect"):
            if count := classes.pop(name, Counter()).total():
                yield f"{count} {name}{'s' if name == 'redirect' and count > 1 else ''}"
        if count := classes.pop(NO_STATUS, Counter()).total():
            yield f"{count} {NO_STATUS}"
        if self.blocked:
            yield f"{humanize.count(urls_in(self.blocked), 'challenge or block page')} ({listed(self.blocked)})"
        if self.truncated:
            yield f"{urls_in(self.truncated)} truncated"
        if self.undecodable:
            yield f"{urls_in(self.undecodable)} undecodable (Content-Encoding)"
        for name, statuses in sorted(classes.items(), key=lambda item: (-item[1].total(), item[0])):
            ending = "s" if name.endswith("error") else "es" if name.endswith("status") else ""
            noun = name + (ending if statuses.total() > 1 else "")
            yield f"{statuses.total()} {noun} ({listed(sorted(statuses.items()))})"

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON data."""
        return {
            "total": self.total,
            "bad": self.bad,
            "by_status": {str(status): count for status, count in self.by_status},
            "blocked": {str(status): count for status, count in self.blocked},
            "truncated": {str(status): count for status, count in sorted(self._cut().items())},
            "unanswered": dict(self.unanswered),
        }


NOTHING = StatusCounts()


Share = tuple[str, int, int]  # kind, status and number of URLs


def counts_of(kind: str, groups: Iterable[OutcomeGroup], *shares: Iterable[Share]) -> StatusCounts:
    """Return the counts of the URLs of one *kind*; *shares*: challenge pages, incomplete and undecodable responses."""
    answered, unanswered = Counter[int](), Counter[str]()
    for each in groups:
        if each.kind == kind and each.state == "archived":
            answered[each.status] += each.urls
        elif each.kind == kind and each.state == "failed":
            unanswered[each.failure] += each.urls
    blocked, truncated, undecodable = (
        tuple((status, urls) for one, status, urls in part if one == kind) for part in shares
    )
    by_status, silent = tuple(sorted(answered.items())), tuple(unanswered.most_common())
    return StatusCounts(by_status, blocked, silent, truncated, undecodable)


def _class(status: int) -> str:
    if status == 304:
        return "ok"
    if status < LOWEST:
        return NO_STATUS
    return _NAMES.get(status) or _CLASSES.get(status // 100, "unusual status")


def listed(counts: Iterable[tuple[object, int]]) -> str:
    """Return the names in *counts*, separated by commas."""
    return ", ".join(printable(str(name)) for name, _ in counts)
