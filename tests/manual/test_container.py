"""The image: its steps run in a bare root where containers cannot be started, and it is built where they can."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver import __version__
from archiver.collection.live import HANGS
from fixtures.bare_root import Container, Root, bare_roots, container, descendants
from fixtures.command import ROOT
from fixtures.containerfile import context_files, instructions, stages
from fixtures.flag import PATIENCE, Gate
from fixtures.postgres import PostgresServer
from fixtures.rawserver import Answer, RawServer
from fixtures.sites import message, ok, page

DEPLOY = ROOT / "deploy"
FILE = DEPLOY / "Containerfile"
IGNORED = DEPLOY / "Containerfile.dockerignore"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
OWNER = (10001, 10001)


def test_what_the_steps_say() -> None:
    text = """
        # a comment
        ARG IMAGE=python:3
        FROM ${IMAGE} AS build
        RUN one \\
            # in between
            && two
        FROM ${IMAGE}
        RUN --mount=type=bind,from=build three
        CMD ["a", "b c"]
    """.replace("        ", "")
    first, last = stages(text)
    assert (first.base, first.name, last.name) == ("python:3", "build", "")
    assert [step.rest for step in first.steps] == ["one && two"]
    assert last.steps[0].options == {"mount": "type=bind,from=build"}
    assert last.steps[1].words() == ["a", "b c"]


@pytest.mark.parametrize("line", ["ADD a b", "SHELL []", "COPY --link a b", "RUN --mount=a --network=none c"])
def test_a_step_that_is_not_known_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="known"):
        instructions(line)


def test_which_files_are_in_the_build(tmp_path: Path) -> None:
    for name in ("kept/a.py", "kept/__pycache__/a.pyc", "kept/deep/__pycache__/b.pyc", "other/c", "one", "only/this"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = context_files(tmp_path, "*\n!kept\n!only/this\n# comment\n**/__pycache__\n")
    assert sorted(map(str, found)) == ["kept/a.py", "only/this"]


def until(wanted: Callable[[], object]) -> None:
    """Wait until *wanted* returns something true."""
    end = time.monotonic() + PATIENCE
    while not wanted():
        assert time.monotonic() < end, wanted
        time.sleep(0.05)


@contextmanager
def site() -> Iterator[tuple[RawServer, Gate]]:
    """Serve a site with one page that is not answered before the gate opens."""
    gate = Gate()
    held = Answer((gate, message("200 OK", page("Two", ["/three"]).encode(), content_type="text/html")))
    with RawServer({"/": ok(page("One", ["/two"])), "/two": held, "/three": ok(page("Three"))}) as server:
        yield server, gate
        gate.open()


def ended(running: Container) -> int:
    """Wait for the end of a container and return its exit code."""
    return running.process.wait(PATIENCE)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(1800)
def test_the_image_crawls(postgres_server: PostgresServer | None) -> None:
    """As user 10001, with the driver of PostgreSQL that the image has, below tini, and with the health check."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    if FAKETIME is None:
        pytest.skip("faketime is not installed")
    with bare_roots() as roots:
        root = roots.build(stages(FILE.read_text("utf-8")), ROOT, IGNORED.read_text("utf-8"))
        assert root.volumes == ("/data",)
        assert root.user == "{}:{}".format(*OWNER)
        says_what_is_missing(root)
        address = postgres_server.new_database()
        with site() as (server, gate):
            begin = f"{server.url()} --rate 0 --probe off --min-free-disk 0 --timeout {PATIENCE:g}"
            variables = {"FRONTIER": address, "FOLDER": "/data", "BEGIN": begin}
            stops_in_order(root, gate, variables)
            goes_on(root, variables)
            assert {row.target for row in server.log} == {"/robots.txt", "/", "/two", "/three"}
            assert len(server.log.requests("/two")) == 1
        crawl = root.at("/data/1/crawl")
        assert list((crawl / "archive").glob("*.warc.gz"))
        for path in (root.at("/data"), *root.at("/data").rglob("*")):
            assert (path.lstat().st_uid, path.lstat().st_gid) == OWNER, path


