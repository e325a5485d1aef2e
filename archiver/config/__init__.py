"""Settings: frozen slices, read from crawl.toml and the command line, refused with line, key and remedy."""
