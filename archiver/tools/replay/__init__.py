"""`replay`: show an archive in a browser, served by pywb on this machine.

`server` runs pywb in an empty directory. `sources` gives it the content of a collection and nothing else. `rewriter`
extends its rewriters, and `es_modules` changes ECMAScript modules so that they run.
"""

from archiver.tools.replay.server import Served, check_installed, collection_name, serve
from archiver.tools.replay.sources import FolderSource, PackedSource, ReplaySource

__all__ = ["FolderSource", "PackedSource", "ReplaySource", "Served", "check_installed", "collection_name", "serve"]
