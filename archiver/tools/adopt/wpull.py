"""Reads the SQLite database of wpull, and the files beside it by which grab-site is controlled.

The schemas: `queued_urls` and `url_strings` (wpull 2, ludios_wpull), `urls` and `url_strings` (wpull 1), and `urls`
with the URL itself (before that). The database is opened read-only and in batches. A `-wal` file holds the latest
changes; then both are copied first, because reading them in place would write there.

Source: wpull/database/sqlmodel.py; libgrabsite/main.py and wpull_hooks.py of grab-site.
"""

import re
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from archiver.config.option_types import LONGEST_PATTERN
from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedState, AdoptedUrl, hop_path
from archiver.frontier.database import connect_readonly, guard
from archiver.humanize import count
from archiver.storage import storage
from archiver.storage.temporary import temporary_folder
from archiver.tools.adopt.source import (
    AdoptedCrawl,
    SettingsTranslation,
    archives_in,
    first_line,
    read_text,
    whole_number,
)
from archiver.tools.adopt.wget import translate, written_by

NAME = "wpull.db"
BATCH = 1000  # rows of one query
LONGEST_URL = 64 << 10  # characters; longer values are read as none
MOST_COLUMNS = 100
MOST_LOOKED_AT = 10  # WARC files, for the command line
SQLITE = b"SQLite format 3\x00"
TRIED = 2  # times: a URL that wpull skipped after so many failed, others were refused by its filters

_STATES = {"done": AdoptedState.FETCHED, "todo": AdoptedState.WAITING, "in_progress": AdoptedState.WAITING}
_STATES["error"] = AdoptedState.WAITING  # wpull tries it again when nothing else waits
_TEXT = "CASE WHEN typeof({0}) = 'text' AND length({0}) <= {1} THEN {0} END"
_NUMBER = "CASE WHEN typeof({0}) = 'integer' THEN min(max({0}, -1), 1000000) END"


class LeftOut(NamedTuple):
    """The numbers of URLs in the database that are not taken over."""

    by_filters: int  # of wpull, or because there was no page
    posts: int  # their requests send something
    unreadable: int  # no text, or longer than any URL


class WpullDatabase:
    """The table of URLs in a database of wpull, of any version."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as db:
            self._query = _query(db, path)

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield every URL that wpull did not leave out by its filters."""
        for row in self._rows():
            state = _state(row)
            if state is not None:
                yield _adopted(row, state)

    def seeds(self) -> Iterator[str]:
        """Yield the URLs with which wpull began."""
        return (row[1] for row in self._rows("AND level = 0") if row[1] and row[2] in (None, row[1]) and not row[7])

    def left_out(self) -> LeftOut:
        """Return how many URLs `urls` does not yield."""
        counts = Counter(_why_not(row) for row in self._rows() if _state(row) is None)
        return LeftOut(counts["filters"], counts["post"], counts["unreadable"])

    def _rows(self, only: str = "") -> Iterator[Any]:
        with self._opened() as db:
            last = -1 << 62
            while rows := _fetched(db, self._query.format(only=only), (last, BATCH), self._path):
                yield from rows
                last = rows[-1][0]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        log = self._path.with_name(f"{self._path.name}-wal")
        with storage(self._path):
            if not (log.is_file() and log.stat().st_size):
                with closing(connect_readonly(self._path, at_rest=True)) as db:
                    yield _guarded(db, self._path)
                return
            with temporary_folder("adopt") as folder:
                copy = folder / NAME
                shutil.copyfile(self._path, copy)
                shutil.copyfile(log, copy.with_name(f"{NAME}-wal"))
                with closing(connect_readonly(copy)) as db:
                    yield _guarded(db, copy)


