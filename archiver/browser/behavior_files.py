"""Read the behaviors that a user gives (`--behavior`), and check them in a browser before anything else begins.

A file holds one class, in the form that browsertrix-crawler documents for custom behaviors.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from archiver.browser.behaviours import RUNNER, BehaviorFile, expression, message_of
from archiver.browser.chromium import Chromium
from archiver.browser.devtools import BrowserGoneError, DevTools, DevToolsError, connected
from archiver.errors import ConfigError

LARGEST = 1 << 20  # bytes of a file
PATIENCE = 30.0  # seconds for the check of a file
LONGEST_LOAD = 5000  # milliseconds in which a file must be evaluated
FORM = "one class with static id, static isMatch(), static init() and async* run(ctx)"


def read_behaviors(paths: Sequence[str]) -> tuple[BehaviorFile, ...]:
    """Return the behaviors in the files *paths*. Raises `ConfigError`."""
    return tuple(map(_read, paths))


def _read(path: str) -> BehaviorFile:
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"--behavior {path}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise ConfigError(f"--behavior {path}: it is larger than {LARGEST >> 20} MiB")
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"--behavior {path}: it is not UTF-8") from None
    return BehaviorFile(path, text.rstrip(";").rstrip())


def check_behaviors(files: Sequence[BehaviorFile], command: Sequence[str]) -> None:
    """Raise `ConfigError` if one of *files* is no behavior; *command* starts the browser."""
    if not files:
        return
    try:
        asyncio.run(_check(files, command))
    except BrowserGoneError as error:
        raise ConfigError(f"{command[0]}: {error}") from None


async def _check(files: Sequence[BehaviorFile], command: Sequence[str]) -> None:
    async with connected(Chromium(command, network=False)) as devtools:
        for file in files:
            try:
                async with asyncio.timeout(PATIENCE):
                    fault = await _fault(devtools, file)
            except TimeoutError:
                fault = f"it does not end within {PATIENCE:g} seconds"
            except BrowserGoneError:
                raise
            except DevToolsError as error:
                fault = str(error)
            if fault:
                raise ConfigError(f"--behavior {file.path}: {fault}; write {FORM}")


async def _fault(devtools: DevTools, file: BehaviorFile) -> str:
    """Return what is wrong with *file*; "" if nothing is."""
    target = await devtools.call("Target.createTarget", url="about:blank")
    session = (await devtools.call("Target.attachToTarget", targetId=target["targetId"], flatten=True))["sessionId"]
    await devtools.call("Runtime.evaluate", session, expression=f"globalThis.archiver = {RUNNER}; 0")
    ran = await devtools.call(
        "Runtime.evaluate",
        session,
        expression=f"archiver.fault({expression(file)})",
        returnByValue=True,
        timeout=LONGEST_LOAD,
    )
    if details := ran.get("exceptionDetails"):
        return f"line {details.get('lineNumber', 0) + 1}: {message_of(details)}"
    return str(ran.get("result", {}).get("value", "its class cannot be read"))
