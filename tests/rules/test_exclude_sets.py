"""The ready-made sets: each entry hits what it is for, and nothing that looks like it."""

import pytest

from archiver.config.presets import SETS

HITS = {
    "trackers": [
        "https://www.google-analytics.com/collect?v=1",
        "https://stats.g.doubleclick.net/r",
        "https://a.org/matomo.php?idsite=1",
        "https://www.facebook.com/tr?id=1",
        "https://pixel.wp.com/g.gif?x",
    ],
    "share-links": [
        "https://www.facebook.com/sharer/sharer.php?u=x",
        "https://x.com/intent/tweet?url=x",
        "https://t.me/share/url?url=x",
        "https://blog.org/post/?share=twitter",
        "https://www.linkedin.com/shareArticle?url=x",
        "https://wa.me/?text=x",
    ],
    "comments": [
        "https://blog.org/a/?replytocom=12",
        "https://d.org/comment/reply/12/3",
        "https://blog.org/a/comment-page-3/",
        "https://x.blogspot.com/2020/01/a.html?showComment=158",
    ],
    "wikis": [
        "https://w.org/index.php?title=A&action=edit",
        "https://w.org/index.php?title=A&oldid=7",
        "https://w.org/A?diff=prev&oldid=8",
        "https://w.org/wiki/Special:RecentChanges",
        "https://w.org/wiki/Special%3AWhatLinksHere/A",
        "https://w.org/index.php?title=Special:AllMessages&offset=A",
        "https://d.org/start?do=edit",
        "https://d.org/start?do=export_pdf",
        "https://d.org/start?rev=1700000000",
        "https://w.org/index.php?title=Spezial:Anmelden&returnto=A",
        "https://w.org/index.php?title=Spezial:Letzte_%C3%84nderungen&hidebots=0",
        "https://d.org/doku.php?id=start&idx=docs%3Aguide",
    ],
    "repositories": [
        f"https://g.org/?p=a.git;a=blame;f=a.c;h={40 * '0'};hb=HEAD",
        "https://g.org/?p=a.git;a=history;f=a.c",
        f"https://g.org/?p=a.git;a=log;h={40 * 'a'}",
        "https://g.org/?a=rss&f=a.c&p=a.git",
        f"https://g.org/a.git/tree/a.c?h=main&id={40 * '1'}",
        f"https://g.org/a.git/diff/?id={40 * '1'}&id2={40 * '2'}",
        "https://g.org/a.git/log/a.c?h=v1",
        "https://v.org/viewvc/a.c?r1=1.2&r2=1.3",
        "https://v.org/viewvc/a.c?annotate=1.2",
        "https://v.org/viewvc/a.c?view=markup&pathrev=7",
        "https://t.org/changeset?new=5&old=4",
        "https://h.org/annotate/0123456789ab/a.c",
        "https://h.org/log/0123456789ab/a.c",
        "https://h.org/shortlog/0123456789ab?revcount=120",
    ],
    "forums": [
        "https://f.org/posting.php?mode=reply&t=1",
        "https://f.org/viewtopic.php?f=1&p=77",
        "https://f.org/newreply.php?t=1",
        "https://f.org/index.php?action=post;topic=1",
        "https://f.org/index.php?topic=12.msg345",
        "https://f.org/posts/5/report",
    ],
    "blogs": [
        "https://b.org/2020/01/title/feed/",
        "https://x.blogspot.com/search?updated-max=2020-01-01",
        "https://b.org/wp-login.php",
        "https://x.blogspot.com/2020/01/a.html?m=1",
        "https://b.org/2020/title/trackback/",
    ],
    "calendars": [
        "https://e.org/events/2031-05/",
        "https://e.org/events/month/2020-05/",
        "https://e.org/calendar/2020/5/17",
        "https://e.org/?tribe-bar-date=2020-01-01",
        "https://e.org/event/x/?ical=1",
    ],
    "shops": [
        "https://s.org/chair/?add-to-cart=5",
        "https://s.org/chairs/?orderby=price",
        "https://s.org/c?product_list_order=name",
        "https://s.org/collections/all?sort_by=price",
        "https://s.org/chairs/?filter_colour=red",
        "https://s.org/index.php?route=checkout/cart",
    ],
    "streams": [
        "http://radio.org:8000/stream",
        "http://cam.org/axis-cgi/mjpg/video.cgi",
        "http://cam.org/?action=stream",
        "http://radio.org/live.m3u",
        "http://radio.org/;stream.mp3",
    ],
}
MISSES = {
    "trackers": [
        "https://a.org/about/google-analytics.com",
        "https://mygoogle-analytics.com.evil/",
        "https://www.facebook.com/trains",
        "https://a.org/matomo",
    ],
    "share-links": [
        "https://x.com/someone/status/1",
        "https://a.org/sharer/",
        "https://blog.org/?share=holders",
        "https://www.linkedin.com/in/someone",
    ],
    "comments": [
        "https://blog.org/a/",
        "https://blog.org/comments/",
        "https://blog.org/how-to-comment/reply/",
        "https://d.org/comment/12",
    ],
    "wikis": [
        "https://w.org/wiki/Main_Page",
        "https://w.org/index.php?title=A",
        "https://w.org/wiki/Special:AllPages",
        "https://w.org/wiki/Edit",
        "https://w.org/?transaction=edition",
        "https://d.org/start?do=show",
        "https://t.org/browser/a.c?rev=17",
        "https://d.org/doku.php?idx=docs",
    ],
    "repositories": [
        f"https://g.org/?p=a.git;a=commit;h={40 * '0'}",
        f"https://g.org/?p=a.git;a=commitdiff;h={40 * '0'}",
        f"https://g.org/?p=a.git;a=blob;f=a.c;h={40 * '0'};hb=HEAD",
        "https://g.org/?p=a.git;a=log",
        "https://g.org/?p=a.git;a=rss",
        "https://g.org/a.git/tree/a.c",
        "https://g.org/a.git/log/",
        f"https://g.org/a.git/commit/?id={40 * '1'}",
        "https://v.org/viewvc/a.c?view=markup",
        "https://t.org/changeset/5",
        "https://h.org/rev/0123456789ab",
        "https://h.org/log/0123456789ab",
        "https://h.org/file/0123456789ab/a.c",
    ],
    "forums": [
        "https://f.org/viewtopic.php?f=1&t=7",
        "https://f.org/viewtopic.php?t=7&start=20",
        "https://f.org/index.php?topic=12.20",
        "https://f.org/posts/5/",
    ],
    "blogs": [
        "https://b.org/2020/01/title/",
        "https://b.org/feed/",
        "https://x.blogspot.com/2020/01/a.html",
        "https://b.org/2020/01/",
    ],
    "calendars": [
        "https://e.org/event/summer-fair/",
        "https://e.org/events/",
        "https://e.org/calendar/",
        "https://e.org/news/2020/5/17",
        "https://e.org/medical=1",
    ],
    "shops": [
        "https://s.org/chair/",
        "https://s.org/collections/all",
        "https://s.org/chairs/?page=2",
        "https://s.org/cart",
        "https://s.org/?orderby=title",
    ],
    "streams": [
        "http://radio.org/",
        "http://radio.org:8000/",
        "http://radio.org/livestock/",
        "http://a.org/mainstream/x.html",
    ],
}


@pytest.mark.parametrize("name", SETS)
def test_what_a_set_hits(name: str) -> None:
    def hits(address: str) -> bool:
        return any(entry.hits(address, address.lower()) for entry in SETS[name].entries)

    assert [address for address in HITS[name] if not hits(address)] == []
    assert [address for address in MISSES[name] if hits(address)] == []


@pytest.mark.parametrize("name", SETS)
def test_no_set_hits_a_plain_site(name: str) -> None:
    for address in (
        "http://example.org/",
        "https://example.org/news/2024/05/12/title.html",
        "https://example.org/a?id=5&page=2",
    ):
        assert not any(entry.hits(address, address) for entry in SETS[name].entries)


def test_every_entry_has_its_words() -> None:
    for each in SETS.values():
        assert each.why.endswith(".")
        for entry in each.entries:
            assert entry.needle == entry.needle.lower()
            assert entry.what
