"""What pywb makes of a package: it unpacks it into a collection of its own, and replays what was captured."""

import subprocess
import sys
from pathlib import Path

import pytest

from archiver.wacz import Wish, pack, take_stock
from fixtures.packs import collection, notes, response
from fixtures.replaying import plain_wayback

pytestmark = [pytest.mark.replay, pytest.mark.slow]

SITE = "http://example.org"


def test_pywb_unpacks_and_replays_it(tmp_path: Path) -> None:
    bodies = {f"{SITE}/{name}": f"<title>{name}</title>".encode() for name in ("", "a", "b?x=1", "folder/")}
    files = [
        [response(url, body, number=number), notes("", number)] for number, (url, body) in enumerate(bodies.items())
    ]
    stock = take_stock(collection(tmp_path / "made", *files))
    (made,) = pack(Wish(tmp_path / "made.wacz", "archiver/0", "2026-01-02T03:04:05Z", "A title"), stock)
    manager = str(Path(sys.executable).with_name("wb-manager"))
    for arguments in (("init", "theirs"), ("add", "--unpack-wacz", "theirs", str(made.path))):
        subprocess.run([manager, *arguments], cwd=tmp_path, check=True, capture_output=True)
    with plain_wayback(tmp_path / "collections" / "theirs") as pywb:
        for url, body in bodies.items():
            answer = pywb.get(url)
            assert (answer.status, answer.body) == (200, body), url
