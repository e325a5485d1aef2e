"""HTML: `fast` reads well-formed pages with one regular expression, `lenient` reads all others with lxml."""
