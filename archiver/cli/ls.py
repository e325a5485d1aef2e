"""`archiver ls`: the captures of a collection, one on each line, as fast as the reader takes them."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from archiver.cli.get import open_holdings, readable, spelled
from archiver.cli.terminal import results, say
from archiver.collection.dates import date_range
from archiver.collection.lookup import Holdings, names
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable, volume
from archiver.model import ExitCode
from archiver.warc.cdxj import IndexEntry, is_revisit
from archiver.warc.members import DamagedRecord

LONGEST = 20_000  # characters of a URL
_DOMAIN = re.compile(r"\*\.([^\s/*?#]+)(?:/\*?)?")  # as pywb has it: *.example.org
_STATUS = re.compile(r"[1-9](?:[0-9]{2}|xx)|-", re.IGNORECASE | re.ASCII)
_TYPE = re.compile(r"[^\s/]+/[^\s/]+|unk", re.ASCII)


@dataclass(frozen=True, slots=True)
class LsQuery:
    """Which captures, and how; what is empty does not choose."""

    url: str | None
    host: tuple[str, ...]
    types: tuple[str, ...]
    statuses: tuple[str, ...]
    from_: str | None
    to: str | None
    as_json: bool


def ls(directory: Path, wish: LsQuery) -> ExitCode:
    """List the captures in *directory* that *wish* names."""
    chosen = _Choice(wish)
    count = size = revisits = others = 0
    with open_holdings(directory) as holdings:

        def lines() -> Iterator[str]:
            nonlocal count, size, revisits, others
            for entry in (each for each in _found(holdings, wish) if chosen(each, holdings)):
                answer = entry.url.startswith(("http:", "https:"))
                count += answer
                others += not answer
                size += entry.length
                revisits += is_revisit(entry)
                yield _json(entry) if wish.as_json else _line(entry)

        if not results(lines()):
            return ExitCode.DONE
    told = f", {revisits} of them revisits" if revisits else ""
    told += f", and {others} other record{'s' * (others != 1)}" if others else ""  # settings, logs, reports
    say(f"archiver: {count} capture{'s' * (count != 1)}{told}, {volume(size)}")
    return ExitCode.DONE


def _found(holdings: Holdings, wish: LsQuery) -> Iterator[IndexEntry]:
    if wish.url is None:
        if wish.host:
            return chain.from_iterable(map(holdings.of_host, sorted({host.lower() for host in wish.host})))
        return holdings.entries()
    if domain := _DOMAIN.fullmatch(wish.url.strip()):
        return holdings.of_domain(domain[1].lower())
    if wish.url.endswith("*"):
        return holdings.of_prefix(wish.url.strip().removesuffix("*"))
    address, exact = spelled(wish.url)
    return holdings.of_url(address) if exact else holdings.of_key(address)


class _Choice:
    """Whether a capture is wanted."""

    def __init__(self, wish: LsQuery) -> None:
        self._hosts = frozenset(host.lower() for host in wish.host) if wish.url is not None else frozenset()
        self._types = tuple(_refused(one, "--type", _TYPE, "text/html or image/*") for one in wish.types)
        self._statuses = tuple(_refused(one, "--status", _STATUS, "404, or 2xx for a class") for one in wish.statuses)
        self._first = date_range(wish.from_, "--from").first if wish.from_ is not None else ""
        self._last = date_range(wish.to, "--to").last if wish.to is not None else "~"

    def __call__(self, entry: IndexEntry, holdings: Holdings) -> bool:
        """Return whether *entry* is; a revisit has the type of what it revisits, too."""
        if not self._first <= entry.timestamp[:14] <= self._last:
            return False
        if self._statuses and not any(_is_status(entry.status, one) for one in self._statuses):
            return False
        if self._hosts and not _is_host(entry.url, self._hosts):
            return False
        return not self._types or self._has_type(entry) or (is_revisit(entry) and self._revisits(entry, holdings))

    def _has_type(self, entry: IndexEntry) -> bool:
        return any(_is_type(entry.mime.lower(), one) for one in self._types)

    def _revisits(self, entry: IndexEntry, holdings: Holdings) -> bool:
        """Return whether *entry* is a revisit of a capture with a wanted type; not where that is not held."""
        with suppress(ArchiveError, DamagedRecord, OSError):
            original = holdings.original(entry)
            return original is not None and self._has_type(original)
        return False


def _refused(text: str, option: str, right: re.Pattern[str], words: str) -> str:
    if not right.fullmatch(text):
        raise ConfigError(f"{option} {text!r} is none; right would be {words}")
    return text.lower()


def _is_status(status: str, wanted: str) -> bool:
    return status[:1] == wanted[0] and len(status) == len(wanted) if wanted.endswith("xx") else status == wanted


def _is_type(mime: str, wanted: str) -> bool:
    return mime.startswith(wanted[:-1]) if wanted.endswith("/*") else mime == wanted


def _is_host(address: str, hosts: frozenset[str]) -> bool:
    return not hosts.isdisjoint(names(address))


def _line(entry: IndexEntry) -> str:
    mime, status = printable(entry.mime, 60), printable(entry.status, 3)
    return f"{readable(entry.timestamp)} {status:>3} {mime:<24} {entry.length:>10} {printable(entry.url, LONGEST)}"


def _json(entry: IndexEntry) -> str:
    return json.dumps(
        {
            "url": entry.url,
            "timestamp": entry.timestamp,
            "date": readable(entry.timestamp),
            "status": int(entry.status) if entry.status.isdigit() else None,
            "type": None if entry.mime == "unk" or is_revisit(entry) else entry.mime,
            "revisit": is_revisit(entry),
            "digest": entry.digest or None,
            "size": entry.length,
            "warc": entry.filename,
            "offset": entry.offset,
            "key": entry.key,
        }
    )
