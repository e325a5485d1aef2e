"""The answers to the requests of a page, from the archive of a crawl that still runs.

The database names the place of each capture, and a record can be read as soon as its batch is committed. The payload of
a revisit is found by its digest: in this crawl, in earlier ones of the collection, or in another archive.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Self

from archiver.browser.answers import Told, told_fields
from archiver.collection.browser_answers import told_of
from archiver.collection.dedup_sources import OtherIndex
from archiver.collection.layout import Layout, rounds
from archiver.collection.payload import read_answer
from archiver.collection.records import open_warc, record_at
from archiver.errors import ArchiveError
from archiver.frontier.captures import CaptureRow
from archiver.frontier.dedup import ExternalIndex, Payloads
from archiver.model import Profile
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import read_records

MAX_EARLIER = 10  # crawls in which a payload is looked for
NEAR = 8  # records among which the request for a response is found, when two writers wrote in turn
LARGEST = 4 << 20  # bytes of a request
MICRO = 1_000_000


class StoredAnswers:
    """Reads stored answers. The methods block; one thread at a time may use it."""

    def __init__(self, layout: Layout, others: Sequence[OtherIndex]) -> None:
        """*others*: archives whose payloads count as stored."""
        self._archive = layout.archive
        past = [folder.database for folder in rounds(layout)[:MAX_EARLIER]]
        self._payloads = [Payloads(layout.database), *(Payloads(path, at_rest=True) for path in past)]
        self._folders = [one.folders for one in others]
        self._others = ExternalIndex(layout.scratch, [one.cdxj for one in others]) if others else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._payloads:
            each.close()
        if self._others is not None:
            self._others.close()

    def told(self, capture: CaptureRow) -> Told | None:
        """Return what the browser is told of *capture*; None if its payload cannot be read."""
        second = capture.timestamp // MICRO
        for folder, name, offset in self._places(capture):
            with suppress(ArchiveError, DamagedRecord, ValueError), record_at(folder, name, offset) as record:
                return self._with_own_head(told_of(record, second), capture)
        return None

    def request_of(self, capture: CaptureRow) -> bytes | None:
        """Return the request for *capture*, if it can be read; it is near the response."""
        with (
            suppress(ArchiveError, OSError, DamagedRecord),
            open_warc(self._archive, capture.file)[1] as file,
        ):
            answer = ""
            for record in islice(read_records(file, capture.offset), NEAR):
                answer = answer or record.first("WARC-Record-ID") or ""
                if record.type == "request" and answer in record.all("WARC-Concurrent-To"):
                    return b"".join(record.pieces()) if (record.size or 0) <= LARGEST else None
        return None

    def _places(self, capture: CaptureRow) -> Iterator[tuple[Path, str, int]]:
        """Yield the places of the payload of *capture*."""
        if not capture.revisit:
            yield self._archive, capture.file, capture.offset
            return
        for payloads in self._payloads:
            yield from ((self._archive, each.warc, each.offset) for each in payloads.find((capture.digest,)))
        for match in self._others.find((capture.digest,)) if self._others is not None else ():
            name = PurePosixPath(match.entry.filename).name
            yield from ((folder, name, match.entry.offset) for folder in self._folders[match.source])

    def _with_own_head(self, told: Told, capture: CaptureRow) -> Told:
        """Return *told* with the headers of *capture*, if it is a revisit that has its own."""
        if capture.revisit != Profile.IDENTICAL:
            return told
        with record_at(self._archive, capture.file, capture.offset) as record:
            return replace(told, fields=told_fields(read_answer(record).framing.fields))
