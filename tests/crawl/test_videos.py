"""The two ways of docs/how-to/archive-videos.md, with yt-dlp itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import stored
from fixtures.command import archiver
from fixtures.rawserver import NOT_FOUND, RawServer, keep
from fixtures.recording import recording
from fixtures.sites import ok

CLIP = bytes(range(256)) * 400
PLAYER = "<!doctype html><title>Film</title><video src='/clip.mp4' controls></video>"


@pytest.fixture(name="site")
def a_site() -> Iterator[RawServer]:
    routes = {"/film": ok(PLAYER), "/clip.mp4": ok(CLIP, "video/mp4"), "/": ok("<title>Site</title>")}
    with RawServer(routes, keep(NOT_FOUND)) as site:
        yield site


def yt_dlp(folder: Path, *words: str) -> str:
    """What yt-dlp prints, without settings of the user."""
    command = [sys.executable, "-m", "yt_dlp", "--ignore-config", "--no-cache-dir", "--quiet", *words]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_what_it_names_is_fetched_by_the_crawl(tmp_path: Path, site: RawServer) -> None:
    options = ("--rate", "0", "--probe", "off", "--allow-private", "127.0.0.1")
    assert archiver("crawl", site.url("/"), "-o", "c", *options, cwd=tmp_path).returncode == ExitCode.DONE
    named = yt_dlp(tmp_path, "--print", "%(url)s scope=page", site.url("/film"))
    assert named == f"{site.url('/clip.mp4')} scope=page\n"
    (tmp_path / "videos.txt").write_text(named)
    assert archiver("add", "c", "--seeds", "videos.txt", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("get", "c", site.url("/clip.mp4"), "-o", "clip.mp4", cwd=tmp_path).returncode == ExitCode.DONE
    assert (tmp_path / "clip.mp4").read_bytes() == CLIP


def test_what_it_asks_is_recorded(tmp_path: Path, site: RawServer) -> None:
    with recording(tmp_path / "c") as proxy:
        yt_dlp(tmp_path, "--proxy", proxy.address, "-o", "film.mp4", site.url("/film"))
        proxy.end()
    assert (tmp_path / "film.mp4").read_bytes() == CLIP
    captured = {each.url for each in stored(tmp_path / "c")}
    assert {site.url("/film"), site.url("/clip.mp4")} <= captured
