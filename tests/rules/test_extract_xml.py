"""XML vocabularies: one document per row, and the links found in it."""

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.extract import Document, links
from archiver.model import Hop
from fixtures.extracted_links import PAGE, found

L, E, X, M = Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE, Hop.MANIFEST


FEEDS = {
    "rss 2.0": (
        (
            "<rss version='2.0'><channel><link>/</link><docs>http://e.org/docs</docs>"
            "<image><url>/logo.png</url><title>t</title><link>/</link></image><cloud domain='e.org' path='/rpc'/>"
            "<item><link> /1?a&amp;b </link><comments>http://e.org/1c</comments><guid>http://e.org/1g</guid>"
            "<guid isPermaLink='false'>http://e.org/no</guid>"
            "<enclosure url='/1.mp3' type='audio/mpeg'/><enclosure url='/1.jpg' type='image/jpeg'/>"
            "<source url='http://e.org/other.xml'>o</source><category domain='http://no.org/'>c</category></item>"
        ),
        [
            *(
                ("/", L),
                ("/docs", L),
                ("/logo.png", E),
                ("/1?a&b", L),
                ("/1c", L),
                ("/1g", L),
                ("/1.mp3", L),
                ("/1.jpg", E),
            ),
            ("/other.xml", L),
        ],
    ),
    "rss with relative comments": (
        (
            "<rss xmlns:s='http://purl.org/rss/1.0/modules/slash/' xmlns:w='http://wellformedweb.org/CommentAPI/'><channel>"
            "<item><link>/1</link><comments>/1c#c</comments><s:comments>12</s:comments>"
            "<w:commentRss>1/feed/</w:commentRss></item></channel></rss>"
        ),
        [("/1", L), ("/1c", L), ("/d/1/feed/", L)],
    ),
    "atom 0.3": (
        (
            "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><link rel='alternate' href='/home'/>"
            "<link rel='service.post' href='/no'/><link rel='service.edit' href='/no'/>"
            "<link rel='service.feed' href='/f'/>"
            "<author><url>/about</url></author><generator url='/gen'>g</generator>"
            "<tagline type='text/html' mode='escaped'>&lt;a href='/t'></tagline>"
            "<info type='text/html' mode='escaped'>&lt;a href='/i'></info>"
            "<entry><link rel='alternate' href='/e'/>"
            "<content type='text/html' mode='escaped'>&lt;img src='/p.gif'></content></entry></feed>"
        ),
        [("/home", L), ("/f", L), ("/about", L), ("/gen", L), ("/t", L), ("/i", L), ("/e", L), ("/p.gif", E)],
    ),
    "no link but a name": (
        (
            "<rss><channel><item><guid isPermaLink='false'>http://e.org/only</guid></item>"
            "<item><guid isPermaLink='false'>abc</guid></item></channel></rss>"
        ),
        [("/only", L)],
    ),
    "rss 1.0": (
        (
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
            "<channel rdf:about='http://e.org/about'><link>http://e.org/</link><items><rdf:Seq>"
            "<rdf:li rdf:resource='http://e.org/1'/></rdf:Seq></items></channel>"
            "<item rdf:about='http://e.org/1x'><link>/2</link></item></rdf:RDF>"
        ),
        [("/", L), ("/1", L), ("/2", L)],
    ),
    "media rss": (
        (
            "<rss xmlns:media='http://search.yahoo.com/mrss/'><channel><item>"
            "<media:content url='/v.mp4' type='video/mp4'>"
            "<media:thumbnail url='/t.jpg'/><media:player url='/play'/></media:content>"
            "<media:content url='/i.png' medium='image'/></item></channel></rss>"
        ),
        [("/v.mp4", L), ("/t.jpg", E), ("/play", L), ("/i.png", E)],
    ),
    "podcast": (
        (
            "<rss xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel><itunes:image href='/c.jpg'/>"
            "</channel></rss>"
        ),
        [("/c.jpg", E)],
    ),
    "podcast 2.0": (
        (
            "<rss xmlns:podcast='https://podcastindex.org/namespace/1.0' xmlns:psc='http://podlove.org/simple-chapters'>"
            "<channel><item><podcast:transcript url='../t.vtt' type='text/vtt'/><podcast:chapters url='/c.json'/>"
            "<podcast:alternateEnclosure><podcast:source uri='/a.m4a'/></podcast:alternateEnclosure>"
            "<podcast:person img='/p.jpg' href='http://e.org/p'>P</podcast:person>"
            "<psc:chapters><psc:chapter start='0' href='/ch' image='/ch.jpg'/></psc:chapters></item></channel></rss>"
        ),
        [("/t.vtt", L), ("/c.json", L), ("/a.m4a", L), ("/p.jpg", E), ("/p", L), ("/ch", L), ("/ch.jpg", E)],
    ),
    "html in rss": (
        (
            "<rss xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><item>"
            "<description>&lt;a href='x'&gt;y&lt;/a&gt;&lt;img src=/i.png srcset='/i2.png 2x'&gt;</description>"
            "<content:encoded><![CDATA[<p><a href='/z?a&amp;b' rel=nofollow>z</a><iframe src='//v.org/'>"
            "</iframe>]]></content:encoded></item>"
        ),
        [("/d/x", L), ("/i.png", E), ("/i2.png", E), ("/z?a&b", L), ("http://v.org/", E)],
    ),
    "html not escaped": (
        (
            "<rss><channel><item><description><p>a <a href='/x'>y</a><img src='/i.png'/></p></description></item>"
            "</channel></rss>"
        ),
        [("/x", L), ("/i.png", E)],
    ),
    "atom": (
        (
            "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://e.org/b/'><id>http://e.org/id</id>"
            "<icon>i.ico</icon><logo>l.png</logo>"
            "<link rel='self' href='self'/><link rel='hub' href='hub'/><link rel='next' href='?page=2'/>"
            "<link rel='edit' href='edit'/>"
            "<generator uri='http://g.org/'>g</generator><author><uri>/me</uri></author>"
            "<category term='t' scheme='http://no.org/'/>"
            "<entry xml:base='2020/'><id>tag:e.org,2020:1</id><link href='1'/>"
            "<link rel='enclosure' type='image/png' href='1.png'/>"
            "<link rel='enclosure' type='audio/mpeg' href='1.mp3'/><link rel='related' href='//r.org'/>"
            "<content src='1.html' type='text/html'/></entry>"
            "<entry><link href='last'/></entry></feed>"
        ),
        [
            *(("/b/i.ico", E), ("/b/l.png", E), ("/b/self", L), ("/b/?page=2", L), ("http://g.org/", L), ("/me", L)),
            *(
                ("/b/2020/1", L),
                ("/b/2020/1.png", E),
                ("/b/2020/1.mp3", L),
                ("http://r.org/", L),
                ("/b/2020/1.html", L),
            ),
            ("/b/last", L),
        ],
    ),
    "html in atom": (
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/1'/>"
            "<title type='text'>&lt;a href='/no'></title>"
            "<content type='html' xml:base='/c/'>&lt;img src='i.png'></content><summary type='xhtml'>"
            "<div xmlns='http://www.w3.org/1999/xhtml'>a <a href='x'>b <img src='j.png' srcset='k.png 2x'/></a>"
            "</div></summary></entry></feed>"
        ),
        [("/1", L), ("/c/i.png", E), ("/d/x", L), ("/d/j.png", E), ("/d/k.png", E)],
    ),
    "an entry alone": ("<entry xmlns='http://www.w3.org/2005/Atom'><link href='/1'/></entry>", [("/1", L)]),
    "opds": (
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='search' href='/s.xml'/>"
            "<link rel='search' href='/s?q={searchTerms}'/>"
            "<entry><link rel='http://opds-spec.org/acquisition' href='b.epub'/>"
            "<link rel='http://opds-spec.org/image' href='b.jpg' type='image/jpeg'/>"
            "<link rel='http://opds-spec.org/image/thumbnail' href='t.jpg'/></entry></feed>"
        ),
        [("/s.xml", L), ("/d/b.epub", L), ("/d/b.jpg", E), ("/d/t.jpg", E)],
    ),
    "numbers are no addresses": (
        (
            "<rss xmlns:slash='http://purl.org/rss/1.0/modules/slash/' "
            "xmlns:wfw='http://wellformedweb.org/CommentAPI/'><channel>"
            "<item><slash:comments>12</slash:comments><wfw:commentRss>http://e.org/c</wfw:commentRss></item>"
            "</channel></rss>"
        ),
        [("/c", L)],
    ),
    "styled": ("<?xml-stylesheet type='text/xsl' href=\"/f.xsl?a&amp;b\"?><rss/>", [("/f.xsl?a&b", E)]),
    "a comment first": ("<!-- <html><a href='/no'> --><rss><channel><link>/x</link></channel></rss>", [("/x", L)]),
}


