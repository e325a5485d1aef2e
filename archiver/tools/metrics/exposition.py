"""The metrics of a crawl as text, in OpenMetrics or in the older format of Prometheus.

They come from live.json, whose counters go on from run to run. Where there is no live.json, the database gives the
URLs by state. If the crawl does not run, whatever describes a moment is left out. No label holds a host or a URL:
words that we do not know, perhaps from a collection of someone else, are counted under `other` or left out.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from archiver.collection.layout import Layout
from archiver.collection.live import BATCH_BOUNDS, ENDED, Live, last_live
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.totals import open_totals

OPENMETRICS = "application/openmetrics-text"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
STATES = ("waiting", "archived", "failed", "excluded", "held")
RESULTS = ("archived", "variant", "retried", "failed", "excluded", OTHER)
CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", OTHER)
WAITS = ("rate", "retry-after", "bandwidth", "our backlog", "retry", "asleep, next probe")
HOSTS = ("due", "parked", "asleep", "slowed", "held")


class MetricKind(NamedTuple):
    """One metric: its type in OpenMetrics, its labels, and its help."""

    type: str
    labels: tuple[str, ...]
    help: str


METRICS: dict[str, MetricKind] = {
    "archiver_urls": MetricKind("gauge", ("state",), "URLs of the crawl by state."),
    "archiver_visits": MetricKind("counter", ("result",), "Visits by result, robots.txt and retries included."),
    "archiver_responses": MetricKind("counter", ("class",), "Stored responses by class of their status."),
    "archiver_received_bytes": MetricKind("counter", (), "Bytes of all responses as they crossed the wire."),
    "archiver_written_bytes": MetricKind("counter", (), "Bytes of committed WARC files."),
    "archiver_revisits": MetricKind("counter", (), "Captures whose payload was stored before."),
    "archiver_traps": MetricKind("counter", (), "Waiting URLs that a trap rule held or delayed when their turn came."),
    "archiver_batch_seconds": MetricKind("histogram", (), "Time from the choice of a batch of visits to its commit."),
    "archiver_last_commit_timestamp_seconds": MetricKind("gauge", (), "Time of the last commit of this run."),
    "archiver_crawler": MetricKind("info", ("name", "machine"), "The crawler and its machine."),
    "archiver_requests_active": MetricKind("gauge", (), "Requests under way."),
    "archiver_hosts": MetricKind("gauge", ("state",), "Leased hosts by state; slowed hosts are in another state too."),
    "archiver_queue_wait_seconds": MetricKind("gauge", ("why",), "Longest wait of a host until its next request."),
    "archiver_commit_lag_seconds": MetricKind("gauge", (), "Time for which answers have waited without a commit."),
    "archiver_loop_lag_seconds": MetricKind("gauge", (), "Longest delay of the event loop in the last second."),
    "archiver_spool_bytes": MetricKind("gauge", (), "Bytes of responses in spool files."),
    "archiver_disk_free_bytes": MetricKind("gauge", (), "Bytes free on the fullest disk of the collection."),
    "archiver_network_lost": MetricKind("gauge", (), "1 if our network is lost."),
    "archiver_store_backlog_bytes": MetricKind("gauge", (), "Bytes of finished WARC files that the store lacks."),
}  # the name of a counter gets the suffix _total, that of the info _info


def metrics_text(crawls: Mapping[str, Live], accept: str = "", process: int = 0) -> tuple[bytes, str]:
    """Return the metrics of *crawls* and their content type, in a format that a client may *accept*.

    The keys of *crawls* become the label `crawl`, unless there is one with the key "". *process*: the crawl's, whose
    memory and processor time are added; 0: none.
    """
    source = _Crawls(crawls, process)
    if OPENMETRICS in accept:
        return openmetrics.generate_latest(source), openmetrics.CONTENT_TYPE_LATEST  # type: ignore[no-untyped-call]
    return generate_latest(source), TEXT


def live_of(directory: Path) -> Live | None:
    """Return what live.json of the collection in *directory* says; without one, what the database says; or None."""
    return last_live(Layout(directory)) or _of_database(directory)


_SETTLED_RULES = "SELECT state, count(*) FROM urls WHERE priority < 0 AND state <> 'waiting' GROUP BY state"


def _of_database(directory: Path) -> Live | None:
    sums = ", ".join(f"coalesce(sum({state}), 0)" for state in STATES)
    with suppress(ConfigError, ArchiveError), open_totals(directory) as db:
        counts = dict(zip(STATES, db.execute(f"SELECT {sums} FROM hosts").fetchone(), strict=True))  # noqa: S608 - our own words
        for state, number in db.execute(_SETTLED_RULES).fetchall():
            counts[state] -= number
        urls = Live(0, 0.0, ENDED, waiting=int(counts["waiting"]), done=int(counts["archived"]))
        return replace(urls, failed=int(counts["failed"]), excluded=int(counts["excluded"]), held=int(counts["held"]))
    return None


class _Crawls(Collector):
    def __init__(self, crawls: Mapping[str, Live], process: int) -> None:
        self._crawls = crawls
        self._process = process
        self._label = () if list(crawls) == [""] else ("crawl",)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all crawls, and those of the process."""
        now = time.time()
        for name, kind in METRICS.items():
            families = {"counter": self._counter, "histogram": self._histogram, "info": self._info}
            yield families.get(kind.type, self._gauge)(name, kind, now)
        if self._process:
            yield from ProcessCollector(pid=lambda: self._process, registry=None).collect()

    def _names(self, identifier: str) -> list[str]:
        return [identifier] if self._label else []

    def _gauge(self, name: str, kind: MetricKind, now: float) -> Metric:
        family = GaugeMetricFamily(name, kind.help, labels=(*self._label, *kind.labels))
        for identifier, live in self._crawls.items():
            for labels, value in _gauges(name, live, current=live.is_current(now)):
                family.add_metric([*self._names(identifier), *labels], value)
        return family

    def _counter(self, name: str, kind: MetricKind, _: float) -> Metric:
        family = CounterMetricFamily(name, kind.help, labels=(*self._label, *kind.labels))
        for identifier, live in self._crawls.items():
            for labels, value in _counts(name, live):
                family.add_metric([*self._names(identifier), *labels], value)
        return family

    def _histogram(self, name: str, kind: MetricKind, _: float) -> Metric:
        family = HistogramMetricFamily(name, kind.help, labels=self._label)
        for identifier, live in self._crawls.items():
            total, buckets = 0, []
            counts = (*live.total.batch_counts, *(0 for _ in BATCH_BOUNDS), 0)
            for bound, count in zip((*map(str, BATCH_BOUNDS), "+Inf"), counts, strict=False):
                total += count
                buckets.append((bound, total))
            family.add_metric(self._names(identifier), buckets, live.total.batch_seconds)
        return family

    def _info(self, name: str, kind: MetricKind, _: float) -> Metric:
        family = InfoMetricFamily(name, kind.help, labels=self._label)
        for identifier, live in self._crawls.items():
            family.add_metric(self._names(identifier), {"name": live.name, "machine": live.machine})
        return family


