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
from dataclasses import dataclass

from archiver import url
from archiver.config.settings import TrapSettings
from archiver.likeness import directory, is_calendar, likeness, made_up, of_dates, pattern, suspect, words
from archiver.model import Hop, PatternTally
from archiver.shown import NUMBERS, Shown
from archiver.texts import SHORTEST_RUN, marks, marks_of, runs, without_numbers

__all__ = ["MOST_PATTERNS", "RULES", "Page", "Traps", "directory", "pattern", "runs", "suspect"]

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
POOR = 1 << 16  # pages that brought nothing: half a megabyte; a power of two, as …
KNOWN = 1 << 18  # … pages that were linked to: two megabytes
ORDERS = 1 << 15  # queries of which the order taken is remembered
GROWTH = 2  # one more page in a row is borne for so many that brought something …
MOST_IN_A_ROW = 100  # … up to this many
ENOUGH_CHOICES = 3  # sets of query names that brought nothing speak for all others of the same page
SUSPICION = 4  # so many times fewer are borne where the URL looks as if a program made any number of them
FAR = 200  # links from a seed, from where on numbers are nothing new

_ESCAPED_AGAIN = "%2525"  # an address within an address within an address: it grows with each step

_PAGES = frozenset((Hop.LINK, Hop.REDIRECT))

