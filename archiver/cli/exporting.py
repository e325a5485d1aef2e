"""`archiver export`: a collection as files with links that lead from one to the other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from archiver.archive.layout import Layout
from archiver.cli.meter import Meter
from archiver.cli.printing import opened
from archiver.cli.terminal import result, say
from archiver.errors import ArchiveError, ConfigError
from archiver.export import Site, Tally, Target, finish, is_unfinished, planned, write
from archiver.frontier import account
from archiver.holdings import moments
from archiver.model import ExitCode
from archiver.stats import volume

_TOLD = 20  # troubles
_SEEDS = 1000

Missing = Literal["links", "live", "nothing"]  # what of that which is not held leads to the live web


@dataclass(frozen=True, slots=True)
class Wish:
    """What is exported, and where to."""

    to: Path
    at: str | None
    host: tuple[str, ...]
    missing: Missing


def export(directory: Path, wish: Wish) -> ExitCode:
    """Export what is in *directory* (or in that file) as *wish* says, and print where a browser begins."""
    at = moments(wish.at, "--at") if wish.at is not None else None
    _check_free(wish.to)
    with opened(directory) as holdings, Meter() as meter:
        meter.show("looking through the index")
        plan = planned(holdings, wish.host, at)
        site = Site(
            {file.url: file.path for file in plan.files},
            plan.redirects,
            wish.missing != "nothing",
            wish.missing == "live",
        )
        if not plan.files:
            of = f" of {' or '.join(wish.host)}" if wish.host else ""
            raise ConfigError(f"{directory} holds no page{of} that could be exported")
        with Target(wish.to) as target:
            tally = write(
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
    with account.opened(directory) as db:
        return [seed.url for seed in account.seeds(db)[:_SEEDS]]


def _tell(tally: Tally) -> None:
    for trouble in tally.troubles[:_TOLD]:
        say(f"archiver: {trouble}")
    if len(tally.troubles) > _TOLD:
        say(f"archiver: and {len(tally.troubles) - _TOLD} more such")
    say(f"archiver: {tally.files} file{'s' * (tally.files != 1)}, {volume(tally.size)}")
