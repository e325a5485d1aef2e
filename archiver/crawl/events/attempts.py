"""One try to deliver an event: a command that gets JSON on its stdin, or a POST to a URL.

Both have a limit of time. A command runs in a session of its own, so that signals for the crawl do not reach it, and is
killed with everything it has started when its time is over. What it writes to stderr is logged. Nothing of an event is
part of a command line. Exit code 75 asks for another try, as programs that send mail do; any other is final, because
the command has run.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

from archiver.config.event_settings import Receiver
from archiver.errors import FetchError
from archiver.fetch import webhook
from archiver.fetch.private_networks import AddressGuard
from archiver.frontier.events.deliveries import TryResult
from archiver.humanize import printable

COMMAND_TIME = 60.0  # seconds
AFTER_EXIT = 1.0  # seconds for the rest of stderr, which a process in the background may keep open
LONGEST_STDERR = 2000  # characters that are kept, the last ones
STEP = 16 << 10  # bytes read at once
TEMPORARY = 75  # EX_TEMPFAIL of sysexits.h
GONE = 410  # the receiver wants no more


class EventAttempts:
    """Tries to deliver events to one receiver."""

    def __init__(
        self, receiver: Receiver, key: bytes, guard: AddressGuard, now: Callable[[], float] = time.time
    ) -> None:
        """*key* signs what is sent to a URL; empty: no signature."""
        self._receiver = receiver
        self._key = key
        self._guard = guard
        self._now = now

    async def deliver(self, body: str) -> TryResult:
        """Hand the event *body* over and return what came of it. Never raises because of the receiver."""
        if self._receiver.is_address:
            return await self._post(body)
        return await run_command(self._receiver.target, body)

    async def _post(self, body: str) -> TryResult:
        content = body.encode()
        name = str(json.loads(body)["id"])
        headers = webhook.signed_headers(self._key, name, int(self._now()), content)
        try:
            status, later = await webhook.post(self._receiver.target, headers, content, self._guard)
        except FetchError as error:
            return TryResult(delivered=False, text=error.reason)
        except OSError as error:  # TimeoutError too
            return TryResult(delivered=False, text=str(error))
        if 200 <= status < 300:
            return TryResult(delivered=True, text=f"status {status}")
        redirected = "; redirects are not followed" if 300 <= status < 400 else ""
        wait = float(later) if later.isascii() and later.isdigit() and len(later) < 10 else 0.0
        return TryResult(delivered=False, text=f"status {status}{redirected}", final=status == GONE, wait=wait)


async def run_command(command: str, body: str, limit: float = COMMAND_TIME) -> TryResult:
    """Run *command* with *body* on its stdin, for at most *limit* seconds."""
    reading, writing = os.pipe()
    stderr = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stderr), os.fdopen(reading, "rb", 0)
    )
    said = bytearray()
    following = asyncio.ensure_future(_follow(stderr, said))
    try:
        code = await _run(command, f"{body}\n".encode(), writing, limit)
        await asyncio.wait((following,), timeout=AFTER_EXIT)
    except OSError as error:
        return TryResult(delivered=False, text=f"cannot be started: {error.strerror or error}")
    finally:
        following.cancel()
        transport.close()
    return _result(code, said.decode(errors="replace"), limit)


async def _run(command: str, content: bytes, stderr: int, limit: float) -> int | None:
    """Run *command* to its end, with *content* on its stdin; return its exit code, None if it was killed.

    Its input is a file and its errors go to the open pipe *stderr*, which is closed here. So a process that it leaves
    behind keeps no one waiting.
    """
    try:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(content)
            stdin.seek(0)
            process = await asyncio.create_subprocess_shell(
                command,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=sys.platform != "win32",
            )
    finally:
        os.close(stderr)
    try:
        async with asyncio.timeout(limit):
            return await process.wait()
    except TimeoutError:
        await _kill(process)
        return None
    except BaseException:
        await _kill(process)
        raise


def _result(code: int | None, stderr: str, limit: float) -> TryResult:
    how = f"killed after {limit:g} s" if code is None else f"exit code {code}" if code >= 0 else f"signal {-code}"
    words = printable(" ".join(stderr.split()), LONGEST_STDERR)
    text = f"{how}: {words}" if words else how
    return TryResult(delivered=code == 0, text=text, final=code != TEMPORARY)


async def _follow(stderr: asyncio.StreamReader, said: bytearray) -> None:
    """Read *stderr*, and keep its end in *said*."""
    while piece := await stderr.read(STEP):
        said += piece
        del said[:-LONGEST_STDERR]


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the command and what it has started."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
