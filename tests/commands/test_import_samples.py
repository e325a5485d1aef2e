"""Archives that others wrote, imported and looked at in pywb: each line of the index answers with its payload."""

import json
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from archiver.collection.imports import imported_files
from archiver.collection.layout import Layout
from archiver.collection.records import record_at
from archiver.errors import ConfigError
from archiver.http import Dechunker, read_stored
from archiver.tools.ingest.run import import_archives
from archiver.tools.ingest.sources import find_archives
from archiver.tools.verify.collection import verify
from archiver.warc.reader import Record
from fixtures.expected_index import theirs, untidy
from fixtures.pywb_server import archiver_replay

pytestmark = [pytest.mark.suites]

REFUSED = {
    "invalid_example_1.wacz": "a ZIP file, but not a WACZ",
}
FAULTY = {
    "20141124-heritrix-server-not-modified.warc.gz",  # the line ends behind the last record are missing
    "example-url-agnostic-revisit.warc.gz",  # so here
    "bad.arc",  # two of its three lines are none
    "example-space-in-url.arc",  # its block is cut
    "example.warc.gz",  # of cdxj-indexer: two blocks are not what their digests say
    "IAH-urls-wget.warc.gz",  # one record id twice
    "IAH-urls-wget.warc",
    "link-extraction-test.warc",  # by hand, with wrong lengths
}
NOT_REPLAYED = {
    "link-extraction-test.warc",  # what lies behind a wrong length
    "valid-warcfile-fields-metainfo.warc",  # nor does it read a header with folded fields
}


def samples(suites: Path) -> list[Path]:
    """Those that others call valid, and the packages."""
    told = json.loads((suites / "warc" / "index.json").read_text())
    warcs = [suites / "warc" / each["file"] for each in told if each.get("label") == "valid"]
    arcs = [suites / "warc" / each["file"] for each in told if each["kind"] == "arc"]
    return [*warcs, *arcs, *sorted((suites / "warc" / "py-wacz").glob("*.wacz"))]


def payload(record: Record) -> bytes:
    """What a browser is to get, its content coding kept."""
    block = b"".join(record.pieces())
    if record.type == "resource" or not (record.first("WARC-Target-URI") or "").startswith("http"):
        return block
    framing = read_stored(block)
    body = block[framing.head_length :]
    if not framing.chunked:
        return body
    chunks = Dechunker()
    return b"".join(map(bytes, [*chunks.feed(body), *chunks.finish()]))


@pytest.mark.replay
def test_samples_are_imported_and_replayed(suites: Path, tmp_path: Path) -> None:
    directory = tmp_path / "c"
    faulty = set()
    for path in samples(suites):
        if path.name in REFUSED:
            with pytest.raises(ConfigError, match=REFUSED[path.name]):
                import_archives(find_archives([path]), directory, strict=False)
        elif import_archives(find_archives([path]), directory, strict=False).faulty:
            faulty.add(path.name)
    assert faulty == FAULTY
    files = imported_files(Layout(directory))
    assert len(files) > 35
    signed = {each.source: each.signature for each in files if each.signature}  # signed by a domain
    assert [text.partition(":")[0] for text in signed.values()] == ["the signature cannot be checked"] * 2
    assert {each.name for each in files} == {path.name for path in (directory / "archive").iterdir()}
    lines = [line.split(" ", 2) for line in (directory / "indexes" / "index.cdxj").read_text().splitlines()]
    _each_line_answers(directory, [(stamp, json.loads(text)) for _, stamp, text in lines])


def _each_line_answers(directory: Path, lines: list[tuple[str, dict[str, str]]]) -> None:
    """With a payload that was captured at that second; pywb ends it where the stored Content-Length says."""
    stored: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    asked = []
    for stamp, entry in lines:
        with record_at(directory / "archive", entry["filename"], int(entry["offset"])) as found:
            if entry["filename"] not in NOT_REPLAYED and found.type != "revisit" and "method" not in entry:
                stored[_bare(entry["url"]), stamp].add(payload(found))
                asked.append((stamp, entry))
    wrong = []
    unclear = {(_bare(entry["url"]), stamp) for stamp, entry in lines if entry["filename"] in NOT_REPLAYED}
    with archiver_replay(directory) as wayback:
        for stamp, entry in asked:
            if entry.get("status", "200").startswith("3") or entry["url"].startswith("dns:"):  # pywb has no page for it
                continue
            if (_bare(entry["url"]), stamp) in unclear:  # pywb would take that
                continue
            got = wayback.get(entry["url"], f"{stamp}id_")
            cut = got.headers.get("content-length") == str(len(got.body)) and got.status == 200 and got.body != b""
            whole = stored[_bare(entry["url"]), stamp]
            if got.body not in whole and not (cut and any(each.startswith(got.body) for each in whole)):
                wrong.append(f"{entry['filename']} {entry['url']}: {got.status}, {len(got.body)} bytes")
    assert not wrong, "\n".join(wrong)
    assert len(asked) > 100


def _bare(url: str) -> str:
    return url.partition("//")[2] or url


def test_captures_of_an_arc_are_those_of_cdxj_indexer(suites: Path, tmp_path: Path) -> None:
    arcs = [
        path for path in samples(suites) if path.name in ("example.arc", "example.arc.gz")
    ]  # the others are damaged
    assert len(arcs) == 3
    for number, path in enumerate(arcs):
        import_archives(find_archives([path]), tmp_path / str(number), strict=True)
        ours = (tmp_path / str(number) / "indexes" / "index.cdxj").read_text().splitlines()
        with untidy():
            assert _captures(ours) == _captures(theirs(path, tmp_path) or [])


def _captures(lines: list[str]) -> list[list[str]]:
    """What lines of an index say of captures, but for where they lie."""
    told = [line.split(" ", 2) for line in lines]
    wanted = ("url", "mime", "status", "digest")
    return [[key, stamp, *map(json.loads(text).get, wanted)] for key, stamp, text in told]


def test_what_is_called_invalid_is_told_or_refused(suites: Path, tmp_path: Path) -> None:
    """And never raises anything else; what verify finds in the file is found in the import."""
    told = json.loads((suites / "warc" / "index.json").read_text())
    for number, each in enumerate(told):
        path = suites / "warc" / each["file"]
        if str(each.get("label", "")).startswith("invalid"):
            with suppress(ConfigError):
                outcome = import_archives(find_archives([path]), tmp_path / str(number), strict=False)
                assert outcome.faulty == (not verify([path]).ok)
