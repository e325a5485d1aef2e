"""Show archived pages in a browser while the crawl runs, and fetch what their scripts ask for."""
