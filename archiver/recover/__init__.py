"""Recovery: what a crash left behind the last commit becomes part of the archive, or is set aside.

The WARC is the write-ahead log. `visits` reads the whole visits of a file, and the gaps between them; `recovery`
settles what lies behind the committed length; `rebuild` makes a lost database anew by reading from offset 0; `damage`
looks whether finished files are what they were, `payloads` what earlier crawls hold; `aside` keeps what a repair
takes out; `turn` sets a crawl aside for the next one of the same collection. Every step can be cut by another crash and
done again, and nothing is ever deleted.
"""

from archiver.recover.aside import replace_database
from archiver.recover.payloads import held_before
from archiver.recover.rebuild import Rebuilding, Rebuilt, Tell, own_files, settings_text
from archiver.recover.recovery import Recovered, Recovery

__all__ = [
    "Rebuilding",
    "Rebuilt",
    "Recovered",
    "Recovery",
    "Tell",
    "held_before",
    "own_files",
    "replace_database",
    "settings_text",
]
