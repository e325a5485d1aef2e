"""Link extraction cases of other projects. Every row where we differ is listed with the reason."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from archiver import url
from archiver.extract import Document, charset, css, links
from archiver.extract.html import attribute_values
from archiver.model import Hop, Links

pytestmark = pytest.mark.suites
PAGE = "http://host.test/dir/p.html"


def rows(suites: Path, name: str) -> Any:
    return json.loads((suites / name).read_text())


def read(body: bytes, media_type: str = "text/html", address: str = PAGE, **more: Any) -> Links:
    return links(Document(address, media_type, more.get("charset"), body, more.get("hop", Hop.LINK)))


def urls(found: Links) -> list[str]:
    return [link.url for link in found.links]


def test_srcset(suites: Path) -> None:
    # "1h" alone: the parser that the rows come from keeps it, the standard and the browsers' own tests do not
    differ = {"data:,a 1h"}
    for row in rows(suites, "links/srcset.json"):
        expected = [] if row["srcset"] in differ else [candidate["url"] for candidate in row["candidates"]]
        assert list(attribute_values.candidates(row["srcset"])) == expected, row


def test_meta_refresh(suites: Path) -> None:
    for row in rows(suites, "links/meta_refresh.json"):
        assert attribute_values.refresh_target(row["content"]) == row["url"], row


def test_css_urls(suites: Path) -> None:
    for row in rows(suites, "links/css_urls.json"):
        found = [reference for reference, _ in css.references(row["css"])]
        if row["expect"] is None:  # these rows only say which URLs are seen; validity is not our question
            assert set(row["candidates_seen"]) <= set(found), row
        else:
            assert [reference for reference in found if reference] == row["expect"], row


def test_css_url_tokens(suites: Path) -> None:
    for row in rows(suites, "css/url_cases.json"):
        assert [reference for reference, _ in css.references(row["css"])] == row["expect"], row


def test_css_encodings(suites: Path) -> None:
    cases = rows(suites, "css/stylesheet_bytes.json")
    for given, (_, encoding) in zip(cases[::2], cases[1::2], strict=True):
        body = given["css_bytes"].encode("latin-1")
        found = charset.of_css(body, given.get("protocol_encoding"), given.get("environment_encoding"))
        assert found == charset.encoding_name(encoding), given


def test_html_encodings(suites: Path) -> None:
    for row in rows(suites, "encodings/html5lib_encoding.json"):
        if row["file"].startswith("encoding/scripted/"):
            continue  # a script writes the declaration
        assert charset.of_html(row["data_latin1"].encode("latin-1"), None) == charset.encoding_name(row["encoding"]), (
            row
        )


def test_base(suites: Path) -> None:
    for row in rows(suites, "links/base_href.json"):
        assert urls(read(row["html"].encode(), address=row["page"])) == row["expect"], row


def test_queries_in_the_encoding_of_the_page(suites: Path) -> None:
    suite = rows(suites, "links/query_encoding.json")
    for encoding, expected in suite["expected"].items():
        for tag, attribute in suite["attributes"]:
            body = element(tag, attribute, suite["query"].replace("\xff", "&yuml;"))
            found = read(body.encode(encoding), charset=encoding)
            assert urls(found) == [PAGE + expected], (encoding, tag, attribute)


def element(tag: str, attribute: str, value: str) -> str:
    if (tag, attribute) == ("meta", "refresh"):
        return f'<meta http-equiv=refresh content="0;url={value}">'
    if tag.startswith("svg:"):
        return f'<svg><{tag[4:]} {attribute}="{value}"/></svg>'
    return f'<{tag} {attribute}="{value}">'


A_GUESS_TOO_FAR = "a request that as many sites do not have as have: "
HERITRIX_DIFFERS = {
    "ExtractorJSTest-1": A_GUESS_TOO_FAR + "a URL without the ending of a file",
    "ExtractorJSTest-9": A_GUESS_TOO_FAR + "a URL without the ending of a file",
    "ExtractorJSTest-15": A_GUESS_TOO_FAR + "half of a URL, to which the script adds the rest",
    "ExtractorJSTest-19": A_GUESS_TOO_FAR + "half of a URL, to which the script adds a value",
    "ExtractorJSTest-5": A_GUESS_TOO_FAR + "a relative path in a string in a string",
    "ExtractorJSTest-27": A_GUESS_TOO_FAR + "a relative path in a string, of which nobody knows what it is relative to",
    "ExtractorJSTest-31": A_GUESS_TOO_FAR + "a string with spaces",
    "testMetaRobots": "a page's wish not to be followed is for search engines; there is no such setting",
    "Jericho-testFormsLinkGet": "a form's action is taken, its fields are not filled in",
}


def test_heritrix_extractors(suites: Path) -> None:
    for row in rows(suites, "links/heritrix_half.json"):
        found = set(urls(read(row["body"].encode(), row["content_type"], row["base"])))
        assert agrees(row, found) == (row["id"] not in HERITRIX_DIFFERS), (row, found)


def agrees(row: dict[str, Any], found: set[str]) -> bool:
    if row["match"] == "substring":
        return all(any(part in address for address in found) for part in row["expect_substring"])
    expected = {url.canonical(address) for address in row["expect"]}
    return expected <= found if row["match"] == "contains" else found == expected


def test_sitemaps(suites: Path) -> None:
    for row in rows(suites, "sitemaps/sitemaps_half.json"):
        content = next(base64.b64decode(row[key]) for key in row if key.startswith("content") and key != "content_type")
        found = read(content, row["content_type"] or "", row["url"], hop=Hop.MANIFEST)
        # rows of strict parsing expect less: other hosts and folders are for scope to judge
        assert {url.canonical(address) for address in row.get("expected", ())} <= set(urls(found)), row
        if row["kind"] == "INDEX":
            assert {link.hop for link in found.links} == {Hop.MANIFEST}
        assert not any(address.startswith("file:") or "do-not-visit" in address for address in urls(found))
