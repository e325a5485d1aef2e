"""The retry policy: decide after a visit if and when a URL is visited again. Pure: the time is an argument."""

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from archiver.errors import Failure
from archiver.model import Event, Framing, Truncation

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


def after_answer(framing: Framing, truncated: Truncation | None, tries: int, retries: int, now: float) -> RetryDecision:
    """Decide after an answer was captured on try number *tries* (the first is 0)."""
    wait, rest = retry_after(framing, now), rest_after(framing, tries, now)
    not_before = now + rest if rest else 0.0
    faults = f"malformed: {', '.join(framing.faults)}" if framing.faults else ""
    if framing.status in OVERLOADED:
        due = now + max(wait, pause(tries))
        event = Event.RETRY if tries < retries else Event.CAPTURE
        return RetryDecision(event, f"overloaded: answered {framing.status}", due, not_before=not_before)
    if truncated is not None:
        note = f"cut: {truncated.value}" + (f"; {faults}" if faults else "")
        again = truncated in CUT and tries < min(retries, 1)
        return RetryDecision(
            Event.RETRY if again else Event.CAPTURE, note, now + pause(tries) if again else 0.0, not_before
        )
    return RetryDecision(Event.CAPTURE, faults, not_before=not_before)


def after_rules(
    framing: Framing, truncated: Truncation | None, tries: int, patience: float, now: float
) -> RetryDecision:
    """Decide after an answer for robots.txt on try number *tries*. Errors are retried while `is_patient` is true.

    Until then no other request goes to the host (RFC 9309 §2.3.1.4). We also wait as long as Retry-After says.
    """
    decision = after_answer(framing, truncated, tries, 0, now)
    silent = framing.status in OVERLOADED or framing.status >= 500 or truncated in CUT
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
    if tries < retries:
        return RetryDecision(Event.RETRY, note, now + pause(tries))
    return RetryDecision(Event.GIVE_UP, note)


def retry_after(framing: Framing, now: float) -> float:
    """Return the seconds in Retry-After (RFC 9110 §10.2.3: seconds or a date), or 0 if it is not usable.

    A date is compared with the server's clock if the answer has a Date, because ours may be wrong by hours.
    """
    value = (framing.first("retry-after") or "").strip()
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
