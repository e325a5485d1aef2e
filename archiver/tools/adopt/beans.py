"""Translates crawler-beans.cxml of Heritrix: the plain properties of its beans, and its lists of patterns.

This is no XML parser: it reads tags in order, and no entity or file that they name. What it does not know it names.
Source: the profile crawler-beans.cxml of Heritrix 3.
"""

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from archiver.config.expressions import compiled
from archiver.tools.adopt.source import SettingsTranslation, read_text, whole_number

MOST_TAGS = 100_000
LARGEST = 4 << 20  # bytes of a configuration; real ones have some dozens of kilobytes
OVERRIDES = "simpleOverrides"
LONGEST_VALUE = 64 << 10  # characters
DEEPEST = 100  # open tags

_TAG = compiled(r"<(/?)([A-Za-z][A-Za-z0-9:_-]{0,60})((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>")
_COMMENT = compiled(r"<!--(?:[^-]++|-(?!->))*+(?:-->)?")
_ATTRIBUTE = re.compile(r"([A-Za-z:_-]{1,60})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_PLACEHOLDERS = ("ENTER_AN_URL_WITH_YOUR_CONTACT_INFO", "[see override above]")  # of the profile
_IN_EFFECT = {  # rule: key of crawl.toml and Heritrix's value, which holds if the configuration does not set another
    "TooManyHopsDecideRule": ("max-hops", 20),
    "PathologicalPathDecideRule": ("max-repeats", 2),
    "TooManyPathSegmentsDecideRule": ("max-segments", 20),
}

_DIRECT = {  # bean or class, and property: key of crawl.toml
    "metadata.operatorContactUrl": "contact",
    "metadata.operator": "operator",
    "metadata.description": "description",
    "TooManyHopsDecideRule.maxHops": "max-hops",
    "TransclusionDecideRule.maxTransHops": "requisite-hops",
    "PathologicalPathDecideRule.maxRepetitions": "max-repeats",
    "TooManyPathSegmentsDecideRule.maxPathDepth": "max-segments",
    "fetchHttp.maxLengthBytes": "max-response-size",
    "frontier.maxRetries": "retries",
    "crawlController.maxToeThreads": "concurrency",
    "crawlLimiter.maxBytesDownload": "max-bytes",
    "crawlLimiter.maxDocumentsDownload": "max-urls",
    "crawlLimiter.maxTimeSeconds": "max-time",
    "disposition.respectCrawlDelayUpToSeconds": "crawl-delay-cap",
    "warcWriter.prefix": "warc-prefix",
    "warcWriter.maxFileSizeBytes": "warc-size",
}
_TEXTS = frozenset(("contact", "operator", "description", "warc-prefix"))
_POLICIES = {"obey": "obey", "classic": "obey", "robotsTxtOnly": "obey", "ignore": "ignore"}
_PATTERNS = frozenset(("MatchesListRegexDecideRule", "MatchesRegexDecideRule"))
_SEEDS = frozenset(("seeds.textSource.value", "ConfigString.value"))
_OWN_WAY = frozenset(  # of the same use here, under another name or without a setting
    (
        *("metadata.jobName", "SurtPrefixedDecideRule.decision", "SurtPrefixedDecideRule.surtsDumpFile"),
        *("MatchesListRegexDecideRule.decision", "MatchesRegexDecideRule.decision", "MatchesRegexDecideRule.regex"),
        *("warcWriter.compress", "SurtPrefixedDecideRule.seedsAsSurtPrefixes", "frontier.recoveryLogEnabled"),
    )
)


class BeanProperty(NamedTuple):
    """A property of a bean with its values; `bean` is its id, or the last part of its class if it has none."""

    bean: str
    name: str
    values: tuple[str, ...]
    number: int  # of the bean, in the order of the file

    @property
    def key(self) -> str:
        """Its name with that of the bean."""
        return f"{self.bean}.{self.name}"


def crawler_beans(path: Path, settings: SettingsTranslation) -> None:
    """Translate the configuration at *path* into *settings*."""
    text = without_comments(read_text(path, LARGEST))
    for rule, in_effect in _IN_EFFECT.items():
        if rule in text:
            settings.put(*in_effect, rule)
    found = sorted(properties(text), key=_overrides_others)
    accepting = {each.number for each in found if each.name == "decision" and each.values[0].upper() == "ACCEPT"}
    for each in found:
        value = each.values[0]
        shown = f"{each.key} = {value}"
        if key := _DIRECT.get(each.key):
            _direct(key, value, shown, settings)
        elif each.bean in _PATTERNS and each.name in ("regexList", "regex"):
            word = "include" if each.number in accepting else "exclude"
            for pattern in each.values:
                settings.put(word, f"^(?:{pattern})$", f"{each.key}: {pattern}")  # Heritrix compares whole URLs
        elif not _special(each, value, shown, settings) and each.key not in _OWN_WAY:
            settings.note(shown, "no setting here")
    settings.put("scope", "prefix", "seeds as SURT prefixes")


def defaults(settings: SettingsTranslation) -> None:
    """Put what Heritrix does without any configuration into *settings*: one request at a time, three seconds apart."""
    settings.put("host-concurrency", 1, "parallelQueues")
    settings.put("rate", "1/3", "minDelayMs")


def _overrides_others(each: BeanProperty) -> bool:
    """Return True for a property that replaces the one in its bean."""
    return each.number == 0


def _special(each: BeanProperty, value: str, shown: str, settings: SettingsTranslation) -> bool:
    """Translate a property in a way of its own; return False if it has none."""
    if each.key == "metadata.robotsPolicyName" and value in _POLICIES:
        settings.put("robots", _POLICIES[value], shown)
    elif each.key == "disposition.minDelayMs":
        if number := whole_number(value):
            settings.put("rate", f"1/{max(number, 1) / 1000:g}", shown)
    elif each.key in _SEEDS:
        for line in value.splitlines():
            if line.strip().startswith(("http:", "https:")):
                settings.seed(line.split()[0])
    else:
        return False
    return True


def _direct(key: str, value: str, shown: str, settings: SettingsTranslation) -> None:
    if value.startswith(_PLACEHOLDERS):
        return
    number = whole_number(value)
    if key in _TEXTS:
        if value:
            settings.put(key, value, shown)
    elif number is None:
        settings.note(shown, "not a whole number")
    elif number > 0 or key not in ("max-bytes", "max-urls", "max-time", "max-response-size"):
        settings.put(key, number, shown)


def properties(text: str) -> Iterator[BeanProperty]:
    """Yield the properties in the configuration *text*, which has no comments, and those that its overrides set."""
    reader = _BeanReader()
    end = 0  # of the latest tag
    for tag in _TAG.finditer(text):
        content = html.unescape(text[end : tag.start()]).strip()[:LONGEST_VALUE]
        end = tag.end()
        yield from reader.tag(tag, content)
        if reader.is_full:
            return


def without_comments(text: str) -> str:
    """Return *text* without its comments."""
    return _COMMENT.sub("", text)


class _BeanReader:
    """The beans and the property that are open at a place of the text."""

    def __init__(self) -> None:
        self._beans: list[tuple[str, int]] = []
        self._names: list[str] = []
        self._values: list[str] = []
        self._tags = 0

    @property
    def is_full(self) -> bool:
        """True if the text has more than a configuration has."""
        return len(self._beans) + len(self._names) > DEEPEST or self._tags > MOST_TAGS

    def tag(self, tag: re.Match[str], content: str) -> Iterator[BeanProperty]:
        """Yield the properties that end with *tag*, which follows the text *content*."""
        self._tags += 1
        if tag[1]:
            yield from self._closed(tag[2], content)
            return
        given = {found[1]: html.unescape(found[2] or found[3] or "") for found in _ATTRIBUTE.finditer(tag[3])}
        open_ = not tag[3].endswith("/")
        if tag[2] == "bean" and open_:
            self._beans.append((given.get("id") or given.get("class", "").rpartition(".")[2], self._tags))
        elif tag[2] in ("property", "prop"):
            if "value" in given and "name" in given and self._beans:
                bean, number = self._beans[-1]
                yield BeanProperty(bean, given["name"], (given["value"].strip()[:LONGEST_VALUE],), number)
            if open_:
                self._names.append(given.get("name") or given.get("key", ""))
                self._values = []

    def _closed(self, name: str, content: str) -> Iterator[BeanProperty]:
        if name == "bean" and self._beans:
            self._beans.pop()
        elif name == "value":
            self._values.append(content)
        elif name in ("property", "prop") and self._names:
            key, values = self._names.pop(), tuple(self._values)
            self._values = []
            bean, number = self._beans[-1] if self._beans else ("", 0)
            if name == "prop":  # of the longer overrides
                bean, _, key = key.partition(".")
                yield BeanProperty(bean, key, (content,), 0)
            elif bean == OVERRIDES:
                yield from _overrides(values)
            elif values and bean:
                yield BeanProperty(bean, key, values, number)


def _overrides(values: Iterable[str]) -> Iterator[BeanProperty]:
    """Yield the properties in lines such as `metadata.operator=me`."""
    for line in (line.strip() for value in values for line in value.splitlines()):
        key, equals, given = line.partition("=")
        bean, _, name = key.strip().partition(".")
        if equals and name and not line.startswith("#"):
            yield BeanProperty(bean, name, (given.strip(),), 0)
