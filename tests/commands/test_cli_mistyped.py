"""Command lines that are almost right are answered with what would be, and never with a password."""

import subprocess
from itertools import cycle
from pathlib import Path

import pytest

from archiver.cli import entry
from archiver.cli.terminal import without_secrets
from archiver.config.option_types import RATE, SECONDS, SECONDS_OR_NONE
from archiver.errors import ConfigError
from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.command_definitions import COMMANDS

CRAWL = [name for param in COMMANDS["crawl"].params for name in param.opts]


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("--level", "--max-depth"),  # wget
        ("-l", "--max-depth"),
        ("--wait", "--rate"),
        ("--limit-rate", "--bandwidth"),
        ("--quota", "--max-bytes"),
        ("--no-parent", "--scope"),
        ("--reject-regex", "--exclude"),
        ("--input-file", "--seeds"),
        ("--directory-prefix", "--output"),
        ("--tries", "--retries"),
        ("--execute", "--robots"),
        ("--max-rate", "--bandwidth"),  # httrack
        ("--sockets", "--concurrency"),
        ("--pageLimit", "--max-urls"),  # browsertrix
        ("--sizeLimit", "--max-bytes"),
        ("--timeLimit", "--max-time"),
        ("--workers", "--concurrency"),
        ("--seedFile", "--seeds"),
        ("--scopeType", "--scope"),
        ("--userAgent", "--user-agent"),
        ("--diskUtilization", "--min-free-disk"),
        ("--collection", "--output"),
        ("--max-time-seconds", "--max-time"),  # Heritrix
        ("--max-document-download", "--max-urls"),
        ("--operator-contact-url", "--contact"),
        ("--igsets", "--without"),  # grab-site
        ("--max-content-length", "--max-response-size"),
        ("--delay", "--rate"),
        ("--maxdepth", "--max-depth"),  # slips
        ("--max_depth", "--max-depth"),
        ("--robot", "--robots"),
        ("--max-url", "--max-urls"),
        ("--excludes", "--exclude"),
    ],
)
def test_options_of_others(typed: str, ours: str) -> None:
    told = entry.unknown_option(typed, CRAWL)
    assert told.startswith(f"there is no option {typed}; ")
    assert told.rstrip("?").endswith(f" {ours}")


def test_each_name_of_others_leads_to_an_option() -> None:
    known = {name for command in COMMANDS.values() for param in command.params for name in param.opts}
    known.add("--extra-hops")  # which not every version has; the next of its names stands behind it
    for meant in entry.OTHER_OPTIONS.values():
        assert isinstance(meant, str) or {f"--{ours}" for ours in meant} <= known


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["https://example.org/"], "archiver crawl https://example.org/"),
        (["example.org/a b"], "archiver --help"),
        (["example.org"], "archiver crawl http://example.org/"),
        (["localhost:8000/x"], "archiver crawl http://localhost:8000/x"),
        (["https://example.org/?a=1&b=2"], "archiver crawl 'https://example.org/?a=1&b=2'"),
        (["crawll", "https://example.org/"], "did you mean crawl?"),
        (["serve", "x"], "did you mean replay?"),
        (["continue", "x"], "did you mean resume?"),
        (["xyzzy"], "archiver --help lists the commands"),
        (["crawl", "--level", "3", "https://example.org/"], "use --max-depth"),
        (["crawl", "-r", "https://example.org/"], "not needed: every crawl does that"),
        (["crawl", "--xyzzy", "https://example.org/"], "there is no option --xyzzy"),
    ],
)
def test_what_was_meant(typed: list[str], told: str, tmp_path: Path) -> None:
    ran = archiver(*typed, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (ExitCode.USAGE, "", 1)
    assert told in ran.stderr


SECRET = "pa55:wo@rd"
URLS = [f"http://me:{SECRET}@example.org/", f"https://{SECRET}@example.org/x", f"me:{SECRET}@example.org"]


PLACES = (
    "{}", "crawl {}", "crawl --level {}", "crawl --scope {}", "crawl --contact", "crawl x --rate {}",
    "crawl --seeds {}", "status {}", "replay {}", "resume {}", "get . {}", "ls {}", "ls . {}", "explain . {}",
    "urls . --host {}", "add . {}", "retry . {}", "verify {}", "import {}",
)  # fmt: skip


@pytest.mark.parametrize(("place", "address"), list(zip(PLACES, cycle(URLS), strict=False)))
def test_passwords_are_not_told(place: str, address: str, tmp_path: Path) -> None:
    """In whatever place of a command line they stand."""
    ran = archiver(*place.format(address).split(), cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert_not_told(ran)
    assert list(tmp_path.iterdir()) == []


def assert_not_told(ran: "subprocess.CompletedProcess[str]") -> None:
    assert ran.stderr.count("\n") == 1
    assert "pa55" not in ran.stdout + ran.stderr
    assert "wo@rd" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("text", [*URLS, f"{URLS[0]} max-depth=1", f"# list\n\n{URLS[0]}\n"])
def test_passwords_in_files_are_not_told(text: str, tmp_path: Path) -> None:
    """Neither those in a list of seeds nor those in settings; and the line says what to use in their place."""
    (tmp_path / "list").write_text(text)
    (tmp_path / "settings.toml").write_text(f"seeds = [{text.splitlines()[-1]!r}]\n")
    for option in (("--seeds", "list"), ("--config", "settings.toml")):
        ran = archiver("crawl", *option, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert_not_told(ran)
        assert "credentials in URLs are not supported" in ran.stderr
        assert "--header 'Authorization: Basic …'" in ran.stderr
    assert not (tmp_path / "collections").exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a:b@h/ and https://c@d/", "http://…@h/ and https://…@d/"),
        ("http://h/@user and http://h/?a@b", "http://h/@user and http://h/?a@b"),
        ("write to a@b.example, 10:30", "write to a@b.example, 10:30"),
        ("'http://a:b@c@h'", "'http://…@h'"),
        ("postgresql://me@h/x postgres://me@h/x", "postgresql://me@h/x postgres://me@h/x"),
        ("postgresql://me:b@h/x postgresql://a@b@h/x", "postgresql://…@h/x postgresql://…@h/x"),
    ],
)
def test_what_counts_as_a_password(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("90s", 90), ("15m", 900), ("1h", 3600), ("2d", 172_800), ("1w", 604_800), ("1.5h", 5400),
        ("1h30m", 5400), ("1h 30m", 5400), ("500ms", 0.5), ("0.5", 0.5), (" 2H ", 7200), ("1e3", 1000),
    ],
)  # fmt: skip
def test_times(text: str, seconds: float) -> None:
    """As text, and read again from what is written of them, as older versions read it too."""
    value = SECONDS.parse(text)
    assert value == seconds
    assert isinstance(SECONDS.write(value), int | float)
    assert SECONDS_OR_NONE.parse(text) == SECONDS.parse(SECONDS.write(value)) == seconds
    assert RATE.parse(f"3/{text}").interval == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "1x", "-1h", "1h-", "0h", "1 h", "h1", "1hm", "inf", "9" * 400 + "h", "1h" * 9999 + "x"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a number of seconds above 0"):
        SECONDS.parse(text)
