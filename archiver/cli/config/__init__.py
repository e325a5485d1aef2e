"""Where the settings of a crawl come from: the command that shows it, and the sources of a new crawl."""
