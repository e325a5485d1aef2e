"""The verdict: what became of a crawl, in a few lines that a person acts on. A value made of crawl.db alone.

The end of a run, `status` and `report` show the same value, so they cannot disagree. Each finding says what happened,
to what, and which command goes on from there. Names from the network are made harmless when they become words.
"""

import sqlite3
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from archiver import humanize
from archiver.frontier import outcomes
from archiver.frontier.held import HeldPattern, command_for, held_patterns
from archiver.frontier.hosts import UNMARKED
from archiver.frontier.outcomes import Examples, OutcomeGroup, RefusingHost, RunRow
from archiver.frontier.totals import SeedAccount
from archiver.humanize import printable
from archiver.model import OUTSIDE

LABEL = 10  # columns before the words
NARROWEST = 40  # columns for the words
WIDTH = 100  # columns where nothing else is known: files and pipes
LONGEST_EXAMPLE = 60  # characters
MAX_SEEDS = 5  # named; the table of seeds has them all
MAX_HOSTS, MAX_SCRIPTED = 5, 3
MAX_HELD, MOST_HELD = 5, 1000  # patterns: in words, in JSON
MAX_AGAIN = 3  # seeds named in one command …
LONGEST_AGAIN = 300  # … and their characters
GENTLE = "--rate 1/5"  # one request in 5 seconds, for a site that refused us

BOLD, RED, CYAN, DIM = "1", "1;31", "36", "2"  # as terminals have them
_GOOD = range(200, 400)
_NAMES = {401: "login required", 403: "forbidden", 404: "not found", 410: "gone", 429: "too many requests"}


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """URLs of one kind, by what came of them."""

    by_status: tuple[tuple[int, int], ...] = ()  # (status of the last answer, URLs)
    blocked: tuple[tuple[int, int], ...] = ()  # of these, challenge and block pages
    unanswered: tuple[tuple[str, int], ...] = ()  # (failure, URLs)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(count for _, count in (*self.by_status, *self.unanswered))

    @property
    def bad(self) -> int:
        """Those that gave no usable answer: errors, challenges, and no answer at all."""
        return self.total - sum(count for status, count in self._answered() if status < 400)

    def words(self, noun: str, nouns: str) -> str:
        """`554 pages: 520 ok, 30 not found (404), 4 server errors (500)`."""
        told = humanize.count(self.total, noun, nouns)
        parts = [*self._answers()]
        if self.unanswered:
            parts.append(f"{sum(count for _, count in self.unanswered)} no answer ({_listed(self.unanswered)})")
        return f"{told}: {', '.join(parts)}" if parts else told

    def _answered(self) -> list[tuple[int, int]]:
        """The answers that are not known as challenges, by status."""
        blocked = dict(self.blocked)
        left = ((status, count - blocked.get(status, 0)) for status, count in self.by_status)
        return [(status, count) for status, count in left if count > 0]

    def _answers(self) -> Iterator[str]:
        classes: dict[str, Counter[int]] = {}
        for status, count in self._answered():
            classes.setdefault(_class(status), Counter())[status] += count
        for name in ("ok", "redirect"):
            if name in classes:
                count = classes.pop(name).total()
                yield f"{count} {name}{'s' if name == 'redirect' and count > 1 else ''}"
        if self.blocked:
            count = sum(count for _, count in self.blocked)
            yield f"{humanize.count(count, 'challenge or block page')} ({_listed(self.blocked)})"
        for name, statuses in sorted(classes.items(), key=lambda item: (-item[1].total(), item[0])):
            plural = "s" if name.endswith(("error", "answer")) and statuses.total() > 1 else ""
            yield f"{statuses.total()} {name}{plural} ({_listed(sorted(statuses.items()))})"

    def as_json(self) -> dict[str, Any]:
        """The counts as JSON has them."""
        return {
            "total": self.total,
            "bad": self.bad,
            "by_status": {str(status): count for status, count in self.by_status},
            "blocked": {str(status): count for status, count in self.blocked},
            "unanswered": dict(self.unanswered),
        }


