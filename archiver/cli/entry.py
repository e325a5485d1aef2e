"""The commands with their options and help, and the one place where an exception becomes a line and an exit code.

What a command does is imported when it is called, so that `archiver --help` answers at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from archiver import __version__
from archiver.cli import garbage, importing
from archiver.cli.options import HELP_WIDTH, Example, GroupedCommand, given_settings, setting_options, write_examples
from archiver.cli.terminal import complain
from archiver.errors import ArchiveError, ConfigError, Failure
from archiver.model import ExitCode

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}


class Commands(click.Group):
    """The command `archiver`, whose help begins with what a person does first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they are needed."""
        del ctx
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(
            (
                ("archiver crawl https://example.org/", "archive a site into collections/example.org"),
                ("archiver resume collections/example.org", "go on after Ctrl+C, a crash or a limit"),
                ("archiver replay collections/example.org", "look at it in a browser"),
            ),
            formatter,
        )


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="archiver", message="%(prog)s %(version)s")
def archiver() -> None:
    """Archive web sites: every byte as it crossed the wire, into WARC files that replay.

    A crawl can be stopped or killed at any moment and goes on as if nothing had happened. DIR is the directory of a
    crawl. Results go to stdout, everything else to stderr.
    """


def _directory() -> click.Argument:
    return click.Argument(["directory"], metavar="DIR", type=click.Path(path_type=Path))


def _lists() -> click.Option:
    text = "Take seeds from a file, or stdin: on each line a URL and its own settings, if any; # begins a comment."
    return click.Option(["--seeds"], multiple=True, metavar="FILE|-", help=text)


def _voices() -> list[click.Parameter]:
    return [
        click.Option(["-v", "--verbose"], count=True, help="Say more: each host; twice: everything."),
        click.Option(["-q", "--quiet"], count=True, help="Say only how it ended; twice: nothing but errors."),
    ]


def _verbosity(values: dict[str, Any]) -> int:
    return int(values["verbose"] - values["quiet"])


def _crawl(urls: tuple[str, ...], seeds: tuple[str, ...], output: Path | None, config: Path | None, **rest: Any) -> int:
    from archiver.cli.crawling import Wish, crawl  # noqa: PLC0415 - see above

    return crawl(Wish(urls, seeds, output, config, given_settings(rest), _verbosity(rest)))


def _resume(directory: Path, **rest: Any) -> int:
    from archiver.cli.crawling import resume  # noqa: PLC0415 - see above

    return resume(directory, given_settings(rest), _verbosity(rest))


def _status(directory: Path, *, json: bool) -> int:
    from archiver.cli.status import status  # noqa: PLC0415 - see above

    return status(directory, as_json=json)


def _index(directory: Path) -> int:
    from archiver.cli.checking import index  # noqa: PLC0415 - see above

    return index(directory)


def _rebuild(directory: Path) -> int:
    from archiver.cli.rebuilding import rebuild  # noqa: PLC0415 - see above

    return rebuild(directory)


def _verify(paths: tuple[Path, ...], *, json: bool) -> int:
    from archiver.cli.checking import verify  # noqa: PLC0415 - see above

    return verify(paths, as_json=json)


def _replay(directory: Path, port: int) -> int:
    from archiver.cli.replaying import serve  # noqa: PLC0415 - see above

    return serve(directory, port)


def _explain(directory: Path, url: str, *, json: bool) -> int:
    from archiver.cli.explaining import explain  # noqa: PLC0415 - see above

    return explain(directory, url, as_json=json)


def _urls(
    directory: Path, *, state: tuple[str, ...], host: str | None, why: bool, json: bool, limit: int | None
) -> int:
    from archiver.cli.listing import Wish, urls  # noqa: PLC0415 - see above

    return urls(directory, Wish(state, host, why, json, limit))


def _retry(
    directory: Path, urls: tuple[str, ...], host: tuple[str, ...], status: tuple[str, ...], failure: tuple[str, ...]
) -> int:
    from archiver.cli.changing import retry  # noqa: PLC0415 - see above

    return retry(directory, urls, host, status, failure)


def _add_seeds(directory: Path, urls: tuple[str, ...], seeds: tuple[str, ...]) -> int:
    from archiver.cli.changing import add  # noqa: PLC0415 - see above

    return add(directory, urls, seeds)


def _add(name: str, callback: Any, text: str, params: list[click.Parameter], *examples: Example) -> None:
    short, _, _ = text.partition("\n")
    archiver.add_command(
        GroupedCommand(
            name,
            callback=callback,
            help=text,
            short_help=short,
            params=params,
            examples=examples,
            context_settings=CONTEXT,
        )
    )


_add(
    "crawl",
    _crawl,
    """Archive a site, or several, each from a seed URL.

    Crawls breadth first, with what a page needs before the next page, and ends by itself when nothing is left. Ctrl+C
    lets requests in flight finish and ends in order; archiver resume goes on.
    """,
    [
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        click.Option(
            ["-o", "--output"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Where to put the crawl. Default: collections/ and the host of the first seed.",
        ),
        _lists(),
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Take settings from a file such as crawl.toml; options go before it.",
        ),
        *setting_options(),
        *_voices(),
    ],
    ("archiver crawl https://example.org/", "archive one host into collections/example.org"),
    ("archiver crawl --scope prefix https://example.org/blog/ -o blog", "one part of a site, into ./blog"),
    ("archiver crawl --seeds list.txt --scope page", "only the pages listed, with what they need to be shown"),
    ("archiver crawl --rate 30/60 --host-concurrency 1 --contact me@example.org https://example.org/", "more gently"),
    ("archiver crawl --exclude '/calendar/' --max-depth 5 --max-time 3600 https://example.org/", "within limits"),
)
_add(
    "resume",
    _resume,
    """Go on with a crawl that was stopped, was killed, or has reached a limit.

    The settings are those of DIR/crawl.toml; options given here go before them and are written back.
    """,
    [_directory(), *setting_options(), *_voices()],
    ("archiver resume collections/example.org", "go on"),
    ("archiver resume collections/example.org --max-urls 100000 --rate 10", "go on with other settings"),
)
_add(
    "status",
    _status,
    """Show how a crawl stands, also while it runs.

    Counts, the rate, what became of the seeds, and what each host waits for.
    """,
    [_directory(), click.Option(["--json"], is_flag=True, help="As JSON.")],
    ("archiver status collections/example.org", "for a person"),
    ("archiver status collections/example.org --json | jq .totals.waiting", "for a program"),
)
_add(
    "index",
    _index,
    """Build the index DIR/indexes/index.cdxj anew from the WARC files.""",
    [_directory()],
    ("archiver index collections/example.org", "after WARC files were added or removed by hand"),
)
_add(
    "rebuild",
    _rebuild,
    """Make DIR/crawl.db anew from the WARC files, where it is lost or damaged.

    Every visit that lies whole in a WARC file is known again, and archiver resume goes on where the crawl was; what was
    damaged is fetched again then. Nothing is deleted: the old database, and what is damaged in a WARC file, is kept
    in DIR/damaged. The index is made anew too, and crawl.toml where it is missing.
    """,
    [_directory()],
    ("archiver rebuild collections/example.org", "then: archiver resume collections/example.org"),
)
_add(
    "replay",
    _replay,
    """Serve the archive with pywb, on this machine, and print the address of each seed.

    DIR may lie anywhere, and its crawl may be running. Ctrl+C ends it. Needs pywb: pip install 'archiver[replay]'.
    """,
    [
        _directory(),
        click.Option(
            ["--port"],
            type=click.IntRange(0, 65535),
            default=8080,
            metavar="N",
            help="The port; 0 takes a free one. [default: 8080]",
        ),
    ],
    ("archiver replay collections/example.org", "at http://127.0.0.1:8080/"),
    ("archiver replay collections/example.org --port 0", "at a free port"),
)
_add(
    "verify",
    _verify,
    """Read everything back and name every fault.

    Structure and digests of each WARC file; for a DIR also the index and the frontier against the WARC files. The
    exit code is 0 only where there is no fault.
    """,
    [
        click.Argument(["paths"], nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)),
        click.Option(["--json"], is_flag=True, help="As JSON."),
    ],
    ("archiver verify collections/example.org", "a whole crawl"),
    ("archiver verify *.warc.gz", "WARC files of any origin"),
)
_add(
    "explain",
    _explain,
    """Tell what became of a URL and why: for any URL, also one that the crawl never saw.

    Its state, the rule that took or refused it as crawl.toml has it, its path from the seed, its tries and answers,
    where its captures lie, when it is due, and what its host waits for. A URL that is not known is judged as a link on
    the page of a seed would be. Reads only, also while the crawl runs.
    """,
    [
        _directory(),
        click.Argument(["url"], metavar="URL"),
        click.Option(["--json"], is_flag=True, help="As JSON."),
    ],
    ("archiver explain collections/example.org https://example.org/a", "why is it there, or why not?"),
    ("archiver explain collections/example.org https://example.org/a --json | jq .rule", "for a program"),
)
_add(
    "urls",
    _urls,
    """List the URLs of a crawl, one on each line, also while it runs.

    In the order in which they were found; those of one host by name. Refused ones are links that the scope did not
    take, of which a sample is kept: a thousand for each rule and host.
    """,
    [
        _directory(),
        click.Option(
            ["--state"],
            multiple=True,
            type=click.Choice(["waiting", "archived", "failed", "excluded", "refused"]),
            help="Only those in this state. May be given more than once. Default: all but the refused.",
        ),
        click.Option(["--host"], metavar="HOST", help="Only those of this host: example.org, example.org:8443."),
        click.Option(["--why"], is_flag=True, help="With the state and its reason, after a tab."),
        click.Option(["--json"], is_flag=True, help="As JSON, an object on each line."),
        click.Option(["--limit"], type=click.IntRange(0), metavar="N", help="At most N."),
    ],
    ("archiver urls collections/example.org --state failed --why", "what could not be had, and why"),
    ("archiver urls collections/example.org --state waiting --host example.org | head", "what comes next"),
    ("archiver urls collections/example.org --json | jq -r 'select(.status == 404) | .url'", "for a program"),
)
_add(
    "retry",
    _retry,
    """Make URLs due again whose crawl has ended without an answer, or with one that is not wanted.

    All that failed or were excluded; with --status also archived ones that were answered so; or the URLs given,
    whatever became of them. Where a robots.txt was in the way, it is asked for again first. Their tries begin anew.
    A crawl that runs takes them up within seconds; otherwise archiver resume does. Prints how many they are.
    """,
    [
        _directory(),
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        click.Option(
            ["--host"],
            multiple=True,
            metavar="HOST",
            help="Only those of this host: example.org, example.org:8443. May be given more than once.",
        ),
        click.Option(
            ["--status"],
            multiple=True,
            metavar="N",
            help="Only those whose last answer had this status: 404, or 5xx for a class. May be given more than once.",
        ),
        click.Option(
            ["--failure"],
            multiple=True,
            type=click.Choice([failure.value for failure in Failure]),
            help="Only those that failed in this way. May be given more than once.",
        ),
    ],
    ("archiver retry collections/example.org", "all that failed or were excluded"),
    ("archiver retry collections/example.org --status 5xx --status 429", "what the server could not answer then"),
    ("archiver retry collections/example.org --host img.example.org --failure timeout", "one host that was down"),
    ("archiver retry collections/example.org https://example.org/a", "this URL, archived or not"),
)
_add(
    "add",
    _add_seeds,
    """Add seeds to a crawl, stopped or running.

    They are written to DIR/crawl.toml, and the scope grows with them. A crawl that runs takes them up within seconds;
    otherwise archiver resume does. A URL that the crawl knows already, but not as a seed, is visited once more.
    """,
    [
        _directory(),
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        _lists(),
    ],
    ("archiver add collections/example.org https://blog.example.org/", "one more site into the same archive"),
    ("archiver add collections/example.org --seeds more.txt", "those listed"),
)
archiver.add_command(importing.command(CONTEXT))


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out *arguments* and return the exit code; only a bug raises."""
    try:
        code = archiver.main(arguments, prog_name="archiver", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except (click.ClickException, ConfigError) as error:
        complain(error.format_message() if isinstance(error, click.ClickException) else str(error))
        return ExitCode.USAGE
    except ArchiveError as error:
        complain(str(error))
        return ExitCode.STORAGE
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return ExitCode.STOPPED
    return int(code or ExitCode.DONE)


def main() -> NoReturn:
    """The command `archiver`."""
    garbage.search_seldom()
    _mend_streams()
    sys.exit(run())


def _mend_streams() -> None:
    """A closed stream (`2>&-`) takes everything, and no name is unwritable where the terminal is not UTF-8."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as we live
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
