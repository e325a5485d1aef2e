"""The documents are complete: generated pages are up to date, links and commands are right."""

import importlib.util
import inspect
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from archiver import model
from archiver.cli.config.setting_options import SettingOption
from archiver.collection.layout import Layout
from archiver.config.settings import every_setting, key_of
from archiver.errors import ConfigError, Failure
from archiver.http import framer, head
from archiver.model import ExitCode, Hop
from archiver.policy import retry
from archiver.tools.report import changes, files, heritrix, tables, verdict
from archiver.tools.report.files import TABLES
from archiver.warc.records import VisitMetadata
from fixtures import reference
from fixtures.command_definitions import COMMANDS
from fixtures.man_pages import man_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
MOST_WORDS = 600  # of a how-to page


def _writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_docs", Path(__file__).with_name("write_docs.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = _writer()
REMEDY = "write the reference again with: python tests/manual/write_docs.py"


@pytest.mark.parametrize("name", WRITER.PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    """Word for word; where click breaks a line is click's business."""
    assert (REFERENCE / name).read_text("utf-8").split() == WRITER.PAGES[name]().split(), REMEDY


def test_manual_pages_are_up_to_date() -> None:
    pages = man_pages()
    assert {path.name for path in (DOCS / "man").iterdir()} == set(pages), REMEDY
    for name, text in pages.items():
        assert (DOCS / "man" / name).read_text("utf-8").split() == text.split(), REMEDY


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_manual_pages_are_well_formed(tmp_path: Path) -> None:
    """mandoc finds no warning, and shows options and examples as they are typed."""
    pages = sorted((DOCS / "man").iterdir())
    ran = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True, check=False)
    faults = [line for line in ran.stdout.splitlines() if "missing date" not in line]
    assert faults == []
    shown = subprocess.run(["mandoc", "-T", "utf8", DOCS / "man" / "archiver-crawl.1"], capture_output=True, check=True)
    text = re.sub(".\b", "", shown.stdout.decode())
    assert "--exclude '/calendar/' --max-depth 5" in text
    assert "ARCHIVER_RATE sets --rate" in " ".join(text.split())


def test_every_command_and_option_is_there() -> None:
    text = (REFERENCE / "commands.md").read_text("utf-8")
    settings = (REFERENCE / "settings.md").read_text("utf-8")
    for name, command in COMMANDS.items():
        assert f"## archiver {name}\n" in text
        chapter = text.partition(f"## archiver {name}\n")[2].partition("\n## ")[0]
        for param in command.params:
            for option in (*param.opts, *param.secondary_opts) if isinstance(param, click.Option) else ():
                assert option in (settings if isinstance(param, SettingOption) else chapter), f"{name} {option}"


def test_every_command_and_option_has_help_and_examples() -> None:
    for name, command in COMMANDS.items():
        assert command.help, name
        assert getattr(command, "examples", ()), name
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, f"{name} {param.name}"


def test_every_example_is_a_command_that_is_understood() -> None:
    for command in COMMANDS.values():
        for line, _ in getattr(command, "examples", ()):
            assert list(_commands_in(line))
            for words in _commands_in(line):
                _parse(words)


def _commands_in(line: str) -> Iterator[list[str]]:
    """Yield the words of each call of archiver in *line* of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in (*lexer, ";"):
        if re.fullmatch(r"[|&;<>]+", word):
            if words[:1] == ["archiver"]:
                yield words
            words = []
        else:
            words.append(word)


def _parse(words: list[str]) -> None:
    """Fail unless archiver understands *words*."""
    _, name, *rest = words
    assert name in COMMANDS, words
    COMMANDS[name].make_context(name, rest)


def _shown() -> Iterator[tuple[str, str, bool]]:
    """Yield page and text of each piece of code that calls archiver, and whether it is in a sentence."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))):
        text, name = page.read_text("utf-8"), str(page.relative_to(ROOT))
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines():
                yield name, line, False
        for span in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
            if re.match(r"archiver (?!-)", span):
                yield name, span, True


def test_every_command_shown_in_a_document_is_understood() -> None:
    shown = [(page, words, short) for page, line, short in _shown() for words in _commands_in(line)]
    assert len(shown) > 50
    for page, words, in_sentence in shown:
        try:
            _parse(words)
        except click.exceptions.Exit:
            assert words[-1] == "--help"
        except click.MissingParameter:
            assert in_sentence, f"{page}: {words}"
        except (click.ClickException, ConfigError) as error:
            pytest.fail(f"{page}: {words}: {error}")