@pytest.mark.parametrize("name", FEEDS)
def test_feeds(name: str) -> None:
    body, expected = FEEDS[name]
    assert found(body, "application/xml") == expected


XML = {
    "svg": (
        (
            "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>"
            "<style>@import 'a.css';</style>"
            "<image xlink:href='i.png'/><a href='/x'>"
            "<rect fill='url(defs.svg#f)' mask='url(#m)' style='filter:url(f.svg#x)'/></a><use href='#u'/></svg>"
        ),
        [("/d/a.css", E), ("/d/i.png", E), ("/x", L), ("/d/defs.svg", E), ("/d/f.svg", E)],
    ),
    "svg with a style sheet": ("<?xml version='1.0'?><?xml-stylesheet href='s.css'?><svg/>", [("/d/s.css", E)]),
    "xhtml": (
        (
            "<html xmlns='http://www.w3.org/1999/xhtml'><head><base href='/b/'/></head><body><a href='x'/>"
            "<img src='i.png'/></body></html>"
        ),
        [("/b/x", L), ("/b/i.png", E)],
    ),
    "xhtml with a bare ampersand": (
        "<html xmlns='http://www.w3.org/1999/xhtml'><a href='/x?a&b'>y</a><br/>&nbsp;<img src='i.png'/></html>",
        [("/x?a&b", L), ("/d/i.png", E)],
    ),
    "xhtml, broken behind an empty script": (
        (
            "<html xmlns='http://www.w3.org/1999/xhtml'><script src='s.js'/><a href='/x'>y</a>"
            "<a href='/z'>&nbsp;</a></html>"
        ),
        [("/d/s.js", E), ("/x", L), ("/z", L)],
    ),
    "xhtml that is none": ("<html><p><a href=/x>y</a><br><img src=i.png></html>", [("/x", L), ("/d/i.png", E)]),
    "xsl": (
        (
            "<xsl:stylesheet xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:import href='a.xsl'/>"
            "<xsl:include href='b.xsl'/>"
            "<xsl:template match=\"document('c.xml')/x\"><link rel='stylesheet' href='/s.css'/><img src='{@src}'/>"
            "<a href='/{@id}'/>"
            "<a><xsl:attribute name='href'>http://no.org/</xsl:attribute></a></xsl:template></xsl:stylesheet>"
        ),
        [("/d/a.xsl", E), ("/d/b.xsl", E), ("/d/c.xml", E), ("/s.css", E)],
    ),
    "xinclude": ("<x><i:include xmlns:i='http://www.w3.org/2001/XInclude' href='part.xml'/></x>", [("/d/part.xml", E)]),
    "xlink": (
        (
            "<x xmlns:l='http://www.w3.org/1999/xlink' xml:base='/b/'><y l:href='z'/>"
            "<y l:href='i.png' l:show='embed' l:role='http://no.org/'/></x>"
        ),
        [("/b/z", L), ("/b/i.png", E)],
    ),
    "html in anything": (
        (
            "<x xmlns:h='http://www.w3.org/1999/xhtml'><h:a href='y'/><h:style>b{c:url(d.png)}</h:style>"
            "<a href='no'/></x>"
        ),
        [("/d/y", L), ("/d/d.png", E)],
    ),
    "data of a site's own": (
        (
            "<shop><item href='/a' ref='/no' file='/no' class='c.html'/><pic large-image='p/1.jpg' alt='alt.jpg'/>"
            "<page>b.html</page><page>Two words.html</page><name>no.html</name><linkURL>/c?d=1</linkURL><url>e</url>"
            "<image>/srv/f</image><base href='/g/'/><namespace url='/{h}'/></shop>"
        ),
        [("/a", X), ("/d/p/1.jpg", X), ("/d/b.html", X), ("/c?d=1", X)],
    ),
    "schemas": (
        "<x xmlns:s='http://www.w3.org/2001/XMLSchema-instance' s:noNamespaceSchemaLocation='http://no.org/'/>",
        [],
    ),
    "browserconfig": (
        (
            "<browserconfig><msapplication><tile><square70x70logo src='/t.png'/><TileImage src='u.png'/></tile>"
            "<notification><polling-uri src='/poll'/></notification></msapplication></browserconfig>"
        ),
        [("/t.png", E), ("/d/u.png", E)],
    ),
    "opensearch": (
        (
            "<OpenSearchDescription xmlns='http://a9.com/-/spec/opensearch/1.1/' "
            "xmlns:moz='http://www.mozilla.org/2006/browser/search/'>"
            "<Url template='http://e.org/s?q={searchTerms}'/><Url rel='self' template='/os.xml'/>"
            "<Image>/f.ico</Image><moz:SearchForm>/s</moz:SearchForm></OpenSearchDescription>"
        ),
        [("/os.xml", L), ("/f.ico", L), ("/s", L)],
    ),
    "opml": ("<opml><outline htmlUrl='/h' xmlUrl='/x.xml'/></opml>", [("/h", L), ("/x.xml", L)]),
    "xbel": ("<xbel><bookmark href='/h'><info/></bookmark></xbel>", [("/h", L)]),
    "smil": (
        (
            "<smil><head><meta name='base' content='/m/'/></head><par><video src='v.mp4'/><img src='i.gif'/>"
            "<a href='/x'/></par></smil>"
        ),
        [("/m/v.mp4", E), ("/m/i.gif", E), ("/x", L)],
    ),
    "xspf": (
        (
            "<playlist xmlns='http://xspf.org/ns/0/'><info>/about</info><trackList><track><location>/1.ogg</location>"
            "<identifier>http://e.org/id</identifier><image>/c.jpg</image></track></trackList></playlist>"
        ),
        [("/about", L), ("/1.ogg", L), ("/c.jpg", E)],
    ),
    "asx": (
        (
            "<ASX VERSION='3'><Base HREF='/m/'/><Entry><Ref HREF='1.wmv'/><Ref href='mms://e.org/2'>"
            "<MoreInfo href='/more'></entry></asx>"
        ),
        [("/m/1.wmv", L), ("/more", L)],
    ),
}


