"""`archiver export`: write a collection as files with links to each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from archiver.cli.directory import check_files_are_here, first_seeds, seed_titles
from archiver.cli.get import open_holdings
from archiver.cli.options import check_host_names, define_command, directory_argument, host_option
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.dates import date_range
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import volume
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.tools.export.write import ExportCounts

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


def export(directory: Path, options: ExportOptions) -> ExitCode:
    """Export the archive *directory* and print the path of its start page."""
    from archiver.tools.export.plan import plan_export
    from archiver.tools.export.rewrite_links import ExportedSite
    from archiver.tools.export.write import ExportFolder, finish, write_export

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


def _check_free(folder: Path) -> None:
    from archiver.tools.export.write import is_unfinished

    if folder.is_dir() and (is_unfinished(folder) or not any(folder.iterdir())):
        return
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--to {folder} is a file; give a new or empty folder")
    if folder.exists():
        raise ConfigError(f"--to {folder} exists and is not empty; give a new or empty folder")


def _print_counts(counts: "ExportCounts") -> None:
    for problem in counts.problems[:MAX_PROBLEMS_SHOWN]:
        say(f"archiver: {problem}")
    if len(counts.problems) > MAX_PROBLEMS_SHOWN:
        say(f"archiver: and {len(counts.problems) - MAX_PROBLEMS_SHOWN} more")
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
    """,
    [
        directory_argument(),
        click.Option(
            ["--to"],
            required=True,
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="Write to FOLDER, which must be new or empty.",
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
    ],
    ("archiver export collections/example.org --to site", "then open site/index.html"),
    ("archiver export collections/example.org --to offline --at 2026-01 --missing nothing", "as it was then, offline"),
)
