"""Pages in the route tables of client-side routers: Angular, React, Solid, TanStack and Vue.

A route is an object with a `path` and what the router shows there: `{path: "about", component: A}`. Routes under
`children` are below their parent, also as elements: `jsx(Route, {path: "a", children: jsx(Route, {path: "b"})})`. The
key `path` has many other uses, so the path alone is no evidence. Linear and bounded on any text.
"""

import re
from collections.abc import Iterator
from itertools import islice

from archiver.config.expressions import compiled
from archiver.extract.script import strings
from archiver.extract.script.blocks import Blocks

MOST = 5000  # routes of one script
_MOST_ENTRIES = 40  # of one route
_DEEPEST = 60  # brackets around a route
_MOST_PARENTS = 8  # of one table
_BEFORE, _AFTER = 200, 500  # characters around some path of a table that show its use

_SHOWN = r"[cC]omponents?|element|lazy|load(?:Component|Children)|redirect(?:To)?|getParentRoute|hasErrorBoundary"
_SHOWS = re.compile(rf"(?<![\w$.])[\"']?(?:{_SHOWN})[\"']?\s{{0,4}}[:(]")
_ROUTES = (  # each begins with a word, which the search for it makes fast
    compiled(r"path(?<![\w$.]path)[\"']?\s{0,4}:\s{0,4}(?=[\"'`])"),
    compiled(r"index(?<![\w$.]index)[\"']?\s{0,4}:\s{0,4}(?:!0|true)(?![\w$])"),
)
_ENTRY = compiled(
    r"\s*+(?:(?:async|get)\s{1,4}(?=[\w$]))?[\"']?([A-Za-z_$][\w$]{0,40})[\"']?\s{0,4}(?::\s{0,40}|(?=\())"
)
_STEP = r"(?:[\w~@+.-]|%[0-9A-Fa-f]{2})++"
_PATH = compiled(
    rf"([\"'`])(/?(?:{_STEP}(?:/{_STEP})*+)?+)(?:(?:/?:\w{{1,40}}\?)++|(/?))\1(?=\s{{0,40}}(?:[,}}]|/[/*]))"
)  # /a, a/b/, /a/:page?
_EVERYTHING_BELOW = compiled(r"path(?<![\w$.]path)[\"']?\s{0,4}:\s{0,4}([\"'`])(/?(?:[\w~@+.-]|/(?![/*]))++)/\*\1")
_NOTHING = re.compile(r"[\"'`\[]|-?[0-9]|(?:null|undefined|void 0|!0|!1|true|false)(?![\w$])")
_REDIRECTS = re.compile(r"[\"'`]/|\{|\(|(?!(?:true|false|null|undefined)(?![\w$]))[A-Za-z_$]")
_NAME = r"[A-Za-z_$][\w$]{0,40}"
# Routes of TanStack Router: a = createRoute({getParentRoute: () => root, path: "/a"}), also a = b.update({…})
_PARENT = compiled(rf"\(\)\s{{0,4}}=>\s{{0,4}}({_NAME})\s{{0,4}}[,}}]")
_CREATED = compiled(rf"(?<![\w$.])({_NAME})\s{{0,4}}=\s{{0,4}}(?:\(0,\s?)?[\w$.]{{1,60}}+\)?\(\s{{0,4}}(?=\{{)")
# Routes in the manifest of React Router: {"id": "a", "parentId": "root", "path": "a", "hasErrorBoundary": false, …}
_LISTED = "hasErrorBoundary"  # a key of each
_ID = compiled(r"\"([^\"\\]{1,200})\"")
_IDENTIFIED = compiled(r"\"id\"\s{0,4}:\s{0,4}\"([^\"\\]{1,200})\"")
# Solid's elements have a function for their children, and all paths are below their parents
_GETTER = re.compile(r"\bget\s{1,4}children\s{0,4}\(\)\s{0,4}(?:\{|\Z)")
_FUNCTION = re.compile(r"(?:\)|=>)\s*\Z")
_ASSIGNED = re.compile(rf"(?<![\w$.])({_NAME})\s{{0,4}}=\s{{0,4}}\Z")
_USED = compiled(rf"(?:(?<![\w$.])[\"']?children[\"']?\s{{0,4}}:\s{{0,4}}|\.\.\.)({_NAME})\s{{0,4}}(?=[,}}\]])")
# A table for a part of the site, of which another script knows the place
_FOR_CHILDREN = re.compile(r"(?:\.forChild\s{0,4}\(|\bexport\s{1,4}default)\s{0,4}\Z")
_HANDED_ON = compiled(
    rf"\.forChild\s{{0,4}}\(\s{{0,4}}({_NAME})|\bexport\s{{1,4}}default\s{{1,4}}({_NAME})\s*+(?:;|\Z)"
)
_EXPORTED = compiled(r"\bexport\s{0,4}\{([^{}]{1,20000}+)\}")
_OF_ANGULAR = re.compile(
    r"(?:\u0275|\\u0275)(?:cmp|dir|fac|inj|mod|prov)(?!\w)"
    r"|(?<![\w$.])(?:load(?:Component|Children)\s{0,4}:|pathMatch\s{0,4}:\s{0,4}[\"'`](?:full|prefix))"
)
_AFTER_HASH = re.compile(r"(?<![\w$.])useHash\s{0,4}:\s{0,4}(?:!0|true)")


