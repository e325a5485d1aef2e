"""A crawl's lifetime: claims are handed out, visits made, batches committed, until nothing waits or somebody says stop.

`lifetime` plans and runs the visits, `feed` keeps the schedule supplied from the frontier, `commit` is the one
place where WARC, index, log and database are written, in this order. `clock` is the only source of time.
"""

from archiver.crawl.lifetime import Crawl, Ending

__all__ = ["Crawl", "Ending"]
