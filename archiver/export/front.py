"""The page at the top of an export: where a person begins. Pure."""

from collections.abc import Iterable, Iterator
from html import escape

from archiver import url
from archiver.export.links import Site, relative
from archiver.export.names import FRONT
from archiver.export.plan import File, Plan

_MOST_PAGES = 1000  # of one host
_MOST_HOSTS = 1000

_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "li{overflow-wrap:anywhere}small{opacity:.7}"
)


def page(plan: Plan, seeds: Iterable[str], site: Site) -> str:
    """The page, which leads to *seeds*, and to the pages of each host."""
    hosts: dict[str, list[File]] = {}
    for file in plan.files:
        hosts.setdefault(url.authority(file.url), []).append(file)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Archive</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Archive</h1>",
        f"<p>{len(plan.files)} files of {len(hosts)} host{'s' * (len(hosts) != 1)}</p>",
        *_list("Seeds", ((seed, site.file(seed), "") for seed in seeds)),
    ]
    for host, files in list(hosts.items())[:_MOST_HOSTS]:
        pages = [file for file in files if file.page] or files
        lines += _list(
            f"{host} ({len(files)})", ((file.url, file.path, file.timestamp) for file in pages[:_MOST_PAGES])
        )
        if len(pages) > _MOST_PAGES:
            lines.append(f"<p>and {len(pages) - _MOST_PAGES} more</p>")
    if len(hosts) > _MOST_HOSTS:
        lines.append(f"<p>and {len(hosts) - _MOST_HOSTS} more hosts</p>")
    return "\n".join((*lines, "</body></html>", ""))


def _list(title: str, entries: Iterable[tuple[str, str | None, str]]) -> Iterator[str]:
    items = [
        f'<li><a href="{relative(FRONT, file)}">{escape(address)}</a> <small>{escape(_day(date))}</small></li>'
        for address, file, date in entries
        if file is not None
    ]
    if items:
        yield f"<h2>{escape(title)}</h2>"
        yield f"<ul>{''.join(items)}</ul>"


def _day(timestamp: str) -> str:
    return "-".join(filter(None, (timestamp[:4], timestamp[4:6], timestamp[6:8])))
