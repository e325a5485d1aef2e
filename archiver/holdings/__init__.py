"""What a collection holds, read from its index and its WARC files alone: of any origin, also while a crawl writes them.

The parts: `lines` reads sorted index files, `held` finds captures in them and reads their records, `payload` undoes
what was done to a payload for the wire, `moments` are dates as people type them. Nothing here writes, and memory does
not grow with the index, nor with a capture.
"""

from archiver.holdings.held import Holdings
from archiver.holdings.lines import only_for_pywb
from archiver.holdings.moments import Moments, moments
from archiver.holdings.payload import Answer, read_answer

__all__ = ["Answer", "Holdings", "Moments", "moments", "only_for_pywb", "read_answer"]
