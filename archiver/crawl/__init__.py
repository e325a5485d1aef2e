"""The crawl: `build` puts it together, `engine` runs visits, `commit` stores them, `recovery` repairs after a crash."""
