"""Settings of a recording come from the same sources as those of a crawl, as far as they have an effect."""

from pathlib import Path

import pytest

from archiver.cli.record.settings import FIXED, OPTIONS, applicable
from archiver.config.host_rules import host_rule
from archiver.config.profiles import Source
from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.command import archiver
from fixtures.own_settings import origins, own_folder
from fixtures.rawserver import RawServer
from fixtures.recording import recording
from fixtures.sites import ok, page

OWN = """contact = "me@example.org"
rate = 0
timeout = 11
warc-prefix = "mine"
header = ["X-Token: secret-of-mine"]
scope = "domain"

[[host]]
match = "*.example.org"
rate = 1
timeout = 7

[[host]]
match = "*.example.net"
rate = 1
"""


@pytest.fixture(name="own")
def the_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of the user's own settings."""
    return own_folder(tmp_path, OWN, monkeypatch)


def test_each_value_is_that_of_the_last_source(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own / "profiles" / "ours.toml").write_text('dns-timeout = 3\nconnect-timeout = 4\nscope = "prefix"\n')
    (tmp_path / "more.toml").write_text('connect-timeout = 5\nfirst-byte-timeout = 6\noperator = "Library"\n')
    monkeypatch.setenv("ARCHIVER_FIRST_BYTE_TIMEOUT", "8")
    monkeypatch.setenv("ARCHIVER_WARC_SIZE", "2MB")
    monkeypatch.setenv("ARCHIVER_RATE", "1")
    monkeypatch.setenv("ARCHIVER_DIGETS", "sha1")
    words = ("--profile", "ours", "--config", "more.toml", "--warc-size", "3MB")
    with RawServer({"/": ok(page("Home"))}) as server, recording(tmp_path / "c", *words) as proxy:
        assert proxy.get(server.url("/")).startswith(b"HTTP/1.1 200 ")
        said = proxy.end()
        [row] = server.log
        assert b"secret-of-mine" not in row.request
        assert b"me@example.org" not in row.request
    assert "ARCHIVER_DIGETS is not a setting and is ignored; did you mean ARCHIVER_DIGEST?" in said
    assert "settings of environment variables: ARCHIVER_FIRST_BYTE_TIMEOUT, ARCHIVER_WARC_SIZE\n" in said
    assert "no effect on a recording, because clients decide: scope\n" in said  # the user's own defaults are silent
    own_file = str(own / "config.toml")
    assert origins(tmp_path, "c") == {
        "contact": ("me@example.org", own_file),
        "timeout": (11, own_file),
        "warc-prefix": ("mine", own_file),
        "host": ([{"match": "*.example.org", "timeout": 7}], own_file),
        "dns-timeout": (3, "--profile ours"),
        "connect-timeout": (5, "--config more.toml"),
        "operator": ("Library", "--config more.toml"),
        "first-byte-timeout": (8, "ARCHIVER_FIRST_BYTE_TIMEOUT"),
        "warc-size": (3_000_000, "--warc-size"),
        "min-free-disk": (0, "--min-free-disk"),
        "allow-private": (["127.0.0.0/8"], "--allow-private"),
        **{key: (value, "archiver record") for key, value in FIXED.items()},
    }
    [first] = [path for path in warcs(tmp_path / "c") if "meta" not in path.name]
    assert first.name.startswith("mine-")


def test_one_that_goes_on_has_its_own_settings(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path / "c", "--timeout", "9") as proxy:
        proxy.end()
    (own / "config.toml").write_text("dns-timeout = 9\n")
    monkeypatch.setenv("ARCHIVER_PROFILE", "intranet")
    monkeypatch.setenv("ARCHIVER_TIMEOUT", "12")
    with recording(tmp_path / "c", "--digest", "sha1", private=False) as proxy:
        proxy.end()
    found = origins(tmp_path, "c")
    assert found["timeout"] == (12, "ARCHIVER_TIMEOUT")
    assert found["digest"] == ("sha1", "--digest")
    assert found["contact"] == ("me@example.org", str(own / "config.toml"))
    assert found["allow-private"] == (["127.0.0.0/8"], "--allow-private")
    assert "dns-timeout" not in found
    for words in (("--profile", "gentle"), ("--config", "x.toml")):
        ran = archiver("record", "-o", "c", "--port", "0", *words, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert ran.stderr.splitlines()[-1] == (
            f"archiver: {words[0]} is for a new recording, and c holds one already; give settings as options"
        )


@pytest.mark.parametrize(
    ("files", "variables", "words", "says"),
    [
        ({"config.toml": "timeout = never"}, {}, (), "config.toml:1: not TOML"),
        ({"config.toml": 'proxy = ["ftp://x"]'}, {}, (), "config.toml:1: proxy: "),
        ({}, {"ARCHIVER_TIMEOUT": "soon"}, (), "ARCHIVER_TIMEOUT: "),
        ({}, {"ARCHIVER_PROFILE": "fast"}, (), "--profile 'fast': no such profile"),
        ({}, {}, ("--config", "none.toml"), "none.toml: cannot be read"),
        ({}, {}, ("--rate", "1"), "--rate"),
    ],
)
def test_what_is_wrong_is_named(
    own: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    variables: dict[str, str],
    words: tuple[str, ...],
    says: str,
) -> None:
    (own / "config.toml").unlink()
    for name, text in files.items():
        (own / name).write_text(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = archiver("record", "-o", "c", "--port", "0", *words, cwd=own)
    assert ran.returncode == ExitCode.USAGE
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (own / "c").exists()


def test_what_has_no_effect_is_left_out() -> None:
    rules = (host_rule("*.org", [("rate", "1"), ("proxy", "none")]), host_rule("*.net", [("rate", "1")]))
    values = {"host": rules, "rate": "1", "timeout": 3.0, "seeds": ("http://x.test/",), "robots": "obey"}
    kept, without = applicable(Source.of(values, "a file"))
    assert kept == Source.of({"host": (host_rule("*.org", [("proxy", "none")]),), "timeout": 3.0}, "a file")
    assert without == ("host: rate", "rate", "seeds")
    assert FIXED.keys().isdisjoint(OPTIONS)
