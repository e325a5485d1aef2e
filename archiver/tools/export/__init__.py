"""An archive as files on a disk, with links that lead from one to the other: for a browser without any server.

The parts: `plan` chooses a capture for each URL and follows redirects, `names` gives each a file name that is safe
everywhere, `links` says what stands in place of a reference, `markup` and `sheets` put it there and leave every other
byte as it was (`tags` and `views` tell where), `writing` writes the files, `front` the page that leads to them, and
`target` knows which files in the folder are ours.
"""

from archiver.tools.export.plan import ExportPlan
from archiver.tools.export.plan import plan_export as planned
from archiver.tools.export.rewrite_links import ExportedSite
from archiver.tools.export.target import ExportFolder, is_unfinished
from archiver.tools.export.write import ExportCounts, finish, write_export

__all__ = [
    "ExportCounts",
    "ExportFolder",
    "ExportPlan",
    "ExportedSite",
    "finish",
    "is_unfinished",
    "planned",
    "write_export",
]
