"""Strings of a script, separated from comments, templates and regular expressions; and pages that scripts list.

The tokenizer knows no grammar beyond these tokens; it only must not mistake one for another. Linear and bounded on any
text.

Listed pages are tables of contents, search entries, bookmarks. A string with a page's extension is a page if it is
complete in an array, a value or key of an object, or used as a URL. A single one counts if its key names a URL;
otherwise there must be several, because a program may contain one page name for its own reasons.

Most sites today have URLs without an extension. A path from the root, or a whole URL, without one is an address if the
code around it takes a URL (`fetch("/items")`, `a.href = "/about"`, `{url: "/story/one"}`) and sends nothing there; a
whole URL of the own host also in a list or as a value. Paths in a list, or under a weaker key (`to:`, a router's
`path:` without a component), need company.
Linear in the number of strings.
"""

import re
from collections.abc import Iterator

from archiver.config.expressions import compiled
from archiver.url import PAGE_ENDINGS

MOST_TOKENS = 2_000_000  # strings, comments and slashes of one script; a bundle of 5 MB has a tenth of them
DEEPEST = 500  # nested templates; real code has two or three

_DULL = r"\"[^\"\\\n\r/.]*+\"|'[^'\\\n\r/.]*+'"  # a string that cannot be a file name
_REST = (
    r"(?P<double>\"[^\"\\\n\r]*+(?:\\(?:\r\n|[\s\S])[^\"\\\n\r]*+)*+(?:\"|\\?))"
    r"|(?P<single>'[^'\\\n\r]*+(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*+)*+(?:'|\\?))"
    r"|(?P<template>`)"
    r"|(?P<line>//[^\n\r\u2028\u2029]*+)"
    r"|(?P<block>/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?)"
    r"|(?P<slash>/)"
)
_BRACES = r"(?P<open>\{)|(?P<close>\})"
# Code, and code in a template: up to the next string that may be a file; up to the next string.
_CODE = compiled(rf"(?:[^\"'`/]++|{_DULL})*+(?:{_REST})"), compiled(rf"[^\"'`/]*+(?:{_REST})")
_IN_TEMPLATE = (
    compiled(rf"(?:[^\"'`/{{}}]++|{_DULL})*+(?:{_REST}|{_BRACES})"),
    compiled(rf"[^\"'`/{{}}]*+(?:{_REST}|{_BRACES})"),
)
_TEMPLATE = compiled(r"[^`\\$]*+(?:(?:\\[\s\S]|\$(?!\{))[^`\\$]*+)*+(?:(?P<end>`)|(?P<hole>\$\{)|\\?)")
_REGEX = compiled(r"/(?:[^/\\\[\n\r]++|\\[^\n\r]|\[(?:[^\]\\\n\r]++|\\[^\n\r])*+\]?)*+/?")
_OPERATORS = frozenset("(,=:[!&|?{};+-*%~^<>")  # an operand follows, so a slash starts a regular expression
_SPACES = frozenset("\t\n\v\f\r \xa0")
_BEFORE_OPERAND = re.compile(
    r"(?:\A|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|yield|await|instanceof)\Z"
)
_ANY_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0{0,8}([0-9a-fA-F]{1,6})\}|(\r\n|[\s\S]))")
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_SHORT |= dict.fromkeys(("\n", "\r", "\r\n", "\u2028", "\u2029"), "")  # the string continues on the next line


