"""Records that are no part of a visit: look-ups of names, and the papers of a crawl, each a `resource` record.

Pure: dates, digests and ids come in. Source: WARC 1.1 §6.4.4; RFC 1035 §5.1 and RFC 4501 for look-ups. An invented
URI begins with `metadata://archiver.invalid/`, for indexers make one key of `metadata://HOST/x` and `http://HOST/x`:
no host out there can have a name that ends in `.invalid` (RFC 2606).
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

from archiver.model import Lookup, Resource, Span
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record
from archiver.warc.records import header, parse_date, target_of, warc_date

DNS_TYPE = "text/dns"
PLACE = "metadata://archiver.invalid/crawl/"

_SPECIAL = re.compile(r'([";()@$\\])')  # what a master file would take for something else
_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+(?=[;\s]|$)")


def lookup_uri(lookup: Lookup) -> str:
    """The URI of what was looked up (RFC 4501); without a type, for both families of addresses were asked for."""
    return "dns:" + quote(lookup.host, safe="!$&'()*+,;=._-")


def lookup_block(lookup: Lookup) -> bytes:
    """The answer as text, as Heritrix has it: when it came, and a line for each address.

    A line lacks the time to live, which the standard leaves open: the system's resolver does not tell it.
    """
    moment = datetime.fromtimestamp(lookup.asked // 1_000_000, UTC)
    name = _SPECIAL.sub(r"\\\1", lookup.host)
    lines = [f"{moment:%Y%m%d%H%M%S}"]
    lines += [f"{name}.\tIN\t{'AAAA' if ':' in each else 'A'}\t{each}" for each in lookup.addresses]
    return ("\n".join(lines) + "\n").encode()


class Content(NamedTuple):
    """What a header says of a block."""

    type: str
    digest: str
    length: int


def resource_header(uri: str, timestamp: int, content: Content, file_id: str, record_id: str) -> bytes:
    """The header of a resource record in the file whose warcinfo is *file_id*."""
    fields = (*_fields(uri, timestamp, content, file_id, record_id), ("WARC-Payload-Digest", content.digest))
    return header("resource", fields, content.type, content.length)


def manifest_header(uri: str, timestamp: int, content: Content, file_id: str, record_id: str) -> bytes:
    """The header of a metadata record that speaks of no other record."""
    return header("metadata", _fields(uri, timestamp, content, file_id, record_id), content.type, content.length)


def _fields(uri: str, timestamp: int, content: Content, file_id: str, record_id: str) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Record-ID", record_id),
        ("WARC-Target-URI", uri),
        ("WARC-Date", warc_date(timestamp)),
        ("WARC-Warcinfo-ID", file_id),
        ("WARC-Block-Digest", content.digest),
    )


def resource_of(record: Record, warc: str) -> Resource | None:
    """What an index says of the resource *record* of the file *warc*, read to its end.

    None where it is not whole, or lacks a field that one of ours has.
    """
    address, digest = target_of(record), record.first("WARC-Payload-Digest")
    try:
        for _ in record.pieces():
            pass
        timestamp = parse_date(record.first("WARC-Date") or "")
    except (DamagedRecord, ValueError):
        return None
    if not address or not digest or record.length is None:
        return None
    mime = mime_of(record.first("Content-Type") or "")
    return Resource(address, timestamp, mime, digest, warc, Span(record.offset, record.length))


def mime_of(content_type: str) -> str:
    """What an index says of a record that is no HTTP message and has *content_type*; "" where that names no type."""
    found = _TYPE.match(content_type.lower())
    return found[0] if found else ""
