"""The files of a collection: WARCs, their index, the log, the lock, and where each lies.

`layout` names the places, `lock` keeps a second process out, `warcfile` is one open WARC, `writer` appends
visits and rotates, `index` keeps the CDXJ, `crawllog` writes a line for each visit.
"""

from archiver.archive.layout import Layout
from archiver.archive.writer import Archive, Deposit, Receipt

__all__ = ["Archive", "Deposit", "Layout", "Receipt"]
