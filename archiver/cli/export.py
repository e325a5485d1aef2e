"""`archiver export`: a collection as files with links that lead from one to the other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from archiver.cli.get import open_holdings
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.dates import date_range
from archiver.collection.layout import Layout
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.humanize import volume
from archiver.model import ExitCode
from archiver.tools.export import ExportCounts, ExportedSite, ExportFolder, finish, is_unfinished, planned, write_export

_TOLD = 20  # troubles
_SEEDS = 1000

Missing = Literal["links", "live", "nothing"]  # what of that which is not held leads to the live web


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What is exported, and where to."""

    to: Path
    at: str | None
    host: tuple[str, ...]
    missing: Missing


def export(directory: Path, wish: ExportOptions) -> ExitCode:
    """Export what is in *directory* (or in that file) as *wish* says, and print where a browser begins."""
    at = date_range(wish.at, "--at") if wish.at is not None else None
    _check_free(wish.to)
    with open_holdings(directory) as holdings, ProgressLine() as meter:
        meter.show("looking through the index")
        plan = planned(holdings, wish.host, at)
        site = ExportedSite(
            {file.url: file.path for file in plan.files},
            plan.redirects,
            wish.missing != "nothing",
            wish.missing == "live",
        )
        if not plan.files:
            of = f" of {' or '.join(wish.host)}" if wish.host else ""
            raise ConfigError(f"{directory} holds no page{of} that could be exported")
        with ExportFolder(wish.to) as target:
            tally = write_export(
                holdings,
                plan,
                target,
                site,
                lambda done: meter.show(f"{done} of {len(plan.files)} files"),
            )
            finish(target, plan, _seeds(directory), site)
    _tell(tally)
    if not tally.files:
        raise ArchiveError(f"{directory}: none of the captures could be read")
    result(str(wish.to / "index.html"))
    return ExitCode.DONE


def _check_free(folder: Path) -> None:
    if folder.is_dir() and (is_unfinished(folder) or not any(folder.iterdir())):
        return
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--to {folder} is a file; name a new or an empty folder")
    if folder.exists():
        raise ConfigError(f"--to {folder} is there already, and not empty; name a new or an empty folder")


def _seeds(directory: Path) -> list[str]:
    if not Layout(directory).database.is_file():
        return []
    with totals.open_totals(directory) as db:
        return [seed.url for seed in totals.seeds(db)[:_SEEDS]]


def _tell(tally: ExportCounts) -> None:
    for trouble in tally.troubles[:_TOLD]:
        say(f"archiver: {trouble}")
    if len(tally.troubles) > _TOLD:
        say(f"archiver: and {len(tally.troubles) - _TOLD} more such")
    say(f"archiver: {tally.files} file{'s' * (tally.files != 1)}, {volume(tally.size)}")
