"""The commands by which archives go to others and come from them."""

from pathlib import Path
from typing import Any

import click

from archiver.cli.options import command, directory, output


def _pack(directory: Path, **asked: Any) -> int:
    from archiver.cli.pack import PackArguments, pack_collection  # noqa: PLC0415 - see `command`

    return pack_collection(directory, PackArguments(**asked))


def _import(files: tuple[Path, ...], output: Path | None, *, strict: bool, convert: bool) -> int:
    from archiver.cli.ingest import bring_in  # noqa: PLC0415 - see `command`

    return bring_in(files, output, strict=strict, convert=convert)


_FILE = click.Path(path_type=Path)
_PACK = command(
    "pack",
    _pack,
    """Pack a collection into one WACZ file, which replayweb.page opens.

    It holds the WARC files as they are, their index, a list of the pages with their titles and texts, and the logs.
    The file is DIR's name with .wacz, in the current directory (beside DIR where that is DIR), unless -o names another;
    its name is printed. It appears when it is whole. Nothing is written into DIR, whose crawl must not be running.
    """,
    [
        directory(),
        output("FILE.wacz", "The file, or a directory to put it into."),
        click.Option(["--title"], metavar="TEXT", help="What the collection is called. [default: the name of DIR]"),
        click.Option(["--description"], default="", metavar="TEXT", help="What it is, in Markdown."),
        click.Option(
            ["--text/--no-text"],
            default=True,
            help="Whether to list the text of pages, by which they can be searched. [default: yes]",
        ),
        click.Option(
            ["--split"],
            metavar="BYTES",
            help="Make several packages, FILE-001.wacz and so on, none larger than this (10G) unless one WARC file is, "
            "and FILE.json, by which they are opened as one. What fits into one becomes one.",
        ),
        click.Option(["--sign"], is_flag=True, help="Sign it with a new key, which is then thrown away."),
        click.Option(
            ["--key"],
            type=_FILE,
            metavar="FILE",
            help="Sign it with the private key in a file (P-384, PEM). Where there is none, one is made in it.",
        ),
        click.Option(["--force"], is_flag=True, help="Replace what is there already."),
    ],
    ("archiver pack collections/example.org", "make example.org.wacz"),
    ("archiver pack collections/example.org -o /srv/waczs/ --title 'Example, 2026'", "put it elsewhere, with a title"),
    ("archiver pack collections/example.org --split 10G", "make packages of at most 10 GB"),
    ("archiver pack collections/example.org --key library.pem", "sign it as the owner of this key"),
)
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
        output("DIR", "The collection, new or not. Default: collections/ and the name of the first FILE.", "--into"),
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

COMMANDS = (_PACK, _IMPORT)
