"""What pywb makes of a package: it unpacks it into a collection of its own, and replays what was captured."""

import subprocess
import sys
from pathlib import Path

import pytest

from archiver.crawl.reader_process import ReaderProcess
from archiver.tools.wacz.contents import read_contents
from archiver.tools.wacz.pack import PackOptions, pack
from fixtures.handmade_warc import member, record, sha256
from fixtures.packages import collection, notes, response
from fixtures.pywb_server import plain_wayback

pytestmark = [pytest.mark.replay, pytest.mark.slow]

SITE = "http://example.org"


def test_pywb_unpacks_and_replays_it(tmp_path: Path) -> None:
    bodies = {f"{SITE}/{name}": f"<title>{name}</title>".encode() for name in ("", "a", "b?x=1", "folder/")}
    files = [
        [response(url, body, number=number), notes("", number)] for number, (url, body) in enumerate(bodies.items())
    ]
    changed, sent = f"{SITE}/changed", {"2026-01": b"<title>1</title>", "2026-02": b"", "2026-03": b"<title>2</title>"}
    dates = {month: f"{month}-01T00:00:00.500001Z" for month in sent}
    for number, (month, body) in enumerate(sent.items(), 10):
        named = ("WARC-Date", dates[month])
        files.append(
            [response(changed, body, named, number=number) if body else unmodified(changed, named, dates["2026-01"])]
        )
    stock = read_contents(collection(tmp_path / "made", *files))
    (made,) = pack(
        PackOptions(tmp_path / "made.wacz", "archiver/0", "2026-01-02T03:04:05Z", "A title"), stock, ReaderProcess()
    )
    manager = str(Path(sys.executable).with_name("wb-manager"))
    for arguments in (("init", "theirs"), ("add", "--unpack-wacz", "theirs", str(made.path))):
        subprocess.run([manager, *arguments], cwd=tmp_path, check=True, capture_output=True)
    with plain_wayback(tmp_path / "collections" / "theirs") as pywb:
        for url, body in bodies.items():
            answer = pywb.get(url)
            assert (answer.status, answer.body) == (200, body), url
        for month, body in sent.items():  # the package's index has milliseconds, and the second is not modified
            assert pywb.get(changed, f"{month.replace('-', '')}01id_").body == (body or sent["2026-01"])


def unmodified(url: str, date: tuple[str, str], refers: str) -> bytes:
    """The member of a record that says that *url* is what it was at the date *refers*."""
    profile = ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/server-not-modified")
    original = (("WARC-Refers-To-Target-URI", url), ("WARC-Refers-To-Date", refers))
    digest = ("WARC-Payload-Digest", sha256(b"<title>1</title>"))
    return member(record("revisit", b"", ("WARC-Target-URI", url), date, profile, *original, digest, number=99))
