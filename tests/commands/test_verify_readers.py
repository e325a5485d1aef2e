"""What warcio, fastwarc and cdxj-indexer make of the samples: the same as `verify`, or it is known who is right."""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from cdxj_indexer.main import CDXJIndexer
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from archiver.collection.reindex import rebuild
from archiver.tools.verify.collection import verify

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "validators.md"

pytestmark = [
    pytest.mark.suites,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # readers leave files open
]

STRUCTURE = {
    *("gzip-cut", "gzip-broken", "not-gzip", "not-warc", "arc-broken", "header-cut", "header-large"),
    *("content-length", "block-cut", "record-cut", "record-end", "record-surplus"),
}  # the findings that a reader could have too; none of them looks at fields, and only warcio's `check` at digests

Told = tuple[int, bool]  # how many records, and whether it read to the end


def warcio(path: Path) -> Told:
    records = 0
    with path.open("rb") as file, redirect_stderr(io.StringIO()):
        try:
            for record in ArchiveIterator(file, no_record_parse=True):
                records += 1
                record.raw_stream.read()
        except Exception:  # noqa: BLE001  whatever it raises, it does not read on
            return records, False
    return records, True


def fastwarc(path: Path) -> Told:
    records = 0
    with path.open("rb") as file:
        try:
            for record in FastIterator(file, parse_http=False, record_types=WarcRecordType.any_type):
                records += 1
                record.reader.read()
        except Exception:  # noqa: BLE001  as above
            return records, False
    return records, True


def cdxj(path: Path) -> tuple[list[str], bool]:
    """Its lines, and whether it came to the end."""
    out, said = io.StringIO(), io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            CDXJIndexer(out, [str(path)], sort=False).process_all()
    except (Exception, SystemExit):  # noqa: BLE001  as above
        return out.getvalue().splitlines(), False
    return out.getvalue().splitlines(), True


def ours(path: Path) -> Told:
    report = verify([path])
    return report.files[0].records, not STRUCTURE & set(report.counts)


def samples(suites: Path) -> Iterator[tuple[str, Path]]:
    for entry in json.loads((suites / "warc" / "index.json").read_text()):
        if entry["kind"] in ("warc", "arc"):
            yield entry["file"], suites / "warc" / entry["file"]


DIFFERENCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Several records share a gzip member": (
        (
            "warcio and cdxj-indexer stop at the second record. The standard only recommends one member each: "
            "`verify` and fastwarc read all, `verify` with a warning"
        ),
        (
            "warcio/example-bad-non-chunked.warc.gz",
            "warcio/example-bad.warc.gz.bad",
            "gowarc/good.warc.gz.open",
            "gowarc/skip-non-open.warc.gz",
            "gowarc/corrupted-mid-record.warc.gz.open",
            "gowarc/corrupted-trailing-bytes.warc.gz.open",
            "stormcrawler/unparsable-date.warc.gz",
        ),
    ),
    "The file is an ARC": (
        "fastwarc does not read ARC",
        (
            "warcio/bad.arc",
            "warcio/example.arc",
            "warcio/example.arc.gz",
            "warcio/example-space-in-url.arc",
            "cdxj-indexer/bad.arc",
            "cdxj-indexer/example.arc",
            "webarchive-commons/IAH-20080430204825-00000-blackbook-truncated.arc",
        ),
    ),
    "A field is folded over several lines": (
        (
            "fastwarc loses a Content-Length on a continuation line; the grammar of WARC/1.0 allows it, "
            "and `verify` and warcio read it"
        ),
        (
            "jwat/valid-warcfile-fields-continuation.warc",
            "jwat/valid-warcfile-fields-metainfo.warc",
            "jwat/valid-warcfile-fields-warcinfo.warc",
            "jwat/valid-warcfile-utf8.warc",
            "jwat/test-utf8.warc",
        ),
    ),
    "The version line is in lower case": (
        "fastwarc stops; the grammar ignores case, so `verify` and warcio read on",
        ("jwat/valid-warcfile-upper-lower-case.warc",),
    ),
    "Content-Length is repeated": (
        "fastwarc loses its place; `verify` and warcio take the first, and `verify` names the fault",
        ("jwat/invalid-warcfile-duplicate-fields.warc",),
    ),
    "Content-Length is missing": (
        "the readers assume zero, so records merge or vanish; the field is mandatory: a fault",
        (
            "jwat/invalid-warcfile-fields-missing.warc",
            "jwat/invalid-warcfile-lonely-continuation.warc",
            "jwat/invalid-warcfile-lonely-monkeys.warc",
            "jwat/invalid-warcfile-lonely-request-response-resource-conversion.warc",
            "jwat/invalid-warcfile-lonely-revisit.warc",
            "jwat/invalid-warcfile-lonely-warcinfo-metadata.warc",
        ),
    ),
    "Content-Length is wrong": (
        (
            "fastwarc stops, or ignores a block that ends early; warcio warns or stops; "
            "`verify` names the record and continues at the next"
        ),
        (
            "warcio/example-trunc.warc",
            "warcio/example-wrong-chunks.warc.gz",
            "warcio.js/example-bad-length.warc",
            "webarchive-commons/link-extraction-test.warc",
        ),
    ),
    "The two CRLF after the last record are missing": (
        "the readers do not check; the standard requires them: a fault",
        (
            "warc-specifications/20141124-heritrix-server-not-modified.warc.gz",
            "warcio.js/example-url-agnostic-revisit.warc.gz",
        ),
    ),
    "The file is a CDX": (
        "warcio reads its lines as ARC records",
        ("warc-specifications/hello-world.warc.cdx",),
    ),
}


def test_other_readers_find_the_same_records_or_it_is_known_who_is_right(suites: Path) -> None:
    others = []
    for name, path in samples(suites):
        found = ours(path)
        if warcio(path) != found or fastwarc(path) != found or cdxj(path)[1] != found[1]:
            others.append(name)
    assert sorted(others) == sorted(name for _, names in DIFFERENCES.values() for name in names)


def test_each_difference_stands_in_the_document_with_its_reason() -> None:
    text = DOCUMENT.read_text()
    for cause, (reason, names) in DIFFERENCES.items():
        assert f"| {cause} | {len(names)} | {reason} |" in text, cause


def test_the_index_is_that_of_cdxj_indexer(suites: Path, tmp_path: Path) -> None:
    """For each response to a GET in a sound file: key, time, URL, status, place and length."""
    compared = 0
    known = {name for _, names in DIFFERENCES.values() for name in names}
    for number, (name, path) in enumerate(samples(suites)):
        if name in known or not name.endswith((".warc", ".warc.gz")):
            continue
        folder = tmp_path / str(number)
        (folder / "archive").mkdir(parents=True)
        shutil.copyfile(path, folder / "archive" / path.name)
        rebuild(folder)
        mine = shapes((folder / "indexes" / "index.cdxj").read_text().splitlines())
        theirs = shapes(cdxj(folder / "archive" / path.name)[0])
        different = {place for place in mine.keys() & theirs.keys() if mine[place] != theirs[place]}
        assert (name, [(mine[x], theirs[x]) for x in different]) == (name, [])
        compared += len(mine.keys() & theirs.keys())
    assert compared > 100


def shapes(lines: list[str]) -> dict[str, tuple[object, ...]]:
    """Place and what is said of it; requests with a body have keys of their own there."""
    found: dict[str, tuple[object, ...]] = {}
    for line in lines:
        key, stamp, text = line.split(" ", 2)
        entry = json.loads(text)
        if "method" not in entry:
            # uncompressed, cdxj-indexer leaves out the two CRLF of some records; pywb reads both
            length = entry["length"] if entry["filename"].endswith(".gz") else ""
            found[entry["offset"]] = (key, stamp, entry["url"], entry.get("status", "-"), length)
    return found
