"""Commands that take the address of a frontier in PostgreSQL in place of a directory: they do what they do with one."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from archiver.collection.settings_file import read_settings
from archiver.model import ExitCode
from archiver.tools.report import findings
from archiver.tools.report.findings import FindingStyle
from fixtures.archives import states
from fixtures.command import archiver, running
from fixtures.flag import Flag, Gate
from fixtures.postgres import PostgresServer
from fixtures.rawserver import NOT_FOUND, Answer, End, RawServer, Route, in_turn, keep, raising
from fixtures.several_hosts import PATIENCE, several_hosts
from fixtures.sites import ok, page

pytestmark = pytest.mark.postgres
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--max-urls", "5")
COMMANDS = (("status",), ("report",), ("urls",), ("explain", "URL"), ("add", "URL"), ("retry",))
FOREIGN, SLOW = "127.0.0.2", "127.0.0.3"


class StoppedCrawl(NamedTuple):
    """A crawl that a limit has ended, with URLs waiting."""

    folder: Path  # its directory is `c` in there
    address: str
    seed: str

    def output(self, *words: str) -> str:
        """Return what a command prints."""
        ran = archiver(*words, cwd=self.folder)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def json(self, *words: str) -> Any:
        """Return what it prints as JSON."""
        return json.loads(self.output(*words, "--json"))


@pytest.fixture(name="address")
def new_database(postgres_server: PostgresServer | None) -> str:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres_server.new_database()


@pytest.fixture(name="stopped", scope="module")
def stopped_crawl(postgres_server: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> StoppedCrawl:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    folder, address = tmp_path_factory.mktemp("address"), postgres_server.new_database()
    with several_hosts() as hosts:
        ran = archiver("crawl", *OPTIONS, "--frontier", address, *hosts.seeds, cwd=folder)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        return StoppedCrawl(folder, address, hosts.seeds[0])


def test_status(stopped: StoppedCrawl) -> None:
    here, there = stopped.json("status", "c"), stopped.json("status", stopped.address)
    assert (here.pop("directory"), there.pop("directory")) == ("c", None)
    assert here["frontier"] == there["frontier"] == stopped.address
    assert here["totals"]["waiting"] > 0
    assert here["state"] == "stopped"
    for each in (here, there):
        each["rate"] = 0
        for machine in each["machines"]:
            assert machine.pop("silent") >= 0
    assert here == there


def test_the_next_command_names_the_address(stopped: StoppedCrawl) -> None:
    """Quoted for the shell; limits of the whole crawl are changed in a directory."""
    assert "archiver resume c --max-urls 0" in stopped.output("status", "c")
    assert "archiver resume DIR --max-urls 0" in stopped.output("status", stopped.address)
    with_options = stopped.output("report", f"{stopped.address}?sslmode=prefer")
    assert f"to continue: archiver join '{stopped.address}?sslmode=prefer'" in with_options


def test_commands_for_an_address() -> None:
    style = FindingStyle("postgresql://h/x", is_address=True)
    commands = {
        "archiver retry DIR && archiver resume DIR": "archiver retry postgresql://h/x && archiver join postgresql://h/x",
        "archiver retry DIR --blocked && archiver resume DIR --rate 1/5": (
            "archiver retry postgresql://h/x --blocked && archiver resume DIR --rate 1/5"
        ),
        "archiver replay DIR": "archiver replay DIR",
    }
    for text, shown in commands.items():
        assert findings.command(text, "", style).strip() == shown


@pytest.mark.parametrize(
    "words", [(), ("--why",), ("--json",), ("--state", "waiting"), ("--state", "refused"), ("--status", "2xx")]
)
def test_urls(stopped: StoppedCrawl, words: tuple[str, ...]) -> None:
    assert stopped.output("urls", stopped.address, *words) == stopped.output("urls", "c", *words)


def test_a_report(stopped: StoppedCrawl) -> None:
    for words in ((), ("--host", stopped.seed), ("--seed", stopped.seed)):
        here, there = stopped.json("report", "c", *words), stopped.json("report", stopped.address, *words)
        assert there.pop("directory") == stopped.address.rpartition("/")[2]
        assert here.pop("directory") == "c"
        assert there["totals"]["archived"] > 0
        assert f"to continue: archiver join {stopped.address}" in there.pop("ended")
        for each in (here, there):
            each.pop("written")
            each.pop("settings")
            each.pop("broken_pages")
            each["tables"].pop("broken-pages")  # pages that link to them are in the WARC files
        here.pop("ended")
        commands = json.dumps(there).replace(f"join {stopped.address}", "resume c").replace(stopped.address, "c")
        commands = commands.replace(" DIR ", " c ")  # of commands that take no address
        assert here == json.loads(commands)


def test_explain(stopped: StoppedCrawl) -> None:
    for url in (stopped.seed, f"{stopped.seed}1", f"{stopped.seed}unknown", "http://outside.example/"):
        here, there = (stopped.json("explain", place, url) for place in ("c", stopped.address))
        assert there.pop("link_context", "") == ""  # which is in the WARC files
        here.pop("link_context", "")
        here.pop("due"), there.pop("due")  # now
        assert here == there


@pytest.mark.parametrize("place", ["c", "address"])
def test_all_reports_go_to_a_folder(stopped: StoppedCrawl, place: str) -> None:
    folder = stopped.folder / f"of-{place}"
    folder.mkdir()
    named = stopped.address if place == "address" else place
    ran = archiver("report", named, "-o", folder.name, cwd=stopped.folder)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", f"archiver: written to {folder.name}\n")
    names = {path.name for path in folder.iterdir()}
    assert names == {path.name for path in (stopped.folder / "c" / "reports").iterdir()}
    assert (folder / "hosts.tsv").read_text() == (stopped.folder / "c" / "reports" / "hosts.tsv").read_text()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://me:hidden@127.0.0.1/crawl", "must not hold a password; put it into ~/.pgpass or PGPASSWORD"),
        ("postgresql://me:hid/den@127.0.0.1/crawl", "must not hold a password; put it into ~/.pgpass or PGPASSWORD"),
        ("postgresql://127.0.0.1", "'postgresql://127.0.0.1' is not the address of a PostgreSQL database"),
        ("postgresql://127.0.0.1/x?host=/tmp", "is not the address of a PostgreSQL database"),
        ("postgresql://me@127.0.0.1:1/crawl", "postgresql://me@127.0.0.1:1/crawl: connection failed"),
        ("postgresql://me@nowhere.invalid/crawl", "postgresql://me@nowhere.invalid/crawl: "),
    ],
)
def test_an_address_that_names_no_database(tmp_path: Path, words: tuple[str, ...], address: str, told: str) -> None:
    refused(tmp_path, (words[0], address, *("http://a.example/" for _ in words[1:])), told)


def refused(folder: Path, words: tuple[str, ...], told: str) -> None:
    """A command ends with one line, and nothing of a password."""
    ran = archiver(*words, cwd=folder)
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert told in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "hid" not in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("statements", "told"),
    [
        ((), "{} holds no crawl; to start one: archiver crawl URL --frontier {}"),
        (("CREATE TABLE shop (id int)",), "{} holds no crawl; to start one"),
        (("CREATE TABLE urls (url text)",), "{} has a table urls that archiver has not made"),
        (("CREATE TABLE versions (schema text)", "CREATE TABLE urls (url text)"), "has a table urls that archiver"),
        (("CREATE TABLE versions (schema bigint)", "INSERT INTO versions VALUES (3)"), "{} has schema version 3, and"),
    ],
)
def test_a_database_without_a_crawl(
    postgres_server: PostgresServer | None,
    tmp_path: Path,
    words: tuple[str, ...],
    statements: tuple[str, ...],
    told: str,
) -> None:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres_server.new_database()
    with psycopg.connect(address, autocommit=True) as db:
        for statement in statements:
            db.execute(statement.encode())
    refused(tmp_path, (words[0], address, *("http://a.example/" for _ in words[1:])), told.format(address, address))
    with psycopg.connect(address) as db:
        row = db.execute("SELECT count(*) FROM pg_class WHERE relname = 'captures'").fetchone()
    assert row == (0,)  # nothing was made


@pytest.mark.parametrize("command", ["verify", "replay", "pack", "resume", "ls"])
def test_other_commands_need_a_directory(tmp_path: Path, command: str) -> None:
    refused(tmp_path, (command, "postgresql://me:hidden@127.0.0.1/crawl"), "not the address of a database")


@pytest.mark.parametrize("words", [("ls",), ("get", "http://a.example/"), ("export", "--to", "x"), ("look",)])
def test_what_reads_captures_names_the_index_of_all_machines(tmp_path: Path, words: tuple[str, ...]) -> None:
    told = "not the address of a database; to make a directory with the captures of all machines: archiver index"
    refused(tmp_path, (words[0], "postgresql://127.0.0.1/crawl", *words[1:]), told)


def test_the_captures_of_one_machine_that_crawls_alone(stopped: StoppedCrawl) -> None:
    assert "these are the captures of" not in archiver("ls", "c", cwd=stopped.folder).stderr


def test_a_running_crawl_takes_up_what_comes_by_address(tmp_path: Path, address: str) -> None:
    """A URL that is queued again, and a seed on another host, whose page the scope accepts from then on."""
    gate, again, came = Gate(), Flag(), Flag()
    routes: dict[str, Route] = {
        "//127.0.0.1/": ok(page("Home", ["/gone"])),
        "//127.0.0.1/gone": in_turn(keep(NOT_FOUND), raising(again, ok("here"))),
        f"//{SLOW}/": Answer((gate, NOT_FOUND, End.CLOSE)),
        f"//{FOREIGN}/": ok(page("Added", ["/behind"])),
        f"//{FOREIGN}/behind": raising(came, ok("a page that only the new scope takes")),
    }
    with RawServer(routes, hosts=("127.0.0.1", FOREIGN, SLOW)) as server:
        first = (server.url(), server.url("/", SLOW))
        with running("crawl", *OPTIONS[:-2], "--frontier", address, *first, cwd=tmp_path) as process:
            gate.arrived.wait()
            gone = server.url("/gone")
            while gone not in output(tmp_path, "urls", address, "--status", "404"):
                assert process.poll() is None
            found = json.loads(output(tmp_path, "status", address, "--json"))
            assert found["state"] == "running"
            assert [len(machine["crawlers"]) for machine in found["machines"]] == [1]
            assert "1 crawler, " in output(tmp_path, "status", address)
            assert "it is running" in output(tmp_path, "report", address)
            taken_up = "; the running crawl starts on it within seconds"
            assert output(tmp_path, "retry", address, gone) == f"1 URL queued again{taken_up}\n"
            assert output(tmp_path, "add", address, server.url("/", FOREIGN)) == f"1 seed added{taken_up}\n"
            again.wait()
            came.wait()
            gate.open()
            assert process.wait(PATIENCE) == ExitCode.DONE
        assert states(tmp_path / "c")[server.url("/behind", FOREIGN)] == "archived"
        assert json.loads(output(tmp_path, "status", address, "--json"))["state"] == "done"
        seeds = read_settings(tmp_path / "c" / "crawl.toml")["seeds"]
        assert seeds == first  # until the crawl is continued there
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert read_settings(tmp_path / "c" / "crawl.toml")["seeds"] == (*first, server.url("/", FOREIGN))


def test_the_machines_of_a_crawl(tmp_path: Path, address: str, postgres_server: PostgresServer) -> None:
    with RawServer({"/": ok("home")}) as server:
        output(tmp_path, "crawl", *OPTIONS[:-2], "--frontier", address, server.url())
        output(tmp_path, "join", address, "-o", "d", "--name", "second", "--min-free-disk", "0")
        output(tmp_path, "retry", "d", server.url())
        output(tmp_path, "resume", "d")
    found = json.loads(output(tmp_path, "status", address, "--json"))
    first, second = found["machines"]
    assert [first["warcs"], second["warcs"], second["name"]] == [2, 2, "second"]
    assert second["directory"].endswith("/d")
    assert first["crawlers"] == second["crawlers"] == []
    told = "have crawled together, and their archives cannot be crawled again as one yet"
    refused(tmp_path, ("recrawl", "d", "--frontier", postgres_server.new_database()), told)
    refused(tmp_path, ("recrawl", "d"), told)
    refused(tmp_path, ("crawl", "--since", "d", server.url()), told)
    shown = output(tmp_path, "status", "d")
    assert re.search(r"^machines  .*: no crawler, last seen .* ago, 2 WARC files of \d", shown, re.MULTILINE)
    assert re.search(r"^          second: no crawler, last seen", shown, re.MULTILINE)


def output(folder: Path, *words: str) -> str:
    """Return what a command prints."""
    ran = archiver(*words, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_seeds_at_the_same_time(tmp_path: Path, address: str) -> None:
    """None is lost, whether it is added by address or to the directory."""
    with RawServer({"/": ok("home")}) as server:
        output(tmp_path, "crawl", *OPTIONS[:-2], "--frontier", address, server.url())
        named = [f"http://127.0.0.1:9/{number}" for number in range(8)]
        with ThreadPoolExecutor(4) as threads:
            said = list(threads.map(lambda one: output(tmp_path, "add", (address, "c")[int(one[-1]) % 2], one), named))
        assert said[0] == f"1 seed added; to continue: archiver join {address}\n"
        ran = archiver("resume", "c", "--retries", "0", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert sorted(read_settings(tmp_path / "c" / "crawl.toml")["seeds"]) == sorted([server.url(), *named])
    assert {url for url, state in states(tmp_path / "c").items() if state == "failed"} >= set(named)


def test_secrets_of_seeds_need_a_directory(stopped: StoppedCrawl) -> None:
    (stopped.folder / "list").write_text("https://a.example/ auth=me:env:TOKEN\n")
    refused(stopped.folder, ("add", stopped.address, "--seeds", "list"), "name a directory of the crawl")


def test_queue_again_by_address(stopped: StoppedCrawl) -> None:
    refused(stopped.folder, ("retry", stopped.address, "http://a.example/"), "http://a.example/ is not in the crawl")
    said = stopped.output("retry", stopped.address, stopped.seed)
    assert said == f"1 URL queued again; to continue: archiver join {stopped.address}\n"
