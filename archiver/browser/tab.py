"""One page in a browser without a network: its requests, its frames and workers, and when it is quiet.

Each request is answered by the caller, or fails. The page lives in the world of the replay (world.js).
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, NamedTuple

from archiver.ask import GET
from archiver.browser.answers import NAVIGATION, UNTOLD, Asked, Told, asked_by, is_unseen, preflight, readable
from archiver.browser.behaviours import BehaviourPlan, IsolatedWorld
from archiver.browser.devtools import BrowserGoneError, DevTools, DevToolsError, Events, PageEvent
from archiver.warc.resources import mime_of

WIDTH, HEIGHT = 1280, 1024
WORLD = resources.files("archiver.browser").joinpath("world.js").read_text("utf-8").strip()
REST = 5.0  # seconds in which a page that has reached a limit may still give its title and links
TIMERS = 10.0  # seconds by which the clock of a page is put forward at the end
LATE_REQUESTS = 100  # of a page meanwhile
BUSY = 5.0  # seconds that a worker may compute before it is no longer waited for
RELOADS = 2  # times that a page may load itself again, as many do once they have set a cookie
READS_RATIO = """(frames => frames.some(each => {
    try { return each[Symbol.for("archiver.world")]?.dense === true } catch { return false }  // of another origin
}))([self, ...Array.from(self.frames ?? []).slice(0, 20)])"""
STALLED = 5.0  # seconds without a request after which a page is no longer waited for meanwhile
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
    routes: int = 100  # behind the hash of the page's URL
    route_seconds: float = 10.0  # further time for each of them
    behaviours: BehaviourPlan = field(default_factory=BehaviourPlan)
    dense: bool = True  # a page that reads how dense the screen is, is shown on a dense one too
    texts: bool = False  # the texts of links are read

    @property
    def all_seconds(self) -> float:
        """The limit of a view in which a behavior of the user may run."""
        return self.seconds + (self.behaviours.seconds if self.behaviours.files else 0)


class Given(NamedTuple):
    """What a request was answered with."""

    status: int
    mime: str


@dataclass
class PageTab:
    """One page while it is shown, in a browser context of its own."""

    devtools: DevTools
    events: Events
    answer: Answer
    limits: ViewLimits
    second: int
    ratio: int = 1  # pixels of the screen for each pixel of the page
    session: str = ""
    frame: str = ""  # the main frame
    url: str = ""  # of the page, without its fragment
    navigation: str = ""  # the id of the request for the page itself, and for its redirects
    reloads: int = 0
    loaded: bool = False
    paused: int = 0
    targets: int = 0
    others: set[str] = field(default_factory=set)  # sessions of frames of other origins, and of workers
    size: int = 0
    changed: float = 0.0  # the time of the last request or answer
    gone: bool = False
    passed: bool = False  # the time of `pass_time` has passed
    late: int | None = None  # requests that the page may still make meanwhile
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

    async def open(self, context: str) -> None:
        """Make the page in the browser *context*; it is empty."""
        await self.devtools.call("Target.createTarget", url="about:blank", browserContextId=context)
        self.session = await self._own_session()
        await self._greet(self.session, "page")
        self.frame = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        self.world = IsolatedWorld(self.devtools, self.session, self.frame)
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": self.ratio, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)
        await self.call("Emulation.setTimezoneOverride", timezoneId="UTC")
        await self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def give(self, seconds: float) -> None:
        """Let the view take so many seconds more."""
        if not self.ended and (when := self.deadline.when()) is not None and not self.deadline.expired():
            self.deadline.reschedule(when + seconds)

    async def _own_session(self) -> str:
        """Return the session of the page, the first target in its browser context."""
        event = await self.events.get()
        if event is None:
            raise BrowserGoneError("the browser has ended")
        return str(event.params["sessionId"])

    async def navigate(self, url: str) -> None:
        """Go to *url*."""
        self.url = url.partition("#")[0]
        navigating = self.devtools.send("Page.navigate", self.session, url=url)
        reply = await navigating
        failed = reply.get("result", {}).get("errorText", "") or reply.get("error", {}).get("message", "")
        if failed and not self.missing:
            self.ended = self.ended or failed
        if failed:
            self.loaded = True  # no event comes

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command for the page and return its result. Raises `DevToolsError`."""
        return await self.devtools.call(method, self.session, **params)

    async def quiet(self) -> bool:
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
                await self._others_rest()
                if before == self.changed and not self.paused:
                    return True
        return False

    async def _others_rest(self) -> None:
        """Wait until the scripts of frames and workers have had their turn too, unless they never end."""
        asked = {name: self.devtools.send("Runtime.evaluate", name, expression="0") for name in self.others}
        if asked:
            await asyncio.wait(asked.values(), timeout=BUSY)
        for name, reply in asked.items():
            if not reply.done() or "error" in reply.result():
                self.others.discard(name)
            reply.cancel()

    async def reads_ratio(self) -> bool:
        """Return True if a script has read `devicePixelRatio`, so that the page may be another on a dense screen."""
        sessions = (self.session, *self.others)
        asked = [self.devtools.send("Runtime.evaluate", each, expression=READS_RATIO) for each in sessions]
        done, late = await asyncio.wait(asked, timeout=BUSY)
        for reply in late:
            reply.cancel()
        return any(reply.result().get("result", {}).get("result", {}).get("value") is True for reply in done)

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

    async def pass_time(self) -> None:
        """Let what the page does later happen now: its clock runs ahead, but not while it waits for an answer.

        Afterwards its timers stand still.
        """
        self.late = LATE_REQUESTS
        budget = {"policy": "pauseIfNetworkFetchesPending", "budget": TIMERS * 1000}
        await self.call("Emulation.setVirtualTimePolicy", **budget, maxVirtualTimeTaskStarvationCount=1000)
        while not self.passed and not self.ended:
            self.stirred.clear()
            try:
                async with asyncio.timeout(STALLED):
                    await self.stirred.wait()
            except TimeoutError:
                if not self.paused:
                    break
        await self.call("Emulation.setVirtualTimePolicy", policy="pause")
        await self.quiet()

    async def take_events(self, tasks: asyncio.TaskGroup) -> None:
        """Answer requests and take new targets, until cancelled or until the browser ends."""
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
                case "Emulation.virtualTimeBudgetExpired" if event.session == self.session:
                    self.passed = True
                    self._stir(news=False)
                case "Network.webSocketCreated":
                    self.live[event.params["url"]] = None
                case "Target.detachedFromTarget":
                    self.others.discard(event.params["sessionId"])
                case "Inspector.targetCrashed" if event.session == self.session:
                    self.end("the page crashed the browser", 0)
        self.gone = True
        self.end("the browser has ended")

    def _begin(self, tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = tasks.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _is_of_page(self, event: PageEvent) -> bool:
        """Return True if the page itself has loaded, or given up: a page that goes elsewhere does not always load."""
        began = self.navigation and event.session == self.session
        return bool(began and event.params.get("frameId", self.frame) == self.frame)

    def end(self, why: str, rest: float = REST) -> None:
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
                    self.end(f"{self.limits.targets} frames and workers")
                await self.devtools.call("Target.closeTarget", targetId=info["targetId"])
                return
            self.devtools.listen(session, self.events)
            await self._greet(session, info["type"])
            self.others.add(session)

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
        return f"({WORLD})({self.second}, {json.dumps(self.captured)}, {self.ratio})"

    async def _answer(self, event: PageEvent, *, news: bool) -> None:
        self._stir(news=news)
        try:
            with suppress(DevToolsError):
                await self._judge(event.session, event.params, news=news)
        finally:
            self.paused -= 1
            self._stir(news=news)

    async def _judge(self, session: str, params: dict[str, Any], *, news: bool) -> None:
        asked = asked_by(params)
        request = params["requestId"]
        if asked.method == "OPTIONS" and asked.first("access-control-request-method"):
            await self._tell(session, request, preflight(asked))
            return
        if len(self.answered) + len(self.missing) >= self.limits.requests:
            self.end(f"{self.limits.requests} requests")
        if self.late is not None:
            self.late -= news
            self.passed = self.passed or self.late < 0
        elsewhere = self._leaves(asked, params)
        if elsewhere:
            asked = replace(asked, kind=NAVIGATION)
        taken = not self.ended and (self.late is None or self.late >= 0)
        told = await self.answer(asked) if taken else None
        if taken and not is_unseen(asked):
            self._note(asked, told)
        if told is None or told.status == UNTOLD or elsewhere:
            reason = "Aborted" if elsewhere else "Failed"
            await self.devtools.call("Fetch.failRequest", session, requestId=request, errorReason=reason)
            return
        self.size += len(told.body)
        if self.size > self.limits.size:
            self.end(f"{self.limits.size} bytes")
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
        number = params.get("networkId", "")
        again = number != self.navigation and (asked.url, asked.method) == (self.url, GET)
        if self.navigation and again and self.reloads < RELOADS:
            self.reloads += 1
            self.navigation, self.loaded = number, False
            self.seen.clear()
        self.navigation = self.navigation or number
        return bool(number != self.navigation)

    async def _tell(self, session: str, request: str, told: Told) -> None:
        await self.devtools.call(
            "Fetch.fulfillRequest",
            session,
            requestId=request,
            responseCode=told.status,
            responseHeaders=[{"name": name, "value": value} for name, value in told.fields],
            body=base64.b64encode(told.body).decode(),
        )
