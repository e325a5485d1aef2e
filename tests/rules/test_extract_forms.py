"""Forms as browsers send them: which values, in which order and encoding."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract.forms import MULTIPART, Form, chosen, forms_of

PAGE = "https://example.org/in/login?next=%2F"


def form(markup: str, charset: str = "utf-8") -> Form:
    found = forms_of(markup.encode(charset), charset, PAGE)
    assert len(found) == 1
    return found[0]


def sent(markup: str, **given: str) -> list[tuple[str, str]]:
    return form(f"<form method=post>{markup}</form>").filled(given)


@pytest.mark.parametrize(
    ("markup", "pairs"),
    [
        ('<input type=hidden name=csrf value="a&amp;b"><input name=user>', [("csrf", "a&b"), ("user", "")]),
        ("<input type=checkbox name=a><input type=checkbox name=b checked>", [("b", "on")]),
        ("<input type=radio name=r value=1><input type=radio name=r value=2 checked>", [("r", "2")]),
        ("<select name=s><option>One<option value=2 selected>Two</select>", [("s", "2")]),
        ("<select name=s><option disabled>No<option>  First  one </select>", [("s", "First one")]),
        ("<select name=s multiple><option selected>1<option selected>2</select>", [("s", "1"), ("s", "2")]),
        ("<textarea name=t>\none\ntwo</textarea>", [("t", "one\ntwo")]),
        ("<input name=a disabled><fieldset disabled><input name=b></fieldset><input>", []),
        ("<input type=file name=f><input type=reset name=r><button type=button name=b value=1>x</button>", []),
        ("<button name=go value=in>In</button><input type=submit name=other value=x>", [("go", "in")]),
        ("<input type=image name=go src=x>", [("go.x", "0"), ("go.y", "0")]),
        ("<input type=submit value=In><input name=after value=1>", [("after", "1")]),
        ("<table><tr><td><input name=in-table value=1></table>", [("in-table", "1")]),
    ],
)
def test_a_form_sends_its_own_values(markup: str, pairs: list[tuple[str, str]]) -> None:
    assert sent(markup) == pairs


def test_given_values_replace_those_of_the_form() -> None:
    markup = (
        "<input name=user value=nobody><input type=password name=password><input type=checkbox name=stay value=yes>"
        "<input type=submit name=go value=in><input type=submit name=register value=new>"
    )
    given = {"password": "p", "user": "me", "stay": "yes", "by-script": "1"}
    pairs = [("user", "me"), ("password", "p"), ("stay", "yes"), ("go", "in"), ("by-script", "1")]
    assert sent(markup, **given) == pairs
    assert sent(markup, register="new")[-1] == ("register", "new")


@pytest.mark.parametrize(
    ("markup", "address"),
    [
        ("<form method=post>", PAGE),
        ("<form method=post action=''>", PAGE),
        ("<form method=post action=check>", "https://example.org/in/check"),
        ("<base href='/other/'><form method=post action=check>", "https://example.org/other/check"),
        ("<form method=post action='//login.example.org/'>", "https://login.example.org/"),
        ("<form method=post action='javascript:x()'>", ""),
        ("<form method=post action=one><button formaction=two>", "https://example.org/in/two"),
        ("<form action=find?old=1><input name=q value='a b'>", "https://example.org/in/find?q=a+b"),
    ],
)
def test_the_address_of_a_form(markup: str, address: str) -> None:
    found = form(markup)
    assert found.address(found.filled({})) == address


def test_a_control_may_name_its_form_from_outside() -> None:
    markup = b"<form id=a></form><input form=a name=x value=1><form id=b><input form=a name=y value=2></form>"
    one, other = forms_of(markup, "utf-8", PAGE)
    assert one.filled({}) == [("x", "1"), ("y", "2")]
    assert other.filled({}) == []


@pytest.mark.parametrize(
    ("wanted", "action"),
    [("", "in"), ("1", "find"), ("3", "join"), ("new", "join"), ("/in/fi", "find"), ("4", None), ("nothing", None)],
)
def test_the_form_is_that_with_a_password_or_the_one_that_is_named(wanted: str, action: str | None) -> None:
    markup = (
        b"<form action=find><input name=q></form><form action=in><input type=password name=p></form>"
        b"<form id=new action=join><input type=password name=p></form>"
    )
    found = chosen(forms_of(markup, "utf-8", PAGE), wanted)
    assert (found and found.action.rpartition("/")[2]) == action


def test_the_encoding_is_that_of_the_page_or_the_one_that_the_form_accepts() -> None:
    page = form("<form method=post><input name=a value='ä€☃'>")
    assert page.body(page.filled({})).body == b"a=%C3%A4%E2%82%AC%E2%98%83"  # type: ignore[union-attr]
    western = form("<form method=post accept-charset='x, windows-1252'><input name=a value='ä€☃'>")
    assert western.body(western.filled({})).body == b"a=%E4%80%26%239731%3B"  # type: ignore[union-attr]


def test_multipart_has_a_boundary_that_no_value_has() -> None:
    found = form(f"<form method=post enctype='{MULTIPART}'><input name='a\"b' value='1\n2'>")
    post = found.body(found.filled({}))
    assert post is not None
    boundary = post.content_type.partition("boundary=")[2].encode()
    head, part, end = post.body.split(b"--" + boundary)
    assert (head, end) == (b"", b"--\r\n")
    assert part == b'\r\nContent-Disposition: form-data; name="a%22b"\r\n\r\n1\r\n2\r\n'


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        st.text(st.characters(exclude_categories=["Cs"])),
        max_size=5,
    )
)
def test_what_is_given_arrives(given: dict[str, str]) -> None:
    found = form("<form method=post><input name=user>")
    post = found.body(found.filled({"user": "", **given}))
    assert post is not None
    expected = {"user": "", **given}
    lines = {
        name.replace("\r\n", "\n").replace("\r", "\n"): value.replace("\r\n", "\n").replace("\r", "\n")
        for name, value in expected.items()
    }
    arrived = parse_qsl(post.body.decode(), keep_blank_values=True, strict_parsing=True)
    assert {name.replace("\r\n", "\n"): value.replace("\r\n", "\n") for name, value in arrived} == lines


@given(st.binary(max_size=400))
def test_no_bytes_raise(body: bytes) -> None:
    for each in forms_of(b"<form method=post>" + body, None, PAGE):
        each.body(each.filled({"a": "b"}))
