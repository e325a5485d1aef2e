"""The report as one HTML page that needs nothing else: no network, no other file, and no script to be read.

Every name in it comes from the network or from a file: each goes through `_shown`, which leaves nothing that a browser
would obey. Captured URLs are words, not links, for a page that lies on a disk is no place to leave from by mistake. A
policy in its head forbids all that could be fetched, and every script but our own.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from archiver import __version__, humanize
from archiver.humanize import duration, printable, volume
from archiver.tools.report import plots
from archiver.tools.report.plots import ReportPlot
from archiver.tools.report.report import Cell, CrawlReport, ReportTable, is_number

ROWS = 200  # of each table; the JSON and the .tsv files have more
WIDTH = 400  # characters of a cell
_LONG = 40  # characters: a column that holds such cells is given room
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
)


def pieces(whole: CrawlReport) -> Iterator[str]:
    """The page, in pieces."""
    tables = [table for table in whole.tables if table.rows]
    name = whole.directory
    yield _head(f"Crawl report: {name}")
    yield f"<h1>{_shown(name)}</h1>\n"
    yield f'<p class="soft">written {_moment(whole.written)}</p>\n'
    yield _outcome(whole)
    for table in tables[:1]:  # the verdict
        yield from _table(table)
    links = "".join(f'<a href="#{_shown(table.name)}">{_shown(table.title)}</a> ' for table in tables)
    yield f'<nav><a href="#asked">What was asked for</a> {links}</nav>\n'
    yield '<div class="plots">\n'
    yield from map(_figure, plots.drawn(whole.course))
    yield "</div>\n"
    yield _asked(whole)
    for table in tables[1:]:
        yield from _table(table)
    yield (
        f"<footer>Written by archiver {_shown(__version__)}. Times are UTC; bytes are those that crossed the wire. "
        "reports/report.json and the .tsv files beside it have more rows, and every digit.</footer>\n"
    )
    yield f"<script>{_part('page.js')}</script>\n</body>\n</html>\n"


def _part(name: str) -> str:
    return files("archiver.tools.report").joinpath(name).read_text("utf-8")


def _head(title: str) -> str:
    script = b64encode(hashlib.sha256(_part("page.js").encode()).digest()).decode()
    policy = _POLICY.format(script=script)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        '<meta name="referrer" content="no-referrer"/>\n'
        f"<title>{_shown(title)}</title>\n<style>{_part('page.css')}</style>\n</head>\n<body>\n"
    )


def _shown(text: str, width: int = 2000) -> str:
    return escape(printable(text, width))


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC" if seconds else "none"


def _outcome(whole: CrawlReport) -> str:
    """How it ended, and the numbers that a person asks for first."""
    totals, run = whole.summary.totals, whole.summary.run
    cards: list[tuple[str, str, str]] = [
        ("URLs archived", f"{totals.archived:,}", ""),
        ("failed", f"{totals.failed:,}", "bad" if totals.failed else ""),
        ("excluded", f"{totals.excluded:,}", ""),
        ("waiting", f"{totals.waiting:,}", ""),
        ("held", f"{totals.held:,}", "bad" if totals.held else ""),
        ("captures", f"{totals.captures:,}", ""),
        ("received", volume(totals.received), ""),
        (f"in {totals.warcs:,} {humanize.plural(totals.warcs, 'WARC file')}", volume(totals.stored), ""),
        (humanize.plural(whole.hosts, "host"), f"{whole.hosts:,}", ""),
        ("first to last capture", duration(totals.last - totals.first) if totals.captures else "none", ""),
    ]
    if run is not None:
        cards.append((f"last run, {run.visits:,} visits at {run.rate:.1f}/s", duration(run.elapsed), ""))
    listed = "".join(
        f"<li{f' class={mood!r}' if mood else ''}><b>{_shown(value)}</b> <span>{_shown(name)}</span></li>"
        for name, value, mood in cards
    )
    ending = f"<p>Outcome: <b>{_shown(whole.summary.ending)}</b></p>\n" if whole.summary.ending else ""
    return f'{ending}<ul class="cards">{listed}</ul>\n'


def _figure(plot: ReportPlot) -> str:
    entries = "".join(f'<li><i class="{colour}"></i>{_shown(name)}</li>' for colour, name in plot.legend)
    legend = f'<ul class="legend">{entries}</ul>' if len(plot.legend) > 1 else ""
    caption = f"<figcaption><h3>{_shown(plot.title)}</h3><p>{_shown(plot.note)}</p></figcaption>"
    return f"<figure>{caption}{plot.svg}{legend}</figure>\n"


def _asked(whole: CrawlReport) -> str:
    asked, totals = whole.asked, whole.summary.totals
    entries = [("seeds" if place == 0 else "", seed) for place, seed in enumerate(asked.seeds)]
    if asked.more_seeds:
        entries.append(("", f"and {asked.more_seeds:,} more"))
    entries += [("first capture", _moment(totals.first)), ("last capture", _moment(totals.last))]
    entries += asked.settings or ([("settings", asked.trouble or "the defaults")])
    listed = "".join(f"<dt>{_shown(key)}</dt><dd>{_shown(value)}</dd>" for key, value in entries)
    note = "<p>Seeds, dates, and the settings that are not the defaults.</p>"
    return f'<section id="asked"><h2>What was asked for</h2>\n{note}<dl>{listed}</dl></section>\n'


def _table(table: ReportTable) -> Iterator[str]:
    shown = table.rows[:ROWS]
    kinds = [_kind(name, [row[place] for row in shown]) for place, name in enumerate(table.head)]
    note = f"<p>{_shown(table.note)}</p>" if table.note else ""
    yield f'<section id="{_shown(table.name)}"><h2>{_shown(table.title)}</h2>\n{note}<div class="wide">'
    yield "<table><thead><tr>"
    for name, kind in zip(table.head, kinds, strict=True):
        mark = ' class="n"' if kind == "n" else ""
        yield f'<th{mark} scope="col">{_shown(name.replace("_", " "))}</th>'
    yield "</tr></thead>\n<tbody>\n"
    for row in shown:
        yield "<tr>" + "".join(map(_cell, table.head, kinds, row)) + "</tr>\n"
    yield "</tbody></table></div>\n"
    if left_out := len(table.rows) - len(shown) + table.left_out:
        yield f"<p>{left_out:,} more rows are left out here; reports/{_shown(table.name)}.tsv has them all.</p>\n"
    yield "</section>\n"


def _kind(name: str, cells: list[Cell]) -> str:
    """The class of a column: of numbers, of long words, of others."""
    if name != "note" and all(map(is_number, cells)):
        return "n"
    return "w" if any(len(str(cell)) > _LONG for cell in cells) else ""


def _cell(name: str, kind: str, cell: Cell) -> str:
    mark = f' class="{kind}"' if kind else ""
    if kind != "n":
        return f"<td{mark}>{_shown(str(cell), WIDTH)}</td>"
    if not isinstance(cell, int):
        return f'<td{mark} data-v="{_shown(str(cell))}">{_shown(str(cell))}</td>'
    words = volume(cell) if name == "bytes" or name.endswith("_bytes") else f"{cell:,}"
    return f'<td{mark} data-v="{cell}">{words}</td>'
