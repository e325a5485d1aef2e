"""`import`: archives that others made, brought into a collection byte for byte, checked, and listed in its index.

The parts: `sources` says which WARC files are meant, `packages` reads WACZ packages with care, `run` has the steps,
`names` makes safe names, `kept` keeps what else a package tells. What nobody can replay is made anew by `remaking` (of
zstd by way of `frames`), and kept by `originals`. Nothing that is there is overwritten, and nothing of a source is
changed. It can be killed at any moment: what has its name in `archive/` by then is whole, and the same command once
more does the rest.
"""

from archiver.tools.ingest.names import collection_name
from archiver.tools.ingest.run import ImportedSource, ImportResult, bring
from archiver.tools.ingest.sources import ArchiveFile, find_archives

__all__ = ["ArchiveFile", "ImportResult", "ImportedSource", "bring", "collection_name", "find_archives"]
