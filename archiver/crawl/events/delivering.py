"""Delivers events while a crawl runs, and what is left afterwards.

Each receiver has a task of its own, so a slow one delays no other, and no part of the crawl waits for any of them. The
database says what is still to be delivered, so a crash loses nothing: what was not written down as delivered is sent
again, with the same id. Of several processes only the supervisor delivers.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.config.event_settings import Receiver
from archiver.config.settings import Settings
from archiver.crawl.events.attempts import EventAttempts
from archiver.crawl.secrets import Secrets, read_secrets
from archiver.errors import ArchiveError
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.webhook import key_of
from archiver.frontier.address import host_name
from archiver.frontier.events import deliveries
from archiver.frontier.events.deliveries import DELIVERED, EVERY_RUN, GIVEN_UP, DueDelivery, TryResult
from archiver.frontier.events.notes import EventCrawl, EventNotes, ReadResult, no_result
from archiver.frontier.sqlite import SqliteFrontier

LOOK_EVERY = 1.0  # seconds
AFTERWARDS = 60.0  # seconds, in which no further try begins once they are over

log = logging.getLogger(__name__)


class WithAttempts(NamedTuple):
    """A receiver, its name in the database, and what delivers to it."""

    receiver: Receiver
    key: str
    attempts: EventAttempts


class Sent(NamedTuple):
    """The numbers of deliveries."""

    delivered: int
    given_up: int
    left: int


def event_notes(settings: Settings, directory: Path, result: ReadResult | None = None) -> EventNotes:
    """Return what writes the events down that *settings* ask for; *result* reads what the event of the end holds."""
    return EventNotes(settings.events.on, EventCrawl(directory.absolute().name, host_name(), result or no_result))


def attempts_of(settings: Settings, secrets: Secrets, machine: str) -> list[WithAttempts]:
    """Return the receivers of *settings*, each target once."""
    source = settings.events.on_secret
    key = b"" if source is None else key_of(secrets[source])
    found: dict[str, WithAttempts] = {}
    for each in settings.events.on:
        guard = AddressGuard(settings.fetch.allow_private, (each.target,) if each.is_address else ())
        found.setdefault(each.target, WithAttempts(each, each.key(machine), EventAttempts(each, key, guard)))
    return list(found.values())


@asynccontextmanager
async def delivering(frontier: SqliteFrontier, settings: Settings, secrets: Secrets) -> AsyncIterator[None]:
    """Deliver events while the block runs; then tries that are under way end, but no other begins."""
    stop = asyncio.Event()
    receivers = attempts_of(settings, secrets, frontier.machine)
    tasks = [asyncio.create_task(_keep(frontier, each, stop)) for each in receivers]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def _keep(frontier: SqliteFrontier, to: WithAttempts, stop: asyncio.Event) -> None:
    """Deliver to one receiver. The end of this run is left for later, when all files are closed."""
    while not stop.is_set():
        try:
            run = await frontier.read_events(deliveries.run)
            due = await frontier.read_events(deliveries.next_delivery, to.key, run)
            if due is not None and due.due <= time.time():
                await _try(frontier, to, due)
                continue
        except ArchiveError as error:  # the crawl will find out itself
            log.warning("events for %s wait: %s", to.receiver.name, error)
            return
        except Exception:  # a bug here must not end the crawl
            log.exception("events for %s wait", to.receiver.name)
            return
        try:
            async with asyncio.timeout(LOOK_EVERY):
                await stop.wait()
        except TimeoutError:
            continue


async def _try(frontier: SqliteFrontier, to: WithAttempts, due: DueDelivery) -> str:
    """Try a delivery, write down what came of it, and return its new state."""
    result = await to.attempts.deliver(due.body)
    state = await frontier.change_events(deliveries.note_try, due, to.key, result, time.time())
    if state == DELIVERED:
        log.info("%s: told %s (%s)", due.kind, to.receiver.name, result.text)
    elif state == GIVEN_UP:
        log.warning("%s: gave up telling %s: %s", due.kind, to.receiver.name, result.text)
    else:
        wait = max(deliveries.pause(due.tries), result.wait)
        log.warning("%s: cannot tell %s, next try in %.0f s: %s", due.kind, to.receiver.name, wait, result.text)
    return state


async def send_left(directory: Path, settings: Settings) -> Sent:
    """Try every delivery that is left once, even if it is not due; a receiver that fails gets no more.

    Raises `ConfigError` if another process works in *directory*.
    """
    layout = Layout(directory)
    with Lock(layout.lock):
        async with await SqliteFrontier.open(layout.database) as frontier:
            receivers = attempts_of(settings, read_secrets(settings), frontier.machine)
            end = time.monotonic() + AFTERWARDS
            states = await asyncio.gather(*(_send(frontier, each, end) for each in receivers))
            left = await frontier.read_events(deliveries.number_left)
    every: Sequence[str] = [state for some in states for state in some]
    return Sent(every.count(DELIVERED), every.count(GIVEN_UP), left)


async def send_test(directory: Path, settings: Settings, message: str) -> list[tuple[str, TryResult]]:
    """Send an event `test` to every receiver; return their names and what came of it. Nothing is written down."""
    receivers = attempts_of(settings, read_secrets(settings), "")
    body = event_notes(settings, directory).test_body(message)
    results = await asyncio.gather(*(each.attempts.deliver(body) for each in receivers))
    return [(each.receiver.name, result) for each, result in zip(receivers, results, strict=True)]


async def _send(frontier: SqliteFrontier, to: WithAttempts, end: float) -> list[str]:
    states: list[str] = []
    while time.monotonic() < end:
        due = await frontier.read_events(deliveries.next_delivery, to.key, EVERY_RUN)
        if due is None:
            break
        states.append(await _try(frontier, to, due))
        if states[-1] not in (DELIVERED, GIVEN_UP):
            break
    return states
