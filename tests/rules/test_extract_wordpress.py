"""What answers of WordPress' REST interface name: lists, and the pages and files in them."""

import json
from typing import Any

import pytest

from archiver.extract import Document, links
from archiver.extract.wordpress import MOST_LISTS
from archiver.model import Hop

ROOT = "http://host.test/blog/"
LISTED = ["page", "per_page", "slug", "status"]


def named(data: object, *, at: str = "wp-json/") -> list[str]:
    body = json.dumps(data, separators=(",", ":")).replace("/", "\\/").encode()
    found = links(Document(ROOT + at, "application/json", "UTF-8", body)).links
    return [f"{link.url.removeprefix(ROOT)} {link.hop.value}" for link in found]


def route(name: str, args: list[str], *, methods: tuple[str, ...] = ("GET",), root: str = "wp-json") -> dict[str, Any]:
    return {
        "namespace": "wp/v2",
        "endpoints": [{"methods": list(methods), "args": {key: {"type": "string"} for key in args}}],
        "_links": {"self": [{"href": f"{ROOT}{root}{name}"}]},
    }


def described(**routes: Any) -> dict[str, Any]:
    known = {f"/wp/v2/{name.replace('_', '-')}": each for name, each in routes.items()}
    return {"name": "Blog", "url": ROOT, "namespaces": ["oembed/1.0", "wp/v2"], "routes": {"/": {}, **known}}


def test_the_lists_of_what_a_site_has() -> None:
    found = named(
        described(
            posts=route("/wp/v2/posts", LISTED),
            media=route("/wp/v2/media", LISTED),
            recipes=route("/wp/v2/recipes", LISTED),
            blocks=route("/wp/v2/blocks", LISTED),  # of editors
            tags=route("/wp/v2/tags", ["per_page", "slug"]),
            users=route("/wp/v2/users", ["per_page", "slug"]),
            settings=route("/wp/v2/settings", []),
            made=route("/wp/v2/made", LISTED, methods=("POST",)),
        )
    )
    assert found == [f"wp-json/wp/v2/{name}?per_page=100 X" for name in ("posts", "media", "recipes")]


def test_addresses_without_permalinks() -> None:
    plain = route("/wp/v2/media", LISTED, root="index.php?rest_route=")
    found = named(described(media=plain), at="index.php?rest_route=/")
    assert found == ["index.php?rest_route=/wp/v2/media&per_page=100 X"]


def test_the_number_of_lists_is_bounded() -> None:
    routes = {f"kind{n}": route(f"/wp/v2/kind{n}", LISTED) for n in range(3 * MOST_LISTS)}
    assert len(named(described(**routes))) == MOST_LISTS


def test_the_entries_of_a_list() -> None:
    sizes = {"thumbnail": {"source_url": f"{ROOT}up/a-150x150.jpg"}}
    entries = [
        {
            "id": 7,
            "guid": {"rendered": f"{ROOT}?attachment_id=7"},
            "link": f"{ROOT}a/",
            "media_details": {"sizes": sizes},
            "source_url": f"{ROOT}up/a.jpg",
            "_links": {"self": [{"href": f"{ROOT}wp-json/wp/v2/media/7"}]},
        },
        {"id": 8, "link": f"{ROOT}?p=8", "_links": {}},
        {"id": 9, "link": None, "_links": {}},
        {"id": 10, "link": "/relative", "_links": {}},
        {"id": 11, "link": f"{ROOT}no-links-of-its-own"},
        "text",
    ]
    assert named(entries) == ["a/ L", "up/a.jpg L", "?p=8 L"]


@pytest.mark.parametrize(
    "data",
    [
        {"name": "wp/v2", "routes": []},
        {"name": "wp/v2", "routes": {"/wp/v2/posts": None}},
        {"name": "wp/v2", "routes": {"/wp/v2/posts": {"endpoints": [None, {"methods": "GET", "args": []}]}}},
        {"name": "wp/v2", "routes": {"/wp/v2/posts": {**route("", LISTED), "_links": {"self": []}}}},
        {"name": "wp/v2", "routes": {"/wp/v2/posts": {**route("", LISTED), "_links": {"self": [{"href": 5}]}}}},
        [{"id": 1, "_links": {}}, [], None],
        [{"id": 1, "_links": {"link": {}}, "link": []}],
    ],
)
def test_any_other_data_names_nothing(data: object) -> None:
    assert named(data) == []


@pytest.mark.parametrize("body", [b'[{"id":1,"_links":{' * 2000, b'{"name":"","x":"wp\\/v2"', b'[{"id":"_links":{'])
def test_broken_data_names_nothing(body: bytes) -> None:
    assert links(Document(ROOT, "application/json", None, body)).links == ()


def test_other_lists_are_read_as_data() -> None:
    listed = [{"id": 1, "url": "a/b.html"}, {"id": 2, "url": "a/c.html"}]
    body = json.dumps(listed, separators=(",", ":")).encode()
    found = links(Document(f"{ROOT}list.json", "application/json", None, body)).links
    assert {link.hop for link in found} == {Hop.SPECULATIVE}
