"""Each element and attribute that names a URL, with its hop and context; and those that name nothing."""

from urllib.parse import urljoin

import pytest

from archiver.extract import Document, links
from archiver.model import Hop, Link
from fixtures.growth import least_seconds

PAGE = "http://e.org/dir/page.html"
L, E, X, M = Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE, Hop.MANIFEST


def found(html: str, media_type: str = "text/html", address: str = PAGE) -> list[Link]:
    return list(links(Document(address, media_type, "utf-8", html.encode())).links)


def told(html: str, media_type: str = "text/html") -> list[tuple[str, Hop]]:
    return [(link.url.removeprefix("http://e.org"), link.hop) for link in found(html, media_type)]


@pytest.mark.parametrize(
    ("relation", "hop"),
    [
        ("stylesheet", E),
        ("alternate stylesheet", E),
        ("StyleSheet", E),
        ("stylesheet/less", E),
        ("preload stylesheet", E),
        ("icon", E),
        ("shortcut icon", E),
        ("apple-touch-icon", E),
        ("mask-icon", E),
        ("manifest", E),
        ("preload", E),
        ("modulepreload", E),
        ("prefetch", E),
        ("dns-prefetch prefetch", E),
        ("prefetch next", L),
        ("prerender", L),
        ("alternate", L),
        ("next", L),
        ("prev", L),
        ("canonical", L),
        ("amphtml", L),
        ("license", L),
        ("search", L),
        ("nofollow me", L),
        ("", L),
        ("sitemap", M),
        ("dns-prefetch", None),
        ("preconnect", None),
        ("pingback", None),
        ("hub", None),
        ("shortlink", None),
        ("schema.DC", None),
        ("openid2.provider", None),
    ],
)
def test_links_by_kind(relation: str, hop: Hop | None) -> None:
    assert told(f"<link rel='{relation}' href=/x>") == ([("/x", hop)] if hop else [])


