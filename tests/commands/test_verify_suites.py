"""Real WARC files of thirteen projects, labelled valid or invalid by others: `verify` agrees, or it is said why not."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from archiver.tools.verify.collection import verify

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "validators.md"

BRACKETS = "the grammar of WARC/1.0 allows wget's brackets around URLs: a warning"
ONE_ID = "wget gave two records one ID; only a check of all records shows that"
ONLY_RECOMMENDED = "the standard only recommends otherwise: a warning"
CUT = "the file ends without the two CRLF that must follow a record"

DISAGREEMENTS = {
    "warcio/example-bad.warc.gz.bad": f"several records share one gzip member; {ONLY_RECOMMENDED}",
    "warcio/example-wget-bad-target-uri.warc.gz": BRACKETS,
    "warcio.js/example-wget-bad-target-uri.warc.gz": BRACKETS,
    "jwat/invalid-warcfile-contenttype-warcinfo-recommended.warc": f"a warcinfo with another type; {ONLY_RECOMMENDED}",
    "jwat/invalid-warcfile-encoding-headers.warc.gz": "only the HTTP heads of the site hold odd characters",
    "warc-specifications/20141124-heritrix-server-not-modified.warc.gz": CUT,
    "warcio.js/example-url-agnostic-revisit.warc.gz": CUT,
    "cdxj-indexer/example.warc.gz": "two block digests are wrong; five of eight validators see it",
    "webarchive-commons/IAH-urls-wget.warc.gz": ONE_ID,
    "webarchive-commons/IAH-urls-wget.warc": ONE_ID,
    "webarchive-commons/link-extraction-test.warc": "written by hand: records without ID and date, wrong lengths",
}

VALIDATORS = {
    "warcio_check": "warcio check",
    "fastwarc_check": "fastwarc check",
    "warctools_warcvalid": "warctools warcvalid",
    "jwarc_validate": "jwarc validate",
    "jwat": "JWAT",
    "httrack_validate": "HTTrack warc-validate.py",
    "cdxj_indexer": "cdxj-indexer",
    "warciojs_index": "warcio.js index",
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
        found = "valid" if verify([suites / "warc" / name]).ok else "invalid"
        if wanted is not None:
            agreement[wanted, found] += 1
            others += [name] if wanted != found else []
    assert sorted(others) == sorted(DISAGREEMENTS)
    table = "\n".join(
        f"| labelled {wanted} | {agreement[wanted, 'valid']} | {agreement[wanted, 'invalid']} |"
        for wanted in ("valid", "invalid")
    )
    assert table in DOCUMENT.read_text()


def test_the_document_tells_how_often_other_validators_agree(suites: Path) -> None:
    agreeing: Counter[str] = Counter()
    for entry in entries(suites):
        wanted, verdicts = label(entry), entry.get("validators")
        if wanted is not None and isinstance(verdicts, dict):
            agreeing.update(name for name, said in verdicts.items() if (said["rc"] == 0) == (wanted == "valid"))
    text = DOCUMENT.read_text()
    assert all(f"| {VALIDATORS[name]} | {times} |" in text for name, times in agreeing.items())


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
    report = verify([tmp_path])
    assert len(report.files) == len(names)
    assert json.dumps(report.as_json(), ensure_ascii=False).encode()
