from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import Failure
from archiver.http.chunked import CHUNK_FAULT
from archiver.model import Event, Framing, Truncation
from archiver.policy import retry

NOW = datetime(2026, 11, 21, 7, 28, tzinfo=UTC).timestamp()


def answer(status: int, *fields: tuple[str, str], faults: tuple[str, ...] = ()) -> Framing:
    return Framing(status, 0, chunked=False, media_type="", fields=fields, faults=faults)


@pytest.mark.parametrize("status", [0, 200, 204, 301, 404, 410, 418, 500, 501, 999])
def test_an_answer_is_the_last_word(status: int) -> None:
    assert retry.after_answer(answer(status), None, 0, 3, NOW) == retry.RetryDecision(Event.CAPTURE)


@pytest.mark.parametrize("status", sorted(retry.OVERLOADED))
def test_an_overloaded_server_is_asked_again_later_and_later(status: int) -> None:
    waits = []
    for tries in range(3):
        result = retry.after_answer(answer(status), None, tries, 3, NOW)
        assert result.event is Event.RETRY
        waits.append(result.due - NOW)
    assert waits == [2, 4, 8]
    last = retry.after_answer(answer(status), None, 3, 3, NOW)
    assert (last.event, last.note) == (Event.CAPTURE, f"overloaded: answered {status}")


def test_only_too_many_requests_is_about_the_whole_host() -> None:
    assert retry.after_answer(answer(429), None, 1, 3, NOW).not_before == NOW + 4
    assert retry.after_answer(answer(503), None, 1, 3, NOW).not_before == 0


@pytest.mark.parametrize("tries", [0, 3])
def test_retry_after_parks_the_host_even_if_the_url_is_given_up(tries: int) -> None:
    result = retry.after_answer(answer(503, ("retry-after", "120")), None, tries, 3, NOW)
    assert result.not_before == NOW + 120
    assert result.due == NOW + 120


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        ("9" * 5000, retry.LONGEST_PARK),
        ("0" * 20 + "5", 5),
        (format_datetime(datetime(2026, 11, 21, 7, 29, tzinfo=UTC), usegmt=True), 60),
        ("Sat, 21 Nov 2026 07:29:00", 60),
        ("Sat, 21 Nov 2026 07:29:00 -0000", 60),
        ("Saturday, 21-Nov-26 07:29:00 GMT", 60),
        ("Sat Nov 21 07:29:00 2026", 60),
        ("Sat, 21 Nov 2026 07:27:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", retry.LONGEST_PARK),
        ("-5", 0),
        ("1.5", 0),
        ("²", 0),
        ("soon", 0),
        ("", 0),
    ],
)
def test_retry_after(value: str, seconds: float) -> None:
    assert retry.retry_after(answer(503, ("retry-after", value)), NOW) == seconds


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        ("Sat, 21 Nov 2026 07:28:30 GMT", 30),
        ("Sat, 21 Nov 2026 04:28:30 GMT", 3 * 3600 + 30),
        ("Sat, 21 Nov 2026 09:00:00 GMT", 0),
        ("yesterday", 60),
    ],
)
def test_a_date_is_read_by_the_clock_of_who_sent_it(sent: str, seconds: float) -> None:
    fields = (("retry-after", "Sat, 21 Nov 2026 07:29:00 GMT"), ("date", sent))
    assert retry.retry_after(answer(503, *fields), NOW) == seconds


@given(st.text() | st.text("0123456789:-+, GMTSatNov", max_size=40))
def test_retry_after_is_bounded_whatever_it_says(value: str) -> None:
    assert 0 <= retry.retry_after(answer(503, ("retry-after", value)), NOW) <= retry.LONGEST_PARK


@pytest.mark.parametrize(
    ("truncated", "tries", "retries", "event"),
    [
        (Truncation.DISCONNECT, 0, 3, Event.RETRY),
        (Truncation.DISCONNECT, 1, 3, Event.CAPTURE),
        (Truncation.DISCONNECT, 0, 0, Event.CAPTURE),
        (Truncation.TIME, 0, 3, Event.RETRY),
        (Truncation.LENGTH, 0, 3, Event.CAPTURE),
        (Truncation.UNSPECIFIED, 0, 3, Event.CAPTURE),
    ],
)
def test_a_cut_answer_gets_one_more_chance(truncated: Truncation, tries: int, retries: int, event: Event) -> None:
    result = retry.after_answer(answer(200), truncated, tries, retries, NOW)
    assert result.event is event
    assert result.note == f"cut: {truncated.value}"


