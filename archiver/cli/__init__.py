"""The command `archiver`: what a person types, what is said in return, and the exit code. No logic of the crawl."""

from archiver.cli.entry import main

__all__ = ["main"]
