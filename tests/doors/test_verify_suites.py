"""Real WARC files of thirteen projects, labelled valid or invalid by others: `verify` agrees, or it is said why not."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from archiver.verify import run

DOCUMENT = Path(__file__).parents[2] / "docs" / "verify.md"

ONLY_RECOMMENDED = "what is wrong is recommended, not demanded: a warning"
CUT = "the file ends without the two CRLF that the standard demands after a record"

DISAGREEMENTS = {
    "warcio/example-bad.warc.gz.bad": f"several records share one gzip member; {ONLY_RECOMMENDED}",
    "warcio/example-wget-bad-target-uri.warc.gz": "wget's brackets around URLs are what the grammar of WARC/1.0 says",
    "warcio.js/example-wget-bad-target-uri.warc.gz": "wget's brackets around URLs are what the grammar of WARC/1.0 says",
    "jwat/invalid-warcfile-contenttype-warcinfo-recommended.warc": f"a warcinfo of another type; {ONLY_RECOMMENDED}",
    "jwat/invalid-warcfile-encoding-headers.warc.gz": "the odd characters are the site's, in its HTTP head: kept as sent",
    "warc-specifications/20141124-heritrix-server-not-modified.warc.gz": CUT,
    "warcio.js/example-url-agnostic-revisit.warc.gz": CUT,
    "cdxj-indexer/example.warc.gz": "two blocks are not what their digests say; four of the eight validators see it too",
    "webarchive-commons/link-extraction-test.warc": "written by hand: records without id and date, wrong lengths",
}

pytestmark = pytest.mark.suites


def entries(folder: Path) -> list[dict[str, object]]:
    known: list[dict[str, object]] = json.loads((folder / "warc" / "index.json").read_text())
    return known


def label(entry: dict[str, object]) -> str | None:
    """`valid` or `invalid`; None where others did not say."""
    said = str(entry.get("label") or "")
    if said.startswith(("invalid", "not a WARC")):
        return "invalid"
    return "valid" if said == "valid" else None


def test_the_verdict_is_that_of_the_label_or_the_reason_is_known(suites: Path) -> None:
    agreement: Counter[tuple[str, str]] = Counter()
    others = []
    for entry in entries(suites):
        name, wanted = str(entry["file"]), label(entry)
        found = "valid" if run([suites / "warc" / name]).ok else "invalid"
        if wanted is not None:
            agreement[wanted, found] += 1
            others += [name] if wanted != found else []
    assert sorted(others) == sorted(DISAGREEMENTS)
    table = "\n".join(
        f"| labelled {wanted} | {agreement[wanted, 'valid']} | {agreement[wanted, 'invalid']} |"
        for wanted in ("valid", "invalid")
    )
    assert table in DOCUMENT.read_text()


def test_each_disagreement_stands_in_the_document_with_its_reason() -> None:
    text = DOCUMENT.read_text()
    assert all(f"| {name} | {reason} |" in text for name, reason in DISAGREEMENTS.items())


def test_all_files_together_are_no_trouble(suites: Path, tmp_path: Path) -> None:
    """Every file of the set, also those that are no WARC, as one archive."""
    folder = tmp_path / "archive"
    folder.mkdir()
    names = [str(entry["file"]) for entry in entries(suites)]
    for number, name in enumerate(names):
        shutil.copyfile(suites / "warc" / name, folder / f"{number}.warc.gz")
    report = run([tmp_path])
    assert len(report.files) == len(names)
    assert json.dumps(report.as_json(), ensure_ascii=False).encode()
