"""`archiver import`: copy archives into a collection."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from archiver import humanize
from archiver.cli.directory import COLLECTIONS, check_collection, make_directory
from archiver.cli.options import define_command, output_option
from archiver.cli.terminal import ProgressLine, complain, results, say
from archiver.cli.verify import finding_line
from archiver.humanize import printable
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.tools.ingest.run import ImportedSource

FAULTS_SHOWN = 20  # verify prints all
MAX_PATH = 1000  # characters of a path


def import_archives(files: Sequence[Path], output: Path | None, *, strict: bool, convert: bool) -> ExitCode:
    """Import *files* and print the result for each."""
    from archiver.tools.ingest import names, run, sources

    directory = output or COLLECTIONS / names.collection_name(files[0])
    check_collection(directory)
    found = sources.find_archives(files)
    make_directory(directory)
    with ProgressLine() as progress:
        outcome = run.import_archives(found, directory, strict=strict, convert=convert, report=progress.show)
    faults = [fault for fault in outcome.findings if fault.severity.value == "fault"]
    for line in (*outcome.signatures, *outcome.doubts[:FAULTS_SHOWN], *map(finding_line, faults[:FAULTS_SHOWN])):
        say(line)
    if len(outcome.doubts) > FAULTS_SHOWN or len(faults) > FAULTS_SHOWN:
        say("there are more faults; to list all: archiver verify FILE...")
    if outcome.refused:
        complain("nothing was imported: there are faults, and --strict was given")
        return ExitCode.FAULTS
    results(_line(each) for each in outcome.files)
    say(f"to view it: archiver replay {quote(str(directory))}")
    return ExitCode.FAULTS if outcome.faulty else ExitCode.DONE


def _line(each: "ImportedSource") -> str:
    label = printable(each.label, MAX_PATH)
    if each.known:
        return f"{label}: already imported as {printable(each.name, MAX_PATH)}"
    line = f"archive/{each.name}: {humanize.count(each.records, 'record')} of {label}"
    return f"{line}; the original is kept as {each.original}" if each.original else line


COMMAND = define_command(
    "import",
    import_archives,
    """Import WARC, ARC and WACZ files into a collection.

    Accepts files, folders and other collections. Copies each file byte for byte into DIR/archive, checks it like
    archiver verify, and adds it to the index, so that archiver replay DIR shows it. Overwrites nothing and skips files
    that DIR holds already. Damaged files are imported as they are and reported, and the exit code is 7. If the import
    is interrupted, run the same command again.
    """,
    [
        click.Argument(["files"], nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)),
        output_option(
            "DIR", "Import into this collection, new or existing. Default: collections/ and the name of FILE."
        ),
        click.Option(["--strict"], is_flag=True, help="Import nothing if there is any fault."),
        click.Option(
            ["--convert/--no-convert"],
            default=True,
            show_default=True,
            help="Convert files that pywb cannot read (ARC, .warc.zst, records that share a gzip member). The original "
            "is kept in DIR/imports/originals.",
        ),
    ],
    ("archiver import crawl.wacz", "import a package into collections/crawl"),
    ("archiver import old/*.warc.gz -o collections/example.org", "import files into your own collection"),
    ("archiver import --strict ~/collections/other -o all", "import a collection, but only if it has no fault"),
)
