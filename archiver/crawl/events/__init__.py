"""The events of a crawl: noted as they happen, and delivered. A crawl without `--on` imports nothing but this file."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.config.settings import Settings

if TYPE_CHECKING:
    from archiver.crawl.secrets import Secrets
    from archiver.frontier.events.notes import ReadResult
    from archiver.frontier.sqlite import SqliteFrontier


def note_events(
    frontier: "SqliteFrontier", settings: Settings, directory: Path, result: "ReadResult | None" = None
) -> None:
    """Let *frontier* write down the events of the crawl in *directory* that *settings* ask for.

    *result* reads what the event of the end holds of the report.
    """
    if settings.events.on:
        from archiver.crawl.events.delivering import event_notes  # noqa: PLC0415 - most crawls need none

        frontier.note_events(event_notes(settings, directory, result))


async def report_events(
    stack: AsyncExitStack,
    frontier: "SqliteFrontier",
    settings: Settings,
    secrets: "Secrets",
    directory: Path,
    result: "ReadResult | None",
) -> None:
    """Do the same, and deliver events until *stack* ends."""
    note_events(frontier, settings, directory, result)
    if settings.events.on:
        from archiver.crawl.events.delivering import delivering  # noqa: PLC0415 - most crawls need none

        await stack.enter_async_context(delivering(frontier, settings, secrets))
