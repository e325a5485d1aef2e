"""HTML: `fast` reads well-formed pages with one expression, `lenient` reads everything else with lxml."""
