"""After a crash: what the WARC files hold beyond the last commit is adopted, or moved to `damaged/`."""
