"""A collection that somebody else has made: no command reads, changes or deletes a file outside of it."""

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from archiver.collection.layout import Layout
from archiver.collection.named_files import strangers
from archiver.model import ExitCode
from archiver.storage import OPEN
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page, tree

COMMANDS: dict[str, tuple[str, ...]] = {
    "resume": ("resume", "c"),
    "recrawl": ("recrawl", "c"),
    "crawl": ("crawl", "http://127.0.0.1:9/", "-o", "c"),
    "status": ("status", "c"),
    "report": ("report", "c"),
    "urls": ("urls", "c"),
    "explain": ("explain", "c", "http://127.0.0.1/"),
    "retry": ("retry", "c", "--status", "404"),
    "add": ("add", "c", "http://127.0.0.1/more"),
    "verify": ("verify", "c"),
    "index": ("index", "c"),
    "rebuild": ("rebuild", "c"),
    "ls": ("ls", "c"),
    "get": ("get", "c", "http://127.0.0.1/"),
    "export": ("export", "c", "--to", "out"),
    "pack": ("pack", "c", "-o", "c.wacz"),
    "import": ("import", "more.warc.gz", "-o", "c"),
    "replay": ("replay", "c", "--port", "0"),
}
FOLDERS = ("archive", "indexes", "logs", "reports", "damaged", "spool", "crawls", "imports")
FILES = (
    "crawl.db",
    "crawl.toml",
    "crawl.lock",
    "imports.json",
    "live.json",
    "crawl.db-wal",
    "logs/crawl.log",
    "indexes/index.cdxj",
)
FIRST_FILE = "UPDATE warcs SET name = ? WHERE id = (SELECT min(id) FROM warcs)"
INSIDE = ("archive/x.warc.gz", f"archive/x.warc.gz{OPEN}", "indexes/x.cdxj", "reports/x.txt.tmp", "damaged/x.part")


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished collection, and one with files that nobody may touch."""
    folder = tmp_path_factory.mktemp("made")
    site = tree(4)
    with RawServer(site.routes) as server:
        crawl(folder / "c", server.url())
        (folder / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\nmetadata-warc = false\n')
        path = min((folder / "c/archive").iterdir())  # one of two, if the disk was slow
        shutil.copy(path, folder / "more.warc.gz")
    return folder


@pytest.fixture(name="folder")
def _folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it, and the folder `mine` of the person who has received it."""
    shutil.copytree(made, tmp_path / "here")
    (tmp_path / "here/mine").mkdir()
    (tmp_path / "here/mine/secret.txt").write_text("my secret\n")
    (tmp_path / "here/mine/x.tmp").write_text("my draft\n")
    return tmp_path / "here"


