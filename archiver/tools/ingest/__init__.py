"""`import`: bring archives of other tools into a collection, byte for byte, checked and indexed.

`sources` finds the WARC files, `wacz` reads packages, and `run` has the steps. Files that cannot be replayed as they
are are converted, and their originals are kept. `packages` reads packages without importing them.
"""
