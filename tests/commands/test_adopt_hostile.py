"""Queues and settings that somebody prepared: each is read within bounds, or refused with one line that names it."""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.cli import entry
from archiver.errors import ConfigError
from archiver.model import ExitCode
from archiver.tools.adopt import heritrix
from archiver.tools.adopt.beans import properties, without_comments
from archiver.tools.adopt.detect import adopted_crawl, kind_of
from archiver.tools.adopt.wpull import WpullDatabase, wpull_crawl
from archiver.tools.adopt.yaml import YamlError, scalars
from fixtures.adopted_crawls import (
    SCHEMA,
    Queued,
    documented_sources,
    grab_site_files,
    heritrix_job,
    mirror,
    saved_state,
    wpull_database,
)
from fixtures.archives import rows
from fixtures.growth import least_seconds
from fixtures.handmade_warc import member, record

START = "http://example.org/"


def run(*arguments: object) -> int:
    return entry.run(["adopt", *map(str, arguments)])


def by_sql(*statements: str) -> Callable[[Path], None]:
    """Return a function that makes a database at a path by *statements*."""

    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            for each in statements:
                db.executescript(each)
            db.commit()

    return make


ROW = f"INSERT INTO url_strings VALUES (1, '{START}'); INSERT INTO queued_urls VALUES ({{}});"
GOOD = ROW.format("1, 1, NULL, 1, 'todo', 0, 0, NULL, NULL, 0, NULL, NULL, NULL")
DATABASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: path.write_bytes(b""), "neither queued_urls nor urls"),
    "no database": (lambda path: path.write_bytes(b"<html>" * 1000), "file is not a database"),
    "cut": (lambda path: (by_sql(SCHEMA, GOOD)(path), path.write_bytes(path.read_bytes()[:5000])), "wpull.db: "),
    "another program's": (by_sql("CREATE TABLE messages (id INTEGER)"), "neither queued_urls nor urls"),
    "a view in place of the table": (
        by_sql(
            "CREATE TABLE url_strings (id INTEGER, url VARCHAR);",
            "CREATE VIEW queued_urls AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, 1 AS url_string_id, 'todo' AS status FROM n;",
        ),
        "neither queued_urls nor urls",
    ),
    "a view in place of the texts": (
        by_sql(
            SCHEMA,
            "DROP TABLE url_strings;",
            "CREATE VIEW url_strings AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, 'http://example.org/' || id AS url FROM n;",
        ),
        "neither queued_urls nor urls",
    ),
    "a virtual table": (
        by_sql(
            "CREATE VIRTUAL TABLE queued_urls USING fts5(id, url_string_id, status);",
            "CREATE TABLE url_strings (id INTEGER, url VARCHAR);",
        ),
        "neither queued_urls nor urls",
    ),
    "a directory": (lambda path: path.mkdir(), "it has no wpull.db"),
    "no seed": (by_sql(SCHEMA), "it names no http or https URL"),
}


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_that_is_none_of_wpull_is_refused_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    make, why = DATABASES[name]
    (tmp_path / "job").mkdir()
    make(tmp_path / "job" / "wpull.db")
    began = time.monotonic()
    assert run(tmp_path / "job", "-o", tmp_path / "c", "--kind", "wpull") == ExitCode.USAGE
    said = capsys.readouterr().err
    assert why in said
    assert len(said.splitlines()) == 1
    assert time.monotonic() - began < 60
    assert not (tmp_path / "c").exists()


def test_values_of_any_type_and_size_are_read_within_bounds(tmp_path: Path) -> None:
    """A trigger is there too: nothing runs it, because nothing writes."""
    values = [
        "2, 2, 'x', x'00', 'todo', 'many', 1e300, -5, NULL, 0, NULL, NULL, NULL",
        "3, 3, NULL, NULL, 12, {0}, {0}, {0}, NULL, 0, NULL, NULL, NULL".format(2**63 - 1),
        "4, 4, NULL, NULL, 'todo', 0, 1, NULL, NULL, 0, 'a=b', NULL, NULL",
        "5, 5, 1, 1, x'746f646f', 0, 1, NULL, NULL, 0, NULL, NULL, NULL",
    ]
    texts = [
        "INSERT INTO url_strings VALUES (2, x'fffe');",
        "INSERT INTO url_strings VALUES (3, 'http://example.org/far');",
        "INSERT INTO url_strings VALUES (4, 'http://example.org/posted');",
        "INSERT INTO url_strings VALUES (5, 'http://example.org/' || hex(zeroblob(20000000)));",
        "CREATE TRIGGER t AFTER UPDATE ON queued_urls BEGIN DELETE FROM queued_urls; END;",
    ]
    inserted = [f"INSERT INTO queued_urls VALUES ({each});" for each in values]
    by_sql(SCHEMA, "PRAGMA ignore_check_constraints = ON;", GOOD, *texts, *inserted)(tmp_path / "wpull.db")
    found = list(WpullDatabase(tmp_path / "wpull.db").urls())
    assert [each.url for each in found] == [START, "http://example.org/far"]
    assert len(found[1].path) < 300
    assert run(tmp_path / "wpull.db", "-o", tmp_path / "c") == ExitCode.DONE


