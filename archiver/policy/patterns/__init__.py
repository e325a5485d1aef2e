"""What the answers of a URL pattern say about its other URLs."""
