"""Export an archive as files with links to each other, for a browser without a server.

`plan` chooses a capture for each URL and follows redirects. `filenames` gives each URL a file name that is safe
everywhere. `rewrite_links` decides what replaces a reference; with `rewrite_html` it changes documents and keeps every
other byte. `write` writes the files and the start page, and `target` knows which files in the folder belong to the
export.
"""

from archiver.tools.export.plan import ExportPlan, plan_export
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
    "plan_export",
    "write_export",
]
