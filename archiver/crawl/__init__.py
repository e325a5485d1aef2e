"""A crawl's lifetime: claims are handed out, visits made, batches committed, until nothing waits or somebody says stop.

`lifetime` plans and runs the visits, `feed` keeps the schedule supplied from the frontier, `commit` takes batches of
visits through a `lane` (links, WARC, index, log) to the database, in this order. `account` is what others see of it
meanwhile, `clock` the only source of time.
"""

from archiver.crawl.account import Ending
from archiver.crawl.lifetime import Crawl, Parts

__all__ = ["Crawl", "Ending", "Parts"]