def test_the_latest_changes_of_wpull_are_in_its_log_and_the_source_stays_as_it_is(tmp_path: Path) -> None:
    """A wpull that was killed leaves a -wal; reading it in place would write there."""
    job = tmp_path / "job"
    job.mkdir()
    wpull_database(job / "wpull.db", [Queued(START, "todo", 0)])
    with closing(sqlite3.connect(job / "wpull.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO url_strings (url) VALUES ('http://example.org/late')")
        db.execute("INSERT INTO queued_urls VALUES (2, 2, 1, 1, 'todo', 0, 1, NULL, NULL, 0, NULL, NULL, NULL)")
        db.commit()
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("wpull.db", "wpull.db-wal"):
            (copy / name).write_bytes((job / name).read_bytes())
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    assert run(copy, "-o", tmp_path / "c") == ExitCode.DONE
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    assert ("http://example.org/late",) in rows(tmp_path / "c", "SELECT url FROM urls")


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documented_sources(tmp_path, START)
    before = sorted(path for path in tmp_path.rglob("*"))
    for name in ("wpull.db", "jobs/myjob", "crawls/collections/site", "wget", "mirror"):
        assert run("--dry-run", tmp_path / name, "-o", tmp_path / "c") == ExitCode.DONE
        assert "1 seed" in capsys.readouterr().out
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_each_kind_is_recognized_by_its_content(tmp_path: Path) -> None:
    documented_sources(tmp_path, START)
    named = {
        "wpull": ["wpull.db", "example.org-2026-11-01-0a1b2c3d"],
        "heritrix": ["jobs/myjob", "jobs/myjob/logs/frontier.recover.gz"],
        "browsertrix": ["crawls/collections/site", "crawls/collections/site/crawls/crawl-20261101100000-abc.yaml"],
        "wget": ["wget", "wget/a.warc.gz"],
        "httrack": ["mirror", "mirror/hts-cache"],
    }
    for kind, names in named.items():
        assert [kind_of(tmp_path / name) for name in names] == [kind] * len(names)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ConfigError, match="not recognized"):
        adopted_crawl(tmp_path / "text")


@pytest.mark.parametrize("kind", ["wpull", "heritrix", "browsertrix", "wget", "httrack"])
@pytest.mark.parametrize("what", ["missing", "empty", "noise", "folder"])
def test_with_the_wrong_kind_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, what: str
) -> None:
    source = tmp_path / "source"
    if what == "folder":
        source.mkdir()
    elif what != "missing":
        source.write_bytes(b"" if what == "empty" else bytes(range(256)) * 40)
    assert run(source, "-o", tmp_path / "c", "--kind", kind) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "source" in said
    assert not (tmp_path / "c").exists()


def test_a_directory_with_a_crawl_or_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wpull_database(tmp_path / "wpull.db", [Queued(START, "todo", 0)])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("x")
    assert run(tmp_path / "wpull.db", "-o", tmp_path / "other") == ExitCode.USAGE
    assert "is not empty and not a collection" in capsys.readouterr().err
    assert run(tmp_path / "wpull.db", "-o", tmp_path / "c") == ExitCode.DONE
    assert run(tmp_path / "wpull.db", "-o", tmp_path / "c") == ExitCode.USAGE
    assert "holds a crawl" in capsys.readouterr().err


def test_control_files_with_nonsense_become_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wpull_database(tmp_path / "wpull.db", [Queued(START, "todo", 0)])
    pattern = "^https?://{primary_netloc}/x\n" + "(" * 5000 + "\n" + "\x00\x1b[31m\n" + "a{,99999}{,99999}\n"
    grab_site_files(tmp_path, START, ignores=pattern, delay="9" * 400, concurrency="-3", igsets="../../etc/passwd,")
    assert run(tmp_path, "-o", tmp_path / "c") == ExitCode.DONE
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "igsets: ../../etc/passwd" in said
    text = (tmp_path / "c" / "crawl.toml").read_text()
    assert r"^https?://(?:example\\.org)/x" in text
    assert "host-concurrency = 1" in text


GRAB_SITE = (
    '["--quiet", "-U", "Me/1", "--header", "Accept: text/html", "--header", "Cookie: hunter2", "--delete-after",'
    ' "--no-robots", "--inet4-only", "--dns-timeout", "20", "--tries", "3", "--database", "/x/wpull.db",'
    ' "--plugin-script", "/lib/wpull_hooks.py", "--page-requisites", "--no-parent", "--concurrent", "2", "--level",'
    ' "inf", "--page-requisites-level", "5", "--span-hosts-allow", "page-requisites", "--warc-max-size", "5368709120",'
    ' "--reject-regex", "/cal/", "--youtube-dl", "--recursive", "http://example.org/"]'
)


