"""The events of a crawl, as the database keeps them until they are delivered."""
