"""WACZ 1.1.1: a collection, or a part of one, as one file that replayweb.page opens. Source: the specification.

`contents` lists what can be packed, `index` reads the collection's index and writes the package's, and `pages` finds
the pages. `zip` writes one package, `signature` signs and checks, and `pack` does it all in one pass over each WARC
file and in constant memory. Nothing is written into the collection.
"""

from archiver.tools.wacz.contents import PackContents, read_contents
from archiver.tools.wacz.pack import PackOptions, PackProgress, PackResult, foreign_part, pack, refuse_existing
from archiver.tools.wacz.signature import Signer

__all__ = [
    "PackContents",
    "PackOptions",
    "PackProgress",
    "PackResult",
    "Signer",
    "foreign_part",
    "pack",
    "read_contents",
    "refuse_existing",
]
