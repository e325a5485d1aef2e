"""The command that brings archives of others into a collection."""

from pathlib import Path

import click

from archiver.cli.command import command


def _import(files: tuple[Path, ...], output: Path | None, *, strict: bool, convert: bool) -> int:
    from archiver.cli.importing import bring_in  # noqa: PLC0415 - see `command`

    return bring_in(files, output, strict=strict, convert=convert)


_IMPORT = command(
    "import",
    _import,
    """Bring archives that others made into a collection: WARC, ARC and WACZ files, folders, other collections.

    Each file is copied byte for byte into DIR/archive, read whole as archiver verify does, and listed in the index, so
    that archiver replay DIR shows it. Nothing that is there is overwritten, and what is there already is not copied
    again. What is damaged is imported as it is, and told; the exit code is 7 then. Killed, it is called once more.
    """,
    [
        click.Argument(["files"], nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)),
        click.Option(
            ["-o", "--output", "--into"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="The collection, new or not. Default: collections/ and the name of the first FILE.",
        ),
        click.Option(["--strict"], is_flag=True, help="Import nothing at all where there is any fault."),
        click.Option(
            ["--convert/--no-convert", "--recompress/--no-recompress", "convert"],
            default=True,
            show_default=True,
            help="Make a WARC that can be replayed of a file that cannot: records that share a gzip member, .warc.zst, "
            "ARC. Each record's bytes stay what they were, and the file is kept as it came in DIR/imports/originals.",
        ),
    ],
    ("archiver import crawl.wacz", "a package, into collections/crawl"),
    ("archiver import old/*.warc.gz -o collections/example.org", "files, into a collection of your own"),
    ("archiver import --strict ~/collections/other -o all", "all files of another collection, if all are sound"),
)

COMMANDS = (_IMPORT,)
