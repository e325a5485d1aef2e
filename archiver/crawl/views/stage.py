"""Shows the pages that a crawl has stored, one after another, and queues the URLs that their scripts ask for.

A page is shown when its capture is committed, and once more if it had to go on without an answer, or if a second view
is to show whether it asks for the same URLs again. The rates, robots.txt, scope and records of what it asks for are
those of the crawl, and the browser has no network. See docs/decisions/0064-browser-in-the-crawl.md.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from archiver import url
from archiver.browser.behavior_files import check_behaviors, read_behaviors
from archiver.browser.behaviours import BehaviourPlan
from archiver.browser.chromium import Chromium, find, why_no_namespace
from archiver.browser.devtools import BrowserGoneError, DevToolsError, connected
from archiver.browser.page_info import records_of
from archiver.browser.tab import ViewLimits
from archiver.browser.view import FLAGS, VIEWS, BrowserViews, Viewed
from archiver.clock import Clock
from archiver.config.settings import BrowserSettings, Settings
from archiver.crawl.rules import CurrentRules
from archiver.crawl.views.answers import MICRO, StoredAnswers
from archiver.crawl.views.records import ViewWriter
from archiver.crawl.views.requests import AddedUrls, HeldRequests, PageRequests, RequestContext
from archiver.errors import ConfigError
from archiver.frontier.sqlite import SqliteFrontier
from archiver.frontier.views import DueView, ViewResult
from archiver.humanize import printable
from archiver.policy.url_forms import pattern
from archiver.policy.views import ViewNeed, ViewSample, VolatileUrls

LOOK_EVERY = 0.5  # seconds between two looks for pages to show
IDLE = 60.0  # seconds without a page after which the browser is closed
MAX_ROUNDS = 4  # times that a page is shown
CONFIRMED = 3  # pages of each pattern that are shown once more after they brought something
MAX_FAILURES = 3  # browsers in a row that end before they have shown a page
MAX_TITLE, MAX_ENDED = 500, 200  # characters
MAX_FAULTS = 20  # of behaviors that are named

log = logging.getLogger(__name__)


def check_browser(settings: Settings) -> None:
    """Raise `ConfigError` if a crawl with *settings*, which show pages, cannot do that on this machine."""
    option = f"--browser {settings.browser.browser}"
    command = find("")
    if why := why_no_namespace():
        raise ConfigError(
            f"{option} runs Chromium without a network, in a network namespace, and none can be made: {why}"
        )
    check_behaviors(read_behaviors(settings.browser.behavior), (*command, *FLAGS))


class TimeShare:
    """The time that views have taken, and the share of the crawl's time that they may take."""

    def __init__(self, percent: int, clock: Clock) -> None:
        self._share = percent / 100
        self._clock = clock
        self._began = clock.now()
        self._spent = 0.0
        self._active = 0
        self._since = 0.0

    def begin(self) -> None:
        """A view begins."""
        if not self._active:
            self._since = self._clock.now()
        self._active += 1

    def end(self) -> None:
        """A view has ended."""
        self._active -= 1
        if not self._active:
            self._spent += self._clock.now() - self._since

    @property
    def used_up(self) -> bool:
        """True if views have had their share for now."""
        now = self._clock.now()
        spent = self._spent + (now - self._since if self._active else 0.0)
        return spent > (now - self._began) * self._share


