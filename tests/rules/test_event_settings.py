"""Receivers of events in settings, and the fields that events have."""

import pytest

from archiver.config import toml
from archiver.config.event_settings import DATA_FIELDS, EVENT_FIELDS, KINDS, ON, EventKind, Receiver
from archiver.config.secret_settings import has_secrets, in_common, may_hold_secret, without_secrets
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError

ENDED, BLOCKED = EventKind.CRAWL_ENDED, EventKind.HOST_BLOCKED
HOOK = "https://hooks.example/T00/my-secret"


@pytest.mark.parametrize(
    ("text", "receiver"),
    [
        ("crawl-ended ./tell.sh  --now", Receiver((ENDED,), "./tell.sh  --now")),
        ("host-blocked,crawl-ended HTTPS://Example.org", Receiver((ENDED, BLOCKED), "https://example.org/")),
        ("all http://127.0.0.1:8000/x", Receiver(KINDS, "http://127.0.0.1:8000/x")),
        ("all http://[::1]/x", Receiver(KINDS, "http://[::1]/x")),
        ("all http://localhost/x", Receiver(KINDS, "http://localhost/x")),
    ],
)
def test_a_receiver_is_read_and_written(text: str, receiver: Receiver) -> None:
    assert ON.parse(text) == receiver
    assert ON.parse(str(receiver)) == receiver


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("crawl-ended", "not events and a command or URL"),
        ("", "is not an event"),
        ("test x", "'test' is not an event"),
        ("crawl-ended,ended x", "'ended' is not an event; the events are crawl-started"),
        ("all x\ny", "on one line"),
        ("all http://example.org/my-secret", "write https://, or a loopback address"),
        ("all http://127.0.0.1.example/my-secret", "write https://"),
        ("all http://10.0.0.1/my-secret", "write https://"),
        ("all https://me:my-secret@example.org/", "without user and password"),
        ("all https://a b/my-secret", "cannot be used"),
    ],
)
def test_what_is_no_receiver_is_refused_without_showing_its_target(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ON.parse(text)
    assert fault in str(refused.value)
    assert "my-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (HOOK, "https://hooks.example"),
        ("/usr/sbin/sendmail -t", "sendmail"),
        ("TOKEN=my-secret ./x", "a command"),
    ],
)
def test_a_name_for_messages_and_the_database_shows_no_secret(target: str, name: str) -> None:
    receiver = Receiver(KINDS, target)
    assert receiver.name == name
    assert receiver.key("a") != receiver.key("b")
    assert "secret" not in receiver.key("")


def test_what_is_handed_on_names_no_receiver() -> None:
    given = {"on": (Receiver(KINDS, HOOK),), "on_secret": ON_SECRET, "log_to": "/home/me/my-secret.jsonl"}
    settings = with_values(Settings(), given)
    assert toml.parse(toml.render(settings), "crawl.toml")["on"] == settings.events.on
    assert not has_secrets(settings)  # no request and no record holds one
    for bare in (without_secrets(settings), in_common(settings)):
        text = toml.render(bare)
        assert "my-secret" not in text
        assert "HOOK_KEY" not in text
    assert may_hold_secret('#on = ["all https://hooks.example/T00/my-secret"]')


ON_SECRET = toml.parse('on-secret = "env:HOOK_KEY"', "crawl.toml")["on_secret"]


def test_the_fields_of_events_are_these() -> None:
    """Receivers rely on them: add fields, but take none away."""
    assert list(EVENT_FIELDS) == ["version", "id", "at", "crawl", "event", "data"]
    counts = "archived failed excluded held waiting"
    assert {kind.value: " ".join(fields) for kind, fields in DATA_FIELDS.items()} == {
        "crawl-started": "seeds waiting",
        "crawl-ended": f"exit_code verdict reason seeds good_seeds {counts} blocked_hosts received "
        "grade headline trouble failures findings",
        "crawl-paused": "reason",
        "file-closed": "name bytes digest",
        "host-blocked": "host since waiting",
        "host-given-up": "host failure reason urls",
        "pattern-held": "pattern rule example",
        "disk-low": "reason",
        "login-lost": "page reason",
        "test": "message",
    }
    assert set(DATA_FIELDS) == set(EventKind)
