"""DNS look-ups: bounded, checked by the guard, cached, and recorded once.

The system's own resolver is used, because it knows /etc/hosts, local names and the resolver of each network. It cannot
be cancelled, so an unresponsive name server blocks a thread until the system gives up. Look-ups therefore run in
threads of their own, limited in total and per registered domain; some threads are reserved for names that were found
before. These threads do not keep the process alive.

Each answer is kept until one connection that it led to has reported it to the archive.
"""

import asyncio
import errno
import queue
import socket
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any

from archiver.errors import Failure, FetchError
from archiver.fetch.connection_errors import unresolved
from archiver.fetch.name_servers import Resolver, entry
from archiver.fetch.network import LONGEST_LOOK_UP, GivenAddresses, family_name
from archiver.fetch.private_networks import AddressGuard, ResolveResult
from archiver.model import Lookup

MOST = 128  # concurrent look-ups; each blocks a thread until the name server answers …
RESERVED = 32  # … and this many are reserved for names that were found before
PER_DOMAIN = 4  # concurrent look-ups for one registered domain
MAX_ADDRESSES = 8  # of a host that connections try

FAMILIES = (socket.AF_INET, socket.AF_INET6)
IPV6_PLACE = 4  # parts of an IPv6 address with its port: a Python without IPv6 gives raw bytes in place of an address
ONLY_USABLE = socket.AI_ADDRCONFIG & getattr(socket, "AI_MASK", ~0)

Domains = Callable[[], Callable[[str], str]]
Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class LookupThreads:
    """Runs blocking calls in daemon threads; close it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._idle = 0
        self._threads = 0

    def run(self, call: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Return a future of the result of *call*. Each concurrent call takes a thread."""
        done: asyncio.Future[Any] = self._loop.create_future()
        if self._idle:
            self._idle -= 1
        else:
            self._threads += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._jobs.put((call, done))
        return done

    def close(self) -> None:
        """End the idle threads; a busy one ends by itself."""
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, done = job
            try:
                report = partial(_fulfil, done, call())
            except BaseException as error:  # noqa: BLE001  raised where the result is awaited
                report = partial(_fail, done, error)
            with suppress(RuntimeError):  # the crawl is over, and its loop closed
                self._loop.call_soon_threadsafe(self._finished, report)
            del job, call, done, report

    def _finished(self, report: Callable[[], None]) -> None:
        self._idle += 1
        report()


def _fulfil(done: "asyncio.Future[Any]", result: Any) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[Any]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


