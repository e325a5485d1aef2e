"""`verify` over files of any kind: what records say of each other, progress, the pool, the report, the document."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from archiver.errors import ConfigError
from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import (
    CODES,
    MAX_EACH,
    Findings,
    Severity,
    VerifyFinding,
    VerifyProgress,
    VerifyReport,
)
from archiver.url import surt
from fixtures.handmade_warc import Collection, member, record, sha256

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "verify.md"


@pytest.fixture(name="collection")
def a_collection(tmp_path: Path) -> Collection:
    return Collection(tmp_path / "collection", surt=surt)


def codes(report: VerifyReport) -> set[str]:
    return set(report.counts)


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(member(part) for part in records))
    return path


def test_a_good_collection_has_no_finding(collection: Collection) -> None:
    report = verify([collection.folder])
    assert (report.ok, report.findings, report.counts) == (True, (), {})
    assert report.as_json()["records"] == 1 + 3 * len(collection.visits)


A, B, C = (f"<urn:uuid:00000000-0000-4000-8000-{number:012}>" for number in (1, 2, 3))
HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
SAME = ("WARC-Target-URI", "http://example.org/1")
ASKED = b"GET / HTTP/1.1\r\n\r\n"
WARCINFO = record("warcinfo", b"a: b\r\n", number=7)
ORIGINAL = record("response", HEAD + b"x", ("WARC-Payload-Digest", sha256(b"x")), number=1)


CUT = ("WARC-Truncated", "length")


def revisit(*fields: tuple[str, str], payload: bytes = b"x") -> bytes:
    profile = ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
    return record("revisit", HEAD, profile, ("WARC-Payload-Digest", sha256(payload)), CUT, *fields, number=2)


REFERS = (("WARC-Refers-To-Target-URI", "http://example.org/1"), ("WARC-Refers-To-Date", "2020-09-13T12:26:40.123456Z"))
ELSEWHERE = (("WARC-Refers-To-Target-URI", "http://example.org/9"), REFERS[1])
ITSELF = (("WARC-Refers-To-Target-URI", "http://example.org/2"), REFERS[1])

RELATIONS: dict[str, tuple[tuple[bytes, ...], set[str]]] = {
    "a pair": ((ORIGINAL, record("request", ASKED, SAME, ("WARC-Concurrent-To", A), number=2)), set()),
    "a pair, told by the response": (
        (
            record("request", ASKED, number=2),
            record("response", HEAD, ("WARC-Concurrent-To", B), ("WARC-Target-URI", "http://example.org/2")),
        ),
        set(),
    ),
    "a request alone": ((record("request", ASKED),), {"pair-missing"}),
    "a response alone": ((ORIGINAL,), {"pair-missing"}),
    "a pair of two URLs": (
        (ORIGINAL, record("request", ASKED, ("WARC-Concurrent-To", A), number=2)),
        {"concurrent-mismatch"},
    ),
    "a pair of two dates": (
        (
            ORIGINAL,
            record("request", ASKED, SAME, ("WARC-Concurrent-To", A), ("WARC-Date", "2020-01-01T00:00:00Z"), number=2),
        ),
        {"concurrent-mismatch"},
    ),
    "concurrent to nothing": ((record("resource", b"", ("WARC-Concurrent-To", B)),), {"concurrent-missing"}),
    "one warcinfo twice": ((WARCINFO,), set()),
    "one id twice": ((record("resource"), record("resource")), {"record-id-repeated"}),
    "a warcinfo that is none": ((record("resource", b"", ("WARC-Warcinfo-ID", B)),), {"warcinfo-missing"}),
    "a revisit": ((ORIGINAL, revisit(*REFERS)), {"pair-missing"}),
    "a revisit of something else": ((ORIGINAL, revisit(*REFERS, payload=b"y")), {"pair-missing", "revisit-mismatch"}),
    "a revisit by another spelling": (
        (ORIGINAL, revisit(*REFERS).replace(b"Payload-Digest: sha256", b"Payload-Digest: sha-256")),
        {"pair-missing"},
    ),
    "a revisit of nothing": ((revisit(*ELSEWHERE),), {"revisit-original"}),
    "a revisit of what was cut": (
        (record("response", HEAD + b"x", CUT, ("WARC-Payload-Digest", sha256(b"x")), number=1), revisit(*REFERS)),
        {"pair-missing", "revisit-of-cut"},
    ),
    "a revisit that names nothing": ((ORIGINAL, revisit()), {"pair-missing", "revisit-unnamed"}),
    "a revisit by URL, date and id": ((ORIGINAL, revisit(*REFERS, ("WARC-Refers-To", A))), {"pair-missing"}),
    "a revisit by the id of another": (
        (ORIGINAL, record("resource", number=3), revisit(*REFERS, ("WARC-Refers-To", C))),
        {"pair-missing", "revisit-mismatch"},
    ),
    "a revisit without the mark of a cut": (
        (ORIGINAL, revisit(*REFERS).replace(b"WARC-Truncated: length\r\n", b"")),
        {"pair-missing", "field-recommended"},
    ),
    "a revisit of a revisit": ((revisit(*ITSELF),), {"revisit-of-revisit"}),
}


@pytest.mark.parametrize(("records", "wanted"), RELATIONS.values(), ids=RELATIONS)
def test_what_records_say_of_each_other(tmp_path: Path, records: tuple[bytes, ...], wanted: set[str]) -> None:
    assert codes(verify([write(tmp_path / "a.warc.gz", WARCINFO, *records)])) == wanted


def test_files_given_together_may_refer_to_each_other(tmp_path: Path) -> None:
    first = write(tmp_path / "a.warc.gz", WARCINFO, ORIGINAL)
    second = write(tmp_path / "b.warc.gz", record("warcinfo", number=8), revisit(*REFERS))
    assert "revisit-original" not in codes(verify([first, second]))
    assert "revisit-original" in codes(verify([second]))
    assert "revisit-original" not in codes(verify([tmp_path]))


FILES = {
    "empty": (b"", {"no-record"}),
    "text": (b"hello", {"not-warc"}),
    "a ZIP": (b"PK\3\4" + bytes(60), {"not-warc"}),
    "no warcinfo": (member(record("resource")), {"no-warcinfo"}),
    "no block digest": (
        member(WARCINFO) + member(record("resource", without=["WARC-Block-Digest"])),
        {"digest-missing"},
    ),
    "one member": (member(WARCINFO + record("resource")), {"member-shared"}),
    "uncompressed": (WARCINFO + record("resource"), set()),
    "names of odd bytes": (
        WARCINFO + record("resource").replace(b"resource", b"res\xffource"),
        {"not-utf8", "type-unknown"},
    ),
    "an ARC": (
        b"filedesc://x.arc 0.0.0.0 20200101000000 text/plain 15\n1 0 x\nURL IP-a\n\n",
        {"arc"},
    ),
    "a broken ARC": (b"filedesc://x.arc 0.0.0.0 2020\n\n\n\n", {"arc", "arc-broken"}),
    "a record of the wrong length": (record("resource", b"x", ("Content-Length", "9")), {"block-cut", "no-warcinfo"}),
    "a record without length": (
        record("resource", without=["Content-Length"]),
        {"content-length", "no-warcinfo"},
    ),
}


@pytest.mark.parametrize(("data", "wanted"), FILES.values(), ids=FILES)
def test_any_file_is_read_and_its_fault_named(tmp_path: Path, data: bytes, wanted: set[str]) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(data)
    report = verify([path])
    assert codes(report) == wanted
    json.dumps(report.as_json(), ensure_ascii=False).encode()


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.symlink_to("a.warc")
    with pytest.raises(ConfigError):
        verify([path])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "archive").mkdir()
    with pytest.raises(ConfigError, match="no WARC file"):
        verify([folder])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # warcio leaves its spool files open
def test_what_warcio_writes_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / "warcio.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        writer.write_record(writer.create_warcinfo_record("warcio.warc.gz", {"software": "warcio"}))
        heads = StatusAndHeaders("200 OK", [("Content-Type", "text/plain")], protocol="HTTP/1.1")
        answer = writer.create_warc_record("http://a/", "response", io.BytesIO(b"text"), http_headers=heads)
        asked = StatusAndHeaders("GET / HTTP/1.1", [("Host", "a")], is_http_request=True)
        question = writer.create_warc_record("http://a/", "request", http_headers=asked)
        writer.write_request_response_pair(question, answer)
        writer.write_record(writer.create_warc_record("http://a/m", "metadata", io.BytesIO(b"a: b\r\n")))
        writer.write_record(writer.create_warc_record("http://a/r", "resource", io.BytesIO(b"text")))
        chunked = StatusAndHeaders("200 OK", [("Transfer-Encoding", "chunked")], protocol="HTTP/1.1")
        body = io.BytesIO(b"4\r\ntext\r\n0\r\n\r\n")
        writer.write_record(writer.create_warc_record("http://a/c", "response", body, http_headers=chunked))
    report = verify([path])
    assert report.ok
    assert codes(report) == {"payload-digest-needless", "payload-digest-of-framing", "pair-missing"}


@pytest.mark.parametrize("name", ["nothing", "nothing.warc.gz"])
def test_a_path_that_names_nothing_is_the_users_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        verify([tmp_path / name])


def test_progress_grows_to_the_whole(collection: Collection) -> None:
    heard: list[VerifyProgress] = []
    verify([collection.folder], heard.append)
    assert heard[-1] == VerifyProgress(collection.warc.stat().st_size, collection.warc.stat().st_size, 1, 1)
    assert [told.bytes_done for told in heard] == sorted(told.bytes_done for told in heard)


POOLED = """
import sys
from pathlib import Path
from archiver.tools.verify import pool, reading
from archiver.tools.verify.collection import verify