Samples = Sequence[tuple[tuple[str, ...], float]]


def _gauges(name: str, live: Live, *, current: bool) -> Samples:
    """Return the samples of a gauge; none of what describes a moment unless the crawl runs."""
    if name == "archiver_urls":
        counts = (live.waiting, live.done, live.failed, live.excluded, live.held)
        return [((state,), count) for state, count in zip(STATES, counts, strict=True)]
    if name == "archiver_last_commit_timestamp_seconds":
        return [((), live.last_commit)] if live.last_commit else []
    if not current:
        return []
    if name == "archiver_hosts":
        return [((state,), getattr(live.host_states, state)) for state in HOSTS]
    if name == "archiver_queue_wait_seconds":
        return [((why,), live.waits.get(why, 0.0)) for why in WAITS]
    values: dict[str, float] = {
        "archiver_requests_active": live.active,
        "archiver_commit_lag_seconds": live.commit_lag,
        "archiver_loop_lag_seconds": live.loop_lag,
        "archiver_spool_bytes": live.spool_bytes,
        "archiver_disk_free_bytes": live.disk_free,
        "archiver_network_lost": live.network_lost,
        "archiver_store_backlog_bytes": live.store_backlog_bytes,
    }
    return [((), values[name])]


def _counts(name: str, live: Live) -> Samples:
    """Return the samples of a counter."""
    total = live.total
    if name == "archiver_visits":
        return _by_word(total.results, RESULTS)
    if name == "archiver_responses":
        return _by_word(total.responses, CLASSES)
    values = {
        "archiver_received_bytes": total.received,
        "archiver_written_bytes": total.written_bytes,
        "archiver_revisits": total.revisits,
        "archiver_traps": total.traps,
    }
    return [((), values[name])]


def _by_word(counts: Mapping[str, int], words: Sequence[str]) -> Samples:
    found = dict.fromkeys(words, 0)
    for word, count in counts.items():
        found[word if word in found else OTHER] += count
    return [((word,), count) for word, count in found.items()]
