"""The recording proxy: what a client asks through it goes into a collection as a crawl writes it."""
