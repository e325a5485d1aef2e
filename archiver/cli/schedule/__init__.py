"""`archiver schedule`: crawl a collection again and again, by systemd, cron or launchd."""

import plistlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import click

from archiver.cli.options import define_command, directory_argument
from archiver.cli.terminal import result, say
from archiver.errors import ConfigError
from archiver.model import ExitCode
from archiver.storage import config_home

SYSTEMD, CRON, LAUNCHD = KINDS = ("systemd", "cron", "launchd")
CRON_TIMES = {"daily": "17 3 * * *", "weekly": "17 3 * * 1", "monthly": "17 3 1 * *"}
LAUNCHD_TIMES = {
    "daily": {"Hour": 3, "Minute": 17},
    "weekly": {"Weekday": 1, "Hour": 3, "Minute": 17},
    "monthly": {"Day": 1, "Hour": 3, "Minute": 17},
}
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")

SERVICE = """\
[Unit]
Description=Crawl {description} again
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
ExecStart={command}
# 4: it was stopped; 5: a limit was reached. The next crawl is a new one.
SuccessExitStatus=4 5
# Requests in flight finish first; see drain-timeout.
KillSignal=SIGTERM
TimeoutStopSec=5min
Nice=10
"""
TIMER = """\
[Unit]
Description=Crawl {description} again, {often}

[Timer]
OnCalendar={often}
RandomizedDelaySec=1h
Persistent=true

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True, slots=True)
class ScheduleFiles:
    """What makes a machine crawl again: files, and the commands that put them in force and take them back."""

    files: dict[Path, str]
    start: str
    end: str


def schedule(directory: Path, often: str, *, kind: str | None, write: bool) -> ExitCode:
    """Print what crawls the collection in *directory* again, *often*; with *write*, write its files too."""
    from archiver.cli.directory import check_is_directory, check_resumable

    check_is_directory(directory)
    check_resumable(directory)
    where = directory.absolute()
    _check_name(where)
    command = [*_program(), "recrawl", str(where), "--quiet"]
    kind = kind or _usual_kind()
    found = {SYSTEMD: _systemd, CRON: _cron, LAUNCHD: _launchd}[kind](where, command, often)
    if write and not found.files:
        raise ConfigError(f"--write: {kind} has no file of its own; add the line that is printed without --write")
    for path, text in found.files.items():
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            say(f"archiver: written: {path}")
        else:
            result(f"# {path}\n{text}")
    if not write and found.files:
        say("archiver: nothing is written; add --write")
    result(f"{found.start}   # to begin")
    result(f"{found.end}   # to end")
    return ExitCode.DONE


def _usual_kind() -> str:
    if sys.platform == "darwin":
        return LAUNCHD
    return SYSTEMD if shutil.which("systemctl") else CRON


def _program() -> list[str]:
    """Return the command with an absolute path, for a timer has another PATH."""
    found = shutil.which("archiver")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "archiver"]


def _check_name(where: Path) -> None:
    """Refuse a directory whose name would be more than a word in the files of others."""
    if not str(where).isprintable() or any(letter in str(where) for letter in "%\\\n\"'$"):
        raise ConfigError(
            f"{str(where)!r}: a scheduled directory may not have any of % \\ \" ' $ or control characters"
        )


def _name(where: Path) -> str:
    return "archiver-" + "".join(letter if letter in SAFE else "_" for letter in where.name)


def _systemd(where: Path, command: list[str], often: str) -> ScheduleFiles:
    """systemd.service(5), systemd.timer(5): units of the user."""
    folder, name = config_home() / "systemd" / "user", _name(where)
    line = " ".join(f'"{word}"' if " " in word else word for word in command)
    files = {
        folder / f"{name}.service": SERVICE.format(description=where.name, command=line),
        folder / f"{name}.timer": TIMER.format(description=where.name, often=often),
    }
    manage = "systemctl --user"
    return ScheduleFiles(
        files,
        f"{manage} daemon-reload && {manage} enable --now {name}.timer && loginctl enable-linger",
        f"{manage} disable --now {name}.timer",
    )


def _cron(where: Path, command: list[str], often: str) -> ScheduleFiles:
    line = f"{CRON_TIMES[often]} {' '.join(map(quote, command))}"
    start = f"(crontab -l 2>/dev/null; echo {quote(line)}) | crontab -"
    return ScheduleFiles({}, start, f"crontab -l | grep -vF {quote(str(where))} | crontab -")


def _launchd(where: Path, command: list[str], often: str) -> ScheduleFiles:
    """launchd.plist(5): an agent of the user."""
    label = f"org.archiver.{_name(where)}"
    path = Path.home() / "Library" / "LaunchAgents" / f"{label}.plist"
    text = plistlib.dumps({"Label": label, "ProgramArguments": command, "StartCalendarInterval": LAUNCHD_TIMES[often]})
    return ScheduleFiles(
        {path: text.decode()}, f"launchctl load -w {quote(str(path))}", f"launchctl unload -w {quote(str(path))}"
    )


COMMAND = define_command(
    "schedule",
    schedule,
    """Crawl a collection again every day, week or month.

    Prints the systemd units, the cron line or the launchd agent that runs archiver recrawl, and the commands that
    enable it. Writes nothing without --write, and starts nothing.
    """,
    [
        directory_argument(),
        click.Argument(["often"], metavar="daily|weekly|monthly", type=click.Choice(list(CRON_TIMES))),
        click.Option(
            ["--with", "kind"], type=click.Choice(KINDS), help="Use this one. Default: the one that this machine has."
        ),
        click.Option(["--write"], is_flag=True, help="Write the files for this user."),
    ],
    ("archiver schedule collections/example.org weekly", "see the timer that crawls it every Monday"),
    ("archiver schedule collections/example.org daily --with systemd --write", "write a systemd timer"),
    ("archiver schedule collections/example.org monthly --with cron", "see the cron line"),
)