def test_the_command_line_of_wpull_is_in_its_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As wpull 2.0.1 writes it, under grab-site."""
    wpull_database(tmp_path / "wpull.db", [Queued(START, "todo", 0)])
    grab_site_files(tmp_path, START, concurrency="7")
    block = f"Software: Wpull/2.0.1 Python/3.7.17\r\nRobots: off\r\nWpull-Argv: {GRAB_SITE}\r\n\r\n"
    (tmp_path / "x.warc.gz").write_bytes(member(record("warcinfo", block.encode())))
    crawl = wpull_crawl(tmp_path)
    expected: dict[str, object] = {
        "user_agent": "Me/1",
        "accept": "text/html",
        "robots": "ignore",
        "ip_version": "4",
        "dns_timeout": 20.0,
        "retries": 3,
        "scope": "prefix",
        "host_concurrency": 7,
        "requisite_hops": 5,
        "extra_hops": 0,
        "warc_size": 5368709120,
        "exclude": ("/cal/",),
        "without": ("trackers,share-links",),
    }
    assert crawl.settings.values == expected
    assert run(tmp_path, "-o", tmp_path / "c") == ExitCode.DONE
    said = capsys.readouterr()
    assert "no counterpart: --youtube-dl" in said.err
    assert "hunter2" not in said.err + said.out
    assert "robots.txt is ignored, as before" in said.err


def flat(value: object, way: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Return the scalars of *value* with the way to each."""
    if isinstance(value, dict):
        return [found for key, one in value.items() for found in flat(one, (*way, key))]
    if isinstance(value, list):
        return [found for one in value for found in flat(one, (*way, "-"))]
    return [(way, value if isinstance(value, str) else str(value))]


KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9_.]{0,8}", fullmatch=True).filter(lambda key: key.lower() not in {"y", "n"})
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30)
TREES = st.recursive(
    TEXTS, lambda part: st.lists(part, min_size=1, max_size=3) | st.dictionaries(KEYS, part, min_size=1, max_size=3)
)


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=4))
def test_what_another_program_writes_as_yaml_is_read_as_that_program_reads_it(tree: dict[str, object]) -> None:
    text = pyyaml.safe_dump(tree, default_flow_style=False, width=1_000_000, sort_keys=False)
    assert [(each.way, each.text) for each in scalars(text.splitlines(keepends=True))] == flat(tree)


@given(st.text(max_size=300))
def test_no_text_makes_the_reading_of_yaml_or_xml_fail(text: str) -> None:
    with suppress(YamlError):
        list(scalars(text.splitlines(keepends=True)))
    list(properties(without_comments(text)))


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reading_of_a_recovery_log_fail(data: bytes) -> None:
    heritrix.is_recovery_log(data)
    for line in data.split(b"\n"):
        heritrix._parsed(line)


BOMBS = {
    "aliases": "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(1000)),
    "deep": "".join(f"{' ' * n}a:\n" for n in range(3000)),
    "deep lists": "- " * 5000 + "x\n",
    "a long line": "seeds: " + "x" * (3 << 20) + "\n",
    "a long block": "seeds: |\n" + "  http://example.org/\n" * 200_000,
    "many keys": "".join(f"k{n}: v\n" for n in range(200_000)),
    "deep JSON": f"seeds:\n- url: {START}\nstate:\n  queued:\n  - '" + '{"a":' * 50_000 + "'\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_state_that_would_grow_is_read_in_time_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = saved_state(tmp_path / "source", START, {"queued": []})
    path.write_text(BOMBS[name] + path.read_text())
    began = time.monotonic()
    assert run(tmp_path / "source", "-o", tmp_path / "c", "--kind", "browsertrix") in (ExitCode.DONE, ExitCode.USAGE)
    assert len(capsys.readouterr().err.splitlines()) < 250
    assert time.monotonic() - began < 100


def test_a_configuration_of_comments_that_do_not_end_is_read_in_time(tmp_path: Path) -> None:
    job = tmp_path / "job"
    heritrix_job(job, [f"F+ {START}  "])
    (job / "crawler-beans.cxml").write_text("<!--" * 500_000 + "<bean " * 100_000 + '<property name="' * 50_000)
    began = time.monotonic()
    assert run(job, "-o", tmp_path / "c") == ExitCode.DONE
    assert time.monotonic() - began < 100


REPETITIONS = {
    "comments": lambda: without_comments("<!---->" * 600_000),
    "comments that hardly end": lambda: without_comments("<!-- -- " * 500_000),
    "a long tag": lambda: list(properties("<bean " + "x" * (4 << 20))),
    "spaces in YAML": lambda: list(scalars([f"a: b{' ' * 1_000_000}c"])),
    "signs of comments in YAML": lambda: list(scalars(["a: b" + " #" * 500_000])),
}


@pytest.mark.parametrize("name", REPETITIONS)
def test_a_repetition_is_read_in_linear_time(name: str) -> None:
    assert least_seconds(REPETITIONS[name], 5) < 5


@pytest.mark.parametrize("pattern", ["a|" * 2_000_000, "{primary_url}" * 500_000], ids=["written", "by placeholders"])
def test_a_pattern_that_would_take_long_to_compile_is_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str
) -> None:
    (tmp_path / "source").mkdir()
    wpull_database(tmp_path / "source" / "wpull.db", [Queued(START, "todo", 0)])
    (tmp_path / "source" / "ignores").write_text(f"{pattern}\n/calendar/\n")
    assert run(tmp_path / "source", "-o", tmp_path / "c") == ExitCode.DONE
    assert "the longest may have 100000" in capsys.readouterr().err
    assert 'exclude = ["/calendar/"]' in (tmp_path / "c" / "crawl.toml").read_text()