def strings(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each complete string in *text*, including its quotes."""
    return ((start, end) for start, end in tokens(text, every=True) if end > 0 and text[start] != "/")


def unescaped(value: str) -> str:
    """Return the inside of a string with all escapes replaced."""
    if "\\" not in value:
        return value
    plain = _ANY_ESCAPE.sub(_resolve, value)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _resolve(escape: re.Match[str]) -> str:
    number = int(escape[1] or escape[2] or escape[3] or "110000", 16)
    if number < 0x110000:
        return chr(number)
    return _SHORT.get(escape[4], escape[4]) if escape[4] else "\ufffd"


def tokens(text: str, *, every: bool = False) -> Iterator[tuple[int, int]]:
    """Yield start and end of the strings (with quotes) and line comments in *text*.

    Strings without a slash, dot or escape cannot be files and are left out unless *every* is set. Then templates with
    substitutions are reported too, with minus their depth in place of the end.
    """
    position = behind = 0
    templates = _Templates(text)
    for _ in range(MOST_TOKENS):
        token = (_IN_TEMPLATE if templates.holes else _CODE)[every].match(text, position)
        if token is None or len(templates.holes) > DEEPEST:
            return
        kind, position = token.lastgroup or "", token.end()
        start = token.start(kind)
        whole = kind == "line"
        if kind in {"double", "single"}:
            whole = position - start > 1 and text[position - 1] == text[start]
        elif kind == "slash" and _begins_operand(text, start, behind):
            expression = _REGEX.match(text, start)
            position = expression.end() if expression else position
        elif kind in {"template", "open", "close"}:
            position, whole = templates.step(kind, position)
            if every and kind == "template" and not whole and templates.holes:
                yield start, -len(templates.holes)
        if whole:
            yield start, position
        behind = position if kind not in {"line", "block"} else behind


class _Templates:
    """The open templates at a position of *text*: strings with substitutions that contain code."""

    def __init__(self, text: str) -> None:
        self.holes: list[int] = []  # for each template, the open braces in its substitution
        self._text = text

    def step(self, kind: str, position: int) -> tuple[int, bool]:
        """Process a back quote or brace.

        Return where code continues, and True after a complete template without substitutions.
        """
        if kind == "open":
            self.holes[-1] += 1
            return position, False
        if kind == "close":
            if self.holes[-1]:
                self.holes[-1] -= 1
                return position, False
            self.holes.pop()
        rest = _TEMPLATE.match(self._text, position)
        if rest is None:
            return len(self._text), False
        if rest["hole"]:
            self.holes.append(0)
        return rest.end(), kind == "template" and rest["end"] is not None


def _begins_operand(text: str, slash: int, behind: int) -> bool:
    """True if *slash* starts a regular expression after the token that ends at *behind*; False if it divides."""
    place = slash
    while place > behind and text[place - 1] in _SPACES:
        place -= 1
    if not place:
        return True
    last = text[place - 1]
    if last in "+-" and text[place - 2 : place - 1] == last:
        return False
    return last in _OPERATORS or bool(_BEFORE_OPERAND.search(text[max(0, place - 12) : place]))


MOST = 50_000  # pages of one document
COMPANY = 2  # pages needed if none has a key that names a URL
MORE_COMPANY = 3  # paths needed if they have no page extension
NEAR = 96  # characters before a string that show its use …
AFTER = 200  # … and after it, where options of a request stand

_RARE = frozenset(("cgi", "pl", "do", "cfm", "jsf", "phtml"))  # also extensions of other names, so only in root paths
_STEP = r"(?:[\w~@+.,() -]|%[0-9A-Fa-f]{2})"
_PAGE = compiled(
    r"(?P<base>(?:https?:)?//(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[0-9]{1,5})?/|/|\./|(?:\.\./)++|)"
    rf"(?P<path>(?:(?!\.\.?/){_STEP}{{1,200}}+/){{0,30}}[\w@]{_STEP}{{0,200}}+)"
    r"(?:\?(?:[\w~@+.,;:&/-]|=(?=[\w%/.-])|%[0-9A-Fa-f]{2})++)?(?:#[\w.~:/-]*+)?",
    re.IGNORECASE,
)
_ROOTED = compiled(
    r"(?P<host>(?:https?:)?//(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}(?::[0-9]{1,5})?)?"
    r"(?P<path>/(?:(?!\.\.?/)(?:[\w~@+.-]|%[0-9A-Fa-f]{2}){1,200}+/?(?!/)){1,30})"
    r"(?P<query>\?(?:[\w~@+.,;:&/-]|=(?=[\w%/.-])|%[0-9A-Fa-f]{2})++)?(?:#[\w.~:/-]*+)?",
    re.IGNORECASE,
)
_NO_ADDRESS = (  # what a person does there, and folders of programs
    r"auth|oauth2?|graphql|rpc|wp-json|wp-admin|wp-login|xmlrpc|admin|login|logout|signin|signout|sign-in|sign-out|register"
    r"|cart|checkout|basket|delete|remove|edit|upload|subscribe|unsubscribe|cdn-cgi|_next|_nuxt|static|node_modules"
)
_NO_PAGE = re.compile(rf"/(?:{_NO_ADDRESS}|_\w*|api|ajax|rest|v[0-9])(?:/|\Z)", re.IGNORECASE)
_NO_DATA = re.compile(  # … and what counts visitors, stays open, or changes something
    rf"/(?:{_NO_ADDRESS}|beacon|collect|csrf|events|follow|heartbeat|like|log|notify|ping|poll|save|session|socket|sse|stream"
    r"|token|track|update|vote|ws)(?:/|\Z)",
    re.IGNORECASE,
)
_NO_PAGE_QUERY = re.compile(  # the first: WordPress without rewritten addresses, /wp-json/ in a query
    r"[?&](?:rest_route|(?:\w*action|do|cmd|op)=(?:\w*_)?(?:add|delete|edit|log\w+|post|remove|save|set|update|vote)\b)"
)
_KEYED = re.compile(
    r"[\"']?(?<![\w$./-])(?:(?:rel_?|abs_?|page_?|doc_?|full_?|canonical_?)?(?:url|uri|href|link|perma_?link|path)"
    r"|loc|location|page|file|target|topic|src|ref|to|slug|u|html)[\"']?\s*:\Z",
    re.IGNORECASE,
)
_ADDRESS_KEYED = re.compile(
    r"[\"']?(?<![\w$./-])(?:(?:abs_?|page_?|doc_?|full_?|canonical_?)?(?:url|uri|href|link|perma_?link)|loc)[\"']?\s*:\Z",
    re.IGNORECASE,
)
_NEXT_KEYED = re.compile(  # the next part of a list of data
    r"[\"'.](?:next|prev(?:ious)?|older|newer|more)_?(?:page|link)?_?(?:url|uri|href|link)?[\"']?\s*:\Z", re.IGNORECASE
)
_MAY_BE_KEYED = re.compile(r"[\"']?(?<![\w$./-])(?:u|to|rel_?[uU]rl|(?P<route>path))[\"']?\s*:\Z")
_ROUTE = re.compile(
    r"\s*,\s*[\"']?(?:name|[cC]omponents?|element|children|exact|lazy|loader|loadC\w+|meta|redirect|props|title|can\w+)[\"']?\s*:"
)
# A path as key of a router's table: {"/about": [3], "/list": () => import("./list.js"), "/map": {component: m}}
_ROUTED = re.compile(
    r":\s*(?:\[-?~?[0-9]{1,4}[\],]|(?:async\s*)?\(\)\s*=>[^{}\"'`]{0,60}import\(|\{\s*[\"']?(?:[cC]omponents?|element|lazy|loader)[\"']?\s*:)"
)
_NUMBERED = re.compile(r"[{,]\s*[\"'][0-9]{1,7}[\"']\s*:\Z")  # of a list written as an object: {"0": "/a", "1": "/b"}
# Beside its path, what a client-side router shows there
_SHOWS = re.compile(
    r"[^{}:]{0,100}(?::[^{}:,]{0,60},[^{}:]{0,40}){0,2}(?<![\w$.])(?:[cC]omponents?|element|lazy|loadC\w+)[\"']?\s*:"
)
_SHOWN = re.compile(
    r"\{[^{}]{0,60}(?<![\w$.])(?:[cC]omponents?|element)[\"']?\s*:[^{}]{0,60},\s*[\"']?path[\"']?\s*:\Z"
)
# Functions that clients of HTTP are known by: httpGetPromise("a.json"), this.http.get("a.json")
REQUESTS = (
    r"(?:\A|[^\w$])_{0,2}(?:[hH]ttp|HTTP|[xX]hr|XHR|[aA]jax)_?(?:[gG]et|[lL]oad|[fF]etch|[rR]equest)\w{0,30}\s*\("
    r"|(?:\A|[^\w])_{0,2}(?:https?|httpClient|ky|superagent)\.get\s*\("
)
_GOES = re.compile(  # to another page of the application
    r"(?:(?:[rR]outer|[hH]istory|[nN]avigation)\s*\.\s*(?:push|replace|navigate)\s*\(|(?:\A|[^\w$.])navigate(?:To)?\s*\("
    r"|\(0,\s?[\w$]{1,20}\.(?:navigate(?:To)?|goto|push|redirect)\)\s*\("
    r"|(?:push|replace)State\s*\([^\"'`;]{0,60}(?:\"[^\"]{0,40}\"|'[^']{0,40}'|`[^`]{0,40}`)\s*,)\Z"
)
_CLICKED = re.compile(  # what a click hands over is where it leads: onClick: () => (0,a.b)("/about")
    r"[cC]lick[^;{}]{0,40}=>\s?(?:\(0,[\w$.]{1,30}\)|(?!(?:[\w$]*\.)?(?:add|delete|like|post|put|remove|save|send|track|vote))"
    r"[\w$.]{1,30}(?:\([\w$.]{1,20}\))?)\(\Z"
)
_TAKES_ADDRESS = re.compile(
    rf"(?:{REQUESTS}|\.(?:href|src)\s*=|\.(?:setAttribute|attr|prop)\s*\(\s*[\"'`](?:href|src)[\"'`]\s*,"
    r"|(?:\A|[^\w$.])(?:\$?fetch|use(?:Fetch|SWR)|(?:window\s*\.\s*)?open)\s*\(|\.(?:ajax|load|getJSON|getScript)\s*\("
    r"|(?:\$|jQuery|axios)\.get\s*\(|(?:\.open|htmx\.ajax)\s*\(\s*[\"'`]GET[\"'`]\s*,|\bnew\s+Request\s*\("
    r"|(?:\A|[^\w$])location\s*(?:=|\.\s*(?:assign|replace)\s*\())\Z"
)
_SENDS = re.compile(r"(?:method|type|verb)[\"']?\s*:\s*[\"'`](?:post|put|patch|delete)\b", re.IGNORECASE)
_PREFIX_KEYED = re.compile(  # the beginning of further addresses
    r"(?<![a-z])(?:ajax|api|assets?|base|cdn|domain|endpoint|gateway|host|origin|prefix|public|root|server|site|socket)"
    r"[\w$]{0,20}[\"']?\s*[:=]\Z",
    re.IGNORECASE,
)
# A name of a discussion, a tree node or the like, even if it looks like a page: disqus_identifier = "cache/a.html"
_NAMED = re.compile(r"(?:\A|[^A-Za-z])(?:\w{0,40}_)?identifier[\"']?\s*[:=]\Z", re.IGNORECASE)
_WANTED = re.compile(
    rf"(?:\.(?:href|src|location)\s*=|\.(?:load|get|assign|replace)\s*\(|(?:\A|[^\w$.])fetch\s*\(|{REQUESTS})\Z"
)
# f("../doc/", "part", "a.html"): the function puts the path together
_IN_OTHER_FOLDER = re.compile(r"\(\s*(['\"`])\.\.?/[^'\"`]*\1\s*,\s*(['\"`])[\w./-]+\2\s*,\Z")
_BEGINS_BELOW = re.compile(r"[^/.:]++[/.]")  # no folder of its own
_BELOW = re.compile(r",\s*+(['\"`])((?:\.\./){1,30})\1\s*+[,)]")  # f("part/a.html", "../../") does so as well
# An index of Lunr, whose rows have a field before the page: ["title/part/a.html",[0,0.693]]
_OF_LUNR = re.compile(r"\"fields\"\s?:\s?\[((?:\"[\w-]{1,40}\",?\s?){1,20})\],\s{0,80}\"fieldVectors\"\s?:")
_NAMES_TOKENS = "tokenPostfix:"  # a language of Monaco, an editor, which names parts of speech: "comment.html"
_STANDS_WHOLE = frozenset(",]});:\n")


class ListedPages:
    """Collects the strings of one document that may be pages; `selected` selects the pages.

    *own*: an inline script, so a page name in it is no coincidence.
    """

    def __init__(self, *, own: bool) -> None:
        self._own = own
        self.addresses: dict[str, None] = {}  # without an extension, which the code requests or opens
        self.whole: dict[str, None] = {}  # URLs without an extension: pages, if they are on the own host
        self._sure: dict[str, None] = {}
        self._rest: dict[str, None] = {}
        self._paths: dict[str, None] = {}
        self._routes: dict[str, None] = {}  # those of them that need no company

    def add(self, value: str, before: str, after: str) -> None:
        """Add a string with the code *before* and *after* it, both without white space next to the string."""
        last, follows = before[-1:], after[:1]
        if last not in {"[", ",", ":", "(", "{", "="} or (follows and follows not in _STANDS_WHOLE):
            return
        if last == "," and _IN_OTHER_FOLDER.search(before):
            return
        if last in {":", "="} and _NAMED.search(before):
            return
        if follows == ":" and last not in {"{", ","}:  # the middle of a conditional expression
            return
        if sum(map(len, (self._sure, self._rest, self._paths, self.addresses, self.whole))) >= MOST:
            return
        if is_page(value):
            value = _folder(value, after) + value
            rooted = value.startswith(("/", "http"))
            known = self._own or rooted or _KEYED.search(before) or _WANTED.search(before)
            (self._sure if known and follows != ":" else self._rest)[value] = None
        elif follows != ":" and not is_sent(before, after):
            self._add_address(value, before, after)
        elif value.startswith("/") and _ROUTED.match(after) and is_path(value):
            self._paths[value] = self._routes[value] = None

    def _add_address(self, value: str, before: str, after: str) -> None:
        """Add a path or URL without an extension, if the code around it shows that it is one."""
        relative = not value.startswith(("/", "http"))
        if _TAKES_ADDRESS.search(before) or (not relative and _NEXT_KEYED.search(before)):
            if is_path(from_root(value), data=True):
                self.addresses[value] = None
        elif relative or not is_path(value):
            return
        elif value.startswith("http"):
            if not _PREFIX_KEYED.search(before):
                self.whole[value] = None
        elif _ADDRESS_KEYED.search(before) or _GOES.search(before) or (after[:1] == ")" and _CLICKED.search(before)):
            self._sure[value] = None
        elif _is_route(before, after):
            self._paths[value] = self._routes[value] = None
        elif _is_listed(before, after):
            self._paths[value] = None

    def selected(self, text: str) -> Iterator[str]:
        """Yield the pages that the document *text* lists."""
        pages = self._in_company(text)
        index = _OF_LUNR.search(text) if '"fieldVectors"' in text else None
        if index is None:
            yield from pages
            return
        fields = tuple(f"{name}/" for name in re.findall(r"[\w-]++", index[1]))
        yield from dict.fromkeys(page.partition("/")[2] if page.startswith(fields) else page for page in pages)

    def _in_company(self, text: str) -> Iterator[str]:
        yield from self._sure
        rest = {value: None for value in self._rest if "/" in value} if _NAMES_TOKENS in text else self._rest
        if len(rest) >= COMPANY or (rest and self._sure):
            yield from (value for value in rest if value not in self._sure)
        yield from self._paths if len(self._paths) >= MORE_COMPANY else self._routes


def _folder(page: str, after: str) -> str:
    """Return the folder above that *after* names as the argument next to *page*; "" if there is none."""
    folder = _BELOW.match(after) if _BEGINS_BELOW.match(page) else None
    return folder[2] if folder else ""


def is_page(value: str) -> bool:
    """True if *value* is a complete URL with the extension of a page."""
    shape = _PAGE.fullmatch(value)
    if shape is None:
        return False
    name, dot, ending = shape["path"].rpartition(".")
    relative = not shape["base"] or shape["base"].startswith(".")
    if not dot or not name or name.endswith("/") or " " in value[:1] or (relative and ending.lower() in _RARE):
        return False
    served = not _NO_PAGE.search(f"/{shape['path']}") and not _NO_PAGE_QUERY.search(value)
    return ending.lower() in PAGE_ENDINGS and served


def is_path(value: str, *, data: bool = False) -> bool:
    """True if *value* is a complete path from the root, or a URL, that may be a page without an extension.

    With *data* also one from which a script may read data.
    """
    shape = _ROOTED.fullmatch(value)
    if shape is None or "." in shape["path"].rpartition("/")[2] or _NO_PAGE_QUERY.search(shape["query"] or ""):
        return False
    return not (_NO_DATA if data else _NO_PAGE).search(shape["path"])


def from_root(value: str) -> str:
    """Return the relative path *value* as one from the root, to see if it may be an address; others as they are."""
    return value if value.startswith(("/", "http")) else "/" + value.lstrip("./")


def takes_address(before: str) -> bool:
    """Return True if the code *before* a string takes a URL."""
    return bool(_TAKES_ADDRESS.search(before) or _GOES.search(before))


def names_address(before: str) -> bool:
    """Return True if the code *before* a string is a key for a URL."""
    return _ADDRESS_KEYED.search(before) is not None


def _is_listed(before: str, after: str) -> bool:
    """Return True if a path between *before* and *after* is one of a list, or under a key that often has such paths."""
    if before[-1:] in {"[", ","}:
        return after[:1] in {",", "]"}
    if _NUMBERED.search(before):
        return True
    key = _MAY_BE_KEYED.search(before)
    return key is not None and (not key["route"] or _ROUTE.match(after) is not None)


def _is_route(before: str, after: str) -> bool:
    """Return True if the path between *before* and *after* is one of a client-side router, which shows a page there."""
    key = _MAY_BE_KEYED.search(before)
    if key is None or not key["route"] or "getParentRoute" in before or "getParentRoute" in after[:100]:
        return False  # the last two: below another route, see `routes`
    return (after[:1] == "," and _SHOWS.match(after) is not None) or _SHOWN.search(before) is not None


def is_sent(before: str, after: str) -> bool:
    """Return True if the request with the URL between *before* and *after* sends something (`{type: "POST", url:`)."""
    options = before.rpartition("({")[2] + after.partition("})")[0].partition(";")[0]
    return bool(_SENDS.search(options))
