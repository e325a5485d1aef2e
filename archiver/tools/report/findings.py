"""Findings: what a report tells a person, each with the command to run next, as text and as JSON."""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Any

LABEL = 10  # columns before the message
NARROWEST = 40  # columns for the message
WIDTH = 100  # columns if unknown: files and pipes

BOLD, RED, CYAN, DIM = "1", "1;31", "36", "2"  # ANSI codes


@dataclass(frozen=True, slots=True)
class Finding:
    """One message for the user, and the command to run next."""

    topic: str
    message: str
    command: str = ""  # DIR is a placeholder for the directory
    meaning: str = ""  # what the command does
    trouble: bool = False  # `--strict` exits with code 8


@dataclass(frozen=True, slots=True)
class FindingStyle:
    """The presentation of findings: the text for DIR in commands, the width, and the topics left out."""

    directory: str = "DIR"  # or the address of the frontier
    width: int = WIDTH
    without: tuple[str, ...] = ()
    colours: bool = False
    is_address: bool = False  # the directory is the address of a frontier
    host: str = ""  # for a report of one host: commands that can are about its URLs alone
    past: bool = False  # another crawl has followed, so no command changes this one


PLAIN = FindingStyle()


def lines(findings: Iterable[Finding], style: FindingStyle = PLAIN) -> Iterator[str]:
    """Yield *findings* as text; each command is on one line, so that you can copy it."""
    before = ""
    for finding in findings:
        if finding.topic in style.without:
            continue
        topic = "verdict" if finding.topic in {"pages", "requisites"} else finding.topic
        label = "" if topic == before else topic
        before = topic
        for words in textwrap.wrap(
            finding.message, max(style.width - LABEL, NARROWEST), break_long_words=False, break_on_hyphens=False
        ):
            yield f"{_colour(f'{label:<{LABEL - 1}}', RED if finding.trouble else BOLD, style)} {words}"
            label = ""
        if filled(finding.command, style):
            yield command(finding.command, finding.meaning, style)


def command(text: str, meaning: str, style: FindingStyle, label: str = "") -> str:
    """Format the command *text*, with its meaning if there is room."""
    whole = filled(text, style)
    note = f"   # {meaning}" if meaning and LABEL + len(f"{whole}   # {meaning}") <= style.width else ""
    shown_label = _colour(f"{label:<{LABEL - 1}}", BOLD, style)
    return f"{shown_label} {_colour(whole, CYAN, style)}{_colour(note, DIM, style)}"


def filled(text: str, style: FindingStyle) -> str:
    """Return the command *text* with the crawl of *style* in it, as it can be run; "" if that crawl is over."""
    return " && ".join(_about(one, style) for one in text.split(" && ")) if text and not style.past else ""


TAKE_ADDRESS = frozenset(("add", "exclude", "explain", "report", "retry", "status", "unblock", "urls"))  # commands
TAKE_HOST = frozenset(("retry", "urls"))  # commands


def _about(text: str, style: FindingStyle) -> str:
    """Return one command *text* with the directory in place of DIR, or with the address if it takes one.

    Settings of the whole crawl can be changed in a directory only.
    """
    words = text.split(" ")
    if style.is_address:
        if text == "archiver resume DIR":
            words[1] = "join"
        elif words[1] not in TAKE_ADDRESS:
            return text
    if style.host and words[1] in TAKE_HOST and "--held" not in words and not any("://" in word for word in words):
        words += ["--host", quote(style.host)]
    return " ".join(style.directory if word == "DIR" else word for word in words)


def _colour(text: str, colour: str, style: FindingStyle) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if style.colours and text.strip() else text


def finding_json(finding: Finding, style: FindingStyle) -> dict[str, Any]:
    """Return *finding* as JSON data."""
    return {
        "topic": finding.topic,
        "message": finding.message,
        "command": filled(finding.command, style),
        "trouble": finding.trouble,
    }
