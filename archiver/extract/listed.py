"""Pages that scripts and JSON list: a table of contents, the entries of a search, bookmarks.

A string that ends as pages do is one of them where it stands whole in an array, as a value or a key of an object, or
where an address is wanted. One alone is taken if its key says that it is an address; else there must be several, as
a program may have the name of one page for reasons of its own. A path from the root without such an ending
needs such a key, and company. Linear in the number of strings.
"""

import re
from collections.abc import Iterator

from archiver.url import PAGE_ENDINGS

MOST = 50_000  # pages of one document
COMPANY = 2  # pages of which none has a key that says what it is
MORE_COMPANY = 3  # paths that do not end as pages do
NEAR = 64  # characters before a string that say what it is

_RARE = frozenset(("cgi", "pl", "do", "cfm", "jsf", "phtml"))  # also endings of other names; so only from the root
_STEP = r"(?:[\w~@+.,() -]|%[0-9A-Fa-f]{2})"
_PAGE = re.compile(
    r"(?P<base>(?:https?:)?//(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[0-9]{1,5})?/|/|\./|(?:\.\./)++|)"
    rf"(?P<path>(?:(?!\.\.?/){_STEP}{{1,200}}+/){{0,30}}[\w@]{_STEP}{{0,200}}+)"
    r"(?:\?(?:[\w~@+.,;:&/-]|=(?=[\w%/.-])|%[0-9A-Fa-f]{2})++)?(?:#[\w.~:/-]*+)?",
    re.IGNORECASE,
)
_ROOTED = re.compile(
    r"(?:(?:https?:)?//(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[0-9]{1,5})?)?"
    r"(?P<path>/(?:(?!\.\.?/)(?:[\w~@+.-]|%[0-9A-Fa-f]{2}){1,200}+/?(?!/)){1,30})(?:#[\w.~:/-]*+)?",
    re.IGNORECASE,
)
_NO_PAGE = re.compile(
    r"/(?:_?api|ajax|auth|oauth2?|graphql|rest|rpc|wp-json|wp-admin|wp-login|xmlrpc|admin|login|logout|signin|signout|sign-in"
    r"|sign-out|register|cart|checkout|basket|delete|remove|edit|upload|subscribe|unsubscribe|cdn-cgi|_next|_nuxt|static"
    r"|node_modules|v[0-9])(?:/|\Z)",
    re.IGNORECASE,
)
_KEYED = re.compile(
    r"[\"']?(?<![\w$./-])(?:(?:rel_?|abs_?|page_?|doc_?|full_?|canonical_?)?(?:url|uri|href|link|perma_?link|path)"
    r"|loc|location|page|file|target|topic|src|ref|to|slug|u|html)[\"']?\s*:\Z",
    re.IGNORECASE,
)
_ADDRESS_KEYED = re.compile(
    r"[\"']?(?<![\w$./-])(?:(?:rel_?|abs_?|page_?|doc_?|full_?|canonical_?)?(?:url|uri|href|link|perma_?link)|loc|u)[\"']?\s*:\Z",
    re.IGNORECASE,
)
_WANTED = re.compile(r"(?:\.(?:href|src|location)\s*=|\.(?:load|get|assign|replace)\s*\(|(?:\A|[^\w$.])fetch\s*\()\Z")
_STANDS_WHOLE = frozenset(",]});:\n")


class Pages:
    """The strings of one document that may be its site's pages, as they come; `chosen` tells which are."""

    def __init__(self, *, own: bool) -> None:
        self._own = own  # the document is a script in the page itself: a page's name in it is no chance
        self._sure: dict[str, None] = {}
        self._rest: dict[str, None] = {}
        self._paths: dict[str, None] = {}

    def take(self, value: str, before: str, after: str) -> None:
        """Take in a string with the code *before* and *after* it, both without the white space next to it."""
        last, follows = before[-1:], after[:1]
        if last not in {"[", ",", ":", "(", "{", "="} or (follows and follows not in _STANDS_WHOLE):
            return
        if follows == ":" and last not in {"{", ","}:  # the middle of a choice
            return
        if len(self._sure) + len(self._rest) + len(self._paths) >= MOST:
            return
        if is_page(value):
            rooted = value.startswith(("/", "http"))
            known = self._own or rooted or _KEYED.search(before) or _WANTED.search(before)
            (self._sure if known and follows != ":" else self._rest)[value] = None
        elif value.startswith(("/", "http")) and _ADDRESS_KEYED.search(before) and _is_path(value):
            self._paths[value] = None

    def chosen(self) -> Iterator[str]:
        """The pages."""
        yield from self._sure
        if len(self._rest) >= COMPANY or (self._rest and self._sure):
            yield from (value for value in self._rest if value not in self._sure)
        if len(self._paths) >= MORE_COMPANY:
            yield from self._paths


def is_page(value: str) -> bool:
    """Whether *value* is the whole address of something that ends as pages do."""
    shape = _PAGE.fullmatch(value)
    if shape is None:
        return False
    name, dot, ending = shape["path"].rpartition(".")
    relative = not shape["base"] or shape["base"].startswith(".")
    if not dot or not name or name.endswith("/") or " " in value[:1] or (relative and ending.lower() in _RARE):
        return False
    return ending.lower() in PAGE_ENDINGS and not _NO_PAGE.search(f"/{shape['path']}")


def _is_path(value: str) -> bool:
    shape = _ROOTED.fullmatch(value)
    return shape is not None and "." not in shape["path"].rpartition("/")[2] and not _NO_PAGE.search(shape["path"])