NAMED = [
    ("<link href=/x>", L, "link/@href"),
    ("<link rel=prefetch as=document href=/x>", L, "link/@href"),
    ("<link rel=preload as=fetch href=/x>", E, "link/@href"),
    ("<link rel=preload as=image imagesrcset='/x 2x' imagesizes=1vw>", E, "link/@imagesrcset"),
    ("<link itemprop=image href=/x>", E, "link/@href"),
    ("<link itemprop=url href=/x>", L, "link/@href"),
    ("<amp-img srcset='/x 2x'></amp-img>", E, "amp-img/@srcset"),
    ("<amp-list src=/x></amp-list>", E, "amp-list/@src"),
    ("<amp-carousel><amp-img src=/x></amp-img></amp-carousel>", E, "amp-img/@src"),
    ("<amp-video poster=/x>", E, "amp-video/@poster"),
    ("<amp-anim src=/x>", E, "amp-anim/@src"),
    ("<amp-iframe src=/x>", E, "amp-iframe/@src"),
    ("<amp-story poster-portrait-src=/x>", E, "amp-story/@poster-portrait-src"),
    ("<model-viewer src=/x></model-viewer>", E, "model-viewer/@src"),
    ("<my-picture srcset='/x 2x'></my-picture>", E, "my-picture/@srcset"),
    ("<my-link href=/x></my-link>", L, "my-link/@href"),
    ("<router-link to=/x></router-link>", L, "router-link/@to"),
    ("<li href=/x></li>", L, "li/@href"),
    ("<a src=/x>", L, "a/@src"),
    ("<a href=\"javascript:window.open('/x')\">", L, "a/@href"),
    ("<div onclick=\"location.href='/x'\">", L, "div/@onclick"),
    ('<tr ONCLICK=\'window.open("/x", "w", "a=b"); return false\'>', L, "tr/@onclick"),
    ("<table background=/x></table>", E, "table/@background"),
    ("<table><tr><td background=/x></table>", E, "td/@background"),
    ("<bgsound src=/x>", E, "bgsound/@src"),
    ("<img lowsrc=/x>", E, "img/@lowsrc"),
    ("<img dynsrc=/x>", E, "img/@dynsrc"),
    ("<img longdesc=/x>", L, "img/@longdesc"),
    ("<img usemap='/x#map'>", L, "img/@usemap"),
    ("<img ng-src=/x>", E, "img/@ng-src"),
    ("<q cite=/x></q>", L, "q/@cite"),
    ("<blockquote cite=/x>", L, "blockquote/@cite"),
    ("<input src=/x>", E, "input/@src"),
    ("<input TYPE=Image src=/x>", E, "input/@src"),
    ("<input type=submit formaction=/x>", L, "input/@formaction"),
    ("<isindex action=/x>", L, "isindex/@action"),
    ("<layer src=/x></layer>", E, "layer/@src"),
    ("<ilayer src=/x></ilayer>", E, "ilayer/@src"),
    ("<portal src=/x></portal>", E, "portal/@src"),
    ("<fencedframe src=/x></fencedframe>", E, "fencedframe/@src"),
    ("<xml src=/x></xml>", E, "xml/@src"),
    ("<menuitem icon=/x>", E, "menuitem/@icon"),
    ("<command icon=/x>", E, "command/@icon"),
    ("<html manifest=/x>", E, "html/@manifest"),
    ("<v:imagedata src=/x>", E, "v:imagedata/@src"),
    ("<iframe data-src=/x></iframe>", E, "iframe/@data-src"),
    ("<div><template shadowrootmode=open><img src=/x></template></div>", E, "img/@src"),
    ("<![if !IE]><img src=/x><![endif]>", E, "img/@src"),
    ("<!--[if !IE]><!--><img src=/x><!--<![endif]-->", E, "img/@src"),
    ("<!--[if gte mso 9]><xml><v:fill src=/x /></xml><![endif]-->", E, "v:fill/@src"),
    ("<object data=/x></object>", E, "object/@data"),
    ("<object classid='java:x' codebase=/ codetype=x></object>", None, ""),
    ("<object archive='/x'></object>", E, "object/@archive"),
    ("<param name=movie value=/x>", E, "param/@value"),
    ("<svg><pattern href='/x#p'/></svg>", E, "pattern/@href"),
    ("<svg><linearGradient xlink:href='/x#p'/></svg>", E, "lineargradient/@xlink:href"),
    ("<svg><filter href='/x#p'/></svg>", E, "filter/@href"),
    ("<svg><textPath href='/x#p'/></svg>", E, "textpath/@href"),
    ("<svg><mpath href='/x#p'/></svg>", E, "mpath/@href"),
    ("<svg><feImage xlink:href=/x /></svg>", E, "feimage/@xlink:href"),
    ("<svg><script href=/x></script></svg>", E, "script/@href"),
    ("<svg><animate attributeName=href values='#a;/x'/></svg>", E, "animate/@values"),
    ("<svg><set attributeName='xlink:href' to=/x /></svg>", E, "set/@to"),
    ("<svg><path fill='url(/x#p)'/></svg>", E, "path/@fill"),
    ("<svg><g STROKE=\"URL('/x#p') red\"/></svg>", E, "g/@stroke"),
    ("<svg><g clip-path = ' url(/x#p)'/></svg>", E, "g/@clip-path"),
    ("<svg><rect mask=url(/x#p) /></svg>", E, "rect/@mask"),
    ("<svg><rect filter='url(/x#p)'/></svg>", E, "rect/@filter"),
    ("<svg><line marker-start='url(/x#p)'/></svg>", E, "line/@marker-start"),
    ("<svg><g cursor='url(/x), auto'/></svg>", E, "g/@cursor"),
    ("<math><mi href=/x>y</mi></math>", L, "mi/@href"),
    ("<math><mrow xlink:href='/x'></mrow></math>", L, "mrow/@xlink:href"),
    ("<math altimg=/x></math>", E, "math/@altimg"),
    ("<math><mglyph src=/x /></math>", E, "mglyph/@src"),
    ("<math><annotation-xml src=/x></annotation-xml></math>", L, "annotation-xml/@src"),
    ("<meta property=og:image:secure_url content=/x>", E, "meta/@content"),
    ("<meta name=twitter:image:src content=/x>", E, "meta/@content"),
    ("<meta name=msapplication-TileImage content=/x>", E, "meta/@content"),
    ("<meta name=msapplication-config content=/x>", E, "meta/@content"),
    ("<meta name=msapplication-task content='name=a;action-uri=/x;b=c'>", L, "meta/@content"),
    ("<meta name=msapplication-task content='name=a;icon-uri=/x'>", E, "meta/@content"),
    ("<meta itemprop=image content=/x>", E, "meta/@content"),
    ("<meta itemprop='http://schema.org/thumbnailUrl' content=/x>", E, "meta/@content"),
    ("<meta name=citation_pdf_url content=http://e.org/x>", L, "meta/@content"),
    ("<meta name=other content=/x.png>", X, "meta/@content"),
    ("<param name=other valuetype=ref value=/x>", E, "param/@value"),
    ("<span itemprop='name image' content=/x>", E, "span/@content"),
    ("<span property='schema:url' content=/x>", L, "span/@content"),
    ("<i data-lazy-src=/x>", E, "i/@data-lazy-src"),
    ("<i data-lazy=/x>", E, "i/@data-lazy"),
    ("<i data-lazyload=/x>", E, "i/@data-lazyload"),
    ("<i data-original=/x>", E, "i/@data-original"),
    ("<i data-background-image=/x>", E, "i/@data-background-image"),
    ("<i data-bg='url(/x)'>", E, "i/@data-bg"),
    ("<i data-style='background: url(/x)'>", E, "i/@data-style"),
    ("<i data-lazy-srcset='/x 2x'>", E, "i/@data-lazy-srcset"),
    ("<i data-img-url=/x>", E, "i/@data-img-url"),
    ("<tr data-href=/x>", L, "tr/@data-href"),
    ("<a data-url=/x>", L, "a/@data-url"),
    ("<a rel=nofollow data-href=/x>", L, "a/@data-href rel=nofollow"),
    ('<script type="application/ld+json">{"image": ["/x"]}</script>', E, "script/ld+json"),
    (
        '<script type="application/ld+json">{"logo": {"@type": "ImageObject", "url": "/x"}}</script>',
        E,
        "script/ld+json",
    ),
    ('<script type="application/ld+json">[{"@id": "/y", "url": "\\/x"}]</script>', L, "script/ld+json"),
    (
        '<script type="application/ld+json">{"a": [[1, {}], {"embedUrl": "http://e.org/x"}]}</script>',
        L,
        "script/ld+json",
    ),
    ('<script type=importmap>{"imports": {"a": "/x", "b/": "/b/"}}</script>', E, "script/importmap"),
    ('<script type=speculationrules>{"prefetch":[{"urls":["/x"]}]}</script>', L, "script/speculationrules"),
    ("<script type='text/x-handlebars-template'><a href=/x></script>", L, "a/@href"),
    ("<script type=text/template><img src=/x><img src='/{{y}}'></script>", E, "img/@src"),
]


