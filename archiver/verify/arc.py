"""ARC files, the format before WARC: recognised and read through by warcio. They hold no digests to check."""

from contextlib import redirect_stderr
from io import StringIO
from typing import BinaryIO

from warcio.archiveiterator import ArchiveIterator

from archiver.verify.report import Fault, Findings

CHUNK = 64 << 10


def read_arc(file: BinaryIO, name: str, findings: Findings) -> int:
    """Read all records of an ARC *file*; how many there are. Where it is broken, *findings* hears of it."""
    records = 0
    said = StringIO()  # warcio names what it can read over on stderr
    try:
        with redirect_stderr(said):
            for record in ArchiveIterator(file, no_record_parse=True):
                records += 1
                while record.raw_stream.read(CHUNK):
                    pass
    except Exception as error:  # noqa: BLE001  warcio raises anything from UnicodeDecodeError to EOFError; it becomes a finding
        findings.add(
            Fault(name, "arc-broken", f"it cannot be read on: {str(error) or type(error).__name__}", file.tell())
        )
    if said.getvalue():
        findings.add(Fault(name, "arc-broken", " ".join(said.getvalue().split())[:300]))
    return records