class PageViews:
    """The views of a crawl. Only one of several crawlers shows pages; the others wait until it has ended."""

    def __init__(
        self,
        stored: tuple[SqliteFrontier, StoredAnswers | None, ViewWriter | None],
        rules: CurrentRules,
        settings: BrowserSettings,
        clock: Clock,
    ) -> None:
        """*stored*: the frontier, the answers in the archive, and the writer; None: another crawler shows the pages."""
        self.paused = False  # no view begins
        self.alone = False  # nothing else is left to do, so all of the time is for views
        self.failed = ""  # why no browser can be had
        self.added = AddedUrls()
        self.behaviors = read_behaviors(settings.behavior)
        self._frontier, self._answers, self._writer = stored
        self._rules = rules
        self._settings = settings
        self._clock = clock
        self._time = TimeShare(settings.browser_share, clock)
        self._sample = ViewSample(every=settings.browser == "all")
        self._volatile = VolatileUrls()
        self._held = HeldRequests(self._frontier)
        self._choosing = asyncio.Lock()
        self._ready: list[DueView] = []
        self._active: set[int] = set()  # rows of the pages that are shown now
        self._before: dict[int, set[str]] = {}  # URLs that a page asked for when it was shown last
        self._refused: dict[int, set[str]] = {}  # links of a page that are counted as refused
        self._confirmed: Counter[str] = Counter()  # pages by pattern
        self._late: Counter[int] = Counter()  # views that had to go on without an answer, by page
        self._crashed: set[int] = set()
        self._faults: set[str] = set()  # of behaviors, that were named

    @property
    def showing(self) -> int:
        """Pages that are shown now."""
        return len(self._active)

    async def left(self) -> int:
        """Return the number of pages that are still to be shown."""
        return await self._frontier.views_left()

    async def keep(self, changed: Callable[[], None]) -> None:
        """Show pages until cancelled; call *changed* when there is something new."""
        if self._answers is None:
            return
        for host, shape, brought in await self._frontier.views_ended():
            self._sample.ended(host, shape, brought=bool(brought))
        with ThreadPoolExecutor(1, "views") as thread, self._answers as answers:
            posts, same = self._settings.browser_post == "on", dict[str, str]()
            known = same, set[str](), self._refused
            kept = self._held, self._volatile, posts, *known, self.added, answers, thread, changed
            context = RequestContext(self._frontier, self._rules, self._clock, self._settings.browser_patience, *kept)
            async with asyncio.TaskGroup() as group:
                polling = group.create_task(self._held.poll())
                await self._show_all(context)
                polling.cancel()

    async def _show_all(self, context: RequestContext) -> None:
        """Show pages in one browser after another, until cancelled or until no browser can be had."""
        failures = 0
        while True:
            first = await self._choose() if self._has_time else None
            if first is None:
                await asyncio.sleep(LOOK_EVERY)
                continue
            tabs = _Tabs(self, context, self._settings)
            try:
                await tabs.show(self._settings.browser_tabs, first)
            except (BrowserGoneError, ConfigError) as error:
                self._active.clear()
                failures = 1 if tabs.shown else failures + 1
                log.warning("the browser ended: %s", error)
                if failures >= MAX_FAILURES:
                    self.failed = f"--browser {self._settings.browser}: {error}"
                    context.changed()
                    return

    async def next(self) -> DueView | None:
        """Return the next page to show; None if there has been none for some time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + IDLE
        while True:
            async with self._choosing:
                if self._has_time and (due := await self._choose()) is not None:
                    return due
            if loop.time() > end:
                return None
            await asyncio.sleep(LOOK_EVERY)

    @property
    def _has_time(self) -> bool:
        return not self.paused and (self.alone or not self._time.used_up)

    async def _choose(self) -> DueView | None:
        """Return the next page to show; leave out those before it that no view is needed for."""
        left: list[tuple[int, str]] = []
        chosen: DueView | None = None
        while chosen is None:
            if not self._ready:
                await self._frontier.leave_out_views(left)
                left = []
                self._ready = await self._frontier.views_due({*self._active, *self._held.pages})
            due = next((each for each in self._ready if each.claim.id not in self._active), None)
            if due is None:
                break
            self._ready.remove(due)
            shape = due.pattern or pattern(due.claim.url)
            if due.rounds or self._sample.takes(url.origin(due.claim.url), shape, ViewNeed(due.need)):
                chosen = due._replace(pattern=shape)
                self._active.add(due.claim.id)
            else:
                left.append((due.claim.id, shape))
        await self._frontier.leave_out_views(left)
        return chosen

    async def ended(self, due: DueView, requests: PageRequests, viewed: Viewed | None, why: str = "") -> None:
        """Save the result of a view: *viewed*, or *why* there is none."""
        page, shape, waiting = due.claim.id, due.pattern, set[str]()
        if viewed is not None:
            await requests.add_links(viewed.links, viewed.pictures)
            waiting = await requests.still_waiting()
            self._report(viewed.faults)
            if viewed.dense is not None:
                self._sample.ended_dense(shape, brought=requests.brought_by(viewed.dense))
        self._learn(page, requests)
        lacking = {each for each in requests.unanswered | waiting if not self._volatile.covers(each)}
        to_confirm = bool(requests.new) and self._confirmed[shape] < CONFIRMED
        self._confirmed[shape] += to_confirm
        late = bool(waiting & lacking)
        self._late[page] += late
        again = viewed is not None and due.rounds + 1 < MAX_ROUNDS and (late or to_confirm)
        if viewed is not None and not again and self._writer is not None:
            await self._writer.store(records_of(viewed, due.captured, due.rounds + 1, self._late.pop(page)))
        title = printable(viewed.title, MAX_TITLE) if viewed is not None else ""
        cut = printable(viewed.ended if viewed is not None else why, MAX_ENDED)
        result = ViewResult(page, shape, not again, requests.brought, len(lacking), title, cut)
        if again:
            self._before[page] = set(requests.asked)
        else:
            self._refused.pop(page, None)
        if waiting and again:
            self._held.hold(page, waiting)
        elif again:  # at once: others may ask for URLs of the same volatile pattern
            self._ready.insert(0, due._replace(rounds=due.rounds + 1))
        await self._frontier.save_views((result,))
        if self._sample.ended(url.origin(due.claim.url), shape, brought=bool(requests.brought)):
            await self._frontier.take_back_views(shape)

    def limits(self, due: DueView, usual: ViewLimits) -> ViewLimits:
        """Return the limits of the view of *due*."""
        return usual if self._sample.takes_dense(due.pattern) else replace(usual, dense=False)

    def _report(self, faults: Iterable[str]) -> None:
        """Name *faults* of the user's behaviors, each once."""
        for fault in faults:
            if fault not in self._faults and len(self._faults) < MAX_FAULTS:
                self._faults.add(fault)
                log.warning("--behavior %s", fault)

    def _learn(self, page: int, requests: PageRequests) -> None:
        """Learn which URLs *page* asked for only when it was shown before, or only now."""
        before = self._before.pop(page, None)
        if before is not None:
            self._volatile.saw(before.difference(requests.asked), requests.asked.keys() - before)

    async def crashed(self, due: DueView, requests: PageRequests) -> None:
        """Show the page with which the browser ended once more; but not a second time."""
        if due.claim.id in self._crashed:
            await self.ended(due, requests, None, "the browser has ended")
        self._crashed.add(due.claim.id)

    @contextmanager
    def shown(self, due: DueView) -> Iterator[None]:
        """Count the time of a view in the block, after which the page may be chosen again."""
        self._time.begin()
        try:
            yield
        finally:
            self._time.end()
            self._active.discard(due.claim.id)


