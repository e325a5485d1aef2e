"""Write the generated pages of docs/reference, and the manual pages in docs/man: `python tests/manual/write_docs.py`.

They are made from the program itself and from the tables in fixtures/reference.py. test_docs.py compares the files with
what this module would write.
"""

import copy
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import click  # noqa: E402

from archiver import model  # noqa: E402
from archiver.cli.config.setting_options import SettingOption  # noqa: E402
from archiver.cli.entry import archiver  # noqa: E402
from archiver.cli.options import HELP_WIDTH  # noqa: E402
from archiver.collection.url_log import JSON_FIELDS  # noqa: E402
from archiver.config.event_settings import DATA_FIELDS, EVENT_FIELDS, EventKind  # noqa: E402
from archiver.config.option_types import BOOLEAN  # noqa: E402
from archiver.config.presets import PRESETS, SETS, Preset  # noqa: E402
from archiver.config.settings import TITLES, Settings, every_setting, key_of  # noqa: E402
from archiver.config.toml import toml_value  # noqa: E402
from archiver.errors import Failure  # noqa: E402
from archiver.model import ExitCode  # noqa: E402
from archiver.tools.metrics import exposition  # noqa: E402
from archiver.tools.report import changes  # noqa: E402
from archiver.tools.report.files import OF_COMMANDS, TABLES  # noqa: E402
from archiver.tools.report.tables import TITLES as TABLE_TITLES  # noqa: E402
from archiver.tools.verify.findings import CODES  # noqa: E402
from fixtures import reference  # noqa: E402
from fixtures.command_definitions import COMMANDS  # noqa: E402
from fixtures.man_pages import man_pages  # noqa: E402

DOCS = ROOT / "docs" / "reference"
MAN = ROOT / "docs" / "man"


def commands_page() -> str:
    """Return each command with its help; options that are settings are left to the page of settings."""
    lines = [
        "# Commands",
        "",
        "The output of `--help`. Results go to stdout and messages to stderr, so you can pipe any command.",
        "The [exit code](exit-codes.md) says how a command ended. `crawl`, `resume` and `recrawl` also take every",
        "[setting](settings.md) as an option.",
        "",
        "## archiver",
        "",
        *_help(archiver, "archiver"),
    ]
    for name, command in COMMANDS.items():
        lines += ["", f"## archiver {name}", "", *_help(_without_settings(command), f"archiver {name}")]
    return "\n".join(lines) + "\n"


def _without_settings(command: click.Command) -> click.Command:
    """Return *command* with its own options only."""
    shorter = copy.copy(command)
    shorter.params = [param for param in command.params if not isinstance(param, SettingOption)]
    return shorter


def _help(command: click.Command, name: str) -> list[str]:
    context = click.Context(command, info_name=name, **{**command.context_settings, "terminal_width": HELP_WIDTH})
    return ["```text", *(line.rstrip() for line in command.get_help(context).splitlines()), "```"]


def settings_page() -> str:
    """Return each setting with its option, possible values, default and help."""
    lines = [
        "# Settings",
        "",
        "Every setting is an option of `archiver crawl`, `archiver resume` and `archiver recrawl`, and a key of",
        "`crawl.toml`. Options override the settings file; the file overrides the defaults. The settings file is",
        "`DIR/crawl.toml`, or for `crawl` the one that you give with `--config FILE`.",
        "",
        "The settings in force are written to `DIR/crawl.toml`, each below its help. You can edit that file between",
        "two runs. An unknown key or a bad value is refused with its line number.",
        "",
        '`seeds` is also a key: `seeds = ["https://example.org/"]`. Seeds that you give as arguments or with',
        "`--seeds FILE` replace it.",
    ]
    chapter = ""
    for name, entry in every_setting():
        if name != chapter:
            chapter = name
            lines += ["", f"## {TITLES[name]}", "", f"{type(getattr(Settings(), name)).__doc__}"]
        kind, key, many = entry.metadata["kind"], key_of(entry), entry.metadata["many"]
        if not entry.metadata["option"]:
            lines += [
                "",
                f"### `{key}`",
                "",
                entry.metadata["help"],
                "",
                f"- in crawl.toml: a table `[[{key}]]` for each",
            ]
            continue
        option = f"--{key} / --no-{key}" if kind is BOOLEAN else f"--{key} {kind.metavar}"
        default = toml_value([] if many else kind.write(entry.default))
        lines += [
            "",
            f"### `{key}`",
            "",
            entry.metadata["help"],
            "",
            f"- option: `{option}`" + (" (repeatable)" if many else ""),
            f"- in crawl.toml: {'a list; each item is ' if many else ''}{kind.right}",
            f"- default: `{key} = {default}`",
        ]
        if entry.metadata["live"]:
            lines.append("- you can change it while the crawl runs: [`archiver set`](commands.md#archiver-set)")
    return "\n".join(lines) + "\n"


