"""Values that a script states for its variables: lists, keys of objects, values of a key, counters.

A variable has the values of the innermost place that binds it: an assignment, the header of a loop, or the parameter of
a function that is called for each item of a list. Minified scripts use one short name for many variables, so a binding
counts only inside its block. If a variable is bound to anything else, its values are unknown. No code is run. Linear
and bounded on any text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice

from archiver.extract.script import lists
from archiver.extract.script.blocks import Blocks
from archiver.extract.script.lists import MOST_VALUES, Shape, Values
from archiver.extract.script.parts import NAME, NUMBER, Part, part

_MOST_NAMES = 30  # of one script that are looked up
_MOST_USES = 2000  # of names that are looked up
_MOST_PLACES = 200  # of one name that are examined for one use
_MOST_KEYS = 20  # of one script whose values are looked up in all of it
_DEEPEST = 4  # variables that stand for one another
_HEADER = 400  # characters before a bracket that show what it belongs to

_ASSIGNS = re.compile(r"\s{0,4}=(?![=>])\s{0,40}")
_CHANGES = re.compile(r"\s{0,4}(?:[-*/%+|&^?]|\*\*|\|\||&&|\?\?)=(?![=>])(?!\s{0,4}[0-9])")
_ARROW = re.compile(r"\s{0,4}=>\s{0,4}")
_BLOCK = re.compile(r"\s{0,4}(?=\{)")
_OVER = re.compile(r"\s{0,4}\b(?P<kind>of|in)\b\s{0,4}")
_FUNCTION = re.compile(rf"(?:\bfunction\b\s{{0,4}}\*?\s{{0,4}})(?:{NAME})?\s{{0,4}}\Z")
_METHOD = re.compile(rf"(?<![\w$.])({NAME})\s{{0,4}}\Z")
_CONTROLS = frozenset(("if", "for", "while", "switch", "with"))
_LOOP = re.compile(r"\b(for|while)\s{0,4}(?:await\s{0,4})?\Z")
_UNTIL = re.compile(r"\}\s{0,4}while\s{0,4}\Z")
_DO_BLOCK = re.compile(r"(?<![\w$.])do\s{0,4}\{")
_DO = re.compile(r"(?<![\w$.])do\s{0,4}\Z")
_CALLED_BY = re.compile(
    r"(?:\??\.\s{0,4}(?:forEach|map|flatMap)|(?P<second>(?P<jquery>(?:\$|\bjQuery)\.each)|\bArray\.from))\s{0,4}\Z"
)
_FIRST = re.compile(rf"\s{{0,40}}(?:async\b\s{{0,4}})?(?:function\b\s{{0,4}}(?:{NAME})?\s{{0,4}})?\Z")
_CONDITION = re.compile(
    rf"({NAME})\s{{0,4}}(<=?|>=?)\s{{0,4}}(?:({NUMBER})(?![\w.])|({NAME})(\.length)?)\s{{0,4}}(?=[;)])"
)
_OF_ELEMENTS = frozenset(
    ("className", "hash", "height", "href", "innerHTML", "length", "src", "style", "value", "width")
)
_PAIR = (
    r"(?<![\w$.])[\"']?{key}[\"']?\s{{0,4}}:\s{{0,4}}"
    r"(?:'([^'\\\n]{{1,200}})'|\"([^\"\\\n]{{1,200}})\"|`([^`\\$\n]{{1,200}})`|([0-9]{{1,10}})(?![\w.]))"
)
_Bound = tuple[int, Values | None]  # the end of the block in which a variable is bound, and its values if known


class Stated:
    """The values that the script *text* states; *strings* are start and end of its strings, in order."""

    def __init__(self, text: str, strings: Iterable[tuple[int, int]]) -> None:
        self.text = text
        self.blocks = Blocks(text, strings)
        self._places = dict[str, list[int]]()
        self._keys = dict[str, list[str]]()
        self._known = dict[tuple[str, int], Values | None]()
        self._depth = 0
        self.nested = 0
        self._has_do = _DO_BLOCK.search(text) is not None

    def values(self, wanted: Part) -> list[str]:
        """Return the values of *wanted*, if they are known."""
        if wanted.key in _OF_ELEMENTS:
            return []
        holder = self.variable(wanted.name, wanted.at)
        if wanted.key:
            if holder is None:
                return wanted.written([] if wanted.item else self._of_key(wanted.key))
            return wanted.written(self._in_span(wanted.key, holder.span))
        if holder is None or holder.kind is not (Shape.LIST if wanted.item else Shape.ITEM):
            return []
        return wanted.written(list(holder.texts))

    def variable(self, name: str, at: int) -> Values | None:
        """Return the values of the variable *name* at the position *at*; None if they are unknown."""
        if (name, at) not in self._known:
            if self._depth == _DEEPEST or len(self._known) == _MOST_USES:
                return None
            self._depth += 1
            self._known[name, at] = self._variable(name, at)
            self._depth -= 1
        return self._known[name, at]

    def _variable(self, name: str, at: int) -> Values | None:
        places = self._places_of(name)
        use = bisect_left(places, at)
        if (repeated := self._repeated(places[use : use + _MOST_PLACES], at)) is not None:
            return repeated[1]
        for place in reversed(places[max(0, use - _MOST_PLACES) : use]):
            bound = self._binding(name, place, at)
            if bound is not None and bound[0] > at:
                return bound[1]
        for place in places[use : use + _MOST_PLACES]:  # a function above the data that it uses
            opening = self.blocks.around(place)
            assigns = _ASSIGNS.match(self.text, place + len(name))
            if assigns is not None and (opening < 0 or opening < at < self.blocks.partner(opening)):
                return lists.expression(self, assigns.end())
        return None

    def _repeated(self, places: list[int], at: int) -> _Bound | None:
        """Return what a `do` loop around *at* gives to a variable, if one of its *places* is the loop's condition."""
        for place in places if self._has_do else ():
            opening = self.blocks.around(place)
            block = self._repeats(opening)
            if 0 <= block < at < opening and (condition := _CONDITION.match(self.text, place)):
                return opening, self._counter(condition, opening, at)
        return None

    def _repeats(self, opening: int) -> int:
        """Return where the block of the `do` loop with the condition at *opening* begins; -1 if it is none."""
        before = _UNTIL.search(self._before(opening)[-20:]) if opening > 0 and self.text[opening] == "(" else None
        block = self.blocks.partner(opening - len(before[0])) if before else -1
        return block if block >= 0 and _DO.search(self._before(block)[-20:]) else -1

    def _places_of(self, name: str) -> list[int]:
        if name not in self._places:
            if len(self._places) == _MOST_NAMES:
                return []
            plain = re.escape(name)
            before = rf"(?:(?<![\w$.]{plain})|(?<=\bwindow\.{plain}))"  # behind the name, which is searched fast
            found = re.finditer(rf"{plain}(?![\w$]){before}", self.text)
            self._places[name] = [each.start() for each in found]
        return self._places[name]

    def _binding(self, name: str, place: int, at: int) -> _Bound | None:
        """Return what binds *name* at *place*, as seen from *at*; None if that is only a use."""
        opening, after = self.blocks.around(place), place + len(name)
        outer = self.blocks.around(opening) if opening >= 0 and self.text[opening] in "{[" else opening
        loop = self._loop(outer)
        if loop:
            if (condition := _CONDITION.match(self.text, place)) and opening == outer:
                return self._end_of_loop(outer), self._counter(condition, outer, at)
            if (
                over := _OVER.match(self.text, after if opening == outer else self.blocks.partner(opening) + 1)
            ) is not None:
                return self._end_of_loop(outer), self._each(outer, over, place, opening)
        elif (parameters := self._parameters(outer)) is not None:
            return parameters, self._argument(outer, place, opening)
        if arrow := _ARROW.match(self.text, after):
            end = min(self.blocks.end_around(place), self.blocks.end_of_statement(arrow.end()))
            return end, self._of_callback(opening, place, 0)
        if assigns := _ASSIGNS.match(self.text, after):
            end = self._end_of_loop(outer) if loop else self.blocks.end_around(place)
            return end, lists.expression(self, assigns.end())
        if _CHANGES.match(self.text, after):
            return self.blocks.end_around(place), None
        return None

    def _before(self, position: int) -> str:
        return self.text[max(0, position - _HEADER) : position]

    def _loop(self, opening: int) -> bool:
        """Return True if the bracket at *opening* begins the header of a loop."""
        return opening >= 0 and self.text[opening] == "(" and _LOOP.search(self._before(opening)[-20:]) is not None

    def _end_of_loop(self, opening: int) -> int:
        return self.blocks.end_of_statement(self.blocks.partner(opening) + 1)

    def _parameters(self, opening: int) -> int | None:
        """Return the end of the function whose parameters begin at *opening*; None if there is none."""
        closing = self.blocks.partner(opening) if opening >= 0 and self.text[opening] == "(" else -1
        if closing < 0:
            return None
        if arrow := _ARROW.match(self.text, closing + 1):
            return min(self.blocks.end_around(opening), self.blocks.end_of_statement(arrow.end()))
        if not (block := _BLOCK.match(self.text, closing + 1)):
            return None
        before = self._before(opening)[-100:]
        method = _METHOD.search(before)
        if not _FUNCTION.search(before) and (method is None or method[1] in _CONTROLS):
            return None
        return self.blocks.end_of_statement(block.end())

    def _argument(self, opening: int, place: int, inner: int) -> Values | None:
        """Return the values of the parameter at *place*, in the list at *opening*; *inner* is its own bracket."""
        begin = place if inner == opening else inner
        number, comma = 0, self.blocks.comma(opening + 1, begin)
        while comma < begin and number < 2:
            number, comma = number + 1, self.blocks.comma(comma + 1, begin)
        values = self._of_callback(self.blocks.around(opening), opening, number)
        return values if inner == opening else self._taken_out(values, place, inner)

    def _taken_out(self, values: Values | None, place: int, inner: int) -> Values | None:
        """Return the values of the name at *place*, in a pattern that takes each of *values* apart."""
        if values is None:
            return None
        before = self.text[inner + 1 : place]
        if self.text[inner] == "[":  # [key, value] of an object
            if values.pairs:
                return values._replace(kind=Shape.ITEM) if not before.strip() else None
            return lists.column(self, values.span, before.count(","))
        renamed = before.rstrip().removesuffix(":").rpartition(",")[2].strip() if before.rstrip()[-1:] == ":" else ""
        name = re.compile(NAME).match(self.text, place)
        key = renamed or (name[0] if name else "")
        return Values(Shape.ITEM, tuple(self._in_span(key, values.span))) if values.span else None

    def _of_callback(self, call: int, begin: int, number: int) -> Values | None:
        """Return the values of parameter *number* of the function that begins at *begin*, in the call at *call*."""
        if call < 0 or self.text[call] != "(":
            return None
        called = _CALLED_BY.search(self._before(call)[-60:])
        if called is None:
            return None
        arguments = self.text[call + 1 : begin]
        if called["second"] and (comma := arguments.rfind(",")) >= 0 and _FIRST.match(arguments[comma + 1 :]):
            listed = lists.argument(self, call, call + 1 + comma)
            number = 1 - number if called["jquery"] else number
        elif not called["second"] and _FIRST.match(arguments):
            end = call - len(called[0])
            listed = lists.listed(self, lists.begin(self, end), end)
        else:
            return None
        if listed is None or number not in {0, 1}:
            return None
        return listed._replace(kind=Shape.ITEM) if number == 0 else listed.numbers()

    def _each(self, opening: int, over: re.Match[str], place: int, inner: int) -> Values | None:
        """Return the values of the variable at *place* in a loop over the list behind *over*."""
        listed = lists.listed(self, over.end(), self.blocks.partner(opening))
        if listed is None:
            return None
        if over["kind"] == "in":
            return listed.numbers() if listed.kind is Shape.LIST else Values(Shape.ITEM, listed.texts)
        item = listed._replace(kind=Shape.ITEM) if listed.kind is Shape.LIST else None
        return item if inner == opening else self._taken_out(item, place, inner)

    def _counter(self, condition: re.Match[str], opening: int, at: int) -> Values | None:
        """Return the numbers of a loop with this *condition* in its header at *opening*, as seen from *at*."""
        name, closing = condition[1], self.blocks.partner(opening)
        first = re.compile(rf"(?<![\w$.]){re.escape(name)}\s{{0,4}}=\s{{0,4}}({NUMBER})\s{{0,4}}[,;]")
        begins = first.search(self.text, opening + 1, condition.start())
        start = int(begins[1]) if begins else self._number(name, opening)
        bound = int(condition[3]) if condition[3] else self._bound(condition, opening)
        step = re.compile(
            rf"(?<![\w$.]){re.escape(name)}\s{{0,4}}(?:(?P<one>\+\+|--)|(?P<by>[+-])=\s{{0,4}}(?P<number>{NUMBER})(?!\w))"
            rf"|(?P<before>\+\+|--)\s{{0,4}}{re.escape(name)}(?![\w$])"
        )
        steps = step.search(self.text, condition.end(), closing)
        block = self._repeats(opening)
        body = (block, opening) if block >= 0 else (closing, self._end_of_loop(opening))
        inside = None if steps else step.search(self.text, *body)
        found = steps or inside
        if start is None or bound is None or found is None:
            return None
        size = int(found["number"] or 1)
        if size == 0:
            return None
        size = -size if (found["one"] or found["by"] or found["before"])[0] == "-" else size
        if (condition[2][0] == "<") != (size > 0):
            return None
        last = bound + (1 if size > 0 else -1) * (condition[2][1:] == "=")
        moved = size if inside and inside.start() < at else 0  # the loop counts before it uses the number
        numbers = range(start, last, size)[:MOST_VALUES]
        return Values(Shape.ITEM, tuple(str(number + moved) for number in numbers))

    def _bound(self, condition: re.Match[str], opening: int) -> int | None:
        if not condition[5]:
            return self._number(condition[4], opening)
        counted = self.variable(condition[4], opening)
        return counted.length or None if counted is not None and counted.kind is Shape.LIST else None

    def _number(self, name: str, at: int) -> int | None:
        stated = self.variable(name, at)
        single = stated.texts[0] if stated is not None and stated.kind is Shape.ITEM and len(stated.texts) == 1 else ""
        return int(single) if single.isascii() and single.isdigit() and len(single) < 7 else None

    def _of_key(self, key: str) -> list[str]:
        """Return the values of *key* in all objects of the script."""
        if key not in self._keys:
            if len(self._keys) == _MOST_KEYS:
                return []
            self._keys[key] = self._in_span(key, (0, len(self.text)))
        return self._keys[key]

    def _in_span(self, key: str, span: tuple[int, int] | None) -> list[str]:
        if span is None or not key:
            return []
        pair = re.compile(_PAIR.format(key=re.escape(key)))
        found = (
            each[1] or each[2] or each[3] or each[4] for each in islice(pair.finditer(self.text, *span), MOST_VALUES)
        )
        return list(dict.fromkeys(found))

    def in_list(self, key: str) -> Values | None:
        """Return the list under *key* in an object of the script."""
        found = re.search(rf"(?<![\w$.])[\"']?{re.escape(key)}[\"']?\s{{0,4}}:\s{{0,4}}(?=\[)", self.text)
        closing = self.blocks.partner(found.end()) if found else -1
        return lists.listed(self, found.end(), closing + 1) if found and closing > 0 else None

    def of_part(self, start: int) -> tuple[Values, int] | None:
        """Return the values of the part of an expression at *start*, and its end."""
        found = part(self.text, start, filled=True)
        if found is None:
            return None
        wanted, end = found
        if wanted.item and not wanted.key:
            holder = self.variable(wanted.name, wanted.at)
            return (holder._replace(kind=Shape.ITEM), end) if holder and holder.kind is Shape.LIST else None
        known = self.values(wanted)
        return (Values(Shape.ITEM, tuple(known)), end) if known else None
