"""`archiver report`: what became of a crawl, at any time, as text, as JSON or as a page; nothing in DIR is changed."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from archiver.cli import directory as place
from archiver.cli.terminal import results, say
from archiver.collection import lock
from archiver.collection.lock import Holder
from archiver.errors import ConfigError
from archiver.frontier import totals
from archiver.model import ExitCode
from archiver.storage import replace_file
from archiver.tools.report import files, html, summary, verdict
from archiver.tools.report import report as whole
from archiver.tools.report.summary import Summary


def report(directory: Path, form: str, output: Path | None) -> ExitCode:
    """Tell what became of the crawl in *directory*, on stdout or in the file *output*."""
    place.check_is_directory(directory)
    holder = lock.holder(directory)
    with totals.open_totals(directory) as db:
        found = summary.gathered(db)
        told = files.gathered(directory, db, replace(found, ending=_state(found, holder)), time.time())
    pieces: Iterable[str]
    match form:
        case "json":
            pieces = [files.as_json(told), "\n"]
        case "html":
            pieces = html.pieces(told)
        case _:
            pieces = (f"{line}\n" for line in whole.lines(told))
    if output is None:
        results("".join(pieces).removesuffix("\n").split("\n"))
    else:
        _written(output, pieces)
        say(f"archiver: written to {output}")
    return ExitCode.DONE


def _state(found: Summary, holder: Holder | None) -> str:
    """Say that the crawl runs, or how it ended."""
    if holder:
        return f"it is running ({holder})"
    ended = verdict.ending(found.verdict.run)
    if found.totals.waiting:
        return f"{ended or 'stopped'}; archiver resume goes on"
    return ended or "done"


def _written(output: Path, pieces: Iterable[str]) -> None:
    if output.is_dir() or not output.absolute().parent.is_dir():
        wrong = "is a directory" if output.is_dir() else "cannot be made: its folder does not exist"
        raise ConfigError(f"-o {output} {wrong}; right would be the name of a file, as report.html")
    replace_file(output, lambda file: file.writelines(piece.encode() for piece in pieces))