def exit_codes() -> Iterator[tuple[ExitCode, str]]:
    """Yield each exit code with its comment in the code."""
    said = dict(re.findall(r"^    ([A-Z_]+) = \d+  # (.+)$", inspect.getsource(ExitCode), re.MULTILINE))
    for code in ExitCode:
        yield code, said[code.name]


def exit_codes_page() -> str:
    """Return the exit codes."""
    rows = [(str(int(code)), code.name, f"{text[0].upper()}{text[1:]}.") for code, text in exit_codes()]
    return _page(
        "Exit codes",
        "A command prints one line on stderr when something goes wrong. Only code 1 comes with a traceback: report it,",
        "please.",
        "",
        *_table(("code", "name", "meaning"), rows),
        "",
        "After **4** and **5** the archive is complete as far as the crawl went. You can replay, verify and resume it.",
        "A script may call `archiver resume DIR` as long as it exits with 4 or 5.",
        "",
        "After **3** everything committed is safe. Free disk space or make the path writable, then run",
        "`archiver resume DIR`.",
        "",
        "**6** means that every seed failed: an error status, a challenge page, or no response. Received responses are",
        "archived all the same. If only some seeds fail, or redirect to something that failed, the code is 0 and the",
        "[verdict](reports.md#the-verdict) names them.",
        "",
        "**8** replaces 0 when you set `--strict` and a seed failed, a page of the site answered 4xx or 5xx or",
        "not at all or was truncated, a site refused us, or URLs are held as a suspected trap.",
        "",
        "If URLs wait on a host that [refuses us](../how-to/stay-polite.md#a-site-refuses), the code is 0 and the",
        "verdict names the host. Wait some hours, then go on slowly.",
        "",
        "`archiver status DIR --check` exits with **0** if a process of this machine runs the crawl, **4** if none",
        "does, and **7** if it hangs. A crawl that waits or is paused runs.",
    )


def directory_page() -> str:
    """Return what each file and folder of a collection is."""
    rows = [(f"`{place.path}`", place.holds, place.advice) for place in reference.PLACES]
    return _page(
        "The directory of a crawl",
        "`archiver crawl` writes everything into one directory DIR: the one that you name with `-o`, or",
        "`collections/HOST` after the host of the first seed. DIR is a pywb collection.",
        "",
        *_table(("path", "content", "what you may do"), rows),
        "",
        "Only `archive/` is needed. `archiver rebuild DIR` makes the rest again from it. URLs without a response and",
        "URLs that robots.txt forbids are in no WARC file, so the crawl tries them again.",
        "",
        "WARC files are named `PREFIX-YYYYMMDDhhmmssmmm-SERIAL-HOST.warc.gz`. The [records page](records.md) describes",
        "their content, the [reports page](reports.md) the files in `reports/` and `logs/`.",
    )


