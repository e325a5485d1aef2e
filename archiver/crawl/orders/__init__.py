"""Orders for a running crawl: every crawler takes them up within seconds. See decision 0065."""
