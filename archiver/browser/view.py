"""Show pages in a browser without a network: what is done with a page, and in which order.

A page is opened, scrolled, led through its own routes and given time. A view ends when it is quiet, or at a limit.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from archiver.browser.answers import Asked
from archiver.browser.behaviours import Behaviours
from archiver.browser.devtools import ROOT, BrowserGoneError, DevTools, DevToolsError, Events
from archiver.browser.tab import ATTACH, Answer, Given, PageTab, ViewLimits

DENSE = 2  # pixels of the screen for each pixel of the page in replayweb.page
VIEWS = 200  # after which a new browser should be started: its memory grows
Picture = Literal["", "jpeg", "pdf"]  # of a page that is shown: what is on the screen, or all of it on paper
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "jpeg": ("Page.captureScreenshot", {"format": "jpeg", "quality": 75}),
    "pdf": ("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True, "generateDocumentOutline": True}),
}
FLAGS = (  # of a browser that shows pages
    "--headless",
    "--no-startup-window",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-quic",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # pages are answered before; otherwise it tries to ask a DNS server
    "--mute-audio",
    "--hide-scrollbars",
    "--allow-running-insecure-content",
    "--disable-features=AutoupgradeMixedContent,MixedContentAutoupgrade,ServiceWorkerAutoPreload,Translate",
    "--js-flags=--max-old-space-size=512",
)
ROOTS = ({"type": "shared_worker"}, {"type": "service_worker"}, {"type": "page"})


@dataclass(frozen=True, slots=True)
class Viewed:
    """What a page asked for, and what it showed."""

    url: str
    title: str
    answered: Mapping[Asked, Given]
    missing: tuple[Asked, ...]
    live: tuple[str, ...]  # connections that no archive can answer, such as a WebSocket
    ended: str  # "" if the page was quiet, or the limit that was reached
    links: Mapping[str, str] = field(default_factory=dict)  # to other pages, in the live document, and their texts
    text: str = ""  # visible text
    picture: bytes = b""  # JPEG or PDF
    behavior: str = ""  # the id of the user's behavior that ran
    faults: tuple[str, ...] = ()  # of the user's behaviors
    pictures: tuple[str, ...] = ()  # that the live document offers to other screens
    reads_ratio: bool = False  # a script has read how dense the screen is
    dense: frozenset[str] | None = None  # URLs that it asked for only on a dense screen; None: it was shown on none

    def with_dense(self, other: "Viewed") -> "Viewed":
        """Return this view, and what the page asked for in the *other* one, on a dense screen."""
        before = {each.url for each in (*self.answered, *self.missing)}
        return replace(
            self,
            answered={**other.answered, **self.answered},
            missing=tuple(dict.fromkeys((*self.missing, *other.missing))),
            live=tuple(dict.fromkeys((*self.live, *other.live))),
            ended=self.ended or other.ended,
            links={**other.links, **self.links},
            pictures=tuple(dict.fromkeys((*self.pictures, *other.pictures))),
            dense=frozenset(each.url for each in (*other.answered, *other.missing)) - before,
        )


class BrowserViews:
    """Views in one browser."""

    def __init__(self, devtools: DevTools) -> None:
        self._devtools = devtools
        self._contexts: dict[str, Events] = {}  # events of the views, by browser context

    @classmethod
    @asynccontextmanager
    async def open(cls, devtools: DevTools) -> AsyncIterator["BrowserViews"]:
        """Give the views of the browser of *devtools* until the end of the block."""
        events: Events = asyncio.Queue()
        views = cls(devtools)
        devtools.listen(ROOT, events)
        await devtools.call("Target.setAutoAttach", **ATTACH, filter=ROOTS)
        routing = asyncio.create_task(views._route(events))
        try:
            yield views
        finally:
            routing.cancel()
            await asyncio.wait([routing])

    async def _route(self, events: Events) -> None:
        """Hand pages and shared workers to the view of their browser context."""
        while (event := await events.get()) is not None:
            if event.name == "Target.attachedToTarget":
                info = event.params["targetInfo"]
                if to := self._contexts.get(info.get("browserContextId", "")):
                    self._devtools.listen(event.params["sessionId"], to)
                    to.put_nowait(event)

    async def view(self, url: str, second: int, answer: Answer, limits: ViewLimits, *, picture: Picture = "") -> Viewed:
        """Show the page *url*, captured at *second* since the epoch. Raises `DevToolsError`.

        If a script reads how dense the screen is, and the limits allow it, show it once more on a dense one.
        """
        tab = PageTab(self._devtools, asyncio.Queue(), answer, limits, second)
        found = await self._view(url, tab, picture=picture)
        if not found.reads_ratio or not limits.dense or found.ended:
            return found
        dense = PageTab(self._devtools, asyncio.Queue(), answer, limits, second, DENSE)
        return found.with_dense(await self._view(url, dense))

    async def _view(self, url: str, tab: PageTab, *, picture: Picture = "") -> Viewed:
        """Show the page *url* in *tab*, in a browser context of its own."""
        context = (await self._devtools.call("Target.createBrowserContext", disposeOnDetach=True))["browserContextId"]
        self._contexts[context] = tab.events
        try:
            await self._devtools.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
            await tab.open(context)
            return await _View(tab, url).show(picture=picture)
        finally:
            del self._contexts[context]
            self._devtools.stop_listening(tab.events)
            with suppress(DevToolsError):
                await self._devtools.call("Target.disposeBrowserContext", browserContextId=context)


class _View:
    """The steps of one view."""

    def __init__(self, tab: PageTab, url: str) -> None:
        self._tab = tab
        self._url = url
        self._behaviours = Behaviours(tab.world, tab.quiet, tab.limits.behaviours)
        self._title = self._text = ""
        self._links: dict[str, str] = {}
        self._pictures: dict[str, None] = {}
        self._picture = b""
        self._reads_ratio = False

    async def show(self, *, picture: Picture) -> Viewed:
        """Take all steps, until the page is quiet or a limit is reached."""
        tab = self._tab
        async with asyncio.TaskGroup() as tasks:
            tab.tasks.add(tasks.create_task(tab.take_events(tasks)))
            try:
                async with tab.deadline:
                    tab.deadline.reschedule(asyncio.get_running_loop().time() + tab.limits.all_seconds)
                    await self._steps(picture=picture)
            except TimeoutError:
                tab.ended = tab.ended or f"{tab.limits.all_seconds:g} seconds"
            except BrowserGoneError:
                tab.gone = True
            except DevToolsError as error:
                tab.ended = tab.ended or str(error)
            finally:
                for task in [*tab.tasks]:
                    task.cancel()
        if tab.gone:
            raise BrowserGoneError("the browser has ended")
        asked = tab.answered, tuple(tab.missing), tuple(tab.live)
        links = {**dict.fromkeys(self._behaviours.links, ""), **self._links}
        own = self._behaviours.ran, tuple(self._behaviours.faults), tuple(self._pictures)
        found = Viewed(self._url, self._title, *asked, tab.ended, links, self._text, self._picture, *own)
        return replace(found, reads_ratio=self._reads_ratio)

    async def _steps(self, *, picture: Picture) -> None:
        tab = self._tab
        await tab.navigate(self._url)
        await tab.quiet()
        await self._behaviours.run()
        self._title, self._text = await tab.world.title(), await tab.world.text()
        await self._collect()
        if picture:
            await tab.world.rewind()
            method, options = PICTURES[picture]
            shot = await tab.call(method, **options)
            self._picture = base64.b64decode(shot["data"])
        await self._follow_routes()
        await tab.pass_time()
        await self._collect()
        self._reads_ratio = await tab.reads_ratio()

    async def _collect(self) -> None:
        """Note the links and the pictures of the document as it is now."""
        for address, text in (await self._tab.world.links(texts=self._tab.limits.texts)).items():
            self._links[address] = self._links.get(address) or text
        self._pictures.update(dict.fromkeys(await self._tab.world.pictures()))

    async def _follow_routes(self) -> None:
        """Go through the routes of an application that are written behind the hash of its URL."""
        tab = self._tab
        known: dict[str, None] = {}
        shown: set[str] = set()
        while not tab.ended:
            known.update(dict.fromkeys(await tab.world.routes()))
            route = next((each for each in known if each not in shown), "")
            if not route:
                return
            if len(shown) == tab.limits.routes:
                tab.ended = f"{tab.limits.routes} routes behind #"
                return
            shown.add(route)
            tab.give(tab.limits.route_seconds)
            await tab.world.go(route)
            await tab.quiet()
            await self._behaviours.scroll(0)
            await self._collect()
