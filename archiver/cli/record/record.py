"""`archiver record`: run the proxy until Ctrl+C, and show what it has recorded."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO

import click

from archiver.cli.options import (
    define_command,
    given_settings,
    output_option,
    setting_options,
    verbosity,
    verbosity_options,
)
from archiver.cli.terminal import complain, log_to_stderr, result, say
from archiver.config.option_types import SIZE
from archiver.errors import ConfigError
from archiver.humanize import count, duration, printable, volume
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.cli.runner import StopSignals
    from archiver.config.settings import Settings
    from archiver.crawl.build import Opening
    from archiver.crawl.record.authority import Authority
    from archiver.crawl.record.recording import Clients, Recording, RecordingState

PORT = 8088
BACKLOG = 100  # clients that wait to be accepted
LARGEST_REQUEST = 100 * 10**6  # bytes of a body
PERIOD = 0.5  # seconds between two looks at the recording
LINE_EVERY = 10.0  # seconds between two lines in a pipe
URL_WIDTH = 60
ERASE = "\x1b[K"  # erases the rest of the line
SETTINGS = frozenset(
    (
        *("allow-private", "insecure-secrets", "proxy", "timeout", "max-response-size", "max-unstated-size"),
        *("resolve", "dns-server", "source-address", "ip-version"),
        *("dns-timeout", "connect-timeout", "first-byte-timeout", "max-response-time"),
        *("ca-file", "system-ca", "client-cert", "tls-min", "tls-max"),
        *("min-free-disk", "drain-timeout"),
        *("warc-prefix", "warc-size", "metadata-warc", "digest", "operator", "description"),
        *("dedup", "dedup-min-size", "dedup-from"),
    )
)


def record(output: Path | None, port: int, address: str, **rest: Any) -> ExitCode:
    """Record into *output* what clients ask at *port* of *address*, until Ctrl+C."""
    authority = _authority(rest["ca"], output)
    if rest["print_ca"]:
        result(authority.pem)
        say(f"archiver: the certificate is also in {authority.certificate}; SHA-256 {authority.fingerprint}")
        return ExitCode.DONE
    if output is None:
        raise ConfigError("-o is missing: name the collection to record into, for example: archiver record -o DIR")
    settings, opening = _prepared(output, given_settings(rest))
    level = verbosity(rest)
    if level > 0:
        log_to_stderr(debug=level > 1)
    with _listening(address, port) as where:
        from archiver.cli.directory import make_directory
        from archiver.crawl.record.recording import Clients

        new = not output.exists()
        make_directory(output)
        if new:
            output.chmod(0o700)  # the index holds what forms have sent, so that a replay finds the responses
        clients = Clients(where, authority, rest["max_request_size"])
        ended, last = _run(output, settings, clients, opening, quiet=level < 0)
    return _finish(output, settings, ended, last)


def _authority(folder: Path | None, output: Path | None) -> "Authority":
    """Return the authority in *folder*, or the user's own. Its key must not be handed on with a collection."""
    from archiver.crawl.record.authority import Authority, authority_folder

    try:
        folder = folder or authority_folder()
    except RuntimeError:
        raise ConfigError("there is no home folder for the certificate authority; name one with --ca") from None
    if output is not None and folder.resolve().is_relative_to(output.resolve()):
        raise ConfigError(f"--ca {folder}: it is inside the collection, which may be handed on; name another folder")
    return Authority(folder)


def _listening(address: str, port: int) -> socket.socket:
    """Return a socket for clients on this machine only. The proxy asks for no password, so others may not use it."""
    name = "127.0.0.1" if address == "localhost" else address.strip("[]")
    try:
        is_local = ip_address(name).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise ConfigError(
            f"--host {printable(address, 100)}: the proxy serves this machine only (127.0.0.1, ::1 or localhost), for "
            "others could reach any site through it; to use it from elsewhere: ssh -L"
        )
    where = socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET)
    try:
        if os.name == "posix":
            where.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        where.bind((name, port))  # it listens as soon as the collection is open
    except OSError as error:
        where.close()
        raise ConfigError(
            f"--port {port}: {os.strerror(error.errno or 0)}; choose another one, or 0 for a free one"
        ) from None
    return where


