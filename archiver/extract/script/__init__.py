"""Scripts and their data: URLs in JavaScript, bundles, JSON, and what site generators make for their own scripts."""
