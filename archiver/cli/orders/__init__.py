"""Commands that give orders to a crawl, whether it runs or not: see decision 0065."""
