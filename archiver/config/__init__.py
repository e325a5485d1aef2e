"""Settings: read from crawl.toml and the command line, checked, and kept in frozen values."""
