"""URLs that a script puts together around a part that it states: a counter, a name in a list, a value of an object.

`for (i = 1; i <= 9; i++) html += '<a href="page' + i + '.html">'` names nine pages, and
``stories.map(s => `<a href="/story/${s.slug}">`)`` one for each `slug:` of the list. They count where a URL is
expected: in an attribute of markup, and where the script requests, opens or assigns it. Large scripts are programs of
others, which put together other things, so only short ones are read. `parts` reads the parts, `stated` knows what their
values are. Linear on any text.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice, product

from archiver.config.expressions import compiled
from archiver.extract.script import parts, strings
from archiver.extract.script.parts import NAME, Part
from archiver.extract.script.stated import Stated

LONGEST = 200_000  # characters of a script
MOST_PLACES = 200  # of one script where a URL is put together
MOST = 5000  # URLs of one script
NEAR = 300  # characters around a part
_MOST_TERMS = 8  # of one URL

_SIGNS = ("href", "src", "location", "fetch", "url", ".load(", ".ajax(", ".get", ".open(")
_JOINS = re.compile(r"\s{0,40}(?:\+(?![+=])|(?P<call>\.concat\())\s{0,40}")
_NEXT = re.compile(r"\s{0,4}(?:,|\)\s{0,4}\.concat\()\s{0,4}")  # argument of concat
_QUOTED = compiled(r"'((?:[^'\\\n]|\\.){0,300}+)'|\"((?:[^\"\\\n]|\\.){0,300}+)\"|`((?:[^`\\$]|\\.|\$(?!\{)){0,300}+)`")
_HOLE = re.compile(r"\$\{\s{0,4}")
_HOLE_ENDS = re.compile(r"\s{0,4}\}")
_LITERAL = compiled(r"(?:[^`\\$]|\\.|\$(?!\{)){1,300}+")
_ENDS = re.compile(r"\s{0,4}(?:[;,)}\]:]|\Z|//|/\*)|[ \t]{0,40}[\r\n]\s{0,200}(?![+.\s])")
_ATTRIBUTE = re.compile(
    r"\b(?:href|src)\s{0,4}=\s{0,4}[\"']?([^\"'<>\s`=]{0,200}(?:\?[^\"'<>\s`]{0,200})?)\Z", re.IGNORECASE
)
_CLOSED = compiled(r"([^\"'<>\s`$]{0,200}+)[\"'<>\s]")
_HOST_ONLY = re.compile(r"(?:https?:)?//[^/]*")
_NAMED = re.compile(rf"(?<![\w$.])({NAME})\s{{0,4}}=\Z")
_FIRST_PART = re.compile(rf"(?<![\w$.])({NAME})\s{{0,4}}\+\Z")
_LEADS_UP = frozenset("(,:=")  # a string after anything else does not begin a URL
_STEP = r"(?:[\w~@,+.-]|%[0-9A-Fa-f]{2}){1,200}+"
_PLAIN = compiled(rf"(?!.*\.\.){_STEP}(?:/{_STEP}){{0,10}}")
_FOLDER = compiled(
    rf"(?!.*\.\.[^/])(?:https?://[\w.-]{{1,200}}+(?::[0-9]{{1,5}})?|\.{{1,2}})?(?:/(?:{_STEP})?+){{0,10}}"
)

_Place = tuple[str | Part, ...]  # the terms of a URL that a script puts together


def urls(text: str, is_file: Callable[[str], bool]) -> Iterator[str]:
    """Yield each URL that the script *text* puts together from what it states, relative to its page.

    *is_file* tells if a string is the URL of a file.
    """
    if len(text) > LONGEST or not any(sign in text for sign in _SIGNS):
        return
    tokens = list(strings.tokens(text, every=True))
    places = list(islice(_places(text, tokens), MOST_PLACES))
    if not places:
        return
    stated = Stated(text, [(start, end) for start, end in tokens if end > 0])
    found = dict[str, None]()
    for address in islice((address for place in places for address in _addresses(place, stated)), MOST):
        if is_file(address) or strings.is_page(address) or _is_path(address):
            found[address] = None
    yield from found


def _addresses(place: _Place, stated: Stated) -> Iterator[str]:
    """Yield the URLs of *place*, for each combination of the values of its parts."""
    values = list[list[str]]()
    if isinstance(place[0], str) and _HOST_ONLY.fullmatch(place[0]):
        return
    for number, term in enumerate(place):
        known = [term] if isinstance(term, str) else stated.values(term)
        if isinstance(term, Part):
            begins = not any(place[:number])
            known = [value for value in known if _PLAIN.fullmatch(value) or (begins and _FOLDER.fullmatch(value))]
        if not known:
            return
        values.append(known)
    yield from islice(map("".join, product(*values)), MOST)


def _is_path(address: str) -> bool:
    """Return True if *address* is a path without an extension; a single word may be anything."""
    return "/" in address and strings.is_path(strings.from_root(address))


def _places(text: str, tokens: list[tuple[int, int]]) -> Iterator[_Place]:
    """Yield the places of *text* where a URL is joined by `+` or `concat`, and those in templates."""
    for start, end in tokens:
        if end < 0:
            place = _template(text, start)
        else:
            joins = _JOINS.match(text, end) if text[start] != "/" else None
            place = _joined(text, start, end, joins) if joins else None
        if place is not None:
            yield place
    for hole in _HOLE.finditer(text):
        begin = _ATTRIBUTE.search(text[max(0, hole.start() - NEAR) : hole.start()])
        if begin is not None and "${" not in begin[1]:
            terms, closed = _filled(text, hole.start(), attribute=True)
            if closed:
                yield (begin[1], *terms)


def _joined(text: str, start: int, end: int, joins: re.Match[str]) -> _Place | None:
    """Return the place whose URL begins in the string from *start* to *end*, to which something is joined."""
    begin = strings.unescaped(text[max(start + 1, end - NEAR) : end - 1])
    if "=" in begin and (attribute := _ATTRIBUTE.search(begin)) is not None:
        terms, closed = _sum(text, joins, attribute=True)
        return (attribute[1], *terms) if closed else None
    if end - start > NEAR:
        return None
    window = max(0, start - strings.NEAR)
    before = text[window:start].rstrip()
    first = _FIRST_PART.search(before) if before[-1:] == "+" else None
    before = before[: first.start()].rstrip() if first else before
    if before[-1:] not in _LEADS_UP:
        return None
    leading = (Part(first[1], item=False, key="", at=window + first.start()),) if first else ()
    terms, closed = _sum(text, joins, attribute=False)
    return _whole(text, before, (*leading, begin, *terms), closed)


def _sum(text: str, joins: re.Match[str], *, attribute: bool) -> tuple[list[str | Part], int]:
    """Return the terms behind *joins*, up to the end of an *attribute* or of the sum, and that end; 0 if not known."""
    terms = list[str | Part]()
    following: re.Match[str] | None = joins
    position = 0
    while following is not None and len(terms) < _MOST_TERMS:
        term, position = _term(text, following.end())
        if term is None:
            return terms, 0
        if attribute and isinstance(term, str) and (closed := _CLOSED.match(term)):
            return [*terms, closed[1]], position
        terms.append(term)
        following = (_NEXT if joins["call"] else _JOINS).match(text, position)
    if joins["call"]:
        position = position + 1 if text[position : position + 1] == ")" else len(text)
    return terms, position if not attribute and _ENDS.match(text, position) else 0


def _term(text: str, position: int) -> tuple[str | Part | None, int]:
    """Return the string or the part at *position*, and its end."""
    if quoted := _QUOTED.match(text, position):
        return strings.unescaped(quoted[1] or quoted[2] or quoted[3] or ""), quoted.end()
    return parts.part(text, position) or (None, position)


def _template(text: str, start: int) -> _Place | None:
    """Return the place of the URL that the whole template at *start* is."""
    before = text[max(0, start - strings.NEAR) : start].rstrip()
    if before[-1:] not in _LEADS_UP:
        return None
    terms, closed = _filled(text, start + 1, attribute=False)
    return _whole(text, before, tuple(terms), closed if _ENDS.match(text, closed) else 0)


def _filled(text: str, position: int, *, attribute: bool) -> tuple[list[str | Part], int]:
    """Return the terms in a template from *position* on, up to the end of an *attribute* or of all, and that end."""
    terms = list[str | Part]()
    while len(terms) < _MOST_TERMS:
        if hole := _HOLE.match(text, position):
            found = parts.part(text, hole.end(), filled=True)
            closing = _HOLE_ENDS.match(text, found[1]) if found else None
            if found is None or closing is None:
                return terms, 0
            terms.append(found[0])
            position = closing.end()
        elif attribute and (closed := _CLOSED.match(text, position)):
            return [*terms, closed[1]], closed.end()
        elif written := _LITERAL.match(text, position):
            terms.append(strings.unescaped(written[0]))
            position = written.end()
        else:
            break
    return terms, position + 1 if not attribute and text[position : position + 1] == "`" else 0


def _whole(text: str, before: str, terms: _Place, end: int) -> _Place | None:
    """Return the place of *terms*, up to *end*, if the code *before* uses them as a URL and sends nothing."""
    last = terms[-1] if terms else ""
    if not end or not any(isinstance(term, Part) for term in terms):
        return None
    if not any("/" in term or "." in term for term in terms if isinstance(term, str)):
        return None  # no address, whatever the values are
    if isinstance(last, str) and last.startswith(("&", "?")):
        return None
    after = text[end : end + strings.AFTER]
    if strings.takes_address(before) or strings.names_address(before):
        return None if strings.is_sent(before, after.lstrip()) else terms
    named = _NAMED.search(before)
    uses = re.finditer(rf"(?<![\w$.]){re.escape(named[1])}(?=\s{{0,4}}[;,)}}])", after) if named else ()
    for used in uses:
        code = after[: used.start()].rstrip()
        if strings.takes_address(code):
            return None if strings.is_sent(code, after[used.end() :].lstrip()) else terms
    return None


_MOST_SCRIPTS = 50
_MOST_READ_TOGETHER = 10  # scripts of one page that are read with data of others
_HEADER = 500  # characters of a start tag
_ID = re.compile(r"\bid\s{0,4}=\s{0,4}[\"']?([\w:.-]{2,100})", re.IGNORECASE)
_TYPE = re.compile(r"\btype\s{0,4}=\s{0,4}[\"']?([\w/+.-]{1,100})", re.IGNORECASE)
_SRC = re.compile(r"\bsrc\s{0,4}=", re.IGNORECASE)
_PUTS_TOGETHER = re.compile(r"\$\{\s{0,4}[\w$]|[\"'`]\s{0,4}\+\s{0,4}[\w$]|\.concat\(")
_ASSIGNED = re.compile(
    rf"(?:\b(?:const|let|var)\s{{1,4}}|\b(?:window|self|globalThis)\.|(?:\A|[;\n])\s{{0,4}})({NAME})\s{{0,4}}=\s{{0,4}}[\[{{]"
)


def page_urls(source: str, is_file: Callable[[str], bool]) -> Iterator[str]:
    """Yield each URL that a script in the page *source* puts together from data in its other scripts.

    These are JSON under an id, and variables. Only those that the script names count: the same keys have other meanings
    in other data.
    """
    data, programs = dict[str, str](), list[str]()
    for attributes, text in islice(_scripts(source), _MOST_SCRIPTS):
        kind = _TYPE.search(attributes)
        if kind is None or "javascript" in kind[1] or kind[1] == "module":
            programs.append(text)
        elif kind[1].endswith("json") and (name := _ID.search(attributes)) and kind[1] != "application/ld+json":
            data[name[1]] = text
    wanting = [text for text in programs if any(sign in text for sign in _SIGNS) and _PUTS_TOGETHER.search(text)]
    if wanting and len(programs) + len(data) > 1:
        for text in programs:
            data.update((found[1], text) for found in islice(_ASSIGNED.finditer(text), _MOST_SCRIPTS))
        for program in wanting[:_MOST_READ_TOGETHER]:
            named = dict.fromkeys(text for name, text in data.items() if text is not program and _names(program, name))
            if named:
                yield from urls(";\n".join((*named, program)), is_file)


def _scripts(source: str) -> Iterator[tuple[str, str]]:
    """Yield attributes and text of each script element in the page *source* that has a text and is not long."""
    position = source.find("<script")
    while position >= 0:
        begin = source.find(">", position)
        end = source.find("</script", begin) if begin >= 0 else -1
        if end < 0:
            return
        attributes = source[position : min(begin, position + _HEADER)]
        if begin + 1 < end <= begin + LONGEST and not _SRC.search(attributes):
            yield attributes, source[begin + 1 : end]
        position = source.find("<script", end)


def _names(program: str, name: str) -> bool:
    """Return True if the code of *program* contains *name* as a whole word."""
    return (
        name in program
        and re.search(rf"(?<![\w$.:-]){re.escape(name)}(?![\w$:-])|\bwindow\.{re.escape(name)}(?![\w$])", program)
        is not None
    )
