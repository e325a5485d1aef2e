"""Referrer policies in pages: which links get one of their own, and which one the page sets."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract import Document, links
from archiver.extract.references import LONGEST_CONTEXT, NOFOLLOW, policy_in, with_policy
from archiver.model import Hop, Link, Links
from archiver.policy.referrer import POLICIES
from archiver.warc.records import VisitMetadata

HOME = "https://example.org/"
GENERATED = "links/pages/html/syntax/speculative-parsing/generated/page-load/resources"


def read(source: str) -> Links:
    return links(Document(HOME, "text/html", "utf-8", source.encode()))


def policies(source: str) -> dict[str, str]:
    return {link.url.removeprefix(HOME): policy_in(link.context) for link in read(source).links}


# Broken markup goes to libxml2's parser, the rest to the fast reader: both must say the same.
@pytest.mark.parametrize("broken", ["", "<p a=b'c>"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<img src=a referrerpolicy="origin"><img src=b>', {"a": "origin", "b": ""}),
        ('<img src="a"><img src="a" referrerpolicy="origin">', {"a": ""}),
        ('<img srcset="a 1x, b 2x" referrerpolicy=no-referrer>', {"a": "no-referrer", "b": "no-referrer"}),
        ("<iframe src=a referrerpolicy=same-origin></iframe><script src=b referrerpolicy=origin></script>",
         {"a": "same-origin", "b": "origin"}),
        ("<video src=a referrerpolicy=origin></video><input src=b type=image referrerpolicy=origin>",
         {"a": "", "b": ""}),
        ("<area href=a rel=noreferrer><form action=b rel=noreferrer></form>", {"a": "no-referrer", "b": "no-referrer"}),
        ('<a href=a rel="NoReferrer noopener">a</a><a href="b" rel="noopener">b</a>', {"a": "no-referrer", "b": ""}),
        ('<link rel="stylesheet noreferrer" href=a>', {"a": ""}),
        ('<a href="a" referrerpolicy="">a</a><a href="b" referrerpolicy="wrong">b</a>', {"a": "", "b": ""}),
    ],
)  # fmt: skip
def test_links_with_a_policy_of_their_own(source: str, expected: dict[str, str], broken: str) -> None:
    assert policies(f"<!doctype html><title>T</title>{source}{broken}") == expected


def test_a_page_may_set_the_policy_by_its_last_valid_meta_element() -> None:
    meta = '<meta name="{}" content="{}">'
    assert read(meta.format("referrer", "origin")).referrer_policy == "origin"
    assert read(meta.format("Referrer", "ALWAYS") + meta.format("referrer", "nothing")).referrer_policy == "unsafe-url"
    assert read(meta.format("referrer", "origin") + meta.format("referrer", "never")).referrer_policy == "no-referrer"
    assert read(meta.format("author", "origin")).referrer_policy == ""
    assert read(f"<template>x</template><script type=text/template>{meta.format('referrer', 'never')}</script>") == (
        read("<p>")
    )


@pytest.mark.suites
@pytest.mark.parametrize("kind", ["img-src-referrerpolicy", "link-rel-stylesheet-referrerpolicy"])
def test_pages_of_the_wpt_with_an_attribute(suites: Path, kind: str) -> None:
    source = (suites / GENERATED / f"{kind}-no-referrer-framed.sub.html").read_text()
    found = policies(source)
    assert [policy for address, policy in found.items() if "stash.py" in address] == ["no-referrer"]
    assert found["common/slow.py?delay=1500"] == ""


@pytest.mark.suites
def test_a_page_of_the_wpt_with_a_meta_element(suites: Path) -> None:
    source = (suites / GENERATED / "meta-referrer-no-referrer-img-src-framed.sub.html").read_text()
    assert read(source).referrer_policy == "no-referrer"


@given(st.text("abcdefgh/@-", max_size=LONGEST_CONTEXT), st.sampled_from(["", NOFOLLOW]), st.sampled_from(POLICIES))
def test_the_context_of_a_link_keeps_its_policy_and_its_nofollow(context: str, nofollow: str, policy: str) -> None:
    marked = with_policy(context + nofollow, policy)
    assert policy_in(marked) == policy
    assert policy_in(context + nofollow) == ""
    assert marked.endswith(NOFOLLOW) == bool(nofollow)
    assert marked.startswith(context)


def test_a_long_context_keeps_its_policy() -> None:
    name = f"x-{'y' * 300}"
    found = read(f'<a href="/a" {name}="" rel="nofollow noreferrer">').links
    assert found == (Link(f"{HOME}a", Hop.LINK, f"a/@href referrerpolicy=no-referrer{NOFOLLOW}"),)


@given(st.sampled_from(["", *POLICIES]), st.sampled_from(["", *POLICIES]))
def test_the_metadata_of_a_visit_holds_both_policies(led: str, sets: str) -> None:
    context = with_policy("img/@src", "origin")
    named = Links((Link(f"{HOME}i", Hop.REQUISITE, context),), referrer_policy=sets)
    metadata = VisitMetadata("L", Hop.LINK, 1, 0, 0, 1.0, HOME, HOME, named, referrer_policy=led)
    assert VisitMetadata.parse(metadata.block()) == metadata
