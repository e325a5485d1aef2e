"""Hooks: the user's Python functions, and extractors of other programs, which a process of their own runs."""
