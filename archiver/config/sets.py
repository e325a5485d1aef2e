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
            Entry("doubleclick.net", _HOST + r"doubleclick\.net[:/]", "Google ads"),
            Entry("googlesyndication.com", _HOST + r"googlesyndication\.com[:/]", "Google ads"),
            Entry("facebook.com/tr", _HOST + r"facebook\.com/tr(?:[/?]|$)", "Facebook pixel"),
            Entry("scorecardresearch.com", _HOST + r"scorecardresearch\.com[:/]", "Scorecard"),
            Entry("quantserve.com", _HOST + r"quantserve\.com[:/]", "Quantcast"),
            Entry("hotjar.com", _HOST + r"hotjar\.com[:/]", "Hotjar"),
            Entry("mc.yandex.ru", _HOST + r"mc\.yandex\.ru[:/]", "Yandex Metrica"),
            Entry("pixel.wp.com", _HOST + r"pixel\.wp\.com[:/]", "WordPress statistics"),
            Entry("/piwik.php", r"/piwik\.php\?", "Piwik, a new URL for each visit"),
            Entry("/matomo.php", r"/matomo\.php\?", "Matomo, a new URL for each visit"),
        ),
    ),
    "share-links": ExcludeSet(
        "Each page has its own link to each network, which leads to a login form.",
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
                "WordPress buttons, on the site's own address",
            ),
        ),
    ),
    "comments": ExcludeSet(
        "The comments are on the page itself. These are reply forms, and the same page once per comment.",
        (
            Entry("replytocom=", r"[?&]replytocom=", "WordPress: reply to one comment"),
            Entry("unapproved=", r"[?&]unapproved=\d", "WordPress: a comment awaiting approval"),
            Entry("wp-comments-post.php", r"/wp-comments-post\.php", "WordPress: target of the form"),
            Entry("/comment/reply/", r"/comment/reply/", "Drupal: reply"),
            Entry("showcomment=", r"[?&]showComment=", "Blogger: the page again at one comment"),
            Entry("/comment.g", _HOST + r"blogger\.com/comment\.g", "Blogger: the form"),
            Entry("comment-page-", r"/comment-page-\d+/?(?:[?#]|$)", "WordPress: the page again with older comments"),
        ),
    ),
    "wikis": ExcludeSet(
        "Edit forms, and differences between all versions of all pages. The pages themselves stay.",
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
                "MediaWiki: endless reports",
            ),
            Entry(
                "do=", r"[?&]do=(?:edit|diff|revisions|backlink|login|media|recent|register|export_\w+)\b", "DokuWiki"
            ),
            Entry("?action=", r"\?action=(?:AttachFile&do=|diff|raw|print|LikePages|LocalSiteMap)", "MoinMoin"),
            Entry("/bin/", r"/bin/(?:edit|rdiff|oops|attach|rename|manage)/", "TWiki and Foswiki"),
        ),
    ),
    "forums": ExcludeSet(
        "Forms, and each thread once per post and in every order. The threads themselves stay.",
        (
            Entry("posting.php", r"/posting\.php\?", "phpBB: post forms"),
            Entry("ucp.php", r"/ucp\.php\?", "phpBB: user settings"),
            Entry(
                "memberlist.php",
                r"/memberlist\.php\?(?:.*&)?(?:sk|sd|mode=(?:contact|email))\b",
                "phpBB: members sorted by each column",
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
        "Each post has its own page. These are forms, and the same posts again by date and as feeds.",
        (
            Entry("/feed", r"/\d{4}/\d{2}/.+/feed/?(?:[?#]|$)", "WordPress: a feed for each post"),
            Entry("like_comment=", r"[?&](?:like_comment|_wpnonce)=", "WordPress: likes"),
            Entry("/wp-login.php", r"/wp-login\.php", "WordPress: login form"),
            Entry("/wp-json/oembed", r"/wp-json/oembed/", "WordPress: each post again, for embedding"),
            Entry("updated-m", r"[?&]updated-m(?:in|ax)=", "Blogger: pages between any two dates"),
            Entry("/feeds/", r"/feeds/\d+/comments/", "Blogger: a feed for each post"),
            Entry(
                "/search/label/",
                r"/search/label/[^?]*\?(?:.*&)?(?:start|max-results)=",
                "Blogger: labels, from any post on",
            ),
            Entry("m=", _HOST + r"blogspot\.[a-z.]+/.*[?&]m=[01]\b", "Blogger: each page again for phones"),
            Entry("/trackback", r"/trackback/?(?:[?#]|$)", "trackbacks"),
        ),
    ),
    "calendars": ExcludeSet(
        "They are endless in both directions and mostly empty. Events that pages link to stay.",
        (
            Entry("tribe-bar-date=", r"[?&]tribe-bar-date=", "The Events Calendar"),
            Entry(
                "eventdisplay=",
                r"[?&](?:tribe_event_display|eventDisplay)=(?:day|week|month|past)\b",
                "The Events Calendar",
            ),
            Entry("ical=", r"[?&](?:outlook-)?ical=", "each view again as a file"),
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
        "Carts, accounts, and every product list in every filter and order. The products themselves stay.",
        (
            Entry("add-to-cart=", r"[?&]add-to-cart=", "WooCommerce: add to cart"),
            Entry("add_to_wishlist=", r"[?&]add_to_wishlist=", "WooCommerce: add to wish list"),
            Entry("orderby=", r"[?&]orderby=(?:price|popularity|rating|date)", "WooCommerce: sort orders"),
            Entry("filter_", r"[?&](?:filter_\w+|query_type_\w+|min_price|max_price)=", "WooCommerce: filters"),
            Entry("product_list_", r"[?&]product_list_(?:order|dir|mode|limit)=", "Magento: sort orders"),
            Entry("/catalog/product_compare/", r"/catalog/product_compare/", "Magento: comparisons"),
            Entry("/checkout/", r"/checkout/(?:cart|onepage)\b", "Magento: cart"),
            Entry("/wishlist/", r"/wishlist/index/(?:add|configure)/", "Magento: wish list"),
            Entry("sort_by=", r"/collections/[^?]*\?(?:.*&)?(?:sort_by|filter\.[pv]\.)", "Shopify: orders and filters"),
            Entry("/cart/", r"/cart/(?:add|change|update)\b", "Shopify: cart"),
            Entry("controller=", r"[?&]controller=(?:cart|authentication|password|my-account|order)\b", "PrestaShop"),
            Entry("route=", r"[?&]route=(?:checkout|account|product/compare)\b", "OpenCart"),
        ),
    ),
    "streams": ExcludeSet(
        "Live radio and cameras have no end. Each would be read until a limit cuts it.",
        (
            Entry("/;stream", r"/;stream", "SHOUTcast"),
            Entry(":8000/", r"^http://[^/]+:8000/(?:stream|live|radio|listen)\b", "Icecast at its default port"),
            Entry("mjpg", r"/(?:axis-cgi/mjpg/|mjpg/video\.)", "Axis cameras"),
            Entry("action=stream", r"[?&]action=stream\b", "mjpg-streamer"),
            Entry("/videostream.cgi", r"/videostream\.cgi", "Foscam cameras"),
            Entry(".m3u", r"/(?:stream|live|radio|listen)[^?]*\.(?:m3u|pls)(?:[?#]|$)", "playlists of a stream"),
        ),
    ),
}
