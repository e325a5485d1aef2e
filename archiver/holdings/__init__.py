"""What a collection holds, read from its index and its WARC files alone: of any origin, also while a crawl writes them.

The parts: `lines` reads index files (`halving` is how one is searched), `held` finds captures in them and reads their
records, `payload` undoes what was done to a payload for the wire, `moments` are dates as people type them. Nothing here
writes, and memory does not grow with the index, nor with a capture.
"""

from archiver.holdings.held import Holdings
from archiver.holdings.lines import besides_cdxj
from archiver.holdings.moments import Moments, moments
from archiver.holdings.payload import Answer, read_answer

__all__ = ["Answer", "Holdings", "Moments", "besides_cdxj", "moments", "read_answer"]
