"""The metrics: their names, types and labels are fixed, and nothing from outside becomes a label."""

import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from archiver.collection.live import BATCH_BOUNDS, HostLine, HostStates, Live, Tally, live_text
from archiver.config.toml import render
from archiver.crawl.live.tally import CLASSES, RESULTS
from archiver.crawl.stats import Why
from archiver.errors import ConfigError
from archiver.tools.metrics import exposition
from archiver.tools.metrics.exposition import METRICS, OPENMETRICS, live_of, metrics_text
from archiver.tools.metrics.server import metrics_address
from fixtures.crawl_in_process import crawl, settings
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

NAMES = {
    "archiver_urls": ("gauge", {"state": {"waiting", "archived", "failed", "excluded", "held"}}),
    "archiver_visits": (
        "counter",
        {"result": {"archived", "variant", "retried", "failed", "excluded", "other"}},
    ),
    "archiver_responses": ("counter", {"class": {"1xx", "2xx", "3xx", "4xx", "5xx", "other"}}),
    "archiver_received_bytes": ("counter", {}),
    "archiver_written_bytes": ("counter", {}),
    "archiver_requests_active": ("gauge", {}),
    "archiver_hosts": ("gauge", {"state": {"due", "parked", "asleep", "slowed", "held"}}),
    "archiver_queue_wait_seconds": (
        "gauge",
        {"why": {"rate", "retry-after", "bandwidth", "our backlog", "retry", "asleep, next probe"}},
    ),
    "archiver_batch_seconds": ("histogram", {"le": {*map(str, BATCH_BOUNDS), "+Inf"}}),
    "archiver_commit_lag_seconds": ("gauge", {}),
    "archiver_loop_lag_seconds": ("gauge", {}),
    "archiver_spool_bytes": ("gauge", {}),
    "archiver_disk_free_bytes": ("gauge", {}),
    "archiver_revisits": ("counter", {}),
    "archiver_traps": ("counter", {}),
    "archiver_network_lost": ("gauge", {}),
    "archiver_store_backlog_bytes": ("gauge", {}),
    "archiver_crawler": ("info", {"name": {""}, "machine": {"vm"}}),
    "archiver_last_commit_timestamp_seconds": ("gauge", {}),
}
COUNTS = tuple(range(1, len(BATCH_BOUNDS) + 2))
HOSTILE = "https://secret.example/"


def live() -> Live:
    """A running crawl whose words are partly those of a stranger."""
    total = Tally(9, 1000, 2000, 3, 4, sum(COUNTS), 12.5, COUNTS, {"2xx": 5, HOSTILE: 2}, {"archived": 6, HOSTILE: 1})
    return Live(
        1,
        time.time(),
        "crawling",
        waiting=7,
        done=8,
        hosts=(HostLine(HOSTILE, 1, 1, 1),),
        waiting_for=HOSTILE,
        host_states=HostStates(1, 2, 3, 4, 5),
        waits={"rate": 2.5, HOSTILE: 9.0},
        last_commit=1000.0,
        total=total,
        machine="vm",
    )


def samples(text: bytes) -> dict[str, float]:
    """The samples by name and labels."""
    found = {}
    for family in openmetrics_families(text.decode()):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_names_types_and_labels_are_fixed() -> None:
    text, kind = metrics_text({"": live()}, f"{OPENMETRICS}; version=1.0.0,text/plain;q=0.5")
    assert kind.startswith(OPENMETRICS)
    found = {}
    for family in openmetrics_families(text.decode()):  # type: ignore[no-untyped-call]
        labels: dict[str, set[str]] = {}
        for sample in family.samples:
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
        found[family.name] = (family.type, labels)
    bounds = found["archiver_batch_seconds"][1]
    bounds["le"] = {bound if bound == "+Inf" else str(float(bound)) for bound in bounds["le"]}
    assert found == NAMES
    assert METRICS.keys() == NAMES.keys()


def test_words_are_those_of_the_crawl() -> None:
    assert set(exposition.WAITS) < set(get_args(Why))
    assert {*RESULTS.values(), exposition.OTHER} == set(exposition.RESULTS)
    assert CLASSES == exposition.CLASSES


def test_values_are_those_of_live_json() -> None:
    found = samples(metrics_text({"": live()}, OPENMETRICS)[0])
    assert found["archiver_urls{state=waiting}"] == 7
    assert found["archiver_visits_total{result=archived}"] == 6
    assert found["archiver_visits_total{result=other}"] == 1
    assert found["archiver_responses_total{class=other}"] == 2
    assert found["archiver_queue_wait_seconds{why=rate}"] == 2.5
    assert found["archiver_hosts{state=slowed}"] == 4
    assert found["archiver_batch_seconds_bucket{le=0.01}"] == 1 + 2
    assert found["archiver_batch_seconds_count"] == sum(COUNTS)
    assert found["archiver_batch_seconds_sum"] == 12.5
    assert not any("secret" in name for name in found)


def test_older_format_has_the_same_samples() -> None:
    text, kind = metrics_text({"": live()}, "text/plain")
    assert kind.startswith("text/plain")
    found = {sample.name: sample.value for family in text_families(text.decode()) for sample in family.samples}
    assert found["archiver_written_bytes_total"] == 2000


def test_a_crawl_that_does_not_run_has_counters_only() -> None:
    for stopped in (replace(live(), written=1.0), replace(live(), state="ended")):
        found = samples(metrics_text({"": stopped}, OPENMETRICS)[0])
        assert found["archiver_received_bytes_total"] == 1000
        assert found["archiver_urls{state=archived}"] == 8
        assert "archiver_requests_active" not in found
        assert "archiver_disk_free_bytes" not in found


def test_several_crawls_have_a_label_each() -> None:
    text = metrics_text({"a": live(), "b": replace(live(), waiting=1)}, OPENMETRICS)[0]
    found = samples(text)
    assert found["archiver_urls{crawl=b,state=waiting}"] == 1
    assert found["archiver_batch_seconds_count{crawl=a}"] == sum(COUNTS)
    assert metrics_text({}, OPENMETRICS)[0].endswith(b"# EOF\n")


def test_without_live_json_the_database_is_asked(tmp_path: Path) -> None:
    assert live_of(tmp_path) is None
    with RawServer({"/": ok(page("One", ["/two"])), "/two": ok(page("Two"))}) as server:
        crawl(tmp_path, server.url())
        (tmp_path / "crawl.toml").write_text(render(settings(server.url())))
    (tmp_path / "live.json").unlink()
    found = live_of(tmp_path)
    assert found is not None
    assert (found.done, found.waiting, found.is_current(time.time())) == (2, 0, False)
    (tmp_path / "live.json").write_text(live_text(live()))
    again = live_of(tmp_path)
    assert again is not None
    assert again.done == 8


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("9321", "127.0.0.1:9321", True),
        ("localhost:0", "127.0.0.1:0", True),
        ("0.0.0.0:9321", "0.0.0.0:9321", False),
        ("[::1]:9321", "[::1]:9321", True),
        ("192.0.2.1:80", "192.0.2.1:80", False),
    ],
)
def test_addresses(text: str, address: str, *, loopback: bool) -> None:
    found = metrics_address(text)
    assert (str(found), found.is_loopback) == (address, loopback)


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "65536", "example.org:80", "1.2.3.4", "::1", "\uff11", "1:2:3", "[::1]"]
)
def test_wrong_addresses(text: str) -> None:
    with pytest.raises(ConfigError, match="--metrics"):
        metrics_address(text)
