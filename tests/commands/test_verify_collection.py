"""`verify` over a whole crawl: each way to spoil it is named, and a crawl that still runs is not accused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.tools.verify.collection import verify
from archiver.tools.verify.file import ReadJob, check_file
from archiver.tools.verify.findings import VerifyReport
from archiver.url import surt
from fixtures.handmade_warc import Collection, member, record, sha256

Spoil = Callable[[Collection], object]


@pytest.fixture(name="collection")
def a_collection(tmp_path: Path) -> Collection:
    return Collection(tmp_path / "collection", surt=surt)


def codes(report: VerifyReport) -> set[str]:
    return set(report.counts)


def damage(at: int) -> Spoil:
    def spoil(made: Collection) -> None:
        data = bytearray(made.warc.read_bytes())
        data[at] ^= 0x10
        made.warc.write_bytes(data)

    return spoil


def in_the_first_response(flip: int) -> Spoil:
    def spoil(made: Collection) -> None:
        entry = json.loads(made.lines[0].split(" ", 2)[2])
        data = bytearray(made.warc.read_bytes())
        data[int(entry["offset"]) + int(entry["length"]) // 2] ^= flip
        made.warc.write_bytes(data)

    return spoil


def rewrite(old: str, new: str, count: int = -1) -> Spoil:
    def spoil(made: Collection) -> None:
        made.index.write_text(made.index.read_text().replace(old, new, count))

    return spoil


def lines(change: Callable[[list[str]], list[str]]) -> Spoil:
    def spoil(made: Collection) -> None:
        made.index.write_text("".join(change(made.index.read_text().splitlines(keepends=True))))

    return spoil


def sql(statement: str) -> Spoil:
    return lambda made: made.sql(statement)


def append(data: bytes) -> Spoil:
    return lambda made: made.warc.write_bytes(made.warc.read_bytes() + data)


def rename(name: str) -> Spoil:
    def spoil(made: Collection) -> None:
        made.warc.rename(made.warc.with_name(name))

    return spoil


def lose_database(made: Collection) -> None:
    """Settings show that there was one."""
    made.database.unlink()
    (made.folder / "crawl.toml").touch()


LOST = {
    "index-place",
    "capture-place",
    "concurrent-missing",
    "pair-missing",
}  # what follows from a response that cannot be read
SPOILED: dict[str, tuple[Spoil, set[str]]] = {
    "a damaged response": (in_the_first_response(0x10), {"gzip-broken", *LOST}),
    "garbage at the end": (append(b"garbage"), {"not-gzip", "warc-length"}),
    "a strange record": (append(member(record("resource", number=99))), {"index-incomplete", "warc-length"}),
    "a shorter file": (
        lambda made: made.warc.write_bytes(made.warc.read_bytes()[:-9]),
        {"gzip-cut", "warc-length", "capture-place"},
    ),
    "no file": (lambda made: made.warc.unlink(), {"index-file", "warc-missing"}),
    "another file name": (rename("other.warc.gz"), {"index-file", "index-incomplete", "warc-missing", "warc-unknown"}),
    "no index": (lambda made: made.index.unlink(), {"index-missing"}),
    "an empty index": (lines(lambda _: []), {"index-incomplete"}),
    "a line too few": (lines(lambda known: known[1:]), {"index-incomplete"}),
    "a line twice": (lines(lambda known: [*known, known[-1]]), {"index-repeated"}),
    "unsorted lines": (lines(lambda known: known[::-1]), {"index-order"}),
    "half a line": (lines(lambda known: [*known[:-1], known[-1][:-9]]), {"index-line", "index-incomplete"}),
    "a line of no JSON": (lines(lambda known: [*known, "z 20200101000000 {\n"]), {"index-line"}),
    "a line of nesting": (lines(lambda known: [*known, "z 20200101000000 " + "[" * 100_000 + "\n"]), {"index-line"}),
    "a line of other JSON": (lines(lambda known: [*known, "z 20200101000000 []\n"]), {"index-line"}),
    "another key": (rewrite("org,example)/a ", "org,example)/aa "), {"index-key"}),
    "another timestamp": (rewrite(" 2020", " 2021"), {"index-key"}),
    "another URL": (rewrite('"http://example.org/a"', '"http://example.org/A"'), {"index-mismatch"}),
    "a URL of half a surrogate": (
        rewrite('"http://example.org/a"', '"http://\\ud800/"'),
        {"index-key", "index-mismatch"},
    ),
    "another status": (rewrite('"200"', '"404"'), {"index-mismatch"}),
    "another media type": (rewrite("text/html", "text/plain"), {"index-mismatch"}),
    "another digest": (rewrite('"sha256:', '"sha256:f'), {"index-mismatch"}),
    "another offset": (rewrite('"offset": "', '"offset": "1'), {"index-place", "index-incomplete"}),
    "another length": (rewrite('"length": "', '"length": "1'), {"index-place", "index-incomplete"}),
    "no capture": (sql("DELETE FROM captures WHERE url = 2"), {"capture-missing", "archived-without-capture"}),
    "another place": (
        sql("UPDATE captures SET offset = offset + 1 WHERE url = 1"),
        {"capture-place", "capture-missing"},
    ),
    "a place beyond all numbers": (
        sql(f"UPDATE captures SET offset = {(1 << 63) - 1} WHERE url = 1"),
        {"capture-place", "capture-missing"},
    ),
    "another length of the request": (
        sql("UPDATE captures SET request_length = request_length - 1 WHERE url = 1"),
        {"capture-place", "capture-missing"},
    ),
    "another captured URL": (sql("UPDATE urls SET url = url || 'x' WHERE id = 2"), {"capture-mismatch"}),
    "another captured status": (sql("UPDATE captures SET status = 404 WHERE url = 2"), {"capture-mismatch"}),
    "another captured type": (sql("UPDATE captures SET mime = '' WHERE url = 2"), {"capture-mismatch"}),
    "another captured digest": (sql("UPDATE captures SET payload_digest = '' WHERE url = 2"), {"capture-mismatch"}),
    "another captured time": (sql("UPDATE captures SET timestamp = timestamp + 1 WHERE url = 2"), {"capture-mismatch"}),
    "a truncation in one place only": (
        sql("UPDATE captures SET truncated = 'time' WHERE url = 2"),
        {"capture-mismatch"},
    ),
    "a URL archived twice": (
        sql("UPDATE captures SET url = 1 WHERE url = 2; UPDATE urls SET state = 'waiting' WHERE id = 2"),
        {"capture-mismatch", "settled-twice"},
    ),
    "another committed length": (sql("UPDATE warcs SET committed = committed - 1"), {"warc-length"}),
    "an unknown WARC": (sql("UPDATE warcs SET name = 'x.warc.gz'"), {"warc-missing", "warc-unknown"}),
    "other bytes in a closed file": (
        sql(f"UPDATE warcs SET digest = 'sha256:{'0' * 64}'"),
        {"file-changed"},
    ),
    "an empty crawl.db": (lambda made: made.database.write_bytes(b""), {"frontier-missing"}),
    "a lost crawl.db": (lose_database, {"frontier-missing"}),
    "no crawl.db": (lambda made: made.database.unlink(), {"no-frontier"}),
    "a crawl.db of text": (lambda made: made.database.write_text("x" * 5000), {"frontier-unreadable"}),
    "a crawl.db of another version": (sql("PRAGMA user_version = 99"), {"frontier-unreadable"}),
    "a damaged crawl.db": (
        lambda made: made.database.write_bytes(made.database.read_bytes()[:-4096]),
        {"frontier-unreadable"},
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_each_way_to_spoil_a_collection_is_named(collection: Collection, name: str) -> None:
    spoil, wanted = SPOILED[name]
    spoil(collection)
    report = verify([collection.folder])
    assert wanted <= codes(report)
    assert not codes(report) - wanted or name in ("a damaged response", "a shorter file", "a damaged crawl.db"), (
        report.counts
    )
    json.dumps(report.as_json(), ensure_ascii=False).encode()


def test_captures_that_another_one_seems_to_cover_are_found(collection: Collection) -> None:
    sql("UPDATE captures SET metadata_length = metadata_length + 1000000 WHERE url = 1")(collection)
    found = verify([collection.folder]).counts
    assert (found["capture-place"], found["capture-missing"]) == (1, 1)


CURES: dict[str, tuple[Spoil, str]] = {
    "no index": (lambda made: made.index.unlink(), "archiver index "),
    "an empty crawl.db": (lambda made: made.database.write_bytes(b""), "archiver rebuild "),
    "a damaged crawl.db": (
        lambda made: made.database.write_bytes(made.database.read_bytes()[:-4096]),
        "archiver rebuild ",
    ),
    "no WARC file": (lambda made: made.warc.unlink(), "restore a copy"),
}


@pytest.mark.parametrize("name", CURES)
def test_what_can_be_cured_is_named_with_its_cure(collection: Collection, name: str) -> None:
    spoil, cure = CURES[name]
    spoil(collection)
    assert any(
        cure in fault.message and str(collection.folder) in fault.message + fault.file
        for fault in verify([collection.folder]).findings
    )


def test_the_sum_of_a_file_is_held_against_its_bytes(collection: Collection) -> None:
    sql(f"UPDATE warcs SET digest = '{sha256(collection.warc.read_bytes())}'")(collection)
    assert codes(verify([collection.folder])) == set()
    damage(4)(collection)  # the time in the header of the first member: nothing else covers it
    assert codes(verify([collection.folder])) == {"file-changed"}


def test_the_numbers_of_a_host_are_held_against_its_urls(collection: Collection) -> None:
    assert codes(verify([collection.folder])) == set()
    sql("UPDATE hosts SET archived = archived + 1 WHERE id = 1")(collection)
    assert codes(verify([collection.folder])) == {"host-counts"}


HARMLESS = range(4, 10)  # in a gzip header: time, compression hints and operating system, of which nothing depends


def test_a_flipped_bit_anywhere_is_a_fault(collection: Collection) -> None:
    good = collection.warc.read_bytes()
    starts = [at for at in range(len(good)) if good.startswith(b"\x1f\x8b\x08", at)]
    for place in range(0, len(good), 23):
        if place - max(start for start in starts if start <= place) in HARMLESS:
            continue
        damage(place)(collection)
        assert not verify([collection.folder]).ok, place
        collection.warc.write_bytes(good)


def opened(collection: Collection, committed: int) -> None:
    """Make the collection one whose crawl still runs, or was killed."""
    collection.warc.rename(collection.warc.with_name(collection.name + ".open"))
    collection.sql(f"UPDATE warcs SET closed = 0, committed = {committed}")


def test_an_open_file_with_all_of_it_committed_has_no_finding(collection: Collection) -> None:
    opened(collection, collection.warc.stat().st_size)
    rewrite(".warc.gz", ".warc.gz.open")(collection)
    assert codes(verify([collection.folder])) == set()


@pytest.mark.parametrize("cut", [0, 1, 100, 700])
def test_the_tail_of_an_open_file_is_a_note(collection: Collection, cut: int) -> None:
    size = collection.warc.stat().st_size
    first = json.loads(collection.lines[1].split(" ", 2)[2])
    opened(collection, int(first["offset"]))
    path = collection.warc.with_name(collection.name + ".open")
    path.write_bytes(path.read_bytes()[: size - cut])
    collection.sql("DELETE FROM captures WHERE url > 1; UPDATE urls SET state = 'waiting' WHERE id > 1")
    collection.index.write_text(collection.lines[0])
    report = verify([collection.folder])
    assert report.ok
    assert codes(report) <= {"open-tail", "index-behind", "concurrent-missing"}
    assert "open-tail" in codes(report)


def test_rows_and_lines_that_were_added_after_the_files_were_read_are_no_faults(collection: Collection) -> None:
    opened(collection, 1)  # all captures lie behind what was committed when the reading began
    path = collection.warc.with_name(collection.name + ".open")
    path.write_bytes(path.read_bytes()[:800])
    report = verify([collection.folder])
    assert report.ok, report.findings


def test_a_file_that_was_begun_while_others_were_read_is_no_fault(collection: Collection) -> None:
    opened(collection, collection.warc.stat().st_size)
    rewrite(".warc.gz", ".warc.gz.open")(collection)
    later = collection.warc.with_name("later.warc.gz")
    (collection.folder / "indexes" / "run-later.cdxj").write_text(
        collection.lines[0].replace(collection.name, later.name)
    )
    assert codes(verify([collection.folder])) == {"index-file"}

    def goes_on(_: object) -> None:
        later.write_bytes(collection.warc.with_name(collection.name + ".open").read_bytes())

    assert verify([collection.folder], goes_on).ok


def test_a_crawl_that_was_cut_off_while_its_index_was_made_is_no_fault(collection: Collection) -> None:
    collection.sql("UPDATE warcs SET indexed = 0")
    run_of_it = collection.index.with_name(f"run-{collection.name}-00000.cdxj")
    run_of_it.write_text(collection.lines[0].replace(collection.name, collection.name + ".open"))
    collection.index.unlink()
    assert codes(verify([collection.folder])) == {"index-behind"}


def test_damage_below_the_committed_length_of_an_open_file_is_a_fault(collection: Collection) -> None:
    damage(700)(collection)
    opened(collection, collection.warc.stat().st_size)
    assert {"gzip-broken", "capture-place"} <= codes(verify([collection.folder]))


def test_a_file_renamed_since_its_folder_was_listed_is_still_read(collection: Collection, tmp_path: Path) -> None:
    before = collection.warc.with_name(collection.name + ".open")
    outcome = check_file(ReadJob(before, tmp_path / "inventory.db"), lambda _: None)
    assert (outcome.records, outcome.counts) == (10, {})
