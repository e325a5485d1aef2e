"""`archiver export`: write a collection as files with links to each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import click

from archiver.cli.directory import check_files_are_here, first_seeds, seed_titles
from archiver.cli.get import iso_timestamp, open_holdings, parse_url
from archiver.cli.options import check_host_names, define_command, directory_argument, host_option
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.dates import DateRange, date_range
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import volume
from archiver.model import ExitCode
from archiver.storage import replace_file

if TYPE_CHECKING:
    from archiver.collection.lookup import Holdings
    from archiver.tools.export.write import ExportCounts
    from archiver.warc.cdxj import IndexEntry

MAX_PROBLEMS_SHOWN = 20
MAX_SEEDS = 1000

Missing = Literal["links", "live", "nothing"]  # which links to missing URLs lead to the live web


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The arguments of `archiver export`."""

    to: Path
    at: str | None
    host: tuple[str, ...]
    missing: Missing
    single_file: str | None
    pdf: str | None
    browser: str


def export(directory: Path, options: ExportOptions) -> ExitCode:
    """Export the archive *directory* and print the path of its start page."""
    from archiver.tools.export.plan import plan_export
    from archiver.tools.export.rewrite_links import ExportedSite
    from archiver.tools.export.write import ExportFolder, finish, write_export

    if options.single_file is not None or options.pdf is not None:
        return _export_page(directory, options)
    if options.browser:
        raise ConfigError("--browser is for --pdf URL")
    at = date_range(options.at, "--at") if options.at is not None else None
    _check_free(options.to)
    check_files_are_here(directory)
    with open_holdings(directory) as holdings, ProgressLine() as progress:
        progress.show("reading the index")
        plan = plan_export(holdings, options.host, at)
        site = ExportedSite(
            {file.url: file.path for file in plan.files},
            plan.redirects,
            options.missing != "nothing",
            options.missing == "live",
        )
        if not plan.files:
            of = f" of {' or '.join(options.host)}" if options.host else ""
            raise ConfigError(f"{directory} holds no page{of} to export")
        with ExportFolder(options.to) as target:
            counts = write_export(
                holdings,
                plan,
                target,
                site,
                lambda done: progress.show(f"{done} of {len(plan.files)} files"),
            )
            named = seed_titles(directory)
            seeds = {seed: named.get(seed, "") for seed in first_seeds(directory, MAX_SEEDS)}
            finish(target, plan, seeds, site, counts.titles)
    _print_counts(counts)
    if not counts.files:
        raise ArchiveError(f"{directory}: none of the captures could be read")
    result(str(options.to / "index.html"))
    return ExitCode.DONE


def _export_page(directory: Path, options: ExportOptions) -> ExitCode:
    """Write one page of the archive *directory* as one file, and print its path."""
    given = options.single_file if options.pdf is None else options.pdf
    if given is None or (options.single_file is not None and options.pdf is not None):
        raise ConfigError("--single-file and --pdf write one file each; give one of them")
    if options.host:
        raise ConfigError("--host is for a whole export; --single-file and --pdf name one page")
    if options.to.exists():
        raise ConfigError(f"--to {options.to} exists; give a new file")
    at = date_range(options.at, "--at") if options.at is not None else None
    check_files_are_here(directory)
    address, _ = parse_url(given)
    with open_holdings(directory) as holdings:
        entry = holdings.closest(address, at)
        if entry is None or entry.status[:1] == "3":
            moved = f"; it redirects to {holdings.location(entry)}" if entry is not None else ""
            raise ConfigError(
                f"{directory} holds no page {address}{moved}; to list pages: archiver ls {quote(str(directory))}"
            )
        content = _pdf(holdings, entry, options) if options.pdf is not None else _html(holdings, entry, options)

    def fill(file: BinaryIO) -> None:
        file.write(content)

    replace_file(options.to, fill)
    say(f"archiver: {entry.url} as of {iso_timestamp(entry.timestamp)}, {volume(len(content))}")
    result(str(options.to))
    return ExitCode.DONE


