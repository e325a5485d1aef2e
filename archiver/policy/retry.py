"""Failures, and when to try again: a URL, a host that does not answer, or our own network. Pure: time is an argument.

A host that fails `HOST_FAILURES` times in a row is backed off from: its URLs keep their tries, and one probe at a time,
after growing pauses, checks if it is back. A host that has answered before may come back, so we wait for it with
patience. One that never answered is mostly a dead name, and ten thousand of its URLs prove no more than one. We give it
up when one URL would have used up its tries.
Invariants: any answer ends the backoff. A host is given up only after it failed for the whole patience and in a last
probe.

Our own network is down if nothing comes from any host. A sign is anything that came over it: a connection that was
made, a byte. A failure counts only if there was no sign since its visit began. If a host failed before the latest sign
came, it is down by itself; this holds in a later run too, for the failures of a single host alone do not show whether
it is the host or our network.
Invariants: after a sign the network is not lost. Nothing that fails while it is lost is the site's fault. The doubt
about the failure of one URL ends with the first sign after it.
"""

from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum
from math import nextafter

from archiver.errors import Failure
from archiver.http.chunked import CHUNK_FAULT
from archiver.model import Event, Framing, Truncation

NEVER = float("inf")

OVERLOADED = frozenset((408, 425, 429, 502, 503, 504))  # the server asks us to wait, so the URL is due again
TOO_MANY = 429  # is about us, not the URL: the whole host rests, even without a Retry-After
FIRST_PAUSE = 2.0  # seconds before the first retry; each later one waits twice as long
LONGEST_PAUSE = 3600.0
LONGEST_PARK = 86_400.0  # seconds: we follow a Retry-After for at most a day, then we ask again

ONCE = FIRST_PAUSE / 2  # a patience too short for a second try

