"""The report of a crawl, read from crawl.db: printed at the end, and written to `reports/`."""
