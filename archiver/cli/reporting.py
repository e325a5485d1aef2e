"""`archiver report`: what became of a crawl, at any time, as text, as JSON or as a page; nothing in DIR is changed."""

import time
from collections.abc import Iterable
from pathlib import Path

from archiver.archive.layout import replace_file
from archiver.cli import directory as place
from archiver.cli.terminal import results, say
from archiver.errors import ConfigError
from archiver.frontier import account
from archiver.model import ExitCode
from archiver.report import files, page, summary, whole


def report(directory: Path, form: str, output: Path | None) -> ExitCode:
    """Tell what became of the crawl in *directory*, on stdout or in the file *output*."""
    place.check_is_directory(directory)
    holder = place.holder(directory)
    with account.opened(directory) as db:
        waiting = account.totals(db).waiting
        state = f"it is running ({holder})" if holder else "stopped; archiver resume goes on" if waiting else "done"
        told = files.gathered(directory, db, summary.gathered(db, state), time.time())
    pieces: Iterable[str]
    match form:
        case "json":
            pieces = [files.as_json(told), "\n"]
        case "html":
            pieces = page.pieces(told)
        case _:
            pieces = (f"{line}\n" for line in whole.lines(told))
    if output is None:
        results("".join(pieces).removesuffix("\n").split("\n"))
    else:
        _written(output, pieces)
        say(f"archiver: written to {output}")
    return ExitCode.DONE


def _written(output: Path, pieces: Iterable[str]) -> None:
    if output.is_dir() or not output.absolute().parent.is_dir():
        wrong = "is a directory" if output.is_dir() else "cannot be made: its folder does not exist"
        raise ConfigError(f"-o {output} {wrong}; right would be the name of a file, as report.html")
    replace_file(output, lambda file: file.writelines(piece.encode() for piece in pieces))
