"""An archive as files on a disk, with links that lead from one to the other: for a browser without any server.

The parts: `plan` chooses a capture for each URL and follows redirects, `names` gives each a file name that is safe
everywhere, `links` says what stands in place of a reference, `markup` and `sheets` put it there and leave every other
byte as it was (`tags` and `views` tell where), `writing` writes the files, `front` the page that leads to them, and
`target` knows which files in the folder are ours.
"""

from archiver.export.links import Site
from archiver.export.plan import Plan
from archiver.export.plan import made as planned
from archiver.export.target import Target, is_unfinished
from archiver.export.writing import Tally, finish, write

__all__ = ["Plan", "Site", "Tally", "Target", "finish", "is_unfinished", "planned", "write"]
