"""The files in deploy/: services and containers understand them, and each command in them is one of this program."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from archiver.config.settings import LimitSettings
from archiver.model import ExitCode
from fixtures.command import COMMAND, ROOT, ended, environment
from fixtures.command_definitions import COMMANDS
from fixtures.postgres import PostgresServer, wait_for
from fixtures.several_hosts import PATIENCE, several_hosts

DEPLOY = ROOT / "deploy"
SCRIPT = DEPLOY / "archiver-machine"
UNIT = DEPLOY / "archiver-crawler@.service"
RECORDER = """#!/bin/sh
[ "$1" != status ] || exit "${STATUS-2}"
for word; do printf '%s\\0' "$word"; done >"$RECORD"
exit "${CODE-0}"
"""
SETTLING = 60.0  # seconds that an archiver may need to write everything, after it has drained
NEVER = 60  # seconds

with_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
with_flock = pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not installed")


def manifests() -> dict[tuple[str, str], Any]:
    """Return the objects for Kubernetes by kind and name."""
    found = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def unit() -> dict[str, str]:
    """Return the settings of the unit; the last of each name."""
    lines = UNIT.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def example() -> dict[str, str]:
    """Return the variables of the example for services."""
    lines = (DEPLOY / "example.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def first_machine() -> dict[str, dict[str, str]]:
    """Return the environment of the machine that begins the crawl, by the file that sets it."""
    return {
        "systemd": example(),
        "compose": {**compose()["services"]["first"]["environment"]},
        "kubernetes": {**manifests()["ConfigMap", "archiver"]["data"]},
    }


class Machine:
    """Runs the script with a program that notes the words it gets in place of archiver."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.place = folder / "data" / "1" / "crawl" if "FOLDER" in variables else folder / "data" / "crawl"
        self._record = folder / "words"
        (folder / "bin").mkdir()
        (folder / "bin" / "archiver").write_text(RECORDER)
        (folder / "bin" / "archiver").chmod(0o755)
        where = {"FOLDER": str(folder / "data")} if "FOLDER" in variables else {"DIRECTORY": str(self.place)}
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self._environment = {**variables, **where, "STAY": "", "PATH": path, "RECORD": str(self._record)}

    def runs(self, **more: str) -> tuple[int, list[str]]:
        """Run the script; return its exit code and the words that archiver got."""
        self._record.unlink(missing_ok=True)
        ran = subprocess.run([SCRIPT], env={**self._environment, **more}, check=False, timeout=NEVER)
        return ran.returncode, self._record.read_text().split("\0")[:-1] if self._record.exists() else []


@with_flock
@pytest.mark.parametrize("name", ["systemd", "compose", "kubernetes"])
def test_each_command_is_understood(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path, first_machine()[name])
    began = machine.runs()[1]
    joined = machine.runs(STATUS="0")[1]
    machine.place.mkdir(parents=True)
    (machine.place / "crawl.postgresql").write_text(f"{first_machine()[name]['FRONTIER']}\nmark\n")
    resumed = machine.runs()[1]
    moved = machine.runs(FRONTIER="postgresql://crawl@new.example/crawl")[1]
    assert [words[0] for words in (began, joined, resumed, moved)] == ["crawl", "join", "resume", "resume"]
    assert "--frontier" not in resumed
    assert moved[moved.index("--frontier") + 1] == "postgresql://crawl@new.example/crawl"
    for command, *rest in (began, joined, resumed, moved):
        COMMANDS[command].make_context(command, rest)


@with_flock
def test_a_further_machine_waits_for_the_first(tmp_path: Path) -> None:
    """It has no BEGIN, so it joins, and what it is told (2: there is no crawl yet) is passed on."""
    services = compose()["services"]
    assert "BEGIN" not in services["crawler"]["environment"]
    code, words = Machine(tmp_path, services["crawler"]["environment"]).runs(CODE="2")
    assert (code, words[0]) == (2, "join")
    assert services["crawler"]["restart"] == "on-failure"


@pytest.mark.parametrize("code", list(ExitCode))
def test_ends_that_need_no_repetition_count_as_success(tmp_path: Path, code: ExitCode) -> None:
    good = {ExitCode.DONE, ExitCode.STOPPED, ExitCode.LIMIT, ExitCode.NO_SEED, ExitCode.TROUBLE}
    machine = Machine(tmp_path, {"FRONTIER": "postgresql://db/crawl"})
    assert machine.runs(CODE=str(int(code)))[0] == (0 if code in good else code)


