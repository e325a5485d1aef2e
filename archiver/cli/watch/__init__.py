"""The command of the control room, and its start beside a crawl."""
