"""`archiver ls`: list the captures of a collection, one per line."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

import click

from archiver.cli.directory import other_machines
from archiver.cli.get import iso_timestamp, open_holdings, parse_url
from archiver.cli.options import (
    EACH_LINE,
    check_host_names,
    complete_urls,
    define_command,
    directory_argument,
    host_option,
    json_option,
)
from archiver.cli.terminal import results, say
from archiver.collection.dates import date_range
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings, names
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.address import address_of, machine_of
from archiver.humanize import plural, printable, volume
from archiver.model import ExitCode
from archiver.warc.cdxj import IndexEntry, is_revisit
from archiver.warc.members import DamagedRecord

MAX_URL = 20_000  # characters of a URL
MAX_NAMES = 500  # characters of the names of machines
_DOMAIN = re.compile(r"\*\.([^\s/*?#]+)(?:/\*?)?")  # like in pywb: *.example.org
_STATUS = re.compile(r"[1-9][0-9]{2}|[0-9]xx|-", re.IGNORECASE | re.ASCII)
_STATUSES = "404, 2xx for a class, or 0xx for none"
_NONE = "0xx"  # the answers whose status no client can use
_TYPE = re.compile(r"[^\s/]+/[^\s/]+|unk", re.ASCII)


@dataclass(frozen=True, slots=True)
class LsQuery:
    """The arguments of `archiver ls`; an empty one matches every capture."""

    url: str | None
    host: tuple[str, ...]
    types: tuple[str, ...]
    statuses: tuple[str, ...]
    from_: str | None
    to: str | None
    as_json: bool


def ls(directory: Path, query: LsQuery) -> ExitCode:
    """Print the captures in *directory* that match *query*."""
    matches = _Filter(query)
    count = size = revisits = others = 0
    with open_holdings(directory) as holdings:

        def lines() -> Iterator[str]:
            nonlocal count, size, revisits, others
            for entry in (each for each in _found(holdings, query) if matches(each, holdings)):
                answer = _is_answer(entry)
                count += answer
                others += not answer
                size += entry.length
                revisits += is_revisit(entry)
                yield _json(entry) if query.as_json else _line(entry)

        if not results(lines()):
            return ExitCode.DONE
    notes = f", {revisits} of them revisits" if revisits else ""
    notes += f", and {others} other record{'s' * (others != 1)}" if others else ""  # settings, logs, reports
    say(f"archiver: {count} capture{'s' * (count != 1)}{notes}, {volume(size)}")
    _tell_of_other_machines(Layout(directory))
    return ExitCode.DONE


def _tell_of_other_machines(layout: Layout) -> None:
    """Say so if other machines of the same crawl have captures of their own."""
    if not layout.address.exists():
        return
    own = machine_of(layout.database)
    only = f"archiver: these are the captures of {own} only"
    try:
        others = other_machines(layout)
    except (ConfigError, ArchiveError):  # received from others, or the server is away
        say(f"{only}; its database, which knows of others, cannot be read")
        return
    if others:
        has = plural(len(others), "has", "have")
        whole = f"archiver index {quote(address_of(layout.database))} -o whole, then archiver ls whole"
        say(f"{only}; {printable(', '.join(others), MAX_NAMES)} {has} others; to list all: {whole}")


def _found(holdings: Holdings, query: LsQuery) -> Iterator[IndexEntry]:
    if query.url is None:
        if query.host:
            return chain.from_iterable(map(holdings.of_host, sorted({host.lower() for host in query.host})))
        return holdings.entries()
    if domain := _DOMAIN.fullmatch(query.url.strip()):
        return holdings.of_domain(domain[1].lower())
    if query.url.endswith("*"):
        return holdings.of_prefix(query.url.strip().removesuffix("*"))
    address, exact = parse_url(query.url)
    return holdings.of_url(address) if exact else holdings.of_key(address)


class _Filter:
    """Tests whether a capture matches a query."""

    def __init__(self, query: LsQuery) -> None:
        self._hosts = frozenset(host.lower() for host in query.host) if query.url is not None else frozenset()
        self._types = tuple(_checked(one, "--type", _TYPE, "text/html or image/*") for one in query.types)
        self._statuses = tuple(_checked(one, "--status", _STATUS, _STATUSES) for one in query.statuses)
        self._first = date_range(query.from_, "--from").first if query.from_ is not None else ""
        self._last = date_range(query.to, "--to").last if query.to is not None else "~"

    def __call__(self, entry: IndexEntry, holdings: Holdings) -> bool:
        """Return whether *entry* matches; a revisit also has the media type of the original capture."""
        if not self._first <= entry.timestamp[:14] <= self._last:
            return False
        if self._statuses and not any(_has_status(entry, one) for one in self._statuses):
            return False
        if self._hosts and not _is_host(entry.url, self._hosts):
            return False
        return not self._types or self._has_type(entry) or (is_revisit(entry) and self._revisits(entry, holdings))

    def _has_type(self, entry: IndexEntry) -> bool:
        return any(_is_type(entry.mime.lower(), one) for one in self._types)

    def _revisits(self, entry: IndexEntry, holdings: Holdings) -> bool:
        """Return whether *entry* revisits a capture of a wanted type. False if that capture is not in the archive."""
        with suppress(ArchiveError, DamagedRecord, OSError):
            original = holdings.original(entry)
            return original is not None and self._has_type(original)
        return False


def _checked(text: str, option: str, right: re.Pattern[str], words: str) -> str:
    if not right.fullmatch(text):
        raise ConfigError(f"{option} {text!r} is not valid; write it like {words}")
    return text.lower()


def _has_status(entry: IndexEntry, wanted: str) -> bool:
    status = entry.status
    if wanted == _NONE:  # a revisit after a 304 has no status either, but its original has one
        below = len(status.lstrip("0")) < 3 if status.isdigit() else status == "-"
        return below and _is_answer(entry) and not is_revisit(entry)
    return status[:1] == wanted[0] and len(status) == len(wanted) if wanted.endswith("xx") else status == wanted


def _is_answer(entry: IndexEntry) -> bool:
    return entry.url.startswith(("http:", "https:"))


def _is_type(mime: str, wanted: str) -> bool:
    return mime.startswith(wanted[:-1]) if wanted.endswith("/*") else mime == wanted


def _is_host(address: str, hosts: frozenset[str]) -> bool:
    return not hosts.isdisjoint(names(address))


def _line(entry: IndexEntry) -> str:
    mime, status, address = printable(entry.mime, 60), printable(entry.status, 3), printable(entry.url, MAX_URL)
    variant = f" ({printable(entry.language, 60)})" if entry.language else ""
    return f"{iso_timestamp(entry.timestamp)} {status:>3} {mime:<24} {entry.length:>10} {address}{variant}"


def _json(entry: IndexEntry) -> str:
    return json.dumps(
        {
            "url": entry.url,
            "timestamp": entry.timestamp,
            "date": iso_timestamp(entry.timestamp),
            "status": int(entry.status) if entry.status.isdigit() else None,
            "type": None if entry.mime == "unk" or is_revisit(entry) else entry.mime,
            "revisit": is_revisit(entry),
            "digest": entry.digest or None,
            "size": entry.length,
            "warc": entry.filename,
            "offset": entry.offset,
            "key": entry.key,
            "language": entry.language or None,
        }
    )


def _run(directory: Path, **chosen: Any) -> int:
    return ls(directory, LsQuery(**chosen))


COMMAND = define_command(
    "ls",
    _run,
    """List captures.

    Prints date, status, media type, size and URL of each capture, sorted by index key and date: all captures, those
    of one URL, of all URLs that start with PREFIX, or of DOMAIN and all hosts below it. The size is that of the
    record in the WARC file; the type of a revisit is warc/revisit. The language of a variant follows its URL. Stderr
    says how many captures there are, and which other machines of the crawl have captures of their own. Changes
    nothing; works while the crawl runs. DIR is any pywb collection, or a WACZ or WARC file.
    """,
    [
        directory_argument(),
        click.Argument(["url"], required=False, metavar="[URL|PREFIX*|*.DOMAIN]", shell_complete=complete_urls),
        host_option(check=check_host_names),
        click.Option(
            ["--type", "types"],
            multiple=True,
            metavar="TYPE",
            help="Only captures of this media type: text/html, image/*. A revisit counts as what it revisits. "
            "Repeatable.",
        ),
        click.Option(
            ["--status", "statuses"],
            multiple=True,
            metavar="N",
            help="Only captures with this status: 404, 2xx for a class, or 0xx for no usable status. Repeatable.",
        ),
        click.Option(["--from", "from_"], metavar="DATE", help="Not before DATE: 2026, 20261121, 2026-11-21T10:30."),
        click.Option(["--to"], metavar="DATE", help="Not after DATE; a year, month or day is included whole."),
        json_option(EACH_LINE),
    ],
    ("archiver ls collections/example.org", "list everything"),
    ("archiver ls collections/example.org 'https://example.org/blog/*' --type text/html", "the pages of one part"),
    ("archiver ls collections/example.org https://example.org/", "the captures of one URL"),
    ("archiver ls collections/example.org --json | jq -r .url", "use it in a script"),
    ("archiver ls example.wacz", "list a package that you received"),
)
