"""Every code word that `verify` can say, how grave it is, and what it means.

The words are stable: scripts depend on them. A *fault* means that bytes, places or statements are wrong, and
makes the command fail. A *warning* is a known weakness of writers, or a breach of something that is only
recommended. A *note* is worth knowing and nothing more. `docs/reference/verify.md` holds the same list, by a test.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How grave a finding is."""

    FAULT = "fault"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding."""

    severity: Severity
    meaning: str


def _codes(severity: Severity, meanings: dict[str, str]) -> dict[str, Code]:
    return {word: Code(severity, meaning) for word, meaning in meanings.items()}


CODES: dict[str, Code] = (
    _codes(
        Severity.FAULT,
        {
            "unreadable": "The file cannot be opened or read.",
            "gzip-cut": "The file ends inside a gzip member.",
            "gzip-broken": "A gzip member is damaged: its data, its CRC or its length is wrong.",
            "gzip-altered": "A gzip member has bits, in its header or behind its data, that this program never writes.",
            "visit-cut": "A file of this program ends inside a visit: its last records are missing.",
            "not-gzip": "Where a gzip member should begin there is something else.",
            "not-warc": "Where a record should begin there is something else.",
            "header-cut": "The file or member ends inside a record's header.",
            "header-large": "A record's header has no end within a mebibyte.",
            "content-length": "A record's header has no Content-Length, or one that is no number.",
            "block-cut": "The file or member ends before the record's Content-Length is reached.",
            "record-cut": "The file or member ends before the two CRLF that end a record.",
            "record-end": "The block is not followed by two CRLF: Content-Length is wrong, or they are missing.",
            "record-surplus": "A gzip member goes on after its record with something that is no record.",
            "record-foreign": (
                "Behind damage lies a record that does not belong to this file: it was part of the damaged body."
            ),
            "arc-broken": "An ARC file cannot be read to its end, or its records do not follow each other.",
            "version-line": "The version line is malformed.",
            "lone-lf": "A header line ends in LF without CR.",
            "not-utf8": "A header field is not UTF-8.",
            "field-syntax": "A header line is no `Name: value`.",
            "field-missing": "A field is missing that this type of record must have.",
            "field-forbidden": "A field stands in a type of record that must not have it.",
            "field-repeated": "A field that may stand only once is repeated.",
            "record-id-syntax": "A record id is no URI in angle brackets.",
            "record-id-repeated": "Two records have one id.",
            "date-syntax": "A date is no UTC timestamp as the standard has it.",
            "ip-syntax": "WARC-IP-Address is no IP address.",
            "digest-syntax": "A digest is not `algorithm:value`, or its value has the wrong length or alphabet.",
            "segment-fields": "The fields of segmented records contradict the type of the record.",
            "block-digest": "The block is not what its digest says.",
            "payload-digest": "The payload is not what its digest says.",
            "revisit-mismatch": "A revisit and the record it refers to have other payload digests, or it names two.",
            "index-missing": "There are records to be replayed, and no index.",
            "index-line": "A line of the index is malformed.",
            "index-order": "The index is not sorted bytewise.",
            "index-key": "The key of a line is not the SURT of its URL, or its timestamp is not the record's.",
            "index-file": "A line names a file that is not in the archive.",
            "index-place": "No record begins where a line says, or it has another length.",
            "index-mismatch": "The record at a line's place has another URL, digest, status or media type.",
            "index-incomplete": "A record that can be replayed has no line in the index.",
            "frontier-missing": "crawl.db is not there, or empty, though this is a crawl of this program.",
            "frontier-unreadable": "crawl.db cannot be read, or is damaged.",
            "file-changed": "The bytes of a file are not those that crawl.db or imports.json knows.",
            "package-list": "The list of a package, its digest or its signature contradicts what the package holds.",
            "package-file": "A file in a package cannot be unpacked, or is not what the package's list says.",
            "package-index": "A package has no index, or one that cannot be used.",
            "import-missing": "imports.json speaks of a file that is not there.",
            "imports-unreadable": "imports.json cannot be read, or is damaged.",
            "warc-missing": "crawl.db speaks of a WARC file that is not there.",
            "warc-length": "A closed WARC file is longer or shorter than crawl.db says, or an open one shorter.",
            "capture-place": "Where crawl.db says a capture or another record lies, it does not.",
            "capture-mismatch": "A record says something else than crawl.db: URL, date, status, media type or digest.",
            "capture-missing": "A response or resource record is not known to crawl.db.",
            "archived-without-capture": "A URL is archived by crawl.db's word, but no record is named.",
            "settled-twice": "A URL has more captures than visits.",
            "host-counts": "The numbers of a host in crawl.db are not those of its URLs.",
        },
    )
    | _codes(
        Severity.WARNING,
        {
            "no-record": "The file holds no record.",
            "member-empty": "A gzip member holds nothing.",
            "member-shared": "Several records share a gzip member: none of them can be read alone.",
            "version-unknown": "The version of WARC is none of 1.0 and 1.1; the rules of 1.0 were applied.",
            "field-recommended": "A field is missing, or has another value, that the standard recommends.",
            "payload-digest-needless": "A type of record that has no payload carries a payload digest.",
            "uri-brackets": "A target URI stands in angle brackets; WARC/1.0's grammar can be read so.",
            "uri-syntax": "A target URI is not one: it has no scheme, or holds spaces or control characters.",
            "date-precision": "A date has fractions of a second, which WARC/1.0 does not know.",
            "truncated-token": "WARC-Truncated has a value that the standard does not know.",
            "payload-digest-of-framing": "The payload digest is that of the chunked framing, as many writers have it.",
            "truncation-unmarked": "The HTTP body is shorter than its own framing says, and WARC-Truncated is missing.",
            "chunked-unframed": "The HTTP head says chunked, and the body is not.",
            "concurrent-missing": "WARC-Concurrent-To names a record that is not there.",
            "concurrent-mismatch": "A request and its response have different URLs or dates.",
            "warcinfo-missing": "WARC-Warcinfo-ID names no warcinfo record of the same file.",
            "revisit-of-revisit": "A revisit refers to a record that holds no payload itself, most often a revisit.",
            "revisit-of-cut": "A revisit refers to a record whose payload is not whole.",
            "revisit-unnamed": "A revisit does not name its original by URL, and no earlier capture of its URL fits.",
            "index-repeated": "A line of the index is repeated.",
            "warc-unknown": "A file in archive/ is not known to crawl.db.",
        },
    )
    | _codes(
        Severity.NOTE,
        {
            "arc": "The file is an ARC: its records were read, but ARC has no digests to check.",
            "type-unknown": "The type of a record is not one of the standard's eight.",
            "folded-field": "A header field goes on over several lines.",
            "digest-algorithm": "A digest's algorithm is not known here, so it was not checked.",
            "digest-missing": "Records carry no block digest, so a change of their bytes could not be seen.",
            "segmented": "The payload goes on in other records; its digest was not checked.",
            "no-warcinfo": "The file does not begin with a warcinfo record.",
            "pair-missing": "Requests without response, or responses without request.",
            "revisit-profile": "The profile of a revisit is not known here.",
            "revisit-original": "The record that a revisit refers to is not among the files read.",
            "open-tail": "A file that is still open goes on behind what is committed; `resume` will settle it.",
            "index-behind": "Records of a crawl that has not come to its end are not yet in the index.",
            "import-unfinished": "The import of a file was stopped before the index listed it: run it again.",
            "no-frontier": "There is no crawl.db beside the archive, so nothing was compared with it.",
        },
    )
)