def _guarded(db: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        guard(db, path)
    except sqlite3.Error as error:
        raise ConfigError(f"{path}: not a database that SQLite can read: {error}") from None
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    return db


def _fetched(db: sqlite3.Connection, sql: str, values: tuple[object, ...], path: Path) -> list[Any]:
    try:
        return db.execute(sql, values).fetchall()
    except (sqlite3.Error, OverflowError) as error:
        raise ConfigError(
            f"{path}: it cannot be read to its end: {error}; to save what is whole: sqlite3 {shlex.quote(str(path))} "
            "'.recover' | sqlite3 new.db"
        ) from None


def _columns(db: sqlite3.Connection, table: str, path: Path) -> set[str]:
    """Return the columns of *table*; none if it is no ordinary table."""
    sql = "SELECT type, sql FROM sqlite_master WHERE name = ? AND length(sql) < 100000"
    found = _fetched(db, sql, (table,), path)
    if len(found) != 1 or found[0][0] != "table" or re.match(r"\s*CREATE\s+VIRTUAL", str(found[0][1]), re.IGNORECASE):
        return set()
    rows = _fetched(db, "SELECT name FROM pragma_table_info(?) LIMIT ?", (table, MOST_COLUMNS), path)
    return {str(name) for (name,) in rows}


def _query(db: sqlite3.Connection, path: Path) -> str:
    """Return the query for URLs behind an id: id, URL, parent, root, status, tries, level, requisite level, POST."""
    texts = {"id", "url"} <= _columns(db, "url_strings", path)
    for table, own, parent, root, inline in (
        ("queued_urls", "url_string_id", "parent_url_string_id", "root_url_string_id", "inline_level"),
        ("urls", "url_str_id", "referrer_id", "top_url_str_id", "inline"),
    ):
        columns = _columns(db, table, path)
        if texts and {"id", own, "status"} <= columns:
            joins = [f"JOIN url_strings AS own ON own.id = t.{own}"]
            names = ["own.url"]
            for alias, column in (("parent", parent), ("root", root)):
                if column in columns:
                    joins.append(f"LEFT JOIN url_strings AS {alias} ON {alias}.id = t.{column}")
                names.append(f"{alias}.url" if column in columns else "NULL")
            return _select(table, columns, names, " ".join(joins), inline)
    columns = _columns(db, "urls", path)
    if {"url", "status"} <= columns:
        names = [f"t.{name}" if name in columns else "NULL" for name in ("url", "referrer", "top_url")]
        return _select("urls", columns, names, "", "inline")
    raise ConfigError(f"{path}: an SQLite database, but not one of wpull: it has neither queued_urls nor urls")


def _select(table: str, columns: set[str], names: list[str], joins: str, inline: str) -> str:
    key = "t.id" if "id" in columns else "t.rowid"
    texts = [_TEXT.format(name, LONGEST_URL) for name in names]
    numbers = [_NUMBER.format(f"t.{name}") if name in columns else "0" for name in ("try_count", "level", inline)]
    post = "t.post_data IS NOT NULL AND t.post_data <> ''" if "post_data" in columns else "0"
    return (
        f"SELECT * FROM (SELECT {key} AS key, {texts[0]} AS url, {texts[1]} AS parent, {texts[2]} AS root, "  # noqa: S608
        f"CAST(t.status AS TEXT) AS status, {numbers[0]} AS tries, {numbers[1]} AS level, {numbers[2]} AS inline, "
        f"{post} AS post FROM {table} AS t {joins} WHERE {key} > ?) WHERE typeof(key) = 'integer' {{only}} "
        "ORDER BY key LIMIT ?"
    )


def _state(row: Any) -> AdoptedState | None:
    """Return what wpull made of the URL in *row*; None if its filters refused it, or it had no page."""
    _, address, _, _, status, tries, _, _, post = row
    if not address or post:
        return None
    if status == "skipped":
        return AdoptedState.FAILED if (tries or 0) >= TRIED else None
    return _STATES.get(status, AdoptedState.WAITING)


def _why_not(row: Any) -> str:
    """Return why the URL in *row* is left out."""
    return "unreadable" if not row[1] else "post" if row[8] else "filters"


def _adopted(row: Any, state: AdoptedState) -> AdoptedUrl:
    _, address, parent, root, _, tries, level, inline, _ = row
    requisites = max(inline or 0, 0)
    path = hop_path(max(level or 0, 0) - requisites, requisites)
    note = f"wpull gave up after {tries} tries" if state is AdoptedState.FAILED else ""
    return AdoptedUrl(address, state, path or "L", parent or "", root or "", note=note)


def wpull_crawl(path: Path) -> AdoptedCrawl:
    """Return the crawl whose database is at *path*, or in the folder *path*."""
    folder, database = (path, path / NAME) if path.is_dir() else (path.parent, path)
    if not database.is_file():
        raise ConfigError(f"{folder}: it has no {NAME}, the database of wpull and grab-site; name the database itself")
    queue = WpullDatabase(database)
    settings = SettingsTranslation()
    more = sum(not settings.seed(seed) for seed in queue.seeds())
    grab_site = (folder / "igsets").is_file() or (folder / "ignores").is_file()
    archives = archives_in(folder, (".warc", ".warc.gz", ".warc.zst", ".warc.gz.open"))
    words = next((found for archive in archives[:MOST_LOOKED_AT] if (found := written_by(archive).wpull)), ())
    if words:
        translate(words, settings)
    elif not grab_site:
        settings.note("options of wpull", "no WARC file beside the database holds them; archiver set DIR KEY=VALUE")
    if grab_site:
        _control_files(folder, settings, queue, known=bool(words))
    remarks = []
    if settings.settings().values.get("robots") == "ignore":
        remarks.append("robots.txt is ignored, as before; to obey it: archiver resume DIR --robots obey")
    left = queue.left_out()
    if left.by_filters:
        remarks.append(
            f"wpull skipped {count(left.by_filters, 'URL')}, by its filters or because there was no page: judged again "
            "by the settings here when the pages that name them are read"
        )
    if left.posts:
        remarks.append(f"{left.posts} of its URLs send a form (POST) and are left out; --browser auto may send them")
    if left.unreadable:
        remarks.append(f"{left.unreadable} entries of its queue are no text, or longer than a URL, and are left out")
    if more:
        remarks.append(f"{more} of its first URLs are no seeds here, because they are no http URLs or too many")
    return AdoptedCrawl(
        "grab-site" if grab_site else "wpull",
        settings.settings(),
        tuple(archives),
        queue.urls,
        tuple(remarks),
    )


_LISTS = {"forums": "forums", "blogs": "blogs", "mediawiki": "wikis"}


def _control_files(folder: Path, settings: SettingsTranslation, queue: WpullDatabase, *, known: bool) -> None:
    """Translate the files by which grab-site is controlled; *known*: its options are."""
    begun = list(_primary(folder, queue))
    patterns = (line for line in read_text(folder / "ignores").splitlines() if line and not line.startswith("# "))
    settings.exclude((_with_primary(pattern, begun) for pattern in patterns), "ignores")
    for name in filter(None, (name.strip() for name in first_line(read_text(folder / "igsets")).split(","))):
        if name == "global":
            settings.put("without", "trackers,share-links", "igsets: global")
            settings.note("igsets: global", "trackers and share links are excluded; traps are found by their content")
        elif name in _LISTS:
            settings.put("without", _LISTS[name], f"igsets: {name}")
        else:
            settings.note(f"igsets: {name}", "no such list here; put its patterns into exclude of crawl.toml")
    _delay(first_line(read_text(folder / "delay")), settings)
    if (number := whole_number(read_text(folder / "concurrency"))) is not None:
        settings.put("host-concurrency", max(number, 1), f"concurrency: {number}")
    if (number := whole_number(read_text(folder / "max_content_length")) or -1) > 0:
        settings.put("max-response-size", number, f"max_content_length: {number}")
        settings.note(f"max_content_length: {number}", "longer responses are cut and marked, not skipped")
    if not (folder / "video").exists():
        settings.put("exclude-type", "video/*", "no file video")
    if not (folder / "scrape").exists():
        settings.note("no file scrape", "links of new pages are followed; archiver set DIR max-depth=0 stops that")
    if not known:
        settings.put("extra-hops", 1, "offsite links")
        settings.note("--offsite-links", "its default, extra-hops = 1, is set: no WARC file has its command line")
        settings.put("robots", "ignore", "--no-robots")
    if (cookies := folder / "cookies.txt").is_file():
        settings.note(
            "cookies.txt", f"to send these cookies: archiver resume DIR --load-cookies {shlex.quote(str(cookies))}"
        )


def _primary(folder: Path, queue: WpullDatabase) -> Iterator[str]:
    """Yield the first URLs, to which patterns may refer."""
    lines = read_text(folder / "all_start_urls").split() or [first_line(read_text(folder / "start_url"))]
    found = [line for line in lines if line.startswith(("http:", "https:"))]
    yield from found[:10] if found else (seed for _, seed in zip(range(10), queue.seeds(), strict=False))


def _with_primary(pattern: str, begun: list[str]) -> str:
    """Return *pattern* with its placeholders replaced."""
    if "{primary_" not in pattern:
        return pattern
    hosts = dict.fromkeys(address.partition("://")[2].partition("/")[0] for address in begun)
    for word, values in (("{primary_url}", begun), ("{primary_netloc}", list(hosts))):
        any_of = f"(?:{'|'.join(map(re.escape, values))})"
        most = LONGEST_PATTERN // len(any_of) + 1  # with more, the pattern is refused all the same
        pattern = pattern.replace(word, any_of, most)
    return pattern


def _delay(text: str, settings: SettingsTranslation) -> None:
    """Translate the pause between two requests, in milliseconds, fixed or between two bounds."""
    found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    if not found:
        return
    longest = int(found[2] or found[1])
    if longest:
        settings.put("rate", f"1/{longest / 1000:g}", f"delay: {text}")
    else:
        settings.note("delay: 0", "the rate here stays 5 requests a second for each host; archiver set DIR rate=N")
    if found[2]:
        settings.note(f"delay: {text}", "requests are spaced evenly, by the longest of these pauses")
