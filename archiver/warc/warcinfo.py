"""The warcinfo record of a WARC file: what the file says of itself, and which of its records are really its own.

A body may hold whole records, gzip members and all. As long as the record around them is sound they are only its
bytes; where that record is damaged or cut, a reader that looks for the next record finds them. So a record belongs to a
file only if it names, as its WARC-Warcinfo-ID, the random id of the file's first record. No server ever sees that id.
"""

from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from archiver.warc.records import says_all

LOOK = 12  # records looked at to tell whether this program wrote a file

_SOFTWARE = "archiver/"  # begins the software field of a WARC that this program wrote
_NOTES = (b"hopsFromSeed: ", b"\r\noffScopeHops: ")  # in the metadata record of each of our visits that has one


@dataclass(frozen=True, slots=True)
class Warcinfo:
    """A whole warcinfo record."""

    record_id: str
    fields: tuple[tuple[str, str], ...]
    length: int  # bytes in the file; 0 if the record shares its gzip member with others

    @property
    def by_archiver(self) -> bool:
        """True if this program wrote the record."""
        return any(name == "software" and value.startswith(_SOFTWARE) for name, value in self.fields)


def read_warcinfo(file: BinaryIO) -> Warcinfo | None:
    """Return the warcinfo record at the beginning of *file*; None if it has none that is whole."""
    first = next(scan(file), None)
    return warcinfo_of(first) if isinstance(first, Record) else None


def warcinfo_of(record: Record) -> Warcinfo | None:
    """Return *record* as a warcinfo; None if it is another record, or not whole."""
    block = block_of(record) if record.type == "warcinfo" else None
    if block is None:
        return None
    pairs = (line.partition(": ") for line in block.decode(errors="replace").split("\r\n"))
    fields = tuple((name, value) for name, colon, value in pairs if colon)
    return Warcinfo(record.first("WARC-Record-ID") or "", fields, record.length or 0)


@dataclass(frozen=True, slots=True)
class Membership:
    """The warcinfo ids of the records that belong to one file. Without any id, no record belongs."""

    ids: frozenset[str]

    def __contains__(self, record: Record) -> bool:
        """Return whether *record* belongs to the file. Its warcinfo record does, a second one does not."""
        if record.type == "warcinfo":
            return record.offset == 0
        return (record.first("WARC-Warcinfo-ID") or "") in self.ids


def membership(file: BinaryIO, offset: int = 0, *, unfinished: bool = False) -> Membership:
    """Return which records of *file* belong to it.

    The first record says so. Where it is damaged, its header still counts if it can be read: a wrong id matches no
    record. Then the record that ends at *offset*, or at the end of a file that is not *unfinished*, counts too: a
    record ends there that no body can hold.
    """
    first = next(scan(file), None)
    found = {_id_of(first)} if isinstance(first, Record) and first.offset == 0 else set()
    if not isinstance(first, Record) or block_of(first) is None:
        size = file.seek(0, 2)
        found |= _ids_at(file, {offset} if unfinished else {offset, size})
    return Membership(frozenset(found - {""}))


def written_by_archiver(file: BinaryIO) -> bool:
    """Return whether *file* is a WARC that this program wrote. Its first records say so, even if one is damaged."""
    return _by_archiver(file, membership(file))


def _by_archiver(file: BinaryIO, ours: Membership) -> bool:
    for record in islice(scan(file), LOOK):
        if isinstance(record, DamagedRecord) or record not in ours:
            continue
        if record.type == "warcinfo":
            info = warcinfo_of(record)
            if info is not None and info.by_archiver:
                return True
            continue
        block = block_of(record) or b""
        if record.type == "metadata" and all(word in block for word in _NOTES):
            return True
        if says_all(record):
            return True
    return False


def holds_records(file: BinaryIO) -> bool:
    """Return True if a record of any program is among the first things in *file*."""
    return any(isinstance(item, Record) for item in islice(scan(file), LOOK))


class ForgedRecords:
    """Finds the records that a scan of *file* meets only because it looks for the next one behind damage.

    Holds for files that this program wrote. Others do not say which records are theirs, so every record counts.
    """

    def __init__(self, file: BinaryIO) -> None:
        own = membership(file)  # of a damaged file, this reads all of it
        self.ours = _by_archiver(file, own)
        self._known = set(own.ids)
        self._damaged = False

    def is_forged(self, item: Record | DamagedRecord) -> bool:
        """Return whether *item*, the next of the scan, may come out of the body of a damaged record."""
        if isinstance(item, DamagedRecord):
            self._damaged = True
            return False
        if self._damaged:
            return self.ours and (item.type == "warcinfo" or item.first("WARC-Warcinfo-ID") not in self._known)
        self._known.add(_id_of(item))  # files that were put behind each other have several
        return False


def block_of(record: Record) -> bytes | None:
    """Return the block of *record*; None if it is not whole."""
    try:
        return b"".join(record.pieces())
    except DamagedRecord:
        return None


def _id_of(record: Record) -> str:
    """Return the id that the records of a file name whose first record is *record*."""
    return record.values.get("WARC-Record-ID" if record.type == "warcinfo" else "WARC-Warcinfo-ID", "")


def _ids_at(file: BinaryIO, ends: set[int]) -> set[str]:
    """Return the ids named by the whole records that end at one of *ends*."""
    found = set()
    for record in scan(file):
        if isinstance(record, Record) and block_of(record) is not None and record.offset + (record.length or 0) in ends:
            found.add(record.first("WARC-Warcinfo-ID") or "")
    return found
