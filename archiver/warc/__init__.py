"""WARC records as bytes and back: building, reading and indexing them. Pure: no clock, no paths, no ids of its own."""
