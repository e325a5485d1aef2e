"""What a package tells of its archives beside them: kept as it is, below `imports/` in the collection.

Its list and digest (with a signature, if any), its pages and its logs. Its index is made anew and not kept.
"""

import shutil
from contextlib import suppress
from pathlib import PurePosixPath

from archiver.archive.layout import Layout, replace_file, storage
from archiver.errors import ConfigError
from archiver.importing.names import safe, stem
from archiver.importing.packages import CHUNK, Package, open_member

FOLDER = "imports"


def keep_papers(layout: Layout, package: Package) -> str:
    """Keep the papers of *package*; the folder, below that of the collection, in which they lie. Again: the same."""
    name = f"{safe(stem(package.path.name), 100) or 'package'}-{package.mark}"
    folder = layout.directory / FOLDER / name
    for member in package.kept:
        parts = [safe(part) or "_" for part in PurePosixPath(member.name).parts]
        place = folder.joinpath(*parts)
        with storage(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        # What is damaged is told as a doubt, and is not kept.
        with suppress(ConfigError), open_member(package.path, member) as stream:
            replace_file(place, lambda file, stream=stream: shutil.copyfileobj(stream, file, CHUNK))  # type: ignore[misc]
    return f"{FOLDER}/{name}"