def test_lines_of_a_log_that_are_too_long_or_cut_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        f"F+ {START}  ",
        "F+ http://example.org/" + "x" * 300_000 + f" L {START}",
        "F",
        "F+ ",
        "Fx y z",
        "\x00\xff",
    ]
    heritrix_job(tmp_path / "job", [*lines, f"F+ {START}a L {START}"])
    assert run(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
    assert "1 entry of its queue left out" in capsys.readouterr().out
    assert rows(tmp_path / "c", "SELECT url FROM urls ORDER BY id") == [(START,), (f"{START}a",)]


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12), max_size=8))
def test_no_command_line_makes_the_translation_fail(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    folder = tmp_path_factory.mktemp("m")
    mirror(folder, " ".join(["-qw", *words, START]), START)
    crawl = adopted_crawl(folder)
    assert crawl.kind == "HTTrack"


def test_a_link_to_a_file_of_this_machine_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("my secret line\n")
    documented_sources(tmp_path, START)
    job = tmp_path / "example.org-2026-11-01-0a1b2c3d"
    for place in (job / "ignores", tmp_path / "mirror" / "hts-cache" / "doit.log", job / "wpull.db"):
        place.unlink()
        place.symlink_to(tmp_path / "mine")
        source = job if place.parent == job else tmp_path / "mirror"
        assert run(source, "-o", tmp_path / "c") in (ExitCode.USAGE, ExitCode.STORAGE)
        said = capsys.readouterr()
        assert "link" in said.err
        assert "my secret" not in said.err + said.out
        assert not (tmp_path / "c").exists()


def test_secrets_in_the_options_of_others_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("auth: me:hunter2", "proxyServer: http://me:hunter2@proxy.example/", "customSecret: hunter2")
    saved_state(tmp_path / "s", START, {"queued": []}, *options)
    assert run(tmp_path / "s", "-o", tmp_path / "c") == ExitCode.DONE
    said = capsys.readouterr()
    assert "no counterpart: auth: …" in said.err
    assert "hunter2" not in said.out + said.err + (tmp_path / "c" / "crawl.toml").read_text()


def test_a_browsertrix_that_was_killed_leaves_lists_of_pages(tmp_path: Path) -> None:
    for folder in ("archive", "pages"):
        (tmp_path / "s" / folder).mkdir(parents=True)
    pages = [{"format": "json-pages-1.0"}, {"url": START, "seed": True, "depth": 0}, {"url": f"{START}a", "depth": 1}]
    (tmp_path / "s" / "pages" / "pages.jsonl").write_text("".join(f"{json.dumps(page)}\n" for page in pages) + '{"url')
    assert kind_of(tmp_path / "s") == "browsertrix"
    assert run(tmp_path / "s", "-o", tmp_path / "c") == ExitCode.DONE
    assert rows(tmp_path / "c", "SELECT url, path, state FROM urls ORDER BY id") == [
        (START, "", "waiting"),
        (f"{START}a", "L", "waiting"),
    ]


def test_a_wpull_with_many_first_urls_keeps_them_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.tools.adopt.source.MOST_SEEDS", 5)
    wpull_database(tmp_path / "wpull.db", [Queued(f"{START}{number}", "todo", 0) for number in range(9)])
    assert len(wpull_crawl(tmp_path / "wpull.db").settings.seeds) == 5
    assert run(tmp_path / "wpull.db", "-o", tmp_path / "c") == ExitCode.DONE
    assert len(rows(tmp_path / "c", "SELECT 1 FROM urls WHERE state = 'waiting'")) == 9