_MONTH_OF_YEAR = re.compile(
    r"(?<![0-9])([2-9][0-9]{3})[-/_](?:0?[1-9]|1[0-2])(?![0-9])|[?&](?:y|yr|year|jahr)=([2-9][0-9]{3})(?![0-9])"
)
_DATE = re.compile(r"(?<![0-9])([2-9][0-9]{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
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
    """What an answered visit showed: its text, and the addresses of its images, styles and scripts.

    *text*: its runs, or the bytes in which they stand. *leads*: the pages of its own host that it links to. *via*: the
    page that led to it; *hops*: links from a seed.
    """

    url: str
    text: tuple[bytes, ...] | bytes
    shown: Sequence[str]
    leads: Sequence[str] = ()
    via: str = ""
    hops: int = 1


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
        self._shown = Shown() if self._on else None
        self._poor = array("q", bytes(8 * POOR if self._on else 8))
        self._known = array("q", bytes(8 * KNOWN if self._on else 8))
        for tally in known if self._on else ():
            self._keep(tally)

    def refusal(self, address: str, hop: Hop, year: int) -> str:
        """The rule by which a link to *address* is held back, "" where none does; *year* is the present one."""
        if not self._on or hop is Hop.PREREQUISITE:
            return ""
        self._known[hash(address) & (KNOWN - 1)] = hash(address)
        return self._endless(address, hop, year) or self.held(address, hop) or self._reordered(address, hop)

    @property
    def calm(self) -> bool:
        """Whether no budget is used up, so that of URLs that were taken before only the order of a query can matter."""
        return not self._held

    def met(self, addresses: Iterable[str]) -> None:
        """There are links to *addresses*, all of which were taken."""
        if self._on:
            known, where = self._known, KNOWN - 1
            for number in map(hash, addresses):
                known[number & where] = number

    def met_again(self, address: str, hop: Hop) -> str:
        """As `refusal`, where the fixed rules are known to say nothing of *address*."""
        if not self._on:
            return ""
        number = hash(address)
        self._known[number & (KNOWN - 1)] = number
        return (self._held and self.held(address, hop)) or ("&" in address and self._reordered(address, hop)) or ""

    def held(self, address: str, hop: Hop) -> str:
        """The budget that is used up for *address*, "" where none is; what a page needs to be shown has none."""
        if not self._held or hop not in _PAGES:
            return ""
        shape, folder, suspicious = likeness(address)
        rule = self._held.get(shape) or self._held.get(folder, "")
        if not rule and self._barren and (barren := self._choices(shape)):
            tally = self._tallies.get(shape)
            if tally is not None:
                return self._used_up(tally)
            if barren >= ENOUGH_CHOICES and suspicious:
                return f"barren-pages: {self._settings.barren_pages}: {shape.partition('?')[0]}?*"
        return rule

    def room(self, address: str) -> tuple[str, int]:
        """The pattern of *address*, and how many pages of it may still bring nothing; "" where there is no limit."""
        if not self._on or not self._settings.barren_pages:
            return "", 0
        shape, _, suspicious = likeness(address)
        if shape == address:
            return "", 0
        tally = self._tallies.get(shape) or PatternTally(shape, 0, 0, 0, strict=suspicious)
        return shape, max(1, self._borne(tally) - tally.streak)

    def saw(self, page: Page) -> tuple[PatternTally, ...]:
        """Count a page that was archived; what is to be remembered of its pattern and its directory."""
        if self._shown is None:
            return ()
        shape, folder, suspicious = likeness(page.url)
        came_from = likeness(page.via).pattern if page.via else ""
        poor_led, alike = self._is_poor(page.via), came_from.partition("?")[0] == shape.partition("?")[0]
        strict = suspicious or ("?" in shape and alike and came_from != shape)  # the same page, asked otherwise
        numbers, said = _read(page, bare=strict or of_dates(page.url) or page.hops >= FAR)
        if not numbers and not said and not strict:  # nothing can be said of it
            return ()
        shown = [hash(address) % NUMBERS for address in page.shown]
        known, where = self._known, KNOWN - 1
        new = [lead for lead in page.leads if known[hash(lead) & where] != hash(lead)]  # no page has linked to them
        further = [lead for lead in new if self._is_way_on(lead)] if new else []
        host = url.origin(page.url)
        news = self._shown.news([*numbers, *shown], host, folder, shape if shape != page.url else "")
        fruitful = news.to_directory or any(likeness(lead).directory != folder for lead in further)
        found, poor = [self._counted(folder, barren=not fruitful, counts=poor_led, strict=False)], not fruitful
        if shape != page.url:
            fruitful = news.to_pattern
            if strict:
                fruitful = news.to_host and self._shown.is_new([*_more(page.url, said), *shown], f"{host} said")
            fruitful = fruitful or any(likeness(lead).pattern != shape for lead in further)
            counts = poor_led or alike or made_up(page.url)
            found.append(self._counted(shape, barren=not fruitful, counts=counts, strict=strict))
            poor = poor or not fruitful
        if poor:
            self._poor[hash(page.url) & (POOR - 1)] = hash(page.url)
        return tuple(tally for tally in found if tally.visits > 1)

    def _is_poor(self, address: str) -> bool:
        """Whether *address* is a page that showed nothing new."""
        return address != "" and self._poor[hash(address) & (POOR - 1)] == hash(address)

    def _is_way_on(self, address: str) -> bool:
        """Whether nothing speaks against *address*, which is new."""
        shape, _, suspicious = likeness(address)
        if suspicious:
            return False
        tally = self._tallies.get(shape)
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
        if _MONTH_OF_YEAR.search(address) and _year(address) > year + settings.max_years_ahead:
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


def _read(page: Page, *, bare: bool) -> tuple[Sequence[int], Sequence[bytes]]:
    """The marks of the runs of *page*; if *bare*, without words that hold digits, and these runs too."""
    if not bare:
        return (marks(page.text) if isinstance(page.text, bytes) else marks_of(page.text)), ()
    said = [without_numbers(run) for run in (runs(page.text) if isinstance(page.text, bytes) else page.text)]
    return marks_of(said), said


def _more(address: str, said: Iterable[bytes]) -> Sequence[int]:
    """Numbers for what a suspect page says besides its own address, and names of months and days."""
    own_words = sorted(words(address), key=len, reverse=True)
    own = re.compile("|".join(map(re.escape, own_words)).encode()) if own_words else None
    more = (_MONTHS.sub(b"", own.sub(b"", run) if own else run) for run in said)
    return [hash(run) % NUMBERS for run in more if len(run) >= SHORTEST_RUN]


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
    if is_calendar(address):
        found += [path or query for path, query in _MONTH_OF_YEAR.findall(address)]
    return max(map(int, found), default=0)
