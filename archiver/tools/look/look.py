"""View pages of an archive one after another, and collect what their replay would miss.

A page that misses something is viewed a second time. A URL that only one of the two views asks for is volatile: it
depends on more than the page, such as the milliseconds that passed, so no replay would ask for it again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from archiver import url
from archiver.ask import Ask
from archiver.browser.answers import Asked, Told, get_of, post_of
from archiver.browser.chromium import Chromium
from archiver.browser.devtools import BrowserGoneError, DevToolsError, connected
from archiver.browser.page_info import MICRO, VIEW, ViewRecord, records_of
from archiver.browser.tab import ViewLimits
from archiver.browser.view import VIEWS, BrowserViews, Picture, Viewed
from archiver.collection.browser_answers import ArchiveAnswers, second_of, without_cache_busters
from archiver.collection.dates import DateRange
from archiver.policy.url_forms import pattern
from archiver.tools.look.pages import PageToView
from archiver.warc.post_keys import asked_url


@dataclass(frozen=True, slots=True)
class PageFindings:
    """The result for one page."""

    page: PageToView
    title: str = ""
    asked: int = 0  # requests
    missing: tuple[Asked, ...] = ()
    volatile: frozenset[tuple[str, str]] = frozenset()  # method and URL of those that only one view asked for
    live: tuple[str, ...] = ()
    ended: str = ""  # why the view ended before the page was quiet
    records: tuple[ViewRecord, ...] = ()
    faults: tuple[str, ...] = ()  # of the user's behaviors


@dataclass(frozen=True, slots=True)
class LookOptions:
    """How pages are viewed."""

    command: Sequence[str]  # starts the browser
    tabs: int = 2
    records: bool = False  # of what pages asked for, and of their text
    screenshots: bool = False
    limits: ViewLimits = field(default_factory=ViewLimits)


@dataclass(slots=True)
class MissingUrl:
    """A URL that pages ask for and the archive does not have."""

    url: str
    method: str
    kind: str
    page: str  # the first that asks for it
    ask: Ask | None = None  # what its script sends: a POST that a crawl may send, or headers
    pages: int = 0
    volatile: bool = True

    @property
    def row(self) -> str | None:
        """The URL by which a crawl knows it; None if it cannot be fetched."""
        return url.canonical(self.url) if self.ask is None else asked_url(self.ask)

    @property
    def pattern(self) -> str:
        """The pattern of its URL."""
        return pattern(self.url) if "://" in self.url else self.url


@dataclass
class LookFindings:
    """The results of all pages."""

    pages: int = 0
    whole: int = 0  # pages that miss nothing
    asked: int = 0
    missing: dict[tuple[str, str], MissingUrl] = field(default_factory=dict)  # by method and URL
    live: dict[str, str] = field(default_factory=dict)  # the first page by the URL of the connection
    unfinished: list[tuple[str, str]] = field(default_factory=list)  # pages, and why their view ended
    faults: dict[str, str] = field(default_factory=dict)  # of behaviors, each with the first page

    def add(self, found: PageFindings) -> None:
        """Add the result of a page."""
        self.pages += 1
        self.asked += found.asked
        self.whole += not found.missing and not found.ended
        for asked in found.missing:
            key = _key(asked)
            new = MissingUrl(asked.url, asked.method, asked.kind, found.page.url, _ask(asked, found.page.url))
            each = self.missing.setdefault(key, new)
            each.pages += 1
            each.volatile &= key in found.volatile
        for address in found.live:
            self.live.setdefault(address, found.page.url)
        for fault in found.faults:
            self.faults.setdefault(fault, found.page.url)
        if found.ended:
            self.unfinished.append((found.page.url, found.ended))

    @property
    def lasting(self) -> list[MissingUrl]:
        """What is missing and not volatile."""
        return [each for each in self.missing.values() if not each.volatile]


def _key(asked: Asked) -> tuple[str, str]:
    target = url.canonical(asked.url)
    ask = None if target is None else post_of(asked, target, same_site=False)
    known = (asked_url(ask) if ask is not None else None) or asked.url
    return asked.method, without_cache_busters(known)


def _ask(asked: Asked, page: str) -> Ask | None:
    """Return what a script of *page* sends; what may be a secret only to the page's own host."""
    target = url.canonical(asked.url)
    if target is None:
        return None
    same = url.origin(target) == url.origin(page)
    return post_of(asked, target, same_site=same) or get_of(asked, target, page, same_site=same)


