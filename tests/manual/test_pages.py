"""The commands that the documents and the help show work, in the order of reading, in one folder."""

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from archiver.warc.reader import read_records
from fixtures import reference
from fixtures.command_definitions import COMMANDS
from fixtures.documented_commands import DATABASE, GUIDE, OTHERS, ExampleSite, Reader, Step, examples, steps
from fixtures.forks import Forks
from fixtures.postgres import PostgresServer

POSTED = {"requestBody", "method"}  # a crawl without --browser sends no POST
TLS = {"WARC-Cipher-Suite"}  # the site of these tests has no TLS
VARIANT = {"acceptLanguage"}  # and one language
BEFORE = {  # a command that makes what the examples of another one refer to
    "events": "archiver resume collections/example.org --on all 'cat'",
    "pack": "archiver recrawl collections/example.org",
    "prune": "rm collections/example.org/stored.jsonl",
    "report": "archiver recrawl collections/example.org",
    "unblock": "archiver block collections/example.org ads.example.net",
}


def _names_a_database(command: str) -> bool:
    return any(DATABASE.search(step.line) for step in examples(command, COMMANDS[command]))


def follow(reader: Reader, these: Iterable[Step]) -> None:
    for step in these:
        code, said = reader.types(step)
        assert code == step.code, f"{step.page}: {step.line}\n{said}"
        assert "Traceback" not in said or step.code < 0, f"{step.page}: {step.line}\n{said}"


@pytest.mark.replay
def test_the_guide_works(tmp_path: Path, forks: Forks) -> None:
    site = ExampleSite()
    with site.server:
        reader = Reader(tmp_path, site, forks)
        for path in GUIDE:
            follow(reader, steps(path))
        assert b"newer" in (tmp_path / "newest.html").read_bytes()
        assert b"newer" not in (tmp_path / "first.html").read_bytes()
        collection = tmp_path / f"collections/localhost_{site.server.port}"
    fields: set[str] = set()
    for warc in (collection / "archive").iterdir():
        with warc.open("rb") as file:
            fields |= {name for record in read_records(file) for name, _ in record.fields}
    assert fields - {"WARC-Type"} == set(reference.RECORD_FIELDS) - TLS - VARIANT
    lines = (collection / "indexes" / "index.cdxj").read_text().splitlines()
    used = {name for line in lines for name in json.loads(line.split(" ", 2)[2])}
    assert used == set(reference.INDEX_FIELDS) - POSTED - VARIANT
    reports = {path.name for path in (collection / "reports").iterdir() if path.suffix != ".tsv"}
    assert reports == {*reference.REPORTS, *(name for name, _ in reference.HERITRIX_REPORTS)}


@pytest.fixture(name="prepared", scope="module")
def a_folder_with_archives(
    tmp_path_factory: pytest.TempPathFactory, forks: Forks
) -> Iterator[tuple[Path, ExampleSite]]:
    site = ExampleSite()
    folder = tmp_path_factory.mktemp("pages")
    with site.server:
        Reader(folder, site, forks).prepare()
        shutil.rmtree(folder / "bin")
        yield folder, site


@pytest.mark.replay
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_the_commands_of_a_page_work(
    path: Path, prepared: tuple[Path, ExampleSite], tmp_path: Path, forks: Forks
) -> None:
    folder, site = prepared
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    follow(Reader(tmp_path, site, forks), steps(path))


@pytest.mark.replay
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.postgres] * _names_a_database(name))
        for name in COMMANDS
        if name not in {"login", "watch"}  # a person logs in; tests/commands/test_watch.py serves the page
    ],
)
def test_the_examples_of_a_command_work(
    name: str,
    prepared: tuple[Path, ExampleSite],
    tmp_path: Path,
    forks: Forks,
    postgres_server: PostgresServer | None,
) -> None:
    """Examples are alternatives: each begins without what the one before it made."""
    folder, site = prepared
    database = ""
    if _names_a_database(name):
        if postgres_server is None:
            pytest.skip("PostgreSQL is not installed")
        database = postgres_server.new_database()
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.copyfile(tmp_path / "received.wacz", tmp_path / "example.wacz")
    collection = tmp_path / "collections" / f"localhost_{site.server.port}"
    if name != "crawl":
        shutil.copytree(tmp_path / "DIR", collection)
    reader = Reader(tmp_path, site, forks, store=folder / "store", database=database)
    if database:
        reader.prepare_machines()
        shutil.rmtree(tmp_path / "whole")
    if name in BEFORE:
        follow(reader, [Step(name, BEFORE[name], "")])
    for step in examples(name, COMMANDS[name]):
        if name in {"crawl", "join"} and "--since" not in step.line:
            shutil.rmtree(collection, ignore_errors=True)
        for package in tmp_path.glob("localhost_*.wacz"):
            package.unlink()
        follow(reader, [step])


def test_notes_to_the_tests_are_understood() -> None:
    known = {
        *("", "exits with 5", "the site has changed", "Ctrl+C in the middle, exits with 4"),
        *("Ctrl+C once it serves", "Ctrl+C once it serves, exits with -2"),
    }
    assert {step.note for path in (*GUIDE, *OTHERS) for step in steps(path)} == known
