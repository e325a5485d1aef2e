"""The benchmarks run from end to end at a tiny size, whoever of the peers is installed; nothing is timed."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fixtures.command import ENDS_WITH_US, ROOT, environment
from fixtures.devtools import needs_chromium, needs_namespace

CASES = ("cpu", "latency", "memory", "hosts", "large", "fairness", "readers", "start")
SAMPLES = """\
main (archiver/cli/a.py:1);run (asyncio/runners.py:1);links (/x/archiver/extract/b.py:2);parse (lxml/etree.py:3) 3
main (archiver/cli/a.py:1);run (asyncio/runners.py:1);select (selectors.py:4) 1
main (archiver/cli/a.py:1);run (asyncio/runners.py:1);judge (archiver/policy/c.py:5);join (archiver/url.py:6) 4
main (archiver/cli/a.py:1);_find_and_load (<frozen importlib._bootstrap>:7) 2
"""


def bench(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, f"bench/{program}", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)


def test_link_extraction_is_measured(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<link rel=stylesheet href=b.css><a href=c.html#d>e</a><a href=c.html>f</a>")
    (tmp_path / "b.css").write_text("@import 'c.css'; a { b: url(d.png) }")
    ran = bench("extraction.py", str(tmp_path), "--rounds", "1")
    assert ran.returncode == 0, ran.stderr
    measured = re.findall(r"^(\w.*?) {2,}[\d.]+ +[\d.]+ +(\d+)(?: +[\d.]+ times)?$", ran.stdout, re.MULTILINE)
    assert [found for name, found in measured if name == "archiver"] == ["2", "2", "20000"]
    assert {found for _, found in measured} == {"2", "20000"}
    for line in ran.stderr.splitlines():
        assert re.fullmatch(r"\w+: .+ is left out; it needs: pip install .+", line)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc, and all of 127.0.0.0/8")
@pytest.mark.parametrize("case", [*CASES[-2:], *(pytest.param(case, marks=pytest.mark.long) for case in CASES[:-2])])
def test_every_case_runs_checks_that_all_was_fetched_and_prints_a_table(case: str, tmp_path: Path) -> None:
    ran = bench("run.py", case, "--small", "--results", str(tmp_path / "results"), "--folder", str(tmp_path / "work"))
    assert ran.returncode == 0, ran.stderr
    figures = json.loads((tmp_path / f"results/{case}.json").read_text())
    assert figures["faults"] == []
    assert all(run["done"] > 0 for run in figures["runs"].get("archiver", ()) if case != "start")
    assert re.search(r"^\| -+ \|.*\n\| .*\d", ran.stdout, re.MULTILINE), ran.stdout


@pytest.mark.browser
@needs_chromium
@needs_namespace
def test_views_are_measured() -> None:
    ran = bench("views.py", "--pages", "3", "--rounds", "1", "--rate", "100")
    assert ran.returncode == 0, ran.stderr
    assert "void" not in ran.stderr
    assert len(re.findall(r"^\| (?:application|static), --browser \w+ +\| +[\d.]+ +\|", ran.stdout, re.MULTILINE)) == 3


@pytest.mark.browser
@pytest.mark.replay
@pytest.mark.slow
@needs_chromium
def test_a_recorder_like_browsertrix_has_another_clock_and_chance_than_the_replay(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    words = ("wasm", "random-ids", "--ways", "plain", "recorder", "--results", str(results))
    ran = bench("applications.py", *words)
    assert ran.returncode == 0, ran.stderr
    outcomes = json.loads(results.read_text())["outcomes"]
    found = {
        (each["application"], each["way"]): (each["pywb"]["whole"], len(each["pywb"]["missing"])) for each in outcomes
    }
    assert found["wasm", "plain"] == (0, 1)
    assert found["wasm", "recorder"] == (1, 0)
    assert found["random-ids", "recorder"] == (0, 5)
    assert "| all, pywb " in ran.stdout
    assert "| all, replayweb.page " in ran.stdout


@pytest.mark.browser
@pytest.mark.slow
@needs_chromium
@needs_namespace
def test_rounds_and_sockets_are_counted(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    ran = bench("applications.py", "wasm", "--ways", "auto", "--no-replay", "--results", str(results))
    assert ran.returncode == 0, ran.stderr
    (outcome,) = json.loads(results.read_text())["outcomes"]
    assert (outcome["rounds"], outcome["sockets"], outcome["looks"] > 0) == ([1], 0, True)
    assert re.search(r"^\| rounds: median, 95 %, most +\| 1, 1, 1 \(of 1\)", ran.stdout, re.MULTILINE)


REPLAYS = """
import sys, threading
from pathlib import Path
from fixtures.handmade_warc import Collection
from fixtures.pywb_server import archiver_replay
Collection(Path(sys.argv[1]))
with archiver_replay(Path(sys.argv[1])) as wayback:
    print(wayback.port, flush=True)
    threading.Event().wait()