def _keys(viewed: Viewed) -> set[tuple[str, str]]:
    return {_key(each) for each in (*viewed.answered, *viewed.missing)}


async def look(
    pages: Iterable[PageToView], answers: ArchiveAnswers, options: LookOptions, start: Callable[[], Chromium]
) -> AsyncIterator[PageFindings]:
    """View *pages* in browsers that *start* starts, and yield the result of each."""
    waiting = deque(pages)
    failed: set[PageToView] = set()
    with ThreadPoolExecutor(1, "archive") as thread:
        while waiting:
            async with connected(start()) as devtools, BrowserViews.open(devtools) as views:
                found: asyncio.Queue[PageFindings | None] = asyncio.Queue()
                viewing = _Viewing(views, answers, options, thread)
                part = deque(waiting.popleft() for _ in range(min(VIEWS, len(waiting))))
                tabs = [asyncio.create_task(viewing.work(part, found, failed)) for _ in range(options.tabs)]
                try:
                    for _ in tabs:
                        while (each := await found.get()) is not None:
                            yield each
                    await asyncio.gather(*tabs)
                finally:
                    for tab in tabs:
                        tab.cancel()
                    await asyncio.wait(tabs)
                waiting.extendleft(reversed(part))


@dataclass(frozen=True, slots=True)
class _Viewing:
    """Views of pages in one browser."""

    views: BrowserViews
    answers: ArchiveAnswers
    options: LookOptions
    thread: ThreadPoolExecutor

    async def work(
        self, pages: deque[PageToView], found: "asyncio.Queue[PageFindings | None]", failed: set[PageToView]
    ) -> None:
        """View *pages* until none is left, or the browser ends; that page is put back once."""
        try:
            while pages:
                page = pages.popleft()
                try:
                    found.put_nowait(await self._view(page))
                except BrowserGoneError:
                    if page in failed:
                        found.put_nowait(PageFindings(page, ended="the browser has ended"))
                    else:
                        failed.add(page)
                        pages.append(page)
                    return
                except DevToolsError as error:
                    found.put_nowait(PageFindings(page, ended=str(error)))
        finally:
            found.put_nowait(None)

    async def _view(self, page: PageToView) -> PageFindings:
        first = await self._once(page, picture="jpeg" if self.options.screenshots else "")
        second = await self._once(page) if first.missing else first
        both = {_key(each): each for each in (*second.missing, *first.missing)}
        asked_twice = _keys(first) & _keys(second)
        return PageFindings(
            page,
            first.title,
            len(first.answered) + len(first.missing),
            tuple(both.values()),
            frozenset(both.keys() - asked_twice),
            tuple(dict.fromkeys((*first.live, *second.live))),
            first.ended or second.ended,
            self._records(page, first),
            tuple(dict.fromkeys((*first.faults, *second.faults))),
        )

    def _records(self, page: PageToView, viewed: Viewed) -> tuple[ViewRecord, ...]:
        """Return what is to be stored of a view."""
        found = records_of(viewed, second_of(page.timestamp) * MICRO, 1)
        return tuple(
            each for each in found if (self.options.screenshots if each.uri.startswith(VIEW) else self.options.records)
        )

    async def _once(self, page: PageToView, *, picture: Picture = "") -> Viewed:
        at = DateRange(page.timestamp, page.timestamp)
        loop = asyncio.get_running_loop()

        async def answer(asked: Asked) -> Told | None:
            return await loop.run_in_executor(self.thread, partial(self.answers.answer, asked, at))

        second = second_of(page.timestamp)
        return await self.views.view(page.url, second, answer, self.options.limits, picture=picture)
