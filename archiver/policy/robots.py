"""Parse robots.txt, with the mistakes that people make in it, and decide which rule applies to a URL. Pure.

The longest pattern that matches a URL decides (RFC 9309 §2.2.2). A rule without wildcards is found by its text. Of the
others we try only those with a part that occurs in the URL, and bound the cost. If the bound is reached, the URL counts
as forbidden, so a hostile file can only harm its own site.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from archiver import url
from archiver.model import Robots

MOST = 1000  # rules with wildcards that have a part in one URL
BUDGET = 5000  # steps of about 0.1 µs; each try costs at least so many …
TRY = 5
STEP = 16  # … and one more for so many searched characters, at worst
PARTS = (6, 2, 1)  # characters at the end of a rule's longest part by which it is looked up
TOO_COSTLY = "more wildcards than can be tried"

_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_SAME = frozenset(b":@!'(),;[]")  # equal to their escapes by RFC 9309 §2.2.2, and no one means a difference …
_SAME_IN_QUERY = _SAME | frozenset(b"/?")  # … like these two after a question mark
_ODD = re.compile(  # not yet in plain form; most escapes are not ASCII, are in capitals, and stay
    r"%(?:[0-7][0-9A-Fa-f]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])|[^A-Za-z0-9._~:/?#\[\]@!&'()+,;=%-]"
)
_INDEX = re.compile(r"(.*/)index\.htm[^/]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line and its weight. The longer pattern wins; of two with the same length, the one that allows."""

    weight: int  # twice the length of its pattern, plus one if it allows
    text: str  # as written
    parts: tuple[str, ...]  # the text before, between and after the asterisks
    ends: bool  # the last part must end the URL
    searches: int  # parts to search for …
    words: int  # … and how many of them have more than one character

    @property
    def allows(self) -> bool:
        """True if the rule allows the URLs that it matches."""
        return self.weight % 2 == 1

    def cost(self, length: int) -> int:
        """Return the steps that a match with a URL of *length* may take."""
        return TRY + self.searches + self.words * (length // STEP)

    def matches(self, target: str) -> bool:
        """Return True if *target*, in its plain form, matches the pattern. Take each part where it first occurs."""
        first, *others = self.parts
        if not target.startswith(first):
            return False
        position = len(first)
        last = others.pop() if self.ends else ""
        for part in others:
            found = target.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        return not self.ends or (len(target) - len(last) >= position and target.endswith(last))


class PathRules:
    """The rules of one group, given as (True if it allows, its pattern)."""

    def __init__(self, rules: Iterable[tuple[bool, str]]) -> None:
        self._prefixes: dict[str, Rule] = {}
        self._whole: dict[str, Rule] = {}
        self._by_part: defaultdict[str, list[Rule]] = defaultdict(list)
        for rule in dict.fromkeys(_every(rules)):
            if len(rule.parts) > 1:
                self._by_part[_key(rule)].append(rule)
            else:
                known = self._whole if rule.ends else self._prefixes
                if rule.parts[0] not in known or known[rule.parts[0]].weight < rule.weight:
                    known[rule.parts[0]] = rule
        for rules_of_part in self._by_part.values():
            rules_of_part.sort(key=_lightness)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})
        self._part_lengths = sorted({len(part) for part in self._by_part})
        self._none = not (self._prefixes or self._whole or self._by_part)

    def refusal(self, target: str) -> str:
        """Return the rule that forbids *target* (path and query of a canonical URL), as written, or ""."""
        if self._none:
            return ""
        plain = plain_form(target).replace("*", "%2A").replace("$", "%24")
        best = self._whole.get(plain)
        weight = best.weight if best else -1
        for length in self._lengths:
            if length > len(plain):
                break
            rule = self._prefixes.get(plain[:length])
            if rule is not None and rule.weight > weight:
                best, weight = rule, rule.weight
        budget = BUDGET
        candidates = self._candidates(plain, weight)
        if len(candidates) > MOST:
            return TOO_COSTLY
        for rule in candidates:
            budget -= rule.cost(len(plain))
            if budget < 0:
                return TOO_COSTLY
            if rule.matches(plain):
                best = rule
                break
        return "" if best is None or best.allows else best.text

    def _candidates(self, plain: str, weight: int) -> list[Rule]:
        """Return the rules that may match *plain* and weigh more than *weight*, heaviest first; or more than `MOST`."""
        found: list[Rule] = []
        for size in self._part_lengths:
            for part in {plain[start : start + size] for start in range(len(plain) - size + 1)} & self._by_part.keys():
                found += takewhile(lambda rule: rule.weight > weight, self._by_part[part][: MOST + 1])
                if len(found) > MOST:
                    return found
        found.sort(key=_lightness)
        return found


