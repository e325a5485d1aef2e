"""The values that hooks get and return. They are frozen, and public: `from archiver import HookLink`.

A file of hooks has one or more of these functions. Each depends on nothing but its arguments: it may be called in any
process, in any order, and again after a crash.

    judge(link: HookLink, page: HookPage) -> bool | None
    links(document: HookDocument) -> Iterable[str | HookLink]
    keep(exchange: HookExchange) -> bool | None
    settings(host: str) -> dict | None

Any of them may raise `HookStop` to end the crawl.
"""

from dataclasses import dataclass

FUNCTIONS = ("judge", "links", "keep", "settings")
HOPS = ("L", "E", "X", "M")  # of links that a hook may add


class HookStop(Exception):  # noqa: N818 - a wish of the user, and no error
    """Ends the crawl as `archiver stop` does: requests under way finish, and `archiver resume` continues."""


@dataclass(frozen=True, slots=True)
class HookLink:
    """A link: its URL, the kind of hop, its place in the document, and its text."""

    url: str  # absolute; one that `links` returns may be relative to the document
    hop: str = "L"  # L: a page, E: needed to show the page, X: a guess, M: a sitemap or its entry, R: a redirect
    context: str = ""  # element and attribute, "a/@href"; "" if there is none
    text: str = ""  # that a link of an HTML page shows, up to 300 characters; of a picture, its alternative text


@dataclass(frozen=True, slots=True)
class HookPage:
    """The document in which links were found."""

    url: str
    seed: str  # the seed that led here
    depth: int  # links from that seed
    hops: str  # the way from that seed, a letter for each hop: "LLE"
    via: str  # the URL that led here; "" for a seed


@dataclass(frozen=True, slots=True)
class HookDocument:
    """The body of a response with status 2xx, without chunked and content coding."""

    url: str
    content_type: str  # "text/html", in lower case; "" if the response does not say
    charset: str  # as the response names it; "" if it does not
    body: bytes
    whole: bool  # False: there is more than *body*
    page: HookPage  # its place in the crawl

    @property
    def text(self) -> str:
        """The body as text; bytes that are none in its charset become U+FFFD."""
        try:
            return self.body.decode(self.charset or "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class HookExchange:
    """The head of a response, before its body is read."""

    url: str
    status: int
    content_type: str  # "text/html", in lower case; "" if the response does not say
    length: int | None  # of the body, in bytes; None if the response does not say
    headers: tuple[tuple[str, str], ...]  # names in lower case, as they came

    def header(self, name: str) -> str:
        """Return the first value of the header *name*; "" if there is none."""
        return next((value for known, value in self.headers if known == name.lower()), "")