@pytest.mark.parametrize(("html", "hop", "context"), NAMED)
def test_each_name(html: str, hop: Hop | None, context: str) -> None:
    target = "http://e.org/x.png" if "x.png" in html else "http://e.org/x"
    assert found(html) == ([Link(target, hop, context)] if hop else [])


@pytest.mark.parametrize(
    "html",
    [
        "<a ping=/x>",
        "<a attributionsrc=/x>",
        "<img attributionsrc=/x>",
        "<img usemap='#x'>",
        "<img usemap=x>",
        "<img longdesc='a text of words'>",
        "<q cite='John Smith, 1890'>",
        "<head profile=/x>",
        "<option value=/x>",
        "<input type=text src=/x>",
        "<div itemscope itemid=/x itemtype=http://schema.org/Thing>",
        "<link itemprop=availability href=http://schema.org/InStock>",
        "<link itemprop=sameAs href=/x>",
        "<meta http-equiv=Content-Security-Policy content='img-src /x'>",
        "<meta name=msapplication-config content=none>",
        "<meta name=og:image content=summary>",
        "<meta name=description content=/x>",
        "<span content=/x>",
        "<svg><path fill='url(#p)' stroke=red clip-path=\"url('#p')\"/></svg>",
        "<svg><use href='#p'/><animate attributeName=x to=/x /></svg>",
        "<math><csymbol definitionURL=/x /></math>",
        "<div href=x>",
        "<div src=/x>",
        "<div data-id=/x data-x=/y.z data-bg-color=#fff data-video=true>",
        "<div data-href=x data-url=/x.html>",
        "<a href='{{ url }}'><a href='/a/${x}'><a href='/<%= x %>'>",
        "<div onclick=\"location = '/x' + y; go('/x' + y); open(x)\">",
        "<script type=application/ld+json>{'image': '/x.png'}</script>",
        '<script type=application/ld+json>{"@id": "/x", "sameAs": ["/x"], "name": "/x", "url": "x"}</script>',
        '<script type=speculationrules>{"prefetch":[{"where": {"href_matches": "/x"}}]}</script>',
        '<script type=importmap>{"imports": {"a": "bare"}, "integrity": {"/x": "sha384-x"}}</script>',
        '<script type=application/json>{"a": "/x", "b": "x.png", "c": "/a/{id}.png", "d": "text/css"}</script>',
        "<script type=text/template><img src='{{x}}'></script>",
    ],
)
def test_no_name(html: str) -> None:
    assert told(html) == []


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("code=a.b.Clock.class", "/dir/a/b/Clock.class"),
        ("code=Clock", "/dir/Clock.class"),
        ("code=Clock.class codebase=classes", "/dir/classes/Clock.class"),
        ("code=Clock.class codebase=/classes/", "/classes/Clock.class"),
        ("code=a/Clock.class codebase=http://e.org/c", "/c/a/Clock.class"),
        ("code=Clock archive='a.jar, b.jar'", "/dir/a.jar /dir/b.jar"),
        ("code=Clock codebase=c archive=a.jar", "/dir/c/a.jar"),
        ("object=a.ser", "/dir/a.ser"),
    ],
)
def test_applets(attributes: str, expected: str) -> None:
    assert told(f"<applet {attributes}></applet>") == [(target, E) for target in expected.split()]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("data=a.swf codebase=/b/", "/dir/a.swf /b/a.swf"),
        ("data=http://e.org/a.swf codebase=/b/", "/a.swf"),
        ("data=/a.swf codebase=b", "/a.swf"),
        ("data=a.svg codebase=b", "/dir/a.svg /dir/b/a.svg"),
        ("classid=java:Clock.class codebase=b archive='x.jar y.jar'", "/dir/b/x.jar /dir/b/y.jar /dir/b/Clock.class"),
        ("classid=clock.py", "/dir/clock.py"),
        ("classid=clsid:D27CDB6E codebase='http://a.test/flash.cab#version=9' data=a.swf", "/dir/a.swf"),
        ("data=a.swf codebase='/flash.cab#version=9,0'", "/dir/a.swf"),
        ("classid=clsid:D27CDB6E", ""),
    ],
)
def test_objects(attributes: str, expected: str) -> None:
    assert [target for target, _ in told(f"<object {attributes}></object>")] == expected.split()


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("data-src='a.jpg,b.jpg'", "/dir/a.jpg /dir/b.jpg"),
        ("data-src='a.jpg, /b.jpg?x=1'", "/dir/a.jpg /b.jpg?x=1"),
        ("data-src='a.jpg|b.jpg'", "/dir/a.jpg /dir/b.jpg"),
        ("data-src='a.jpg; b.jpg'", "/dir/a.jpg /dir/b.jpg"),
        ("data-src='a.jpg\nb.jpg'", "/dir/a.jpg /dir/b.jpg"),
        ("data-images='a.jpg b.jpg'", "/dir/a.jpg /dir/b.jpg"),
        ("data-src='w_100,h_50/a.jpg'", "/dir/w_100,h_50/a.jpg"),
        ("data-src='one,two/a.jpg'", "/dir/one,two/a.jpg"),
    ],
)
def test_lists_of_files_in_an_attribute(attribute: str, expected: str) -> None:
    assert told(f"<i {attribute}>") == [(target, E) for target in expected.split()]