def test_faults_are_named() -> None:
    assert retry.after_answer(answer(200, faults=("bare-lf",)), None, 0, 3, NOW).note == "malformed: bare-lf"


@given(st.sampled_from(Failure), st.integers(0, 50), st.integers(0, 50))
def test_no_answer(failure: Failure, tries: int, retries: int) -> None:
    result = retry.after_failure(failure, "reason", tries, retries, NOW)
    assert result.note == f"{failure.value}: reason"
    if failure is Failure.PRIVATE:
        assert result.event is Event.FORBID
    elif failure is Failure.PROXY:  # no proxy reaches the name, and none will at the next try
        assert result.event is Event.GIVE_UP
    elif tries < retries:
        assert result.event is Event.RETRY
        assert NOW < result.due <= NOW + retry.LONGEST_PAUSE
    else:
        assert result.event is Event.GIVE_UP


# --- robots.txt ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 501, 503, 999])
def test_an_error_for_robots_txt_is_asked_about_until_the_pauses_come_to_the_patience(status: int) -> None:
    for tries, wait in enumerate((2, 4, 8)):
        result = retry.after_rules(answer(status), None, tries, 14.0, NOW)
        assert (result.event, result.due) == (Event.RETRY, NOW + wait)
    assert retry.after_rules(answer(status), None, 3, 14.0, NOW).event is Event.CAPTURE
    assert retry.after_rules(answer(status), None, 0, retry.ONCE, NOW).event is Event.CAPTURE
    assert retry.after_rules(answer(status), None, 99, 0.0, NOW).due == NOW + retry.LONGEST_PAUSE


@pytest.mark.parametrize("status", [200, 301, 404, 410])
def test_any_other_answer_for_robots_txt_is_the_last_word(status: int) -> None:
    assert retry.after_rules(answer(status), None, 0, 300.0, NOW).event is Event.CAPTURE
    assert retry.after_rules(answer(status), Truncation.LENGTH, 0, 300.0, NOW).event is Event.CAPTURE
    assert retry.after_rules(answer(status), Truncation.DISCONNECT, 0, 300.0, NOW).event is Event.RETRY


def test_a_robots_txt_without_its_end_is_asked_about_as_after_an_error() -> None:
    assert retry.after_rules(answer(200), None, 0, 300.0, NOW, is_cut=True).event is Event.RETRY
    assert retry.after_rules(answer(200), None, 99, 300.0, NOW, is_cut=True).event is Event.CAPTURE


@pytest.mark.parametrize(
    ("tries", "retries", "event"), [(0, 3, Event.RETRY), (1, 3, Event.CAPTURE), (0, 0, Event.CAPTURE)]
)
def test_a_damaged_answer_gets_one_more_chance(tries: int, retries: int, event: Event) -> None:
    broken = answer(200, faults=(CHUNK_FAULT,))
    result = retry.after_answer(broken, Truncation.UNSPECIFIED, tries, retries, NOW, is_damaged=True)
    assert (result.event, result.note) == (event, "cut: unspecified; malformed: chunk")


def test_what_retry_after_asks_for_is_waited_for_besides() -> None:
    result = retry.after_rules(answer(503, ("retry-after", "900")), None, 0, 10.0, NOW)
    assert (result.event, result.due, result.not_before) == (Event.RETRY, NOW + 900, NOW + 900)


@pytest.mark.parametrize(
    ("failure", "tries", "patience", "event"),
    [
        (Failure.CONNECT, 2, 300.0, Event.RETRY),
        (Failure.CONNECT, 3, 300.0, Event.GIVE_UP),  # nobody there
        (Failure.CONNECT, 4, 300.0, Event.RETRY),  # who had answered before
        (Failure.CONNECT, 8, 300.0, Event.GIVE_UP),
        (Failure.DISCONNECT, 3, 300.0, Event.RETRY),  # somebody is there
        (Failure.DISCONNECT, 3, 29.0, Event.GIVE_UP),
        (Failure.PRIVATE, 0, 300.0, Event.FORBID),
    ],
)
def test_no_answer_for_robots_txt(failure: Failure, tries: int, patience: float, event: Event) -> None:
    assert retry.after_no_rules(failure, "no", tries, (3, patience), NOW).event is event
