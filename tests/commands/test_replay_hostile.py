"""`archiver replay` of a collection that a stranger made: nothing in it is run, and nothing outside of it is shown."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver.collection import named_files
from archiver.collection.layout import Layout
from archiver.model import ExitCode
from archiver.warc import cdxj
from fixtures.command import COMMAND, archiver, environment
from fixtures.handmade_collections import Held, revisit
from fixtures.handmade_warc import Collection, Visit
from fixtures.rawserver import RawServer
from fixtures.sites import ok

pytestmark = pytest.mark.replay
URL = "http://example.org/"
SECRET = b"<p>what another collection of the reader holds"
MARK = "template-of-the-collection"
YAML = "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{}]]\n"


def collection(folder: Path, url: str = URL, body: bytes = b"<p>home") -> Collection:
    made = Collection(folder, (Visit(url, body),), surt=cdxj.lookup_key)
    made.database.unlink()
    return made


def poison(folder: Path, touched: Path) -> None:
    """Put into *folder* whatever pywb might read where it works; what runs, makes *touched*."""
    system = "cycler.__init__.__globals__.os"
    script = f"{{{{ {system}.close({system}.open({str(touched)!r}, 64)) }}}}"
    names = ("banner", "base", "error", "frame_insert", "head_insert", "home", "index", "not_found", "query", "search")
    places = [folder / "templates", folder, folder / "collections" / folder.name / "templates"]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        for name in (*names, "custom_banner", "head", "header", "footer"):
            (place / f"{name}.html").write_text(MARK + script)
    config = {"debug": True, "proxy": folder.name, "recorder": "live", "collections": {"live": "$live"}}
    (folder / "config.yaml").write_text(json.dumps(config) + "\n")
    for place in (folder, folder / "collections" / folder.name, folder / "collections" / "other"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "metadata.yaml").write_text(YAML.format(touched))
    for place in (folder / "static", folder / "pywb" / "static", folder / "collections" / folder.name / "static"):
        place.mkdir(parents=True)
        for name in ("wombat.js", "wb_frame.js", "mine.js"):
            (place / name).write_text(MARK)
    (folder / "pywb" / "__init__.py").write_text(f"open({str(touched)!r}, 'w')")
    (folder / "sitecustomize.py").write_text(f"open({str(touched)!r}, 'w')")


@contextmanager
def replaying(*names: str, cwd: Path, temporary: Path | None = None) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of the first collection, and the process, which is ended."""
    env = {**environment(), **({"TMPDIR": str(temporary)} if temporary else {})}
    with subprocess.Popen(
        [*COMMAND, "replay", *names, "--port", "0"],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), process.stderr.read() if process.stderr else ""
            yield "/".join(address.split("/")[:4]), process
        finally:
            process.kill()


def got(address: str, **fields: str) -> tuple[int, bytes]:
    asked = urllib.request.Request(address, headers={name.replace("_", "-"): value for name, value in fields.items()})
    try:
        with urllib.request.urlopen(asked, timeout=300) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize("where", ["above", "inside"])
def test_nothing_of_a_collection_is_run(tmp_path: Path, where: str) -> None:
    """Not its templates, configuration, metadata, static files or modules, wherever the command is called."""
    folder, touched = tmp_path / "bad", tmp_path / "touched"
    collection(folder)
    poison(folder, touched)
    cwd, name = (tmp_path, "bad") if where == "above" else (folder, ".")
    with replaying(name, cwd=cwd) as (root, _):
        server = root.rpartition("/")[0]
        pages = ["/", "/collinfo.json", "/bad/", f"/bad/{URL}", f"/bad/mp_/{URL}", f"/bad/*/{URL}", f"/bad/{URL}none"]
        pages += ["/static/wombat.js", "/static/wb_frame.js", "/static/mine.js", "/static/_/bad/mine.js"]
        pages += ["/static/..%2f..%2fbad/static/mine.js", "/other/", f"/live/{URL}", f"/bad/record/{URL}"]
        pages += [f"/bad/timemap/link/{URL}", f"/bad/cdx?url={URL}", "/proxy-fetch/http://example.org/"]
        answers = {page: got(server + page) for page in pages}
        assert got(f"{server}/bad/id_/{URL}") == (200, b"<p>home")
    assert not touched.exists()
    assert [page for page, (_, body) in answers.items() if MARK.encode() in body] == []
    assert answers["/static/wombat.js"][0] == answers[f"/bad/mp_/{URL}"][0] == 200
    assert {answers[page][0] for page in ("/static/mine.js", "/other/", f"/live/{URL}")} == {404}


