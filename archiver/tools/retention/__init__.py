"""Retention: delete the WARC files of earlier crawls that no other file needs."""
