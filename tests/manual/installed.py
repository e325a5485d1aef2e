"""Try an installed archiver as a new user would: `python tests/manual/installed.py FOLDER`.

FOLDER is a virtual environment that holds nothing but the program. Uses the standard library only.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

SITE = {"index.html": '<a href="two.html">two</a><img src="a.png">', "two.html": "<p>two", "a.png": "png"}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def main(environment: Path) -> None:
    """Crawl a site on loopback, verify and pack the archive, mistype a name, and complete a command.

    Raises `CalledProcessError` or `AssertionError` where a command does not do what it should.
    """
    command = str(environment / "bin" / "archiver")
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        site.mkdir()
        for name, text in SITE.items():
            (site / name).write_text(text)
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site))) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            seed = f"http://127.0.0.1:{server.server_port}/"
            limits = ("--min-free-disk", "0", "--rate", "0", "-q")
            run = partial(subprocess.run, check=True, cwd=folder)
            run([command, "--version"])
            run([command, "crawl", seed, "-o", "archive", *limits])
            server.shutdown()
        run([command, "verify", "archive"])
        run([command, "pack", "archive"])
        mistyped = run([command, "status", "archve"], check=False, capture_output=True, text=True)
        assert (mistyped.returncode, mistyped.stderr.count("\n")) == (2, 1), mistyped.stderr
        words = {"COMP_WORDS": "archiver stat", "COMP_CWORD": "1", "_ARCHIVER_COMPLETE": "bash_complete"}
        completed = run([command], env={**os.environ, **words}, capture_output=True, text=True).stdout
        assert "status" in completed, completed
        urls = run([command, "urls", "archive", "--state", "archived"], capture_output=True, text=True).stdout
        missing = [name for name in SITE if name != "index.html" and f"{seed}{name}" not in urls]
        assert not missing, f"{missing} not in\n{urls}"
    manual = environment / "share" / "man" / "man1" / "archiver-crawl.1"
    assert manual.exists(), manual


if __name__ == "__main__":
    main(Path(sys.argv[1]))
