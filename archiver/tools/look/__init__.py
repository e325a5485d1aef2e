"""Look at archived pages in a browser without a network, and name what their replay would miss."""
