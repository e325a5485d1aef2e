"""Scripts and the data they load: URLs in JavaScript, bundles, generator and search indexes, embedded JSON."""
