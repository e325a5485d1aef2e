"""The manual is complete, and what is generated in it is what the program says now."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import click
import pytest

from archiver.archive.layout import Layout
from archiver.cli.entry import archiver
from archiver.config.settings import every_setting, key_of
from archiver.model import ExitCode
from archiver.report.files import TABLES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def _writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_docs", Path(__file__).with_name("write_docs.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = _writer()
REMEDY = "write the manual anew with: python tests/manual/write_docs.py"


@pytest.mark.parametrize("name", WRITER.PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    """Word for word; where click breaks a line is click's business."""
    assert (DOCS / name).read_text("utf-8").split() == WRITER.PAGES[name]().split(), REMEDY


def test_every_command_and_option_is_there() -> None:
    text = (DOCS / "commands.md").read_text("utf-8")
    for name, command in archiver.commands.items():
        assert f"## archiver {name}\n" in text
        chapter = text.partition(f"## archiver {name}\n")[2].partition("\n## ")[0]
        for param in command.params:
            for option in (*param.opts, *param.secondary_opts) if isinstance(param, click.Option) else ():
                assert option in chapter, f"{name} {option}"


def test_every_command_and_option_has_help_and_examples() -> None:
    for name, command in archiver.commands.items():
        assert command.help, name
        assert getattr(command, "examples", ()), name
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, f"{name} {param.name}"


def test_every_example_is_a_command_that_is_understood() -> None:
    for name, command in archiver.commands.items():
        for line, _ in getattr(command, "examples", ()):
            words = re.findall(r"'[^']*'|\S+", line.partition(" | ")[0])
            assert words[:2] == ["archiver", name]
            command.make_context(name, [word.strip("'") for word in words[2:]])


def test_every_setting_is_there() -> None:
    text = (DOCS / "settings.md").read_text("utf-8")
    for _, entry in every_setting():
        assert f"### `{key_of(entry)}`" in text
        assert entry.metadata["help"] in text


def test_every_exit_code_is_there() -> None:
    text = (DOCS / "exit-codes.md").read_text("utf-8")
    for code in ExitCode:
        assert f"| {int(code)} | {code.name} | " in text


def test_every_place_is_there() -> None:
    text = (DOCS / "directory.md").read_text("utf-8")
    layout = Layout(Path("DIR"))
    places = [name for name, value in vars(Layout).items() if isinstance(value, property)]
    for name in places:
        place = Path(getattr(layout, name))
        assert place.name in text
        assert f"| `{place.relative_to('DIR').parts[0]}" in text, place


def test_every_report_is_there() -> None:
    text = (DOCS / "directory.md").read_text("utf-8")
    for name in ("summary.txt", "summary.json", *(f"{table}.tsv" for table in TABLES)):
        assert f"| `{name}` |" in text


def test_links_in_the_manual_lead_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