def _prepared(directory: Path, given: dict[str, Any]) -> tuple["Settings", "Opening"]:
    """Return the settings of the recording in *directory*, and how it is opened. Nothing is written yet."""
    from archiver.cli.config.named_files import check_named_files
    from archiver.cli.config.sources import (
        check_disk_space,
        check_network_choices,
        check_proxies,
        check_secrets,
        with_absolute_paths,
    )
    from archiver.cli.directory import check_free, check_resumable
    from archiver.collection.layout import Layout
    from archiver.collection.named_crawl import holds_crawl
    from archiver.collection.settings_file import settings_text
    from archiver.config import toml
    from archiver.crawl.build import Opening
    from archiver.crawl.record.recording import recording_settings

    read, before, layout = "", {}, Layout(directory)
    there = directory.is_dir() and holds_crawl(directory)
    if there:
        check_resumable(directory)
        read = settings_text(layout.settings)
        before = toml.parse(read, str(layout.settings))
        if not before.get("recording"):
            name = quote(str(directory))
            raise ConfigError(
                f"{directory} holds a crawl, and a recording needs a collection of its own: choose another directory "
                f"with -o; archiver replay {name} DIR serves both as one"
            )
    else:
        check_free(directory)
    settings = recording_settings({**before, **given})
    check_proxies(settings)
    check_network_choices(settings)
    if there:
        check_named_files(directory, settings, given, trusted=False)
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    check_secrets(settings)
    text = toml.render(settings) if given or not there else ""
    return settings, Opening(there and layout.has_frontier(), text, read)


def _run(
    directory: Path, settings: "Settings", clients: "Clients", opening: "Opening", *, quiet: bool
) -> tuple[ExitCode, "RecordingState"]:
    """Record until a signal comes."""
    from archiver.cli.runner import StopSignals, handle_signals
    from archiver.crawl.crawler_process import event_loop
    from archiver.crawl.record.recording import open_recording

    async def run(stop: "StopSignals") -> tuple[ExitCode, "RecordingState"]:
        with handle_signals(stop):
            async with open_recording(directory, settings, clients, opening) as recording:
                clients.where.listen(BACKLOG)
                _tell(directory, clients)
                stopping = asyncio.create_task(stop.stop(recording))
                try:
                    async with _shown(recording, None if quiet else sys.stderr):
                        ended = await recording.run()
                finally:
                    stopping.cancel()
                last = recording.snapshot()
        return ended.code, last

    again = f"archiver record -o {quote(str(directory))}"
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        return runner.run(run(StopSignals(settings.limits.drain_timeout, os._exit, again)))


def _tell(directory: Path, clients: "Clients") -> None:
    """Print where the proxy listens, and what clients must trust."""
    host, port = clients.where.getsockname()[:2]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    result(f"http://{shown}")
    say(f"archiver: recording into {directory}; set {shown} as the proxy for HTTP and HTTPS; Ctrl+C ends it")
    say(f"archiver: for HTTPS, let the client trust {clients.authority.certificate}; its key stays in that folder")


def _finish(directory: Path, settings: "Settings", code: ExitCode, last: "RecordingState") -> ExitCode:
    """Write the reports, and print what was recorded."""
    from archiver.collection.layout import Layout
    from archiver.collection.named_crawl import NamedCrawl
    from archiver.crawl.metadata_warc import stored
    from archiver.tools.report import files
    from archiver.tools.report.report import FinishedRun, read_summary

    so_far = last.so_far
    named = NamedCrawl.in_directory(directory)
    with named.read() as db:
        run = FinishedRun(last.elapsed, so_far.recorded, so_far.received)
        found = read_summary(db, "done", run, named.quotas(db))
        files.write_reports(named, db, found, Layout(directory).reports, time.time())
    if settings.warc.metadata_warc:
        try:
            asyncio.run(stored(directory, settings))
        except ConfigError as error:  # another process has gone on with the recording already
            complain(f"settings, log and reports will be stored at the end of the next run: {error}")
    answers = f"{count(so_far.recorded, 'answer')}, {volume(so_far.received)}"
    failed = f"; {count(so_far.failed, 'request')} without an answer" if so_far.failed else ""
    cut = "; requests under way were cut, and are not recorded" if code is ExitCode.STOPPED else ""
    say(f"archiver: recorded {answers}{failed}{cut}; to view it: archiver replay {quote(str(directory))}")
    return code