CUT = frozenset((Truncation.DISCONNECT, Truncation.TIME))  # may be complete the next time


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The outcome of a visit for the frontier."""

    event: Event
    note: str = ""
    due: float = 0.0
    not_before: float = 0.0


def pause(tries: int) -> float:
    """Return the seconds to wait after try number *tries* (the first is 0) failed."""
    return min(FIRST_PAUSE * 2.0 ** min(tries, 30), LONGEST_PAUSE)


def after_answer(
    framing: Framing, truncated: Truncation | None, tries: int, retries: int, now: float, *, is_damaged: bool = False
) -> RetryDecision:
    """Decide after an answer was captured on try number *tries* (the first is 0).

    *is_damaged*: its framing or its coding breaks, or it is only a part.
    """
    wait, rest = retry_after(framing, now), rest_after(framing, tries, now)
    not_before = now + rest if rest else 0.0
    faults = f"malformed: {', '.join(framing.faults)}" if framing.faults else ""
    if framing.status in OVERLOADED:
        due = now + max(wait, pause(tries))
        event = Event.RETRY if tries < retries else Event.CAPTURE
        return RetryDecision(event, f"overloaded: answered {framing.status}", due, not_before=not_before)
    note = faults if truncated is None else cut_note(truncated) + (f"; {faults}" if faults else "")
    if (truncated in CUT or is_damaged) and tries < min(retries, 1):
        return RetryDecision(Event.RETRY, note, now + pause(tries), not_before)
    return RetryDecision(Event.CAPTURE, note, not_before=not_before)


CODING_FAULT = "content-coding"  # fault word for a body that is not encoded as its head says
PART_FAULT = "unasked-part"  # fault word for a 206 to a request that asked for the whole
DAMAGE = frozenset((CODING_FAULT, CHUNK_FAULT, PART_FAULT))  # faults after which a body may be requested once more


def cut_note(truncated: Truncation) -> str:
    """Return the note on a URL whose answer is incomplete."""
    return f"cut: {truncated.value}"


def after_rules(
    framing: Framing, truncated: Truncation | None, tries: int, patience: float, now: float, *, is_cut: bool = False
) -> RetryDecision:
    """Decide after an answer for robots.txt on try number *tries*. Errors are retried while `is_patient` is true.

    Until then no other request goes to the host (RFC 9309 §2.3.1.4). We also wait as long as Retry-After says.
    *is_cut*: a part of the rules is missing.
    """
    decision = after_answer(framing, truncated, tries, 0, now)
    silent = framing.status in OVERLOADED or framing.status >= 500 or is_cut or truncated in CUT
    if not silent or not is_patient(tries, patience):
        return decision
    note = decision.note or f"answered {framing.status}"
    return RetryDecision(Event.RETRY, note, now + max(pause(tries), retry_after(framing, now)), decision.not_before)


def is_patient(tries: int, patience: float) -> bool:
    """Return True if the pauses up to the next try add up to at most *patience* seconds (0: no limit)."""
    return not patience or sum(map(pause, range(tries + 1))) <= patience


def after_no_rules(failure: Failure, reason: str, tries: int, limits: tuple[int, float], now: float) -> RetryDecision:
    """Decide after try number *tries* brought no robots.txt. *limits*: the retries of any URL, and the patience.

    If a host has shown no sign of life, its robots.txt is given up like any URL. More tries than that mean that the
    host had answered before.
    """
    retries, patience = limits
    decision = after_failure(failure, reason, tries, retries, now)
    lives = tries > retries or failure is Failure.DISCONNECT
    if decision.event is Event.GIVE_UP and lives and is_patient(tries, patience):
        return RetryDecision(Event.RETRY, decision.note, now + pause(tries))
    return decision


def rest_after(framing: Framing, tries: int, now: float) -> float:
    """Return the seconds without any request to the host, after this answer on try number *tries*.

    Retry-After counts with every status except 2xx, which needs no retry.
    """
    if 200 <= framing.status < 300:
        return 0.0
    wait = retry_after(framing, now)
    return max(wait, pause(tries)) if framing.status == TOO_MANY else wait


def after_failure(failure: Failure, reason: str, tries: int, retries: int, now: float) -> RetryDecision:
    """Decide after no answer came on try number *tries* (the first is 0)."""
    note = f"{failure.value}: {reason}"
    if failure is Failure.PRIVATE:  # our own rule; another try cannot change it
        return RetryDecision(Event.FORBID, note)
    if tries < retries and failure is not Failure.PROXY:  # no way leads there, and another try cannot change it
        return RetryDecision(Event.RETRY, note, now + pause(tries))
    return RetryDecision(Event.GIVE_UP, note)


def retry_after(framing: Framing, now: float) -> float:
    """Return the seconds in Retry-After (RFC 9110 §10.2.3: seconds or a date), or 0 if it is not usable.

    A date is compared with the server's clock if the answer has a Date, because ours may be wrong by hours.
    """
    value = (framing.first("retry-after") or "").strip()
    if not value:  # as in most answers
        return 0.0
    if value.isascii() and value.isdigit():
        return min(float(value), LONGEST_PARK)
    moment = _moment(value)
    if moment is None:
        return 0.0
    sent = _moment(framing.first("date") or "")
    return min(max(0.0, moment - (now if sent is None else sent)), LONGEST_PARK)


def _moment(date: str) -> float | None:
    """Return the seconds since the epoch of an HTTP date, or None if it is invalid."""
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:  # HTTP dates are in GMT, even if they do not say so
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


HOST_FAILURES = 5  # failures in a row: more than the tries of one URL, which may fail alone
FIRST_HOST_PAUSE = 5.0  # seconds until the first probe; each later one waits twice as long …
LONGEST_HOST_PAUSE = 300.0  # … up to this: we notice within five minutes that a host is back


@dataclass(frozen=True, slots=True)
class HostBackoff:
    """The saved backoff of a host. All zero: it does not fail."""

    since: float = 0.0  # seconds since the epoch
    pause: float = 0.0  # before the next probe; 0: no backoff
    until: float = 0.0  # seconds since the epoch: no request before


NO_BACKOFF = HostBackoff()


@dataclass(slots=True, eq=False)
class HostFailures:
    """The failures of one host since its latest answer."""

    in_a_row: int = 0  # while our own network was up
    backoff: HostBackoff = NO_BACKOFF
    unreachable_since: float = NEVER  # the first failure on the line, which may be our network's …
    outage: int = 0  # … and how many outages we had had by then; see `NetworkState`

    @property
    def backing_off(self) -> bool:
        """True if the host gets only probes."""
        return self.backoff.pause > 0


class BackoffVerdict(Enum):
    """The consequences of a failure."""

    UP = "the URL loses a try, and that is all"
    BACKING_OFF = "no request before `until`, and then a single one"
    GIVEN_UP = "the host is given up"


class BackoffPolicy:
    """The rules for hosts that fail."""

    def __init__(self, patience: float, *, first_pause: float = FIRST_HOST_PAUSE) -> None:
        """*patience* in seconds, 0: no limit."""
        self._patience = patience or NEVER
        self._first_pause = first_pause

    def recall(self, host: HostFailures, saved: HostBackoff) -> None:
        """Continue from what an earlier run saved, unless this run knows better."""
        if saved.since and not host.in_a_row:
            host.in_a_row, host.backoff = HOST_FAILURES if saved.pause else 1, saved

    def answered(self, host: HostFailures) -> bool:
        """Record an answer; return True if it has ended a backoff."""
        ended = host.backing_off
        host.in_a_row, host.backoff = 0, NO_BACKOFF
        return ended

    def failed(self, host: HostFailures, now: float, longest: float = NEVER) -> BackoffVerdict:
        """Record a failure that is not our network's; *longest*: the patience with this host, if that is less."""
        if host.backing_off and now < host.backoff.until:  # this visit was in flight when the backoff began
            return BackoffVerdict.BACKING_OFF
        if not host.in_a_row:
            host.backoff = HostBackoff(since=now)
        host.in_a_row += 1
        if host.in_a_row < HOST_FAILURES:
            return BackoffVerdict.UP
        before = host.backoff
        left = before.since + min(self._patience, longest) - now
        pause = min(2 * before.pause, LONGEST_HOST_PAUSE) if before.pause else self._first_pause
        until = now + max(0.0, min(pause, left))  # the last probe comes when the patience ends
        host.backoff = replace(before, pause=pause, until=until)
        return BackoffVerdict.BACKING_OFF if left > 0 else BackoffVerdict.GIVEN_UP


