"""Retention: delete the WARC files of old crawls that no other file needs."""