def test_every_option_named_in_a_how_to_page_exists() -> None:
    """In tables for users of other tools, the last cell of a row is ours."""
    known: set[str] = set()
    for command in COMMANDS.values():
        for param in command.params:
            known.update(param.opts, param.secondary_opts)
    for page in (ROOT / "README.md", *DOCS.glob("guide/*.md"), *DOCS.glob("how-to/*.md")):
        for line in page.read_text("utf-8").splitlines():
            ours = line.replace("\\|", "").rstrip("| ").rpartition("|")[2] if line.startswith("|") else line
            for option in re.findall(r"`(--[a-z-]+)", ours):
                assert option in known, f"{page.name}: {option}"


def test_the_readme_names_every_command() -> None:
    table = "".join(line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if line.startswith("| `"))
    assert [name for name in COMMANDS if f"`{name}`" not in table] == []


def test_the_rate_that_the_verdict_suggests_is_understood() -> None:
    _parse(["archiver", "resume", "DIR", *verdict.GENTLE.split()])


def test_how_to_pages_are_short() -> None:
    for page in (DOCS / "how-to").glob("*.md"):
        assert len(page.read_text("utf-8").split()) <= MOST_WORDS, page.name


def test_every_setting_is_there() -> None:
    text = (REFERENCE / "settings.md").read_text("utf-8")
    for _, entry in every_setting():
        assert f"### `{key_of(entry)}`" in text
        assert entry.metadata["help"] in text


def test_every_exit_code_is_there() -> None:
    text = (REFERENCE / "exit-codes.md").read_text("utf-8")
    for code in ExitCode:
        assert f"| {int(code)} | {code.name} | " in text


def test_every_place_is_there() -> None:
    layout = Layout(Path("DIR"))
    named = {place.path.rstrip("/") for place in reference.PLACES}
    for name, value in vars(Layout).items():
        if isinstance(value, property):
            assert Path(getattr(layout, name)).relative_to("DIR").parts[0] in named


def test_every_report_is_there() -> None:
    assert {*TABLES, "changes", *files.OF_COMMANDS} == set(tables.TITLES)
    text = inspect.getsource(heritrix.heritrix_reports)
    assert {name for name, _ in reference.HERITRIX_REPORTS} == set(re.findall(r'yield "([a-z-]+\.txt)"', text))
    assert set(reference.CHANGES) == {what.value for what in changes.UrlChange}
    assert set(reference.VERDICT) == set(re.findall(r'Finding\("(\w+)"', inspect.getsource(verdict)))


def test_every_word_in_records_and_logs_is_there() -> None:
    assert set(reference.FAILURES) == set(Failure)
    assert set(reference.HOPS) == {hop.value for hop in Hop}
    notes = inspect.getsource(VisitMetadata.block)
    named = set(re.findall(r'"(\w+): \{', notes)) | set(re.findall(r'\("(\w+)", self', notes))
    assert set(reference.VISIT_FIELDS) == named
    source = inspect.getsource(framer) + inspect.getsource(head)
    faults = re.findall(r'fault\("([a-z-]+)"\)|faults? ?\+?=? ?\("([a-z-]+)",', source)
    assert {*filter(None, (word for pair in faults for word in pair))} <= set(reference.FAULTS)
    assert all(f'"{word}"' in source or word in retry.DAMAGE for word in reference.FAULTS)


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_headings_that_are_linked_exist() -> None:
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8")):
            text = (page.parent / target if target else page).read_text("utf-8")
            anchors = {_anchor(line) for line in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
            assert heading in anchors, f"{page.name}: {target}#{heading}"


def _anchor(heading: str) -> str:
    """Return the name by which a link reaches *heading*, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_the_glossary_has_every_value_and_every_table() -> None:
    page = (REFERENCE / "glossary.md").read_text(encoding="utf-8")
    values = [
        name for name, value in vars(model).items() if isinstance(value, type) and value.__module__ == model.__name__
    ]
    schema = (ROOT / "archiver" / "frontier" / "schema.sql").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \| \S", page, re.MULTILINE))
    assert {*values, *re.findall(r"^CREATE TABLE (\w+)", schema, re.MULTILINE)} == named


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| `?([\w.-]+)`? \|", (ROOT / "docs/explanation/dependencies.md").read_text(), re.MULTILINE)
    names = [re.split(r"[^\w.-]", each)[0] for each in project["dependencies"]]
    extras = project["optional-dependencies"].keys() - {"test"}
    assert sorted(rows) == sorted([*names, *extras, "package", "extra", "---", "---"])
