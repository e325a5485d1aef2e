"""The settings of a crawl on several machines: one text in the database, by which all of them crawl.

crawl.toml of each machine holds them too, its secrets, and what machines need not have in common. A machine
that continues the crawl takes up what others have changed. A change made here counts for all, if no other crawls.
"""

import asyncio
from typing import Any

from archiver.collection.layout import Layout
from archiver.config.secret_settings import in_common, left_out, on_this_machine
from archiver.config.settings import Settings, with_values
from archiver.config.toml import parse, render
from archiver.errors import ConfigError
from archiver.frontier.address import shared_frontier, write_address
from archiver.frontier.port import Frontier, SharedSettings
from archiver.humanize import printable

SOURCE = "the settings in the database"


def settings_for_others(address: str) -> SharedSettings:
    """Return the settings of the crawl at *address*. Raises `ConfigError` if no further machine can join it.

    A crawl that logs in or runs on Windows keeps its settings to itself.
    """
    from archiver.frontier import postgres_reading  # noqa: PLC0415 - an extra, which only such a crawl needs

    shared = postgres_reading.settings_of(address)
    if not shared.text and postgres_reading.holds_crawl(address):
        raise ConfigError(
            f"{address} holds a crawl that no further machine can join: with --login or on Windows it runs on one "
            "machine only, and after a rebuild it must be continued there first: archiver resume DIR"
        )
    if not shared.text:
        raise ConfigError(f"{address} holds no crawl that a further machine can join")
    return shared


def check_runs_alone(layout: Layout, settings: Settings) -> None:
    """Refuse to log in or to show pages in a crawl of several machines.

    Each would need the session, and all WARC files.
    """
    known, shown = shared_frontier(layout.database), settings.browser.browser
    hooks = settings.hooks.hooks is not None
    if known is None or not (settings.fetch.login or shown != "off" or hooks):
        return
    from archiver.frontier.postgres_reading import machines_of  # noqa: PLC0415 - see above

    if others := [name for name in machines_of(known.address) if name != known.machine]:
        crawled = f"runs on one machine, and {printable(', '.join(others), 200)} crawled too"
        if settings.fetch.login:
            raise ConfigError(
                f"--login: a crawl that logs in {crawled}; leave it out here, and archive what is behind the login "
                "with a crawl of its own"
            )
        if hooks:
            raise ConfigError(f"--hooks: a crawl with hooks {crawled}; continue it without: --hooks none")
        raise ConfigError(
            f"--browser {shown}: a crawl that shows pages {crawled}; crawl with --browser off, and run archiver look "
            "--fetch on each machine at the end"
        )


def settings_to_join(shared: SharedSettings, named: dict[str, Any], given: dict[str, Any]) -> Settings:
    """Return the settings for a further machine.

    *named*: those in a file that the user names, perhaps with secrets. *given*: these, and the options.
    """
    values = {**parse(shared.text, SOURCE), **named}
    missing = left_out(with_values(Settings(), values))
    if missing != shared.secrets:
        raise ConfigError(
            f"the crawl sends secrets that the database does not hold ({printable(shared.secrets, 200)}); copy "
            "crawl.toml from a machine of the crawl, and name it: --config crawl.toml"
        )
    settings = with_values(Settings(), {**values, **given})
    if settings.hooks.hooks is not None:
        raise ConfigError(
            f"{settings.limits.frontier} holds a crawl that no further machine can join: with --hooks it runs on one "
            "machine only; to let others in, continue it there without: archiver resume DIR --hooks none"
        )
    if (shown := settings.browser.browser) != "off":  # a view is answered from all WARC files of the crawl
        raise ConfigError(
            f"{settings.limits.frontier} holds a crawl that no further machine can join: with --browser {shown} it "
            "runs on one machine only; to let others in, continue it there without: archiver resume DIR --browser off"
        )
    return settings


def newest_settings(layout: Layout, own: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the crawl that other machines may have changed; *own* are those in crawl.toml."""
    known = shared_frontier(layout.database)
    if known is None:
        return own
    from archiver.frontier.postgres_reading import settings_of  # noqa: PLC0415 - an extra, which only such a crawl needs

    shared = settings_of(known.address)
    if not shared.text or shared.revision == known.revision:
        return own  # which somebody may have changed by hand
    common, ours = parse(shared.text, SOURCE), with_values(Settings(), own)
    if in_common(with_values(Settings(), common)) == in_common(ours) and left_out(ours) == shared.secrets:
        return own
    if shared.secrets:
        raise ConfigError(
            f"{layout.settings}: the settings have changed on another machine, and the database does not hold "
            f"{printable(shared.secrets, 200)}; copy crawl.toml from there"
        )
    return on_this_machine(common, own)


async def agree_on_settings(layout: Layout, frontier: Frontier, settings: Settings) -> None:
    """Let *settings* be those of all machines. Raises `ConfigError` if others crawl with different ones at present."""
    revision, text, secrets = await frontier.settings()
    ours, own_secrets, known = in_common(settings), left_out(settings), shared_frontier(layout.database)
    same = text and in_common(with_values(Settings(), parse(text, SOURCE))) == ours
    if not same or secrets != own_secrets:
        if await frontier.others_run():
            raise ConfigError(
                f"{layout.settings}: crawlers on other machines run with other settings; stop them first, or leave out "
                "what you have changed"
            )
        revision = await frontier.put_settings(render(ours), revision, own_secrets)
    if known is not None and known.revision != revision:
        await asyncio.to_thread(write_address, layout.database, known.address, known.machine, revision)
