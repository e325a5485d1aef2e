"""Links in header fields; Location and simple Link fields are in test_extract_others.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract import exchange
from archiver.extract.exchange import from_fields
from archiver.model import Hop

PAGE = "http://e.org/d/p"
L, E, X = Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<a>", [("a", {})]),
        ("<a>;rel=b", [("a", {"rel": "b"})]),
        ('  <a> ; rel = "b c" ; x , ,\t<d>;y=', [("a", {"rel": "b c", "x": ""}), ("d", {"y": ""})]),
        ("<a,b;c>; rel=d, <e>", [("a,b;c", {"rel": "d"}), ("e", {})]),
        ('<a>; title="x, <y>; rel=z"; REL=b, <c>', [("a", {"title": "x, <y>; rel=z", "rel": "b"}), ("c", {})]),
        (r'<a>; title="say \"<b>\""; rel=c', [("a", {"title": 'say "<b>"', "rel": "c"})]),
        ("<a>; title*=UTF-8'en'%e2%82%ac; rel=b", [("a", {"title*": "UTF-8'en'%e2%82%ac", "rel": "b"})]),
        ("<a>; rel=b; rel=c", [("a", {"rel": "b"})]),
        ("<a>;;; rel=b;", [("a", {"rel": "b"})]),
        ("<>; rel=b", [("", {"rel": "b"})]),
        ('<a>; rel="b', [("a", {"rel": "b"})]),
        ('<a>; rel="b\\', [("a", {"rel": "b"})]),
        ("junk, <a>", [("a", {})]),
        ("junk <a>, <b>", [("b", {})]),
        ("<a, <b>; rel=c", [("b", {"rel": "c"})]),
        ("<a> <b>, <c>", [("a", {}), ("c", {})]),
        ("<a", []),
        ("a; rel=b", []),
        ("", []),
        (",,,", []),
    ],
)
def test_link_entries(value: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert list(exchange.link_values(value)) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("link", "</s>; rel=stylesheet", [("/s", E)]),
        ("link", '</s>; rel="alternate stylesheet"', [("/s", E)]),
        ("link", "</s>; rel=preload; as=fetch; crossorigin", [("/s", E)]),
        ("link", "</s>; rel=next, </t>; rel=prev", [("/s", L), ("/t", L)]),
        ("link", "<?page=2>; rel=next", [("/d/p?page=2", L)]),
        ("link", "</s>", [("/s", L)]),
        ("link", "</s>; rev=stylesheet", [("/s", L)]),
        ("link", "<https://c.org>; rel=preconnect, <//d.org>; rel=dns-prefetch", []),
        ("link", "</hub>; rel=hub, </p>; rel=edit, <http://e.org/d/p>; rel=self", [("/d/p", L)]),
        ("link", "</s>; rel=stylesheet; anchor=/other", []),
        (
            "link",
            "</s>; rel=stylesheet; anchor=#part, </t>; rel=icon; anchor=p, </u>; anchor=",
            [("/s", E), ("/t", E), ("/u", L)],
        ),
        (
            "link",
            '</i.png>; rel=preload; as=image; imagesrcset="/i1.png 1x, /i2,2.png 2x"; imagesizes=50vw',
            [("/i.png", E), ("/i1.png", E), ("/i2,2.png", E)],
        ),
        ("link", '<>; rel=preload; as=image; imagesrcset="i1.png 400w"', [("/d/i1.png", E)]),
        ("link", '</s>; rel=next; imagesrcset="/i 1x"', [("/s", L)]),
        ("link", "</\xe9>; rel=next", [("/%E9", L)]),
        ("link", "<mailto:a@e.org>; rel=author, <data:,x>; rel=icon", []),
        ("content-location", "p.en.html", [("/d/p.en.html", L)]),
        ("content-location", "", []),
        ("sourcemap", "p.js.map", [("/d/p.js.map", X)]),
        ("x-sourcemap", "/p.js.map", [("/p.js.map", X)]),
        ("sourcemap", "data:application/json,{}", []),
        ("refresh", "0", [("/d/p", L)]),
        ("refresh", "soon", []),
        ("refresh", "0; url='/a b'", [("/a%20b", L)]),
        ("report-to", '{"endpoints":[{"url":"https://e.org/r"}]}', []),
        ("reporting-endpoints", 'a="https://e.org/r"', []),
        ("nel", '{"report_to":"https://e.org/r"}', []),
        ("content-security-policy", "report-uri https://e.org/r", []),
        ("alt-svc", 'h3="e.org:443"', []),
    ],
)
def test_fields(name: str, value: str, expected: list[tuple[str, Hop]]) -> None:
    found = from_fields(PAGE, ((name, value),))
    assert [(link.url, link.hop) for link in found] == [("http://e.org" + path, hop) for path, hop in expected]


def test_repeated_fields() -> None:
    fields = (("link", "</a>; rel=next"), ("sourcemap", "/m"), ("x-sourcemap", "/n"), ("link", "</b>; rel=next"))
    assert [link.url.rpartition("/")[2] for link in from_fields(PAGE, fields)] == ["a", "m", "b"]


def test_the_number_of_links_from_fields_is_bounded() -> None:
    assert len(from_fields(PAGE, (("link", ",".join(f"<{n}>" for n in range(10_000))),))) == 200


@pytest.mark.parametrize(
    "piece", [" ", ",", "<", "<a>", '"', "\\", ";", ";a", ";a=", '<a>;b="', "<a>;rel=", "x", '\\"']
)
def test_link_is_linear(piece: str) -> None:
    list(exchange.link_values(piece * 200_000))  # hours, were it not


@given(st.text('<>;,="\\ ab\t\n', max_size=60))
def test_link_never_raises(value: str) -> None:
    for target, parameters in exchange.link_values(value):
        assert f"<{target}>" in value
        assert all(name == name.lower() for name in parameters)
    from_fields(PAGE, (("link", value), ("sourcemap", value), ("content-location", value)))
