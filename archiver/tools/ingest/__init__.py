"""`import`: import_archives archives of other tools into a collection, byte for byte, checked and indexed.

`sources` finds the WARC files, `wacz` reads packages, `run` has the steps, and `names` gives safe names and keeps side
files. Files that cannot be replayed as they are are converted by `convert` (with `streams`), and their originals are
kept. `view` and `verify_wacz` read packages without importing them. Nothing existing is overwritten, and sources are
not changed. An import can be killed at any time: every file with its final name is complete, and the same command
finishes the rest.
"""

from archiver.tools.ingest.names import collection_name
from archiver.tools.ingest.run import ImportedSource, ImportResult, import_archives
from archiver.tools.ingest.sources import ArchiveFile, find_archives

__all__ = ["ArchiveFile", "ImportResult", "ImportedSource", "collection_name", "find_archives", "import_archives"]
