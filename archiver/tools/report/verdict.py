"""The verdict: the result of a crawl in a few lines, each with the next command. Read from crawl.db alone.

The end of a run, `status` and `report` show the same value, so they cannot disagree. Only which hosts a person has
blocked is in the settings. Each finding says what happened,
to what, and which command to run next. Names from the network are made harmless in messages.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from archiver import humanize
from archiver.errors import Failure
from archiver.frontier import outcomes, views
from archiver.frontier.connection import Reader
from archiver.frontier.hosts import UNMARKED
from archiver.frontier.orders.excluding import note_of
from archiver.frontier.outcomes import Examples, RefusingHost, RunRow
from archiver.frontier.retry import HeldPattern, held_patterns, retry_command
from archiver.frontier.totals import SeedAccount
from archiver.frontier.url_queue import blocked_hosts
from archiver.frontier.views import ViewTotals
from archiver.humanize import printable
from archiver.policy.quotas import NO_QUOTAS, BlockedByPerson, Quotas
from archiver.policy.scope import HOOK
from archiver.tools.report.seed_problems import has_failed, seed_problem
from archiver.tools.report.status_counts import NOTHING, StatusCounts, counts_of, listed, urls_in

LABEL = 10  # columns before the message
NARROWEST = 40  # columns for the message
WIDTH = 100  # columns if unknown: files and pipes
LONGEST_EXAMPLE = 60  # characters
MAX_SEEDS = 5  # shown; the table of seeds has all
MAX_HOSTS, MAX_SCRIPTED = 5, 3
MAX_HELD, MOST_HELD = 5, 1000  # patterns in text, and in JSON
MAX_AGAIN, LONGEST_AGAIN = 3, 300  # seeds named in one command, and their characters
EXCLUDED = "archiver urls DIR --state excluded --why", "which URLs, and by which rule"
FETCH_UNCHANGED = "archiver retry DIR --failure unchanged && archiver resume DIR"
BROWSE = "archiver resume DIR --browser auto"
NO_VIEWS = ViewTotals()
GENTLE = "--rate 1/5"  # one request per 5 seconds, for a site that blocked us

BOLD, RED, CYAN, DIM = "1", "1;31", "36", "2"  # ANSI codes


@dataclass(frozen=True, slots=True)
class Finding:
    """One message for the user, and the command to run next."""

    topic: str
    message: str
    command: str = ""  # DIR is a placeholder for the directory
    meaning: str = ""  # what the command does
    trouble: bool = False  # `--strict` exits with code 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a crawl."""

    pages: StatusCounts = NOTHING
    requisites: StatusCounts = NOTHING
    waiting: int = 0
    forbidden: int = 0  # by robots.txt
    forbidden_example: str = ""
    seeds: tuple[SeedAccount, ...] = ()  # with problems
    redirected: tuple[tuple[str, str, str], ...] = ()  # (seed, redirect target, why that is not usable)
    hosts: tuple[RefusingHost, ...] = ()
    missing: Examples = outcomes.NONE
    left_out: Examples = outcomes.NONE  # speculative URLs
    unchanged: int = 0  # pages that a recrawl did not request
    unchanged_example: str = ""
    scripted: tuple[tuple[str, int], ...] = ()  # (seed, scripts): seeds with hardly any links
    held: tuple[HeldPattern, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()  # (regular expression, URLs): by orders
    blocked: tuple[BlockedByPerson, ...] = ()
    run: RunRow | None = None  # the last one
    views: ViewTotals = NO_VIEWS
    hook_refused: Examples = outcomes.NONE
    hook_failed: Examples = outcomes.NONE
    titles: Mapping[str, str] = field(default_factory=dict)  # of seeds, by URL; for findings of a report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: seeds without a usable answer first, then the counts, then the rest."""
        return tuple(sorted(_findings(self), key=lambda finding: not (finding.topic == "seeds" and finding.trouble)))

    @property
    def paused(self) -> bool:
        """True if URLs wait because a host blocks us; the finding about it says what to do."""
        return any(host.paused for host in self.hosts)

    @property
    def trouble(self) -> bool:
        """True if `--strict` exits with code 8."""
        return any(finding.trouble for finding in self.findings)


@dataclass(frozen=True, slots=True)
class FindingStyle:
    """The presentation of findings: the text for DIR in commands, the width, and the topics left out."""

    directory: str = "DIR"  # or the address of the frontier
    width: int = WIDTH
    without: tuple[str, ...] = ()
    colours: bool = False
    is_address: bool = False  # the directory is the address of a frontier
    host: str = ""  # for a report of one host: commands that can are about its URLs alone
    past: bool = False  # another crawl has followed, so no command changes this one


PLAIN = FindingStyle()
NO_VERDICT = Verdict()


def read_verdict(db: Reader, seeds: Iterable[SeedAccount], quotas: Quotas = NO_QUOTAS) -> Verdict:
    """Return the verdict on the crawl in *db*, with its *seeds*; *quotas* know which hosts a person has blocked."""
    groups, blocked, cut = list(outcomes.groups(db)), outcomes.blocked(db), outcomes.truncated(db)
    forbidden = sum(each.urls for each in groups if each.failure == "robots" and each.state == "excluded")
    unchanged = sum(each.urls for each in groups if each.failure == Failure.UNCHANGED and each.state == "excluded")
    return Verdict(
        pages=counts_of("page", groups, blocked, cut),
        requisites=counts_of("requisite", groups, blocked, cut),
        waiting=sum(each.urls for each in groups if each.state == "waiting" and each.kind != "rules"),
        forbidden=forbidden,
        forbidden_example=outcomes.example(db, "robots") if forbidden else "",
        seeds=tuple(seed for seed in seeds if seed_problem(seed)),
        redirected=tuple(outcomes.lost_redirects(db)),
        hosts=tuple(outcomes.refusing(db)),
        missing=outcomes.missing(db),
        left_out=outcomes.left_out(db),
        unchanged=unchanged,
        unchanged_example=outcomes.example(db, Failure.UNCHANGED) if unchanged else "",
        scripted=tuple(outcomes.scripted(db)),
        held=tuple(held_patterns(db)),
        excluded=_excluded(db) if any(each.failure == Failure.RULE for each in groups) else (),
        blocked=tuple(blocked_hosts(db, quotas)),
        run=outcomes.last(db),
        views=views.totals(db),
        hook_refused=outcomes.refused_by(db, HOOK),
        hook_failed=outcomes.hook_failures(db),
    )


def _excluded(db: Reader) -> tuple[tuple[str, int], ...]:
    """Return the regular expressions of orders, and how many URLs each has excluded."""
    found = outcomes.excluded_by_orders(db)
    return tuple((note.removeprefix(note_of("")), urls) for note, urls in found if note.startswith(note_of("")))


def _findings(verdict: Verdict) -> Iterator[Finding]:
    yield _pages(verdict.pages)
    yield from _requisites(verdict)
    yield from _seeds(verdict)
    for seed, target, why in verdict.redirected[:MAX_SEEDS]:
        words = f"{_named(verdict, seed)} redirects to {printable(target)}: {printable(why)}"
        yield Finding("seeds", words, trouble=True)
    yield from _hosts(verdict)
    if verdict.forbidden:
        such = f", such as {_short(verdict.forbidden_example)}"
        words = f"{humanize.count(verdict.forbidden, 'URL is', 'URLs are')} forbidden by robots.txt{such}"
        yield Finding("robots", words, *EXCLUDED)
    for regex, urls in verdict.excluded:
        words = f"{humanize.count(urls, 'URL was', 'URLs were')} excluded from the queue by {printable(regex)}"
        again = f"archiver exclude DIR {quote(regex)} --undo && archiver resume DIR" if regex.isprintable() else ""
        yield Finding("excluded", words, again, "fetch them")
    if verdict.left_out.count:
        such = f"such as {_short(verdict.left_out.first[0][0])}, because most earlier ones did not exist"
        one, several = "URL named only in scripts was", "URLs named only in scripts were"
        words = f"{humanize.count(verdict.left_out.count, one, several)} skipped, {such}"
        yield Finding("skipped", words, *EXCLUDED)
    yield from _hooks(verdict.hook_refused, verdict.hook_failed)
    if verdict.unchanged:
        words = f"{humanize.count(verdict.unchanged, 'URL was', 'URLs were')} not requested again"
        words += f" by --newer-sitemap or --changed-only, such as {_short(verdict.unchanged_example)}"
        yield Finding("left out", words, FETCH_UNCHANGED, "fetch them")
    yield from _browser(verdict)
    yield from _held(verdict.held)
    for each in verdict.blocked:
        words = f"{humanize.count(each.urls, 'URL waits', 'URLs wait')} because a person blocked {each.pattern}"
        again = f"archiver unblock DIR {quote(each.pattern)} && archiver resume DIR"
        yield Finding("held", words, again, "fetch them", trouble=True)
    waiting = verdict.waiting - sum(each.urls for each in verdict.blocked)
    if waiting > 0 and verdict.run is not None and verdict.run.ended and not verdict.paused:
        message = humanize.count(waiting, "URL is waiting", "URLs are waiting")
        yield Finding("waiting", message, resume_command(verdict.run), "continue")


def _pages(pages: StatusCounts) -> Finding:
    """Return how the pages were answered, and the command for what is most wrong."""
    blocked, cut, silent = map(urls_in, (pages.blocked, pages.truncated, pages.unanswered))
    which = "", ""  # for block pages, the finding about their host has the command
    if pages.bad and pages.bad == silent:
        which = "archiver retry DIR && archiver resume DIR", "retry what did not respond"
    elif pages.bad and pages.bad == cut:
        which = "archiver retry DIR --truncated && archiver resume DIR", "fetch incomplete ones again"
    elif cut and cut >= pages.bad - blocked - cut:
        which = "archiver urls DIR --truncated --why", "which URLs, and why"
    elif pages.bad > blocked:
        which = "archiver urls DIR --status 4xx,5xx --why", "which URLs, and why"
    return Finding("pages", pages.format("page", "pages"), *which, trouble=bool(pages.bad))


def _hooks(refused: Examples, failed: Examples) -> Iterator[Finding]:
    if refused.count:
        one = refused.first[0][0] if refused.first else ""
        words = f"{humanize.count(refused.count, 'link was', 'links were')} refused by your hook"
        again = f"archiver include DIR {quote(f'^{re.escape(one)}$')} && archiver resume DIR" if one else ""
        yield Finding("hooks", f"{words}, such as {_short(one)}" if one else words, again, "fetch it")
    if failed.count:
        one, why = failed.first[0]
        words = f"a hook failed for {humanize.count(failed.count, 'URL')}, such as {_short(one)}: {printable(why)}"
        yield Finding("hooks", words, f"archiver retry DIR {quote(one)} && archiver resume DIR", "ask it again")


def _browser(verdict: Verdict) -> Iterator[Finding]:
    """Yield what a browser has found, or what one might find."""
    if verdict.views.incomplete:
        words = humanize.count(verdict.views.incomplete, "page", "pages")
        yield Finding("browser", f"{words} will not replay completely", "archiver look DIR", "see what is missing")
    if verdict.views.due and verdict.run is not None and verdict.run.ended:
        words = humanize.count(verdict.views.due, "page is", "pages are")
        yield Finding("browser", f"{words} still to be shown in a browser", resume_command(verdict.run), "continue")
    if verdict.views.unsent:
        one = verdict.views.such_as
        words = humanize.count(verdict.views.unsent, "URL was", "URLs were")
        words += f" archived without headers that scripts set, such as {_short(one)}"
        command = f"archiver explain DIR {quote(one)}" if len(one) <= LONGEST_EXAMPLE else ""
        yield Finding("browser", words, command, "see which; archiver retry sends them")
    for seed, scripts in () if verdict.views.shown else verdict.scripted[:MAX_SCRIPTED]:
        words = f"{printable(seed)} has {humanize.count(scripts, 'script')} and hardly any links"
        meaning = "show pages in Chromium, and fetch what they ask for"
        yield Finding("scripts", f"{words}; scripts may build its pages", BROWSE, meaning)


def resume_command(run: RunRow | None) -> str:
    """Return the command that continues after *run*, without the limit that ended it."""
    limit = run.reason.split(" ", 1)[0] if run is not None else ""
    named = limit.startswith("--max-") and not limit.startswith("--max-time")
    return f"archiver resume DIR {limit} 0" if named else "archiver resume DIR"


def ending(run: RunRow | None) -> str:
    """Return why the finished *run* ended; empty if unknown."""
    return "" if run is None else run.reason if run.ended else "the process was killed or the machine stopped"


def _requisites(verdict: Verdict) -> Iterator[Finding]:
    counts, missing = verdict.requisites, verdict.missing
    if not counts.total and not missing.count:
        return
    words = counts.format("image, style or script", "images, styles and scripts")
    if not missing.count:
        yield Finding("requisites", words)
        return
    url, why = missing.first[0]
    more = f" and {missing.count - 1} more" if missing.count > 1 else ""
    words += f"; missing: {_short(url)} ({printable(why)}){more}"
    yield Finding("requisites", words, "archiver urls DIR --missing --why", "all missing ones")


def _named(verdict: Verdict, seed: str) -> str:
    """Return the URL of a *seed*, with its title if that is known."""
    title = verdict.titles.get(seed, "")
    return f"{printable(seed)} ({printable(title)})" if title else printable(seed)


def _seeds(verdict: Verdict) -> Iterator[Finding]:
    seeds = verdict.seeds
    failed = [seed for seed in seeds if has_failed(seed)]
    again = " ".join(quote(seed.url) for seed in failed if seed.url.isprintable())
    if len(failed) > MAX_AGAIN or len(again) > LONGEST_AGAIN:
        again = ""
    for number, seed in enumerate(sorted(seeds, key=lambda seed: not has_failed(seed))[:MAX_SEEDS], 1):
        last = number == min(len(failed), MAX_SEEDS)
        command = f"archiver retry DIR {again}".rstrip() + " && archiver resume DIR" if last else ""
        words = f"{_named(verdict, seed.url)} {seed_problem(seed)}"
        yield Finding("seeds", words, command, "retry" if last else "", trouble=has_failed(seed))
    if len(seeds) > MAX_SEEDS:
        yield Finding("seeds", f"and {len(seeds) - MAX_SEEDS} more; reports/seeds.tsv lists all")


def _hosts(verdict: Verdict) -> Iterator[Finding]:
    for host in verdict.hosts[:MAX_HOSTS]:
        refused = listed(host.statuses)
        by = f"; {printable(host.sign)}" if host.sign not in {"", UNMARKED} else ""
        share = f"({refused} on {host.refused} of the last {host.answers}{by})"
        words = f"{printable(host.key)} started to block us at {datetime.fromtimestamp(host.since, UTC):%H:%M} UTC"
        words += f" after {humanize.count(host.pages, 'page')} {share}" if host.pages else f" immediately {share}"
        command = f"archiver retry DIR --blocked && archiver resume DIR {GENTLE}"
        if host.paused:
            words += f"; it is paused with {humanize.count(host.waiting, 'URL')} waiting"
        yield Finding("blocked", words, command, "retry later, slowly", trouble=True)
    if len(verdict.hosts) > MAX_HOSTS:
        yield Finding("blocked", f"and {len(verdict.hosts) - MAX_HOSTS} more hosts", trouble=True)


def _short(url: str) -> str:
    whole = printable(url, 2 * len(url) + LONGEST_EXAMPLE)
    half = LONGEST_EXAMPLE // 2
    return whole if len(whole) <= LONGEST_EXAMPLE else f"{whole[: half - 1]}…{whole[-half:]}"


def _held(patterns: tuple[HeldPattern, ...]) -> Iterator[Finding]:
    for each in patterns[:MAX_HELD]:
        more = f" (plus {humanize.count(each.beyond, 'link')} not queued)" if each.beyond else ""
        behind = humanize.count(each.urls, "URL is", "URLs are")
        words = f"{behind} held{more}: {_short(each.pattern)} looks endless ({printable(each.rule)})"
        words += f", such as {_short(each.example)}"
        yield Finding("held", words, f"{retry_command(each)} && archiver resume DIR", "fetch them", trouble=True)
    if len(patterns) > MAX_HELD:
        left = f"and {humanize.count(len(patterns) - MAX_HELD, 'more pattern')}"
        yield Finding("held", left, f"{retry_command()} && archiver resume DIR", "fetch all", trouble=True)


def lines(verdict: Verdict, style: FindingStyle = PLAIN) -> Iterator[str]:
    """Yield the findings as text; each command is on one line, so that you can copy it."""
    before = ""
    for finding in verdict.findings:
        if finding.topic in style.without:
            continue
        topic = "verdict" if finding.topic in {"pages", "requisites"} else finding.topic
        label = "" if topic == before else topic
        before = topic
        for words in textwrap.wrap(
            finding.message, max(style.width - LABEL, NARROWEST), break_long_words=False, break_on_hyphens=False
        ):
            yield f"{_colour(f'{label:<{LABEL - 1}}', RED if finding.trouble else BOLD, style)} {words}"
            label = ""
        if filled(finding.command, style):
            yield command(finding.command, finding.meaning, style)


def command(text: str, meaning: str, style: FindingStyle, label: str = "") -> str:
    """Format the command *text*, with its meaning if there is room."""
    whole = filled(text, style)
    note = f"   # {meaning}" if meaning and LABEL + len(f"{whole}   # {meaning}") <= style.width else ""
    shown_label = _colour(f"{label:<{LABEL - 1}}", BOLD, style)
    return f"{shown_label} {_colour(whole, CYAN, style)}{_colour(note, DIM, style)}"


def filled(text: str, style: FindingStyle) -> str:
    """Return the command *text* with the crawl of *style* in it, as it can be run; "" if that crawl is over."""
    return " && ".join(_about(one, style) for one in text.split(" && ")) if text and not style.past else ""


TAKE_ADDRESS = frozenset(("add", "exclude", "explain", "report", "retry", "status", "unblock", "urls"))  # commands
TAKE_HOST = frozenset(("retry", "urls"))  # commands


def _about(text: str, style: FindingStyle) -> str:
    """Return one command *text* with the directory in place of DIR, or with the address if it takes one.

    Settings of the whole crawl can be changed in a directory only.
    """
    words = text.split(" ")
    if style.is_address:
        if text == "archiver resume DIR":
            words[1] = "join"
        elif words[1] not in TAKE_ADDRESS:
            return text
    if style.host and words[1] in TAKE_HOST and "--held" not in words and not any("://" in word for word in words):
        words += ["--host", quote(style.host)]
    return " ".join(style.directory if word == "DIR" else word for word in words)


def _colour(text: str, colour: str, style: FindingStyle) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if style.colours and text.strip() else text


def as_json(verdict: Verdict, style: FindingStyle = PLAIN) -> dict[str, Any]:
    """Return the verdict as JSON data, with commands as in *style*."""
    return {
        "pages": verdict.pages.as_json(),
        "requisites": verdict.requisites.as_json(),
        "missing_requisites": verdict.missing.count,
        "forbidden_by_robots": verdict.forbidden,
        "speculative_skipped": verdict.left_out.count,
        "left_out_as_unchanged": verdict.unchanged,
        "waiting": verdict.waiting,
        "views": verdict.views._asdict(),
        "held": [{**asdict(each), "command": filled(retry_command(each), style)} for each in verdict.held[:MOST_HELD]],
        "blocked_by_person": [each._asdict() for each in verdict.blocked],
        "trouble": verdict.trouble,
        "findings": [finding_json(each, style) for each in verdict.findings],
    }


def finding_json(finding: Finding, style: FindingStyle) -> dict[str, Any]:
    """Return *finding* as JSON data."""
    return {
        "topic": finding.topic,
        "message": finding.message,
        "command": filled(finding.command, style),
        "trouble": finding.trouble,
    }