class _Tabs:
    """The tabs of one browser."""

    def __init__(self, stage: PageViews, context: RequestContext, settings: BrowserSettings) -> None:
        self.shown = 0  # pages
        self._stage = stage
        self._context = context
        plan = BehaviourPlan(settings.browser_clicks, stage.behaviors)
        hooks = context.rules.visit_rules.hooks
        texts = hooks is not None and hooks.judges
        self._limits = ViewLimits(seconds=ViewLimits().seconds + context.patience, behaviours=plan, texts=texts)
        self._pictures = settings.browser_screenshots == "on"

    async def show(self, tabs: int, first: DueView) -> None:
        """Show *first* and other pages until there has been none for some time, or a new browser is due.

        Raises `BrowserGoneError`.
        """
        browser = Chromium([*find(""), *FLAGS], network=False)
        async with connected(browser) as devtools, BrowserViews.open(devtools) as views:
            begin = (first, *(None for _ in range(1, tabs)))
            working = [asyncio.create_task(self._work(views, each)) for each in begin]
            try:
                await asyncio.gather(*working)
            finally:
                for task in working:
                    task.cancel()
                await asyncio.wait(working)

    async def _work(self, views: BrowserViews, due: DueView | None) -> None:
        while (due := due or await self._stage.next()) is not None:
            with self._stage.shown(due):
                await self._show(views, due)
            self.shown += 1
            self._context.changed()
            if self.shown >= VIEWS:
                return
            due = None

    async def _show(self, views: BrowserViews, due: DueView) -> None:
        requests = PageRequests(due, self._context)
        try:
            captured = due.captured // MICRO
            limits = self._stage.limits(due, self._limits)
            viewed = await views.view(
                due.claim.url, captured, requests.answer, limits, picture="jpeg" if self._pictures else ""
            )
        except BrowserGoneError:
            await self._stage.crashed(due, requests)
            raise
        except DevToolsError as error:
            await self._stage.ended(due, requests, None, str(error))
        else:
            await self._stage.ended(due, requests, viewed)
