"""The index of a running crawl is seen by a pywb that is running too."""

import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from archiver.collection.index import FOLD, INDEX, RUN_LINES, Index, insert_lines
from archiver.model import Capture, Span

WARC = "w.warc.gz"


def capture(number: int) -> Capture:
    return Capture(
        url=f"http://e.org/{number}",
        timestamp=1_700_000_000_000_000 + number,
        status=200,
        mime="text/html",
        payload_digest="sha256:00",
        payload_length=1,
        received=1,
        warc=WARC,
        response=Span(number * 100, 50),
        request=Span(number * 100 + 50, 20),
        metadata=Span(number * 100 + 70, 30),
    )


def seconds(folder: Path) -> int:
    """What pywb compares to find out whether to look again."""
    return int(folder.stat()[8])


def test_each_change_is_seen_however_soon_it_comes(tmp_path: Path) -> None:
    index = Index(tmp_path)
    times = [seconds(tmp_path)]
    for number in range(3):
        index.add([capture(number)])
        index.flush()
        times.append(seconds(tmp_path))
    index.close_file(WARC)
    times.append(seconds(tmp_path))
    index.finish()
    times.append(seconds(tmp_path))
    assert times == sorted(set(times))


def test_open_files_are_named_as_they_are_called_on_disk_until_they_are_closed(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.add([capture(2), capture(1)])
    index.flush()
    (run,) = tmp_path.iterdir()
    lines = run.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["org,e)/1", "org,e)/2"]
    assert all(f'"{WARC}.open"' in line for line in lines)
    index.close_file(WARC)
    index.finish()
    (whole,) = tmp_path.iterdir()
    assert whole.name == INDEX
    assert whole.read_text() == "".join(line.replace(".open", "") + "\n" for line in lines)


def test_a_long_file_is_seen_whole_and_in_few_runs(tmp_path: Path) -> None:
    index = Index(tmp_path)
    added, runs = 0, list[list[bytes]]()
    for size in (1, RUN_LINES - 1, RUN_LINES // 2, RUN_LINES * (FOLD - 2), RUN_LINES, 3):
        index.add(capture(number) for number in range(added, added + size))
        added += size
        index.flush()
        assert not index.dirty
        runs = [run.read_bytes().splitlines() for run in tmp_path.iterdir()]
        assert all(lines == sorted(lines) for lines in runs)
        assert len({line for lines in runs for line in lines}) == sum(map(len, runs)) == added
    assert len(runs) == 2
    index.close_file(WARC)
    index.finish()
    (whole,) = tmp_path.iterdir()
    assert whole.read_bytes().splitlines() == sorted(line.replace(b".open", b"") for lines in runs for line in lines)


def test_a_run_that_is_full_is_told_of_too(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.add(capture(number) for number in range(RUN_LINES))
    assert index.dirty
    before = seconds(tmp_path)
    index.flush()
    assert seconds(tmp_path) > before


LINES = st.sets(st.text("ab", max_size=5).map(lambda text: f"{text}\n".encode()), max_size=20).map(sorted)


@given(LINES, LINES)
def test_lines_that_are_inserted_stand_where_a_merge_puts_them(there: list[bytes], new: list[bytes]) -> None:
    written = io.BytesIO()
    insert_lines(io.BytesIO(b"".join(there)), new, written)
    assert written.getvalue() == b"".join(sorted({*there, *new}))


def test_few_lines_come_into_a_large_index(tmp_path: Path) -> None:
    index, other = Index(tmp_path), "few.warc.gz"
    captures = [capture(number) for number in range(1000)]
    index.add(captures)
    index.close_file(WARC)
    index.finish()
    before = (tmp_path / INDEX).read_bytes().splitlines()
    index.add([captures[500]._replace(warc=other), captures[501]._replace(warc=other)])
    index.close_file(other)
    (new,) = (path.read_bytes().splitlines() for path in tmp_path.glob("run-*"))
    index.merge_in([other])
    (whole,) = tmp_path.iterdir()
    assert whole.read_bytes().splitlines() == sorted([*before, *new])
