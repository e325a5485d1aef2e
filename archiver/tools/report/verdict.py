"""The verdict: the result of a crawl in a few lines, each with the next command. Read from crawl.db alone.

The end of a run, `status` and `report` show the same value. Which hosts a person has blocked is in the settings, and
the disk shows which WARC files are lost. Each finding says what happened, to what, and which command to run next.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from archiver import humanize
from archiver.collection.named_crawl import NOTHING_LOST, LostFiles
from archiver.errors import Failure
from archiver.frontier import outcomes, views
from archiver.frontier.connection import Reader
from archiver.frontier.gathered import ERRORS
from archiver.frontier.gathered.redirects import LOWEST
from archiver.frontier.hosts import UNMARKED
from archiver.frontier.outcomes import Examples, RefusingHost, RunRow
from archiver.frontier.retry import HeldPattern, held_patterns, retry_command
from archiver.frontier.totals import SeedAccount
from archiver.frontier.url_queue import blocked_hosts
from archiver.frontier.views import ViewTotals
from archiver.humanize import printable, shortened
from archiver.policy.quotas import NO_QUOTAS, BlockedByPerson, Quotas
from archiver.policy.scope import HOOK
from archiver.tools.report.alike import AlikePages, alike
from archiver.tools.report.findings import PLAIN, Finding, FindingStyle, filled, finding_json
from archiver.tools.report.queue_lists import QueuedList, excluded_by_people, most_queued
from archiver.tools.report.seed_problems import seed_messages, seed_problem
from archiver.tools.report.status_counts import NOTHING, StatusCounts, counts_of, listed, urls_in

MAX_HOSTS, MAX_SCRIPTED = 5, 3
MAX_HELD, MOST_HELD = 5, 1000  # patterns in text, and in JSON
EXCLUDED = "archiver urls DIR --state excluded --why", "which URLs, and by which rule"
FETCH_UNCHANGED = "archiver retry DIR --failure unchanged && archiver resume DIR"
BROWSE = "archiver resume DIR --browser auto"
NO_VIEWS = ViewTotals()
GENTLE = "--rate 1/5"  # one request per 5 seconds, for a site that blocked us


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a crawl."""

    pages: StatusCounts = NOTHING
    requisites: StatusCounts = NOTHING
    waiting: int = 0
    forbidden: int = 0  # by robots.txt
    forbidden_example: str = ""
    seeds: tuple[SeedAccount, ...] = ()  # with problems
    hosts: tuple[RefusingHost, ...] = ()
    missing: Examples = outcomes.NONE
    sitemaps: Examples = outcomes.NONE  # missing or broken ones
    left_out: Examples = outcomes.NONE  # speculative URLs
    unchanged: int = 0  # pages that a recrawl did not request
    unchanged_example: str = ""
    alone: tuple[tuple[str, str], ...] = ()  # (seed, refused link): seeds whose page leads to no other page
    scripted: tuple[tuple[str, int], ...] = ()  # (seed, scripts): seeds with hardly any links
    held: tuple[HeldPattern, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()  # (regular expression, URLs): by orders
    blocked: tuple[BlockedByPerson, ...] = ()
    run: RunRow | None = None  # the last one
    views: ViewTotals = NO_VIEWS
    hook_refused: Examples = outcomes.NONE
    hook_failed: Examples = outcomes.NONE
    queued: QueuedList | None = None
    alike: tuple[AlikePages, ...] = ()
    lost: LostFiles = NOTHING_LOST
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


NO_VERDICT = Verdict()


def read_verdict(db: Reader, seeds: Iterable[SeedAccount], quotas: Quotas = NO_QUOTAS) -> Verdict:
    """Return the verdict on the crawl in *db*, with its *seeds*; *quotas* know which hosts a person has blocked."""
    groups = list(outcomes.groups(db))
    shares = outcomes.blocked(db), outcomes.truncated(db), outcomes.undecodable(db)
    forbidden = sum(each.urls for each in groups if each.failure == "robots" and each.state == "excluded")
    unchanged = sum(each.urls for each in groups if each.failure == Failure.UNCHANGED and each.state == "excluded")
    waiting = sum(each.urls for each in groups if each.state == "waiting" and each.kind != "rules")
    return Verdict(
        pages=counts_of("page", groups, *shares),
        requisites=counts_of("requisite", groups, *shares),
        waiting=waiting,
        forbidden=forbidden,
        forbidden_example=outcomes.example(db, "robots") if forbidden else "",
        seeds=tuple(seed for seed in seeds if seed_problem(seed)),
        hosts=tuple(outcomes.refusing(db)),
        missing=outcomes.missing(db),
        sitemaps=outcomes.faulty_sitemaps(db),
        left_out=outcomes.left_out(db),
        unchanged=unchanged,
        unchanged_example=outcomes.example(db, Failure.UNCHANGED) if unchanged else "",
        alone=() if quotas.single_pages else tuple(outcomes.alone(db, groups)),
        scripted=() if quotas.single_pages else tuple(outcomes.scripted(db)),
        held=tuple(held_patterns(db)),
        excluded=excluded_by_people(db) if any(each.failure == Failure.RULE for each in groups) else (),
        blocked=tuple(blocked_hosts(db, quotas)),
        run=outcomes.last(db),
        views=views.totals(db),
        hook_refused=outcomes.refused_by(db, HOOK),
        hook_failed=outcomes.hook_failures(db),
        queued=most_queued(db, waiting),
        alike=tuple(alike(db)),
    )


def _findings(verdict: Verdict) -> Iterator[Finding]:
    yield _pages(verdict.pages)
    yield from _requisites(verdict)
    yield from _sitemaps(verdict.sitemaps)
    yield from _alone(verdict)
    if verdict.lost.names:
        again = "archiver verify DIR" if verdict.lost.whole else "archiver rebuild DIR && archiver resume DIR"
        yield Finding("archive", verdict.lost.example, again, trouble=True)
    yield from _seeds(verdict)
    yield from _hosts(verdict)
    for group in verdict.alike:
        yield Finding("alike", group.words, group.command, "what they are: a block page, a login?")
    if verdict.forbidden:
        such = f", such as {shortened(verdict.forbidden_example)}"
        words = f"{humanize.count(verdict.forbidden, 'URL is', 'URLs are')} forbidden by robots.txt{such}"
        yield Finding("robots", words, *EXCLUDED)
    for regex, urls in verdict.excluded:
        words = f"{humanize.count(urls, 'URL was', 'URLs were')} excluded from the queue by {printable(regex)}"
        again = f"archiver exclude DIR {quote(regex)} --undo && archiver resume DIR" if regex.isprintable() else ""
        yield Finding("excluded", words, again, "fetch them")
    if verdict.left_out.count:
        such = f"such as {shortened(verdict.left_out.first[0][0])}, because most earlier ones did not exist"
        one, several = "URL named only in scripts was", "URLs named only in scripts were"
        words = f"{humanize.count(verdict.left_out.count, one, several)} skipped, {such}"
        yield Finding("skipped", words, *EXCLUDED)
    yield from _hooks(verdict.hook_refused, verdict.hook_failed)
    if verdict.unchanged:
        words = f"{humanize.count(verdict.unchanged, 'URL was', 'URLs were')} not requested again"
        words += f" by --newer-sitemap or --changed-only, such as {shortened(verdict.unchanged_example)}"
        yield Finding("left out", words, FETCH_UNCHANGED, "fetch them")
    yield from _browser(verdict)
    yield from _held(verdict.held)
    for each in verdict.blocked:
        words = f"{humanize.count(each.urls, 'URL waits', 'URLs wait')} because a person blocked {each.pattern}"
        again = f"archiver unblock DIR {quote(each.pattern)} && archiver resume DIR"
        yield Finding("held", words, again, "fetch them", trouble=True)
    if (most := verdict.queued) is not None:
        yield Finding("queued", f"{most.words}, such as {shortened(most.example)}", most.command, "leave them out")
    waiting = verdict.waiting - sum(each.urls for each in verdict.blocked)
    if waiting > 0 and verdict.run is not None and verdict.run.ended and not verdict.paused:
        message = humanize.count(waiting, "URL is waiting", "URLs are waiting")
        yield Finding("waiting", message, resume_command(verdict.run), "continue")


def _pages(pages: StatusCounts) -> Finding:
    """Return how the pages were answered, and the command for what is most wrong."""
    blocked, cut, silent = urls_in(pages.blocked), pages.cut, urls_in(pages.unanswered)
    which = "", ""  # for block pages, the finding about their host has the command
    if pages.bad and pages.bad == silent:
        which = "archiver retry DIR && archiver resume DIR", "retry what did not respond"
    elif pages.bad and pages.bad == cut:
        which = "archiver retry DIR --truncated && archiver resume DIR", "fetch incomplete ones again"
    elif cut and cut >= pages.bad - blocked - cut:
        which = "archiver urls DIR --truncated --why", "which URLs, and why"
    elif pages.bad > blocked:
        none, errors = (any(one in span for one, _ in pages.by_status) for span in (range(LOWEST), range(ERRORS, 1000)))
        classes = ",".join(["0xx"] * none + ["4xx,5xx"] * errors)
        chosen = f"--status {classes}" if classes else "--state archived"
        which = f"archiver urls DIR {chosen} --why", "which URLs, and why"
    return Finding("pages", pages.format("page", "pages"), *which, trouble=bool(pages.bad))


def _sitemaps(faulty: Examples) -> Iterator[Finding]:
    if faulty.count:
        one, why = faulty.first[0]
        words = humanize.count(faulty.count, "sitemap is", "sitemaps are")
        words += f" missing or broken, such as {shortened(one)} ({printable(why)})"
        words += "; pages that nothing else names are not known"
        again = f"archiver retry DIR {quote(one)} && archiver resume DIR" if faulty.count == 1 else ""
        yield Finding("sitemaps", words, again, "fetch it again", trouble=True)


def _hooks(refused: Examples, failed: Examples) -> Iterator[Finding]:
    if refused.count:
        one = refused.first[0][0] if refused.first else ""
        words = f"{humanize.count(refused.count, 'link was', 'links were')} refused by your hook"
        again = f"archiver include DIR {quote(f'^{re.escape(one)}$')} && archiver resume DIR" if one else ""
        yield Finding("hooks", f"{words}, such as {shortened(one)}" if one else words, again, "fetch it")
    if failed.count:
        one, why = failed.first[0]
        words = f"a hook failed for {humanize.count(failed.count, 'URL')}, such as {shortened(one)}: {printable(why)}"
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
        words += f" archived without headers that scripts set, such as {shortened(one)}"
        command = f"archiver explain DIR {quote(one)}" if len(one) <= humanize.LONGEST_EXAMPLE else ""
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


def _seeds(verdict: Verdict) -> Iterator[Finding]:
    for words, again, meaning, failed in seed_messages(verdict.seeds, verdict.titles):
        yield Finding("seeds", words, again, meaning, trouble=failed)


def _alone(verdict: Verdict) -> Iterator[Finding]:
    """Yield the seeds whose page leads to no other page, if the crawl has hardly any pages."""
    told = {seed for seed, _ in verdict.scripted}
    for seed, link in [each for each in verdict.alone if each[0] not in told][:MAX_SCRIPTED]:
        if link:
            words = f"{printable(seed)} links only to pages out of scope, such as {shortened(link)}"
            again = f"archiver add DIR {quote(link)} && archiver resume DIR" if link.isprintable() else ""
            yield Finding("pages", words, again, "crawl that too")
        elif not verdict.views.shown:
            words = f"{printable(seed)} has no links to other pages of its site; scripts may build them,"
            words += " or this is a notice, and another seed leads further"
            yield Finding("pages", words, BROWSE, "show pages in Chromium")


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
    words += f"; missing: {shortened(url)} ({printable(why)}){more}"
    yield Finding("requisites", words, "archiver urls DIR --missing --why", "all missing ones")


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


def _held(patterns: tuple[HeldPattern, ...]) -> Iterator[Finding]:
    for each in patterns[:MAX_HELD]:
        more = f" (plus {humanize.count(each.beyond, 'link')} not queued)" if each.beyond else ""
        behind = humanize.count(each.urls, "URL is", "URLs are")
        words = f"{behind} held{more}: {shortened(each.pattern)} looks endless ({printable(each.rule)})"
        if each.often_brought_news:
            words += f", although {each.fruitful:,} of its {humanize.count(each.visited, 'page')} brought something new"
        words += f", such as {shortened(each.example)}"
        yield Finding("held", words, f"{retry_command(each)} && archiver resume DIR", "fetch them", trouble=True)
    if len(patterns) > MAX_HELD:
        left = f"and {humanize.count(len(patterns) - MAX_HELD, 'more pattern')}"
        yield Finding("held", left, f"{retry_command()} && archiver resume DIR", "fetch all", trouble=True)


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
        "alike": [asdict(each) for each in verdict.alike],
        "queued": None if verdict.queued is None else asdict(verdict.queued),
        "views": verdict.views._asdict(),
        "held": [{**asdict(each), "command": filled(retry_command(each), style)} for each in verdict.held[:MOST_HELD]],
        "blocked_by_person": [each._asdict() for each in verdict.blocked],
        "trouble": verdict.trouble,
        "findings": [finding_json(each, style) for each in verdict.findings],
    }
