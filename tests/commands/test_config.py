"""`archiver config`, and crawls with settings of profiles, of the user's own defaults and of environment variables."""

import hashlib
import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import COMMAND, ROOT, archiver, environment
from fixtures.forks import Forks
from fixtures.own_settings import origins, own_folder
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

OWN = 'contact = "me@example.org"\nmax-depth = 7\nrate = 0\nheader = ["X-Token: secret-of-mine"]\n'


@pytest.fixture(name="own")
def the_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of the user's own settings."""
    return own_folder(tmp_path, OWN, monkeypatch)


def test_each_value_has_its_origin(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl has the value of the last source, and it can be told later, after changes too."""
    monkeypatch.setenv("ARCHIVER_RETRIES", "1")
    monkeypatch.setenv("ARCHIVER_MAX_DEPTH", "5")
    monkeypatch.setenv("ARCHIVER_HOST_CONCURENCY", "1")
    (tmp_path / "more.toml").write_text('scope = "domain"\nretries = 9\nprobe = "on"\n')
    words = ("--profile", "one-page", "--config", "more.toml", "--max-depth", "4", "-o", "c", "--min-free-disk", "0")
    with RawServer({"/": ok(page("Home", ("/a",))), "/a": ok(page("A"))}) as server:
        ran = archiver("crawl", server.url(), *words, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert all(b"X-Token: secret-of-mine" in row.request for row in server.log)
    assert "settings of environment variables: ARCHIVER_MAX_DEPTH, ARCHIVER_RETRIES" in ran.stderr
    assert (
        "ARCHIVER_HOST_CONCURENCY is not a setting and is ignored; did you mean ARCHIVER_HOST_CONCURRENCY?"
        in ran.stderr
    )
    found = origins(tmp_path, "c")
    own_file = str(own / "config.toml")
    assert found == {
        "scope": ("domain", "--config more.toml"),
        "probe": ("on", "--config more.toml"),
        "max-depth": (4, "--max-depth"),
        "rate": (0, own_file),
        "contact": ("me@example.org", own_file),
        "header": (["X-Token: [left out: a secret]"], own_file),
        "retries": (1, "ARCHIVER_RETRIES"),
        "min-free-disk": (0, "--min-free-disk"),
    }
    assert "secret-of-mine" not in (tmp_path / "c" / "crawl-origins.json").read_text()
    monkeypatch.delenv("ARCHIVER_MAX_DEPTH")
    assert archiver("set", "c", "rate=9", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("resume", "c", "--max-depth", "6", "-q", cwd=tmp_path).returncode == ExitCode.DONE
    found = origins(tmp_path, "c")
    assert found["rate"] == (9, "crawl.toml, edited or changed by an order")
    assert found["max-depth"] == (6, "--max-depth")
    assert found["scope"] == ("domain", "--config more.toml")


def test_defaults_of_the_user_are_not_those_of_a_crawl_that_goes_on(tmp_path: Path, own: Path) -> None:
    """Its crawl.toml has all settings; environment variables replace them, as options do."""
    with RawServer({"/": ok(page("Home"))}) as server:
        words = ("--max-depth", "3", "-q", "-o", "c", "--min-free-disk", "0")
        assert archiver("crawl", server.url(), *words, cwd=tmp_path).returncode == ExitCode.DONE
        (own / "config.toml").write_text("max-depth = 9\nretries = 9\n")
        assert archiver("recrawl", "c", "-q", cwd=tmp_path).returncode == ExitCode.DONE
    found = origins(tmp_path, "c")
    assert found["max-depth"] == (3, "--max-depth")
    assert found["contact"] == ("me@example.org", str(own / "config.toml"))
    assert "retries" not in found


def test_what_a_new_crawl_would_have(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own / "profiles" / "ours.toml").write_text("host-concurrency = 1\n")
    assert origins(tmp_path, "--profile", "ours")["host-concurrency"] == (1, "--profile ours")
    monkeypatch.setenv("ARCHIVER_PROFILE", "gentle")
    assert origins(tmp_path)["rate"] == ("1/2", "--profile gentle")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "crawl.toml").write_text('seeds = ["http://example.org/"]\nretries = 7\n')
    assert set(origins(tmp_path, "c")) == {"retries"}  # the variable is for new crawls
    everything = origins(tmp_path, "--all")
    assert everything["scope"] == ("host", "default")
    assert len(everything) > 90


@pytest.mark.parametrize(
    ("files", "variables", "words", "says"),
    [
        (
            {"config.toml": 'seeds = ["http://example.org/"]'},
            {},
            (),
            "config.toml: seeds: these are the defaults",
        ),
        ({"config.toml": "rate = x"}, {}, (), "config.toml:1: not TOML"),
        ({"config.toml": "rats = 1"}, {}, (), "config.toml:1: rats: unknown key; did you mean rate?"),
        ({"profiles/a.toml": "rate = true"}, {}, ("--profile", "a"), "profile a:1: rate: "),
        ({}, {"ARCHIVER_RATE": "often"}, (), "ARCHIVER_RATE: 'often' is not a number of requests"),
        ({}, {"ARCHIVER_PROFILE": "fast"}, (), "--profile 'fast': no such profile; there are broad"),
        ({}, {}, ("--profile", "a", "."), "--profile is for new crawls"),
        ({}, {}, ("nowhere",), "nowhere does not exist; name the directory of a crawl"),
    ],
)
def test_what_is_wrong_is_named(
    own: Path,
    forks: Forks,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    variables: dict[str, str],
    words: tuple[str, ...],
    says: str,
) -> None:
    for name, text in files.items():
        (own / name).write_text(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = archiver("config", *words, cwd=own)
    assert (ran.returncode, says in ran.stderr) == (ExitCode.USAGE, True), ran.stderr
    assert len(ran.stderr.splitlines()) == 1


HOOKS = """
try:
    from re import match as keep
except ImportError:
    keep = None

def judge(link, page):
    def settings(host): ...

def other(): ...
"""


def with_extractor(folder: Path, *words: str, **variables: str) -> str:
    """Return what the command *words* prints where a distribution with an extractor is installed."""
    info = folder / "site" / "archiver_book-1.2.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: archiver-book\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[archiver.extractors]\napplication/x-book = book:links\n")
    path = f"{ROOT}{os.pathsep}{folder / 'site'}"
    ran = subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env={**environment(), **variables, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return ran.stdout


def test_hooks_and_extractors_are_shown_with_their_origins_and_versions(tmp_path: Path, own: Path) -> None:
    (own / "config.toml").write_text("")
    path = tmp_path / "hooks.py"
    path.write_text(HOOKS)
    with RawServer({"/": ok(page("Home"))}) as server:
        words = ("-o", "c", "--hooks", "hooks.py", "--probe", "off", "--min-free-disk", "0")
        assert archiver("crawl", server.url(), *words, cwd=tmp_path).returncode == ExitCode.DONE
    lines = map(json.loads, with_extractor(tmp_path, "config", "c", "--json").splitlines())
    version = f"{path} sha256:{hashlib.sha256(HOOKS.encode()).hexdigest()[:12]}"
    assert [(line["key"], line["value"], line["origin"]) for line in lines if " " in line["key"]] == [
        ("hook judge", "line 7", version),
        ("hook keep", "line 5", version),
        ("extractor application/x-book", "book:links", "archiver-book 1.2"),
    ]
    text = with_extractor(tmp_path, "config", ARCHIVER_HOOKS=str(path))
    assert tomllib.loads(text) == {"hooks": "hooks.py"}
    assert f'# hook judge = "line 7"  # {version}\n' in text
    assert '# extractor application/x-book = "book:links"  # archiver-book 1.2\n' in text
    assert with_extractor(tmp_path, "config", ARCHIVER_PLUGINS="off") == 'plugins = "off"  # ARCHIVER_PLUGINS\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def judge(:\n", "it is no Python: "),
        ("(" * 100_000, "it is no Python: "),
        ("\0", "it is no Python: "),
        (None, "cannot be read: No such file"),
    ],
)
def test_hooks_that_cannot_be_read_do_not_hide_the_settings(
    tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, says: str
) -> None:
    del own
    path = tmp_path / "hooks.py"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("ARCHIVER_HOOKS", str(path))
    ran = archiver("config", cwd=tmp_path)
    assert (ran.returncode, "max-depth = 7" in ran.stdout) == (ExitCode.DONE, True), ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert f"the functions of hooks are not shown: --hooks {path}: {says}" in ran.stderr


def test_hooks_that_a_received_collection_names_are_not_read(tmp_path: Path, own: Path) -> None:
    del own
    (tmp_path / "c").mkdir()
    path = tmp_path / "hooks.py"
    path.write_text(HOOKS)
    (tmp_path / "c" / "crawl.toml").write_text(f'seeds = ["http://127.0.0.1/"]\nhooks = "{path}"\n')
    ran = archiver("config", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "you have not named" in ran.stderr
    assert "hook judge" not in ran.stdout