class Pool(pool.ProcessPoolExecutor):
    made = 0

    def __init__(self, *given):
        Pool.made += 1
        super().__init__(*given)

if __name__ == "__main__":
    reading.WORTH_A_POOL = 0
    pool.ProcessPoolExecutor = Pool
    heard = []
    report = verify([Path(sys.argv[1])], heard.append)
    print(Pool.made, len(report.files), sorted(report.counts.items()), heard[-1].files_done, heard[-1].bytes_done > 0)
"""


def test_several_files_are_read_by_several_processes(tmp_path: Path) -> None:
    folder = tmp_path / "warcs"
    folder.mkdir()
    for number in range(3):
        write(folder / f"{number}.warc.gz", record("warcinfo", number=number), record("resource", number=number + 9))
    (folder / "bad.warc").write_bytes(b"garbage")
    script = tmp_path / "pooled.py"
    script.write_text(POOLED)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == "1 4 [('not-warc', 1)] 4 True\n"


def test_many_findings_of_one_kind_are_counted_and_a_sample_is_kept(tmp_path: Path) -> None:
    bad = [
        record("resource", b"x", ("WARC-Block-Digest", sha256(b"y")), number=number + 100)
        for number in range(MAX_EACH + 20)
    ]
    report = verify([write(tmp_path / "a.warc.gz", WARCINFO, *bad)])
    assert report.counts["block-digest"] == MAX_EACH + 20
    assert sum(fault.code == "block-digest" for fault in report.findings) == MAX_EACH
    assert report.count(Severity.FAULT) == MAX_EACH + 20


def test_a_report_as_json_says_everything() -> None:
    findings = Findings()
    fault = VerifyFinding("a.warc", "block-digest", "it is wrong", 7, "response", "http://a/")
    findings.add(fault)
    report = VerifyReport((), tuple(findings.kept), findings.counts)
    said = report.as_json()
    assert not said["ok"]
    assert said["codes"] == {"block-digest": 1}
    assert said["findings"] == [
        {
            "severity": "fault",
            "file": "a.warc",
            "code": "block-digest",
            "message": "it is wrong",
            "offset": 7,
            "record": "response",
            "url": "http://a/",
        }
    ]


def test_the_document_lists_every_code_with_its_severity_and_meaning() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    stated = [tuple(cell.strip(" `") for cell in line.strip("|").split(" | ")) for line in rows]
    wanted = [(word, code.severity.value, code.meaning) for word, code in CODES.items()]
    assert [row for row in stated if len(row) == 3 and row[0] in CODES] == [
        (word, severity, meaning.strip(" `")) for word, severity, meaning in wanted
    ]
