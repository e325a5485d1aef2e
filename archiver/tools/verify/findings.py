"""The findings of `verify`, and the table of its codes with severity and meaning.

The codes are stable, because scripts depend on them. A *fault* is wrong and makes the command fail. A *warning* is a
known weakness of writers, or ignores a recommendation. A *note* is worth knowing. docs/reference/verify.md is generated
from this table.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """The severity of a finding."""

    FAULT = "fault"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding."""

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
            "gzip-altered": "A gzip member has bits in its header or after its data that this program never writes.",
            "visit-cut": "A file of this program ends inside a visit: its last records are missing.",
            "not-gzip": "Something else is where a gzip member should begin.",
            "not-warc": "Something else is where a record should begin.",
            "header-cut": "The file or member ends inside a record header.",
            "header-large": "A record header does not end within 1 MiB.",
            "content-length": "A record header has no Content-Length, or one that is not a number.",
            "block-cut": "The file or member ends before the record's Content-Length.",
            "record-cut": "The file or member ends before the two CRLF that end a record.",
            "record-end": "No two CRLF follow the block: they are missing, or Content-Length is wrong.",
            "record-surplus": "A gzip member continues after its record with something else.",
            "record-foreign": ("A record after damage does not belong to this file: it was part of the damaged body."),
            "arc-broken": "An ARC file cannot be read to its end, or has gaps between its records.",
            "version-line": "The version line is malformed.",
            "lone-lf": "A header line ends in LF without CR.",
            "not-utf8": "A header field is not UTF-8.",
            "field-syntax": "A header line is not `Name: value`.",
            "field-missing": "A mandatory field of this record type is missing.",
            "field-forbidden": "This record type must not have this field.",
            "field-repeated": "A field that may occur only once is repeated.",
            "record-id-syntax": "A record ID is not a URI in angle brackets.",
            "record-id-repeated": "Two records have the same ID.",
            "date-syntax": "A date is not a UTC timestamp in the form of the standard.",
            "ip-syntax": "WARC-IP-Address is not an IP address.",
            "digest-syntax": "A digest is not `algorithm:value`, or its value has a wrong length or alphabet.",
            "segment-fields": "Fields for segmented records contradict the record type.",
            "block-digest": "The block does not match its digest.",
            "payload-digest": "The payload does not match its digest.",
            "revisit-mismatch": "A revisit and its original differ in payload digest, or it names two originals.",
            "index-missing": "There are records to replay, but no index.",
            "index-line": "An index line is malformed.",
            "index-order": "The index is not sorted bytewise.",
            "index-key": "The key of an index line is not the SURT of its URL, or its timestamp is not the record's.",
            "index-file": "An index line names a file that is not in the archive.",
            "index-place": "No record begins where an index line says, or it has another length.",
            "index-mismatch": "The record that an index line names has another URL, digest, status or media type.",
            "index-incomplete": "A record that can be replayed has no index line.",
            "frontier-missing": "crawl.db is missing or empty, although this is a crawl of this program.",
            "frontier-unreadable": "crawl.db cannot be read, or is damaged.",
            "file-changed": "A file does not have the checksum in crawl.db, imports.json or stored.jsonl.",
            "package-list": "The file list of a package, its digest or its signature does not match the package.",
            "package-file": "A file in a package cannot be unpacked, or does not match the list.",
            "package-index": "A package has no usable index.",
            "import-missing": "imports.json names a file that is missing.",
            "imports-unreadable": "imports.json cannot be read, or is damaged.",
            "warc-missing": "crawl.db names a WARC file that is missing.",
            "warc-length": "A WARC file has another length than in crawl.db or stored.jsonl; an open one is shorter.",
            "capture-place": "No such record is where crawl.db places a capture.",
            "capture-mismatch": "A record and crawl.db differ in URL, date, status, media type or digest.",
            "capture-missing": "A response or resource record is missing in crawl.db.",
            "archived-without-capture": "crawl.db says that a URL is archived, but names no record.",
            "settled-twice": "A URL has more captures than visits.",
            "host-counts": "The counts of a host in crawl.db do not match its URLs.",
        },
    )
    | _codes(
        Severity.WARNING,
        {
            "no-record": "The file has no records.",
            "member-empty": "A gzip member is empty.",
            "member-shared": "Several records share a gzip member, so none can be read alone.",
            "version-unknown": "The WARC version is neither 1.0 nor 1.1. The rules of 1.0 were applied.",
            "field-recommended": "A recommended field is missing or has another value.",
            "payload-digest-needless": "A record without payload has a payload digest.",
            "uri-brackets": "A target URI is in angle brackets, which the grammar of WARC/1.0 allows.",
            "uri-syntax": "A target URI has no scheme, or has spaces or control characters.",
            "date-precision": "A date has fractions of a second, which WARC/1.0 does not allow.",
            "truncated-token": "WARC-Truncated has a value that is not in the standard.",
            "payload-digest-of-framing": "The payload digest includes the chunked framing, as many writers compute it.",
            "truncation-unmarked": "The HTTP body is shorter than its framing says, and WARC-Truncated is missing.",
            "chunked-unframed": "The HTTP head says chunked, but the body is not.",
            "concurrent-missing": "WARC-Concurrent-To names a record that is missing.",
            "concurrent-mismatch": "A request and its response have different URLs or dates.",
            "warcinfo-missing": "WARC-Warcinfo-ID does not name a warcinfo record of the same file.",
            "revisit-of-revisit": "A revisit refers to a record without payload, usually another revisit.",
            "revisit-of-cut": "A revisit refers to a record with a truncated payload.",
            "revisit-unnamed": "A revisit names no original by URL, and no earlier capture of its own URL matches.",
            "index-repeated": "An index line is repeated.",
            "warc-unknown": "A file in archive/ is missing in crawl.db.",
        },
    )
    | _codes(
        Severity.NOTE,
        {
            "arc": "The file is an ARC. Its records were read, but ARC has no digests to check.",
            "type-unknown": "The record type is not one of the eight in the standard.",
            "folded-field": "A header field is folded over several lines.",
            "digest-algorithm": "The algorithm of a digest is unknown, so it was not checked.",
            "digest-missing": "Records have no block digest, so changes of their bytes cannot be found.",
            "segmented": "The payload continues in other records. Its digest was not checked.",
            "no-warcinfo": "The file does not begin with a warcinfo record.",
            "pair-missing": "There are requests without a response, or responses without a request.",
            "revisit-profile": "The profile of a revisit is unknown.",
            "revisit-original": "The original of a revisit is not in the files that were read.",
            "open-tail": "An open file is longer than what is committed. `resume` settles it.",
            "index-behind": "Records of an unfinished crawl are not yet in the index.",
            "import-unfinished": "The import of a file was interrupted before it was indexed. Run it again.",
            "warc-stored": "WARC files are in a store only, and were not read. `verify --store` reads them.",
            "no-frontier": "There is no crawl.db, so nothing was compared with it.",
        },
    )
)

