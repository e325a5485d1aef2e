"""archiver beside `wget --warc-file`, in turn, on the same core, from the same server: `python bench/compare.py`.

Prints URLs per CPU second (user and system time of the client), wall seconds and peak memory, each as the median
of the runs, and the ratio of the medians.
"""

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import testsite  # bench/testsite.py: this folder is first on the path

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; types {{ text/html html; text/css css; image/png png; text/javascript js; }}
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    keepalive_requests 1000000; sendfile on; server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


@dataclass(frozen=True)
class Run:
    """One run of one client."""

    cpu: float
    wall: float
    megabytes: float


def pinned(core: int, command: Sequence[str]) -> list[str]:
    """*command* on one core, where there is more than one."""
    return ["taskset", "-c", str(core), *command] if (os.cpu_count() or 1) > 1 else list(command)


@contextmanager
def nginx(folder: Path, port: int) -> Iterator[None]:
    """nginx with one worker on core 0."""
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port))
    folder.chmod(0o755)
    server = subprocess.Popen(pinned(0, ["nginx", "-c", str(config)]))
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def measure(command: Sequence[str], folder: Path) -> Run:
    """Run *command* in an empty *folder* on core 1."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.monotonic()
    with (folder.parent / "client.log").open("wb") as log:
        client = subprocess.Popen(pinned(1, command), cwd=folder, stdout=log, stderr=log)
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
    if client.returncode not in (0, 8):  # wget says 8 when any URL answered with an error, and robots.txt does
        sys.exit((folder.parent / "client.log").read_text(errors="replace"))
    return Run(usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pages", type=int, default=2000)
    arguments.add_argument("--runs", type=int, default=3)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        folder = Path(name)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        urls = testsite.make(folder / "www", given.pages)
        seed = f"http://127.0.0.1:{port}/"
        wget = [
            "wget",
            "-q",
            "-r",
            "-l",
            "inf",
            "-p",
            "--warc-file=out",
            "--warc-cdx",
            "--delete-after",
            "--no-directories",
            seed,
        ]
        ours = [
            sys.executable,
            "-m",
            "archiver",
            "crawl",
            seed,
            "-o",
            "out",
            "--rate",
            "0",
            "--host-concurrency",
            "16",
            "-q",
        ]
        runs: dict[str, list[Run]] = {"wget": [], "archiver": []}
        with nginx(folder, port):
            for _ in range(given.runs):
                runs["wget"].append(measure(wget, folder / "client"))
                runs["archiver"].append(measure(ours, folder / "client"))
    print(f"{urls} URLs, medians of {given.runs} runs")
    rates = {}
    for client, measured in runs.items():
        cpu, wall, memory = (
            statistics.median(getattr(run, field) for run in measured) for field in ("cpu", "wall", "megabytes")
        )
        rates[client] = urls / cpu
        print(f"{client:<9} {rates[client]:7.0f} URLs per CPU second  {wall:6.2f} s wall  {memory:5.0f} MB")
    print(f"ratio     {rates['archiver'] / rates['wget']:7.2f}")


if __name__ == "__main__":
    main()
