"""What a visit means for its URL: the last word, or due again later, and when. Pure: the time is an argument."""

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from archiver.errors import Failure
from archiver.model import Event, Framing, Truncation

OVERLOADED = frozenset((408, 425, 429, 502, 503, 504))  # the server asks for patience, so the URL is due again
TOO_MANY = 429  # is about us, not about the URL: the whole host rests, even where the answer does not say how long
FIRST_PAUSE = 2.0  # seconds before the first retry; each further one waits twice as long
LONGEST_PAUSE = 3600.0
LONGEST_PARK = 86_400.0  # seconds a Retry-After is followed: a day, after which the answer is worth another look

CUT = frozenset((Truncation.DISCONNECT, Truncation.TIME))  # may be whole the next time


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the frontier is told of a visit."""

    event: Event
    note: str = ""
    due: float = 0.0
    park: float = 0.0


def pause(tries: int) -> float:
    """Seconds to wait after try number *tries* (the first is 0) failed."""
    return min(FIRST_PAUSE * 2.0 ** min(tries, 30), LONGEST_PAUSE)


def after_answer(framing: Framing, truncated: Truncation | None, tries: int, retries: int, now: float) -> Outcome:
    """An answer was captured on try number *tries* (the first is 0)."""
    faults = f"malformed: {', '.join(framing.faults)}" if framing.faults else ""
    if framing.status in OVERLOADED:
        wait = retry_after(framing, now)
        due = now + max(wait, pause(tries))
        event = Event.RETRY if tries < retries else Event.CAPTURE
        rest = max(wait, pause(tries)) if framing.status == TOO_MANY else wait
        return Outcome(event, f"overloaded: answered {framing.status}", due, park=now + rest if rest else 0.0)
    if truncated is not None:
        note = f"cut: {truncated.value}" + (f"; {faults}" if faults else "")
        again = truncated in CUT and tries < min(retries, 1)
        return Outcome(Event.RETRY if again else Event.CAPTURE, note, now + pause(tries) if again else 0.0)
    return Outcome(Event.CAPTURE, faults)


def after_failure(failure: Failure, reason: str, tries: int, retries: int, now: float) -> Outcome:
    """No answer came on try number *tries* (the first is 0)."""
    note = f"{failure.value}: {reason}"
    if tries < retries:
        return Outcome(Event.RETRY, note, now + pause(tries))
    return Outcome(Event.GIVE_UP, note)


def retry_after(framing: Framing, now: float) -> float:
    """Seconds that Retry-After (RFC 9110 §10.2.3: seconds or a date) asks to wait; 0 without a usable one.

    A date is read by the server's own clock where its answer shows it (Date), because ours may be wrong by hours.
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
    """Seconds since the epoch of an HTTP date; None if it is none."""
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:  # a date is in GMT whether it says so or not
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
