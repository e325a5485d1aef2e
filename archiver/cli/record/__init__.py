"""`archiver record`: a proxy that records what a client or browser asks through it."""
