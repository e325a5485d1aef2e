"""What a browser asks for to show a page is what the page and its parts name: one page with every way there is."""

from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.request import urlopen

import pytest

from archiver import url
from archiver.extract import Document, links
from archiver.extract.exchange import from_fields
from archiver.model import Hop
from fixtures import browser
from fixtures.devtools import needs_chromium
from fixtures.page_requests import ROUTES, small
from fixtures.rawserver import RawServer

NEEDED = (Hop.REQUISITE, Hop.SPECULATIVE)


def needed(start: str) -> set[str]:
    """Every URL that shows the page: what it names, what its parts name, and so on."""
    seen, waiting = {start}, [start]
    while waiting:
        for found in named(waiting.pop()):
            if found not in seen and url.origin(found) == url.origin(start):
                seen.add(found)
                waiting.append(found)
    return seen


def named(address: str) -> Iterator[str]:
    with urlopen(address) as answer:
        fields: Message = answer.headers
        document = Document(
            address, fields.get_content_type(), fields.get_content_charset(), answer.read(), Hop.REQUISITE
        )
    in_header = from_fields(address, [(name.lower(), value) for name, value in fields.items()])
    yield from (link.url for link in (*in_header, *links(document).links) if link.hop in NEEDED)


@pytest.mark.browser
@pytest.mark.slow
@needs_chromium
def test_everything_that_a_page_asks_for_is_named(tmp_path: Path) -> None:
    with RawServer(ROUTES, otherwise=small) as server:
        browser.tour([server.url()], tmp_path / "profile")
        asked = {server.url(target) for target in server.log.targets()}
        known = needed(server.url())
        root = server.url("")
    print(f"{len(asked)} asked for, {len(known)} named")
    assert not [target for target in asked if "not-asked-for" in target]
    assert len(asked) > 100
    missing = {found.removeprefix(root) for found in asked - known}
    assert missing == set()
