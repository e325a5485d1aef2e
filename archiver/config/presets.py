"""Ready-made lists, chosen by name: URLs to leave out (`--without wikis`), query parameters to drop (`--drop-query`).

Each exclude list states its reason, and each entry what it matches. An entry is tried only on URLs that contain its
needle, so lists cost little. The pattern may match anywhere in the URL, in any case.

The preset `sessions` drops exactly what the index of a replay also drops, so replay still finds each link of a page. If
you drop more, replay looks for the URL as it is on the page.
"""

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class ExcludeRule:
    """One kind of URL: a string that all of them contain (in lower case), the pattern, and a description."""

    needle: str
    pattern: str
    what: str

    def hits(self, address: str, lower: str) -> bool:
        """Return whether *address* matches; *lower* is *address* in lower case."""
        return self.needle in lower and _compiled(self.pattern).search(address) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile *pattern* on first use: most crawls use no list."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExcludeSet:
    """A named list and the reason to use it."""

    why: str
    entries: tuple[ExcludeRule, ...]

    def hits(self, address: str) -> bool:
        """Return whether *address* is on the list."""
        lower = address.lower()
        return any(entry.hits(address, lower) for entry in self.entries)


WITHOUT = "--without="  # begins the name of a list where else a regular expression excludes URLs

_HOST = r"^https?://(?:[^/?#]*\.)?"