@pytest.mark.parametrize("name", XML)
def test_xml(name: str) -> None:
    body, expected = XML[name]
    assert found(body, "text/xml") == expected


@settings(max_examples=100)
@given(st.sampled_from((*FEEDS, *XML)), st.sampled_from(Hop), st.binary(max_size=20), st.data())
def test_nothing_raises(name: str, hop: Hop, noise: bytes, data: st.DataObject) -> None:
    sample = (FEEDS | XML)[name][0].encode()
    start = data.draw(st.integers(0, len(sample)))
    body = sample[:start] + noise + sample[data.draw(st.integers(start, len(sample))) :]
    assert all(link.url.startswith("http") for link in links(Document(PAGE, "text/xml", None, body, hop)).links)


@pytest.mark.parametrize(
    "piece", ["<!-- -", "<a xml:base='b/'>", "<", "<x:y ", "<?xml-stylesheet href=", "<![CDATA[", "&amp;"]
)
def test_xml_is_linear(piece: str) -> None:
    for root in ("", "<x>", "<rss>", "<svg>", "<urlset>"):
        links(Document(PAGE, "application/xml", None, (root + piece * 12_000).encode()))


def test_a_large_sitemap_is_not_copied_in_memory() -> None:
    page = b"<url><loc>http://e.org/%d</loc></url>"
    body = b"<urlset>" + page % 1 + b" " * (8 << 20) + page % 2 + b"</urlset>"
    tracemalloc.start()
    try:
        named = links(Document(PAGE, "application/xml", None, body, Hop.MANIFEST)).links
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(named) == 2
    assert peak < 1 << 20


