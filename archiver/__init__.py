"""archiver: archives a website into WARC files, loses no byte and hurts no site.

Begin with `model` (the values that travel through a crawl), then `crawl.engine` (what happens to one URL).
docs/architecture.md is the map; docs/reading-order.md names the files to read before a change.

`model`, `url`, `errors`, `storage`, `clock`, `humanize`: values, URLs, errors, durable files, time, text for people.
`config`: every setting.  `http`, `warc`: message and record formats.  `policy`: decisions, pure.  `extract`: links.
`fetch`: one exchange with a server.  `frontier`: URL queue and seen-set in SQLite.  `collection`: the directory.
`crawl`: engine, commit, recovery.  `tools`: verify, pack, import, export, report, replay.  `cli`: the commands.
Other programs may use the names in `__all__`, which are in `cli.library` and `crawl.hooks.values`. The rest is not
public.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archiver.cli.library import (
        ArchivedCapture,
        ArchivedResponse,
        Captured,
        CrawlResult,
        CrawlRun,
        OpenArchive,
        QueuedUrl,
        archive,
    )
    from archiver.cli.library import open as open  # noqa: A004 - as gzip.open: always used as archiver.open
    from archiver.crawl.hooks.values import HookDocument, HookExchange, HookLink, HookPage, HookStop
    from archiver.errors import ArchiveError, ConfigError

__all__ = [
    "ArchiveError",
    "ArchivedCapture",
    "ArchivedResponse",
    "Captured",
    "ConfigError",
    "CrawlResult",
    "CrawlRun",
    "HookDocument",
    "HookExchange",
    "HookLink",
    "HookPage",
    "HookStop",
    "OpenArchive",
    "QueuedUrl",
    "archive",
    "open",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what is public when it is used first: the commands need none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("Hook"):
        from archiver.crawl.hooks import values  # noqa: PLC0415 - only hooks need it

        return getattr(values, name)
    from archiver.cli import library  # noqa: PLC0415 - slow to import, and the commands need none of it

    return getattr(library, name)