SETS = {
    "trackers": ExcludeSet(
        "They count visitors and show nothing; a replay is the same without them.",
        (
            ExcludeRule("google-analytics.com", _HOST + r"google-analytics\.com[:/]", "Google Analytics"),
            ExcludeRule("googletagmanager.com", _HOST + r"googletagmanager\.com[:/]", "Google Tag Manager"),
            ExcludeRule("doubleclick.net", _HOST + r"doubleclick\.net[:/]", "Google ads"),
            ExcludeRule("googlesyndication.com", _HOST + r"googlesyndication\.com[:/]", "Google ads"),
            ExcludeRule("facebook.com/tr", _HOST + r"facebook\.com/tr(?:[/?]|$)", "Facebook pixel"),
            ExcludeRule("scorecardresearch.com", _HOST + r"scorecardresearch\.com[:/]", "Scorecard"),
            ExcludeRule("quantserve.com", _HOST + r"quantserve\.com[:/]", "Quantcast"),
            ExcludeRule("hotjar.com", _HOST + r"hotjar\.com[:/]", "Hotjar"),
            ExcludeRule("mc.yandex.ru", _HOST + r"mc\.yandex\.ru[:/]", "Yandex Metrica"),
            ExcludeRule("pixel.wp.com", _HOST + r"pixel\.wp\.com[:/]", "WordPress statistics"),
            ExcludeRule("/piwik.php", r"/piwik\.php\?", "Piwik, a new URL for each visit"),
            ExcludeRule("/matomo.php", r"/matomo\.php\?", "Matomo, a new URL for each visit"),
        ),
    ),
    "share-links": ExcludeSet(
        "Each page has its own link to each network, which leads to a login form.",
        (
            ExcludeRule("/sharer", _HOST + r"facebook\.com/(?:sharer|share\.php|dialog/)", "Facebook"),
            ExcludeRule("/intent/", _HOST + r"(?:twitter|x)\.com/intent/", "Twitter"),
            ExcludeRule("/share?", _HOST + r"(?:twitter|x)\.com/share\?", "Twitter"),
            ExcludeRule("linkedin.com/share", _HOST + r"linkedin\.com/share(?:Article|\b)", "LinkedIn"),
            ExcludeRule("linkedin.com/sharing", _HOST + r"linkedin\.com/sharing/", "LinkedIn"),
            ExcludeRule("pinterest.", _HOST + r"pinterest\.[a-z.]+/pin/create/", "Pinterest"),
            ExcludeRule("reddit.com/submit", _HOST + r"reddit\.com/submit", "Reddit"),
            ExcludeRule("tumblr.com", _HOST + r"tumblr\.com/(?:share|widgets/share)", "Tumblr"),
            ExcludeRule("wa.me/", _HOST + r"wa\.me/\?text=", "WhatsApp"),
            ExcludeRule("t.me/share", _HOST + r"t\.me/share/", "Telegram"),
            ExcludeRule("news.ycombinator.com/submitlink", _HOST + r"news\.ycombinator\.com/submitlink", "Hacker News"),
            ExcludeRule(
                "share=",
                r"[?&]share=(?:facebook|twitter|x|linkedin|pinterest|reddit|tumblr|email|mastodon)\b",
                "WordPress buttons, on the site's own address",
            ),
        ),
    ),
    "comments": ExcludeSet(
        "The comments are on the page itself. These are reply forms, and the same page once per comment.",
        (
            ExcludeRule("replytocom=", r"[?&]replytocom=", "WordPress: reply to one comment"),
            ExcludeRule("unapproved=", r"[?&]unapproved=\d", "WordPress: a comment awaiting approval"),
            ExcludeRule("wp-comments-post.php", r"/wp-comments-post\.php", "WordPress: target of the form"),
            ExcludeRule("/comment/reply/", r"/comment/reply/", "Drupal: reply"),
            ExcludeRule("showcomment=", r"[?&]showComment=", "Blogger: the page again at one comment"),
            ExcludeRule("/comment.g", _HOST + r"blogger\.com/comment\.g", "Blogger: the form"),
            ExcludeRule(
                "comment-page-", r"/comment-page-\d+/?(?:[?#]|$)", "WordPress: the page again with older comments"
            ),
        ),
    ),
    "wikis": ExcludeSet(
        "Edit forms, and differences between all versions of all pages. The pages themselves stay.",
        (
            ExcludeRule(
                "action=",
                r"[?&]action=(?:edit|submit|history|delete|protect|watch|unwatch|info|purge|rollback)\b",
                "MediaWiki: forms and histories",
            ),
            ExcludeRule("oldid=", r"[?&]oldid=\d", "MediaWiki: older versions"),
            ExcludeRule("diff=", r"[?&]diff=(?:\d|next|prev|cur)", "MediaWiki: differences"),
            ExcludeRule("veaction=", r"[?&]veaction=", "MediaWiki: the visual editor"),
            ExcludeRule("redlink=", r"[?&]redlink=1", "MediaWiki: pages that do not exist"),
            ExcludeRule(
                "special",
                r"[/=:]Special(?::|%3A)(?:RecentChanges|WhatLinksHere|Log|UserLogin|CreateAccount|Contributions"
                r"|MovePage|Upload|Book|Export|MobileDiff|EmailUser|Block|Undelete"
                r"|AllMessages|CiteThisPage|PasswordReset)",
                "MediaWiki: endless reports",
            ),
            ExcludeRule("returnto=", r"[?&]returnto=", "MediaWiki: logins, in all languages"),
            ExcludeRule(
                "hide",
                r"[?&]hide(?:minor|bots|anons|liu|patrolled|myself|redirs|links|trans|images)=[01](?:&|$)",
                "MediaWiki: reports with other options",
            ),
            ExcludeRule(
                "do=", r"[?&]do=(?:edit|diff|revisions|backlink|login|media|recent|register|export_\w+)\b", "DokuWiki"
            ),
            ExcludeRule("rev=", r"[?&]rev=1\d{9}(?:&|$)", "DokuWiki: older versions"),
            ExcludeRule("idx=", r"[?&]id=[^&]*&idx=", "DokuWiki: the list of pages, for each page"),
            ExcludeRule("?action=", r"\?action=(?:AttachFile&do=|diff|raw|print|LikePages|LocalSiteMap)", "MoinMoin"),
            ExcludeRule("/bin/", r"/bin/(?:edit|rdiff|oops|attach|rename|manage)/", "TWiki and Foswiki"),
        ),
    ),
    "repositories": ExcludeSet(
        "Each file again for each change, its lines by author, and differences. Changes and current files stay.",
        (
            ExcludeRule(
                "a=",
                r"[?&;]a=(?:blame|blame_incremental|blobdiff|blobdiff_plain|commitdiff_plain|history|patch|patches|search"
                r"|snapshot)(?:[&;]|$)",
                "gitweb: lines by author, differences, changes of each file",
            ),
            ExcludeRule("=", r"[?&;]a=(?:rss|atom|log|shortlog)[&;](?:.*[&;])?[fh]=", "gitweb: the same for each file"),
            ExcludeRule(
                "id=", r"/(?:blame|diff|log|plain|rawdiff|tree)/[^?]*\?(?:.*&)?id=[0-9a-f]{40}", "cgit: at each change"
            ),
            ExcludeRule("id2=", r"[?&]id2=[0-9a-f]{40}", "cgit: differences"),
            ExcludeRule("h=", r"/(?:atom|blame|diff|log|stats)/[^?]*\?(?:.*&)?h=", "cgit: the same for each branch"),
            ExcludeRule("r1=", r"[?&;]r1=[0-9.]+[&;](?:.*[&;])?r2=", "ViewVC: differences"),
            ExcludeRule("annotate=", r"[?&;]annotate=", "ViewVC and Trac: lines by author"),
            ExcludeRule("pathrev=", r"[?&;]pathrev=", "ViewVC: each file at each change"),
            ExcludeRule("/changeset?", r"/changeset\?(?:.*&)?old=", "Trac: differences"),
            ExcludeRule(
                "/",
                r"/(?:annotate|comparison|diff|filelog|log)/[0-9a-f]{12}/",
                "hgweb: each file at each change",
            ),
            ExcludeRule("revcount=", r"[?&]revcount=\d", "hgweb: longer and shorter lists"),
        ),
    ),
    "forums": ExcludeSet(
        "Forms, and each thread once per post and in every order. The threads themselves stay.",
        (
            ExcludeRule("posting.php", r"/posting\.php\?", "phpBB: post forms"),
            ExcludeRule("ucp.php", r"/ucp\.php\?", "phpBB: user settings"),
            ExcludeRule(
                "memberlist.php",
                r"/memberlist\.php\?(?:.*&)?(?:sk|sd|mode=(?:contact|email))\b",
                "phpBB: members sorted by each column",
            ),
            ExcludeRule(
                "viewtopic.php",
                r"/viewtopic\.php\?(?:.*&)?(?:p=\d|view=|vote=|hilit=)",
                "phpBB: a thread at one of its posts",
            ),
            ExcludeRule("newreply.php", r"/newreply\.php\?", "vBulletin: reply"),
            ExcludeRule("newthread.php", r"/newthread\.php\?", "vBulletin: new thread"),
            ExcludeRule("showpost.php", r"/showpost\.php\?", "vBulletin: one post"),
            ExcludeRule("sendmessage.php", r"/sendmessage\.php\?", "vBulletin: mail"),
            ExcludeRule(
                "index.php?action=",
                r"/index\.php\?action=(?:post|reporttm|emailuser|printpage|search|login|register|pm)\b",
                "Simple Machines: forms",
            ),
            ExcludeRule(".msg", r"\?topic=\d+\.msg\d+", "Simple Machines: a thread at one of its posts"),
            ExcludeRule("/posts/", r"/posts/\d+/(?:edit|quote|report|react|bookmark|share)\b", "XenForo: forms"),
            ExcludeRule(
                "findpost", r"[?&](?:do=findComment|view=findpost)\b", "Invision: a thread at one of its posts"
            ),
        ),
    ),
    "blogs": ExcludeSet(
        "Each post has its own page. These are forms, and the same posts again by date and as feeds.",
        (
            ExcludeRule("/feed", r"/\d{4}/\d{2}/.+/feed/?(?:[?#]|$)", "WordPress: a feed for each post"),
            ExcludeRule("like_comment=", r"[?&](?:like_comment|_wpnonce)=", "WordPress: likes"),
            ExcludeRule("/wp-login.php", r"/wp-login\.php", "WordPress: login form"),
            ExcludeRule("/wp-json/oembed", r"/wp-json/oembed/", "WordPress: each post again, for embedding"),
            ExcludeRule("updated-m", r"[?&]updated-m(?:in|ax)=", "Blogger: pages between any two dates"),
            ExcludeRule("/feeds/", r"/feeds/\d+/comments/", "Blogger: a feed for each post"),
            ExcludeRule(
                "/search/label/",
                r"/search/label/[^?]*\?(?:.*&)?(?:start|max-results)=",
                "Blogger: labels, from any post on",
            ),
            ExcludeRule("m=", _HOST + r"blogspot\.[a-z.]+/.*[?&]m=[01]\b", "Blogger: each page again for phones"),
            ExcludeRule("/trackback", r"/trackback/?(?:[?#]|$)", "trackbacks"),
        ),
    ),
    "calendars": ExcludeSet(
        "They are endless in both directions and mostly empty. Events that pages link to stay.",
        (
            ExcludeRule("tribe-bar-date=", r"[?&]tribe-bar-date=", "The Events Calendar"),
            ExcludeRule(
                "eventdisplay=",
                r"[?&](?:tribe_event_display|eventDisplay)=(?:day|week|month|past)\b",
                "The Events Calendar",
            ),
            ExcludeRule("ical=", r"[?&](?:outlook-)?ical=", "each view again as a file"),
            ExcludeRule(
                "/events/", r"/events/(?:month/|week/|day/|today/)?\d{4}-\d{2}(?:-\d{2})?/?(?:[?#]|$)", "views by date"
            ),
            ExcludeRule(
                "/calendar/", r"/calendar/(?:.*/)?\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?/?(?:[?#]|$)", "views by date"
            ),
            ExcludeRule("option=com_jevents", r"[?&]option=com_jevents\b.*\b(?:year|month|day)=", "JEvents"),
            ExcludeRule("/calendar-node-field-date/", r"/calendar-node-field-date/", "Drupal"),
            ExcludeRule(
                "action~", r"/action~(?:month|week|oneday|agenda|posterboard|stream)\b", "All-in-One Event Calendar"
            ),
        ),
    ),
    "shops": ExcludeSet(
        "Carts, accounts, and every product list in every filter and order. The products themselves stay.",
        (
            ExcludeRule("add-to-cart=", r"[?&]add-to-cart=", "WooCommerce: add to cart"),
            ExcludeRule("add_to_wishlist=", r"[?&]add_to_wishlist=", "WooCommerce: add to wish list"),
            ExcludeRule("orderby=", r"[?&]orderby=(?:price|popularity|rating|date)", "WooCommerce: sort orders"),
            ExcludeRule("filter_", r"[?&](?:filter_\w+|query_type_\w+|min_price|max_price)=", "WooCommerce: filters"),
            ExcludeRule("product_list_", r"[?&]product_list_(?:order|dir|mode|limit)=", "Magento: sort orders"),
            ExcludeRule("/catalog/product_compare/", r"/catalog/product_compare/", "Magento: comparisons"),
            ExcludeRule("/checkout/", r"/checkout/(?:cart|onepage)\b", "Magento: cart"),
            ExcludeRule("/wishlist/", r"/wishlist/index/(?:add|configure)/", "Magento: wish list"),
            ExcludeRule(
                "sort_by=", r"/collections/[^?]*\?(?:.*&)?(?:sort_by|filter\.[pv]\.)", "Shopify: orders and filters"
            ),
            ExcludeRule("/cart/", r"/cart/(?:add|change|update)\b", "Shopify: cart"),
            ExcludeRule(
                "controller=", r"[?&]controller=(?:cart|authentication|password|my-account|order)\b", "PrestaShop"
            ),
            ExcludeRule("route=", r"[?&]route=(?:checkout|account|product/compare)\b", "OpenCart"),
        ),
    ),
    "streams": ExcludeSet(
        "Live radio and cameras have no end. Each would be read until a limit cuts it.",
        (
            ExcludeRule("/;stream", r"/;stream", "SHOUTcast"),
            ExcludeRule(":8000/", r"^http://[^/]+:8000/(?:stream|live|radio|listen)\b", "Icecast at its default port"),
            ExcludeRule("mjpg", r"/(?:axis-cgi/mjpg/|mjpg/video\.)", "Axis cameras"),
            ExcludeRule("action=stream", r"[?&]action=stream\b", "mjpg-streamer"),
            ExcludeRule("/videostream.cgi", r"/videostream\.cgi", "Foscam cameras"),
            ExcludeRule(".m3u", r"/(?:stream|live|radio|listen)[^?]*\.(?:m3u|pls)(?:[?#]|$)", "playlists of a stream"),
        ),
    ),
}


NONE = "none"  # drop nothing


@dataclass(frozen=True, slots=True)
class Preset:
    """A named group of parameters to drop."""

    why: str
    names: tuple[str, ...] = ()  # of query parameters, `*` for any letters
    values: str = ""  # only if the value matches this expression
    path: str = ""  # what is removed from the path
    replayed: bool = False  # only if replay looks up both spellings under one key


PRESETS = {
    "sessions": Preset(
        "Session IDs that replay ignores too",
        ("PHPSESSID", "jsessionid", "sid"),
        r"[0-9a-zA-Z]{32}",
        r"/\([a-z]\([0-9a-z]{24}\)\)(?=/[^?]+\.aspx)",
        replayed=True,
    ),
    "session-paths": Preset(
        "Session IDs in paths, as Java servers write them", (), "", r";jsessionid=[0-9A-Za-z._!-]+"
    ),
    "trackers": Preset(
        "Where a visitor came from; the page is the same without it",
        (
            *("utm_*", "fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid"),
            *("ttclid", "igshid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok"),
            *("oly_anon_id", "oly_enc_id", "vero_id", "wickedid", "__s", "ref_src", "ref_url", "s_cid"),
        ),
    ),
}
