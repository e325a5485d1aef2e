"""The commands that tell how a crawl stands and what became of it, and that look at the archive as a whole."""

from pathlib import Path
from typing import Any

import click

from archiver.cli.options import EACH_LINE, command, directory, host_option, json_option, last_status, output


def _status(directory: Path, *, json: bool) -> int:
    from archiver.cli.status import status  # noqa: PLC0415 - see `command`

    return status(directory, as_json=json)


def _report(directory: Path, form: str, output: Path | None) -> int:
    from archiver.cli.report import report  # noqa: PLC0415 - see `command`

    return report(directory, form, output)


def _explain(directory: Path, url: str, *, json: bool) -> int:
    from archiver.cli.explain import explain  # noqa: PLC0415 - see `command`

    return explain(directory, url, as_json=json)


def _urls(directory: Path, **chosen: Any) -> int:
    from archiver.cli.urls import UrlsQuery, urls  # noqa: PLC0415 - see `command`

    given = {"states": chosen.pop("state"), "statuses": chosen.pop("status"), "as_json": chosen.pop("json")}
    return urls(directory, UrlsQuery(**given, **chosen))


def _verify(paths: tuple[Path, ...], *, json: bool) -> int:
    from archiver.cli.verify import verify  # noqa: PLC0415 - see `command`

    return verify(paths, as_json=json)


def _replay(paths: tuple[Path, ...], port: int, *, open: bool) -> int:  # noqa: A002 - the name of the option
    from archiver.cli.replay import serve  # noqa: PLC0415 - see `command`

    return serve(paths, port, opened=open)


def _index(directory: Path) -> int:
    from archiver.cli.verify import index  # noqa: PLC0415 - see `command`

    return index(directory)


_STATUS = command(
    "status",
    _status,
    """Show how a crawl stands, also while it runs.

    Counts, the rate, what became of the seeds, and what each host waits for.
    """,
    [directory(), json_option()],
    ("archiver status collections/example.org", "for a person"),
    ("archiver status collections/example.org --json | jq .totals.waiting", "for a program"),
)
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
        output("FILE", "Write to a file instead of stdout."),
    ],
    ("archiver report collections/example.org", "in words"),
    ("archiver report collections/example.org --html -o report.html", "a page with plots, for a browser"),
    ("archiver report collections/example.org --json | jq '.tables.failures.rows'", "for a program"),
)
_EXPLAIN = command(
    "explain",
    _explain,
    """Tell what became of a URL and why: for any URL, also one that the crawl never saw.

    Its state, the rule that took or refused it as crawl.toml has it, its path from the seed, its tries and answers,
    where its captures lie, when it is due, and what its host waits for. A URL that is not known is judged as a link on
    the page of a seed would be. Reads only, also while the crawl runs.
    """,
    [
        directory(),
        click.Argument(["url"], metavar="URL"),
        json_option(),
    ],
    ("archiver explain collections/example.org https://example.org/a", "why is it there, or why not?"),
    ("archiver explain collections/example.org https://example.org/a --json | jq .rule", "for a program"),
)
_URLS = command(
    "urls",
    _urls,
    """List the URLs of a crawl, one on each line, also while it runs.

    In the order in which they were found; those of one host by name. Refused ones are links that the scope did not
    take, of which a sample is kept: a thousand for each rule and host.
    """,
    [
        directory(),
        click.Option(
            ["--state"],
            multiple=True,
            type=click.Choice(["waiting", "archived", "failed", "excluded", "held", "refused"]),
            help="Only those in this state. May be given more than once. Default: all but the refused.",
        ),
        last_status(),
        click.Option(
            ["--missing"],
            is_flag=True,
            help="Only images, styles and scripts that archived pages need and that could not be had.",
        ),
        click.Option(["--blocked"], is_flag=True, help="Only those whose last answer is a challenge or block page."),
        host_option(several=False),
        click.Option(["--why"], is_flag=True, help="With the state and its reason, after a tab."),
        json_option(EACH_LINE),
        click.Option(["--limit"], type=click.IntRange(0), metavar="N", help="At most N."),
    ],
    ("archiver urls collections/example.org --state failed --why", "what could not be had, and why"),
    ("archiver urls collections/example.org --status 4xx,5xx --why", "what answered with an error"),
    ("archiver urls collections/example.org --state waiting --host example.org | head", "what comes next"),
    ("archiver urls collections/example.org --json | jq -r 'select(.depth == 1) | .url'", "for a program"),
)
_VERIFY = command(
    "verify",
    _verify,
    """Read everything back and name every fault.

    Structure and digests of each WARC file; for a DIR also the index and the frontier against the WARC files; for a
    WACZ file also each of its files against its list. The exit code is 0 only where there is no fault.
    """,
    [
        click.Argument(["paths"], nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)),
        json_option(),
    ],
    ("archiver verify collections/example.org", "a whole crawl"),
    ("archiver verify *.warc.gz", "WARC files of any origin"),
    ("archiver verify example.wacz", "a package"),
)
_REPLAY = command(
    "replay",
    _replay,
    """Serve the archive with pywb, on this machine, and print the address of each seed.

    DIR may be a collection anywhere, whose crawl may be running, or a WACZ or WARC file. Of an archive without
    crawl.db the first pages are printed. Several are shown as one, so that a revisit in one finds its original in
    another. Ctrl+C ends it. Needs pywb; in the checkout: pip install '.[replay]'.
    """,
    [
        click.Argument(["paths"], nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)),
        click.Option(
            ["--port"],
            type=click.IntRange(0, 65535),
            default=8080,
            metavar="N",
            help="The port; 0 takes a free one. [default: 8080]",
        ),
        click.Option(["--open"], is_flag=True, help="Open the first of them in the browser."),
    ],
    ("archiver replay collections/example.org", "at http://127.0.0.1:8080/"),
    ("archiver replay collections/example.org --port 0 --open", "at a free port, in the browser"),
    ("archiver replay example.wacz", "a package that you were sent"),
    ("archiver replay collections/new collections/old", "a crawl with the earlier one that its revisits refer to"),
)
_INDEX = command(
    "index",
    _index,
    """Build the index DIR/indexes/index.cdxj anew from the WARC files.""",
    [directory()],
    ("archiver index collections/example.org", "after WARC files were added or removed by hand"),
)

COMMANDS = (_STATUS, _REPORT, _EXPLAIN, _URLS, _VERIFY, _REPLAY, _INDEX)
