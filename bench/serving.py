"""The servers of the benchmarks, each in its own process on the first core: nginx, and a slow one."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measure import ROOT

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 10000000; sendfile on; tcp_nopush on;
    types {{ text/html html; text/css css; text/javascript js; image/jpeg jpg; image/png png; image/gif gif;
            image/webp webp; }}
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{ listen 127.0.0.1:{port}; root {root}; {more} }}
}}
"""
PATIENCE = 30.0  # seconds until a server must listen


def free_port() -> int:
    """Return a port that is free now, below those from which connections are made."""
    for port in range(18080, 32000, 7):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    sys.exit("no port is free")


@contextmanager
def files(root: Path, folder: Path, more: str = "") -> Iterator[str]:
    """Serve *root* with one nginx worker, whose own files are in *folder*; yield the site's address.

    *more* are lines for its configuration of the server.
    """
    if not shutil.which("nginx"):
        print("nginx is not here (apt-get install nginx-light): our own slower server serves the site", file=sys.stderr)
        with slow("--root", str(root)) as port:
            yield f"http://127.0.0.1:{port}/"
        return
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "nginx.conf"
    user = "user root root;" if os.geteuid() == 0 else ""  # else the worker would be a user who may not read the site
    config.write_text(user + NGINX.format(folder=folder, port=port, root=root, more=more))
    with _running(["nginx", "-c", str(config)], port):
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def slow(*options: str) -> Iterator[int]:
    """Run bench/slowserver.py with these options and yield its port."""
    port = free_port()
    with _running([sys.executable, str(ROOT / "bench/slowserver.py"), str(port), *options], port):
        yield port


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    server = subprocess.Popen(command)
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            sys.exit(f"{command[0]} does not serve on port {port}")
        yield
    finally:
        server.terminate()
        server.wait()
