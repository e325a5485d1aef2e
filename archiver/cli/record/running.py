"""Runs a recording: the socket, the signals, the display, and the reports at the end."""

import asyncio
import os
import socket
import sys
import time
from contextlib import nullcontext, suppress
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from typing import TextIO

from archiver.cli.progress import beside
from archiver.cli.record.prepare import PreparedRecording
from archiver.cli.runner import StopSignals, handle_signals
from archiver.cli.terminal import complain, result, say
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl
from archiver.collection.settings_file import put_origins
from archiver.config.settings import Settings
from archiver.crawl.crawler_process import event_loop
from archiver.crawl.metadata_warc import stored
from archiver.crawl.record.recording import Clients, Recording, RecordingState, open_recording
from archiver.errors import ConfigError
from archiver.humanize import count, duration, printable, volume
from archiver.model import ExitCode
from archiver.tools.report import files
from archiver.tools.report.report import FinishedRun, summary_of
from archiver.tools.watch.users import Users

BACKLOG = 100  # clients that wait to be accepted
PERIOD = 0.5  # seconds between two looks at the recording
LINE_EVERY = 10.0  # seconds between two lines in a pipe
URL_WIDTH = 60
LONGEST_LINE = 4000  # characters of a line that names URLs
SILENT = -1  # below it, print errors only
ERASE = "\x1b[K"  # erases the rest of the line


def listening(address: str, port: int, users: Users | None) -> socket.socket:
    """Return a socket for clients. Where other machines reach it, *users* say who may ask."""
    name = "127.0.0.1" if address == "localhost" else address.strip("[]")
    try:
        is_local = ip_address(name).is_loopback
    except ValueError:
        raise ConfigError(
            f"--listen {printable(address, 100)}: write an IP address of this machine, such as 127.0.0.1 or 0.0.0.0"
        ) from None
    if not is_local and users is None:
        raise ConfigError(
            f"--listen {printable(address, 100)}: other machines can reach it, so name who may record with --users "
            "FILE; archiver watch --users FILE --add-user NAME makes a file of users"
        )
    where = socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET)
    try:
        if os.name == "posix":
            where.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        where.bind((name, port))  # it listens as soon as the collection is open
    except OSError as error:
        where.close()
        raise ConfigError(
            f"port {port} of {name} cannot be used: {os.strerror(error.errno or 0)}; choose another with --port, or 0 "
            "for a free one"
        ) from None
    return where


def run_recording(directory: Path, prepared: PreparedRecording, clients: Clients, verbosity: int) -> ExitCode:
    """Record until a signal comes, then write the reports and print what was recorded."""
    quiet, settings = verbosity < 0, prepared.settings

    async def run(stop: StopSignals) -> ExitCode:
        with handle_signals(stop):
            async with open_recording(directory, settings, clients, prepared.opening) as recording:
                if prepared.origins is not None:  # the directory is locked now
                    put_origins(Layout(directory), prepared.origins)
                clients.where.listen(BACKLOG)
                _tell(directory, clients, quiet=quiet)
                stopping = asyncio.create_task(stop.stop(recording))
                try:
                    async with nullcontext() if quiet else beside(_show(recording, sys.stderr)):
                        ended = await recording.run()
                finally:
                    stopping.cancel()
                last = recording.snapshot()
            stop.close()
            return await asyncio.to_thread(_finish, directory, settings, (ended.code, last), quiet=verbosity < SILENT)

    again = f"archiver record -o {quote(str(directory))}"
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        return runner.run(run(StopSignals(settings.limits.drain_timeout, os._exit, again)))


def _tell(directory: Path, clients: Clients, *, quiet: bool) -> None:
    """Print where the proxy listens, and what clients must trust."""
    host, port = clients.where.getsockname()[:2]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    result(f"http://{shown}")
    if quiet:
        return
    say(f"archiver: recording into {directory}; set {shown} as the proxy for HTTP and HTTPS; Ctrl+C ends it")
    if clients.logins is not None:
        say("archiver: clients must log in; their password crosses the network in the clear, so use one for this only")
    say(f"archiver: for HTTPS, let the client trust {clients.authority.certificate}; its key stays in that folder")


def _finish(directory: Path, settings: Settings, ended: tuple[ExitCode, RecordingState], *, quiet: bool) -> ExitCode:
    """Write the reports, and print what was recorded, unless *quiet*."""
    code, last = ended
    so_far = last.so_far
    named = NamedCrawl.in_directory(directory)
    with named.read() as db:
        run = FinishedRun(last.elapsed, so_far.recorded, so_far.received)
        found = summary_of(named, db, "done", run)
        files.write_reports(named, db, found, Layout(directory).reports, time.time())
    if settings.warc.metadata_warc:
        try:
            asyncio.run(stored(directory, settings))
        except ConfigError as error:  # another process has gone on with the recording already
            complain(f"settings, log and reports will be stored at the end of the next run: {error}")
    if quiet:
        return code
    answers = f"{count(so_far.recorded, 'answer')}, {volume(so_far.received)}"
    failed = f"; {count(so_far.failed, 'request')} without an answer" if so_far.failed else ""
    cut = "; requests under way were cut, and are not recorded" if code is ExitCode.STOPPED else ""
    if last.passed.text:
        complain(printable(last.passed.text, LONGEST_LINE))
    say(f"archiver: recorded {answers}{failed}{cut}; to view it: archiver replay {quote(str(directory))}")
    return code


async def _show(recording: Recording, stream: TextIO) -> None:
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


def progress_line(state: RecordingState) -> str:
    """Return *state* in one line."""
    so_far = state.so_far
    parts = [
        f"{'ending' if state.ending else 'recording'} {duration(state.elapsed)}",
        f"{so_far.recorded} recorded",
        *([f"{so_far.failed} failed"] if so_far.failed else ()),
        f"{state.active} active",
        volume(so_far.received),
        *([f"{count(state.passed.open, 'WebSocket')} not recorded"] if state.passed.open else ()),
        *([printable(so_far.last, URL_WIDTH)] if so_far.last else ()),
    ]
    return " · ".join(parts)
