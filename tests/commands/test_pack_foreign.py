"""Archives that others wrote, sound and not, are packed byte for byte, and the reference tool takes the package."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from archiver.collection.reindex import rebuild
from archiver.crawl.reader_process import ReaderProcess
from archiver.tools.wacz.contents import read_contents
from archiver.tools.wacz.pack import PackOptions, pack
from fixtures.packages import index, members, pages, valid

pytestmark = pytest.mark.suites


def test_all_of_them_in_one_package(suites: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c" / "archive"
    folder.mkdir(parents=True)
    files = [path for path in (suites / "warc").rglob("*.warc*") if path.name.endswith((".warc", ".warc.gz"))]
    assert len(files) > 40
    for number, path in enumerate(sorted(files)):
        shutil.copyfile(path, folder / f"{number:03} {path.name}")
    lines = rebuild(tmp_path / "c")
    (made,) = pack(
        PackOptions(tmp_path / "c.wacz", "archiver/0", "2026-01-02T03:04:05Z", "Of others"),
        read_contents(tmp_path / "c"),
        ReaderProcess(),
    )
    assert valid(made.path)
    assert made.damage
    assert (made.captures, len(index(made.path))) == (lines, lines)
    held = members(made.path)
    packed = {name: sha256(data).digest() for name, data in held.items() if name.startswith("archive/")}
    assert packed == {f"archive/{path.name}": sha256(path.read_bytes()).digest() for path in folder.iterdir()}
    listed = [*pages(made.path), *pages(made.path, "extraPages")]
    assert len(listed) == made.seeds + made.pages > 10
    assert all(row["ts"].endswith("Z") and row["url"].startswith("http") for row in listed)
