"""The hooks of one crawler: what it asks them, and what becomes of their answers.

Each method returns what the usual rules would do if a hook fails, takes too long or ends its process. An error is told
once, and the URL it concerned has a note. A function that fails `MOST_LOST` times in a row in a way that costs time is
not asked again in this run.
"""

import ast
import asyncio
import hashlib
import json
import logging
import threading
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archiver import url
from archiver.clock import Clock
from archiver.collection.layout import Layout
from archiver.collection.named_files import strangers
from archiver.config.hook_settings import HookFile, HookSettings
from archiver.config.host_rules import HOST_RULE, MATCH, HostRule
from archiver.config.settings import Settings
from archiver.config.tls import KEYS_WITH_FILES
from archiver.crawl.hooks.plugins import InstalledExtractor, extractors
from archiver.crawl.hooks.process import HookProcessError, HookProcesses, limited
from archiver.crawl.hooks.values import FUNCTIONS, HookDocument, HookExchange, HookPage
from archiver.crawl.hooks.worker import EXTRACTOR
from archiver.errors import ConfigError
from archiver.extract.exchange import charset, is_robots, payload
from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.sqlite import SqliteFrontier
from archiver.http.body import UnreadReason, unread_reason
from archiver.http.head import body_length
from archiver.humanize import count, printable
from archiver.model import Claim, Exchange, Framing, Hop, Link, Links

LARGEST = 1 << 20  # bytes of the file
MOST_READ = 8 << 20  # bytes of a document that hooks get
MOST_LOST = 10  # failures in a row that cost time: then a function is not asked again
MOST_TOLD = 20  # different errors of one function that are told
FAILED = "hook {} failed: {}"  # the note of a URL
HOOK = "hook: judge"  # the rule of a link that a hook refuses
STOPPING = "stopping: no request starts; those under way end"  # the answer to the order
NOT_FOR_HOOKS = frozenset(("auth", "header", "proxy", "source-address", *KEYS_WITH_FILES))  # secrets, files, addresses
_OPAQUE = ("image/", "video/", "audio/", "font/")

log = logging.getLogger(__name__)


def pinned(given: HookFile) -> tuple[HookFile, bytes]:
    """Return *given* with the digest of its file, and the file's bytes. Raises `ConfigError` if it has changed."""
    named = f"--hooks {printable(given.path, 1000)}"
    try:
        with Path(given.path).open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(
            f"{named}: cannot be read: {error.strerror}; put it back, name another one with --hooks FILE, or go on "
            "without: --hooks none"
        ) from None
    if len(text) > LARGEST:
        raise ConfigError(f"{named}: it is larger than {LARGEST >> 20} MiB; name a file of Python functions")
    digest = hashlib.sha256(text).hexdigest()
    if given.digest and given.digest != digest:
        raise ConfigError(
            f"{named}: it has changed since it was named for this crawl (its SHA-256 was {given.digest[:12]}…, and is "
            f"{digest[:12]}…); put the old one back, or name the new one: {named}"
        )
    return replace(given, digest=digest), text