def test_names_and_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    """Neither names in the index nor links in the archive, absolute or not, nor devices that never end."""
    secret = collection(tmp_path / "mine", "http://mine.example/", SECRET)
    bad = collection(tmp_path / "bad")
    names = [f"../../mine/archive/{secret.name}", str(secret.warc), f"file://{secret.warc}", "link.warc.gz"]
    names += [f"../*/archive/{secret.name}", "pipe.warc.gz", "../archive", "", ".", "a" * 5000, "a\0b", "/dev/zero"]
    told = json.loads(secret.lines[0].split(" ", 2)[2])
    for number, name in enumerate(names):
        line = {**told, "filename": name, "url": f"{URL}{number}"}
        bad.lines.append(f"org,example)/{number} 20200913122640 {json.dumps(line)}\n")
    bad.index.write_text("".join(sorted(bad.lines)))
    with replaying("bad", cwd=tmp_path) as (root, _):
        (bad.folder / "archive" / "link.warc.gz").symlink_to(secret.warc)  # before, it would not have been served
        os.mkfifo(bad.folder / "archive" / "pipe.warc.gz")
        (bad.folder / "indexes" / "far.cdxj").symlink_to(secret.index)
        answers = [got(f"{root}/id_/{URL}{number}") for number in range(len(names))]
        assert got(f"{root}/id_/http://mine.example/")[0] == 404
        assert got(f"{root}/id_/{URL}") == (200, b"<p>home")
    assert [name for name, (status, body) in zip(names, answers, strict=True) if status < 400 or SECRET in body] == []


