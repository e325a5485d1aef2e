"""The requests of pages that the crawl shows in a browser: answered from the archive, or queued and held.

A URL that the crawl does not know is judged like a requisite of the page and joins the queue. The request is held until
the URL is settled, by this crawler or by another one, or for as long as the user's patience lasts.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType

from archiver import url
from archiver.ask import Ask
from archiver.browser.answers import NAVIGATION, Asked, Told, get_of, is_unseen, part_of, post_of
from archiver.clock import Clock
from archiver.collection.browser_answers import without_cache_busters
from archiver.crawl.rules import CurrentRules
from archiver.crawl.views.answers import StoredAnswers
from archiver.crawl.visit_rules import judged, judged_alone
from archiver.frontier.sqlite import SqliteFrontier
from archiver.frontier.views import DueView
from archiver.model import Hop, Link, Refusal, State
from archiver.policy.views import VolatileUrls
from archiver.warc.post_keys import asked_url

POLL_EVERY = 0.1  # seconds between two looks at the URLs that pages wait for
METHODS = frozenset(("GET", "HEAD"))  # that need no body
MAX_POSTS = 50  # of one page
MAX_SAME = 10_000  # URLs that defeat caches and are remembered
NO_TEXTS: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class AddedUrls:
    """URLs that views have queued, and which the planner of the crawl has not heard of."""

    number: int = 0
    hosts: set[int] = field(default_factory=set)
    under_way: int = 0  # additions to the frontier that may be committed already

    @property
    def unheard(self) -> bool:
        """True if URLs may wait in the frontier that the planner has not heard of."""
        return bool(self.under_way or self.number)

    async def queue(self, adding: Awaitable[Counter[int]]) -> int:
        """Wait for *adding*, which returns new URLs by host; return how many there are.

        They count also if the caller is cancelled meanwhile.
        """
        self.under_way += 1
        task = asyncio.ensure_future(adding)
        task.add_done_callback(self._added)
        return (await asyncio.shield(task)).total()

    def _added(self, done: "asyncio.Future[Counter[int]]") -> None:
        self.under_way -= 1
        if not done.cancelled() and done.exception() is None:
            self.number += done.result().total()
            self.hosts |= done.result().keys()

    def take(self) -> tuple[int, set[int]]:
        """Return the number of URLs since the last call, and their hosts."""
        taken = self.number, self.hosts
        self.number, self.hosts = 0, set()
        return taken


class HeldRequests:
    """Requests, and pages between two views, that wait until URLs are settled."""

    def __init__(self, frontier: SqliteFrontier) -> None:
        self._frontier = frontier
        self._requests: dict[str, list[asyncio.Future[None]]] = {}  # by URL
        self._pages: dict[int, set[str]] = {}  # the URLs that each page waits for, by its row

    @property
    def pages(self) -> set[int]:
        """Rows of the pages that wait."""
        return set(self._pages)

    def hold(self, page: int, addresses: set[str]) -> None:
        """Let *page* wait for *addresses*."""
        self._pages[page] = addresses

    async def settled(self, address: str, patience: float) -> bool:
        """Wait until *address* is settled; return False if that takes longer than *patience*."""
        waits = asyncio.get_running_loop().create_future()
        held = self._requests.setdefault(address, [])
        held.append(waits)
        try:
            async with asyncio.timeout(patience):
                await waits
        except TimeoutError:
            held.remove(waits)
            return False
        return True

    async def poll(self) -> None:
        """Let requests and pages go on whose URLs are settled, until cancelled."""
        while True:
            await asyncio.sleep(POLL_EVERY)
            wanted = {*self._requests, *(address for some in self._pages.values() for address in some)}
            if not wanted and not self._pages:
                continue
            states = await self._frontier.states(wanted)
            settled = {address for address in wanted if states.get(address) is not State.WAITING}
            for address in settled & self._requests.keys():
                for each in self._requests.pop(address):
                    if not each.done():
                        each.set_result(None)
            for page in [page for page, some in self._pages.items() if some <= settled]:
                del self._pages[page]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Everything by which the requests of pages are answered."""

    frontier: SqliteFrontier
    rules: CurrentRules
    clock: Clock
    patience: float  # seconds
    held: HeldRequests
    volatile: VolatileUrls
    posts: bool  # POST requests may be sent
    same: dict[str, str]  # the first URL asked for, by itself without what defeats caches
    compared: set[str]  # URLs whose stored request was compared with the headers that scripts set
    refused: dict[int, set[str]]  # links that were counted as refused, by the page that will be shown again
    added: AddedUrls
    answers: StoredAnswers
    thread: ThreadPoolExecutor  # which reads the answers
    changed: Callable[[], None]  # called when something was queued