MAX_EACH = 100  # findings kept per code and file: one broken tool makes the same mistake in 10^6 records


@dataclass(frozen=True, slots=True)
class VerifyFinding:
    """One finding: its place, its code, and a message."""

    file: str
    code: str
    message: str
    offset: int | None = None  # of the record or index line in the file
    record: str = ""  # its type
    url: str = ""

    @property
    def severity(self) -> Severity:
        """The severity of its code."""
        return CODES[self.code].severity

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"severity": self.severity.value, **asdict(self)}


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """The progress of a verification."""

    bytes_done: int
    bytes_total: int
    files_done: int
    files_total: int


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file that was read."""

    file: str
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result. `faults` keeps a sample per code and file; `counts` counts all findings."""

    files: tuple[FileRead, ...]
    findings: tuple[VerifyFinding, ...]
    counts: Mapping[str, int]

    @property
    def ok(self) -> bool:
        """True without faults; warnings and notes do not count."""
        return not self.count(Severity.FAULT)

    def count(self, severity: Severity) -> int:
        """Return the number of findings of *severity*, including those not kept."""
        return sum(number for code, number in self.counts.items() if CODES[code].severity is severity)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "ok": self.ok,
            "records": sum(read.records for read in self.files),
            "bytes": sum(read.size for read in self.files),
            "files": [asdict(read) for read in self.files],
            "severities": {severity.value: self.count(severity) for severity in Severity},
            "codes": dict(self.counts),
            "findings": [finding.as_dict() for finding in self.findings],
        }


@dataclass(slots=True)
class Findings:
    """Collects findings in bounded memory."""

    counts: Counter[str] = field(default_factory=Counter)
    kept: list[VerifyFinding] = field(default_factory=list)
    _each: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, finding: VerifyFinding) -> None:
        """Count *finding*, and keep it unless there are many like it."""
        self.counts[finding.code] += 1
        self._keep(finding)

    def merge(self, counts: Mapping[str, int], kept: Iterable[VerifyFinding]) -> None:
        """Add the findings of another collector."""
        self.counts.update(counts)
        for finding in kept:
            self._keep(finding)

    def _keep(self, finding: VerifyFinding) -> None:
        self._each[finding.file, finding.code] += 1
        if self._each[finding.file, finding.code] <= MAX_EACH:
            self.kept.append(finding)


def merge_reports(reports: Iterable[VerifyReport]) -> VerifyReport:
    """Merge several reports into one."""
    every = list(reports)
    counts: Counter[str] = Counter()
    for report in every:
        counts.update(report.counts)
    return VerifyReport(
        tuple(read for report in every for read in report.files),
        tuple(finding for report in every for finding in report.findings),
        dict(counts),
    )
