"""The orders that people give a crawl, as the database keeps them."""