class PageRequests:
    """The requests of one page while it is shown."""

    def __init__(self, due: DueView, context: RequestContext) -> None:
        self.asked: dict[str, None] = {}  # canonical URLs
        self.new: set[str] = set()  # of these, URLs that the crawl had not known
        self.unanswered: set[str] = set()  # of these, URLs that no rule refuses
        self._posts = 0
        self.brought = 0  # URLs that the crawl had not known, pages that this one links to among them
        self._due = due
        self._context = context
        self._refused = context.refused.setdefault(due.claim.id, set())

    async def answer(self, asked: Asked) -> Told | None:
        """Return the answer to *asked*, for which it may wait; None if there is none."""
        target = url.canonical(asked.url)
        if target is None:
            return None
        page = self._due.claim.url
        same_site = self._context.rules.visit_rules.session.same_site(page, target)
        if asked.method in METHODS:
            return await self._answer(asked, target, get_of(asked, target, page, same_site=same_site))
        ask = post_of(asked, target, same_site=same_site)
        address = asked_url(ask) if ask is not None else None
        if ask is not None and address is not None:
            return await self._answer(asked, address, ask)
        return None

    async def _answer(self, asked: Asked, address: str, ask: Ask | None) -> Told | None:
        """Return the answer to *asked*, which the frontier knows as *address*; *ask*: what its script sends."""
        told = await self._stored(address)
        if told is None and is_unseen(asked):
            return None
        if told is None:
            address = self._same(address)
            told = await self._stored(address)
        self.asked[address] = None
        if told is None and await self._wanted(asked, address, ask):
            told = await self._stored(address)
        if told is not None and ask is not None and not ask.posts:
            await self._compare(address, ask)
        return None if told is None else part_of(asked, told)

    def brought_by(self, addresses: Iterable[str]) -> bool:
        """Return True if the crawl had not known one of *addresses*."""
        return any(url.canonical(each) in self.new for each in addresses)

    async def _compare(self, address: str, ask: Ask) -> None:
        """Note the headers of *ask* that were not sent for *address*, because it was asked for without them before.

        Those that the user has set replace them.
        """
        context = self._context
        if address in context.compared or len(context.compared) >= MAX_SAME:
            return
        context.compared.add(address)
        capture = next(iter(await context.frontier.newest_captures(address)), None)
        if capture is None:
            return
        loop = asyncio.get_running_loop()
        request = await loop.run_in_executor(context.thread, context.answers.request_of, capture)
        settings = context.rules.visit_rules.settings.of(url.origin(address))
        own = {line.partition(":")[0].strip().lower() for line in settings.fetch.header}
        lines = set((request or b"").partition(b"\r\n\r\n")[0].split(b"\r\n"))
        unsent = [name for name, value in ask.fields if f"{name}: {value}".encode() not in lines]
        if request is not None and (names := [name for name in unsent if name.lower() not in own]):
            await context.frontier.note_unsent(address, ask, names)

    def _same(self, address: str) -> str:
        """Return the URL that was asked for before, and differs from *address* only in what defeats caches.

        A replay takes them for one (pywb's rules for all hosts).
        """
        known, plain = self._context.same, without_cache_busters(address)
        if plain == address or len(known) >= MAX_SAME:
            return known.get(plain, address)
        return known.setdefault(plain, address)

    def _may_post(self, ask: Ask) -> bool:
        """Return True if *ask* may be sent: to a host of the site, by one of its pages, and not too many."""
        context, scope = self._context, self._context.rules.visit_rules.scope
        self._posts += 1
        own = scope.contains(ask.target) and scope.contains(self._due.claim.url)
        return context.posts and own and self._posts <= MAX_POSTS

    async def _stored(self, address: str) -> Told | None:
        """Return the stored answer for *address* that is closest to the capture of the page."""
        context = self._context
        for each in dict.fromkeys((address, without_cache_busters(address))):
            if captures := await context.frontier.newest_captures(each):
                closest = min(captures, key=lambda one: abs(one.timestamp - self._due.captured))
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(context.thread, context.answers.told, closest)
        return None

    async def _wanted(self, asked: Asked, address: str, ask: Ask | None) -> bool:
        """Queue *address* if it may be fetched, and wait for it; return True if it may be stored now."""
        context = self._context
        state = (await context.frontier.states((address,))).get(address)
        if state is None and context.volatile.covers(address):
            return False
        if state not in {None, State.WAITING}:
            if state is not State.EXCLUDED:
                self.unanswered.add(address)
            return False
        if state is None and ask is not None and ask.posts and not self._may_post(ask):
            return False
        hop = Hop.LINK if asked.kind == NAVIGATION else Hop.REQUISITE
        if not await self._queue((Link(address, hop, f"browser:{asked.kind}"),), ask) and state is None:
            return False
        if state is None:
            self.new.add(address)
        return asked.kind != NAVIGATION and await context.held.settled(address, context.patience)

    async def add_links(self, links: Mapping[str, str], pictures: Iterable[str]) -> None:
        """Queue the links of the live document, and its pictures for other screens, that the crawl does not know.

        *links* have their texts, for hooks.
        """
        texts: dict[str, str] = {}
        for address, text in links.items():
            if text and (canonical := url.canonical(address)):
                texts.setdefault(canonical, text)
        found = ((Hop.REQUISITE, "browser:@srcset", pictures), (Hop.LINK, "browser:a/@href", links))
        for hop, context, addresses in found:
            named = dict.fromkeys(filter(None, map(url.canonical, addresses)))
            known = await self._context.frontier.states(named)
            new = [Link(each, hop, context) for each in named if each not in known]
            await self._queue(new, texts=texts if hop is Hop.LINK else NO_TEXTS)

    async def _queue(self, links: Iterable[Link], ask: Ask | None = None, texts: Mapping[str, str] = NO_TEXTS) -> bool:
        """Queue those of *links* that the rules of the crawl take; return True if there are any.

        *ask*: what a script sends; *texts*: of the links, by URL.
        """
        context, claim = self._context, self._due.claim
        rules, now = context.rules.visit_rules, context.clock.now()
        if rules.hooks is None:
            verdicts = [judged(rules, link, claim, now) for link in links]
        else:  # an answer takes a moment
            verdicts = await asyncio.to_thread(
                lambda: [judged_alone(rules, link, claim, now, texts.get(link.url, "")) for link in links]
            )
        refused = [each for each in verdicts if isinstance(each, Refusal) and each.url not in self._refused]
        if refused:
            self._refused.update(each.url for each in refused)
            await context.frontier.add_refused(claim, refused)
        found = [(each, claim.id) for each in verdicts if not isinstance(each, Refusal)]
        if not found:
            return False
        self.brought += await context.added.queue(context.frontier.add_viewed(found, ask))
        context.changed()
        return True

    async def still_waiting(self) -> set[str]:
        """Return the URLs asked for that are not settled."""
        states = await self._context.frontier.states(self.asked)
        return {address for address in self.asked if states.get(address) is State.WAITING}
