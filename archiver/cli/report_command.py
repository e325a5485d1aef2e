"""The command that tells what became of a crawl."""

from pathlib import Path

import click

from archiver.cli.command import command, directory


def _report(directory: Path, form: str, output: Path | None) -> int:
    from archiver.cli.reporting import report  # noqa: PLC0415 - see `command`

    return report(directory, form, output)


_REPORT = command(
    "report",
    _report,
    """Tell what became of a crawl: at any time, also while it runs.

    What was asked for, how it ended, and tables of seeds, hosts, response codes, media types, failures, what archived
    pages lack, truncated captures, slow hosts, and what was held back. The HTML page has plots too; it is one file and
    needs no network. When a run ends, the same is written to DIR/reports. Reads only.
    """,
    [
        directory(),
        click.Option(["--text", "form"], flag_value="text", default=True, help="As text, the default."),
        click.Option(["--json", "form"], flag_value="json", help="As JSON."),
        click.Option(["--html", "form"], flag_value="html", help="As one HTML page."),
        click.Option(
            ["-o", "--output"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write to a file instead of stdout.",
        ),
    ],
    ("archiver report collections/example.org", "in words"),
    ("archiver report collections/example.org --html -o report.html", "a page with plots, for a browser"),
    ("archiver report collections/example.org --json | jq '.tables.failures.rows'", "for a program"),
)

COMMANDS = (_REPORT,)
