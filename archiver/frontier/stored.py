"""The captures of a WARC file, as an index lists them."""

import sqlite3

from archiver.model import Capture, Profile, Span, Truncation

IN_FILE = """
SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, received, warcs.name,
       offset, response_length, request_length, metadata_length, truncated, revisit
FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?
"""


def capture(row: sqlite3.Row) -> Capture:
    """The capture that *row* tells of."""
    offset = row[8]
    return Capture(
        url=row[0],
        timestamp=row[1],
        status=row[2],
        mime=row[3],
        payload_digest=row[4],
        payload_length=row[5],
        received=row[6],
        warc=row[7],
        response=Span(offset, row[9]),
        request=Span(offset + row[9], row[10]),
        metadata=Span(offset + row[9] + row[10], row[11]),
        truncated=Truncation(row[12]) if row[12] else None,
        revisit=Profile(row[13]) if row[13] else None,
    )
