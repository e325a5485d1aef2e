"""`archiver recrawl`, and `archiver crawl --since`: a site visited anew, into the collection that has it already.

Everything is checked before the crawl before is set aside; how that is done stands in `succession`.
"""

import asyncio
from pathlib import Path

from archiver.archive.layout import Layout
from archiver.cli import directory as place
from archiver.cli.crawling import SILENT, Begun, Wish, carried_out, check_room, wished, with_places
from archiver.cli.terminal import complain
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.model import ExitCode


def recrawl(directory: Path, wish: Wish) -> ExitCode:
    """Crawl again what is archived in *directory*; its settings and seeds hold where *wish* says nothing."""
    if wish.output is not None and wish.output.resolve() != directory.resolve():
        raise ConfigError(
            f"-o {wish.output}: a crawl since {directory} goes into that directory, so that both replay together; "
            "leave -o out"
        )
    place.check_is_directory(directory)
    place.finish_turn(directory)
    place.check_begun(directory)
    layout = Layout(directory)
    read = place.settings_text(layout.settings)
    before = toml.parse(read, str(layout.settings))
    settings = wished(wish, before)
    place.check_named_here(directory, settings, wish.given)
    settings = with_places(settings, directory)
    check_room(directory, settings)
    from archiver.succession import set_aside  # noqa: PLC0415 - the network and the database, as in `crawling`

    left = asyncio.run(set_aside(directory, with_values(Settings(), before), toml.render(settings), read))
    if left is not None and left.waiting and wish.verbosity > SILENT:
        complain(
            f"{left.waiting} URLs still waited in the crawl before, which is not gone on with; "
            f"it is kept in {layout.earlier / left.stamp}"
        )
    return carried_out(directory, settings, wish.verbosity, Begun(resume=False))
