"""Orders for a crawl: `give` checks and gives them; `retry` and `add` put URLs into the queue."""
