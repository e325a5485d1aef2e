"""The benchmark of link extraction runs from end to end, whoever of its peers is installed."""

import re
import subprocess
import sys
from pathlib import Path

from fixtures.command import ROOT, environment


def test_link_extraction_is_measured(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<link rel=stylesheet href=b.css><a href=c.html#d>e</a><a href=c.html>f</a>")
    (tmp_path / "b.css").write_text("@import 'c.css'; a { b: url(d.png) }")
    command = [sys.executable, "bench/extraction.py", str(tmp_path), "--rounds", "1"]
    ran = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    measured = re.findall(r"^(\w.*?) {2,}[\d.]+ +[\d.]+ +(\d+)(?: +[\d.]+ times)?$", ran.stdout, re.MULTILINE)
    assert [found for name, found in measured if name == "archiver"] == ["2", "2", "20000"]
    assert {found for _, found in measured} == {"2", "20000"}
    for line in ran.stderr.splitlines():
        assert re.fullmatch(r"\w+: .+ is left out; it needs: pip install .+", line)
