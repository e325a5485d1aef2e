"""The milliseconds of captures, which the index of a collection leaves out, for the index of a package.

replayweb.page looks for the capture that a revisit names at its exact date or after it. Where the index knows the
second only, the capture itself seems to be before that date, and a later one of the same URL would be shown in its
place: another version, or a revisit that was looked at before. So where there are several captures of a URL, the lines
of those that are no revisits have the milliseconds of their records; CDXJ 0.1.0 allows both forms.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path

from archiver.archive.stored import record_at
from archiver.errors import ArchiveError
from archiver.warc.cdxj import read_line, timestamp14
from archiver.warc.records import parse_date

MOST = 10_000  # captures of one URL that are held in memory; the lines of one that has more stay as they are

_REVISIT = re.compile(rb'"mime": ?"warc/revisit"')
_SECOND = 14  # digits


def with_moments(lines: Iterable[bytes], folder: Path, names: Collection[str]) -> Iterator[bytes]:
    """The sorted *lines*, sorted still, those that name one of the WARC files *names* in *folder* with milliseconds."""
    for _, group in groupby(lines, _key):
        of_key = iter(group)
        held = list(islice(of_key, MOST + 1))
        if 1 < len(held) <= MOST:
            held = sorted(_exact(line, folder, names) if _is_stored(line) else line for line in held)
        yield from held
        yield from of_key


def _key(line: bytes) -> bytes:
    return line[: line.find(b" ")]


def _is_stored(line: bytes) -> bool:
    """Whether *line* is that of a payload, and not of a revisit."""
    return _REVISIT.search(line) is None


def _exact(line: bytes, folder: Path, names: Collection[str]) -> bytes:
    """*line* with milliseconds, if it has none and the record says them; what cannot be read stays as it is."""
    entry = read_line(line)
    if entry is None or entry.filename not in names or len(entry.timestamp) != _SECOND:
        return line
    try:
        with record_at(folder, entry.filename, entry.offset) as record:
            date = parse_date(record.first("WARC-Date") or "")
        if timestamp14(date) != entry.timestamp:
            return line
    except (ArchiveError, ValueError, OverflowError, OSError):
        return line
    key, second, rest = line.split(b" ", 2)
    return b"%b %b%03d %b" % (key, second, date // 1000 % 1000, rest)
