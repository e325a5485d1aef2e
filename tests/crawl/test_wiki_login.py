"""Crawls of a real wiki behind its login form: DokuWiki, with a hidden token, sessions and links that log out."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import Stored, rows, stored
from fixtures.command import archiver
from fixtures.wiki import DENIED, MEMBERS, PASSWORD, USER, Wiki, dokuwiki, needs_dokuwiki

pytestmark = needs_dokuwiki

TOOLS = r"[?&](do=(?!log)|rev|idx|ns|image|tab_files)|/lib/(?!exe/js)|doku\.php/"  # of the wiki itself: history, media


@pytest.fixture(name="wiki")
def a_wiki(tmp_path: Path) -> Iterator[Wiki]:
    with dokuwiki(tmp_path / "wiki") as running:
        yield running


def crawled(wiki: Wiki, cwd: Path) -> tuple[int, str]:
    form = f"{wiki.url}?id=start&do=login u={USER} p=env:WIKI_PASSWORD 'logged-out={DENIED}'"
    options = ("-o", "c", "--rate", "0", "--login", form, "--exclude", TOOLS)
    done = archiver("crawl", f"{wiki.url}?id=start", *options, cwd=cwd)
    return done.returncode, done.stderr


def check_members(directory: Path) -> None:
    """All pages for members are archived once, as members see them."""
    bodies = [(each.url, gunzipped(each)) for each in stored(directory)]
    for name in MEMBERS:
        (body,) = (body for address, body in bodies if address.endswith(f"?id={name}"))
        assert f"Only members read {name}.".encode() in body
    assert not any(DENIED.encode() in body for _, body in bodies)


def gunzipped(record: Stored) -> bytes:
    return gzip.decompress(record.body) if record.body.startswith(b"\x1f\x8b") else record.body


def test_what_members_see_is_archived(wiki: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    code, said = crawled(wiki, tmp_path)
    assert code == ExitCode.DONE, said
    check_members(tmp_path / "c")
    left_out = archiver("report", "c", cwd=tmp_path).stdout
    assert re.search(r"login: the link logs out \(--include takes it\) +[1-9]", left_out)


def test_it_logs_in_again_when_the_session_ends(wiki: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    wiki.end_sessions_at(3)
    code, said = crawled(wiki, tmp_path)
    assert code == ExitCode.DONE, said
    assert not (wiki.folder / "end").exists(), "the sessions were ended"
    check_members(tmp_path / "c")


def test_a_wrong_password_needs_a_person(wiki: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "wrong")
    code, said = crawled(wiki, tmp_path)
    assert code == ExitCode.LIMIT, said
    assert "needs a person" in said
    assert "archiver login c" in said
    assert rows(tmp_path / "c", "SELECT url FROM urls WHERE state = 'archived' AND hop <> 'P'") == []
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    again = archiver("resume", "c", cwd=tmp_path)
    assert again.returncode == ExitCode.DONE, again.stderr
    check_members(tmp_path / "c")