@asynccontextmanager
async def _shown(recording: "Recording", stream: TextIO | None) -> AsyncIterator[None]:
    """Show on *stream*, if there is one, what *recording* does while the block runs."""
    if stream is None:
        yield
        return
    showing = asyncio.create_task(_show(recording, stream), name="progress")
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing


async def _show(recording: "Recording", stream: TextIO) -> None:
    live, before, due = stream.isatty(), "", 0.0
    with suppress(OSError, ValueError):  # the screen is gone; the recording goes on
        try:
            while True:
                await asyncio.sleep(PERIOD)
                now = recording.snapshot()
                line = progress_line(now)
                if live:
                    stream.write(f"{ERASE}{line}\r")  # what the log says next begins there
                elif now.elapsed >= due and (changed := f"{now.so_far}{now.active}") != before:
                    before, due = changed, now.elapsed + LINE_EVERY
                    stream.write(f"{line}\n")
                stream.flush()
        finally:
            if live:
                stream.write(ERASE)
                stream.flush()


def progress_line(state: "RecordingState") -> str:
    """Return *state* in one line."""
    so_far = state.so_far
    parts = [
        f"{'ending' if state.ending else 'recording'} {duration(state.elapsed)}",
        f"{so_far.recorded} recorded",
        *([f"{so_far.failed} failed"] if so_far.failed else ()),
        f"{state.active} active",
        volume(so_far.received),
        *([printable(so_far.last, URL_WIDTH)] if so_far.last else ()),
    ]
    return " · ".join(parts)


def _size(text: str) -> int:
    try:
        return int(SIZE.parse(text))
    except ConfigError as error:
        raise ConfigError(f"--max-request-size: {error}") from None


COMMAND = define_command(
    "record",
    record,
    """Record what a browser or client asks through a proxy.

    Every request with its response goes into DIR, byte for byte, into the same kind of collection as a crawl makes. The
    response reaches the client while it is stored; its end comes when it is on disk. HTTPS is read with a certificate
    authority of your own, whose key stays on this machine: let the client trust its certificate. robots.txt is not
    asked, and no link is followed: you ask. Press Ctrl+C to end; the same command goes on later.
    """,
    [
        output_option("DIR", "Record into DIR, a new collection or one of archiver record."),
        click.Option(
            ["--port"],
            type=click.IntRange(0, 65535),
            default=PORT,
            metavar="N",
            help=f"Listen on port N; 0 picks a free one. [default: {PORT}]",
        ),
        click.Option(
            ["--host", "address"],
            default="127.0.0.1",
            metavar="ADDRESS",
            help="Listen on this address of this machine: 127.0.0.1 or ::1. [default: 127.0.0.1]",
        ),
        click.Option(
            ["--ca"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Keep the certificate authority in DIR. [default: ~/.local/share/archiver/record]",
        ),
        click.Option(["--print-ca"], is_flag=True, help="Print the certificate that clients must trust, and end."),
        click.Option(
            ["--max-request-size"],
            type=_size,
            default=str(LARGEST_REQUEST),
            metavar="SIZE",
            help="Refuse a request whose body is longer. [default: 100MB]",
        ),
        *setting_options(SETTINGS),
        *verbosity_options(),
    ],
    ("archiver record -o visit", "then set 127.0.0.1:8088 as the proxy of a browser"),
    ("archiver record -o visit --allow-private wiki.intranet", "record a host of your own network"),
    ("archiver record --print-ca", "the certificate to import into the browser"),
)