def test_data_attributes() -> None:
    assert told("<i data-interchange='[a.png, small], [b.png, (large)]'>") == [("/dir/a.png", E), ("/dir/b.png", E)]
    assert told("<i data-zoom='a b.png' data-other=/x.png>") == [("/dir/a%20b.png", E), ("/x.png", X)]
    assert told("<i data-settings='{&quot;bg&quot;: {&quot;url&quot;: &quot;\\/x.jpg&quot;}}'>") == [("/x.jpg", X)]
    assert told("<i data-setup='[{&quot;src&quot;: &quot;v/x.mp4&quot;}, &quot;y.mp4&quot;]'>") == [("/dir/v/x.mp4", X)]
    settings = '{"poster": "a.jpg", "sources": [{"src": "b.m3u8", "type": "video/mp4"}], "name": "c.png"}'
    assert told(f"<video data-setup='{settings}'></video>") == [("/dir/a.jpg", X), ("/dir/b.m3u8", X)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("data-geojson", "places.geojson"), ("data-map-csv", "d/a.csv"), ("data-markdown", "slides.md")),
        *(("data-url", "../points.json"), ("data-config", "map.yaml?v=1"), ("data-animation-path", "logo.json")),
    ],
)
def test_data_in_its_own_folder(name: str, value: str) -> None:
    assert told(f"<div {name}={value}></div>") == [(urljoin("/dir/page.html", value), X)]


