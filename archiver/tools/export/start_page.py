"""The start page of an export: its pages by title with their dates, seeds first, then host by host.

A long list is split into several files, which link to each other. A small script adds a filter over all of them: it
loads the list as a script, because a browser reads no other file for a page from disk. Titles and URLs come from an
archive; they are escaped here, and are text in the script.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby, islice

from archiver import url
from archiver.humanize import count, printable
from archiver.tools.export.plan import DATA, MOST_PARTS, ExportPlan, PlannedFile, part_name
from archiver.tools.export.rewrite_links import ExportedSite, relative

ROWS = 1000  # in one file
MOST_FILTERED = 100_000  # pages that the filter knows
LONGEST = 300  # characters of a title or URL


@dataclass(frozen=True, slots=True)
class ExportedEntry:
    """A page on the list."""

    heading: str
    path: str
    title: str
    url: str
    date: str  # 14 digits, or ""


def start_pages(
    plan: ExportPlan, seeds: Mapping[str, str], site: ExportedSite, titles: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files, the start page last. A title in *seeds* is shown before the page's."""
    entries = list(islice(_entries(plan, seeds, site, titles), ROWS * MOST_PARTS))
    rows = [[each.path, each.title, each.url, _day(each.date)] for each in entries[:MOST_FILTERED]]
    yield DATA, f"archive({json.dumps(rows)})\n".encode()
    hosts = len({url.authority(file.url) for file in plan.files})
    about = f"{count(sum(file.page for file in plan.files), 'page')} in {count(len(plan.files), 'file')} of "
    about += count(hosts, "host")
    parts = max(1, -(-len(entries) // ROWS))
    for number in range(parts, 0, -1):
        some = entries[(number - 1) * ROWS : number * ROWS]
        yield part_name(number), "".join(_part(about, some, number, parts)).encode()


def _entries(
    plan: ExportPlan, seeds: Mapping[str, str], site: ExportedSite, titles: Mapping[str, str]
) -> Iterator[ExportedEntry]:
    planned = {file.path: file for file in plan.files}
    opened = set()
    for seed, title in seeds.items():
        path = site.file(seed)
        if path is not None and path not in opened:
            opened.add(path)
            file = planned.get(path)
            yield _entry("Seeds", seed, path, file, title or titles.get(file.url if file else seed, ""))
    hosts: dict[str, list[PlannedFile]] = {}
    for file in plan.files:
        hosts.setdefault(url.authority(file.url), []).append(file)
    for host, all_files in hosts.items():
        for file in [file for file in all_files if file.page] or all_files:
            if file.path not in opened:
                yield _entry(host, file.url, file.path, file, titles.get(file.url, ""))


def _entry(heading: str, address: str, path: str, file: PlannedFile | None, title: str) -> ExportedEntry:
    reference = relative(part_name(1), path)
    return ExportedEntry(
        heading, reference, printable(title, LONGEST), printable(address, LONGEST), file.timestamp if file else ""
    )


def _part(about: str, entries: list[ExportedEntry], number: int, parts: int) -> Iterator[str]:
    folder = files("archiver.tools")
    style, script = (folder.joinpath(name).read_text("utf-8") for name in ("start_page.css", "export/start_page.js"))
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Archive</title>'
        f"<style>{style}</style></head>\n<body><header><h1>Archive</h1><p>{about}</p></header>\n<main>"
        '<div id="filter"></div><div id="found" role="status"></div><div id="list">\n'
    )
    for heading, some in groupby(entries, lambda entry: entry.heading):
        yield f'<h2>{escape(printable(heading, LONGEST))}</h2><ul class="pages">\n'
        yield from map(_row, some)
        yield "</ul>\n"
    if parts > 1:
        places = {"First": 1, "Previous": number - 1, "Next": number + 1, "Last": parts}
        links = [
            f'<a href="{part_name(place)}">{name}</a>'
            for name, place in places.items()
            if 1 <= place <= parts and place != number
        ]
        yield f'<nav aria-label="Parts of the list">Part {number:,} of {parts:,} {" ".join(links)}</nav>\n'
    yield f'</div></main><script data-pages="{DATA}">{script}</script></body></html>\n'


def _row(entry: ExportedEntry) -> str:
    shown = f'<span class="url">{escape(entry.url)}</span>' if entry.title else ""
    date = f"<time>{escape(_day(entry.date))}</time>" if entry.date else ""
    title = escape(entry.title or entry.url)
    return f'<li><a class="title" href="{escape(entry.path)}">{title}</a>{shown}<div>{date}</div></li>\n'


def _day(timestamp: str) -> str:
    return "-".join(filter(None, (timestamp[:4], timestamp[4:6], timestamp[6:8])))
