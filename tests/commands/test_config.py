"""`archiver config`, and crawls with settings of profiles, of the user's own defaults and of environment variables."""

import json
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.forks import Forks
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

OWN = 'contact = "me@example.org"\nmax-depth = 7\nrate = 0\nheader = ["X-Token: secret-of-mine"]\n'


@pytest.fixture(name="own")
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of the user's own settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "xdg" / "archiver"
    (folder / "profiles").mkdir(parents=True)
    (folder / "config.toml").write_text(OWN)
    return folder


def origins(folder: Path, *words: str) -> dict[str, tuple[object, str]]:
    """Return value and origin of each setting that is shown, by key."""
    ran = archiver("config", *words, "--json", cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    lines = map(json.loads, ran.stdout.splitlines())
    return {line["key"]: (line["value"], line["origin"]) for line in lines}


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
        ({}, {}, ("nowhere",), "nowhere/crawl.toml: cannot be read"),
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
