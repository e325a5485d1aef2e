"""`replay`: an archive seen in a browser as it was, served by pywb on this machine.

The parts: `server` runs pywb in a directory where it finds nothing, `shelves` gives it what a collection holds and
nothing else, `rewriting` has our own of its rewriters, and `modules` changes ECMAScript modules so that they run.
"""

from archiver.tools.replay.server import Served, check_installed, collection_name, serve
from archiver.tools.replay.sources import FolderSource, PackedSource, ReplaySource

__all__ = ["FolderSource", "PackedSource", "ReplaySource", "Served", "check_installed", "collection_name", "serve"]
