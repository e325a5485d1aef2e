"""The report of a crawl: gathered from crawl.db, told in words at the end, and kept as files under `reports/`."""
