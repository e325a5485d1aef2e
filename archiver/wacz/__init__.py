"""WACZ 1.1.1: a collection, or a part of one, as one file that replayweb.page opens. Source: the specification.

`stock` says what there is to pack, `listing` reads its index, `pages` finds the pages in its records and `rows` holds
their lists, `package` is one ZIP file, `splitting` decides what goes into which, `several` tells of those that belong
together, `moments` makes dates exact, `signing` signs and `checking` checks, and `packing` does it all, in one pass
over each WARC file and in constant memory. Nothing is written into the collection.
"""

from archiver.wacz.packing import Packed, Progress, Wish, foreign_part, pack, refuse_existing
from archiver.wacz.signing import Signer
from archiver.wacz.stock import Stock, take_stock

__all__ = ["Packed", "Progress", "Signer", "Stock", "Wish", "foreign_part", "pack", "refuse_existing", "take_stock"]
