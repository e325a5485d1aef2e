"""The board of Grafana and the alert rules: they ask for metrics that exist, and promtool accepts them."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from archiver.collection.live import Live, Tally
from archiver.tools.metrics.exposition import OPENMETRICS, metrics_text
from fixtures.command import ROOT

BOARD = ROOT / "deploy" / "grafana.json"
RULES = ROOT / "deploy" / "alerts.yaml"
RULE_TESTS = ROOT / "fixtures" / "alerts_test.yaml"
PAGE = ROOT / "docs" / "how-to" / "watch-with-prometheus.md"
NAME = re.compile(r"\b(?:archiver|process)_[a-z_]+\b")
OF_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}  # where the system has /proc
COLUMNS = 24


def samples() -> set[str]:
    """The names of all samples of a crawl that runs."""
    live = Live(1, time.time(), "crawling", last_commit=1.0, total=Tally(batches=1))
    text = metrics_text({"": live}, OPENMETRICS)[0].decode()
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return OF_PROCESS | {sample.name for family in families for sample in family.samples}


def board() -> Any:
    return json.loads(BOARD.read_text("utf-8"))


def panels() -> Iterator[Any]:
    """The panels that show something."""
    yield from (panel for panel in board()["panels"] if panel["type"] != "row")


def rules() -> list[Any]:
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_board_and_rules_ask_for_metrics_that_exist() -> None:
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    asked += [variable.get("definition", "") for variable in board()["templating"]["list"]]
    asked += [rule["expr"] for rule in rules()]
    known = samples()
    used = {name for expression in asked for name in NAME.findall(expression)}
    assert used <= known
    assert {name.removesuffix("_bucket") for name in used} >= {
        name for name in known if not name.endswith(("_sum", "_count", "_bucket"))
    }  # and the board shows all of them


def test_the_board_is_whole() -> None:
    everything = board()["panels"]
    numbers = [panel["id"] for panel in everything]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in everything:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < COLUMNS
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in panels():
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"


def test_there_is_a_test_for_each_rule() -> None:
    names = {rule["alert"] for rule in rules()}
    assert len(names) == 5
    cases = yaml.safe_load(RULE_TESTS.read_text("utf-8"))["tests"]
    fires = {case["alertname"] for test in cases for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fires == names
    assert names <= set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_rules_and_queries(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    for words in (("check", "rules", str(RULES)), ("test", "rules", str(RULE_TESTS))):
        ran = subprocess.run([promtool, *words], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    queries = [target["expr"] for panel in panels() for target in panel["targets"]]
    written = [
        query.replace("$__rate_interval", "5m").replace("$job", "a").replace("$instance", ".*") for query in queries
    ]
    records = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(written)]
    (tmp_path / "board.yaml").write_text(json.dumps({"groups": [{"name": "board", "rules": records}]}))
    check = [promtool, "check", "rules", "--lint=none", str(tmp_path / "board.yaml")]
    ran = subprocess.run(check, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
