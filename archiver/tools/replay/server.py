"""Serve one or several archives with pywb, on this machine only.

pywb runs inside this process, so it ends with it. It works in an empty temporary directory with the templates and
static files of its own package: in a collection it would use, and run, those of the collection. Only requests that use
a name of this machine are answered, so that no web page can read the archive by giving its own name our address.

pywb trusts a collection. It would follow links and names that lead out of it, and fetch an index entry's `load_url`
from the live web. So it gets no folder. It asks here for index lines, which our readers parse into known fields, and
for the path of a WARC file, which is a regular file inside the archive, or in a store that the user has named.
"""

import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from archiver.errors import ConfigError
from archiver.storage.temporary import temporary_folder
from archiver.tools.replay.sources import ReplaySource

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost", "[::1]")  # names for this machine in a browser
_RESERVED = frozenset({"static", "collinfo.json", "collections"})  # names with another meaning in pywb
_ENDS = ("SIGINT", "SIGTERM", "SIGHUP")  # the last one: the terminal was closed
_OTHERS = ("PYWB_CONFIG_FILE", "SOCKS_HOST")  # pywb would use them instead of our configuration


@dataclass(frozen=True, slots=True)
class Served:
    """The address at which a collection is served."""

    port: int
    collection: str

    @property
    def root(self) -> str:
        """The address of the collection's start page."""
        return f"http://{ADDRESS}:{self.port}/{self.collection}/"

    def page(self, url: str) -> str:
        """Return the address of the newest capture of *url*."""
        return f"{self.root}{url}"


def check_installed() -> None:
    """Raise `ConfigError` with the install command if pywb is missing."""
    if find_spec("pywb") is None:
        raise ConfigError(
            "replay needs pywb, which is not installed; install it in the checkout with: pip install '.[replay]'"
        )


def collection_name(path: Path) -> str:
    """Return the name of a collection in addresses."""
    bare = path.name.partition(".warc")[0].removesuffix(".wacz") if path.is_file() else path.resolve().name
    name = re.sub(r"[^A-Za-z0-9.-]", "_", bare).strip(".")
    return name if name and name not in _RESERVED else "archive"


@dataclass(frozen=True, slots=True)
class ReplayContents:
    """The archives that are served as one collection, and what its start page says about them."""

    sources: tuple[ReplaySource, ...]
    collection: str  # its name in addresses
    names: tuple[str, ...]  # of the archives; those of further sources, which hold payloads only, are left out
    seeds: Mapping[str, str]  # titles that the user gave them, by URL; "" for one without


def serve(contents: ReplayContents, port: int, started: Callable[[Served], None]) -> None:
    """Serve *contents* as one collection until a signal ends it; *started* receives the address."""
    from archiver.tools.replay.start_page import StartPage, listed  # noqa: PLC0415 - reads documents

    shown, name = contents.sources[: len(contents.names)], contents.collection
    with (
        _ended_by_signals() as ended,
        _working_directory() as config,
        listed(shown, tuple(contents.seeds), config.with_name("pages")) as pages,
    ):
        page = StartPage(pages, name, contents.names, contents.seeds)
        custom = _configuration(contents.sources, name, config)
        _serve(custom, config, page.wrap, port, ended, lambda at: started(Served(at, name)))


@contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Collect the signals that ask to end. An exception instead could be lost, because pywb catches all."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    for end in _numbers():
        signal.signal(end, note)
    yield received


def _numbers() -> list[signal.Signals]:
    """Return the signals that end the server, without one that `nohup` disabled."""
    known = [getattr(signal, name) for name in _ENDS if hasattr(signal, name)]
    return [end for end in known if signal.getsignal(end) != signal.SIG_IGN or end == signal.SIGINT]


@contextmanager
def _working_directory() -> Iterator[Path]:
    """Change to an empty directory, and yield the configuration file for pywb."""
    with temporary_folder("replay") as folder:
        empty = folder / "empty"
        empty.mkdir()
        config = folder / "config.yaml"
        config.write_text("{}", encoding="utf-8")
        for variable in _OTHERS:
            os.environ.pop(variable, None)
        back = Path.cwd()
        sys.path[:] = [place for place in sys.path if place and Path(place).resolve() != back.resolve()]
        os.chdir(empty)
        try:
            yield config
        finally:
            os.chdir(back)  # where the folder can be removed from, on any system


def _configuration(sources: Sequence[ReplaySource], name: str, config: Path) -> dict[str, Any]:
    def path_of(file: str, found: Any) -> str | list[str] | None:
        return sources[int(found["source-coll"])].path(file)

    collection = {
        "index_group": {str(number): {"type": _KIND, "source": source} for number, source in enumerate(sources)},
        "timeout": 60,  # seconds for an index to answer; pywb takes 5, and leaves a slower one out
        "archive_paths": [path_of],
        "inject_scripts": ["archiver_page.js"],
    }
    return {
        "collections": {name: collection},
        "collections_root": str(config.with_name("none")),
        "enable_auto_colls": False,
        "framed_replay": True,
        "static_dir": str(Path(__file__).with_name("static")),
    }


_KIND = "archiver"  # of an index, in a configuration


def _serve(
    custom: dict[str, Any],
    config: Path,
    wrap: Callable[[Any], Any],
    port: int,
    ended: list[int],
    started: Callable[[int], None],
) -> None:
    from gevent import monkey, signal_handler  # noqa: PLC0415 - of the extra `replay`

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of TLS made before; nothing here speaks TLS
        monkey.patch_all()  # pywb talks to itself over a socket, and would wait for itself for ever
    from gevent.event import Event  # noqa: PLC0415 - of the extra `replay`
    from gevent.pywsgi import WSGIServer  # noqa: PLC0415 - of the extra `replay`
    from pywb.utils.geventserver import RequestURIWSGIHandler  # noqa: PLC0415 - of the extra `replay`

    from archiver.tools.replay.rewriter import application  # noqa: PLC0415 - of the extra `replay`

    app = application(config, custom)
    inner = app.warcserver_server.server
    server = WSGIServer((ADDRESS, port), app, handler_class=RequestURIWSGIHandler, log=None)
    inner.log = server.log  # no line for each request
    over = Event()
    for end in _numbers():
        signal_handler(end, over.set)
    try:
        server.start()
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be used: {_reason(error)}; choose another with --port, or 0 for a free one"
        ) from None
    server.application = only_ours(wrap(app), server.server_port)
    inner.application = only_ours(inner.application, inner.server_port)
    if ended:
        raise KeyboardInterrupt
    started(server.server_port)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # pywb prints to it
        over.wait()
        server.stop(timeout=1)


def only_ours(app: Any, port: int) -> Any:
    """Return *app*, restricted to requests that use one of this machine's names.

    A web page may give its own name our address (DNS rebinding); its scripts could then read every response.
    """
    hosts = {f"{name}:{port}" for name in NAMES} | ({*NAMES} if port == 80 else set())

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_HOST", "").strip().lower() in hosts:
            return app(environ, start_response)  # type: ignore[no-any-return] # pywb has no types
        text = (
            f"This is a replay on one machine. It answers at http://{ADDRESS}:{port}/ and at no other name.\n".encode()
        )
        fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(text)))]
        start_response("421 Misdirected Request", fields)
        return [text]

    return answer


def _reason(error: OSError) -> str:
    """Return the reason without the address that gevent adds."""
    return os.strerror(error.errno) if error.errno else str(error)