def reports_page() -> str:
    """Return the reports, their columns, and the fields of crawl.log."""
    heads = {name: head for name, (head, _) in TABLES.items()} | {
        "changes": changes.COLUMNS,
        **OF_COMMANDS,
    }
    tables = [(f"`{name}.tsv`", ", ".join(map(str, heads[name])), TABLE_TITLES[name][1]) for name in heads]
    failures = [(f"`{each.value}`", str(each.heritrix_code), reference.FAILURES[each]) for each in Failure]
    return _page(
        "Logs and reports",
        "When a run ends, it writes `DIR/reports/`. `archiver report DIR` prints the same at any time, also during a",
        "crawl, and `archiver status DIR` prints the summary.",
        "",
        *_definitions("file", reference.REPORTS),
        "",
        "## The page",
        "",
        "![The beginning of report.html](report.png)",
        "",
        "`report.html` begins with the result in one sentence. Then come, where there are any: seeds that failed, what",
        "has changed since the earlier crawls, findings with the command for each, failures by reason, and broken",
        "pages with the pages that link to them. Figures, plots and tables follow. The text and the JSON begin in the",
        "same way; the keys of the JSON are `headline`, `failed_seeds`, `changes`, `verdict`, `problems` and",
        "`broken_pages`.",
        "",
        "Commands on the page can be copied. They name the crawl by its directory, so run them in the folder that",
        "holds the directory, or that holds `collections/`.",
        "",
        "```sh",
        "archiver report DIR --host img.example.org        # one host",
        "archiver report DIR --seed https://example.org/   # what was found from one seed",
        "archiver report DIR --since 2026-10               # changes since the crawl of October, not since the newest",
        "```",
        "",
        "crawl.db keeps only the first link to a broken page. More are read from the records of the first 5,000 pages,",
        "at most 10 for each broken page.",
        "",
        "## The verdict",
        "",
        "The last lines of a run say how complete the archive is, and which command to run next:",
        "",
        *_definitions("topic", reference.VERDICT),
        "",
        "robots.txt and its redirects do not count as URLs of the site, nor for `--max-urls`.",
        "",
        "## Tables",
        "",
        "The `.tsv` files are tab-separated with a header line and hold every row. Control characters are written as",
        "escapes such as `\\x09`.",
        "",
        *_table(("file", "columns", "content"), tables),
        "",
        "## Changes",
        "",
        "The values of `change` in `changes.tsv`. Earlier errors that may pass do not count: the newest capture with a",
        "status below 400, 404 or 410 is compared.",
        "",
        *_definitions("what", reference.CHANGES),
        "",
        "## Heritrix's reports",
        "",
        "In the columns and the order of Heritrix. A URL counts once per capture; bytes are those received.",
        "",
        *_table(("file", "columns"), ((f"`{name}`", text) for name, text in reference.HERITRIX_REPORTS)),
        "",
        "## crawl.log",
        "",
        "One line per visit with twelve fields, separated by spaces. Inside a field, a space is written as `%20`. The",
        "log is synced at the end of a run, so a crash may take its last lines.",
        "",
        *_table(("field", "content"), reference.LOG_FIELDS),
        "",
        "### Annotations",
        "",
        *_definitions("annotation", reference.ANNOTATIONS),
        "",
        "[Faults and remarks](records.md#faults) of a response are annotations too.",
        "",
        "### Hops",
        "",
        *_definitions("letter", reference.HOPS),
        "",
        "### Failures",
        "",
        *_table(("reason", "status in crawl.log", "meaning"), failures),
    )