LINE = frozenset((Failure.DNS, Failure.CONNECT, Failure.DISCONNECT, Failure.TIMEOUT))  # may be our network's fault

NETWORK_FAILURES = 3  # failures without a sign, because one or two mean nothing …
SPAN = 4.0  # … and so many seconds from the first to the last, because a router restarts its table in less
QUIET = 5.0  # seconds; a sign from early in a long visit proves nothing about its end
FIRST_NETWORK_PAUSE = 2.0  # seconds until the first probe; each later one waits twice as long …
LONGEST_NETWORK_PAUSE = 30.0  # … up to this: one request every half minute is no burden for a site
LONGEST_DOUBT = 60.0  # seconds; an outage is evident by then


class NetworkState:
    """The state of our own network, as far as we know it."""

    def __init__(self, *, span: float = SPAN, first_pause: float = FIRST_NETWORK_PAUSE) -> None:
        self._span = span
        self._first_pause = first_pause
        self.lost = False
        self.next_start = -NEVER  # when the next request may start, or the next probe while the network is lost
        self._sign = -NEVER  # time of the latest sign
        self.since = NEVER  # the first failure since then; infinity if there is none
        self._failures = 0
        self._failing: HostFailures | None = None  # the host that failed first since then …
        self._several = False  # … and if it is not the only one
        self._hopeful = False  # one of them was up until then
        self._outages = 0  # failures from before an outage do not count
        self._pause = 0.0  # seconds between probes
        self._doubted: dict[int, float] = {}  # URL id: time of its last failure with an unclear cause

    def down(self, host: HostFailures) -> bool:
        """Return True if something came over the network since *host* fails, so that the network is not to blame."""
        return self._sign > self._since(host)

    def recall(self, host: HostFailures, since: float) -> None:
        """Restore that *host* was down alone when the last run ended: it had failed since then, others answered."""
        self._fails_since(host, since)
        self._sign = max(self._sign, nextafter(since, NEVER))

    def unreachable(self, host: HostFailures) -> None:
        """Forget the failures of *host*: no one could have reached it, so they do not show that it is down."""
        host.unreachable_since = NEVER

    def sign(self, at: float) -> None:
        """Record that something came over the network at *at*."""
        if at > self._sign:
            if self.lost:
                self._outages += 1  # no host could have answered
            self._sign = at
            self.since, self._failures, self._hopeful = NEVER, 0, False
            self._failing, self._several = None, False
            self.lost, self.next_start = False, -NEVER

    def answered(self, host: HostFailures, claim: int) -> None:
        """Record that *host* has answered for the URL with id *claim*."""
        host.unreachable_since = NEVER
        self._doubted.pop(claim, None)

    def _since(self, host: HostFailures) -> float:
        return host.unreachable_since if host.outage == self._outages else NEVER

    def _fails_since(self, host: HostFailures, now: float) -> float:
        """Return when *host* began to fail: *now* if it did not fail before."""
        if self._since(host) == NEVER:
            host.unreachable_since, host.outage = now, self._outages
        return host.unreachable_since

    def failed(self, host: HostFailures, began: float, now: float, *, known: bool, alone: bool) -> None:
        """Record that a visit of *host* that *began* then failed on the line.

        *known*: it has answered before, or we certainly could not have reached it. *alone*: no other host can be asked
        soon, so this one is the only witness.
        """
        since = self._fails_since(host, now)
        if self._sign >= max(began, now - QUIET):
            return
        self.since = min(self.since, now)
        self._failures += 1
        self._several = self._several or self._failing not in (None, host)
        self._failing = self._failing or host
        self._hopeful = self._hopeful or (known and since > self._sign)
        if self.lost:
            self.next_start = max(self.next_start, now + self._first_pause)
        elif (
            self._failures >= NETWORK_FAILURES
            and now - self.since >= self._span
            and self._hopeful
            and (alone or self._several)
        ):
            self.lost, self._pause, self.next_start = True, self._first_pause, now + self._first_pause
            self._doubted.clear()

    def probe(self, now: float) -> None:
        """Record that a request starts while the network is lost."""
        self._pause = min(2 * self._pause, LONGEST_NETWORK_PAUSE)
        self.next_start = now + self._pause

    def is_ours(self, host: HostFailures, claim: int, span: tuple[float, float], *, known: bool, others: bool) -> bool:
        """Return True if the last failure of URL *claim*, of a visit over *span*, may be our network's fault.

        *known* as above; *others*: requests to other hosts are under way and will soon show it.
        """
        if self.lost:
            return True
        began, now = span
        doubted = self._doubted.setdefault(claim, now)
        proven = self._sign >= began or self._sign > min(doubted, self._since(host))
        telling = others and self._sign < now - QUIET and now - doubted < LONGEST_DOUBT
        if proven or not (known or telling):
            del self._doubted[claim]
            return False
        return True
