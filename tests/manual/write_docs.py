"""Writes the generated pages of the manual anew: `python tests/manual/write_docs.py`.

`docs/settings.md`, `docs/exit-codes.md` and `docs/commands.md` are made from the program itself; test_docs.py
compares them with what this module would write.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import click  # noqa: E402

from archiver.cli.entry import archiver  # noqa: E402
from archiver.cli.options import HELP_WIDTH  # noqa: E402
from archiver.config.settings import TITLES, Settings, every_setting, key_of  # noqa: E402
from archiver.config.toml import toml_value  # noqa: E402
from archiver.config.values import BOOLEAN  # noqa: E402
from archiver.model import ExitCode  # noqa: E402

DOCS = ROOT / "docs"


def settings_page() -> str:
    """Each setting: key, option, what its value may be, default, help."""
    lines = [
        "# Settings",
        "",
        "Every setting is an option of `archiver crawl` and `archiver resume`, and a key of `crawl.toml`. A later one",
        "of these goes before an earlier one:",
        "",
        "1. the default;",
        "2. for `crawl`, the file that `--config FILE` names; for `resume`, `DIR/crawl.toml`;",
        "3. an option.",
        "",
        "What is then in force is written to `DIR/crawl.toml`, each setting below its help. That file can be edited",
        "between two runs, or given to another crawl by `--config`. An unknown key or a bad value is refused with its",
        "line.",
        "",
        '`seeds` is a key too: a list of URLs, `seeds = ["https://example.org/"]`. Seeds given to `archiver crawl` as',
        "arguments or by `--seeds FILE` go before it.",
    ]
    chapter = ""
    for name, entry in every_setting():
        part = getattr(Settings(), name)
        if name != chapter:
            chapter = name
            lines += ["", f"## {TITLES[name]}", "", f"{type(part).__doc__}"]
        kind, key = entry.metadata["kind"], key_of(entry)
        option = f"--{key} / --no-{key}" if kind is BOOLEAN else f"--{key} {kind.metavar}"
        many = entry.metadata["many"]
        default = [] if many else kind.write(entry.default)
        lines += [
            "",
            f"### `{key}`",
            "",
            entry.metadata["help"],
            "",
            f"- option: `{option}`" + (", any number of times" if many else ""),
            f"- in crawl.toml: {'a list, of which each is ' if many else ''}{kind.right}",
            f"- default: `{key} = {toml_value(default)}`",
        ]
    return "\n".join(lines) + "\n"


def exit_codes() -> Iterator[tuple[ExitCode, str]]:
    """Each exit code with the comment that stands beside it in the code."""
    said = dict(re.findall(r"^    ([A-Z_]+) = \d+  # (.+)$", inspect.getsource(ExitCode), re.MULTILINE))
    for code in ExitCode:
        yield code, said[code.name]


def exit_codes_page() -> str:
    """The exit codes."""
    rows = [f"| {int(code)} | {code.name} | {meaning[0].upper()}{meaning[1:]}. |" for code, meaning in exit_codes()]
    return "\n".join(
        [
            "# Exit codes",
            "",
            "Every command ends with one of these. What went wrong is said in one line on stderr; only 1 comes with a",
            "traceback, which we would like to see.",
            "",
            "| code | name | meaning |",
            "|-----:|------|---------|",
            *rows,
            "",
            "A crawl that ended with 4 or 5 is whole as far as it went: it can be replayed, verified, and resumed.",
            "A script that must finish a crawl can call `archiver resume DIR` for as long as it ends with 4 or 5.",
            "After 3 its line says which path it was and, where the disk is full, how much is missing; what was",
            "committed is safe. When the disk has room again, or can be written again, `archiver resume DIR` goes on.",
            "",
            "**6** means that the archive holds nothing you asked for: every seed answered with an error (403,",
            "404, 500, or 429 and 503 until its retries were used up), showed a challenge page, or did not answer",
            "at all. Answers that came are archived all the same. Where only some seeds fail, the code is 0, and",
            "the verdict names them.",
            "",
            "**8** is for scripts that want to know about trouble. Give `--strict` to `crawl`, `resume` or",
            "`recrawl`; it is kept in crawl.toml. The code is then 8 instead of 0 if a seed failed, a page of the",
            "site answered 4xx or 5xx or not at all, a site refused us, or URLs are held as a suspected trap.",
            "Without `--strict` the code stays 0, and the [verdict](reports.md#the-verdict) says the same in",
            "words.",
            "",
        ]
    )


def commands_page() -> str:
    """Each command with its help."""
    lines = [
        "# Commands",
        "",
        "What `--help` says. Results go to stdout, everything else to stderr, so that every command can be piped; how",
        "a command ended stands in its [exit code](exit-codes.md). The settings are explained in",
        "[settings](settings.md), the directory in [directory](directory.md).",
        "",
        "## archiver",
        "",
        *_help(archiver, "archiver"),
    ]
    for name in archiver.list_commands(click.Context(archiver)):
        lines += ["", f"## archiver {name}", "", *_help(archiver.commands[name], f"archiver {name}")]
    return "\n".join(lines) + "\n"


def _help(command: click.Command, name: str) -> list[str]:
    context = click.Context(command, info_name=name, **{**command.context_settings, "terminal_width": HELP_WIDTH})
    return ["```text", *(line.rstrip() for line in command.get_help(context).splitlines()), "```"]


PAGES = {"settings.md": settings_page, "exit-codes.md": exit_codes_page, "commands.md": commands_page}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