def records_page() -> str:
    """Return the WARC records, their fields, and the words in the metadata records."""
    fields = [(f"`{name}`", where, text) for name, (where, text) in reference.RECORD_FIELDS.items()]
    return _page(
        "WARC records",
        "Files are WARC 1.1 with one gzip member per record. [Fidelity](../explanation/fidelity.md) says why.",
        "",
        *_table(("record", "block", "where"), ((f"`{name}`", *rest) for name, *rest in reference.RECORDS)),
        "",
        "## Header fields",
        "",
        *_table(("field", "records", "content"), fields),
        "",
        "## warcinfo",
        "",
        "Empty values are left out.",
        "",
        *_definitions("line", reference.WARCINFO_FIELDS),
        "",
        "## Metadata of a visit",
        "",
        "Lines of `application/warc-fields`. The first names are Heritrix's. `archiver rebuild` reads these records.",
        "After a 304 they are in the header of the revisit instead, without those that have the usual value.",
        "",
        *_definitions("line", reference.VISIT_FIELDS),
        "",
        "## Faults",
        "",
        "What is malformed in a response. Every response is archived whatever its faults.",
        "",
        *_definitions("fault", reference.FAULTS),
        "",
        "## Remarks",
        "",
        *_definitions("remark", reference.REMARKS),
        "",
        "## Files of the crawl",
        "",
        "At the end of a run, the file `…-meta.warc.gz` stores the crawl's own files as records with the URI",
        "`metadata://archiver.invalid/crawl/` and the name:",
        "",
        *_table(
            ("record", "name", "content"), ((kind, f"`{name}`", text) for kind, name, text in reference.CRAWL_FILES)
        ),
    )


def index_page() -> str:
    """Return the fields of an index line, and where it differs from cdxj-indexer."""
    return _page(
        "The index",
        "`indexes/index.cdxj` is sorted bytewise. A line is a SURT key as pywb uses it, a 14-digit date and a JSON",
        "object. There is a line for each response, revisit and resource record, and for metadata records that are not",
        "`application/warc-fields`. A crawl and `archiver index` write the same lines. The key of an answer to POST or",
        "PUT holds the method and body of its request, as `cdxj-indexer -p` writes it.",
        "",
        *_definitions("field", reference.INDEX_FIELDS),
        "",
        "## Differences to cdxj-indexer 1.5",
        "",
        *_table(("record", "here", "cdxj-indexer"), reference.INDEX_DIFFERENCES),
    )


def verify_page() -> str:
    """Return the codes that verify prints."""
    rows = [(f"`{word}`", code.severity.value, code.meaning) for word, code in CODES.items()]
    return _page(
        "Verify codes",
        "The codes that `archiver verify` prints. A *fault* is wrong and makes the command exit with 7. A *warning* is",
        "a weakness of many writers, or a breach of a recommendation. A *note* is worth knowing. The codes are stable.",
        "At most 100 findings of one code are listed per file; all are counted.",
        "",
        *_table(("code", "severity", "meaning"), rows),
        "",
        "## JSON",
        "",
        "`archiver verify --json` prints one object:",
        "",
        *_definitions("key", reference.VERIFY_JSON),
    )


def exclude_lists_page() -> str:
    """Return the lists that `without` takes by name, and the presets of `drop-query`."""
    presets = ((f"`{name}`", preset.why, _parameters(preset)) for name, preset in PRESETS.items())
    lines = [
        "`--without wikis,forums` leaves out all URLs that the patterns of these lists match. A pattern may match",
        "anywhere in the URL, in upper or lower case.",
    ]
    for name, listed in SETS.items():
        rows = ((entry.what, f"`{entry.pattern}`") for entry in listed.entries)
        lines += ["", f"## {name}", "", listed.why, "", *_table(("URLs", "pattern"), rows)]
    lines += ["", "## Presets of drop-query", "", *_table(("preset", "drops", "names"), presets)]
    return _page("Exclude lists and query presets", *lines)


TERMS = {
    "adopted crawl": (
        "a crawl that another program began and `archiver adopt` took over, with its archives and its queue"
    ),
    "canonical URL": "the spelling under which a URL is stored and compared (WHATWG URL Standard, no fragment)",
    "CDXJ": "the index format that pywb reads: one sorted line per capture",
    "frontier": "the URLs of a crawl and their states, in `crawl.db`",
    "held": "not fetched because a trap is suspected and its budget is spent; `archiver retry DIR --held` fetches it",
    "hop path": "Heritrix's letters for the way from a seed: L link, E embed, X guess, R redirect, P robots.txt",
    "payload digest": "the digest of a response's body as it was sent, before any content coding is undone",
    "requisite": "a resource that a page needs to look right: image, style sheet, script, font",
    "seed": "a URL that you gave; scope is computed from seeds",
    "SURT": "a URL with its host name reversed, so that sorting keeps a domain together",
    "via": "the URL on which a link was found first",
}


