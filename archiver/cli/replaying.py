"""`archiver replay`: serve a collection and say where each seed can be seen."""

from pathlib import Path

from archiver import replay
from archiver.archive.layout import Layout
from archiver.cli import directory as place
from archiver.cli.terminal import result, say
from archiver.frontier import account
from archiver.model import ExitCode
from archiver.replay import Served
from archiver.stats import printable

SEEDS_SHOWN = 20


def serve(directory: Path, port: int) -> ExitCode:
    """Serve the collection in *directory* until it is stopped."""
    place.check_is_directory(directory)
    replay.check_replayable(directory)
    replay.check_installed()
    seeds = _seeds(directory)

    def started(served: Served) -> None:
        result("\n".join(served.page(printable(seed, len(seed))) for seed in seeds) or served.root)
        say(f"archiver: serving {directory} at {served.root} until Ctrl+C")

    replay.serve(directory, port, started)
    return ExitCode.DONE


def _seeds(directory: Path) -> list[str]:
    """The first seeds; none where only the archive was kept."""
    if not Layout(directory).database.is_file():
        return []
    with account.opened(directory) as db:
        return [seed.url for seed in account.seeds(db)[:SEEDS_SHOWN]]
