"""The pages that link to a broken page are found in metadata records, whatever state these are in."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.frontier import figures, totals
from archiver.tools.report import broken_pages
from archiver.warc.reader import read_records
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

PAGES = [f"/p{number}" for number in range(6)]


@pytest.fixture(name="directory")
def with_a_dead_link(tmp_path: Path) -> Iterator[Path]:
    routes = {"/": ok(page("Home", PAGES)), **{path: ok(page(path, ["/", "/dead"])) for path in PAGES}}
    with RawServer(routes) as server:
        crawl(tmp_path / "c", server.url())
        yield tmp_path / "c"


def linking(directory: Path) -> set[str]:
    """Return the paths of the pages that link to the broken page."""
    with totals.open_totals(directory) as db:
        rows = list(broken_pages.broken_page_rows(db, directory / "archive"))
    assert all(str(row[0]).endswith("/dead") for row in rows)
    return {"/" + str(row[2]).rpartition("/")[2] for row in rows}


def stored(directory: Path) -> list[tuple[str, Path, int, int]]:
    """Return URL, file, offset and length of the metadata record of each page."""
    with totals.open_totals(directory) as db:
        return [(url, directory / "archive" / name, at, size) for url, name, at, size in figures.pages_stored(db, 99)]


def test_the_usual_records_are_read_at_once_and_as_by_the_reader_of_all_records(directory: Path) -> None:
    places = stored(directory)
    assert len(places) == len(PAGES) + 1
    for _, path, offset, length in places:
        with path.open("rb") as file:
            block = broken_pages._usual(os.pread(file.fileno(), length, offset))
            record = next(read_records(file, offset))
            assert block == b"".join(record.pieces())
    assert linking(directory) == set(PAGES)


@pytest.mark.parametrize("fault", ["flipped", "blank"])
def test_a_damaged_record_hides_its_own_links_only(directory: Path, fault: str) -> None:
    places = stored(directory)
    page_read, path, offset, length = places[3]
    content = bytearray(path.read_bytes())
    if fault == "flipped":
        content[offset + length - 6] ^= 1  # its checksum
    else:
        content[offset : offset + length] = bytes(length)
    path.write_bytes(content)
    broken = "/" + page_read.rpartition("/")[2]
    first = first_to_name_it(directory)  # crawl.db knows that one
    assert linking(directory) == set(PAGES) - ({broken} - {first})


def first_to_name_it(directory: Path) -> str:
    return "/" + str(rows(directory, "SELECT via FROM urls WHERE url LIKE '%/dead'")[0][0]).rpartition("/")[2]