"""


@pytest.mark.replay
@pytest.mark.skipif(not ENDS_WITH_US, reason="needs setpriv")
def test_a_measurement_that_is_killed_leaves_no_replay(tmp_path: Path) -> None:
    words = [sys.executable, "-c", REPLAYS, str(tmp_path / "c")]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        process.kill()
    while True:  # it listens until the kernel has ended it
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            break


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc")
def test_an_incomplete_crawl_counts_for_nothing(tmp_path: Path) -> None:
    site = tmp_path / "site-10"  # as large as the small one, but it lacks what it should have
    (site / "www").mkdir(parents=True)
    (site / "www/index.html").write_text("<!DOCTYPE html><p>hello")
    (site / "urls.txt").write_text("/\n/never.html")
    ran = bench("run.py", "latency", "--small", "--results", str(tmp_path), "--folder", str(tmp_path))
    assert ran.returncode == 1
    assert re.search(r"archiver: void: 1 of 2 URLs are not in its archive, http://.*/never.html for one", ran.stderr)


def test_the_site_is_the_same_each_time_and_names_what_it_has(tmp_path: Path) -> None:
    first, second = (bench("testsite.py", str(tmp_path / name), "--pages", "20") for name in "ab")
    paths = first.stdout.split()
    assert first.stdout == second.stdout
    assert len(paths) == len(set(paths)) > 20
    for path in paths:
        name = "index.html" if path == "/" else path[1:]
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_table_of_targets_takes_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text((ROOT / "docs/explanation/performance.md").read_text())
    before = document.read_text().splitlines()
    run = {"fault": "", "wall": 0.125}
    (tmp_path / "start.json").write_text(json.dumps({"runs": {"archiver": [run]}, "date": "2026-01-02"}))
    ran = bench("targets.py", "--results", str(tmp_path), "--document", str(document))
    assert ran.returncode == 0, ran.stderr
    after = document.read_text().splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed == ["| `archiver --help` | less than 0.3 s | 0.12 s | 2026-01-02 | `start` |"]


def test_samples_of_a_profile_fall_to_their_parts_and_are_drawn(tmp_path: Path) -> None:
    raw, results = tmp_path / "raw.txt", tmp_path / "results"
    raw.write_text(SAMPLES)
    ran = bench("where.py", "--raw", str(raw), "--results", str(results))
    assert ran.returncode == 0, ran.stderr
    shares = json.loads((results / "where.json").read_text())["parts"]
    assert shares == {"reading links": 30, "judging links": 40, "event loop": 10, "imports and start": 20}
    curves = {"900": [[300, 100.0, 60.0], [600, 120.0, 61.0], [900, 110.0, 62.0]]}
    (results / "memory.json").write_text(json.dumps({"curves": curves}))
    drawn = bench("plots.py", "--results", str(results), "--to", str(tmp_path))
    assert drawn.returncode == 0, drawn.stderr
    for name in ("rate", "memory", "where"):
        assert ET.parse(tmp_path / f"performance-{name}.svg").getroot().tag.endswith("svg")
