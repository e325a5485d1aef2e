"""Brackets of a script: which block a position is in, and where blocks and statements end.

Brackets in strings are not counted. One without a partner is ignored, as markup in templates may have some. Linear on
any text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

_MARK = re.compile(r"[()\[\]{};,]")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_STEPS = 200  # marks passed in search of the end of a statement


class Blocks:
    """The brackets of *text*, without those in its *strings* (start and end of each, in order)."""

    def __init__(self, text: str, strings: Iterable[tuple[int, int]]) -> None:
        self._text = text
        self._marks: list[int] = []  # brackets, semicolons and commas
        self._inside: list[int] = []  # for each, the innermost bracket that is open after it, or -1
        self._partners: dict[int, int] = {}
        opened = list[int]()
        done = 0
        for start, end in (*strings, (len(text), len(text))):
            for mark in _MARK.finditer(text, done, max(done, start)):
                self._add(mark[0], mark.start(), opened)
            done = max(done, end)

    def _add(self, sign: str, position: int, opened: list[int]) -> None:
        if (wanted := _CLOSES.get(sign)) is not None:
            depth = next((n for n in range(1, min(len(opened), 50) + 1) if self._text[opened[-n]] == wanted), 0)
            if not depth:
                return
            self._partners[opened[-depth]] = position
            self._partners[position] = opened[-depth]
            del opened[-depth:]
        elif sign not in {";", ","}:
            opened.append(position)
        self._marks.append(position)
        self._inside.append(opened[-1] if opened else -1)

    def partner(self, bracket: int) -> int:
        """Return the bracket that closes or opens the one at *bracket*; -1 if there is none."""
        return self._partners.get(bracket, -1)

    def around(self, position: int) -> int:
        """Return the innermost bracket that is open at *position*, or -1."""
        before = bisect_left(self._marks, position) - 1
        return self._inside[before] if before >= 0 else -1

    def end_around(self, position: int) -> int:
        """Return the end of the innermost block around *position*."""
        opening = self.around(position)
        return self._partners.get(opening, len(self._text)) if opening >= 0 else len(self._text)

    def end_of_statement(self, position: int) -> int:
        """Return the end of the statement, or of the block, that begins at *position*."""
        while self._text[position : position + 1].isspace():
            position += 1
        if self._text[position : position + 1] == "{":
            return self._partners.get(position, len(self._text))
        place = bisect_left(self._marks, position)
        for _ in range(_STEPS):
            mark = self._marks[place] if place < len(self._marks) else len(self._text)
            sign = self._text[mark : mark + 1]
            if sign == ",":
                place += 1
            elif sign not in {"(", "[", "{"}:
                return mark
            else:
                place = bisect_right(self._marks, self._partners.get(mark, mark))
        return position

    def comma(self, position: int, end: int) -> int:
        """Return the next comma in the block at *position*, or *end*."""
        place = bisect_left(self._marks, position)
        while place < len(self._marks) and (mark := self._marks[place]) < end:
            if self._text[mark] == ",":
                return mark
            place = bisect_right(self._marks, self._partners.get(mark, mark))
        return end