@pytest.mark.parametrize("attribute", ["data-url=a.b", "data-config=json", "data-label=a.json", "data-path=x/y.py"])
def test_other_words_in_attributes_are_no_data(attribute: str) -> None:
    assert told(f"<div {attribute}></div>") == []


def test_descriptions_of_interfaces() -> None:
    assert told("<redoc spec-url='v1/a.yaml'></redoc><rapi-doc spec-url=b.json></rapi-doc>") == [
        ("/dir/v1/a.yaml", E),
        ("/dir/b.json", E),
    ]
    assert told("<elements-api apiDescriptionUrl=c.yml baseUrl=/d/></elements-api>") == [("/dir/c.yml", E)]
    assert told("<i data-srcset-webp='/a.webp 1x, /b.webp 2x'>") == [("/a.webp", E), ("/b.webp", E)]
    assert told("<i data-full-url=a.jpg data-download-url=b.jpg>") == [("/dir/a.jpg", E), ("/dir/b.jpg", E)]
    assert told("<script data-main=js/app src=require.js></script>") == [("/dir/require.js", E), ("/dir/js/app.js", X)]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("data-next-page=/more/2", [("/more/2", X)]),
        ("data-next='?page=2'", [("/dir/page.html?page=2", X)]),
        ("data-load-more-url=/more/2.html", [("/more/2.html", X)]),
        ("data-infinite-scroll-next-url=/a", [("/a", X)]),
        ("data-next=slide-2", []),
        ("data-next-arrow=/", []),
        ("data-more='/ 3'", []),
        ("hx-get='/rows?page=2' hx-trigger=revealed", [("/rows?page=2", L)]),
        ("data-hx-get=rows", [("/dir/rows", L)]),
        ("hx-get=''", []),
        ("hx-get='/rows/{{ id }}'", []),
        ("hx-post=/rows hx-delete=/rows/1", []),
    ],
)
def test_what_a_page_loads_when_it_is_scrolled(attribute: str, expected: list[tuple[str, Hop]]) -> None:
    assert told(f"<div {attribute}></div>") == expected


