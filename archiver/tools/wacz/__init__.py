"""WACZ 1.1.1: a collection, or a part of one, as one file that replayweb.page opens. Source: the specification.

`stock` says what there is to pack, `listing` reads its index, `pages` finds the pages in its records and `rows` holds
their lists, `package` is one ZIP file, `splitting` decides what goes into which, `several` tells of those that belong
together, `moments` makes dates exact, `signing` signs and `checking` checks, and `packing` does it all, in one pass
over each WARC file and in constant memory. Nothing is written into the collection.
"""

from archiver.tools.wacz.contents import PackContents, take_stock
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
    "refuse_existing",
    "take_stock",
]
