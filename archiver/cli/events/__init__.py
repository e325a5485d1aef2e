"""Events of a crawl: the command that lists them, and their delivery after a run."""
