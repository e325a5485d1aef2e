"""An index in compressed blocks: what is written is what is read, whatever the number of lines."""

from pathlib import Path

import pytest

from archiver.collection import index
from archiver.collection.index_search import open_source
from archiver.warc import cdx


@pytest.mark.parametrize("count", [0, 1, cdx.BLOCK - 1, cdx.BLOCK, cdx.BLOCK + 1, 3 * cdx.BLOCK + 7])
def test_blocks_hold_all_lines(tmp_path: Path, count: int) -> None:
    lines = [b"org,example)/%06d 20260101000000 {}\n" % number for number in range(count)]
    (tmp_path / index.INDEX).write_bytes(b"".join(lines))
    index.pack(tmp_path)
    keys = tmp_path / index.KEYS
    assert [line for _, line in cdx.zipnum_lines(keys)] == lines
    assert len(keys.read_bytes().splitlines()) == -(-count // cdx.BLOCK)
    assert not (tmp_path / index.INDEX).exists()
    with keys.open("rb") as file:
        source = open_source(keys, file)
        for start in {0, 1, count // 2, max(count - 1, 0)}:
            assert list(source.since(b"org,example)/%06d" % start)) == lines[start:]
