"""The result of a crawl in one sentence, and the failures by reason, each with the command to run next."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from archiver.errors import Failure
from archiver.frontier import totals
from archiver.frontier.connection import Reader
from archiver.frontier.totals import ProblemGroup, SeedAccount
from archiver.humanize import count, printable
from archiver.tools.report.findings import FindingStyle, filled
from archiver.tools.report.seed_problems import has_failed
from archiver.tools.report.status_counts import StatusCounts, urls_in
from archiver.tools.report.tables import WIDTH
from archiver.tools.report.verdict import EXCLUDED, Verdict

COLUMNS = ("reason", "urls", "example", "linked_from", "next_command")

_MEANINGS = {
    Failure.DNS: "The host name was not found",
    Failure.CONNECT: "No connection to the host",
    Failure.TLS: "The TLS handshake failed",
    Failure.DISCONNECT: "The connection ended before a response came",
    Failure.TIMEOUT: "No response in time",
    Failure.REFUSED: "This program refused the request",
    Failure.ROBOTS: "robots.txt forbids them, or could not be fetched",
    Failure.TRAP: "Left out as a suspected trap",
    Failure.PRIVATE: "The host is not on the public web",
    Failure.PROXY: "No proxy leads there",
    Failure.UNCHANGED: "Not requested again: --newer-sitemap or --changed-only left them out",
    Failure.RULE: "A person excluded them while they waited",
}
_AGAIN = frozenset(
    (
        *(Failure.DNS, Failure.CONNECT, Failure.TLS, Failure.DISCONNECT, Failure.TIMEOUT, Failure.PROXY),
        Failure.UNCHANGED,
    )
)
_GONE = frozenset(("404", "410"))  # to ask again rarely helps


class CrawlGrade(StrEnum):
    """How a crawl stands."""

    GOOD = "good"
    ATTENTION = "attention"  # something is missing
    BAD = "bad"  # there is nothing usable
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Headline:
    """The result of a crawl in one sentence."""

    grade: CrawlGrade
    text: str


def headline(verdict: Verdict, counts: totals.Totals, seeds: Sequence[SeedAccount], *, running: bool) -> Headline:
    """Return the result of a crawl, or how it stands while it is *running*."""
    failed = failed_seeds(seeds)
    missing = list(_missing(verdict, len(failed), len(seeds)))
    if running:
        left = count(counts.waiting, "URL is waiting", "URLs are waiting")
        return Headline(CrawlGrade.RUNNING, f"Running: {left}{_joined('; so far, ', missing)}.")
    if not counts.archived or (seeds and len(failed) == len(seeds)):
        nothing = "No seed gave a usable answer" if seeds else "Nothing was archived"
        return Headline(CrawlGrade.BAD, f"{nothing}{_joined('; ', missing[1:])}.")
    if (waiting := counts.waiting - sum(each.urls for each in verdict.blocked)) > 0:
        left = count(waiting, "URL is waiting", "URLs are waiting")
        return Headline(CrawlGrade.ATTENTION, f"Not finished: {left}{_joined('; ', missing)}.")
    if missing:
        return Headline(CrawlGrade.ATTENTION, f"Finished, but {_joined('', missing)}.")
    pages = count(verdict.pages.total, "page")
    others = count(verdict.requisites.total, "image, style or script", "images, styles and scripts")
    both = f"{pages} and {others}" if verdict.requisites.total else pages
    return Headline(CrawlGrade.GOOD, f"Complete: {both}, and nothing is missing.")


def _joined(before: str, parts: Sequence[str]) -> str:
    if not parts:
        return ""
    return before + (f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0])


def _bad_pages(pages: StatusCounts) -> Iterator[str]:
    if bad := pages.bad - pages.cut:
        yield f"{bad} of {count(pages.total, 'page')} gave no usable answer"
    if pages.truncated:
        yield count(urls_in(pages.truncated), "page is truncated", "pages are truncated")
    if pages.undecodable:
        yield count(urls_in(pages.undecodable), "page does not decode", "pages do not decode")


def _missing(verdict: Verdict, failed: int, seeds: int) -> Iterator[str]:
    if failed:
        yield f"{failed} of {count(seeds, 'seed')} failed"
    if verdict.lost.names:
        yield verdict.lost.words
    yield from _bad_pages(verdict.pages)
    if verdict.missing.count:
        yield count(
            verdict.missing.count, "image, style or script is missing", "images, styles and scripts are missing"
        )
    if verdict.hosts:
        yield count(len(verdict.hosts), "host blocks us", "hosts block us")
    yield from (each.common for each in verdict.alike)
    if held := sum(each.urls for each in verdict.held):
        yield count(held, "URL is held as a suspected trap", "URLs are held as suspected traps")
    if blocked := sum(each.urls for each in verdict.blocked):
        yield count(blocked, "URL waits on a host that a person blocked", "URLs wait on hosts that a person blocked")
    if verdict.views.incomplete:
        yield count(verdict.views.incomplete, "page will not replay completely", "pages will not replay completely")


def failed_seeds(seeds: Sequence[SeedAccount]) -> list[SeedAccount]:
    """Return the seeds without a usable answer."""
    return [seed for seed in seeds if has_failed(seed)]


@dataclass(frozen=True, slots=True)
class Problem:
    """The URLs without a usable response for one reason, and what to do about them."""

    reason: str
    meaning: str
    urls: int
    examples: tuple[tuple[str, str], ...]  # (URL, the page that named it first)
    command: str  # that fetches them again, or lists them where that does not help; DIR is the directory
    fetches: bool  # True: it fetches them


def problems(db: Reader) -> list[Problem]:
    """Return the failures of the crawl in *db* by reason, most frequent first."""
    return list(map(_problem, totals.problems(db)))


def problem_rows(found: Sequence[Problem], style: FindingStyle) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table of reasons."""
    for each in found:
        address, page = each.examples[0]
        yield each.reason, each.urls, address, page, filled(each.command, style)


def problem_lines(found: Sequence[Problem], style: FindingStyle) -> Iterator[str]:
    """Yield *found* as text; each command is on one line, so that you can copy it."""
    for each in found:
        yield f"  {each.urls:>7}  {printable(each.reason)}{f' ({each.meaning})' if each.meaning else ''}"
        for address, page in each.examples:
            yield f"           {printable(address, WIDTH)}{f', linked from {printable(page, WIDTH)}' if page else ''}"
        if command := filled(each.command, style):
            yield f"           {command}"


def _problem(group: ProblemGroup) -> Problem:
    word = group.reason.removeprefix("speculative, ")
    kind, _, status = word.partition(" ")
    command, fetches = EXCLUDED[0], False
    meaning = _MEANINGS.get(Failure(word), "") if word in set(Failure) else ""
    if word in _AGAIN and word == group.reason:
        command, fetches = f"archiver retry DIR --failure {word} && archiver resume DIR", True
    elif kind in {"answered", "status"} and status.isdigit():
        with suppress(ValueError):
            meaning = HTTPStatus(int(status)).phrase
        fetches = status not in _GONE
        again, look = f"archiver retry DIR --status {status} && archiver resume DIR", f"--status {status} --why"
        command = again if fetches else f"archiver urls DIR {look}"
    if word != group.reason:
        meaning = f"named only in scripts; {meaning}".removesuffix("; ")
    return Problem(group.reason, meaning, group.urls, group.examples, command, fetches)
