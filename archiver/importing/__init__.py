"""`import`: archives that others made, brought into a collection byte for byte, checked, and listed in its index.

Nothing that is there is overwritten, and nothing of a source is changed. It can be killed at any moment: what has its
name in `archive/` by then is whole, and the same command once more does the rest.
"""

from archiver.importing.names import collection_name
from archiver.importing.run import Arrived, Outcome, bring
from archiver.importing.sources import Source, sources

__all__ = ["Arrived", "Outcome", "Source", "bring", "collection_name", "sources"]
