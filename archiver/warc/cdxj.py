"""CDXJ lines: the index by which pywb finds a capture. Same keys, fields and order as cdxj-indexer writes.

A line is `SURT TIMESTAMP {json}`; a file is sorted bytewise. Source: CDXJ 0.1.0; pywb's look-ups. Pure.
"""

import json
from datetime import UTC, datetime
from functools import lru_cache

from archiver import url
from archiver.model import Capture


def timestamp14(microseconds: int) -> str:
    """The 14 digits of *microseconds* since the epoch, in UTC."""
    return _second(microseconds // 1_000_000)


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d%H%M%S}"


def line(capture: Capture, filename: str) -> str:
    """The index line of *capture*, which lies in the file that is called *filename* now."""
    entry = {
        "url": capture.url,
        "mime": capture.mime or "unk",
        "status": str(capture.status) if capture.status else "-",
        "digest": capture.payload_digest,
        "length": str(capture.response.length),
        "offset": str(capture.response.offset),
        "filename": filename,
    }
    return f"{url.surt(capture.url)} {timestamp14(capture.timestamp)} {json.dumps(entry)}"
