"""`--metrics`: a crawl whose figures Prometheus can read, and what is refused."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import archiver, ended, running, said
from fixtures.flag import Gate
from fixtures.rawserver import Answer, RawServer
from fixtures.sites import message, page

CRAWL = ("crawl", "-o", "c", "--rate", "0", "--probe", "off")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="--metrics is not for Windows")


def asked(port: int, path: str = "/metrics", **headers: str) -> tuple[int, str]:
    """Ask for *path*; return the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def port_of(line: str) -> int:
    found = re.search(r"http://(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)/metrics$", line.strip())
    assert found, line
    return int(found[1])


def test_prometheus_reads_a_running_crawl(tmp_path: Path) -> None:
    gate = Gate()
    held = Answer((gate, message("200 OK", page("One").encode(), content_type="text/html")))
    with RawServer({"/": held}) as server:
        with running(*CRAWL, "--metrics", "0", server.url(), cwd=tmp_path) as process:
            port = port_of(said(process, "metrics at"))
            gate.arrived.wait()
            status, text = asked(port)
            assert status == 200
            assert 'archiver_urls{state="waiting"} ' in text
            assert "process_resident_memory_bytes" in text
            assert asked(port, Accept="application/openmetrics-text; version=1.0.0")[1].endswith("# EOF\n")
            assert asked(port, "/other")[0] == 404
            assert asked(port, Host="rebound.example")[0] == 403
            if promtool := shutil.which("promtool"):
                checked = subprocess.run(
                    [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
                )
                assert (checked.returncode, checked.stderr) == (0, "")
            for junk in (b"\0" * 70_000, b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n", b""):
                with socket.create_connection(("127.0.0.1", port)) as client, suppress(ConnectionError):
                    client.sendall(junk)
            assert asked(port)[0] == 200
            taken = archiver(*CRAWL[:2], "d", "--metrics", str(port), server.url(), cwd=tmp_path)
            assert taken.returncode == ExitCode.USAGE
            assert re.fullmatch(r"archiver: --metrics 127\.0\.0\.1:\d+: Address already in use; .*\n", taken.stderr)
            assert not (tmp_path / "d").exists()
            gate.open()
            assert ended(process)[0] == ExitCode.DONE
        with pytest.raises(ConnectionRefusedError):
            asked(port)


def test_other_machines_need_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = archiver(*CRAWL, "--metrics", "0.0.0.0:0", "http://127.0.0.1/", cwd=tmp_path)
    assert refused.returncode == ExitCode.USAGE
    assert "give --metrics-token env:NAME or file:/PATH" in refused.stderr
    plain = archiver(*CRAWL, "--metrics", "0", "--metrics-token", "hunter2", "http://127.0.0.1/", cwd=tmp_path)
    assert plain.returncode == ExitCode.USAGE
    assert "hunter2" not in plain.stderr
    monkeypatch.setenv("METRICS_TOKEN", "s3cret")
    gate = Gate()
    with RawServer({"/": Answer((gate, message("200 OK", b"x", content_type="text/html")))}) as server:
        words = ("--metrics", "0.0.0.0:0", "--metrics-token", "env:METRICS_TOKEN")
        with running(*CRAWL, *words, server.url(), cwd=tmp_path) as process:
            port = port_of(said(process, "metrics at"))
            assert asked(port)[0] == 401
            assert asked(port, Authorization="Bearer s3cre")[0] == 401
            assert asked(port, Authorization="Bearer s3cret", Host="crawler.example:1")[0] == 200
            gate.open()
            assert ended(process)[0] == ExitCode.DONE
    stored = json.dumps([path.read_text(errors="replace") for path in (tmp_path / "c").rglob("*.*") if path.is_file()])
    assert "s3cret" not in stored
    assert "METRICS_TOKEN" not in stored
