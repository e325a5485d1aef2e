"""Format what `explain` and `urls` print: an explanation as text or JSON, and the reason for a state on one line.

The text is brief: a label, its value, and nothing that does not apply. Everything from the network is made safe for a
terminal.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from archiver import humanize
from archiver.config.seeds import NO_ABOUT, SeedAbout
from archiver.config.settings import Settings
from archiver.frontier.totals import BLOCKS_US
from archiver.frontier.url_lookup import DiscoveryStep, HostState, RefusedLink, StoredCapture, UrlRow
from archiver.humanize import duration, iso, printable, volume
from archiver.model import Hop, State
from archiver.policy.quotas import Allowance
from archiver.tools.report.seed_problems import seed_label

MAX_URL = 2000  # characters shown
FIRST_STEPS, LAST_STEPS = 3, 8  # of a long path
CAPTURES_SHOWN = 5
REFUSED = "refused"  # not a state of the frontier: a link out of scope

HOPS = {
    Hop.LINK: "link",
    Hop.REQUISITE: "requisite",
    Hop.SPECULATIVE: "speculative",
    Hop.REDIRECT: "redirect",
    Hop.PREREQUISITE: "robots.txt",
    Hop.MANIFEST: "sitemap",
}


class RuleDecision(StrEnum):
    """The decision of a rule, made or predicted."""

    TOOK = "taken"
    REFUSED = "refused"
    HELD = "held"
    WOULD_TAKE = "would be taken"
    WOULD_REFUSE = "would be refused"
    WOULD_HOLD = "would be held"


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """A decision, the rule as the settings have it, and details."""

    decision: RuleDecision
    rule: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HostSetting:
    """A setting of one host, and the rule that sets it."""

    key: str
    value: Any  # as in crawl.toml
    rule: str

    def __str__(self) -> str:
        values = self.value if isinstance(self.value, list) else [self.value]
        shown = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
        return f"{self.key}: {shown} ({self.rule})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything known about a URL at one moment. Without `row` it is not in the frontier."""

    url: str
    now: float
    verdict: RuleVerdict
    running: bool  # a process is running the crawl
    settings: Settings  # of its host
    row: UrlRow | None = None
    refused: RefusedLink | None = None  # its entry in the sample of refused links
    unsampled: tuple[tuple[str, int], ...] = ()  # rules that refused more links to its host than the sample holds
    path: tuple[DiscoveryStep, ...] = ()  # from the seed; of a refused URL, to the page that links to it
    path_cut: bool = False  # the first steps are not known
    about: SeedAbout = NO_ABOUT  # what the user says of the seed at the head of the path
    link_context: str = ""  # element and attribute of the last link on the path
    captures: tuple[StoredCapture, ...] = ()
    host: HostState | None = None
    host_settings: tuple[HostSetting, ...] = ()  # that rules set for its host
    delay: float = 0.0  # Crawl-delay
    ahead: int = 0
    other: str = ""  # the URL with https for http, or the reverse, if the crawl knows only that

    @property
    def state(self) -> str:
        """The state in the frontier; otherwise refused or unknown."""
        if self.row is not None:
            return self.row.state.value
        return REFUSED if self.refused is not None else "unknown"

    @property
    def allowance(self) -> Allowance:
        """The limits of its host."""
        return Allowance.of(self.settings.limits)

    @property
    def due(self) -> float:
        """The earliest time at which it can be fetched; 0 if it is not waiting."""
        if self.row is None or self.row.state is not State.WAITING:
            return 0.0
        return max(self.row.due, self.host.not_before if self.host else 0.0, self.now)


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Yield the lines of the explanation *found*."""
    yield from _rows("url", [printable(found.url, MAX_URL)])
    yield from _rows("state", [printable(_standing(found), MAX_URL)])
    yield from _rows("rule", list(_rule(found)))
    yield from _rows("path", list(_path(found)))
    if found.row is not None:
        yield from _rows("tries", [printable(_tries(found.row), MAX_URL)])
    yield from _rows("captures", list(_captures(found)))
    yield from _rows("due", list(map(printable, _waits(found))))
    yield from _rows("host", [printable(_host(found), MAX_URL)])
    yield from _rows("settings", [printable(str(each), MAX_URL) for each in found.host_settings])


def _rows(label: str, texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"{'' if number else label:<9} {text}"


def _standing(found: Explanation) -> str:
    row = found.row
    if row is None:
        would = found.verdict.decision.value
        if found.refused is not None:
            return f"refused when the crawl found it; with the current settings it {would}"
        return f"unknown: no page of the crawl links to it, or the link was refused; a link to it {would}"
    reason = state_reason(row, found.now, found.allowance)
    return f"{row.state.value}{': ' if reason else ''}{reason}"


def held_back(row: UrlRow, allowance: Allowance) -> str:
    """Return what keeps *row* waiting, in words: a limit of its host, or a person; "" if neither does."""
    waits = row.state is State.WAITING and (row.priority >= 0 or bool(allowance.block))
    return allowance.stop(row.visited, row.received) if waits else ""


def state_reason(row: UrlRow, now: float, allowance: Allowance) -> str:
    """Return the reason for the state of *row* in a few words; of a waiting URL, what it waits for."""
    match row.state:
        case State.ARCHIVED:
            answered = f"answered {row.status}" if row.status else "answered"
            return row.note if answered in row.note else "; ".join(filter(None, (answered, row.note)))
        case State.FAILED | State.EXCLUDED:
            return row.note if row.failure and row.note.startswith(row.failure) else _joined(row.failure, row.note)
        case State.HELD:
            return row.note
    last = row.note or (f"answered {row.status}" if row.status else "")
    if row.language:
        last = _joined(f"next with Accept-Language {row.language}", last)
    if limit := held_back(row, allowance):
        return _joined(limit, last)
    if row.due > now:
        return _joined(f"a retry in {duration(row.due - now)}" if row.tries else f"in {duration(row.due - now)}", last)
    return _joined("due again", last) if row.again or row.tries else "due"


def _joined(one: str, other: str) -> str:
    return ": ".join(filter(None, (one, other)))


def _rule(found: Explanation) -> Iterator[str]:
    verdict = found.verdict
    if found.refused is not None and found.row is None:
        yield printable(f"refused by {found.refused.rule}", MAX_URL)
        yield printable(f"linked from {found.refused.via}", MAX_URL)
        if verdict.decision is RuleDecision.WOULD_REFUSE and verdict.rule == found.refused.rule:
            return
    yield printable(f"{verdict.decision.value} by {verdict.rule}", MAX_URL)
    if verdict.detail:
        yield printable(verdict.detail, MAX_URL)
    for rule, links in () if found.row or found.refused else found.unsampled[:3]:
        yield printable(f"({links} links to this host were refused by {rule}; only a sample of them is kept)")


def _path(found: Explanation) -> Iterator[str]:
    steps = found.path
    if found.path_cut:
        yield "… (the first steps are not known)"
    left_out = len(steps) - FIRST_STEPS - LAST_STEPS
    for number, step in enumerate(steps):
        if left_out > 1 and number == FIRST_STEPS:
            yield f"… {left_out} more"
        if left_out > 1 and FIRST_STEPS <= number < FIRST_STEPS + left_out:
            continue
        label = "" if step.hop else seed_label(found.about)
        yield f"{_letter(step):<13} {printable(step.url, MAX_URL)}{f' ({printable(label)})' if label else ''}"
    if steps and found.row is None:
        yield f"{f'  {REFUSED}':<13} {printable(found.url, MAX_URL)}"
    if found.link_context:
        yield f"{'':<13} (in {printable(found.link_context)})"


def _letter(step: DiscoveryStep) -> str:
    return f"{step.hop.value} {HOPS[step.hop]}" if step.hop else "  seed"


def _tries(row: UrlRow) -> str:
    last = row.failure or (f"status {row.status}" if row.status else "")
    again = f"; queued again {humanize.count(row.again, 'time')}" if row.again else ""
    last_try = f", the last {iso(row.settled)}: {last or 'no answer'}" if row.settled else ""
    return f"{row.tries}{last_try}{again}"


def _captures(found: Explanation) -> Iterator[str]:
    for capture in found.captures[:CAPTURES_SHOWN]:
        cut = f", cut: {capture.truncated}" if capture.truncated else ""
        cut += f", a revisit: {capture.revisit}" if capture.revisit else ""
        cut += f", Accept-Language: {capture.language}" if capture.language else ""
        what = f"{capture.status} {capture.mime}".strip()
        yield printable(f"{iso(capture.moment)}  {what}, {volume(capture.received)}{cut}", MAX_URL)
        of = f" of {capture.machine}" if capture.machine else ""
        yield printable(f"  archive/{capture.file}{of}, offset {capture.offset}, {capture.digest}", MAX_URL)
    more = len(found.captures) - CAPTURES_SHOWN
    if more > 0:
        yield f"and {more} earlier"


def _waits(found: Explanation) -> Iterator[str]:
    """Yield everything that must happen before a waiting URL is fetched."""
    row, host = found.row, found.host
    if row is None or row.state is not State.WAITING:
        return
    limit = held_back(row, found.allowance)
    if limit:
        yield limit if found.allowance.block else f"a larger limit: {limit}"
    blocked = bool(limit)
    if host is not None and host.paused:
        why = "refuses us" if host.paused == BLOCKS_US else "needs a login"
        yield f"the next run: its host {why} and is paused"
        blocked = True
    if host is not None and host.not_before > found.now:
        reason = "its host does not answer" if host.failing_since else "its host asked us to wait"
        yield f"{reason}, until {iso(host.not_before)}, in {duration(host.not_before - found.now)}"
        blocked = True
    if row.due > found.now:
        yield f"not before {iso(row.due)}, in {duration(row.due - found.now)}"
        blocked = True
    if host is not None and host.robots == "unknown" and row.priority >= 0 and _obeys(found):
        yield "once robots.txt of its host is fetched"
        blocked = True
    if not blocked:
        yield "now"
    if found.ahead:
        yield f"{humanize.count(found.ahead, 'other URL')} of its host first"
    if not found.running:
        yield "the crawl is not running; to continue: archiver resume"


def _host(found: Explanation) -> str:
    host = found.host
    if host is None:
        return "not known to the crawl yet"
    robots = {"unknown": "not requested yet", "known": "answered", "unreachable": "could not be fetched"}[host.robots]
    if host.answer is not None and host.answer.status:
        robots += f" {host.answer.status}" if host.robots == "known" else f" ({host.answer.status})"
    parts = [host.key, f"{host.waiting} waiting", f"robots.txt {robots}", _rate(found)]
    if found.delay:
        parts.append(f"Crawl-delay {found.delay:g} s")
    if host.slowed:
        parts.append(f"slowed down ({host.slowed})" + (f" to {humanize.rate(host.rate)}" if host.rate else ""))
    if host.failing_since:
        parts.append(f"no answer since {iso(host.failing_since)}")
    return ", ".join(parts)


def _rate(found: Explanation) -> str:
    rate = found.settings.politeness.rate
    return f"rate: {rate}" if rate.starts else f"rate: {rate} (no limit)"


def _obeys(found: Explanation) -> bool:
    return found.settings.politeness.robots == "obey"


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return *found* as a JSON object."""
    row, host = found.row, found.host
    return {
        "url": found.url,
        "known": row is not None or found.refused is not None,
        "state": found.state,
        "running": found.running,
        "decision": found.verdict.decision.value,
        "rule": found.verdict.rule,
        "detail": found.verdict.detail,
        "refused": {"rule": found.refused.rule, "via": found.refused.via} if found.refused else None,
        "refused_on_host": dict(found.unsampled),
        "reason": state_reason(row, found.now, found.allowance) if row else "",
        "path": _steps(found),
        "path_cut": found.path_cut,
        "link_context": found.link_context,
        "hops": row.path if row else None,
        "depth": row.depth if row else None,
        **tries_json(row),
        "captures": [_capture(capture) for capture in found.captures],
        "due": iso(found.due),
        "waits_for": list(_waits(found)),
        "ahead": found.ahead,
        "host": {
            **{
                name: value
                for name, value in asdict(host).items()
                if name not in {"answer", "not_before", "failing_since"}
            },
            "not_before": iso(host.not_before),
            "failing_since": iso(host.failing_since),
            "robots_status": host.answer.status if host.answer else None,
            "crawl_delay": found.delay,
            "configured": _rate(found),
        }
        if host
        else None,
        "host_settings": {each.key: {"value": each.value, "rule": each.rule} for each in found.host_settings},
    }


def tries_json(row: UrlRow | None) -> dict[str, Any]:
    """Return the tries of *row* and their last result."""
    if row is None:
        return {"tries": 0, "again": 0, "status": 0, "failure": "", "note": "", "settled": None}
    return {
        "tries": row.tries,
        "again": row.again,
        "status": row.status,
        "failure": row.failure,
        "note": row.note,
        "settled": iso(row.settled),
    }


def _steps(found: Explanation) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [
        {"url": step.url, "hop": step.hop.value if step.hop else "", "how": _how(step)} for step in found.path
    ]
    if steps and not found.path[0].hop and found.about:
        steps[0]["about"] = asdict(found.about)
    last = [{"url": found.url, "hop": "", "how": REFUSED}] if steps and found.row is None else []
    return steps + last


def _how(step: DiscoveryStep) -> str:
    return HOPS[step.hop] if step.hop else "seed"


def _capture(capture: StoredCapture) -> dict[str, Any]:
    return {**asdict(capture), "moment": iso(capture.moment), "file": f"archive/{capture.file}"}
