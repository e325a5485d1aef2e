"""Help is quick and short: `archiver --help` imports no command, and an option takes at most three lines."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from archiver.cli import entry
from archiver.cli.options import HELP_WIDTH
from fixtures.command import ROOT, environment
from fixtures.command_definitions import COMMANDS

MAX_LINES = 3  # of the help of an option
SHARED = {"__init__", "directory", "entry", "options", "progress", "runner", "start", "terminal"}
SHARED |= {"orders.__init__", "orders.giving", "events.__init__", "events.sending"}  # none of them is a command


def test_each_command_is_a_module_of_its_name() -> None:
    modules = {re.sub(r"(?<=[a-z])_$", "", path.stem) for path in (ROOT / "archiver/cli").glob("*.py")}
    modules |= {f"orders.{path.stem}" for path in (ROOT / "archiver/cli/orders").glob("*.py")}
    modules |= {f"events.{path.stem}" for path in (ROOT / "archiver/cli/events").glob("*.py")}
    modules |= {
        "adopt",
        "explain",
        "look",
        "prune",
        "schedule",
        "watch.watch",
        "config.config",
        "record.record",
    }  # packages, one with a command
    assert modules - SHARED == {entry.PLACES.get(name, (name,))[0].rstrip("_") for name in entry.COMMANDS}
    assert {name: command.name for name, command in COMMANDS.items()} == {name: name for name in entry.COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each_help(name: str) -> None:
    assert (COMMANDS[name].help or "").partition("\n")[0] == entry.COMMANDS[name]
    assert re.fullmatch(r"[A-Z][^\n]{1,78}\.", entry.COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_an_option_is_short(name: str) -> None:
    context = click.Context(COMMANDS[name], info_name=name)
    for param in COMMANDS[name].params:
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is not None:
            formatter = click.HelpFormatter(width=HELP_WIDTH)
            formatter.indent()
            formatter.write_dl([("", record[1])], col_max=0, col_spacing=36)
            assert formatter.getvalue().count("\n") <= MAX_LINES, f"{name} {record[0]}"


def test_help_imports_no_command(tmp_path: Path) -> None:
    seen = "import sys, archiver.cli.entry as e; e.run(['--help']); print(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", seen],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert "click" in loaded
    assert not loaded & {
        "aiohttp",
        "asyncio",
        "lxml",
        "rich",
        "pywb",
        "sqlite3",
        "aiosqlite",
        "warcio",
        "surt",
        "regex",
    }
    ours = {name.removeprefix("archiver.") for name in loaded if name.startswith("archiver.")}
    assert {name.removeprefix("cli.") for name in ours if name.startswith("cli.")} == {"entry", "options", "terminal"}
    assert not {name for name in ours if name.startswith(("crawl", "frontier", "collection", "tools", "fetch"))}


def test_a_crawl_without_a_browser_imports_nothing_of_it() -> None:
    crawl = "archiver.cli.crawl, archiver.cli.start, archiver.crawl.build, archiver.crawl.engine"
    seen = f"import sys, {crawl}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, env=environment(), check=True)
    loaded = set(ran.stdout.split())
    assert "archiver.crawl.engine" in loaded
    assert not [name for name in loaded if name.startswith(("archiver.browser", "archiver.crawl.views."))]


@pytest.mark.parametrize("command", sorted(entry.COMMANDS))
def test_help_of_a_command_imports_nothing_slow(tmp_path: Path, command: str) -> None:
    seen = f"import sys, archiver.cli.entry as e; e.run(['{command}', '--help']); print(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", seen], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=True
    )
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert f"archiver.cli.{entry.PLACES.get(command, (command,))[0]}" in loaded
    assert not loaded & {
        *("aiohttp", "aiosqlite", "asyncio", "brotli", "lxml", "multiprocessing", "pywb", "regex", "rich", "ssl"),
        *("surt", "uvloop", "warcio", "archiver.cli.start", "archiver.crawl", "archiver.extract"),
    }


def test_what_python_thinks_of_the_code_of_libraries_is_not_shown() -> None:
    """From 3.12 on it warns of unknown escapes, when it compiles a library that was installed without bytecode."""
    program = "from archiver.cli import main\ntry: main()\nexcept SystemExit: compile('1 is 1', 'library.py', 'eval')"
    command = [sys.executable, "-c", program, "--version"]
    surroundings = {name: value for name, value in environment().items() if name != "PYTHONWARNINGS"}
    ran = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("archiver ")
    assert ran.stderr == ""