@pytest.mark.parametrize(
    "script",
    [
        '<script type=application/json>{"a": ["/x.png"]}</script>',
        '<script id=__NEXT_DATA__ type="application/json; charset=utf-8">{"p": {"i": "\\u002fx.png"}}</script>',
        '<script type=application/json>{"html": "<img src=\\"/x.png\\">", "in": "{\\"a\\": \\"/x.png\\"}"}</script>',
        '<script>window.__INITIAL_STATE__ = {"a": "/x.png"};</script>',
        '<script>window["__PRELOADED_STATE__"]={"a": "/x.png"};</script>',
        '<script>window.__NUXT__=(function(a){return {b: a}}("/x.png"))</script>',
        '<script type=module>self.__next_f.push([1,"5:{\\"src\\":\\"/x.png\\"}"])</script>',
        "<script>/* '\" */ var __APOLLO_STATE__ = {'a': '/x.png'}</script>",
    ],
)
def test_state(script: str) -> None:
    assert told(script) == [("/x.png", X)]


def test_files_of_data_that_are_named_from_the_page() -> None:
    files = '"_canonical_uri": "./i/a%20b.jpg", "image": "i/c.png"'
    others = '"photo": "d.png", "source": "i/e.png", "x": "i/f.png"'
    found = told(f"<script type=application/json>[{{{files}, {others}}}]</script>")
    assert found == [("/dir/i/a%20b.jpg", X), ("/dir/i/c.png", X)]


def test_broken_json_is_read_as_far_as_possible() -> None:
    start = "<script type=application/ld+json>"
    assert told(f'{start}<!-- {{"image": "/a.png", "b": [}}, "logo": "/b.png" --></script>') == [
        ("/a.png", E),
        ("/b.png", E),
    ]
    assert told(f'{start}{{"image": "/a.png", "b": "</script>') == [("/a.png", E)]
    assert told(f'{start}{"[" * 100_000}{{"image": "/a.png"}}</script>') == [("/a.png", E)]
    assert told(f'{start}{"[" * 100_000}{"]" * 100_000},{{"image": "/a.png"}}</script>') == [("/a.png", E)]


def test_scripts_in_xhtml() -> None:
    head = "<html xmlns='http://www.w3.org/1999/xhtml'><base href='file:///x/'/>"
    assert told(
        f'{head}<script type="application/ld+json">{{"image": "http://e.org/x"}}</script></html>', "text/xml"
    ) == [("/x", E)]
    assert told(f"{head}<script>window.__A__ = '<![CDATA[http://e.org/x.js]]>'</script></html>", "text/xml") == [
        ("/x.js", X)
    ]


def test_requisites_with_placeholders_are_kept() -> None:
    html = (
        "<img src='/{{x}}'><a href='/?{{x}}'><script type=text/template><img src='/{{y}}'></script><img src='/{{z}}'>"
    )
    assert [target for target, _ in told(html)] == ["/%7B%7Bx%7D%7D", "/?{{x}}", "/%7B%7Bz%7D%7D"]


