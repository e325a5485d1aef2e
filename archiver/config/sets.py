"""Ready-made sets of what a crawl may leave out, switched on by name (`--without wikis,…`). Data, and its one reader.

Each set has a reason, and each entry says what it hits. An entry is tried only on URLs that hold its needle, so that
sets cost little; the pattern is found anywhere in the URL, in any case.
"""

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Entry:
    """One kind of URL: a word that each of them holds (in lower case), the pattern, and what it is."""

    needle: str
    pattern: str
    what: str

    def hits(self, address: str, lower: str) -> bool:
        """Whether *address* is of this kind; *lower* is the same in lower case."""
        return self.needle in lower and _compiled(self.pattern).search(address) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Most crawls switch no set on, and need none of the patterns."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExcludeSet:
    """What is left out by one name, and why one may want that."""

    why: str
    entries: tuple[Entry, ...]


_HOST = r"^https?://(?:[^/?#]*\.)?"

SETS = {
    "trackers": ExcludeSet(
        "They count visitors and show nothing; a replay is the same without them.",
        (
            Entry("google-analytics.com", _HOST + r"google-analytics\.com[:/]", "Google Analytics"),
            Entry("googletagmanager.com", _HOST + r"googletagmanager\.com[:/]", "Google Tag Manager"),
            Entry("doubleclick.net", _HOST + r"doubleclick\.net[:/]", "advertisements of Google"),
            Entry("googlesyndication.com", _HOST + r"googlesyndication\.com[:/]", "advertisements of Google"),
            Entry("facebook.com/tr", _HOST + r"facebook\.com/tr(?:[/?]|$)", "the pixel of Facebook"),
            Entry("scorecardresearch.com", _HOST + r"scorecardresearch\.com[:/]", "Scorecard"),
            Entry("quantserve.com", _HOST + r"quantserve\.com[:/]", "Quantcast"),
            Entry("hotjar.com", _HOST + r"hotjar\.com[:/]", "Hotjar"),
            Entry("mc.yandex.ru", _HOST + r"mc\.yandex\.ru[:/]", "Yandex Metrica"),
            Entry("pixel.wp.com", _HOST + r"pixel\.wp\.com[:/]", "statistics of WordPress"),
            Entry("/piwik.php", r"/piwik\.php\?", "Piwik, which counts each visit under another URL"),
            Entry("/matomo.php", r"/matomo\.php\?", "Matomo, likewise"),
        ),
    ),
    "share-links": ExcludeSet(
        "Each page has its own link to each network; behind it lies a form to log in.",
        (
            Entry("/sharer", _HOST + r"facebook\.com/(?:sharer|share\.php|dialog/)", "Facebook"),
            Entry("/intent/", _HOST + r"(?:twitter|x)\.com/intent/", "Twitter"),
            Entry("/share?", _HOST + r"(?:twitter|x)\.com/share\?", "Twitter"),
            Entry("linkedin.com/share", _HOST + r"linkedin\.com/share(?:Article|\b)", "LinkedIn"),
            Entry("linkedin.com/sharing", _HOST + r"linkedin\.com/sharing/", "LinkedIn"),
            Entry("pinterest.", _HOST + r"pinterest\.[a-z.]+/pin/create/", "Pinterest"),
            Entry("reddit.com/submit", _HOST + r"reddit\.com/submit", "Reddit"),
            Entry("tumblr.com", _HOST + r"tumblr\.com/(?:share|widgets/share)", "Tumblr"),
            Entry("wa.me/", _HOST + r"wa\.me/\?text=", "WhatsApp"),
            Entry("t.me/share", _HOST + r"t\.me/share/", "Telegram"),
            Entry("news.ycombinator.com/submitlink", _HOST + r"news\.ycombinator\.com/submitlink", "Hacker News"),
            Entry(
                "share=",
                r"[?&]share=(?:facebook|twitter|x|linkedin|pinterest|reddit|tumblr|email|mastodon)\b",
                "buttons of WordPress, on the site's own address",
            ),
        ),
    ),
    "comments": ExcludeSet(
        "The comments stand on the page itself; these are forms to reply, and the same page once for each comment.",
        (
            Entry("replytocom=", r"[?&]replytocom=", "WordPress: reply to one comment"),
            Entry("unapproved=", r"[?&]unapproved=\d", "WordPress: a comment that waits"),
            Entry("wp-comments-post.php", r"/wp-comments-post\.php", "WordPress: where the form is sent"),
            Entry("/comment/reply/", r"/comment/reply/", "Drupal: reply"),
            Entry("showcomment=", r"[?&]showComment=", "Blogger: the page again, at one comment"),
            Entry("/comment.g", _HOST + r"blogger\.com/comment\.g", "Blogger: the form"),
            Entry("comment-page-", r"/comment-page-\d+/?(?:[?#]|$)", "WordPress: the page again, with older comments"),
        ),
    ),
    "wikis": ExcludeSet(
        "Forms to edit, and every version of every page compared with every other; the pages themselves stay.",
        (
            Entry(
                "action=",
                r"[?&]action=(?:edit|submit|history|delete|protect|watch|unwatch|info|purge|rollback)\b",
                "MediaWiki: forms and histories",
            ),
            Entry("oldid=", r"[?&]oldid=\d", "MediaWiki: older versions"),
            Entry("diff=", r"[?&]diff=(?:\d|next|prev|cur)", "MediaWiki: differences"),
            Entry("veaction=", r"[?&]veaction=", "MediaWiki: the visual editor"),
            Entry("redlink=", r"[?&]redlink=1", "MediaWiki: pages that do not exist"),
            Entry(
                "special",
                r"[/=:]Special(?::|%3A)(?:RecentChanges|WhatLinksHere|Log|UserLogin|CreateAccount|Contributions"
                r"|MovePage|Upload|Book|Export|MobileDiff|EmailUser|Block|Undelete)",
                "MediaWiki: reports without end",
            ),
            Entry(
                "do=", r"[?&]do=(?:edit|diff|revisions|backlink|login|media|recent|register|export_\w+)\b", "DokuWiki"
            ),
            Entry("?action=", r"\?action=(?:AttachFile&do=|diff|raw|print|LikePages|LocalSiteMap)", "MoinMoin"),
            Entry("/bin/", r"/bin/(?:edit|rdiff|oops|attach|rename|manage)/", "TWiki and Foswiki"),
        ),
    ),
    "forums": ExcludeSet(
        "Forms, and each thread once for each of its posts and in every order; the threads themselves stay.",
        (
            Entry("posting.php", r"/posting\.php\?", "phpBB: forms to write"),
            Entry("ucp.php", r"/ucp\.php\?", "phpBB: one's own settings"),
            Entry(
                "memberlist.php",
                r"/memberlist\.php\?(?:.*&)?(?:sk|sd|mode=(?:contact|email))\b",
                "phpBB: members, by each column",
            ),
            Entry(
                "viewtopic.php",
                r"/viewtopic\.php\?(?:.*&)?(?:p=\d|view=|vote=|hilit=)",
                "phpBB: a thread at one of its posts",
            ),
            Entry("newreply.php", r"/newreply\.php\?", "vBulletin: reply"),
            Entry("newthread.php", r"/newthread\.php\?", "vBulletin: new thread"),
            Entry("showpost.php", r"/showpost\.php\?", "vBulletin: one post"),
            Entry("sendmessage.php", r"/sendmessage\.php\?", "vBulletin: mail"),
            Entry(
                "index.php?action=",
                r"/index\.php\?action=(?:post|reporttm|emailuser|printpage|search|login|register|pm)\b",
                "Simple Machines: forms",
            ),
            Entry(".msg", r"\?topic=\d+\.msg\d+", "Simple Machines: a thread at one of its posts"),
            Entry("/posts/", r"/posts/\d+/(?:edit|quote|report|react|bookmark|share)\b", "XenForo: forms"),
            Entry("findpost", r"[?&](?:do=findComment|view=findpost)\b", "Invision: a thread at one of its posts"),
        ),
    ),
    "blogs": ExcludeSet(
        "Every post stands on its own page; these are forms, and the same posts again by date and as feeds.",
        (
            Entry("/feed", r"/\d{4}/\d{2}/.+/feed/?(?:[?#]|$)", "WordPress: a feed for each post"),
            Entry("like_comment=", r"[?&](?:like_comment|_wpnonce)=", "WordPress: likes"),
            Entry("/wp-login.php", r"/wp-login\.php", "WordPress: the form to log in"),
            Entry("/wp-json/oembed", r"/wp-json/oembed/", "WordPress: each post once more, for embedding"),
            Entry("updated-m", r"[?&]updated-m(?:in|ax)=", "Blogger: pages between any two dates"),
            Entry("/feeds/", r"/feeds/\d+/comments/", "Blogger: a feed for each post"),
            Entry(
                "/search/label/",
                r"/search/label/[^?]*\?(?:.*&)?(?:start|max-results)=",
                "Blogger: labels, from any post on",
            ),
            Entry("m=", _HOST + r"blogspot\.[a-z.]+/.*[?&]m=[01]\b", "Blogger: each page for telephones"),
            Entry("/trackback", r"/trackback/?(?:[?#]|$)", "trackbacks"),
        ),
    ),
    "calendars": ExcludeSet(
        "They go on for ever in both directions, mostly empty; events that pages link to stay.",
        (
            Entry("tribe-bar-date=", r"[?&]tribe-bar-date=", "The Events Calendar"),
            Entry(
                "eventdisplay=",
                r"[?&](?:tribe_event_display|eventDisplay)=(?:day|week|month|past)\b",
                "The Events Calendar",
            ),
            Entry("ical=", r"[?&](?:outlook-)?ical=", "each view once more, as a file"),
            Entry(
                "/events/", r"/events/(?:month/|week/|day/|today/)?\d{4}-\d{2}(?:-\d{2})?/?(?:[?#]|$)", "views by date"
            ),
            Entry("/calendar/", r"/calendar/(?:.*/)?\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?/?(?:[?#]|$)", "views by date"),
            Entry("option=com_jevents", r"[?&]option=com_jevents\b.*\b(?:year|month|day)=", "JEvents"),
            Entry("/calendar-node-field-date/", r"/calendar-node-field-date/", "Drupal"),
            Entry("action~", r"/action~(?:month|week|oneday|agenda|posterboard|stream)\b", "All-in-One Event Calendar"),
        ),
    ),
    "shops": ExcludeSet(
        "Baskets, accounts, and every list of goods by every choice and order; the goods themselves stay.",
        (
            Entry("add-to-cart=", r"[?&]add-to-cart=", "WooCommerce: into the basket"),
            Entry("add_to_wishlist=", r"[?&]add_to_wishlist=", "WooCommerce: onto a list of wishes"),
            Entry("orderby=", r"[?&]orderby=(?:price|popularity|rating|date)", "WooCommerce: orders of a list"),
            Entry("filter_", r"[?&](?:filter_\w+|query_type_\w+|min_price|max_price)=", "WooCommerce: choices"),
            Entry("product_list_", r"[?&]product_list_(?:order|dir|mode|limit)=", "Magento: orders of a list"),
            Entry("/catalog/product_compare/", r"/catalog/product_compare/", "Magento: comparisons"),
            Entry("/checkout/", r"/checkout/(?:cart|onepage)\b", "Magento: the basket"),
            Entry("/wishlist/", r"/wishlist/index/(?:add|configure)/", "Magento: wishes"),
            Entry("sort_by=", r"/collections/[^?]*\?(?:.*&)?(?:sort_by|filter\.[pv]\.)", "Shopify: orders and choices"),
            Entry("/cart/", r"/cart/(?:add|change|update)\b", "Shopify: the basket"),
            Entry("controller=", r"[?&]controller=(?:cart|authentication|password|my-account|order)\b", "PrestaShop"),
            Entry("route=", r"[?&]route=(?:checkout|account|product/compare)\b", "OpenCart"),
        ),
    ),
    "streams": ExcludeSet(
        "Radio and cameras that are live have no end; each would be read until a limit cuts it.",
        (
            Entry("/;stream", r"/;stream", "SHOUTcast"),
            Entry(":8000/", r"^http://[^/]+:8000/(?:stream|live|radio|listen)\b", "Icecast, where it is by default"),
            Entry("mjpg", r"/(?:axis-cgi/mjpg/|mjpg/video\.)", "cameras of Axis"),
            Entry("action=stream", r"[?&]action=stream\b", "mjpg-streamer"),
            Entry("/videostream.cgi", r"/videostream\.cgi", "cameras of Foscam"),
            Entry(".m3u", r"/(?:stream|live|radio|listen)[^?]*\.(?:m3u|pls)(?:[?#]|$)", "lists that lead to a stream"),
        ),
    ),
}
