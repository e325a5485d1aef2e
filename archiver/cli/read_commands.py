"""The commands that bring out what a collection holds: a list of it, one capture, a folder of files."""

from pathlib import Path
from typing import Any

import click

from archiver.cli.options import EACH_LINE, command, directory, host_option, json_option, output
from archiver.errors import ConfigError


def _get(directory: Path, *, url: str, at: str | None, part: Any, output: Path | None) -> int:
    from archiver.cli.get import GetQuery, get  # noqa: PLC0415 - see `command`

    return get(directory, GetQuery(url, at, part or "payload", output))


def _ls(directory: Path, *, url: str | None, json: bool, **chosen: Any) -> int:
    from archiver.cli.ls import LsQuery, ls  # noqa: PLC0415 - see `command`

    names = {"from_": chosen.pop("from"), "to": chosen.pop("to")}
    return ls(directory, LsQuery(url, as_json=json, **names, **chosen))


def _export(directory: Path, *, to: Path, at: str | None, host: tuple[str, ...], missing: Any) -> int:
    from archiver.cli.export import ExportOptions, export  # noqa: PLC0415 - see `command`

    return export(directory, ExportOptions(to, at, host, missing))


def _hosts(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for host in given:
        if not host.strip() or "/" in host:
            raise ConfigError(f"--host {host!r} is none; right would be example.org, or example.org:8443")
    return given


_HOSTS = host_option(check=_hosts)
_GET = command(
    "get",
    _get,
    """Print a capture: what the server sent for a URL.

    Its payload without chunks and compression, as a browser would have it; of several captures the newest, or the one
    closest to --at. Where the URL itself is not held, but with http for https or with www, that is printed. Reads
    only, also while the crawl runs, in any pywb collection, and in a WACZ or WARC file given for DIR.
    """,
    [
        directory(),
        click.Argument(["url"], metavar="URL"),
        click.Option(
            ["--at"],
            metavar="DATE",
            help="The capture closest to DATE, in UTC: 2026, 20261121103000, 2026-11-21, 2026-11-21T10:30Z.",
        ),
        click.Option(["--raw", "part"], flag_value="raw", help="The answer exactly as it is stored: head and body."),
        click.Option(["--headers", "part"], flag_value="headers", help="Only status line and fields."),
        click.Option(["--record", "part"], flag_value="record", help="The whole WARC record, not compressed."),
        output("FILE", "Into FILE, which appears whole or not at all. Default: stdout."),
    ],
    ("archiver get collections/example.org https://example.org/ -o page.html", "the newest capture of a page"),
    ("archiver get collections/example.org example.org/a.pdf --at 2026-11 -o a.pdf", "as it was in that month"),
    ("archiver get collections/example.org https://example.org/ --headers", "what the server said of it"),
)
_LS = command(
    "ls",
    _ls,
    """List captures, one on each line: date, status, type, size, URL.

    All, or those of one URL, of all URLs that begin with PREFIX, or of DOMAIN and all hosts below it, by key and date.
    The size is that of the record in its WARC file; a revisit has the type warc/revisit. How many they are is said at
    the end, on stderr. Reads only, also while the crawl runs, in any pywb collection, and in a WACZ or WARC file given
    for DIR.
    """,
    [
        directory(),
        click.Argument(["url"], required=False, metavar="[URL|PREFIX*|*.DOMAIN]"),
        _HOSTS,
        click.Option(
            ["--type", "types"],
            multiple=True,
            metavar="TYPE",
            help="Only those of this media type: text/html, image/*. A revisit has that of what it revisits. May be "
            "given more than once.",
        ),
        click.Option(
            ["--status", "statuses"],
            multiple=True,
            metavar="N",
            help="Only those with this status: 404, or 2xx for a class. May be given more than once.",
        ),
        click.Option(["--from"], metavar="DATE", help="Not before DATE: 2026, 20261121, 2026-11-21T10:30."),
        click.Option(["--to"], metavar="DATE", help="Not after DATE; a day, a month or a year counts whole."),
        json_option(EACH_LINE),
    ],
    ("archiver ls collections/example.org", "everything"),
    ("archiver ls collections/example.org 'https://example.org/blog/*' --type text/html", "the pages of one part"),
    ("archiver ls collections/example.org https://example.org/", "when it was captured"),
    ("archiver ls collections/example.org --json | jq -r .url", "for a program"),
    ("archiver ls example.wacz", "a package that somebody sent"),
)
_EXPORT = command(
    "export",
    _export,
    """Write the archive as files that a browser opens from the disk, with links that lead from one to the other.

    Of each URL the newest capture that has a page (or the one closest to --at); FOLDER/index.html leads to them. Links
    to what is not held lead to the live web; pictures and styles that are not held stay away. Scripts are left as they
    are: what they load, they may not find. Nothing is written outside FOLDER, and nothing in it is replaced. A WACZ or
    WARC file may be given for DIR.
    """,
    [
        directory(),
        click.Option(
            ["--to"],
            required=True,
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="Where to; a new folder, or an empty one.",
        ),
        click.Option(["--at"], metavar="DATE", help="The captures closest to DATE: 2026, 20261121, 2026-11-21T10:30."),
        _HOSTS,
        click.Option(
            ["--missing"],
            type=click.Choice(["links", "live", "nothing"]),
            default="links",
            help="Of what is not held, links lead to the live web, and nothing is loaded from there; or all of it is "
            "had from the live web; or nothing. [default: links]",
        ),
    ],
    ("archiver export collections/example.org --to site", "then open site/index.html"),
    ("archiver export collections/example.org --to offline --at 2026-01 --missing nothing", "as it was, offline"),
)

COMMANDS = (_LS, _GET, _EXPORT)
