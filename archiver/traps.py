"""Traps: parts of a site that go on without end and bring nothing. Pure; the year is an argument.

Two kinds of rules. Fixed ones look at a URL alone: repeated segments, too deep, too long, far in the future. The
budgets look at what pages brought: a pattern of URLs (`/calendar/N/N`) or a directory is held back when so many pages
of it in a row showed no text, no image and no way to pages of another kind that had not been seen. The text of links
is none. Only pages count to which a page of the same path led, or one that brought nothing itself, or whose URL is one
of a calendar or holds a session id: a list that shows something answers for all else that it names, so however many
pages of one text a site lists, they are fetched. Words with digits are nothing new where a program makes the URLs.
Memory is bounded, and what does not fit into it is taken for new: a page too many, none lost.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from archiver import url
from archiver.config.settings import TrapSettings
from archiver.model import Hop, PatternTally

RULES = (
    "max-repeats",
    "max-segments",
    "max-url-length",
    "max-years-ahead",
    "barren-pages",
    "pattern-budget",
    "directory-budget",
    "traps",
)  # with what each rule begins, in the words of the settings

MOST_PATTERNS = 20_000  # in memory, and taken up again by a later run; the least recently seen is forgotten
SEEN = 1 << 20  # things shown that are remembered, for all hosts together: eight megabytes
POOR = 1 << 16  # pages that brought nothing, likewise …
KNOWN = 1 << 18  # … and pages that were linked to
ORDERS = 1 << 15  # queries of which the order taken is remembered
LONGEST_PATTERN = 400
READ = 16 << 10  # bytes of a page that are looked at, from its beginning …
READ_ON = 8 << 10  # … and from its middle and its end, for some begin with long menus
MOST_RUNS = 1000
LONGEST_RUN = 160
SHORTEST_RUN = 5  # letters, where numbers are nothing new; less is a label
GROWTH = 2  # one more page in a row is borne for so many that brought something …
MOST_IN_A_ROW = 100  # … up to this many
ENOUGH_CHOICES = 3  # sets of query names that brought nothing speak for all others of the same page
SUSPICION = 4  # so many times fewer are borne where the URL looks as if a program made any number of them
DEEP = 8  # segments, from which on a path is suspect
FAR = 200  # links from a seed, from where on numbers are nothing new

_ESCAPED_AGAIN = "%2525"  # an address within an address within an address: it grows with each step
_RUN_OF_TEXT = re.compile(rb">\s*+([^<>\s][^<>]*+)(?=<)")
_LINK = re.compile(rb"<a[\s>]")
_HIDDEN = re.compile(rb"<(?:script|style|svg|noscript)\b|<!--")
_WORDS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))  # all else is a space
_WITH_DIGIT = re.compile(rb"(?<![^ ])[^0-9 ]*+[0-9][^ ]*+ ?")
_VARIABLE = re.compile(r"%[0-9A-Fa-f]{2}|(?<![0-9A-Za-z])[A-Za-z]*+[0-9][0-9A-Za-z]*+")
_DIGITS = re.compile("[0-9]+")
_WORD = re.compile("[a-z]{2,}|[a-z0-9]{6,}")
OPAQUE = 12  # characters of letters and digits mixed, which nobody writes by hand

_PAGES = frozenset((Hop.LINK, Hop.REDIRECT))

_YEAR = re.compile(r"(?<![0-9])[2-9][0-9]{3}(?![0-9])")
_CALENDAR = re.compile(
    r"cal[./?_-]|calend[aei]r|kalender|calendrier|agenda|events?\b|veranstalt|termin|diary|month|week|[?&]date=",
    re.IGNORECASE,
)
_MONTH_OF_YEAR = re.compile(
    r"(?<![0-9])([2-9][0-9]{3})[-/_](?:0?[1-9]|1[0-2])(?![0-9])|[?&](?:y|yr|year|jahr)=([2-9][0-9]{3})(?![0-9])"
)
_DATE = re.compile(r"(?<![0-9])([2-9][0-9]{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
_DATED = re.compile(
    r"(?<![0-9])[12][0-9]{3}(?:[-/_](?:0?[1-9]|1[0-2])(?![0-9])|(?:0[1-9]|1[0-2])(?:[0-3][0-9])?(?![0-9]))"
)
_MONTHS = re.compile(
    b"january|february|march|april|may|june|july|august|september|october|november|december|"
    b"januar|februar|m\xc3\xa4rz|mai|juni|juli|oktober|dezember|"
    b"janvier|f\xc3\xa9vrier|mars|avril|juin|juillet|ao\xc3\xbbt|septembre|octobre|novembre|d\xc3\xa9cembre|"
    b"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|"
    b"gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|"
    b"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
)


@dataclass(frozen=True, slots=True)
class Page:
    """What an answered visit showed: its runs of text, and the addresses of its images, styles and scripts.

    *leads*: the pages of its own host that it links to. *via*: the page that led to it; *hops*: links from a seed.
    """

    url: str
    runs: tuple[bytes, ...]
    shown: tuple[str, ...]
    leads: tuple[str, ...] = ()
    via: str = ""
    hops: int = 1


def pattern(address: str) -> str:
    """What *address* has in common with those like it: numbers are `N`, opaque words `H`, of a query the names."""
    page, _, query = address.partition("?")
    start = page.index("/", 8)
    shape = page[:start] + _VARIABLE.sub(_letter, page[start:])
    if query:
        names = {_VARIABLE.sub(_letter, part.partition("=")[0]) for part in query.split("&") if part}
        shape += "?" + "&".join(sorted(names))
    return shape[:LONGEST_PATTERN]


def _letter(found: "re.Match[str]") -> str:
    word = found[0]
    if word.startswith("%"):
        return word
    if len(word) >= OPAQUE and not word.isdigit():
        return "H"
    return _DIGITS.sub("N", word)


def directory(address: str) -> str:
    """The first directory of *address*, `http://example.org/news/*`; that of the whole site where it has none."""
    start = address.index("/", 8)
    first, slash, rest = address[start + 1 :].partition("?")[0].partition("/")
    return f"{address[:start]}/{first}/*" if slash and rest else f"{address[:start]}/*"


def suspect(address: str) -> bool:
    """Whether *address* looks like those of which a program makes any number: months, facets, opaque words, depth."""
    page, _, query = address.partition("?")
    segments = page.split("/")[3:]
    if len(segments) > DEEP or query.count("&") >= 1:
        return True
    return any(one == other and _WORD.match(one) for one, other in pairwise(segments)) or _made_up(address)


def _made_up(address: str) -> bool:
    """Whether *address* is one of a calendar, or holds an opaque word as session ids are."""
    if _DATED.search(address, 8) and _CALENDAR.search(address, 8):
        return True
    words = _VARIABLE.findall(address, address.index("/", 8))
    return any(len(word) >= OPAQUE and not word.isdigit() for word in words)


def runs(body: bytes) -> tuple[bytes, ...]:
    """The runs of text in an HTML page outside of its links, each once, as words of letters and digits; linear."""
    middle = len(body) // 2
    read = body[:READ], body[max(READ, middle) : max(READ, middle) + READ_ON], body[max(READ, len(body) - READ_ON) :]
    text = b"<".join(map(_before_link, _without_hidden(b">".join(read).lower()).split(b"</a")))
    words = (run[: 4 * LONGEST_RUN].translate(_WORDS).split() for run in _RUN_OF_TEXT.findall(text))
    found = dict.fromkeys(b" ".join(run)[:LONGEST_RUN] for run in words if run)
    return tuple(islice(found, MOST_RUNS))


def _before_link(part: bytes) -> bytes:
    begins = _LINK.search(part)
    return part[: begins.start()] if begins else part


def _without_hidden(text: bytes) -> bytes:
    parts, place = [], 0
    while (found := _HIDDEN.search(text, place)) is not None:
        parts.append(text[place : found.start()])
        end = b"-->" if found[0] == b"<!--" else b"</" + found[0][1:]
        closed = text.find(end, found.end())
        if closed < 0:
            return b"".join(parts)
        place = closed + (len(end) if end == b"-->" else 0)
    parts.append(text[place:])
    return b"".join(parts)


class Traps:
    """Knows what the patterns of one crawl have brought. Not for two threads at once.

    *known*: what earlier runs have seen of the patterns.
    """

    def __init__(self, settings: TrapSettings, known: Iterable[PatternTally] = ()) -> None:
        self._settings = settings
        self._on = settings.traps == "on"
        self._tallies: dict[str, PatternTally] = {}
        self._held: dict[str, str] = {}  # patterns and directories whose budget is used up, and by which rule
        self._barren: defaultdict[str, set[str]] = defaultdict(set)  # page: sets of query names that are held back …
        self._fruitful: set[str] = set()  # … and pages of which some set brought much
        self._orders: list[tuple[int, int] | None] = [None] * ORDERS
        self._seen = array("q", bytes(8 * SEEN if self._on else 8))
        self._poor = array("q", bytes(8 * POOR if self._on else 8))
        self._known = array("q", bytes(8 * KNOWN if self._on else 8))
        for tally in known if self._on else ():
            self._keep(tally)

    def refusal(self, address: str, hop: Hop, year: int) -> str:
        """The rule by which a link to *address* is held back, "" where none does; *year* is the present one."""
        if not self._on or hop is Hop.PREREQUISITE:
            return ""
        self._known[hash(address) % KNOWN] = hash(address)
        return self._endless(address, hop, year) or self.held(address, hop) or self._reordered(address, hop)

    def held(self, address: str, hop: Hop) -> str:
        """The budget that is used up for *address*, "" where none is; what a page needs to be shown has none."""
        if not self._held or hop not in _PAGES:
            return ""
        shape = pattern(address)
        rule = self._held.get(shape) or self._held.get(directory(address), "")
        if not rule and (barren := self._choices(shape)):
            tally = self._tallies.get(shape)
            if tally is not None:
                return self._used_up(tally)
            if barren >= ENOUGH_CHOICES and suspect(address):
                return f"barren-pages: {self._settings.barren_pages}: {shape.partition('?')[0]}?*"
        return rule

    def room(self, address: str) -> tuple[str, int]:
        """The pattern of *address*, and how many pages of it may still bring nothing; "" where there is no limit."""
        shape = pattern(address) if self._on and self._settings.barren_pages else address
        if shape == address:
            return "", 0
        tally = self._tallies.get(shape) or PatternTally(shape, 0, 0, 0, strict=suspect(address))
        return shape, max(1, self._borne(tally) - tally.streak)

    def saw(self, page: Page) -> tuple[PatternTally, ...]:
        """Count a page that was archived; what is to be remembered of its pattern and its directory."""
        if not self._on:
            return ()
        shape, folder = pattern(page.url), directory(page.url)
        came_from = pattern(page.via) if page.via else ""
        poor_led, alike = self._is_poor(page.via), came_from.partition("?")[0] == shape.partition("?")[0]
        strict = suspect(page.url) or ("?" in shape and alike and came_from != shape)  # the same page, asked otherwise
        if not page.runs and not strict:  # nothing can be said of it
            return ()
        if strict or _DATED.search(page.url, 8) or _CALENDAR.search(page.url, 8) or page.hops >= FAR:
            page = replace(page, runs=tuple(map(_without_numbers, page.runs)))
        further = [lead for lead in page.leads if self._is_way_on(lead)]
        new_to_host = self._news(url.origin(page.url), page)
        news = self._news(folder, page) + sum(directory(lead) != folder for lead in further)
        found, poor = [self._counted(folder, barren=not news, counts=poor_led, strict=False)], not news
        if shape != page.url:
            here = self._news(shape, page)
            if strict:
                here = new_to_host and self._says_more(page)
            news = here + sum(pattern(lead) != shape for lead in further)
            counts = poor_led or alike or _made_up(page.url)
            found.append(self._counted(shape, barren=not news, counts=counts, strict=strict))
            poor = poor or not news
        if poor:
            self._poor[hash(page.url) % POOR] = hash(page.url)
        return tuple(tally for tally in found if tally.visits > 1)

    def _is_poor(self, address: str) -> bool:
        """Whether *address* is a page that showed nothing new."""
        return address != "" and self._poor[hash(address) % POOR] == hash(address)

    def _is_way_on(self, address: str) -> bool:
        """Whether a link to *address* is something new: no page has linked to it, and nothing speaks against it."""
        if self._known[hash(address) % KNOWN] == hash(address) or suspect(address):
            return False
        tally = self._tallies.get(pattern(address))
        return tally is None or not tally.streak

    def _endless(self, address: str, hop: Hop, year: int) -> str:
        settings = self._settings
        slashes = address.count("/")
        if slashes - 2 > settings.max_segments and address.partition("?")[0].count("/") - 2 > settings.max_segments:
            return f"max-segments: {settings.max_segments}"
        if slashes - 2 > settings.max_repeats and _repeats(address, settings.max_repeats):
            return f"max-repeats: {settings.max_repeats}"
        if hop not in _PAGES:
            return ""
        if len(address) > settings.max_url_length:
            return f"max-url-length: {settings.max_url_length}"
        if (
            address.count("&") >= settings.max_repeats
            and _most(address.partition("?")[2].split("&")) > settings.max_repeats
        ):
            return f"max-repeats: {settings.max_repeats}"
        if _ESCAPED_AGAIN in address or address.count("?") > settings.max_repeats:
            return "traps: on: an address within an address within an address"
        if _YEAR.search(address) and _year(address) > year + settings.max_years_ahead:
            return f"max-years-ahead: {settings.max_years_ahead}"
        return ""

    def _reordered(self, address: str, hop: Hop) -> str:
        """The rule that refuses a query of which another order was taken: a replay does not tell them apart."""
        if hop is not Hop.LINK or "&" not in address:
            return ""
        page, _, query = address.partition("?")
        key = hash((page, *sorted(query.split("&"))))
        place, itself = key % ORDERS, hash(address)
        known, self._orders[place] = self._orders[place], (key, itself)
        if known is not None and known[0] == key and known[1] != itself:
            self._orders[place] = known
            return "traps: on: the same query in another order is taken"
        return ""

    def _news(self, group: str, page: Page) -> int:
        """How much *page* shows that *group* has not shown; it is known from now on."""
        return self._new(group, page.runs) + self._new(group, page.shown)

    def _says_more(self, page: Page) -> int:
        """How much is new on a suspect page besides its own address, and names of months and days."""
        words = {word.encode() for word in _WORD.findall(page.url.lower(), page.url.index("/", 8))}
        own = re.compile(b"|".join(map(re.escape, sorted(words, key=len, reverse=True)))) if words else None
        said = [_MONTHS.sub(b"", own.sub(b"", run) if own else run) for run in page.runs]
        rest = tuple(run for run in said if len(run) >= SHORTEST_RUN)
        return self._news(f"{url.origin(page.url)} said", Page(page.url, rest, page.shown))

    def _new(self, group: str, things: Sequence[object]) -> int:
        """How many of *things* were not seen in *group*; they are from now on."""
        count, seen = 0, self._seen
        for thing in things:
            if not thing:
                continue
            key = hash((group, thing)) or 1
            place = key % SEEN
            if seen[place] != key:
                seen[place] = key
                count += 1
        return count

    def _counted(self, name: str, *, barren: bool, counts: bool, strict: bool) -> PatternTally:
        """*name* after one more page, which brought something, or was *barren*, and *counts* then or does not."""
        known = self._tallies.pop(name, None) or PatternTally(name, 0, 0, 0, strict=strict)
        streak = known.streak + counts if barren else 0
        tally = PatternTally(
            name, known.visits + 1, known.fruitful + (not barren), streak, strict=strict or known.strict
        )
        self._keep(tally)
        return tally

    def _keep(self, tally: PatternTally) -> None:
        self._tallies[tally.pattern] = tally
        if len(self._tallies) > MOST_PATTERNS:
            self._tallies.pop(next(iter(self._tallies)))
        if tally.fruitful > 1 and "?" in tally.pattern and len(self._fruitful) < MOST_PATTERNS:
            self._fruitful.add(tally.pattern.partition("?")[0])
        rule = self._used_up(tally)
        if not rule:
            self._held.pop(tally.pattern, None)
            return
        self._held[tally.pattern] = rule
        if "?" in tally.pattern:
            self._barren[tally.pattern.partition("?")[0]].add(tally.pattern)
        if len(self._held) > MOST_PATTERNS:
            self._held.pop(next(iter(self._held)))
            self._barren.clear()
            self._fruitful.clear()

    def _choices(self, shape: str) -> int:
        """How many sets of query names of the page in *shape* are held back; none where others brought much."""
        page = shape.partition("?")[0]
        return len(self._barren[page]) if page in self._barren and page not in self._fruitful else 0

    def _used_up(self, tally: PatternTally) -> str:
        settings = self._settings
        if settings.barren_pages and tally.streak >= self._borne(tally):
            return f"barren-pages: {settings.barren_pages}: {tally.pattern}"
        wide = tally.pattern.endswith("/*")
        budget = settings.directory_budget if wide else settings.pattern_budget
        if budget and tally.visits >= budget:
            return f"{'directory' if wide else 'pattern'}-budget: {budget}: {tally.pattern}"
        return ""

    def _borne(self, tally: PatternTally) -> int:
        """How many barren pages in a row are borne: more where much was brought, fewer where a trap is likely."""
        most = self._settings.barren_pages
        if tally.strict and self._choices(tally.pattern):
            return 1  # the same page, asked with other names: one more set of facets
        if tally.pattern.endswith("/*"):
            most *= 2
        elif tally.strict:
            most = max(1, most // SUSPICION)
        return most + min(tally.fruitful // GROWTH, MOST_IN_A_ROW)


def _without_numbers(run: bytes) -> bytes:
    """*run* without its words that hold digits; empty where too little is left."""
    rest = _WITH_DIGIT.sub(b"", run)
    return rest if len(rest) >= SHORTEST_RUN else b""


def _repeats(address: str, most: int) -> bool:
    """Whether a segment stands more than *most* times in the path; numbers and single letters are how trees are cut."""
    words = [word for word in address.partition("?")[0].split("/")[3:] if len(word) > 1 and not word.isdigit()]
    return len(words) - len(set(words)) >= most and _most(words) > most


def _most(words: Sequence[str]) -> int:
    """How often the most frequent of *words* stands there."""
    return max(Counter(words).values(), default=0)


def _year(address: str) -> int:
    """The latest year of a date in *address*, 0 where there is none; a year and a month only in a calendar."""
    found = _DATE.findall(address)
    if _CALENDAR.search(address, 8):
        found += [path or query for path, query in _MONTH_OF_YEAR.findall(address)]
    return max(map(int, found), default=0)
