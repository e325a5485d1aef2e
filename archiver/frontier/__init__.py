"""The frontier: which URLs are known, what became of each, and what may be fetched next, in SQLite."""