def pages(text: str) -> Iterator[str]:
    """Yield the path of each page in the tables of *text*, from the root of the router.

    Paths of Angular begin with `./`: that root is the folder of its scripts.
    """
    found = [each for route in _ROUTES for each in islice(route.finditer(text), MOST)]
    if not any(_SHOWS.search(text, max(0, each.start() - _BEFORE), each.end() + _AFTER) for each in found):
        return
    if _AFTER_HASH.search(text):
        return
    begin = "." if _OF_ANGULAR.search(text) else ""
    table = _Tables(text)
    for path in dict.fromkeys(path for each in found for path in table.addresses(each.end())):
        if strings.is_path(path):
            yield begin + path


class _Tables:
    """The route tables of a script."""

    def __init__(self, text: str) -> None:
        self._text = text
        tokens = [each for each in strings.tokens(text, every=True) if each[1] > 0]
        self._blocks = Blocks(text, tokens)
        self._strings = {start for start, _ in tokens}  # not those in comments
        self._entries: dict[int, dict[str, int]] = {}
        self._known: dict[int, tuple[str, ...]] = {}
        self._open: list[tuple[str, int]] | None = None  # routes with others below, and their functions
        self._above: dict[str, tuple[str, ...]] = {}  # for the name of each table, its parents
        self._of_solid = _GETTER.search(text) is not None
        self._names: dict[str, dict[str, int]] = {}
        self._tables: dict[int, bool] = {}  # for each list, if it has routes
        self._uses: dict[str, list[int]] = {}
        for used in _USED.finditer(text):
            self._uses.setdefault(used[1], []).append(used.start(1))
        self._handed_on = {found[1] or found[2] for found in _HANDED_ON.finditer(text)}
        for names in _EXPORTED.findall(text):
            self._handed_on.update(name.split()[0] for name in names.split(",") if name.strip())

    def addresses(self, position: int) -> tuple[str, ...]:
        """Return the paths of the page of the route that has its path at *position*."""
        brace = self._blocks.around(position)
        if brace < 0 or self._text[brace] != "{":
            return ()
        entries = self._entries_of(brace)
        if entries.get("path", position) != position and "index" not in entries:
            return ()
        return self._paths(brace, 0) if self._shows(entries) else ()

    def _entries_of(self, brace: int) -> dict[str, int]:
        """Return where the value of each key begins in the object at *brace*."""
        known = self._entries.get(brace)
        if known is not None:
            return known
        found = self._entries[brace] = {}
        position, end = brace + 1, self._blocks.partner(brace)
        for _ in range(_MOST_ENTRIES):
            entry = _ENTRY.match(self._text, position, max(end, position))
            if entry:
                found.setdefault(entry[1], entry.end())
            position = self._blocks.comma(position, end) + 1
            if position > end:
                break
        return found

    def _shows(self, entries: dict[str, int]) -> bool:
        """True if a route with these *entries* shows something, or leads somewhere."""
        for name in ("component", "Component", "components", "element", "lazy", "loadComponent", "loadChildren"):
            if name in entries and not _NOTHING.match(self._text, entries[name]):
                return True
        if "redirectTo" in entries or "getParentRoute" in entries:
            return True
        if _LISTED in entries and "parentId" in entries:
            return not self._text.startswith("false", entries.get("hasDefaultExport", 0))
        return "redirect" in entries and _REDIRECTS.match(self._text, entries["redirect"]) is not None

    def _paths(self, brace: int, depth: int) -> tuple[str, ...]:
        """Return the paths of the route at *brace*: one for each place of its table."""
        if brace in self._known:
            return self._known[brace]
        if depth >= _DEEPEST:
            return ()
        self._known[brace] = ()  # for a table that holds itself
        path = ""
        if "path" in (entries := self._entries_of(brace)):
            written = _PATH.match(self._text, entries["path"])
            if written is None or written.start() not in self._strings:
                return ()
            path = written[2] + (written[3] or "")
        found = self._below(path, brace, depth)
        self._known[brace] = found
        return found

    def _below(self, path: str, position: int, depth: int) -> tuple[str, ...]:
        """Return *path* below each parent of the route at *position*."""
        entries = self._entries_of(position)
        if path.startswith("/") and "getParentRoute" not in entries and not self._of_solid:
            return (path,)
        path = path.lstrip("/")
        above = self._stated(entries, depth) or self._parents(position, depth)
        return tuple(f"{parent.rstrip('/')}/{path}" if path else parent for parent in above[:_MOST_PARENTS])

    def _stated(self, entries: dict[str, int], depth: int) -> tuple[str, ...]:
        """Return the paths of the parent that a route with these *entries* states; none if it states no parent."""
        if "getParentRoute" in entries:
            name, kind = _PARENT.match(self._text, entries["getParentRoute"]), "getParentRoute"
        elif "parentId" in entries:
            name, kind = _ID.match(self._text, entries["parentId"]), _LISTED
        else:
            return ()
        brace = self._named(kind).get(name[1], -1) if name else -1
        return self._paths(brace, depth + 1) if brace >= 0 else ("",)

    def _named(self, kind: str) -> dict[str, int]:
        """Return where the routes of this *kind* begin, by name; it is a key that all of them have."""
        if kind not in self._names:
            known = self._names[kind] = {}
            for found in (_IDENTIFIED if kind == _LISTED else _CREATED).finditer(self._text):
                brace = self._blocks.around(found.start() if kind == _LISTED else found.end() + 1)
                if brace >= 0 and kind in self._entries_of(brace):
                    known.setdefault(found[1], brace)
        return self._names[kind]

    def _parents(self, position: int, depth: int) -> tuple[str, ...]:
        """Return the paths of the route around *position*: "" for the root of the router, none if it is unknown."""
        start = position
        while depth < _DEEPEST:
            depth += 1
            before, position = position, self._blocks.around(position)
            sign = self._text[position] if position >= 0 else ""
            if sign == "[" and (used := self._elsewhere(position, depth)) is not None:
                return used
            if sign == "(" and (props := self._first_object(position, before)) >= 0:
                return self._paths(props, depth)
            if sign == "{" and _GETTER.search(self._text, max(0, position - 30), position):
                continue
            if sign == "{" and self._key_of(before, position) == "children":
                return self._paths(position, depth)
            if sign in {"{", ""}:
                return self._root(start)
        return ()

    def _key_of(self, position: int, brace: int) -> str:
        """Return the key of the object at *brace* whose value holds *position*."""
        begins = [(begin, name) for name, begin in self._entries_of(brace).items() if begin <= position]
        return max(begins)[1] if begins else ""

    def _root(self, position: int) -> tuple[str, ...]:
        """Return what is above the table with the route at *position*, which has no parent in its function.

        React has elements with further routes in other functions, below a route such as `docs/*`.
        """
        opening = self._blocks.around(position)
        if opening < 0 or self._text[opening] != "(" or self._blocks.comma(opening + 1, position) == position:
            return ("",)
        if self._open is None:
            self._open = []
            for found in _EVERYTHING_BELOW.finditer(self._text):
                brace = self._blocks.around(found.start())
                if brace >= 0 and self._shows(self._entries_of(brace)):
                    function = self._function(brace)
                    self._open += ((path, function) for path in self._below(found[2], brace, 0))
        own = self._function(position)
        above = {path for path, function in self._open if function != own}
        return (*above,) if len(above) == 1 else () if above else ("",)

    def _function(self, position: int) -> int:
        """Return the body of the function around *position*, or -1."""
        for _ in range(_DEEPEST):
            position = self._blocks.around(position)
            before = self._text[max(0, position - 20) : max(0, position)]
            if position < 0 or (self._text[position] == "{" and _FUNCTION.search(before)):
                break
        return position

    def _elsewhere(self, bracket: int, depth: int) -> tuple[str, ...] | None:
        """Return the parents of the list at *bracket* if it has a name, or if another script has them."""
        code = self._text[max(0, bracket - 60) : bracket]
        if _FOR_CHILDREN.search(code):
            return ()
        name = _ASSIGNED.search(code)
        if name is None:
            return None
        if name[1] not in self._above:
            self._above[name[1]] = ()  # for a table that holds itself
            places = [place for place in self._uses.get(name[1], ())[:_MOST_PARENTS] if self._is_in_table(place)]
            above = dict.fromkeys(path for place in places for path in self._parents(place, depth))
            self._above[name[1]] = tuple(above) if places else () if name[1] in self._handed_on else ("",)
        return self._above[name[1]]

    def _is_in_table(self, position: int) -> bool:
        """True if the name at *position* is that of the children of a route, or is among other routes."""
        around = self._blocks.around(position)
        if around < 0:
            return False
        if self._text[around] == "{":
            return "path" in self._entries_of(around)
        if around not in self._tables:
            end = self._blocks.partner(around)
            self._tables[around] = self._text[around] == "[" and bool(_SHOWS.search(self._text, around, end))
        return self._tables[around]

    def _first_object(self, opening: int, before: int) -> int:
        """Return the properties of the element that the call at *opening* makes, if *before* is one of its children."""
        second = self._blocks.comma(opening + 1, self._blocks.partner(opening)) + 1
        return second if second < before and self._text[second : second + 1] == "{" else -1