def _lightness(rule: Rule) -> int:
    return -rule.weight


def plain_form(path: str) -> str:
    """Return *path* (perhaps with a query) in the spelling used to compare rules and URLs; `*` and `$` stay."""
    if _ODD.search(path) is None:
        return path
    head, mark, query = path.partition("?")
    return _ODD.sub(_plain, head) + mark + _ODD.sub(_plain_in_query, query)


def _plain(found: re.Match[str]) -> str:
    return _spelled(found[0], _SAME)


def _plain_in_query(found: re.Match[str]) -> str:
    return _spelled(found[0], _SAME_IN_QUERY)


def _spelled(text: str, same: frozenset[int]) -> str:
    if text in "*$":
        return text
    if text[0] != "%":
        return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))
    code = int(text[1:], 16)
    return chr(code) if code in _UNRESERVED or code in same else text.upper()


def _every(rules: Iterable[tuple[bool, str]]) -> Iterator[Rule]:
    for allows, pattern in rules:
        if pattern:
            yield _weighed(allows, pattern)
            if allows and (index := _INDEX.fullmatch(pattern)):  # the folder is meant too, as at Google
                yield _weighed(allows, f"{index[1]}$")


def _weighed(allows: bool, pattern: str) -> Rule:  # noqa: FBT001  it is what the line says
    plain = plain_form(pattern)
    ends = plain.endswith("$")
    weight = 2 * len(plain) + allows
    first, *others = plain.removesuffix("$").replace("$", "%24").split("*")
    if ends and others and not others[-1]:  # `*$` matches any end
        ends = False
    last = [others[-1]] if ends and others else []
    between = [part for part in (others[:-1] if last else others) if part]
    text = f"{'Allow' if allows else 'Disallow'}: {pattern}"
    words = sum(len(part) > 1 for part in between)
    return Rule(weight, text, (first, *between, *last), ends, len(between), words)


def _key(rule: Rule) -> str:
    longest = max(reversed(rule.parts), key=len)  # of equal lengths the last, because the first is mostly "/"
    size = next((size for size in PARTS if size <= len(longest)), 0)
    return longest[len(longest) - size :]


MAX_BODY = 512 << 10  # RFC 9309 §2.5 requires at least 500 KiB
MAX_LINE = 16_663  # the rest is dropped, as at Google: 8 times 2083 (once the longest URL of a browser) less one
PROBE = 16  # bytes examined to recognize UTF-16 without a mark
NO_RULES = 503  # the status kept for an answer that is no permission: 429, or one that is cut short
MAX_REDIRECTS = 5  # RFC 9309 §2.3.1.2
MAX_SITEMAPS = 1000

PRODUCT = "archiver"  # robots.txt may use this name for us, whatever our user agent is
UNREACHABLE = "robots.txt could not be had"

_TOKEN = re.compile(r"([A-Za-z_-]+)(?:/[^\s;,()]*)?")

_RECORD = re.compile(  # keys as people write and mistype them; the colon may be missing
    rb"[ \t]*(user[- ]?agent|dis+all?ow|diasllow|disallaw|allow|site-?maps?|crawl[- ]?delay)[ \t]*[: \t]([^#]*)",
    re.IGNORECASE,
)
_KEYS = {b"u": "agent", b"d": "disallow", b"a": "allow", b"s": "sitemap", b"c": "delay"}  # by their first letter
_MARK = re.compile(rb"\A\xef(?:\xbb\xbf?)?")  # a byte order mark, or what editors leave of it
_LINE_END = re.compile(rb"\r\n?|\n")
_NO_GRAPHIC = re.compile(rb"[^!-~]")


