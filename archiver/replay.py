"""Replay with pywb, on this machine only, of one collection or of several as one, which may lie anywhere.

pywb runs inside this process, so that it ends with it and leaves no orphan. It is told where things lie by a
configuration in a temporary directory; nothing is written into a collection. Several are one to it: each page shows
the captures of all, and a revisit in one finds its original in another.
"""

import json
import os
import re
import signal
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any

from archiver.archive.layout import Layout
from archiver.errors import ConfigError

ADDRESS = "127.0.0.1"
_RESERVED = frozenset({"static", "collinfo.json", "collections"})  # names that mean something else to pywb


@dataclass(frozen=True, slots=True)
class Served:
    """Where a collection can be looked at."""

    port: int
    collection: str

    @property
    def root(self) -> str:
        """The address of the collection's own page."""
        return f"http://{ADDRESS}:{self.port}/{self.collection}/"

    def page(self, url: str) -> str:
        """The address at which the newest capture of *url* replays."""
        return f"{self.root}{url}"


def check_installed() -> None:
    """Refuse where pywb is not there, with the command that installs it."""
    if find_spec("pywb") is None:
        raise ConfigError("replay needs pywb, which is not installed; install it with: pip install 'archiver[replay]'")


def check_replayable(directory: Path) -> None:
    """Refuse a directory without the folders that pywb reads."""
    layout = Layout(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} holds no archive to replay: there is no {layout.archive.name}/ in it")
    if not layout.indexes.is_dir():
        raise ConfigError(f"{directory} holds no index; make it with: archiver index {quote(str(directory))}")


def serve(directories: Sequence[Path], port: int, started: Callable[[Served], None]) -> None:
    """Serve the collections in *directories* as one until SIGINT or SIGTERM.

    It is called after the first. *started* is told where, once it can be seen. The working directory becomes one with a
    link to each: pywb reads some characters in a path as a pattern, and in a number there are none of them.
    """
    name = collection_name(directories[0])
    with TemporaryDirectory(prefix="archiver-replay-") as folder:
        config = Path(folder, "config.yaml")
        config.write_text(json.dumps(_configuration(directories, name)), encoding="utf-8")
        here = directories[0] if len(directories) == 1 else _linked(directories, Path(folder, "collections"))
        back = Path.cwd()
        os.chdir(here)
        os.environ.pop("PYWB_CONFIG_FILE", None)  # pywb would read that instead of ours
        try:
            _serve(config, port, lambda bound: started(Served(bound, name)))
        finally:
            os.chdir(back)  # where the folder can be removed from, on any system


def _linked(directories: Sequence[Path], folder: Path) -> Path:
    """*folder*, in which each of *directories* can be reached by its number."""
    folder.mkdir()
    for number, directory in enumerate(directories):
        try:
            (folder / str(number)).symlink_to(directory.resolve(), target_is_directory=True)
        except OSError as error:
            raise ConfigError(
                f"several collections cannot be served as one here: {_words(error)}; serve each by itself"
            ) from None
    return folder


def collection_name(directory: Path) -> str:
    """What the collection is called in addresses."""
    name = re.sub(r"[^A-Za-z0-9.-]", "_", directory.resolve().name).strip(".")
    return name if name and name not in _RESERVED else "archive"


def _configuration(directories: Sequence[Path], name: str) -> dict[str, Any]:
    archive, indexes = Layout(Path()).archive.name, Layout(Path()).indexes.name
    if len(directories) == 1:
        collection: dict[str, Any] = {"index_paths": f"{indexes}/", "archive_paths": f"{archive}/"}
    else:
        collection = {
            "index_group": {str(number): f"{number}/{indexes}/" for number in range(len(directories))},
            "timeout": 60,  # seconds for an index to answer; pywb takes 5, and leaves a slower one out
            "archive_paths": f"*/{archive}/",  # the star is the number of the collection whose index has the capture
        }
    return {"collections": {name: collection}, "enable_auto_colls": False, "framed_replay": True}


def _serve(config: Path, port: int, started: Callable[[int], None]) -> None:
    asked: list[int] = []  # to end, while pywb is loaded: an exception could be lost in it, which catches all
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: asked.append(number))
    from gevent import monkey, signal_handler  # noqa: PLC0415 - of the extra `replay`

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of TLS made before; nothing here speaks TLS
        monkey.patch_all()  # pywb talks to itself over a socket, and would wait for itself for ever
    from gevent.event import Event  # noqa: PLC0415 - as above
    from gevent.pywsgi import WSGIServer  # noqa: PLC0415 - as above
    from pywb.apps.frontendapp import FrontEndApp  # noqa: PLC0415 - as above
    from pywb.utils.geventserver import RequestURIWSGIHandler  # noqa: PLC0415 - as above

    app = FrontEndApp(config_file=str(config))
    server = WSGIServer((ADDRESS, port), app, handler_class=RequestURIWSGIHandler, log=None)
    app.warcserver_server.server.log = server.log  # that of pywb's inner server: no line for each request
    over = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal_handler(number, over.set)
    try:
        server.start()
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be used: {_words(error)}; choose another with --port, or 0 for a free one"
        ) from None
    if asked:
        raise KeyboardInterrupt
    started(server.server_port)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # pywb prints to it
        over.wait()
        server.stop(timeout=1)


def _words(error: OSError) -> str:
    """What went wrong, without the address that gevent adds."""
    return os.strerror(error.errno) if error.errno else str(error)
