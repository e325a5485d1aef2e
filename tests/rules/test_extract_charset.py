"""Differences between the Encoding standard and Python's codecs. Detection of encodings is tested elsewhere."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.extract import Document, charset, links
from archiver.extract.references import UrlJoiner

NAMES = (
    *("utf-8", "utf-16le", "utf-16be", "big5", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-2022-jp", "shift_jis"),
    *("replacement", "x-user-defined", "ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic", "windows-874"),
    *(f"windows-125{digit}" for digit in range(9)),
    *(f"iso-8859-{part}" for part in (*range(2, 9), "8-i", 10, *range(13, 17))),
)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("latin1", "windows-1252"),
        (" ISO-8859-1\n", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("tis-620", "windows-874"),
        ("gb2312", "gbk"),
        ("x-sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("big5-hkscs", "big5"),
        ("utf-16", "utf-16le"),
        ("unicode-1-1-utf-8", "utf-8"),
        ("x-unicode20utf8", "utf-8"),
        ("hz-gb-2312", "replacement"),
        ("iso-2022-kr", "replacement"),
        ("utf-7", None),
        ("utf-32", None),
        ("cp437", None),
        ("", None),
    ],
)
def test_labels(label: str, name: str | None) -> None:
    assert charset.encoding_name(label) == name


def test_every_encoding_of_the_standard_has_its_name() -> None:
    assert len(NAMES) == 40
    assert {charset.encoding_name(name) for name in NAMES} == set(NAMES)


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        ("windows-1252", b"\x80\x81\x8d\x9f", "€\x81\x8d\u0178"),
        ("windows-1253", b"\xaa\xd2\x88", "\ufffd\ufffd\x88"),
        ("windows-1255", b"\xca\xe0", "\u05baא"),
        ("windows-874", b"\x81\xdb", "\x81\ufffd"),
        ("koi8-u", b"\xae\xbe\xa4", "ўЎє"),
        ("iso-8859-8-i", b"\xe0", "א"),
        ("macintosh", b"\xdb", "€"),
        ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
        ("gbk", b"\xc4\xe3\x81\x30\x81\x30", "你\x80"),
        ("big5", b"\x87\x40\xa7\x41", "\u43f0你"),
        ("euc-kr", b"\xb0\xa1\x81\x41", "가갂"),
        ("shift_jis", b"\x87\x40\x81\x60\xb1\x5c\x7e", "①\uff5eｱ\\~"),
        ("euc-jp", b"\xad\xa1\xa1\xc1\xa1\xdd\x8e\xb1", "①\uff5e\uff0dｱ"),
        ("euc-jp", b"\x8f\xb0\xa1\xa1\xc1", "丂\uff5e"),
        ("iso-2022-jp", b"\x1b$B4A\x1b(Bx", "漢x"),
        ("replacement", b"<a>", "<a>"),
    ],
)
def test_texts(encoding: str, body: bytes, text: str) -> None:
    assert charset.text(body, encoding) == text


@pytest.mark.parametrize("encoding", ["big5", "euc-jp", "euc-kr", "gb18030", "gbk", "shift_jis"])
@pytest.mark.parametrize("lead", [b"\x81", b"\x8f", b"\xa1", b"\xfe"])
def test_an_incomplete_character_does_not_hide_markup(encoding: str, lead: bytes) -> None:
    assert charset.text(lead + b'"><a', encoding).endswith('"><a')


@pytest.mark.parametrize(
    ("encoding", "query", "escaped"),
    [
        ("windows-1252", "€\x81й", "%80%81%26%231081%3B"),
        ("koi8-u", "ў", "%AE"),
        ("gbk", "€你\U00020000", "%80%C4%E3%26%23131072%3B"),
        ("gb18030", "€\U00020000", "%A2%E3%952%826"),
        ("gb18030", "\ue7c7\ufe10\u9fb4", "%815%F47%A6%D9%FEY"),
        ("gbk", "\ue7c7\ufe10\u9fb4", "%26%2359335%3B%A6%D9%FEY"),
        ("big5", "你\u43f0", "%A7A%26%2317392%3B"),
        ("big5", "€\u2421\uff0f\xa2", "%A3%E1%A3%E0%A1%FE%26%23162%3B"),
        ("euc-kr", "갂", "%81A"),
        ("shift_jis", "髙\u301c€", "%FB%FC%26%2312316%3B%26%238364%3B"),
        ("euc-jp", "€©\x80\u2016髙", "%26%238364%3B%26%23169%3B%26%23128%3B%26%238214%3B%FC%E2"),
        ("iso-2022-jp", "€", "%26%238364%3B"),
        ("shift_jis", "①\xa5\u203e\u2212ｱ", "%87@\\~%81|%B1"),
        ("euc-jp", "①\xa5\u2212ｱ丂", "%AD%A1\\%A1%DD%8E%B1%26%2319970%3B"),
        ("iso-2022-jp", "漢ｱx\u203e", "%1B$B4A%%22%1B(Bx%1B(J~%1B(B"),
        ("utf-16le", "é", "%C3%A9"),
        ("replacement", "é", "%C3%A9"),
    ],
)
def test_queries_are_encoded_as_in_browsers(encoding: str, query: str, escaped: str) -> None:
    assert UrlJoiner("http://e.org/", encoding).join("?" + query) == "http://e.org/?" + escaped


@pytest.mark.suites
def test_percent_encoding(suites: Path) -> None:
    differ = {("iso-2022-jp", "\x0eA")}  # a control that this encoding must not write; no page has it in a URL
    for row in json.loads((suites / "url/percent-encoding.json").read_text()):
        for encoding, expected in row["output"].items() if isinstance(row, dict) else ():
            if (encoding, row["input"]) not in differ:
                found = UrlJoiner("http://e.org/", encoding).join("?" + row["input"])
                assert found == f"http://e.org/?{expected}", (row, encoding)


@settings(max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(NAMES), st.integers(0, 200))
def test_text_decoded_in_pieces_is_the_same(body: bytes, encoding: str, most: int) -> None:
    body = b"\xa4\xa2<a>" * 13_000 + body  # more than one piece
    assert "".join(charset.pieces(body, encoding, len(body) + most)) == charset.text(body, encoding)


@given(st.text(max_size=20), st.sampled_from(NAMES))
def test_encoded_text_can_be_decoded(run: str, encoding: str) -> None:
    try:
        written = charset.encoded(run, encoding)
    except UnicodeEncodeError:
        return
    if run.isascii() and encoding != "iso-2022-jp" and not encoding.startswith("utf-16"):
        assert written == run.encode()
    UrlJoiner("http://e.org/", encoding).join("?" + run)


def test_a_page_in_euc_jp() -> None:
    page = "<a href='①.html?①'>".encode("euc_jis_2004")
    found = links(Document("http://e.org/", "text/html", "euc-jp", page)).links
    assert [link.url for link in found] == ["http://e.org/%E2%91%A0.html?%AD%A1"]