def product_token(user_agent: str) -> str:
    """Return the product token of *user_agent* for robots.txt: the one after `compatible;`, or the first."""
    words = user_agent.partition("compatible;")[2] or user_agent
    parts = [part.strip() for part in re.split(r"[;()]", words) if part.strip() and not part.strip().startswith("+")]
    found = _TOKEN.match(parts[0]) if parts else None
    return found[1] if found else PRODUCT


@dataclass(slots=True)
class _Group:
    """All groups of one file for one product."""

    named: bool = False
    rules: list[tuple[bool, str]] = field(default_factory=list)  # (True if it allows, its pattern)
    delay: float = 0.0


class Rules:
    """The rules and delay of one host for one product."""

    def __init__(self, robots: Robots, token: str) -> None:
        self.unreachable = robots.status == 0 or robots.status >= 500
        group = _group(robots.body, {token.lower(), PRODUCT}) if _readable(robots) else _Group()
        self.delay = group.delay  # seconds of Crawl-delay; 0 if there is none
        self._paths = PathRules(group.rules)

    def allows(self, address: str) -> bool:
        """Return True if *address* may be fetched. /robots.txt itself always may, unless the host is unreachable."""
        return not self.refusal(address)

    def refusal(self, address: str) -> str:
        """Return the rule that forbids *address*, as it is written, or ""."""
        if self.unreachable:
            return UNREACHABLE
        return "" if url.path(address) == "/robots.txt" else self._paths.refusal(url.target(address))


def sitemaps(robots: Robots) -> Sequence[str]:
    """Return the sitemaps that a robots.txt names, for any product, as written there."""
    if not _readable(robots):
        return ()
    named = (value for key, value in _records(robots.body) if key == "sitemap" and value)
    return tuple(islice(dict.fromkeys(named), MAX_SITEMAPS))


def _readable(robots: Robots) -> bool:
    return 200 <= robots.status < 300


def _group(body: bytes, tokens: Collection[str]) -> _Group:
    """Return the rules for the products *tokens*, or else those for everybody (RFC 9309 §2.2.1)."""
    ours, anybody = _Group(), _Group()
    addressed: list[_Group] = []  # by the user-agent lines of the current group
    ruled = False  # the group has a rule, so the next user-agent line begins another group
    for key, value in _records(body):
        if key == "agent":
            if ruled:
                addressed, ruled = [], False
            group = anybody if _is_star(value) else ours if _names(value, tokens) else None
            if group is not None and not any(group is known for known in addressed):
                group.named = True
                addressed.append(group)
        elif key == "delay":
            for group in addressed:
                group.delay = max(group.delay, _seconds(value))
        elif key != "sitemap":
            ruled = True
            for group in addressed if value else ():
                group.rules.append((key == "allow", value))
    return ours if ours.named else anybody


def _is_star(value: str) -> bool:
    return value == "*" or value.startswith("*%")  # most readers treat text after a space as a comment


def _names(value: str, tokens: Collection[str]) -> bool:
    found = _TOKEN.match(value)
    return found is not None and found[1].lower() in tokens


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < math.inf else 0.0


def _records(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield key and value of each line we know. All but graphic ASCII in the value is percent-encoded."""
    for line in _LINE_END.split(_unmarked(body[:MAX_BODY])):
        found = _RECORD.match(line[:MAX_LINE])
        if found is not None:
            key, value = _KEYS[found[1][:1].lower()], found[2].strip(b" \t\0\v\f")
            yield key, _escaped(value)
            if (
                key in ("allow", "disallow") and not value.isascii() and not _is_utf8(value)
            ):  # browsers send latin-1 from a page as UTF-8
                yield key, _escaped(value.decode("latin-1").encode())


def _unmarked(body: bytes) -> bytes:
    """Return *body* in an ASCII-compatible encoding, without a byte order mark."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    for coding, zeros in (("utf-16-le", body[1:PROBE:2]), ("utf-16-be", body[:PROBE:2])):
        if zeros and not zeros.strip(b"\0"):  # UTF-16 whose mark was lost
            return body.decode(coding, "replace").encode("utf-8", "replace")
    return _MARK.sub(b"", body)


def _escaped(value: bytes) -> str:
    return _NO_GRAPHIC.sub(lambda byte: b"%%%02X" % byte[0][0], value).decode("ascii")


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
