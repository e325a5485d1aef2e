"""The start page of a replay: the archived pages by title with their dates, in parts, with a filter.

It is made on this side of pywb and needs no script. Titles and URLs come from an archive, so they are escaped, and each
link begins with the path of the collection. pywb's own search is one link away.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from archiver import url
from archiver.humanize import plural, printable
from archiver.tools.replay.page_list import ListedPage, ListTotals, PageList, keep_list
from archiver.tools.replay.sources import ReplaySource

ROWS = 100  # on one page
DATES = 10  # of a page that are shown at once
LONGEST = 300  # characters of a title or URL
MOST_WORDS = 200  # characters of a filter
SEARCH = "pywb-search"  # in a query: pywb's own page
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_SAFE = ":/?&=%+,;@!$'()*~[]|"  # in the path of a link
_STYLE = Path(__file__).parents[1] / "start_page.css"  # of exports too


@contextmanager
def listed(sources: Sequence[ReplaySource], seeds: Sequence[str], folder: Path) -> Iterator[PageList]:
    """Make the list of the pages in *sources* beside this process, in *folder*, until the end of the block."""
    folder.mkdir()
    process = get_context("spawn").Process(target=keep_list, args=(list(sources), tuple(seeds), folder), daemon=True)
    process.start()
    try:
        yield PageList(folder)
    finally:
        process.kill()
        process.join()


@dataclass(frozen=True, slots=True)
class StartPage:
    """The start page of the replay of *archives*, which are served as one collection."""

    pages: PageList
    collection: str
    archives: tuple[str, ...]  # their names
    seeds: Mapping[str, str] = field(default_factory=dict)  # titles that the user gave seeds, by URL
    _style: str = field(default_factory=lambda: _STYLE.read_text("utf-8"))

    def wrap(self, app: Any) -> Any:
        """Return *app*, with this page in place of its own first pages."""
        own = {"/", f"/{self.collection}", f"/{self.collection}/"}

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            query = dict[str, list[str]]()
            ours = environ.get("PATH_INFO") in own and environ.get("REQUEST_METHOD") == "GET"
            if ours:  # the query of any other path is that of an archived URL
                query = parse_qs(environ.get("QUERY_STRING", "")[:2000], keep_blank_values=True)
            if not ours or SEARCH in query:
                return app(environ, start_response)  # type: ignore[no-any-return] # pywb has no types
            body = "".join(self._render(query)).encode("utf-8", "replace")
            fields = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))}
            fields |= {
                "Content-Security-Policy": _POLICY,
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
            }
            start_response("200 OK", list(fields.items()))
            return [body]

        return answer

    def _render(self, query: dict[str, list[str]]) -> Iterator[str]:
        totals = self.pages.totals()
        words, number, source = _asked(query, len(self.archives))
        titled = self.pages.titled if totals.number else 0
        yield self._head(totals, titled)
        yield self._form(totals, words, source)
        if totals.number:
            yield from self._results(totals, words, number, source)
        yield "</main></body></html>\n"

    def _head(self, totals: ListTotals, titled: int) -> str:
        name = escape(printable(" and ".join(self.archives), LONGEST))
        refresh = '<meta http-equiv="refresh" content="2">' if not totals.number else ""
        if totals.number:
            about = f"{totals.pages:,} {plural(totals.pages, 'page')}, {totals.captures:,} "
            about += f"{plural(totals.captures, 'capture')}"
            first, last = _day(totals.first), _day(totals.last)
            about += f", {first} to {last}" if first != last else f", {first}" if first else ""
            about += f". Titles are being read: {titled:,} so far." if titled < totals.pages else ""
            about += " There are more pages; pywb finds them by URL." if totals.cut else ""
        else:
            about = "The list of pages is being made. This page reloads itself."
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">{refresh}'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Archive of {name}</title><style>{self._style}</style></head><body>"
            f"<header><h1>{name}</h1><p>{about}</p>{self._search()}</header><main>\n"
        )

    def _search(self) -> str:
        return f'<p><a href="/{self.collection}/?{SEARCH}">Search all captures by URL with pywb</a></p>'

    def _form(self, totals: ListTotals, words: str, source: int | None) -> str:
        chosen = ""
        if len(self.archives) > 1:
            counts = totals.sources or (0,) * len(self.archives)
            options = "".join(
                f'<option value="{number}"{" selected" if number == source else ""}>'
                f"{escape(printable(name, 80))} ({counts[number]:,})</option>"
                for number, name in enumerate(self.archives)
            )
            chosen = f'<label>Archive <select name="in"><option value="">all</option>{options}</select></label>'
        return (
            f'<form role="search" action="/{self.collection}/"><label>Title or URL '
            f'<input type="search" name="q" value="{escape(words)}" maxlength="{MOST_WORDS}"></label>{chosen}'
            "<button>Filter</button></form>\n"
        )

    def _results(self, totals: ListTotals, words: str, number: int, source: int | None) -> Iterator[str]:
        first = number * ROWS
        if words or source is not None:
            found, count = self._filtered(words, source, first)
            clear = f' <a href="/{self.collection}/">Show all</a>'
            yield f'<p role="status">{count:,} of {totals.pages:,} {plural(totals.pages, "page")} found.{clear}</p>'
        else:
            found, count = self.pages.rows(first, ROWS), totals.pages
        for heading, pages in groupby(found, lambda page: "Seeds" if page.seed else _host(page.url)):
            yield f'<h2>{escape(printable(heading, LONGEST))}</h2><ul class="pages">'
            yield from map(self._row, pages)
            yield "</ul>\n"
        last = max(0, (count - 1) // ROWS)
        if last:
            asked = {"q": words} if words else {}
            asked |= {"in": str(source)} if source is not None else {}
            yield self._parts(min(number, last), last, asked)

    def _filtered(self, words: str, source: int | None, first: int) -> tuple[list[ListedPage], int]:
        """Return the pages of one part that have all of *words*, and the number of all that have them."""
        wanted = words.casefold().split()
        found: list[ListedPage] = []
        count = 0
        for page in self.pages.every():
            if source is not None and source not in page.sources:
                continue
            text = f"{self.seeds.get(page.url, '')} {page.title} {page.url}".casefold() if wanted else ""
            if all(word in text for word in wanted):
                if first <= count < first + ROWS:
                    found.append(page)
                count += 1
        return found, count

    def _row(self, page: ListedPage) -> str:
        address = escape(printable(page.url, LONGEST))
        named = self.seeds.get(page.url) or page.title
        title = escape(printable(named, LONGEST)) or address
        newest, older = page.dates[0], page.dates[1:DATES]
        dates = [self._date(page.url, newest, 5)]
        if older:
            rest = "".join(f"<li>{self._date(page.url, date, 8)}</li>" for date in older)
            every = f'<li><a href="{self._link("*", page.url)}">all captures</a></li>' if page.captures > DATES else ""
            dates.append(f"<details><summary>{page.captures:,} captures</summary><ul>{rest}{every}</ul></details>")
        shown = f'<span class="url">{address}</span>' if named else ""
        link = f'<a class="title" href="{self._link(newest, page.url)}">{title}</a>'
        return f"<li>{link}{shown}<div>{''.join(dates)}</div></li>\n"

    def _date(self, address: str, date: str, width: int) -> str:
        time = f"{date[8:10]}:{date[10:12]}:{date[12:]}"[:width]
        moment = f"{_day(date)} {time}" if len(date) == 14 else printable(date)
        return f'<a href="{self._link(date, address)}"><time>{escape(moment)}</time></a>'

    def _link(self, date: str, address: str) -> str:
        return escape(f"/{self.collection}/{quote(date, safe='*')}/{quote(address, safe=_SAFE)}")

    def _parts(self, number: int, last: int, asked: dict[str, str]) -> str:
        places = {"First": 0, "Previous": number - 1, "Next": number + 1, "Last": last}
        links = [
            f'<a href="/{self.collection}/?{escape(urlencode({**asked, "page": str(place + 1)}))}">{name}</a>'
            for name, place in places.items()
            if 0 <= place <= last and place != number
        ]
        return f'<nav aria-label="Parts of the list">Part {number + 1:,} of {last + 1:,} {" ".join(links)}</nav>\n'


def _asked(query: dict[str, list[str]], archives: int) -> tuple[str, int, int | None]:
    """Return the words of the filter, the part of the list, and the archive, or None for all."""
    words = " ".join(query.get("q", [""])[0][:MOST_WORDS].split())
    number = _number(query.get("page", ["1"])[0])
    source = _number(query.get("in", [""])[0])
    part = number - 1 if number and number > 0 else 0
    return words, part, source if source is not None and source < archives else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _host(address: str) -> str:
    found = url.canonical(address)
    return url.authority(found) if found else "other"


def _day(date: str) -> str:
    return "-".join(filter(None, (date[:4], date[4:6], date[6:8])))