NOTHING = StatusCounts()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know, and the command that goes on from there."""

    about: str
    words: str
    command: str = ""  # with DIR for the directory
    meaning: str = ""  # of the command
    trouble: bool = False  # `--strict` ends with code 8 because of it


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a crawl."""

    pages: StatusCounts = NOTHING
    requisites: StatusCounts = NOTHING
    waiting: int = 0
    forbidden: int = 0  # by robots.txt
    forbidden_example: str = ""
    seeds: tuple[SeedAccount, ...] = ()  # in trouble
    astray: tuple[tuple[str, str, str], ...] = ()  # (seed, where it redirects to, why that is not usable)
    hosts: tuple[RefusingHost, ...] = ()
    missing: Examples = outcomes.NONE
    left_out: Examples = outcomes.NONE  # guesses
    scripted: tuple[tuple[str, int], ...] = ()  # (seed, scripts) that names next to no links
    held: tuple[HeldPattern, ...] = ()
    run: RunRow | None = None  # the last one

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is to be said, the counts first."""
        return tuple(_findings(self))

    @property
    def paused(self) -> bool:
        """Whether URLs wait because a host refuses us; the finding about it says how to go on."""
        return any(host.paused for host in self.hosts)

    @property
    def trouble(self) -> bool:
        """Whether `--strict` has something to complain about."""
        return any(finding.trouble for finding in self.findings)


@dataclass(frozen=True, slots=True)
class FindingStyle:
    """How findings are shown: what stands for DIR in commands, how many columns there are, and what is left out."""

    directory: str = "DIR"
    width: int = WIDTH
    without: tuple[str, ...] = ()
    colours: bool = False


PLAIN = FindingStyle()
NO_VERDICT = Verdict()


def gathered(db: sqlite3.Connection, seeds: Iterable[SeedAccount]) -> Verdict:
    """Return the verdict on the crawl behind *db*, whose *seeds* are known already."""
    groups, blocked = list(outcomes.groups(db)), outcomes.blocked(db)
    forbidden = sum(each.urls for each in groups if each.failure == "robots" and each.state == "excluded")
    return Verdict(
        pages=_counts("page", groups, blocked),
        requisites=_counts("requisite", groups, blocked),
        waiting=sum(each.urls for each in groups if each.state == "waiting" and each.kind != "rules"),
        forbidden=forbidden,
        forbidden_example=outcomes.example(db, "robots") if forbidden else "",
        seeds=tuple(seed for seed in seeds if seed_trouble(seed)),
        astray=tuple(outcomes.lost_redirects(db)),
        hosts=tuple(outcomes.refusing(db)),
        missing=outcomes.missing(db),
        left_out=outcomes.left_out(db),
        scripted=tuple(outcomes.scripted(db)),
        held=tuple(held_patterns(db)),
        run=outcomes.last(db),
    )


def _counts(kind: str, groups: Iterable[OutcomeGroup], blocked: Iterable[tuple[str, int, int]]) -> StatusCounts:
    answered, unanswered = Counter[int](), Counter[str]()
    for each in groups:
        if each.kind == kind and each.state == "archived":
            answered[each.status] += each.urls
        elif each.kind == kind and each.state == "failed":
            unanswered[each.failure] += each.urls
    challenges = tuple((status, urls) for one, status, urls in blocked if one == kind)
    return StatusCounts(tuple(sorted(answered.items())), challenges, tuple(unanswered.most_common()))


def _class(status: int) -> str:
    if status == 0 or 200 <= status < 300 or status == 304:
        return "ok"
    if 300 <= status < 400:
        return "redirect"
    if status in _NAMES:
        return _NAMES[status]
    return "client error" if 400 <= status < 500 else "server error" if 500 <= status < 600 else "odd answer"


def _listed(counts: Iterable[tuple[object, int]]) -> str:
    return ", ".join(printable(str(name)) for name, _ in counts)


def _findings(verdict: Verdict) -> Iterator[Finding]:
    pages = verdict.pages
    which = ("archiver urls DIR --status 4xx,5xx --why", "which, and why") if pages.bad else ("", "")
    if pages.bad == sum(count for _, count in pages.blocked):  # the finding about its site says how to go on
        which = "", ""
    if pages.unanswered and pages.bad == sum(count for _, count in pages.unanswered):
        which = "archiver retry DIR && archiver resume DIR", "try again what did not answer"
    yield Finding("pages", pages.words("page", "pages"), *which, trouble=bool(pages.bad))
    yield from _requisites(verdict)
    yield from _seeds(verdict.seeds)
    for seed, target, why in verdict.astray[:MAX_SEEDS]:
        yield Finding("seeds", f"{printable(seed)} redirects to {printable(target)}: {printable(why)}", trouble=True)
    yield from _hosts(verdict)
    if verdict.forbidden:
        such = f", such as {short(verdict.forbidden_example)}"
        words = f"{humanize.count(verdict.forbidden, 'URL is', 'URLs are')} forbidden by robots.txt{such}"
        yield Finding("robots", words, "archiver urls DIR --state excluded --why", "which, and by which rule")
    if verdict.left_out.count:
        such = f"such as {short(verdict.left_out.first[0][0])}: most of those asked for before were not there"
        words = f"{humanize.count(verdict.left_out.count, 'URL', 'URLs')} that only scripts name left out, {such}"
        yield Finding("guesses", words, "archiver urls DIR --state excluded --why", "which, and by which rule")
    for seed, scripts in verdict.scripted[:MAX_SCRIPTED]:
        words = f"{printable(seed)} names {humanize.count(scripts, 'script', 'scripts')} and next to no links"
        meaning = "see whether the archive shows what the site shows"
        yield Finding("scripts", f"{words}; scripts may fill this site", "archiver replay DIR", meaning)
    yield from _held(verdict.held)
    if verdict.waiting and verdict.run is not None and verdict.run.ended and not verdict.paused:
        yield Finding("waiting", humanize.count(verdict.waiting, "URL waits", "URLs wait"), go_on(verdict.run), "go on")


def go_on(run: RunRow | None) -> str:
    """Return the command that goes on after *run*; without the limit that ended it."""
    limit = run.reason.split(" ", 1)[0] if run is not None else ""
    named = limit.startswith("--max-") and not limit.startswith("--max-time")
    return f"archiver resume DIR {limit} 0" if named else "archiver resume DIR"


def ending(run: RunRow | None) -> str:
    """Say why *run*, which is over, ended; empty where that is not known."""
    if run is None:
        return ""
    return run.reason if run.ended else "the process was killed or the machine stopped"


def _requisites(verdict: Verdict) -> Iterator[Finding]:
    counts, missing = verdict.requisites, verdict.missing
    if not counts.total and not missing.count:
        return
    words = counts.words("image, style or script", "images, styles and scripts")
    if not missing.count:
        yield Finding("requisites", words)
        return
    url, why = missing.first[0]
    more = f" and {missing.count - 1} more" if missing.count > 1 else ""
    words += f"; missing: {short(url)} ({printable(why)}){more}"
    yield Finding("requisites", words, "archiver urls DIR --missing --why", "all that is missing")


def _seeds(seeds: tuple[SeedAccount, ...]) -> Iterator[Finding]:
    failed = [seed for seed in seeds if seed_failed(seed)]
    again = " ".join(quote(seed.url) for seed in failed if seed.url.isprintable())
    if len(failed) > MAX_AGAIN or len(again) > LONGEST_AGAIN:
        again = ""
    for number, seed in enumerate(sorted(seeds, key=lambda seed: not seed_failed(seed))[:MAX_SEEDS], 1):
        last = number == min(len(failed), MAX_SEEDS)
        command = f"archiver retry DIR {again}".rstrip() + " && archiver resume DIR" if last else ""
        words = f"{printable(seed.url)} {seed_trouble(seed)}"
        yield Finding("seeds", words, command, "try again" if last else "", trouble=seed_failed(seed))
    if len(seeds) > MAX_SEEDS:
        yield Finding("seeds", f"and {len(seeds) - MAX_SEEDS} more; reports/seeds.tsv has them all")


def _hosts(verdict: Verdict) -> Iterator[Finding]:
    for host in verdict.hosts[:MAX_HOSTS]:
        refused = _listed(host.statuses)
        by = f"; {printable(host.sign)}" if host.sign not in {"", UNMARKED} else ""
        share = f"({refused} on {host.refused} of the last {host.answers}{by})"
        words = f"{printable(host.key)} began to refuse us at {datetime.fromtimestamp(host.since, UTC):%H:%M} UTC"
        words += f" after {humanize.count(host.pages, 'page', 'pages')} {share}" if host.pages else f" at once {share}"
        command = f"archiver retry DIR --blocked && archiver resume DIR {GENTLE}"
        if host.paused:
            words += f"; it is paused, and {humanize.count(host.waiting, 'URL waits', 'URLs wait')}"
        yield Finding("blocked", words, command, "try again later, gently", trouble=True)
    if len(verdict.hosts) > MAX_HOSTS:
        yield Finding("blocked", f"and {len(verdict.hosts) - MAX_HOSTS} more hosts", trouble=True)


def short(url: str) -> str:
    """*url* as an example of many: its beginning and its end."""
    whole = printable(url, 2 * len(url) + LONGEST_EXAMPLE)
    half = LONGEST_EXAMPLE // 2
    return whole if len(whole) <= LONGEST_EXAMPLE else f"{whole[: half - 1]}…{whole[-half:]}"


def _held(patterns: tuple[HeldPattern, ...]) -> Iterator[Finding]:
    """Each pattern that looks endless, what waits behind it, and the command that fetches it."""
    for each in patterns[:MAX_HELD]:
        more = f" (and {humanize.count(each.beyond, 'link', 'links')} that are only counted)" if each.beyond else ""
        behind = humanize.count(each.urls, "URL is", "URLs are")
        words = f"{behind} held{more}: {short(each.pattern)} looks endless ({printable(each.rule)})"
        words += f", such as {short(each.example)}"
        yield Finding("held", words, f"{command_for(each)} && archiver resume DIR", "fetch them", trouble=True)
    if len(patterns) > MAX_HELD:
        left = f"and {humanize.count(len(patterns) - MAX_HELD, 'more pattern', 'more patterns')}"
        yield Finding("held", left, f"{command_for()} && archiver resume DIR", "fetch all", trouble=True)


def seed_failed(seed: SeedAccount) -> bool:
    """Whether *seed* gave no usable answer and no other try is under way."""
    return seed.state in {"failed", "excluded"} or (seed.state == "archived" and not is_good(seed.status))


def is_good(status: int) -> bool:
    """Whether *status* is one of a usable answer; 0 is an answer without a status line."""
    return status in _GOOD or status == 0


def seed_trouble(seed: SeedAccount) -> str:
    """What a person should know about a seed that did not bring what was hoped; empty where it did."""
    if seed.state == "failed":
        return f"failed: {_why(seed)}"
    if seed.state == "excluded":
        return f"is excluded: {_why(seed)}"
    if seed.refused:
        return f"redirects out of scope, to {printable(seed.refused)} ({printable(seed.rule)})"
    if seed.state == "archived" and seed.note.endswith(OUTSIDE):
        return f"{printable(seed.note)}; of its links only those into the scope are followed"
    if seed.state == "archived" and not is_good(seed.status):
        return f"answered with status {seed.status}"
    return ""


def _why(seed: SeedAccount) -> str:
    reason = seed.failure or (f"status {seed.status}" if seed.status else "")
    told = reason and seed.note.startswith(reason)  # a note may begin with the reason's own word
    return printable(seed.note if told else ", ".join(filter(None, (reason, seed.note))))


def lines(verdict: Verdict, view: FindingStyle = PLAIN) -> Iterator[str]:
    """The findings in words; a command stays on one line, so that it can be copied."""
    before = ""
    for finding in verdict.findings:
        if finding.about in view.without:
            continue
        about = "verdict" if finding.about in {"pages", "requisites"} else finding.about
        label = "" if about == before else about
        before = about
        for words in textwrap.wrap(
            finding.words, max(view.width - LABEL, NARROWEST), break_long_words=False, break_on_hyphens=False
        ):
            yield f"{_painted(f'{label:<{LABEL - 1}}', RED if finding.trouble else BOLD, view)} {words}"
            label = ""
        if finding.command:
            yield command(finding.command, finding.meaning, view)


def command(text: str, meaning: str, view: FindingStyle, label: str = "") -> str:
    """The command *text*, and what it is for where there is room beside it."""
    whole = " ".join(view.directory if word == "DIR" else word for word in text.split(" "))
    beside = f"{whole}   # {meaning}"
    note = beside[len(whole) :] if meaning and LABEL + len(beside) <= view.width else ""
    about = _painted(f"{label:<{LABEL - 1}}", BOLD, view)
    return f"{about} {_painted(whole, CYAN, view)}{_painted(note, DIM, view)}"


def _painted(text: str, colour: str, view: FindingStyle) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if view.colours and text.strip() else text


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON has it."""
    return {
        "pages": verdict.pages.as_json(),
        "requisites": verdict.requisites.as_json(),
        "missing_requisites": verdict.missing.count,
        "forbidden_by_robots": verdict.forbidden,
        "guesses_left_out": verdict.left_out.count,
        "waiting": verdict.waiting,
        "held": [{**asdict(each), "command": command_for(each)} for each in verdict.held[:MOST_HELD]],
        "trouble": verdict.trouble,
        "findings": [
            {
                "about": each.about,
                "words": each.words,
                "command": each.command,
                "trouble": each.trouble,
            }
            for each in verdict.findings
        ],
    }
