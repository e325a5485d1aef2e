"""archiver: archives a website into WARC files, loses no byte and hurts no site.

Begin with `model` (the values that travel through a crawl), then `crawl.engine` (what happens to one URL).
docs/architecture.md is the map; docs/reading-order.md names the files to read before a change.

`model`, `url`, `errors`, `storage`, `clock`, `humanize`: values, URLs, errors, durable files, time, text for people.
`config`: every setting.  `http`, `warc`: message and record formats.  `policy`: decisions, pure.  `extract`: links.
`fetch`: one exchange with a server.  `frontier`: URL queue and seen-set in SQLite.  `collection`: the directory.
`crawl`: engine, commit, recovery.  `tools`: verify, pack, import, export, report, replay.  `cli`: the commands.
"""

__version__ = "0.1.0"