def says_what_is_missing(root: Root) -> None:
    with container(root) as running:
        assert ended(running) == 2
        assert "FRONTIER: is not set: it is the address of the database" in running.output


def stops_in_order(root: Root, gate: Gate, variables: dict[str, str]) -> None:
    """The first run ends at the signal that docker stop sends, and finishes the request under way."""
    with container(root, **variables) as running:
        until(lambda: gate.arrived.up or running.process.poll() is not None)
        assert gate.arrived.up, running.output
        assert running.run(root.probe).returncode == 0
        is_init(running)
        notices_that_it_hangs(running, root)
        os.kill(running.first, signal.SIGTERM)
        until(lambda: "stopping: waiting up to" in running.output)
        gate.open()
        assert ended(running) == 0, running.output


def is_init(running: Container) -> None:
    """Process 1 is tini. It takes in a process whose parent has ended, and waits for it."""
    assert Path(f"/proc/{running.first}/comm").read_text() == "tini\n"
    (machine,) = running.children()
    orphan = running.run(["/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"])
    until(lambda: len(running.children()) == 2)
    assert running.run(["/bin/sh", "-c", "kill $0", orphan.stdout.strip()]).returncode == 0
    until(lambda: running.children() == [machine])


def notices_that_it_hangs(running: Container, root: Root) -> None:
    """As the health check sees it later than a minute after all processes have been stopped."""
    assert FAKETIME is not None
    shutil.copy(FAKETIME, root.at("/usr/lib"))
    later = {"LD_PRELOAD": f"/usr/lib/{FAKETIME.name}", "FAKETIME": f"+{HANGS + PATIENCE:g}s"}
    (machine,) = running.children()
    for pid in descendants(machine):
        os.kill(pid, signal.SIGSTOP)
    seen = running.run(root.probe, **later)
    for pid in descendants(machine):
        os.kill(pid, signal.SIGCONT)
    assert (seen.returncode, "hangs: process" in seen.stdout) == (1, True), seen


def goes_on(root: Root, variables: dict[str, str]) -> None:
    """The next container continues in the same folder, and ends when the crawl is done."""
    with container(root, **variables) as running:
        assert ended(running) == 0, running.output
        assert "continuing /data/1/crawl" in running.output


def engine() -> str:
    """Return the program that starts containers here; skip the test if none does."""
    for name, question in (("docker", "version"), ("podman", "info")):
        if shutil.which(name) and not subprocess.run([name, question], capture_output=True, check=False).returncode:
            return name
    pytest.skip("neither docker nor podman can start containers here")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_image_is_built() -> None:
    name, tag = engine(), f"archiver-test-{os.getpid()}"
    base = stages(FILE.read_text("utf-8"))[-1].base
    pulled = subprocess.run([name, "pull", base], capture_output=True, text=True, check=False)
    if pulled.returncode:
        pytest.skip(f"{base} cannot be pulled: {pulled.stderr.strip()[-200:]}")
    own = ["--format", "docker", "--ignorefile", str(IGNORED)] if name == "podman" else []
    started = [name, "run", "--rm", "--read-only", "--tmpfs", "/tmp", tag]
    subprocess.run([name, "build", *own, "--file", str(FILE), "--tag", tag, str(ROOT)], check=True)
    try:
        assert subprocess.check_output([*started, "archiver", "--version"], text=True) == f"archiver {__version__}\n"
        assert subprocess.check_output([*started, "id", "-u"], text=True) == f"{OWNER[0]}\n"
        refused = subprocess.run(started, capture_output=True, text=True, check=False)
        assert (refused.returncode, "FRONTIER: is not set" in refused.stderr) == (2, True)
        shown = subprocess.check_output([name, "inspect", "--format", "{{json .Config.Healthcheck}}", tag], text=True)
        assert json.loads(shown)["Test"] == ["CMD", "archiver-machine", "check"]
    finally:
        subprocess.run([name, "rmi", "--force", tag], check=True)
