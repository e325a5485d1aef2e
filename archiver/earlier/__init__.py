"""Earlier crawls of the same collection: which there are, what they have of a URL, and how it is asked for again.

Each lies in a folder of its own below DIR/crawls, with its database; the WARC files of all lie together in
DIR/archive. `rounds` finds them, `memory` answers what they hold, `validators` makes conditions of a stored head.
Nothing here writes.
"""

from archiver.earlier.memory import Memory, Version, remembered, stored_answer, stored_links
from archiver.earlier.rounds import files_of, rounds

__all__ = ["Memory", "Version", "files_of", "remembered", "rounds", "stored_answer", "stored_links"]
