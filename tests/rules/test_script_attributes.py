"""Attributes whose files and pages only a script reads: galleries, parts of pages, rows that are links, 3D models."""

from urllib.parse import urljoin

import pytest

from archiver.extract import Document, links
from archiver.model import Hop

PAGE = "http://host.test/dir/page.html"


def named(html: str, start: str = "<title>x</title>") -> dict[str, Hop]:
    found = links(Document(PAGE, "text/html", None, f"<!doctype html>{start}{html}".encode())).links
    return {link.url: link.hop for link in found}


@pytest.mark.parametrize("start", ["<title>x</title>", "<p title='a'b>"])
@pytest.mark.parametrize(
    ("html", "expected", "hop"),
    [
        ('<div data-responsive="i/a-375.jpg 375, i/a-480.jpg 480">', "i/a-375.jpg i/a-480.jpg", Hop.REQUISITE),
        ('<div data-include="parts/header.html">', "parts/header.html", Hop.SPECULATIVE),
        ('<div data-include="/parts/header">', "/parts/header", Hop.SPECULATIVE),
        ('<div w3-include-html="nav.html">', "nav.html", Hop.SPECULATIVE),
        ('<div include-html="nav.html">', "nav.html", Hop.SPECULATIVE),
        ('<div data-load="parts/a.html">', "parts/a.html", Hop.SPECULATIVE),
        ('<a data-toggle=modal data-remote="/terms" href="#m">', "/terms", Hop.SPECULATIVE),
        ('<div data-iframe="f.html">', "f.html", Hop.SPECULATIVE),
        (
            '<model-viewer src="a.glb" poster="p.webp" ios-src="a.usdz" skybox-image="s.hdr">',
            "a.glb p.webp a.usdz s.hdr",
            Hop.REQUISITE,
        ),
        ('<a-entity gltf-model="url(b.glb)">', "b.glb", Hop.SPECULATIVE),
        ('<a-entity obj-model="obj: url(t.obj); mtl: url(t.mtl)">', "t.obj t.mtl", Hop.SPECULATIVE),
        ('<spline-viewer url="scene.splinecode">', "scene.splinecode", Hop.REQUISITE),
        ('<tr data-href="item.html">', "item.html", Hop.LINK),
        ('<tr data-href="/item/1">', "/item/1", Hop.LINK),
        ('<tr class="row" data-href="?id=3&amp;x=.">', "", Hop.LINK),
        ('<tr data-href="?page=a.b">', "?page=a.b", Hop.LINK),
        ('<tr data-href="item/2">', "item/2", Hop.SPECULATIVE),
        ('<tr data-url="/item/4">', "/item/4", Hop.SPECULATIVE),
        ('<div data-jarallax-video="mp4:./v.mp4,webm:./v.webm">', "v.mp4 v.webm", Hop.REQUISITE),
        ('<div data-before="b.jpg" data-after="a.jpg">', "b.jpg a.jpg", Hop.REQUISITE),
        ('<img data-hover="h.jpg" data-mobile="m.jpg">', "h.jpg m.jpg", Hop.REQUISITE),
        ('<div data-panorama="p.jpg" data-model="m.glb" data-lottie="l.json">', "p.jpg m.glb l.json", Hop.REQUISITE),
    ],
)
def test_attributes_with_files_and_pages(start: str, html: str, expected: str, hop: Hop) -> None:
    assert named(html, start) == dict.fromkeys((urljoin(PAGE, name) for name in expected.split()), hop)


@pytest.mark.parametrize(
    "html",
    [
        '<div data-include="header">',
        '<a data-remote="true" href="#x">',
        '<form data-remote="true">',
        '<div data-load="lazy" data-partial="a/b c" data-remote="/logout">',
        '<tr data-href="{{url}}">',
        '<tr data-url="/cart/add/5" data-href="#">',
        '<button data-url="/item/4">',
        '<div data-before="“" data-after="3" data-model="user.name" data-mobile="true" data-track="click">',
        '<my-element image="large" model="gpt-4.1" src="" ar-image="{{x}}.png">',
        '<div data-responsive="true">',
    ],
)
def test_attributes_with_other_values(html: str) -> None:
    assert named(html) == {}
