"""`archiver replay` of several collections as one, of archives without a crawl.db, and with `--open`."""

import os
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver.cli.replay import SEEDS_SHOWN, first_urls, start_urls
from archiver.model import ExitCode
from archiver.warc import cdxj
from fixtures.command import COMMAND, environment
from fixtures.handmade_collections import Held, revisit
from fixtures.handmade_warc import Collection, Visit

PAGE = b"<title>there</title>" + b"<p>long enough" * 20
URL = "http://example.org/there"


@contextmanager
def replaying(
    *arguments: str, cwd: Path, lines: int = 1, env: Mapping[str, str] | None = None, until: str = ""
) -> Iterator[tuple[list[str], list[str]]]:
    """The addresses that are printed, and, when it has ended by SIGINT, what was said.

    *until*: SIGINT comes after a message with this in it.
    """
    said: list[str] = []
    with subprocess.Popen(
        [*COMMAND, "replay", *arguments, "--port", "0"],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), **(env or {})},
    ) as process:
        try:
            assert process.stdout is not None
            yield [process.stdout.readline().strip() for _ in range(lines)], said
            assert process.stderr is not None
            while until and not any(until in line for line in said):
                said.append(process.stderr.readline())
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        assert process.returncode == ExitCode.DONE
        assert out == ""
        said += err.splitlines()


def body(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=300) as answer:
        return bytes(answer.read())


@pytest.mark.replay
def test_several_are_one(tmp_path: Path) -> None:
    """A revisit in one has its payload in the other, in files of the same name; without the other it has none."""
    Held(tmp_path / "old *").add(URL, PAGE).write()
    new = Held(tmp_path / "new")
    new.add_record(revisit("http://example.org/new", PAGE, URL), "http://example.org/new", "warc/revisit", PAGE).write()
    with replaying("new", "old *", cwd=tmp_path, lines=1) as ([first], _):
        assert first.endswith(f"/new/{URL}")
        root = first.removesuffix(URL)
        assert body(f"{root}20300101000000id_/{URL}") == PAGE
        assert body(f"{root}20300101000000id_/http://example.org/new") == PAGE
    nothing = {"BROWSER": "no-such-command-at-all"}  # it serves all the same
    with replaying("new", "--open", cwd=tmp_path, env=nothing, until="browser") as ([root], _):
        with pytest.raises(urllib.error.HTTPError) as refused:
            body(f"{root}20300101000000id_/http://example.org/new")
        refused.value.close()


@pytest.mark.replay
def test_first_pages_and_a_browser(tmp_path: Path) -> None:
    """Without a crawl.db pages stand for seeds; the browser is told of the first one."""
    home, deep = Visit("http://example.org/", b"<p>home"), Visit("http://example.org/a/b", b"<p>deep")
    picture = Visit("http://example.org/a.png", b"png", mime="image/png")
    Collection(tmp_path / "c", (deep, picture, home), surt=cdxj.lookup_key).database.unlink()
    os.mkfifo(tmp_path / "opened")
    script = f"import sys; open({str(tmp_path / 'opened')!r}, 'w').write(sys.argv[1])"
    browser = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} %s"
    with replaying("c", "--open", cwd=tmp_path, lines=2, env={"BROWSER": browser}) as (addresses, said):
        assert [address.partition("/c/")[2] for address in addresses] == [home.url, deep.url]
        assert body(addresses[0].replace("/c/", "/c/id_/")) == home.body
        assert (tmp_path / "opened").read_text() == addresses[0]
    assert len(said) == 1


def test_several_collections_share_what_is_printed(tmp_path: Path) -> None:
    """Of one with many pages there are fewer, so that none is left out."""
    many = tuple(Visit(f"http://example.org/{number}", b"<p>page") for number in range(30))
    Collection(tmp_path / "many", many, surt=cdxj.lookup_key).database.unlink()
    Collection(tmp_path / "one", (Visit("http://example.net/", b"<p>home"),), surt=cdxj.lookup_key).database.unlink()
    found = start_urls([first_urls(tmp_path / name) for name in ("many", "one")])
    assert (len(found), found[-1]) == (SEEDS_SHOWN // 2 + 1, "http://example.net/")
