"""`archiver index`: rebuild the index of a collection."""

from pathlib import Path

from archiver.cli.directory import check_has_archive, check_idle, check_is_directory
from archiver.cli.options import define_command, directory_argument
from archiver.cli.terminal import result, say
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.model import ExitCode


def index(directory: Path) -> ExitCode:
    """Rebuild the index of *directory*."""
    from archiver.collection.index_search import besides_cdxj
    from archiver.collection.reindex import rebuild

    check_is_directory(directory)
    check_has_archive(directory)
    check_idle(directory)
    layout = Layout(directory)
    with Lock(layout.lock):  # lines that another process adds meanwhile would be lost
        lines = rebuild(directory)
    result(f"{lines} lines in {layout.indexes / 'index.cdxj'}")
    if others := besides_cdxj(layout.indexes):
        say(f"pywb also reads {', '.join(others)} there and shows each capture twice; remove it if you do not need it")
    return ExitCode.DONE


COMMAND = define_command(
    "index",
    index,
    """Rebuild the index from the WARC files.

    Writes DIR/indexes/index.cdxj.
    """,
    [directory_argument()],
    ("archiver index collections/example.org", "after you added or removed WARC files by hand"),
)