def test_a_feed_without_end_tags_is_read_to_its_end() -> None:
    body = b"<rss><channel><item><link>http://e.org/1</link></item>" + b"<g>" * 120_000 + b"<link>http://e.org/2</link>"
    named = links(Document(PAGE, "application/rss+xml", None, body)).links
    assert [link.url for link in named] == ["http://e.org/1", "http://e.org/2"]


S = "http://www.w3.org/2000/svg"
BROKEN = {  # name: an SVG drawing or a feed that is not well-formed, and what it names
    "an element without an end": ("<rss><channel><br><item><link>/1</link></item></channel></rss>", "/1"),
    "ends in the wrong order": ("<rss><item><link>/1</item></link><item><link>/2</link></item></rss>", "/1 /2"),
    "an end of nothing": ("<rss></br></br><item><link>/1</link></item></rss>", "/1"),
    "a quote without an end": ("<opml><outline url='/1><outline url='/2'/><outline url='/3'/></opml>", "/2 /3"),
    "a bracket in a value": ("<opml><outline text='a < b' url='/1'/><x></opml>", "/1"),
    "a value without quotes": ("<opml><outline url=/1 /><outline url=/2></opml>", "/1 /2"),
    "an attribute twice": ("<opml><outline url='/1' url='/2'/></opml>", "/1"),
    "a bracket in a text": ("<rss><title>1 < 2 <3</title><item><link>/1</link></item></rss>", "/1"),
    "a name of HTML": (
        "<rss><title>a&nbsp;b</title><item><link>/1?a&amp;b&c=&eacute;</link></item></rss>",
        "/1?a&b&c=%C3%A9",
    ),
    "a control character": ("<rss><title>\x0b</title><item><link>/1</link></item></rss>", "/1"),
    "a comment without an end": ("<rss><item><link>/1</link></item><!-- <item><link>/2</link></item></rss>", "/1 /2"),
    "two hyphens in a comment": ("<rss><!-- a -- <link>/0</link> --><item><link>/1</link></item></rss>", "/1"),
    "text that is marked as such": ("<rss><br><item><link><![CDATA[/1?a&b]]></link></item></rss>", "/1?a&b"),
    "a prefix that stands for nothing": ("<svg><br><use xlink:href='/1'/></svg>", "/1"),
    "a prefix": (f"<x:svg xmlns:x='{S}' xmlns:l='http://www.w3.org/1999/xlink'><br><x:use l:href='/1'/></x:svg>", "/1"),
    "an entity of its own": (
        f"<!DOCTYPE svg [<!ENTITY s '{S}'><!ENTITY p \"/1\">]><svg xmlns='&s;'><br><use href='&p;'/></svg>",
        "/1",
    ),
    "a base that ends": ("<feed><a xml:base='/b/'><link href='1'></a><link href='2'/></feed>", "/b/1 /2"),
    "what stands behind the root": ("<rss><br><item><link>/1</link></item></rss><a href='/2'>", "/1"),
    "an address that is cut off": ("<rss><item><link>/1</link></item><item><link>/2", "/1"),
    "a sheet": ("<?xml version='1.0'?><?xml-stylesheet href='/1'?><rss><br></rss>", "/1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_xml_is_read_as_a_person_would(name: str) -> None:
    body, expected = BROKEN[name]
    named = links(Document("http://e.org/", "text/xml", None, body.encode())).links
    assert [link.url.removeprefix("http://e.org") for link in named] == expected.split()


def test_a_gzip_sitemap_behind_a_link() -> None:
    body = gzip.compress(b"<urlset><url><loc>http://e.org/1</loc></url></urlset>")
    assert found(body, "application/x-gzip", address="http://e.org/sitemap.xml.gz") == [("/1", L)]
    assert found(body, "application/gzip", address="http://e.org/data.gz") == []


def test_pages_of_a_sitemap_are_not_crowded_out() -> None:
    beside = "".join(f"<x:link rel='alternate' href='/{number}/%d'/>" for number in range(200))
    entries = "".join(f"<url>{beside % ((page,) * 200)}<loc>/{page}</loc></url>" for page in range(300))
    body = f"<urlset xmlns:x='http://www.w3.org/1999/xhtml'>{entries}</urlset>".encode()
    named = links(Document("http://e.org/", "application/xml", None, body))
    assert [link.url for link in named.links[:300]] == [f"http://e.org/{page}" for page in range(300)]
    assert named.note == "more than 50000 links"
    assert len(named.links) == 50_300


@pytest.mark.parametrize("prefix", ["image", "i", "undeclared"])
def test_sitemap_extensions(prefix: str) -> None:
    spaces = "xmlns:i='http://www.google.com/schemas/sitemap-image/1.1' xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'"
    spaces += " xmlns:v='http://www.google.com/schemas/sitemap-video/1.1' xmlns:n='http://www.google.com/schemas/sitemap-news/0.9'"
    body = (
        f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' {spaces}><url><loc>http://e.org/1</loc>"
        f"<{prefix}:image><{prefix}:loc>http://e.org/i.png</{prefix}:loc></{prefix}:image><n:news><n:title>http://no.org/</n:title></n:news>"
        "<v:video><v:thumbnail_loc>/t.png</v:thumbnail_loc><v:content_loc>http://e.org/v.mp4</v:content_loc>"
        "<v:player_loc>http://e.org/play</v:player_loc><v:tag>http://no.org/</v:tag></v:video></url></urlset>"
    )
    named = found(body, "application/xml", Hop.MANIFEST)
    assert named == [("/1", L), ("/i.png", L), ("/v.mp4", L), ("/play", L)]


WARNED = "<br />\n<b>Warning</b>:  include(x.php): failed in <b>/var/www/x.php</b> on line <b>3</b><br />\n"
RSS = "<rss><channel><item><link>/1</link></item></channel></rss>"
URLSET = "<urlset><url><loc>http://e.org/1</loc></url></urlset>"


@pytest.mark.parametrize("warning", [WARNED, "\nNotice: Undefined index in /x on line 3\n", "<p>Deprecated</p>" * 200])
@pytest.mark.parametrize(
    ("media_type", "hop", "body"),
    [
        ("application/rss+xml", L, RSS),
        ("text/xml", L, RSS),
        ("text/html", L, RSS),
        ("text/xml", M, URLSET),
        ("text/html", M, URLSET),
        ("application/xml", L, URLSET),
    ],
)
def test_a_server_warning_before_the_declaration(warning: str, media_type: str, hop: Hop, body: str) -> None:
    text = f'{warning}<?xml version="1.0" encoding="UTF-8"?>\n{body}'
    assert found(text, media_type, hop) == [("/1", L)]


def test_a_declaration_within_a_document_is_part_of_it() -> None:
    inside = "<rss><channel><item><link>/1</link><description>&lt;p&gt;<![CDATA[<?xml version='1.0'?>]]></description>"
    assert found(f"{inside}</item></channel></rss>", "text/xml") == [("/1", L)]


def test_a_base_element_in_svg_is_ignored() -> None:
    drawing = "<svg xmlns='http://www.w3.org/2000/svg'><base href='/b/'/><image href='i.png'/></svg>"
    assert found(drawing, "image/svg+xml") == [("/d/i.png", E)]


SITEMAPS = {
    "a sitemap": ("<urlset><url><loc>http://e.org/a</loc></url></urlset>", ""),
    "one without entries": ("<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>", ""),
    "one that is cut": ("<urlset><url><loc>http://e.org/a</loc></url><url><loc>http://e.", "sitemap: broken XML"),
    "a text": ("http://e.org/a\n", ""),
    "a page with links": ("<!doctype html><a href=/a>a</a>", ""),
    "a page without links": ("<!doctype html><title>Log in</title>", "sitemap: it names no URL"),
    "another text": ("Not found.\n", "sitemap: it names no URL"),
    "nothing": ("", "sitemap: it names no URL"),
}


@pytest.mark.parametrize("name", SITEMAPS)
def test_a_sitemap_that_may_name_less_than_it_should_has_a_note(name: str) -> None:
    text, note = SITEMAPS[name]
    for media_type in ("text/xml", "text/html", "text/plain"):
        assert links(Document(f"{PAGE}.xml", media_type, None, text.encode(), M)).note == note, media_type


def test_a_sitemap_in_a_gzip_file_that_is_cut_has_a_note() -> None:
    body = gzip.compress(SITEMAPS["a sitemap"][0].encode())
    assert links(Document(f"{PAGE}.xml.gz", "application/gzip", None, body, M)).note == ""
    cut = links(Document(f"{PAGE}.xml.gz", "application/gzip", None, body[:-12], M))
    assert cut.note.startswith("sitemap: gzip data is cut")