def _told(forks: Forks, folder: Path, command: str, named: str) -> None:
    """The *command* is refused with one line that names *named*, and what is `mine` is as it was."""
    before = _everything(folder / "mine")
    done = forks.archiver(*COMMANDS[command], cwd=folder)
    assert done.returncode == ExitCode.USAGE, (command, done.stdout, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert named in done.stderr
    assert "secret" not in done.stdout
    assert _everything(folder / "mine") == before
    assert not list(folder.glob("*.wacz"))
    assert not (folder / "out").exists()


def _everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _moved(folder: Path, name: str) -> None:
    """*name* of the collection lies in `mine`, and a link to it in the collection."""
    place, target = folder / "c" / name, folder / "mine" / Path(name).name
    if place.exists():
        place.rename(target)
    elif "." in name:
        target.write_text("my secret\n")
    else:
        target.mkdir()
        (target / "x.tmp").write_text("my draft\n")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_in_place_of_the_archive_is_followed_by_no_command(folder: Path, forks: Forks, command: str) -> None:
    _moved(folder, "archive")
    _told(forks, folder, command, "c/archive is a symbolic link")


@pytest.mark.parametrize("name", [*FOLDERS, *FILES, *INSIDE])
@pytest.mark.parametrize("command", ["resume", "pack", "status"])
def test_no_link_inside_is_followed(folder: Path, forks: Forks, command: str, name: str) -> None:
    _moved(folder, name)
    _told(forks, folder, command, f"c/{name} is a symbolic link")


@pytest.mark.parametrize("name", FILES + INSIDE)
@pytest.mark.parametrize("command", ["resume", "verify", "ls", "status", "import"])
def test_a_pipe_in_place_of_a_file_makes_nobody_wait(folder: Path, forks: Forks, command: str, name: str) -> None:
    (folder / "c" / name).parent.mkdir(exist_ok=True)
    (folder / "c" / name).unlink(missing_ok=True)
    os.mkfifo(folder / "c" / name)
    _told(forks, folder, command, f"c/{name} is a named pipe")


@pytest.mark.parametrize("name", [*FILES, "crawl-origins.json", *INSIDE[:2]])
@pytest.mark.parametrize("command", ["resume", "verify", "index"])
def test_a_folder_in_place_of_a_file_is_named(folder: Path, forks: Forks, command: str, name: str) -> None:
    """Otherwise an index would leave out such a WARC file without a word, and building it again would never help."""
    (folder / "c" / name).unlink(missing_ok=True)
    (folder / "c" / name).mkdir()
    _told(forks, folder, command, f"c/{name} is a folder, where a file belongs; move it away")


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("command", ["resume", "verify"])
def test_a_file_in_place_of_a_folder_is_named(folder: Path, forks: Forks, command: str, name: str) -> None:
    shutil.rmtree(folder / "c" / name, ignore_errors=True)
    (folder / "c" / name).touch()
    _told(forks, folder, command, f"c/{name} is a regular file, where a folder belongs; move it away")


STAMP = "20260101000000"
EARLIER_FILES = ("crawl.db", "crawl.db-wal", "crawl.toml", "next.toml", "logs/crawl.log")
EARLIER_FOLDERS = (STAMP, f"{STAMP}/logs", f"{STAMP}/reports", f"{STAMP}.pruned")
SOME = ("resume", "recrawl", "status", "verify", "pack")


@pytest.mark.parametrize("name", EARLIER_FILES)
@pytest.mark.parametrize("command", SOME)
def test_a_folder_in_place_of_a_file_of_an_earlier_crawl_is_named(
    folder: Path, forks: Forks, command: str, name: str
) -> None:
    (folder / "c/crawls" / STAMP / name).mkdir(parents=True)
    _told(forks, folder, command, f"c/crawls/{STAMP}/{name} is a folder, where a file belongs; move it away")


@pytest.mark.parametrize("name", EARLIER_FOLDERS)
@pytest.mark.parametrize("command", SOME)
def test_a_file_in_place_of_a_folder_of_earlier_crawls_is_named(
    folder: Path, forks: Forks, command: str, name: str
) -> None:
    path = folder / "c/crawls" / name
    path.parent.mkdir(parents=True)
    path.touch()
    _told(forks, folder, command, f"c/crawls/{name} is a regular file, where a folder belongs; move it away")


@pytest.mark.parametrize("command", ["verify", "ls", "status", "index", "pack"])
def test_the_collection_itself_may_be_a_link(folder: Path, forks: Forks, command: str) -> None:
    """The person who names it has made it."""
    (folder / "c").rename(folder / "mine/elsewhere")
    (folder / "c").symlink_to(folder / "mine/elsewhere")
    done = forks.archiver(*COMMANDS[command], cwd=folder)
    assert done.returncode == ExitCode.DONE, done.stderr


@pytest.mark.parametrize("command", ["resume", "recrawl"])
@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize(
    "name", ["../../mine/secret.txt", "/{here}/mine/secret.txt", "..", "", "a/../../../mine/secret.txt"]
)
def test_a_database_cannot_name_a_file_outside(
    folder: Path, forks: Forks, command: str, closed: int, name: str
) -> None:
    name = name.replace("/{here}", str(folder))
    _sql(folder / "c", "INSERT INTO warcs (name, committed, closed) VALUES (?, 0, ?)", (name, closed))
    before = _everything(folder / "mine")
    done = forks.archiver(*COMMANDS[command], cwd=folder)
    assert done.returncode == ExitCode.STORAGE, done.stderr
    assert "crawl.db gives a file the name" in done.stderr
    assert "Traceback" not in done.stderr
    assert _everything(folder / "mine") == before
    assert not (folder / "c/damaged").exists()


def test_verify_names_such_a_database(folder: Path, forks: Forks) -> None:
    _sql(folder / "c", FIRST_FILE, ("../../mine/secret.txt",))
    done = forks.archiver("verify", "c", cwd=folder)
    assert done.returncode == ExitCode.FAULTS
    assert "gives a file the name '../../mine/secret.txt'" in done.stdout


def test_an_earlier_crawl_cannot_name_one_either(folder: Path, forks: Forks) -> None:
    earlier = folder / "c/crawls/20200101000000"
    earlier.mkdir(parents=True)
    for name in ("crawl.db", "crawl.toml"):
        shutil.copy(folder / "c" / name, earlier / name)
    _sql(earlier, FIRST_FILE, ("../../mine/secret.txt",))
    done = forks.archiver("resume", "c", cwd=folder)
    assert done.returncode == ExitCode.STORAGE
    assert "20200101000000/crawl.db gives a file the name" in done.stderr


@pytest.mark.parametrize("field", ["name", "original"])
def test_imports_cannot_name_one(folder: Path, forks: Forks, field: str) -> None:
    """Neither as a file in archive/ nor as the original of one."""
    entry = {"name": "x.warc.gz", "sha256": "0" * 64, "bytes": 1, "indexed": True}
    outside = "../mine/secret.txt"
    entry |= {"name": outside} if field == "name" else {"original": {"name": outside, "sha256": "0" * 64, "bytes": 1}}
    (folder / "c/imports.json").write_text(json.dumps({"files": [entry]}))
    done = forks.archiver("verify", "c", cwd=folder)
    assert done.returncode == ExitCode.FAULTS
    assert "imports.json gives a file the name '..'" in done.stdout or "gives a file the name '../mine" in done.stdout
    resumed = forks.archiver("resume", "c", cwd=folder)
    assert resumed.returncode == ExitCode.STORAGE
    assert "Traceback" not in resumed.stderr


@pytest.mark.parametrize("command", ["get", "export", "pack", "index"])
@pytest.mark.parametrize("name", ["../../mine/secret.txt", "/etc/passwd", "..", "a\\u0000b"])
def test_an_index_cannot_name_one(folder: Path, forks: Forks, command: str, name: str) -> None:
    index = folder / "c/indexes/index.cdxj"
    for path in (folder / "c/archive").iterdir():
        index.write_text(index.read_text().replace(path.name, name))
    before = _everything(folder / "mine")
    url = json.loads(index.read_text().splitlines()[0].split(" ", 2)[2])["url"]
    words = ("get", "c", url) if command == "get" else COMMANDS[command]
    done = forks.archiver(*words, cwd=folder)
    assert done.returncode == (ExitCode.DONE if command == "index" else done.returncode)
    assert done.returncode in (ExitCode.DONE, ExitCode.USAGE, ExitCode.STORAGE)
    assert "secret" not in done.stdout
    assert "Traceback" not in done.stderr
    assert _everything(folder / "mine") == before


@pytest.mark.parametrize("place", ["/{here}/mine/blocks.gz", "../../mine/blocks.gz", "../mine/../../mine/blocks.gz"])
def test_a_file_of_places_cannot_name_one(folder: Path, forks: Forks, place: str) -> None:
    indexes = folder / "c/indexes"
    text = (indexes / "index.cdxj").read_bytes()
    blocks = gzip.compress(text)
    (folder / "mine/blocks.gz").write_bytes(blocks)
    (indexes / "index.cdxj").unlink()
    (indexes / "x.idx").write_bytes(b" ".join(text.split(b" ")[:2]) + b"\tpart\t0\t%d\t1\n" % len(blocks))
    (indexes / "x.loc").write_text(f"part\t{place.replace('/{here}', str(folder))}\n")
    done = forks.archiver("ls", "c", cwd=folder)
    assert done.returncode == ExitCode.STORAGE, done.stdout
    assert "x.loc" in done.stderr


def _sql(directory: Path, sql: str, values: tuple[object, ...]) -> None:
    with closing(sqlite3.connect(directory / "crawl.db")) as db:
        db.execute(sql, values)
        db.commit()


@pytest.mark.parametrize("command", ["adopt", "ls", "pack", "verify"])
def test_a_source_that_is_no_file_gets_one_line(tmp_path: Path, forks: Forks, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "circle"):
        done = forks.archiver(command, name, cwd=tmp_path)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert done.stderr.startswith(f"archiver: {name}"), done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_collection_whose_name_is_not_utf_8_is_verified(made: Path, tmp_path: Path, forks: Forks) -> None:
    place = tmp_path / os.fsdecode(b"c\xff")
    shutil.copytree(made / "c", place)
    done = forks.archiver("verify", str(place), cwd=tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr


def test_a_pipe_that_is_named_by_hand_makes_nobody_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.warc.gz")
    for command in (("verify", "pipe.warc.gz"), ("ls", "pipe.warc.gz"), ("import", "pipe.warc.gz", "-o", "d")):
        done = subprocess.run(
            [sys.executable, "-m", "archiver", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert "pipe.warc.gz" in done.stderr


def test_other_archives_are_taken_only_if_they_were_named_here(
    folder: Path, forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As crawl.toml of a received collection names them; then as the person at this machine does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(folder / "c", folder / "mine/private")
    private = folder / "mine/private"
    with (folder / "c/crawl.toml").open("a") as file:
        file.write(f'dedup-from = ["{private}"]\n')

    def told(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "archiver", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    for command in ("resume", "recrawl"):
        refused = told(command, "c")
        assert refused.returncode == ExitCode.USAGE, refused.stderr
        assert f"--dedup-from {private}" in refused.stderr
    assert not (tmp_path / "state").exists()
    assert told("resume", "c", "--dedup-from", str(private)).returncode == ExitCode.DONE
    assert told("resume", "c").returncode == ExitCode.DONE
    assert strangers(Layout(folder / "c"), [str(private)]) == []
    shutil.copytree(folder / "c", tmp_path / "handed-on")
    (tmp_path / "state/archiver/key").write_bytes(bytes(32))  # another person's
    assert told("resume", str(tmp_path / "handed-on")).returncode == ExitCode.USAGE
    assert strangers(Layout(tmp_path / "handed-on"), [str(private)]) == [str(private)]


HEADER = "Authorization: Bearer env:MY_TOKEN"
PAGES = {"/": ok(page("Front", ["/one"])), "/one": ok(page("One"))}
FIRST = ("-o", "c", "--rate", "0", "--max-urls", "1", "--retries", "0")


def rewrite(settings: Path, lines: str) -> None:
    """Put *lines* into the file *settings*, in place of what it has for their first key."""
    key = lines.partition("\n")[0].strip("[]").partition(" =")[0]
    kept = [old for old in settings.read_text().splitlines() if not old.startswith(f"{key} =")]
    settings.write_text("\n".join([*kept, lines, ""] if lines.startswith("[[") else [lines, *kept, ""]))


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This user has a secret in an environment variable, and has named nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MY_TOKEN", "hunter2")


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize(
    "lines",
    [
        "auth = ['{url} me:env:MY_TOKEN']",
        f"header = ['{HEADER}']",
        "[[host]]\nmatch = '127.0.0.1'\nauth = ['me:env:MY_TOKEN']",
        f"[[host]]\nmatch = '127.0.0.1'\nheader = ['{HEADER}']",
        "[[login]]\npage = '{url}login'\nfields = {{ user = 'me', password = 'env:MY_TOKEN' }}",
        "proxy = ['http://me:env:MY_TOKEN@127.0.0.1:9']",
        "[[seed]]\nurl = '{url}'\nheader = ['X-Api-Key: env:MY_TOKEN']",
    ],
)
def test_secrets_of_this_machine_go_only_where_this_user_has_sent_them(
    tmp_path: Path, forks: Forks, lines: str
) -> None:
    """A received crawl.toml names an environment variable of this user, and a host of a stranger."""
    with RawServer(PAGES) as server:
        assert forks.archiver("crawl", server.url(), *FIRST, cwd=tmp_path).returncode == ExitCode.LIMIT
        rewrite(tmp_path / "c/crawl.toml", lines.format(url=server.url()))
        seen = len(server.log)
        for command in ("resume", "recrawl"):
            refused = forks.archiver(command, "c", "--max-urls", "0", cwd=tmp_path)
            assert refused.returncode == ExitCode.USAGE, refused.stderr
            assert "env:MY_TOKEN" in refused.stderr
            assert "--trust-settings" in refused.stderr
            assert len(refused.stderr.splitlines()) == 1
        assert len(server.log) == seen
        limits = ("--max-urls", "2", "--offline-patience", "1")
        followed = forks.archiver("resume", "c", *limits, "--trust-settings", cwd=tmp_path)
        assert "you have not named" not in followed.stderr
        followed = forks.archiver("resume", "c", *limits, cwd=tmp_path)
        assert "you have not named" not in followed.stderr, "once trusted, it is named for this user"


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize(
    "line",
    [
        "proxy = ['http://127.0.0.1:9']",
        "resolve = ['www.example.org=127.0.0.1']",
        "dns-server = ['127.0.0.1']",
        "insecure-secrets = ['127.0.0.1']",
        "seeds = ['http://127.0.0.2:9/']",
    ],
)
def test_no_received_setting_leads_a_secret_elsewhere(tmp_path: Path, forks: Forks, line: str) -> None:
    """This user named the secret; somebody else has added the way."""
    with RawServer(PAGES) as server:
        first = forks.archiver("crawl", server.url(), *FIRST, "--header", HEADER, cwd=tmp_path)
        assert first.returncode == ExitCode.LIMIT
        assert forks.archiver("resume", "c", "--max-urls", "1", cwd=tmp_path).returncode == ExitCode.LIMIT
        rewrite(tmp_path / "c/crawl.toml", line)
        refused = forks.archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
    assert refused.returncode == ExitCode.USAGE, refused.stderr
    assert "--trust-settings" in refused.stderr
    assert "c/crawl.toml: you have not named this" in refused.stderr


@pytest.mark.usefixtures("token")
def test_what_the_user_gives_again_or_adds_is_named(tmp_path: Path, forks: Forks) -> None:
    with RawServer(PAGES, hosts=("127.0.0.1", "127.0.0.2")) as server:
        assert forks.archiver("crawl", server.url(), *FIRST, cwd=tmp_path).returncode == ExitCode.LIMIT
        given = ("--header", HEADER, "--max-urls", "2", "--resolve", "www.example.org=192.0.2.7")
        resumed = forks.archiver("resume", "c", *given, cwd=tmp_path)
        assert "you have not named" not in resumed.stderr
        assert forks.archiver("add", "c", server.url("/", "127.0.0.2"), cwd=tmp_path).returncode == ExitCode.DONE
        done = forks.archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        late = [row.request for row in server.log if row.host == "127.0.0.2" and row.target == "/one"]
    assert [b"Authorization: Bearer hunter2\r\n" in request for request in late] == [True]
