"""What the shell offers after Tab: values of options, and hosts and URLs of the crawl that the command line names."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from shlex import quote

import click
import pytest
from click.shell_completion import ShellComplete

from archiver.cli.entry import archiver
from archiver.collection.layout import Layout
from archiver.frontier.sqlite import SqliteFrontier
from fixtures.handmade_collections import Held

URLS = ("http://example.org/", "http://example.org/a%_b", "https://example.org:8443/x", "http://example.net/")
QUERY = "http://example.org/q?a=1&b=2"


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of *line*."""
    *words, last = line.split(" ")
    shell = ShellComplete(archiver, {}, "archiver", "_ARCHIVER_COMPLETE")
    return [item.value for item in shell.get_completions(words, last)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("crawl --scope ", ["host", "domain", "prefix", "page", "any"]),
        ("crawl --scope p", ["prefix", "page"]),
        ("crawl --without wi", ["wikis"]),
        ("crawl --without wikis,fo", ["wikis,forums"]),
        ("crawl --without wikis,wik", []),
        ("resume --browser a", ["auto", "all"]),
        ("crawl --accept-encoding gzip,b", ["gzip,br"]),
        ("crawl --profile o", ["one-page"]),
        ("crawl --rate ", []),
        ("conf", ["config"]),
        ("explain nowhere h", []),
        ("urls nowhere --host ", []),
    ],
)
def test_values(line: str, expected: list[str]) -> None:
    assert offered(line) == expected


async def _queue(folder: Path, *seeds: str) -> None:
    Layout(folder).make()
    async with await SqliteFrontier.open(folder / "crawl.db") as frontier:
        await frontier.add_seeds(seeds)


def test_hosts_and_urls_of_a_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(_queue(tmp_path / "c", *URLS))
    assert offered("urls c --host ") == ["example.net", "example.org", "example.org:8443"]
    assert offered("block c example.o") == ["example.org", "example.org:8443"]
    assert offered("explain c http://example.org/") == ["http://example.org/", "http://example.org/a%_b"]
    assert offered("explain c http://example.org/a%_") == ["http://example.org/a%_b"]
    assert offered("get c https") == ["https://example.org:8443/x"]
    assert offered("retry c http://example.net/ http://example.o") == list(URLS[:2])
    Held(tmp_path / "other").add(URLS[0], b"page").write()
    assert offered("explain other h") == []  # it has no crawl.db


def test_every_option_can_be_completed() -> None:
    """Whatever comes first, nothing is raised."""
    for name in archiver.list_commands(click.Context(archiver)):
        command = archiver.get_command(click.Context(archiver), name)
        assert command is not None
        for param in command.params:
            for option in param.opts if isinstance(param, click.Option) else ():
                offered(f"{name} {option} x")


@pytest.mark.parametrize(
    ("line", "word", "offers"),
    [
        ("archiver explain c http://example.org/a", "//example.org/a", [r"//example.org/a%_b"]),
        (
            "archiver explain c http:",
            ":",
            ["//example.net/", "//example.org/", "//example.org/a%_b", r"//example.org/q\?a=1\&b=2"],
        ),
        ("archiver explain c http://example.org/q", "//example.org/q", [r"//example.org/q\?a=1\&b=2"]),
        ("archiver explain c 'http://example.org/q", "'http://example.org/q", ["http://example.org/q?a=1&b=2"]),
        (r"archiver explain c http://example.org/q\?a", r"//example.org/q\?a", [r"//example.org/q\?a=1\&b=2"]),
        ("archiver urls c --host=example.org:", ":", ["8443"]),
        ("archiver urls c --host ", "", ["example.net", "example.org", "example.org:8443"]),
        ("archiver crawl --scope p", "p", ["prefix", "page"]),
        ("archiver sche", "sche", ["schedule"]),
    ],
)
def test_bash(tmp_path: Path, line: str, word: str, offers: list[str]) -> None:
    """Bash breaks words at colons, and replaces only the part behind the last."""
    asyncio.run(_queue(tmp_path / "c", *URLS, QUERY))
    script = (
        "source <(_ARCHIVER_COMPLETE=bash_source archiver)\n"
        f"COMP_LINE={quote(line)} COMP_POINT={len(line)} COMP_WORDS=(archiver {quote(word)}) COMP_CWORD=1\n"
        "compopt() { :; }\n_archiver_completion archiver\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (offers, "")