def test_guesses_are_bounded() -> None:
    strings = ",".join(f'"/{number}.png"' for number in range(2000))
    assert len(told(f"<script type=application/json>[{strings}]</script>")) == 500


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<template><base href=/b/></template><a href=x>", "/dir/x"),
        ("<noscript><BASE href=/b/></noscript><base href=/c/><a href=x>", "/c/x"),
        ("<!--[if IE]><base href=/b/><![endif]--><a href=x>", "/dir/x"),
        ("<!-- <template> --><base href=/b/><a href=x><template></template>", "/b/x"),
        ("<script>'<template>'</script><base href=/b/><a href=x><template></template>", "/b/x"),
        ("<script type=text/template><base href=/b/></script><a href=x>", "/dir/x"),
        ("<body><p><base href=/b/><a href=x>", "/b/x"),
        ("<base href=b/><base href=/c/><a href=x>", "/dir/b/x"),
        ("<svg><base href=/b/></svg><a href=x>", "/dir/x"),
        ("<svg><base href=/b/><a href=x>", "/dir/x"),
        ("<math><base href=/b/></math><base href=/c/><a href=x>", "/c/x"),
        ("<svg><foreignObject><base href=/b/></foreignObject></svg><a href=x>", "/b/x"),
        ("<svg><g><p><base href=/b/><a href=x>", "/b/x"),
        ("<base href=' /b/\n'><a href=x>", "/b/x"),
        ("<base href='javascript:x'><base href=/b/><a href=x>", "/dir/x"),
        ("<base href='http://[::1'><a href=x>", "/dir/x"),
        ("<base href='file:///C:/site/'><a href=x><a href=http://e.org/y>", "/y"),
        ("<base href='about:blank'><a href=x><a href=//e.org/y>", ""),
        ("<base href=?q><a href='?r'><a href='#s'>", "/dir/page.html?r"),
        ("<base href=/b/><iframe srcdoc='<a href=x>'></iframe>", "/b/x"),
        ("<iframe srcdoc='<base href=/b/><a href=x>'></iframe><a href=y>", "/dir/y /b/x"),
    ],
)
def test_bases(html: str, expected: str) -> None:
    assert [target for target, _ in told(html)] == expected.split()


@pytest.mark.alone
@pytest.mark.parametrize(
    "piece",
    [
        "<base ",
        "<base><template>",
        "<base></template><noscript ",
        '<b></i x="">',
        "<base><!--",
        "<script type=application/json>",
        "<i data-x='[\"'>",
        "<i data-bg='[a '>",
        "<a onclick='open(",
        "<i fill=url(",
        "<param name=flashvars value=&",
        "<applet code=a archive=,",
    ],
)
def test_unusual_markup_is_read_in_linear_time(piece: str) -> None:
    body = piece.encode() * (600_000 // len(piece))
    assert least_seconds(lambda: links(Document(PAGE, "text/html", "utf-8", body)), 3) < 3


@pytest.mark.alone
@pytest.mark.parametrize(
    "name", ["data-src", "data-srcset", "data-full", "data-x", "srcset", "style", "onclick", "content"]
)
@pytest.mark.parametrize("filler", [" ", ",", "a ", "/", "(", "1"])
def test_a_long_value_is_read_in_linear_time(name: str, filler: str) -> None:
    body = f'<!doctype html><img {name}="a.png{filler * 500_000}b.png">'.encode()
    assert least_seconds(lambda: links(Document(PAGE, "text/html", "utf-8", body)), 3) < 3


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["application/ld+json", "application/json", "text/javascript"])
@pytest.mark.parametrize(
    "piece", ['"', '\\"', "\\", "'", "[", "{", '"a":', "_", "__a", "__a=", '"/', '"/a.', '"\\"', ":", "/"]
)
def test_unusual_json_is_read_in_linear_time(kind: str, piece: str) -> None:
    body = f"<script type={kind}>{piece * (300_000 // len(piece))}</script>".encode()
    assert least_seconds(lambda: links(Document(PAGE, "text/html", "utf-8", body)), 2) < 2


@pytest.mark.parametrize(
    ("media_type", "body", "read"),
    [
        ("image/gif", "<html><a href=/x>", False),
        ("application/pdf", "<!doctype html><a href=/x>", False),
        ("application/octet-stream", "<html><a href=/x>", True),
        ("text/plain", "\n<html><a href=/x>", True),
        ("html", "<p><a href=/x>", True),
        ("application/xhtml+xml", "<html><head><meta><p><a href='/x'>", True),
        ("application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'><a href='/x'>a & b</a></html>", True),
        ("text/xml", "<html xmlns='http://www.w3.org/1999/xhtml'><a href='/x'/></html>", True),
        ("text/html", "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><a href='/x'/></html>", True),
    ],
)
def test_wrong_types(media_type: str, body: str, read: bool) -> None:  # noqa: FBT001 - a column
    assert told(body, media_type) == ([("/x", L)] if read else [])
