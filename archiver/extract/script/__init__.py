"""Scripts and their data: URLs in JavaScript, bundles, generator and search indexes, embedded JSON."""
