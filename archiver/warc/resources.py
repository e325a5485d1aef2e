"""Records outside of visits: DNS lookups and the documents of a crawl, each a `resource` record.

Pure: dates, digests and ids are arguments. Our URIs begin with `metadata://archiver.invalid/`, because indexers give
`metadata://HOST/x` and `http://HOST/x` the same key, and no real host name ends in `.invalid` (RFC 2606).
Source: WARC 1.1 §6.4.4; RFC 1035 §5.1 and RFC 4501 for lookups.
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

_SPECIAL = re.compile(r'([";()@$\\])')  # characters with a meaning in a zone file
_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+(?=[;\s]|$)")


def lookup_uri(lookup: Lookup) -> str:
    """Return the URI of a lookup (RFC 4501), without a type, because it asked for both address families."""
    return "dns:" + quote(lookup.host, safe="!$&'()*+,;=._-")


def lookup_block(lookup: Lookup) -> bytes:
    """Return the answer as text, in Heritrix's format: its time, and a line for each address.

    The lines have no time to live, which is optional: the system's resolver does not give it.
    """
    moment = datetime.fromtimestamp(lookup.asked // 1_000_000, UTC)
    name = _SPECIAL.sub(r"\\\1", lookup.host)
    lines = [f"{moment:%Y%m%d%H%M%S}"]
    lines += [f"{name}.\tIN\t{'AAAA' if ':' in each else 'A'}\t{each}" for each in lookup.addresses]
    return ("\n".join(lines) + "\n").encode()


class Content(NamedTuple):
    """The fields of a header that describe its block."""

    type: str
    digest: str
    length: int


def resource_header(uri: str, timestamp: int, content: Content, file_id: str, record_id: str) -> bytes:
    """Return the header of a resource record in the file whose warcinfo is *file_id*."""
    fields = (*_fields(uri, timestamp, content, file_id, record_id), ("WARC-Payload-Digest", content.digest))
    return header("resource", fields, content.type, content.length)


def manifest_header(uri: str, timestamp: int, content: Content, file_id: str, record_id: str) -> bytes:
    """Return the header of a metadata record that describes no other record."""
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
    """Read the resource *record* of the file *warc* to its end, and return its index fields.

    None if it is damaged, or lacks a field that each of ours has.
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
    """Return the media type in *content_type* as an index lists it for a record without HTTP; "" if there is none."""
    found = _TYPE.match(content_type.lower())
    return found[0] if found else ""