def _html(holdings: "Holdings", entry: "IndexEntry", options: ExportOptions) -> bytes:
    from archiver.tools.export.one_page import SinglePage

    if options.browser:
        raise ConfigError("--browser is for --pdf URL")
    at = DateRange(entry.timestamp, entry.timestamp)
    page = SinglePage(holdings, at, options.missing != "nothing", options.missing == "live")
    content = page.html(entry)
    _print_problems(page.problems)
    return content


def _pdf(holdings: "Holdings", entry: "IndexEntry", options: ExportOptions) -> bytes:
    import asyncio

    from archiver.browser.chromium import find, why_no_namespace
    from archiver.browser.devtools import DevToolsError
    from archiver.tools.export.one_page import printed

    command = find(options.browser)
    if why := why_no_namespace():
        raise ConfigError(
            f"--pdf runs the browser without a network, in a network namespace, and none can be made: {why}"
        )
    try:
        viewed = asyncio.run(printed(holdings, entry, command))
    except DevToolsError as error:
        raise ConfigError(f"{command[0]}: {error}") from None
    if not viewed.picture:
        raise ArchiveError(f"{entry.url}: no PDF was made: {viewed.ended or 'the browser gave none'}")
    _print_problems([f"{each.url}: not archived" for each in viewed.missing])
    return viewed.picture


def _check_free(folder: Path) -> None:
    from archiver.tools.export.write import is_unfinished

    if folder.is_dir() and (is_unfinished(folder) or not any(folder.iterdir())):
        return
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--to {folder} is a file; give a new or empty folder")
    if folder.exists():
        raise ConfigError(f"--to {folder} exists and is not empty; give a new or empty folder")


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems[:MAX_PROBLEMS_SHOWN]:
        say(f"archiver: {problem}")
    if len(problems) > MAX_PROBLEMS_SHOWN:
        say(f"archiver: and {len(problems) - MAX_PROBLEMS_SHOWN} more")


def _print_counts(counts: "ExportCounts") -> None:
    _print_problems(counts.problems)
    say(f"archiver: {counts.files} file{'s' * (counts.files != 1)}, {volume(counts.size)}")


def _run(directory: Path, **chosen: Any) -> int:
    return export(directory, ExportOptions(**chosen))


COMMAND = define_command(
    "export",
    _run,
    """Write an archive as files that a browser opens from disk.

    Exports the newest capture of each URL (or the one closest to --at), with links between the files.
    FOLDER/index.html lists all pages by title, seeds first. Links to pages that are not archived lead to the live web;
    missing images and styles are left out. Scripts are not changed, so they may not find what they load. Writes only to
    FOLDER and replaces no file. DIR may also be a WACZ or WARC file.

    --single-file and --pdf write one page into one file: HTML that includes all that the page loads, or a PDF as a
    browser without a network prints it after the scripts have run.
    """,
    [
        directory_argument(),
        click.Option(
            ["--to"],
            required=True,
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Write to this folder, which must be new or empty, or with --single-file or --pdf to this new file.",
        ),
        click.Option(
            ["--at"], metavar="DATE", help="Export the captures closest to DATE: 2026, 20261121, 2026-11-21T10:30."
        ),
        host_option(check=check_host_names),
        click.Option(
            ["--missing"],
            type=click.Choice(["links", "live", "nothing"]),
            default="links",
            help="For what is not archived: let links lead to the live web (links), load images and styles from there "
            "too (live), or do neither (nothing). [default: links]",
        ),
        click.Option(["--single-file"], metavar="URL", help="Write only this page, as one HTML file."),
        click.Option(["--pdf"], metavar="URL", help="Write only this page, as a PDF, with Chromium."),
        click.Option(["--browser"], default="", metavar="COMMAND", help="Print with this browser. Default: Chromium."),
    ],
    ("archiver export collections/example.org --to site", "then open site/index.html"),
    ("archiver export collections/example.org --to offline --at 2026-01 --missing nothing", "as it was then, offline"),
    ("archiver export collections/example.org --single-file example.org/a --to a.html", "one page, all in one file"),
    ("archiver export collections/example.org --pdf example.org/a --to a.pdf", "the same for paper"),
)
