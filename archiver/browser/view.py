"""Show a page in a browser without a network; each request is answered by the caller, or fails.

The page lives in the world of the replay (world.js). A view ends when the page is quiet, or at a limit.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, NamedTuple

from archiver.browser.answers import UNTOLD, Asked, Told, asked_by, preflight, readable
from archiver.browser.behaviours import BehaviourPlan, Behaviours, IsolatedWorld
from archiver.browser.devtools import ROOT, BrowserGoneError, DevTools, DevToolsError, Events, PageEvent
from archiver.warc.resources import mime_of

WIDTH, HEIGHT = 1280, 1024
WORLD = resources.files("archiver.browser").joinpath("world.js").read_text("utf-8").strip()
REST = 5.0  # seconds in which a page that has reached a limit may still give its title and links
NAVIGATION = "Navigation"  # the kind of a request by which the page would go to another one
VIEWS = 200  # after which a new browser should be started: its memory grows
FLAGS = (  # of a browser that shows pages
    "--headless",
    "--no-startup-window",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-quic",
    "--mute-audio",
    "--hide-scrollbars",
    "--allow-running-insecure-content",
    "--disable-features=AutoupgradeMixedContent,MixedContentAutoupgrade,ServiceWorkerAutoPreload,Translate",
    "--js-flags=--max-old-space-size=512",
)
UNSEEN = {"Ping", "CSPViolationReport", "Prefetch"}  # kinds whose answer shows nowhere
ROOTS = ({"type": "shared_worker"}, {"type": "service_worker"}, {"type": "page"})
REQUESTS: dict[str, Any] = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}
ATTACH: dict[str, Any] = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}


Answer = Callable[[Asked], Awaitable[Told | None]]  # None: not archived


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """Limits of one view."""

    seconds: float = 60.0
    requests: int = 2000
    size: int = 64 << 20  # bytes of answers
    targets: int = 200  # frames of other origins and workers
    idle: float = 0.5  # seconds without a request after which a page is quiet
    behaviours: BehaviourPlan = field(default_factory=BehaviourPlan)

    @property
    def all_seconds(self) -> float:
        """The limit of a view in which a behavior of the user may run."""
        return self.seconds + (self.behaviours.seconds if self.behaviours.files else 0)


class Given(NamedTuple):
    """What a request was answered with."""

    status: int
    mime: str


@dataclass(frozen=True, slots=True)
class Viewed:
    """What a page asked for, and what it showed."""

    url: str
    title: str
    answered: Mapping[Asked, Given]
    missing: tuple[Asked, ...]
    live: tuple[str, ...]  # connections that no archive can answer, such as a WebSocket
    ended: str  # "" if the page was quiet, or the limit that was reached
    links: tuple[str, ...] = ()  # to other pages, in the live document
    text: str = ""  # visible text
    screenshot: bytes = b""  # JPEG
    behavior: str = ""  # the id of the user's behavior that ran
    faults: tuple[str, ...] = ()  # of the user's behaviors


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

    async def view(
        self, url: str, second: int, answer: Answer, limits: ViewLimits = ViewLimits(), *, screenshot: bool = False
    ) -> Viewed:
        """Show the page *url*, captured at *second* since the epoch. Raises `DevToolsError`."""
        events: Events = asyncio.Queue()
        context = (await self._devtools.call("Target.createBrowserContext", disposeOnDetach=True))["browserContextId"]
        self._contexts[context] = events
        try:
            await self._devtools.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
            tab = _Tab(self._devtools, events, answer, limits, second)
            return await tab.show(url, context, screenshot=screenshot)
        finally:
            del self._contexts[context]
            self._devtools.stop_listening(events)
            with suppress(DevToolsError):
                await self._devtools.call("Target.disposeBrowserContext", browserContextId=context)


@dataclass
class _Tab:
    """One page while it is shown."""

    devtools: DevTools
    events: Events
    answer: Answer
    limits: ViewLimits
    second: int
    session: str = ""
    frame: str = ""  # the main frame
    navigation: str = ""  # the id of the request for the page itself, and for its redirects
    loaded: bool = False
    paused: int = 0
    targets: int = 0
    size: int = 0
    changed: float = 0.0  # the time of the last request or answer
    gone: bool = False
    ended: str = ""
    answered: dict[Asked, Given] = field(default_factory=dict)
    missing: dict[Asked, None] = field(default_factory=dict)
    live: dict[str, None] = field(default_factory=dict)
    seen: set[tuple[str, str, bytes | None]] = field(default_factory=set)  # requests
    captured: dict[str, int] = field(default_factory=dict)  # seconds of documents that are not *second*
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    world: IsolatedWorld = field(init=False)
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    async def show(self, url: str, context: str, *, screenshot: bool) -> Viewed:
        await self.devtools.call("Target.createTarget", url="about:blank", browserContextId=context)
        self.session = await self._own_session()
        await self._greet(self.session, "page")
        self.frame = (await self._call("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        await self._call("Emulation.setDeviceMetricsOverride", **size)
        await self._call("Emulation.setTimezoneOverride", timezoneId="UTC")
        await self._call("Emulation.setFocusEmulationEnabled", enabled=True)
        world = self.world = IsolatedWorld(self.devtools, self.session, self.frame)
        behaviours = Behaviours(world, self._quiet, self.limits.behaviours)
        title, text, picture = "", "", b""
        links: tuple[str, ...] = ()
        async with asyncio.TaskGroup() as tasks:
            self.tasks.add(tasks.create_task(self._take_events(tasks)))
            try:
                async with self.deadline:
                    self.deadline.reschedule(asyncio.get_running_loop().time() + self.limits.all_seconds)
                    await self._navigate(url)
                    await self._quiet()
                    await behaviours.run()
                    title, text, links = await world.title(), await world.text(), await world.links()
                    if screenshot:
                        await world.rewind()
                        shot = await self._call("Page.captureScreenshot", format="jpeg", quality=75)
                        picture = base64.b64decode(shot["data"])
            except TimeoutError:
                self.ended = self.ended or f"{self.limits.all_seconds:g} seconds"
            except BrowserGoneError:
                self.gone = True
            except DevToolsError as error:
                self.ended = self.ended or str(error)
            finally:
                for task in [*self.tasks]:
                    task.cancel()
        if self.gone:
            raise BrowserGoneError("the browser has ended")
        asked = self.answered, tuple(self.missing), tuple(self.live)
        own = behaviours.ran, tuple(behaviours.faults)
        links = tuple(dict.fromkeys((*links, *behaviours.links)))
        return Viewed(url, title, *asked, self.ended, links, text, picture, *own)

    async def _own_session(self) -> str:
        """Return the session of the page, the first target in its browser context."""
        event = await self.events.get()
        if event is None:
            raise BrowserGoneError("the browser has ended")
        return str(event.params["sessionId"])

    async def _navigate(self, url: str) -> None:
        navigating = self.devtools.send("Page.navigate", self.session, url=url)
        reply = await navigating
        failed = reply.get("result", {}).get("errorText", "") or reply.get("error", {}).get("message", "")
        if failed and not self.missing:
            self.ended = self.ended or failed
        if failed:
            self.loaded = True  # no event comes

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.devtools.call(method, self.session, **params)

    async def _quiet(self) -> bool:
        """Wait until the page has loaded, asks for nothing, and its scripts have had their turn.

        Return False if the view is to end.
        """
        loop = asyncio.get_running_loop()
        while not self.ended:
            self.stirred.clear()
            rest = self.changed + self.limits.idle - loop.time()
            if not self.loaded or self.paused:
                await self.stirred.wait()
            elif rest > 0:
                with suppress(TimeoutError):  # wait_for could lose that the view was cancelled in the same moment
                    async with asyncio.timeout(rest):
                        await self.stirred.wait()
            else:
                before = self.changed
                await self.world.value("0")
                if before == self.changed and not self.paused:
                    return True
        return False

    def _stir(self, *, news: bool = True) -> None:
        """Note that something happened; without *news*, it does not keep the page from being quiet."""
        if news:
            self.changed = asyncio.get_running_loop().time()
        self.stirred.set()

    def _is_new(self, params: dict[str, Any]) -> bool:
        """Return True if this is not a request that the page repeats, as some do for ever."""
        asked = asked_by(params)
        key = asked.method, asked.url, asked.body
        new = key not in self.seen
        self.seen.add(key)
        return new

    async def _take_events(self, tasks: asyncio.TaskGroup) -> None:
        while (event := await self.events.get()) is not None:
            match event.name:
                case "Fetch.requestPaused":
                    self.paused += 1
                    self._begin(tasks, self._answer(event, news=self._is_new(event.params)))
                case "Target.attachedToTarget":
                    self._begin(tasks, self._attached(event.params))
                case "Page.loadEventFired" | "Page.frameStoppedLoading" if self._is_of_page(event):
                    self.loaded = True
                    self._stir()
                case "Page.javascriptDialogOpening":
                    self.devtools.send("Page.handleJavaScriptDialog", event.session, accept=True)
                case "Network.webSocketCreated":
                    self.live[event.params["url"]] = None
                case "Inspector.targetCrashed" if event.session == self.session:
                    self._end("the page crashed the browser", 0)
        self.gone = True
        self._end("the browser has ended")

    def _begin(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = tasks.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _is_of_page(self, event: PageEvent) -> bool:
        """Return True if the page itself has loaded, or given up: a page that goes elsewhere does not always load."""
        began = self.navigation and event.session == self.session
        return bool(began and event.params.get("frameId", self.frame) == self.frame)

    def _end(self, why: str, rest: float = REST) -> None:
        """Let the view end in *rest* seconds: a page that has reached a limit may not answer any more."""
        self.ended = self.ended or why
        end = asyncio.get_running_loop().time() + rest
        if not self.deadline.expired() and end < (self.deadline.when() or end):
            self.deadline.reschedule(end)
        self._stir()

    async def _attached(self, params: dict[str, Any]) -> None:
        """Take the requests of a new target, then let it run."""
        session, info = params["sessionId"], params["targetInfo"]
        self.targets += 1
        with suppress(DevToolsError):
            if info["type"] == "page" or self.targets > self.limits.targets:  # a window that the page opens
                if self.targets > self.limits.targets:
                    self._end(f"{self.limits.targets} frames and workers")
                await self.devtools.call("Target.closeTarget", targetId=info["targetId"])
                return
            self.devtools.listen(session, self.events)
            await self._greet(session, info["type"])

    async def _greet(self, session: str, kind: str) -> None:
        """Set up a target. Some commands are answered only after its start, and some are not for every kind."""
        send = self.devtools.send
        replies = [send("Target.setAutoAttach", session, **ATTACH)]
        if kind in ("page", "iframe"):
            replies += [
                send("Page.enable", session),
                send("Page.setBypassCSP", session, enabled=True),
                send("Network.setBypassServiceWorker", session, bypass=True),
                send("Page.addScriptToEvaluateOnNewDocument", session, source=self._world(), runImmediately=True),
            ]
        if kind != "worker":  # its requests come through its frame
            replies += [
                send("Fetch.enable", session, **REQUESTS),
                send("Network.setCacheDisabled", session, cacheDisabled=True),
            ]
        replies += [send("Network.enable", session), send("Runtime.runIfWaitingForDebugger", session)]
        await asyncio.wait(replies)

    def _world(self) -> str:
        return f"({WORLD})({self.second}, {json.dumps(self.captured)})"

    async def _answer(self, event: PageEvent, *, news: bool) -> None:
        self._stir(news=news)
        try:
            with suppress(DevToolsError):
                await self._judge(event.session, event.params)
        finally:
            self.paused -= 1
            self._stir(news=news)

    async def _judge(self, session: str, params: dict[str, Any]) -> None:
        asked = asked_by(params)
        request = params["requestId"]
        if asked.method == "OPTIONS" and asked.first("access-control-request-method"):
            await self._tell(session, request, preflight(asked))
            return
        if len(self.answered) + len(self.missing) >= self.limits.requests:
            self._end(f"{self.limits.requests} requests")
        elsewhere = self._leaves(asked, params)
        if elsewhere:
            asked = replace(asked, kind=NAVIGATION)
        told = None if self.ended else await self.answer(asked)
        if not self.ended and not is_unseen(asked):
            self._note(asked, told)
        if told is None or told.status == UNTOLD or elsewhere:
            reason = "Aborted" if elsewhere else "Failed"
            await self.devtools.call("Fetch.failRequest", session, requestId=request, errorReason=reason)
            return
        self.size += len(told.body)
        if self.size > self.limits.size:
            self._end(f"{self.limits.size} bytes")
        if asked.kind == "Document" and told.second not in (0, self.second):
            self.captured[asked.url] = told.second
            await self.devtools.call("Page.addScriptToEvaluateOnNewDocument", session, source=self._world())
        await self._tell(session, request, readable(asked, told))

    def _note(self, asked: Asked, told: Told | None) -> None:
        if told is None:
            self.missing[asked] = None
        else:
            types = (value for name, value in told.fields if name == "content-type")
            self.answered[asked] = Given(told.status, mime_of(next(types, "")))

    def _leaves(self, asked: Asked, params: dict[str, Any]) -> bool:
        """Return True if the page would go to another one."""
        if asked.kind != "Document" or params.get("frameId") != self.frame:
            return False
        self.navigation = self.navigation or params.get("networkId", "")
        return bool(params.get("networkId", "") != self.navigation)

    async def _tell(self, session: str, request: str, told: Told) -> None:
        await self.devtools.call(
            "Fetch.fulfillRequest",
            session,
            requestId=request,
            responseCode=told.status,
            responseHeaders=[{"name": name, "value": value} for name, value in told.fields],
            body=base64.b64encode(told.body).decode(),
        )


def is_unseen(asked: Asked) -> bool:
    """Return True if the answer shows nowhere, or the browser asks by itself."""
    return asked.kind in UNSEEN or (asked.kind == "Other" and asked.url.endswith("/favicon.ico"))