def glossary_page() -> str:
    """Return the terms, the values of `archiver.model`, and the tables of crawl.db, a line each."""
    values = (
        (f"`{name}`", str(value.__doc__).partition("\n")[0])
        for name, value in sorted(vars(model).items())
        if isinstance(value, type) and value.__module__ == model.__name__
    )
    schema = (ROOT / "archiver" / "frontier" / "schema.sql").read_text(encoding="utf-8")
    tables = re.findall(r"^CREATE TABLE (\w+) \( *-- (.*)$", schema, re.MULTILINE)
    return _page(
        "Glossary",
        *_table(("term", "meaning"), TERMS.items()),
        *("", "## Values of the code (`archiver/model.py`)", ""),
        *_table(("value", "meaning"), values),
        *("", "## Tables of crawl.db", ""),
        *_table(("table", "rows"), ((f"`{name}`", text) for name, text in sorted(tables))),
    )


def _parameters(preset: Preset) -> str:
    return ", ".join(f"`{name}`" for name in preset.names) or f"`{preset.path}`"


def _page(title: str, *lines: str) -> str:
    return "\n".join((f"# {title}", "", *lines, ""))


def _definitions(name: str, meanings: dict[str, str]) -> Iterator[str]:
    return _table((name, "meaning"), ((f"`{word}`", text) for word, text in meanings.items()))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


SUFFIXES = {"counter": "_total", "info": "_info"}  # of samples, by the type of their metric


def metrics_page() -> str:
    """Return each metric with its type, labels and help."""
    rows = [
        (f"`{name}{SUFFIXES.get(kind.type, '')}`", kind.type, ", ".join(map("`{}`".format, kind.labels)), kind.help)
        for name, kind in exposition.METRICS.items()
    ]
    return _page(
        "Metrics",
        "`--metrics PORT` serves them while a crawl runs; see [how to](../how-to/watch-with-prometheus.md).",
        "",
        *_table(("metric", "type", "labels", "meaning"), [*rows, reference.METRICS_OF_PROCESS]),
        "",
        *_definitions("label", reference.METRIC_LABELS),
        "",
        *reference.METRICS_END,
    )


def events_page() -> str:
    """Return the events and their fields."""
    lines = [
        "`--on EVENT COMMAND|URL` reports these events as JSON.",
        "[Act on events](../how-to/act-on-events.md) shows receivers.",
        "",
        *_definitions("field", dict(EVENT_FIELDS)),
    ]
    for kind in EventKind:
        lines += [
            "",
            f"## {kind}",
            "",
            reference.EVENTS[kind],
            "",
            *_definitions("field of data", dict(DATA_FIELDS[kind])),
        ]
    headers = (
        "Each POST has `webhook-id` (the `id`), `webhook-timestamp` (seconds since the epoch, of this try) and, with",
        "`--on-secret`, `webhook-signature`: `v1,` and the HMAC-SHA256 of `ID.TIMESTAMP.BODY` in base64.",
    )
    return _page("Events", *lines, "", "## Headers", "", *headers)


def url_log_page() -> str:
    """Return the fields of the JSON log."""
    return _page(
        "URL log",
        "`--log-to stderr` or `--log-to FILE` writes one JSON object a line for each line of crawl.log, in ASCII.",
        "`--log-format heritrix` writes the lines of crawl.log instead. Times are in UTC.",
        "",
        *_definitions("field", dict(JSON_FIELDS)),
    )


PAGES = {
    "events.md": events_page,
    "url-log.md": url_log_page,
    "commands.md": commands_page,
    "settings.md": settings_page,
    "exit-codes.md": exit_codes_page,
    "directory.md": directory_page,
    "reports.md": reports_page,
    "records.md": records_page,
    "index.md": index_page,
    "verify.md": verify_page,
    "exclude-lists.md": exclude_lists_page,
    "glossary.md": glossary_page,
    "metrics.md": metrics_page,
}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    for name, text in man_pages().items():
        (MAN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
