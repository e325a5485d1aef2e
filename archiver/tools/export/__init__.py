"""Export an archive as files with links to each other, for a browser without a server: first `plan`, then `write`."""
