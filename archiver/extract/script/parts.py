"""Variable parts of a URL in a script: `i`, `names[i]`, `story.slug`, `i + 1`, `String(i).padStart(2, "0")`."""

from typing import NamedTuple
from urllib.parse import quote

from archiver.config.expressions import compiled

NAME = r"[A-Za-z_$][\w$]{0,40}"
NUMBER = r"[0-9]{1,6}"

_S = r"\s{0,4}"
_Q = r"[\"'`]"
_REFERENCE = rf"(?P<name>{NAME})(?:\[{_S}(?P<index>{NAME}|{NUMBER}){_S}\])?(?P<keys>(?:\??\.{NAME}){{0,3}})"
_SUM = rf"{_REFERENCE}(?:{_S}(?P<sign>[+-]){_S}(?P<number>{NUMBER})(?![\w.]))?"
_ENDS = rf"(?![\w$]|{_S}[(\[.?=<])"
_PADDED = rf"{_S}\.padStart\({_S}(?P<width>[1-9]){_S},{_S}{_Q}?0{_Q}?{_S}\)"
_CUT = rf"{_S}\.(?:slice|substr)\({_S}-(?P<width>[1-9]){_S}\)"
_IF_SHORT = rf"{NAME}{_S}<{_S}(?P<two>10|=9){_S}\?{_S}"
_CHOICES = (
    rf"{_IF_SHORT}{_Q}0{_Q}{_S}\+{_S}{_REFERENCE}{_S}:{_S}(?:{_Q}{{2}}{_S}\+{_S})?{NAME}",
    rf"{_IF_SHORT}`0\$\{{{_REFERENCE}\}}`{_S}:{_S}{NAME}",
)
_BY_NAME = (
    rf"String\({_S}{_SUM}{_S}\){_PADDED}",
    rf"{_REFERENCE}\.toString\(\){_PADDED}",
    rf"(?P<encoded>encodeURI(?:Component)?)\({_REFERENCE}\)",
    rf"{_REFERENCE}(?P<lower>\.toLowerCase\(\))",
)
_IN_BRACKETS = (
    rf"\({_S}{_SUM}{_S}\){_ENDS}",
    rf"\({_S}{_SUM}{_S}\){_S}\.toString\(\){_PADDED}",
    rf"\({_S}{_Q}{{2}}{_S}\+{_S}{_REFERENCE}{_S}\){_PADDED}",
    rf"\({_S}{_Q}0{{1,8}}{_Q}{_S}\+{_S}{_REFERENCE}{_S}\){_CUT}",
    rf"\({_S}{_Q}0{{1,8}}{_Q}{_S}\+{_S}\({_SUM}\){_S}\){_CUT}",
    *(rf"\({_S}{choice}{_S}\)" for choice in _CHOICES),
    rf"\({_S}{_IF_SHORT}{_Q}0{_Q}{_S}:{_S}{_Q}{{2}}{_S}\){_S}\+{_S}{_REFERENCE}{_ENDS}",
)
_IN_TEMPLATE = (rf"`\$\{{{_SUM}\}}`{_PADDED}", rf"`0{{1,8}}\$\{{{_SUM}\}}`{_CUT}")
_JOINED = tuple(map(compiled, (_REFERENCE + _ENDS, *_BY_NAME)))
_FILLED = tuple(map(compiled, (_SUM + _ENDS, *_BY_NAME, *(choice + _ENDS for choice in _CHOICES))))
_OTHERS = {"(": tuple(map(compiled, _IN_BRACKETS)), "`": tuple(map(compiled, _IN_TEMPLATE))}


class Part(NamedTuple):
    """A variable, an item of a list or a value of an object, and what the script does with it."""

    name: str
    item: bool  # of a list, by its number
    key: str
    at: int  # in the script
    added: int = 0
    width: int = 0  # digits, with zeros in front
    encoded: bool = False
    lower: bool = False

    def written(self, values: list[str]) -> list[str]:
        """Return the *values* of the variable as the script writes them."""
        if self.added:
            values = [str(int(value) + self.added) for value in values if value.isascii() and value.isdigit()]
        if self.width:
            values = [value.zfill(self.width) for value in values]
        if self.lower:
            values = [value.lower() for value in values]
        return [quote(value, safe="!'()*") for value in values] if self.encoded else values


def part(text: str, position: int, *, filled: bool = False) -> tuple[Part, int] | None:
    """Return the part at *position* of a script and its end; *filled*: it stands alone in a template.

    Only there a sum without brackets is one of numbers: `"/a/" + i + 1` joins three texts.
    """
    forms = _OTHERS.get(text[position : position + 1], _FILLED if filled else _JOINED)
    found = next(filter(None, (form.match(text, position) for form in forms)), None)
    if found is None:
        return None
    groups = found.groupdict()
    added = int(groups.get("number") or 0) * (-1 if groups.get("sign") == "-" else 1)
    width = 2 if groups.get("two") else int(groups.get("width") or 0)
    key = found["keys"].rpartition(".")[2]
    whole = Part(found["name"], found["index"] is not None, key, position, added, width)
    return whole._replace(encoded=bool(groups.get("encoded")), lower=bool(groups.get("lower"))), found.end()
