"""Each kind of value: what is right, what is refused, and that a value survives being written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config import values
from archiver.config.values import HOST_LIMIT, HostLimit, Rate
from archiver.errors import ConfigError

KINDS = [value for value in vars(values).values() if isinstance(value, values.Kind)]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (values.COUNT, "1", 1),
        (values.COUNT, 7, 7),
        (values.NUMBER, "0", 0),
        (values.NUMBER_OR_NONE, "none", None),
        (values.NUMBER_OR_NONE, "3", 3),
        (values.SECONDS, "0.5", 0.5),
        (values.SECONDS, 30, 30.0),
        (values.SECONDS_OR_NONE, "0", 0.0),
        (values.SECONDS_OR_NONE, 0, 0.0),
        (values.SECONDS_OR_NONE, 0.0, 0.0),
        (values.SECONDS_OR_NONE, "90", 90.0),
        (values.SIZE, "500M", 500_000_000),
        (values.SIZE, "1.5 kB", 1500),
        (values.SIZE, "9007199254740993", 9_007_199_254_740_993),
        (values.SIZE, 12, 12),
        (values.RATE, "5", Rate(5)),
        (values.RATE, 5, Rate(5)),
        (values.RATE, "30/60", Rate(30, 60.0)),
        (values.RATE, "0", Rate(0)),
        (values.BOOLEAN, False, False),
        (values.TEXT, "", ""),
        (values.TEXT, "Žluťoučký kůň", "Žluťoučký kůň"),
        (values.PATTERN, r"/cal(endar)?/\d+", r"/cal(endar)?/\d+"),
        (values.HEADER, "X-Key:   a b ", "X-Key: a b"),
        (values.HEADER, "Empty:", "Empty: "),
        (values.MEDIA_TYPE, " Video/* ", "video/*"),
        (values.MEDIA_TYPE, "image/svg+xml", "image/svg+xml"),
        (values.PLACE, "Wiki.Intranet", "wiki.intranet"),
        (values.PLACE, "bücher.local", "xn--bcher-kva.local"),
        (values.PLACE, "10.0.0.5", "10.0.0.5"),
        (values.PLACE, "0x7f.1", "127.0.0.1"),
        (values.PLACE, "[FD00::1]", "fd00::1"),
        (values.PLACE, "fe80::1%eth0", "fe80::1"),
        (values.PLACE, "10.0.0.0/8", "10.0.0.0/8"),
        (values.LABEL, "a.b-c_d", "a.b-c_d"),
        (values.choice("obey", "ignore"), "ignore", "ignore"),
    ],
)
def test_right(kind: values.Kind, text: object, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (values.COUNT, "0"),
        (values.COUNT, "-1"),
        (values.COUNT, True),
        (values.COUNT, 1.0),
        (values.NUMBER, "1_000"),
        (values.NUMBER, " 1"),
        (values.NUMBER, "٣"),
        (values.NUMBER, "9" * 5000),
        (values.NUMBER, 2**63),
        (values.NUMBER, None),
        (values.NUMBER_OR_NONE, "None"),
        (values.SECONDS, "0"),
        (values.SECONDS, "nan"),
        (values.SECONDS, "inf"),
        (values.SECONDS, "1e999"),
        (values.SECONDS_OR_NONE, False),
        (values.SIZE, "1X"),
        (values.SIZE, "999999999999T"),
        (values.SIZE, "-1k"),
        (values.SIZE, ""),
        (values.SIZE, 1.5),
        (values.RATE, "1/0"),
        (values.RATE, "5/s"),
        (values.RATE, 2.5),
        (values.RATE, True),
        (values.RATE, "-1"),
        (values.BOOLEAN, "true"),
        (values.BOOLEAN, 1),
        (values.TEXT, "a\nb"),
        (values.TEXT, "a\x1b[2J"),
        (values.TEXT, "\udcff"),
        (values.TEXT, 3),
        (values.PATTERN, "("),
        (values.PATTERN, "[[a]"),
        (values.PATTERN, "a{99999999999}"),
        (values.PATTERN, ["x"]),
        (values.HEADER, "no colon"),
        (values.HEADER, "Na me: x"),
        (values.HEADER, "X: a\r\nY: b"),
        (values.HEADER, "Host: evil"),
        (values.HEADER, "content-LENGTH: 3"),
        (values.MEDIA_TYPE, "video"),
        (values.MEDIA_TYPE, "*/*"),
        (values.MEDIA_TYPE, "video/*4"),
        (values.MEDIA_TYPE, "text/html; charset=utf-8"),
        (values.PLACE, ""),
        (values.PLACE, "--rate"),  # the option that follows, where the name was forgotten
        (values.PLACE, "10.0.0.1/8"),
        (values.PLACE, "http://10.0.0.1/"),
        (values.PLACE, "wiki.intranet:8080"),
        (values.PLACE, "10.0.0.999"),
        (values.PLACE, "*.intranet"),
        (values.LABEL, "a/b"),
        (values.LABEL, ""),
        (values.LABEL, "x" * 65),
        (values.choice("obey"), "Obey"),
        (values.choice("obey"), ["obey"]),
    ],
)
def test_wrong(kind: values.Kind, text: object) -> None:
    with pytest.raises(ConfigError) as refused:
        kind.parse(text)
    assert kind.right in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.metavar)
@given(anything=ANYTHING)
def test_anything_is_taken_or_refused(kind: values.Kind, anything: object) -> None:
    try:
        value = kind.parse(anything)
    except ConfigError:
        return
    assert kind.parse(kind.write(value)) == value


@given(st.integers(0, 10**9), st.floats(min_value=1e-6, max_value=1e6))
def test_rate_loses_no_digit(starts: int, interval: float) -> None:
    assert values.RATE.parse(str(Rate(starts, interval))) == Rate(starts, interval)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("*.example.org 30/60 1", HostLimit("*.example.org", Rate(30, 60.0), 1)),
        ("Example.org 2", HostLimit("example.org", Rate(2))),
        ("10.0.0.* 0", HostLimit("10.0.0.*", Rate(0))),
    ],
)
def test_a_limit_for_some_hosts(text: str, limit: HostLimit) -> None:
    assert HOST_LIMIT.parse(text) == limit
    assert HOST_LIMIT.parse(HOST_LIMIT.write(limit)) == limit
    assert HOST_LIMIT.parse(limit) == limit


@pytest.mark.parametrize(
    "text", ["", "example.org", "example.org x", "example.org 5 0", "a b 5", "h 5 1 1", "ex/y 5", 5]
)
def test_no_limit_for_some_hosts(text: object) -> None:
    with pytest.raises(ConfigError, match="is not host name, rate and"):
        HOST_LIMIT.parse(text)
