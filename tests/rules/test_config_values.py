"""Each kind of value: what is right, what is refused, and that a value survives being written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config import option_types
from archiver.config.option_types import HOST_LIMIT, HostLimit, Rate
from archiver.errors import ConfigError

KINDS = [value for value in vars(option_types).values() if isinstance(value, option_types.OptionType)]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (option_types.COUNT, "1", 1),
        (option_types.COUNT, 7, 7),
        (option_types.NUMBER, "0", 0),
        (option_types.NUMBER_OR_NONE, "none", None),
        (option_types.NUMBER_OR_NONE, "3", 3),
        (option_types.SECONDS, "0.5", 0.5),
        (option_types.SECONDS, 30, 30.0),
        (option_types.SECONDS_OR_NONE, "0", 0.0),
        (option_types.SECONDS_OR_NONE, 0, 0.0),
        (option_types.SECONDS_OR_NONE, 0.0, 0.0),
        (option_types.SECONDS_OR_NONE, "90", 90.0),
        (option_types.SIZE, "500M", 500_000_000),
        (option_types.SIZE, "1.5 kB", 1500),
        (option_types.SIZE, "9007199254740993", 9_007_199_254_740_993),
        (option_types.SIZE, 12, 12),
        (option_types.RATE, "5", Rate(5)),
        (option_types.RATE, 5, Rate(5)),
        (option_types.RATE, "30/60", Rate(30, 60.0)),
        (option_types.RATE, "0", Rate(0)),
        (option_types.BOOLEAN, False, False),
        (option_types.TEXT, "", ""),
        (option_types.TEXT, "Žluťoučký kůň", "Žluťoučký kůň"),
        (option_types.PATTERN, r"/cal(endar)?/\d+", r"/cal(endar)?/\d+"),
        (option_types.HEADER, "X-Key:   a b ", "X-Key: a b"),
        (option_types.HEADER, "Empty:", "Empty: "),
        (option_types.MEDIA_TYPE, " Video/* ", "video/*"),
        (option_types.MEDIA_TYPE, "image/svg+xml", "image/svg+xml"),
        (option_types.PLACE, "Wiki.Intranet", "wiki.intranet"),
        (option_types.PLACE, "bücher.local", "xn--bcher-kva.local"),
        (option_types.PLACE, "10.0.0.5", "10.0.0.5"),
        (option_types.PLACE, "0x7f.1", "127.0.0.1"),
        (option_types.PLACE, "[FD00::1]", "fd00::1"),
        (option_types.PLACE, "fe80::1%eth0", "fe80::1"),
        (option_types.PLACE, "10.0.0.0/8", "10.0.0.0/8"),
        (option_types.LABEL, "a.b-c_d", "a.b-c_d"),
        (option_types.choice("obey", "ignore"), "ignore", "ignore"),
    ],
)
def test_right(kind: option_types.OptionType, text: object, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (option_types.COUNT, "0"),
        (option_types.COUNT, "-1"),
        (option_types.COUNT, True),
        (option_types.COUNT, 1.0),
        (option_types.NUMBER, "1_000"),
        (option_types.NUMBER, " 1"),
        (option_types.NUMBER, "٣"),
        (option_types.NUMBER, "9" * 5000),
        (option_types.NUMBER, 2**63),
        (option_types.NUMBER, None),
        (option_types.NUMBER_OR_NONE, "None"),
        (option_types.SECONDS, "0"),
        (option_types.SECONDS, "nan"),
        (option_types.SECONDS, "inf"),
        (option_types.SECONDS, "1e999"),
        (option_types.SECONDS_OR_NONE, False),
        (option_types.SIZE, "1X"),
        (option_types.SIZE, "999999999999T"),
        (option_types.SIZE, "-1k"),
        (option_types.SIZE, ""),
        (option_types.SIZE, 1.5),
        (option_types.RATE, "1/0"),
        (option_types.RATE, "5/s"),
        (option_types.RATE, 2.5),
        (option_types.RATE, True),
        (option_types.RATE, "-1"),
        (option_types.BOOLEAN, "true"),
        (option_types.BOOLEAN, 1),
        (option_types.TEXT, "a\nb"),
        (option_types.TEXT, "a\x1b[2J"),
        (option_types.TEXT, "\udcff"),
        (option_types.TEXT, 3),
        (option_types.PATTERN, "("),
        (option_types.PATTERN, "[[a]"),
        (option_types.PATTERN, "a{99999999999}"),
        (option_types.PATTERN, ["x"]),
        (option_types.HEADER, "no colon"),
        (option_types.HEADER, "Na me: x"),
        (option_types.HEADER, "X: a\r\nY: b"),
        (option_types.HEADER, "Host: evil"),
        (option_types.HEADER, "content-LENGTH: 3"),
        (option_types.MEDIA_TYPE, "video"),
        (option_types.MEDIA_TYPE, "*/*"),
        (option_types.MEDIA_TYPE, "video/*4"),
        (option_types.MEDIA_TYPE, "text/html; charset=utf-8"),
        (option_types.PLACE, ""),
        (option_types.PLACE, "--rate"),  # the option that follows, where the name was forgotten
        (option_types.PLACE, "10.0.0.1/8"),
        (option_types.PLACE, "http://10.0.0.1/"),
        (option_types.PLACE, "wiki.intranet:8080"),
        (option_types.PLACE, "10.0.0.999"),
        (option_types.PLACE, "*.intranet"),
        (option_types.LABEL, "a/b"),
        (option_types.LABEL, ""),
        (option_types.LABEL, "x" * 65),
        (option_types.choice("obey"), "Obey"),
        (option_types.choice("obey"), ["obey"]),
    ],
)
def test_wrong(kind: option_types.OptionType, text: object) -> None:
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
def test_anything_is_taken_or_refused(kind: option_types.OptionType, anything: object) -> None:
    try:
        value = kind.parse(anything)
    except ConfigError:
        return
    assert kind.parse(kind.write(value)) == value


@given(st.integers(0, 10**9), st.floats(min_value=1e-6, max_value=1e6))
def test_rate_loses_no_digit(starts: int, interval: float) -> None:
    assert option_types.RATE.parse(str(Rate(starts, interval))) == Rate(starts, interval)


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