def written_functions(given: HookFile, text: bytes) -> dict[str, int]:
    """Return the hooks that the file *given*, which holds *text*, defines, imports or assigns, with their lines.

    The file is not run. Raises `ConfigError` if it is no Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        named = printable(given.path, 1000)
        raise ConfigError(f"--hooks {named}: it is no Python: {printable(str(error), 300)}") from None
    lines: dict[str, int] = {}
    for node in _outside_functions(tree.body):
        names = list[str]()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.ImportFrom):
            names = [each.asname or each.name for each in node.names]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        lines |= {name: node.lineno for name in names if name in FUNCTIONS}
    return {name: lines[name] for name in FUNCTIONS if name in lines}


def _outside_functions(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of *body*, and those in its branches, but not those of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for branch in ("body", "handlers", "orelse", "finalbody"):
                yield from _outside_functions(getattr(node, branch, ()))


@dataclass(frozen=True, slots=True)
class HookSource:
    """What a crawler needs to run hooks. All processes of a run have the same."""

    file: HookFile | None
    text: bytes
    extractors: tuple[InstalledExtractor, ...]
    seconds: float

    @classmethod
    def of(cls, settings: HookSettings) -> "HookSource | None":
        """Return what *settings* and installed programs give; None if that is nothing. Raises `ConfigError`."""
        found = extractors(settings)
        if settings.hooks is None:
            return cls(None, b"", found, settings.hook_timeout) if found else None
        file, text = pinned(settings.hooks)
        return cls(file, text, found, settings.hook_timeout)


class Hooks:
    """Asks the hooks of one crawler; any thread may call it."""

    def __init__(self, source: HookSource) -> None:
        """Start a process for *source*. Raises `ConfigError` if its file cannot be used."""
        self.source = source
        path = "" if source.file is None else source.file.path
        plugins = tuple((each.media_type, each.value) for each in source.extractors)
        try:
            self._processes = HookProcesses(limited(source.seconds, path, source.text, plugins))
        except HookProcessError as error:
            raise ConfigError(f"--hooks {printable(path, 1000)}: {printable(str(error), 500)}") from None
        self._functions = self._processes.functions
        if path and not self._functions:
            self._processes.close()
            raise ConfigError(
                f"--hooks {printable(path, 1000)}: it has no hook; write a function judge, links, keep or settings"
            )
        self.answers: dict[str, HostRule | None] | None = {} if "settings" in self._functions else None  # by origin
        self._thread = ThreadPoolExecutor(1, "hooks")
        self._lock = threading.Lock()
        self._told: set[tuple[str, str]] = set()
        self._failures: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()  # in a row
        self._off: set[str] = set()  # functions that are not asked any more
        self._stopped: asyncio.Future[str] | None = None
        self._stop = ""

    def close(self) -> None:
        """End all processes, and say how often functions have failed."""
        self._thread.shutdown()
        self._processes.close()
        for name, times in self._failures.items():
            log.warning("hook %s failed %s in this run", printable(name, 100), count(times, "time"))

    @property
    def judges(self) -> bool:
        """True if there is a function `judge`, which gets the texts of links."""
        return "judge" in self._functions

    def judge(self, claim: Claim, links: Links) -> tuple[dict[tuple[str, Hop], bool], str]:
        """Return which of *links*, found in the document of *claim*, a hook takes (True) or refuses, and its error."""
        if not self._asks("judge") or not links.links or is_robots(claim):
            return {}, ""
        texts = links.texts
        asked = [(link.url, link.hop.value, link.context, texts.get(link[:2], "")) for link in links.links]
        letters, failed = self._asked("judge", ("judge", _page(claim), asked))
        given = zip(links.links, letters or "", strict=False)
        return {(link.url, link.hop): letter == "y" for link, letter in given if letter != "-"}, failed

    def further(self, claim: Claim, exchange: Exchange, links: Links) -> Links:
        """Return *links* and those that the hook and the extractors find in the document of *exchange*."""
        framing = exchange.framing
        readers = [*self._readers(framing.media_type)] if 200 <= framing.status < 300 else []
        if not readers or is_robots(claim) or unread_reason(exchange.notes):
            return links
        body, _ = payload(exchange, MOST_READ + 1)
        page, whole = _page(claim), len(body) <= MOST_READ and exchange.truncated is None
        document = HookDocument(claim.url, framing.media_type, charset(framing) or "", body[:MOST_READ], whole, page)
        added, notes = {(link.url, link.hop): link for link in links.links}, [links.note]
        for name, reader in readers:
            found, failed = self._asked(name, ("links", document, reader))
            notes.append(failed)
            for link in _links(claim.url, found or ()):
                added.setdefault((link.url, link.hop), link)
        return replace(links, links=tuple(added.values()), note="; ".join(filter(None, notes)))

    def _readers(self, media_type: str) -> Iterator[tuple[str, str]]:
        """Yield names of the functions that read documents of *media_type*: for messages, and for the process."""
        for each in self.source.extractors:
            if each.reads(media_type) and (name := f"{EXTRACTOR}{each.media_type}") not in self._off:
                yield name, each.media_type
        if self._asks("links") and not media_type.startswith(_OPAQUE):
            yield "links", "links"

    def _asks(self, name: str) -> bool:
        return name in self._functions and name not in self._off

    async def keep(self, address: str, framing: Framing) -> str:
        """Return why the body of a response with this head is not read; "" if it is."""
        if not self._asks("keep"):
            return ""
        size = body_length(framing.fields).size
        asked = HookExchange(address, framing.status, framing.media_type, size, framing.fields)
        loop = asyncio.get_running_loop()
        letter, _ = await loop.run_in_executor(self._thread, self._asked, "keep", ("keep", asked))
        return f"{UnreadReason.HOOK}:keep" if letter == "n" else ""

    async def learn(self, origins: Iterable[str]) -> None:
        """Ask for the settings of those of *origins* that are new; the answers hold for this run."""
        answers = self.answers
        new = [origin for origin in origins if origin not in answers] if answers is not None else []
        if answers is None or not new:
            return
        given, loop = None, asyncio.get_running_loop()
        if self._asks("settings"):
            hosts = [url.host(f"{origin}/") for origin in new]
            asked = "settings", hosts
            given, _ = await loop.run_in_executor(self._thread, self._asked, "settings", asked, len(hosts))
        texts = given if isinstance(given, list) else [""] * len(new)
        answers.update(zip(new, map(self._rule, new, texts), strict=True))

    def _rule(self, origin: str, text: str) -> HostRule | None:
        table = json.loads(text) if text else {}
        if wrong := sorted(NOT_FOR_HOOKS & table.keys()):
            table, wrongly = {}, f"a hook cannot set {wrong[0]}, for it may name a secret or a file; use --host"
        else:
            wrongly = ""
        try:
            rule = HOST_RULE.parse({**table, MATCH: origin}) if table else None
        except ConfigError as error:
            rule, wrongly = None, str(error)
        if wrongly:
            self._tell("settings", f"{url.host(f'{origin}/')}: {wrongly}", 1)
        return rule

    def _asked(self, name: str, question: tuple[Any, ...], functions: int = 1) -> tuple[Any, str]:
        """Return the answer of the hook *name*, None if there is none, and the note for its URL if it failed."""
        try:
            with self._processes.one() as process:
                answer = process.ask(question[0], question[1:], functions)
        except HookProcessError as error:
            self._tell(name, str(error), 1)
            self._lose(name)
            return None, FAILED.format(name, error)
        failed = ""
        for function, text, times, late in answer["errors"]:
            self._tell(function, text, times)
            failed = failed or FAILED.format(function, text)
            if late:
                self._lose(function)
        if not any(late for _, _, _, late in answer["errors"]):
            self._lost.pop(name, None)
        if answer["stop"] is not None:
            self._end("{}: {}".format(*answer["stop"]))
        return answer["value"], printable(failed, 500)

    def _tell(self, name: str, text: str, times: int) -> None:
        with self._lock:
            self._failures[name] += times
            new = (name, text) not in self._told and sum(known == name for known, _ in self._told) < MOST_TOLD
            if new:
                self._told.add((name, text))
        if new:
            log.warning("hook %s failed: %s; the usual rules decide", printable(name, 100), printable(text, 500))

    def _lose(self, name: str) -> None:
        self._lost[name] += 1
        if self._lost[name] == MOST_LOST:
            self._off.add(name)
            log.warning("hook %s is not asked again in this run: it failed %d times in a row", name, MOST_LOST)

    def _end(self, reason: str) -> None:
        with self._lock:
            first, self._stop = not self._stop, self._stop or reason
        if first and self._stopped is not None:
            waiting = self._stopped
            with suppress(RuntimeError):  # the crawl has just ended
                waiting.get_loop().call_soon_threadsafe(_settle, waiting, reason)

    @asynccontextmanager
    async def ending(self, stop: Callable[[str], None], layout: Layout, clock: Clock) -> AsyncIterator[None]:
        """If a hook says so while the block runs, *stop* this crawler, and order all of *layout* to stop."""
        self._stopped = asyncio.get_running_loop().create_future()
        if self._stop:
            self._stopped.set_result(self._stop)
        task = asyncio.create_task(self._order_stop(self._stopped, stop, layout, clock))
        try:
            yield
        finally:
            if not self._stopped.done():
                task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _order_stop(
        self, stopped: "asyncio.Future[str]", stop: Callable[[str], None], layout: Layout, clock: Clock
    ) -> None:
        who = f"the hook {printable(await stopped, 300)}"
        stop(who)
        async with await SqliteFrontier.open(layout.database) as frontier:  # as a command does, so all crawlers see it
            await frontier.give_order(NewOrder(Verb.STOP, (), who, clock.now()), STOPPING)


async def opened_hooks(stack: AsyncExitStack, source: HookSource | None) -> Hooks | None:
    """Return the hooks that *source* gives, if any; *stack* closes them. Raises `ConfigError`."""
    if source is None:
        return None
    hooks = await asyncio.to_thread(Hooks, source)
    stack.callback(hooks.close)
    return hooks


def check_vouched(layout: Layout, settings: HookSettings) -> None:
    """Refuse a file of hooks that this user has not named for the collection in *layout*."""
    given = settings.hooks
    if given is not None and strangers(layout, [f"hooks {given}"]):
        raise ConfigError(
            f"{layout.settings}: hooks: you have not named {printable(given.path, 1000)} for this collection on this "
            f"machine, and it would run as your program; if you trust it: archiver resume DIR --hooks FILE; otherwise "
            "delete it from the file"
        )


@contextmanager
def vouched_hooks(layout: Layout, settings: Settings) -> Iterator[Hooks | None]:
    """Yield the hooks of the collection in *layout*; its file runs only if this user named it for the collection."""
    check_vouched(layout, settings.hooks)
    with hooks_of(settings) as hooks:
        yield hooks


@contextmanager
def hooks_of(settings: Settings) -> Iterator[Hooks | None]:
    """Yield the hooks of a crawl with *settings*, None if there are none. Raises `ConfigError`."""
    source = HookSource.of(settings.hooks)
    if source is None:
        yield None
        return
    hooks = Hooks(source)
    try:
        yield hooks
    finally:
        hooks.close()


def _settle(waiting: "asyncio.Future[str]", reason: str) -> None:
    if not waiting.done():
        waiting.set_result(reason)


def _page(claim: Claim) -> HookPage:
    return HookPage(claim.url, claim.seed or claim.url, claim.depth, claim.path, claim.via or "")


def _links(base: str, found: Iterable[Sequence[str]]) -> Iterator[Link]:
    """Yield the links that are URLs which can be fetched."""
    for reference, hop, context in found:
        if address := url.join(base, reference):
            yield Link(address, Hop(hop), context or "hook")