def test_without_an_address_one_line_says_so(tmp_path: Path) -> None:
    ran = subprocess.run([SCRIPT], env={}, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert re.search(r"FRONTIER: is not set: it is the address of the database", ran.stderr)


@with_systemd
def test_the_unit_is_understood(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8")
    place = unit()["ExecStart"]
    assert place == f"/usr/local/bin/{SCRIPT.name}"
    (tmp_path / UNIT.name).write_text(text.replace(place, str(SCRIPT)))
    instance = tmp_path / UNIT.name.replace("@", "@example")
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(instance)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    exposed = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(tmp_path / UNIT.name)]
    ran = subprocess.run(exposed, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]


def test_each_gives_a_crawler_time_to_drain() -> None:
    least = LimitSettings().drain_timeout + SETTLING
    services = compose()["services"]
    pod = manifests()["StatefulSet", "archiver"]["spec"]["template"]["spec"]
    for given in (unit()["TimeoutStopSec"], pod["terminationGracePeriodSeconds"]):
        assert int(given) > least
    for name in ("first", "crawler"):
        assert 60 * int(services[name]["stop_grace_period"].removesuffix("m")) > least
    assert unit()["KillSignal"] == "SIGINT"
    assert unit()["KillMode"] == "mixed"  # archiver-machine passes the signal on, so no process gets it twice


def test_codes_after_which_the_unit_is_not_started_again() -> None:
    assert unit()["Restart"] == "on-failure"
    assert unit()["RestartPreventExitStatus"] == str(int(ExitCode.USAGE))


def test_each_container_has_the_same_probe() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    (found,) = re.findall(
        r"^HEALTHCHECK --interval=(\d+)s --timeout=(\d+)s --retries=(\d+) CMD (.+)$", text, re.MULTILINE
    )
    interval, timeout, retries, command = int(found[0]), int(found[1]), int(found[2]), json.loads(found[3])
    (container,) = manifests()["StatefulSet", "archiver"]["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"] == {
        "exec": {"command": command},
        "periodSeconds": interval,
        "timeoutSeconds": timeout,
        "failureThreshold": retries,
    }
    for name in ("first", "crawler"):
        assert compose()["services"][name]["healthcheck"] == {
            "test": ["CMD", *command],
            "interval": f"{interval}s",
            "timeout": f"{timeout}s",
            "retries": retries,
        }
    assert command == [SCRIPT.name, "check"]


def probe(folder: Path, code: ExitCode | None = None, **variables: str) -> tuple[int, list[str]]:
    """Run the probe with a program in place of archiver that ends with *code*; return what Machine.runs returns."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "archiver").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit {int(code or 0)}\n")
    (folder / "bin" / "archiver").chmod(0o755)
    path = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    ran = subprocess.run([SCRIPT, "check"], env={**variables, **path}, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.splitlines()


@pytest.mark.parametrize("code", list(ExitCode))
def test_only_a_crawler_that_hangs_fails_the_probe(tmp_path: Path, code: ExitCode) -> None:
    """Or a probe that itself fails. One that is not there waits for something, or has ended as it should."""
    healthy = {ExitCode.DONE, ExitCode.USAGE, ExitCode.STOPPED}
    (tmp_path / "crawl.lock").touch()
    expected = (0 if code in healthy else 1, ["status", str(tmp_path), "--check"])
    assert probe(tmp_path, code, DIRECTORY=str(tmp_path)) == expected


@with_flock
def test_the_probe_finds_the_folder_that_this_machine_has_taken(tmp_path: Path) -> None:
    note, folder = tmp_path / "note", tmp_path / "data"
    variables = {"NOTE": str(note), "FOLDER": str(folder)}
    assert probe(tmp_path, ExitCode.FAULTS, **variables) == (0, [])
    (tmp_path / "other").mkdir()
    assert Machine(tmp_path / "other", {**variables, "FRONTIER": "postgresql://db/crawl"}).runs()[0] == 0
    place = note.read_text().strip()
    assert probe(tmp_path, ExitCode.FAULTS, **variables) == (0, [])  # nothing has begun there
    Path(place).mkdir()
    (Path(place) / "crawl.lock").touch()
    assert probe(tmp_path, ExitCode.FAULTS, **variables) == (1, ["status", place, "--check"])


@with_flock
def test_a_note_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    given = {"NOTE": str(tmp_path), "FRONTIER": "postgresql://db/crawl"}
    code, words = Machine(tmp_path, given).runs()
    assert (code, words[0]) == (0, "join")


def test_the_compose_file_is_understood() -> None:
    text = (files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text("utf-8")
    jsonschema.validate(compose(), json.loads(text))
    known = compose()
    for name, service in known["services"].items():
        assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z0-9./:-]+\}", service["image"]), name
        assert set(service.get("depends_on", {})) <= known["services"].keys()
        for mount in service.get("volumes", ()):
            assert mount.partition(":")[0] in known["volumes"]
        for used in service.get("configs", ()):
            assert used["source"] in known["configs"]
        for other, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in known["services"][other]
    build = known["services"]["first"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"


def test_the_manifests_are_understood() -> None:
    for (kind, name), each in manifests().items():
        kubernetes_validate.validate(each, "1.31", strict=True)
        assert name.startswith("archiver"), kind


def test_names_in_the_manifests_agree() -> None:
    found = manifests()
    machines = found["StatefulSet", "archiver"]["spec"]
    labels, pod = machines["template"]["metadata"]["labels"], machines["template"]["spec"]
    assert machines["selector"]["matchLabels"] == labels
    assert found["Service", machines["serviceName"]]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget", "archiver"]["spec"]["selector"]["matchLabels"] == labels
    (container,) = pod["containers"]
    for source in container["envFrom"]:
        for reference, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            assert reference not in source or (kind, source[reference]["name"]) in found
    claims = {each["metadata"]["name"] for each in machines["volumeClaimTemplates"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts.keys() == claims | volumes.keys()
    given = found["ConfigMap", "archiver"]["data"]
    assert Path(given["DIRECTORY"]).is_relative_to(mounts["data"])
    seeds = Path(shlex.split(given["BEGIN"])[1])
    assert str(seeds.parent) == mounts["settings"]
    assert seeds.name in found["ConfigMap", volumes["settings"]["configMap"]["name"]]["data"]
    assert container["readinessProbe"]["exec"]["command"][-1] == f"{given['DIRECTORY']}/crawl.postgresql"
    assert str(pod["securityContext"]["runAsUser"]) in (DEPLOY / "Containerfile").read_text("utf-8")


def test_the_image_is_made_of_what_is_there() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extras,) = set(re.findall(r"\[([a-z,]+)\]\"", text))
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    for source in re.findall(r"^COPY (?:--\S+ )*(\S+) \S+$", text, re.MULTILINE):
        assert (ROOT / source).exists()
    kept = (DEPLOY / "Containerfile.dockerignore").read_text("utf-8")
    for name in re.findall(r"^!(.+)", kept, re.MULTILINE):
        assert (ROOT / name).exists()
    assert {f"!{name}" for name in ("archiver", project["readme"], "pyproject.toml", *project["license-files"])} <= set(
        kept.splitlines()
    )


@contextmanager
def machine(folder: Path, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """Run the script; *folder* holds the program archiver."""
    with subprocess.Popen(
        [SCRIPT],
        env={**environment(), **variables, "PATH": f"{folder}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@with_flock
@pytest.mark.postgres
def test_machines_in_one_folder_crawl_together(tmp_path: Path, postgres_server: PostgresServer | None) -> None:
    """One begins, one joins, both stop at a signal, and both go on in their folders when they are started again."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres_server.new_database()
    given = {"FRONTIER": address, "FOLDER": str(tmp_path / "data")}
    (tmp_path / "archiver").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (tmp_path / "archiver").chmod(0o755)
    with several_hosts(hosts=6, pages=120, after=40) as hosts:
        (tmp_path / "seeds.txt").write_text("\n".join(hosts.seeds))
        begin = f"--seeds {tmp_path}/seeds.txt --rate 6 --probe off --min-free-disk 0"
        with machine(tmp_path, **given, BEGIN=begin) as first:
            assert hosts.reached.wait(PATIENCE)
            with machine(tmp_path, **given) as second:
                wait_for(address, "SELECT 1 FROM warcs WHERE machine = 'machine-2'")
                first.send_signal(signal.SIGTERM)  # as containers do
                second.send_signal(signal.SIGINT)  # as the unit does
                assert [ended(each)[0] for each in (first, second)] == [0, 0]
        assert hosts.asked().total() < len(hosts.pages)
        with machine(tmp_path, **given) as first, machine(tmp_path, **given) as second:
            assert [ended(each)[0] for each in (first, second)] == [0, 0]
        assert set(hosts.asked().values()) == {1}
        assert hosts.asked().keys() >= hosts.pages
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"1", "1.lock", "2", "2.lock"}
    for slot in "12":
        assert list((tmp_path / "data" / slot / "crawl" / "archive").glob("*.warc.gz"))
