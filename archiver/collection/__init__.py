"""The directory of a collection: its layout, lock, WARC files, index, log, and the look-up of captures."""