class Lookups:
    """Limits concurrent look-ups. *load_domains* returns the function from a name to its registered domain."""

    def __init__(self, load_domains: Domains = lambda: str, longest: float = LONGEST_LOOK_UP) -> None:
        self._threads = LookupThreads("lookup")
        self._load_domains = load_domains
        self._domain_of: Callable[[str], str] | None = None
        self._longest = longest
        self._running: Counter[str] = Counter()  # by registered domain, once it is loaded
        self._tasks: set[asyncio.Future[Any]] = set()
        self._waiting: dict[asyncio.Future[None], tuple[str, bool]] = {}  # in order: (domain, found before)

    def domain_of(self, host: str) -> str:
        """Return the registered domain of *host*."""
        if self._domain_of is None:
            self._domain_of = self._load_domains()
        return self._domain_of(host)

    async def getaddrinfo(self, host: str, port: int, **options: Any) -> Any:
        """Do the same as `socket.getaddrinfo`."""
        return await self._threads.run(partial(socket.getaddrinfo, host, port, **options))

    async def getnameinfo(self, address: Any, flags: int = 0) -> Any:
        """Do the same as `socket.getnameinfo`."""
        return await self._threads.run(partial(socket.getnameinfo, address, flags))

    async def bounded(self, host: str, look_up: Callable[[], Any], *, known: bool, longest: float | None = None) -> Any:
        """Await the result of *look_up* for *host* within the limits; raise TimeoutError if no answer comes.

        *longest*: the seconds to wait once it runs, in place of the usual ones.
        """
        if self._running.total() >= PER_DOMAIN and self._domain_of is None:
            self._domain_of = await asyncio.to_thread(self._load_domains)
        domain = self._domain_of(host) if self._domain_of is not None else host
        if self._waiting or not self._fits(domain, known=known):
            await self._wait(domain, known=known)
        else:
            self._running[domain] += 1
        task = asyncio.ensure_future(look_up())
        self._tasks.add(task)
        task.add_done_callback(partial(self._over, domain))
        return await asyncio.wait_for(asyncio.shield(task), self._longest if longest is None else longest)

    async def close(self) -> None:
        """Cancel what can be cancelled, and end the idle threads."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.close()

    def _fits(self, domain: str, *, known: bool) -> bool:
        most = MOST if known else MOST - RESERVED
        return self._running.total() < most and self._running[domain] < PER_DOMAIN

    async def _wait(self, domain: str, *, known: bool) -> None:
        """Wait for a free place among the running look-ups, and take it."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[place] = domain, known
        self._let_run()
        try:
            await place
        except asyncio.CancelledError:
            if self._waiting.pop(place, None) is None:  # the place was granted at the same moment
                self._give_back(domain)
            raise

    def _let_run(self) -> None:
        for place, (domain, known) in [*self._waiting.items()]:
            if self._fits(domain, known=known):
                del self._waiting[place]
                self._running[domain] += 1
                place.set_result(None)

    def _give_back(self, domain: str) -> None:
        self._running[domain] -= 1
        self._running += Counter()  # remove zero counts
        self._let_run()

    def _over(self, domain: str, task: "asyncio.Future[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve it even if no one waits any more
        self._give_back(domain)


def routed() -> bool:
    """True if this machine has a route to the internet. Sends nothing."""
    for family, address in ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1")):  # RFC 5737, RFC 3849
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return True
    return False


MAX_KNOWN = 4096  # cached answers, each a name and a few addresses
TTL = 300.0  # seconds; the longest time that browsers cache an address

Key = tuple[str, int, int]  # host name, port, and family of addresses


class SharedLookup:
    """One look-up, which the first exchange that used it reports."""

    __slots__ = ("_lookup",)

    def __init__(self, lookup: Lookup) -> None:
        self._lookup: Lookup | None = lookup

    def take(self) -> Lookup | None:
        """Return the look-up; None from the second call on."""
        lookup, self._lookup = self._lookup, None
        return lookup


class SystemResolver:
    """The resolver of this machine, asked in the threads of *lookups*."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of *host*, of families that this machine has an address of; OSError without any."""
        options: dict[str, int] = {"type": socket.SOCK_STREAM, "family": family, "flags": ONLY_USABLE}
        try:
            found = await self._lookups.getaddrinfo(host, port, **options)
        except socket.gaierror:
            if sys.platform != "win32" or host.rstrip(".").lower() != "localhost":  # Windows knows it without a network
                raise
            found = await self._lookups.getaddrinfo(host, port, **options | {"flags": 0})
        addresses = [place for kind, _, _, _, place in found if kind in FAMILIES and isinstance(place[0], str)]
        return [entry(host, await self._spelled(place), port) for place in addresses]

    async def _spelled(self, place: tuple[Any, ...]) -> str:
        """Return the address in *place*, with its zone if it has one."""
        if len(place) == IPV6_PLACE and place[3]:
            name, _ = await self._lookups.getnameinfo(place, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
            return str(name)
        return str(place[0])

    async def close(self) -> None:
        """Do nothing: the threads belong to the look-ups."""


class GuardedResolver:
    """A resolver that returns only the addresses that the guard allows: those *given* by the user, or looked up."""

    def __init__(self, guard: AddressGuard, resolver: Resolver, given: GivenAddresses | None = None) -> None:
        self._guard = guard
        self._resolver = resolver
        self._given = given or GivenAddresses(())
        self._answers: OrderedDict[tuple[str, int], SharedLookup] = OrderedDict()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the allowed addresses of *host*."""
        if own := self._given.of(host, port):  # there is no look-up to record
            return self._chosen(host, [entry(host, each, port) for each in own], family)
        started = time.time_ns() // 1000
        found = await self._resolver.resolve(host, port, family)
        chosen = self._chosen(host, found, family)
        addresses = tuple(
            each["host"].partition("%")[0] for each in found
        )  # without the zone, which is local to this machine
        key = host.rstrip("."), port
        remember(self._answers, key, SharedLookup(Lookup(key[0], addresses, started)))
        return chosen

    def _chosen(self, host: str, found: list[ResolveResult], family: int) -> list[ResolveResult]:
        usable = [each for each in found if family in (socket.AF_UNSPEC, _family(each))]
        if not usable:
            raise OSError(errno.EADDRNOTAVAIL, f"{host} has no {family_name(family)} address")
        return interleaved(self._guard.choose(host, usable))[:MAX_ADDRESSES]

    def answer(self, host: str, port: int) -> SharedLookup | None:
        """Return the latest answer for *host*; None if it was not looked up."""
        return self._answers.get((host.rstrip("."), port))

    async def close(self) -> None:
        """Close the other resolver."""
        await self._resolver.close()


class RememberingResolver:
    """Caches the answers of another resolver and shares concurrent look-ups; close it.

    All look-ups go through *lookups*, which limits them.
    """

    def __init__(self, resolver: Resolver, lookups: Lookups) -> None:
        self._resolver = resolver
        self._lookups = lookups
        self._found: OrderedDict[Key, tuple[float, list[ResolveResult]]] = OrderedDict()  # with the time they expire
        self._asking: dict[Key, asyncio.Task[list[ResolveResult]]] = {}

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,
        longest: float | None = None,
    ) -> list[ResolveResult]:
        """Return the addresses of *host*, looked up within *longest* seconds if that is given."""
        key = host, port, int(family)
        until, found = self._found.get(key, (0.0, []))
        if time.monotonic() < until:
            return found
        task = self._asking.get(key)
        if task is None:  # a task of its own, as the first caller may be cancelled
            task = self._asking[key] = asyncio.create_task(self._ask(key, known=until > 0, longest=longest))
            task.add_done_callback(partial(self._asked, key))
        return await asyncio.shield(task)

    async def first(self, host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC) -> str:
        """Return the first address of *host*, "" if the answer is empty; raise `FetchError` if it does not resolve."""
        return next(iter(await self.addresses(host, port, family)), "")

    async def addresses(
        self, host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC, longest: float | None = None
    ) -> list[str]:
        """Return all addresses of *host*; raise `FetchError` if it does not resolve. *longest* is as in `resolve`."""
        try:
            found = await self.resolve(host, port, family, longest)
        except (OSError, UnicodeError) as error:
            raise FetchError(Failure.DNS, unresolved(host, error)) from error
        return [each["host"] for each in found]

    def forget(self) -> None:
        """Clear the cache."""
        self._found.clear()

    async def close(self) -> None:
        """Cancel all look-ups."""
        asking = [*self._asking.values()]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._lookups.close()
        await self._resolver.close()

    def _asked(self, key: Key, task: "asyncio.Task[Any]") -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # retrieve it even if no one waits any more

    async def _ask(self, key: Key, *, known: bool, longest: float | None) -> list[ResolveResult]:
        host, port, family = key
        look_up = partial(self._resolver.resolve, host, port, socket.AddressFamily(family))
        try:
            found: list[ResolveResult] = await self._lookups.bounded(host, look_up, known=known, longest=longest)
        except TimeoutError as error:
            raise OSError(errno.ETIMEDOUT, "no name server answers") from error
        remember(self._found, key, (time.monotonic() + TTL, found))
        return found


def remember(known: OrderedDict[Any, Any], key: Any, value: Any, most: int = MAX_KNOWN) -> None:
    """Put *key* at the end of *known*; forget the first key if there are more than *most*."""
    known.pop(key, None)
    known[key] = value
    if len(known) > most:
        known.popitem(last=False)


def interleaved(found: list[ResolveResult]) -> list[ResolveResult]:
    """Return *found* with IPv6 and IPv4 in turn, beginning with the family of the first (RFC 8305)."""
    first = [each for each in found if _family(each) == _family(found[0])]
    second = [each for each in found if _family(each) != _family(found[0])]
    return [each for pair in zip_longest(first, second) for each in pair if each is not None]


def _family(found: ResolveResult) -> int:
    return socket.AF_INET6 if ":" in found["host"] else socket.AF_INET
