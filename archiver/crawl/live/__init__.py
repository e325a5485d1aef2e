"""The figures that a running crawl publishes in live.json."""