def test_a_folder_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    secret, bad = collection(tmp_path / "mine"), collection(tmp_path / "bad")
    bad.warc.unlink()
    (bad.folder / "archive").rmdir()
    (bad.folder / "archive").symlink_to(secret.folder / "archive")
    ran = archiver("replay", "bad", "--port", "0", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (ExitCode.USAGE, 1)
    assert "bad/archive is a symbolic link" in ran.stderr


def test_an_index_cannot_make_it_ask_the_web(tmp_path: Path) -> None:
    """`load_url` and `.loc` files of an index are for servers of whole archives; here nobody is asked."""
    with RawServer(otherwise=ok("asked")) as server:
        bad = collection(tmp_path / "bad")
        for number, name in enumerate(("", "-", None)):
            said = {"url": f"{URL}{number}", "mime": "text/html", "status": "200", "load_url": server.url("/x")}
            said |= {} if name is None else {"filename": name, "offset": "0"}
            bad.lines.append(f"org,example)/{number} 20200913122640 {json.dumps(said)}\n")
        bad.index.write_text("".join(sorted(bad.lines)))
        (bad.folder / "indexes" / "z.idx").write_text("org,example)/far 20200913122640\tpart\t0\t100\t1\n")
        (bad.folder / "indexes" / "z.loc").write_text(f"part\t{server.url('/part')}\n")
        with replaying("bad", cwd=tmp_path) as (root, _):
            for number in range(3):
                assert got(f"{root}/id_/{URL}{number}")[0] >= 400
                assert got(f"{root}/vi_/{URL}{number}")[0] >= 400
            assert got(f"{root}/id_/{URL}far")[0] >= 400
        assert server.log.targets() == []


def test_only_its_own_names_are_answered(tmp_path: Path) -> None:
    """A page of the web that calls its own name our address (DNS rebinding) is not told what the archive holds."""
    collection(tmp_path / "c")
    with replaying("c", cwd=tmp_path) as (root, process):
        address = f"{root}/id_/{URL}"
        port = root.split(":")[2].partition("/")[0]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert got(address, Host=host) == (200, b"<p>home")
        for host in (
            f"evil.example:{port}",
            "evil.example",
            f"127.0.0.1.evil.example:{port}",
            "127.0.0.1",
            "localhost:1",
        ):
            status, body = got(address, Host=host)
            assert (status, b"at no other name" in body, b"home" in body) == (421, True, False)
        inner = _other_port(process.pid, int(port))
        status, body = got(f"http://localhost:{inner}/c/resource?url={URL}", Host="evil.example")
        assert (status, b"home" in body) == (421, False)


def _other_port(pid: int, known: int) -> int:
    """The port at which pywb talks to itself."""
    inodes = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    ports = {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}
    return (ports - {known}).pop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals) -> None:
    """Its working directory is another one than the collection's, is empty, and is gone at its end."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    collection(tmp_path / "c")
    with replaying("c", cwd=tmp_path, temporary=temporary) as (root, process):
        assert got(f"{root}/mp_/{URL}")[0] == 200
        works_in = Path(f"/proc/{process.pid}/cwd").readlink()
        assert temporary in works_in.parents
        assert list(works_in.iterdir()) == []
        process.send_signal(number)
        process.communicate(timeout=300)
        assert process.returncode == ExitCode.DONE
    assert list(temporary.iterdir()) == []


def test_leftovers_of_a_killed_server_are_removed_by_the_next(tmp_path: Path) -> None:
    """Those of a living server stay, and so does what only has such a name."""
    temporary, mine = tmp_path / "tmp", tmp_path / "mine"
    for folder in (temporary / "archiver-replay-other", mine):
        folder.mkdir(parents=True)
    (mine / "alive.lock").touch()
    (temporary / "archiver-replay-link").symlink_to(mine)
    collection(tmp_path / "c")
    with replaying("c", cwd=tmp_path, temporary=temporary) as (_, living):
        works_in = Path(f"/proc/{living.pid}/cwd").readlink()
        with replaying("c", cwd=tmp_path, temporary=temporary) as (_, killed):
            left = Path(f"/proc/{killed.pid}/cwd").readlink()
            killed.kill()
            killed.wait(timeout=300)
        assert left.exists()
        with replaying("c", cwd=tmp_path, temporary=temporary) as (root, _):
            assert got(f"{root}/mp_/{URL}")[0] == 200
            assert not left.parent.exists()
            assert works_in.exists()
    assert (mine / "alive.lock").exists()
    assert (temporary / "archiver-replay-other").exists()


def test_nothing_is_left_behind_by_an_error(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    collection(tmp_path / "c")
    with replaying("c", cwd=tmp_path) as (root, _):
        port = root.split(":")[2].partition("/")[0]
        env = {**environment(), "TMPDIR": str(temporary)}
        command = [*COMMAND, "replay", "c", "--port", port]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (ran.returncode, list(temporary.iterdir())) == (ExitCode.USAGE, [])


def test_a_received_crawl_cannot_show_other_collections(tmp_path: Path) -> None:
    """What `dedup-from` names gives payloads to revisits that know their digests, and nothing else."""
    mine, shared = "http://mine.example/", "http://mine.example/shared"
    own = Held(tmp_path / "mine")
    own.add(mine, SECRET).add(shared, b"<p>what both hold")
    own.write()
    bad = Held(tmp_path / "bad")
    bad.add(URL, b"<p>home")
    bad.add_record(revisit(f"{URL}a", b"<p>what both hold", shared), f"{URL}a", "warc/revisit", b"<p>what both hold")
    guess = revisit(f"{URL}b", b"no idea", mine)
    bad.add_record(guess, f"{URL}b", "warc/revisit", b"no idea").add_record(
        guess, f"{URL}c", "warc/revisit", b"no idea"
    )
    bad.lines[-1] = re.sub(r'"digest": "[^"]+"', '"digest": "sha256:"', bad.lines[-1])
    bad.lines[-2] = re.sub(r'"digest": "[^"]+"', '"digest": "-"', bad.lines[-2])
    bad.write()
    (bad.folder / "crawl.toml").write_text(f"seeds = [{URL!r}]\ndedup-from = [{str(own.folder)!r}]\n")
    with replaying("bad", cwd=tmp_path) as (root, _):  # the reader has not named the other archive
        assert got(f"{root}/id_/{URL}a")[0] >= 400
    named_files.vouch(Layout(bad.folder), [str(own.folder)])
    with replaying("bad", cwd=tmp_path) as (root, _):
        assert got(f"{root}/id_/{URL}a") == (200, b"<p>what both hold")
        for address in (f"id_/{mine}", f"id_/{shared}", f"mp_/{mine}", f"cdx?url={mine}", f"id_/{URL}b", f"id_/{URL}c"):
            status, body = got(f"{root}/{address}")
            assert SECRET not in body, address
            assert status >= 400 or not body, address
    with replaying("bad", "mine", cwd=tmp_path) as (root, _):
        assert got(f"{root}/id_/{mine}") == (200, SECRET)
