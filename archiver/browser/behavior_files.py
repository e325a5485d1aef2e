"""Read the behaviors that a user gives (`--behavior`), and check them in a browser before anything else begins.

A file holds one class, in the form that browsertrix-crawler documents for custom behaviors, or a flow in JSON, as the
recorder in the developer tools of Chrome exports it. Each `navigate` of a flow begins the steps on another page.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from archiver.browser.behaviours import RUNNER, BehaviorFile, expression, message_of
from archiver.browser.chromium import Chromium
from archiver.browser.devtools import BrowserGoneError, DevTools, DevToolsError, connected
from archiver.errors import ConfigError

LARGEST = 1 << 20  # bytes of a file
PATIENCE = 30.0  # seconds for the check of a file
LONGEST_LOAD = 5000  # milliseconds in which a file must be evaluated
FORM = "one class with static id, static isMatch(), static init() and async* run(ctx)"
MOST_STEPS = 1000  # of a flow
LONGEST = 4000  # characters of an address, a selector or a value in a flow
_ON_ELEMENTS = {"click", "doubleClick", "hover", "change", "waitForElement"}
_ELSEWHERE = {"scroll", "keyDown", "keyUp", "waitForExpression"}
_IGNORED = {"setViewport", "emulateNetworkConditions", "close", "customStep"}  # as browsertrix-crawler does
_TEXTS = {"change": ("value",), "keyDown": ("key",), "keyUp": ("key",)}
_OPERATORS = (">=", "<=", "==")


def read_behaviors(paths: Sequence[str]) -> tuple[BehaviorFile, ...]:
    """Return the behaviors in the files *paths*. Raises `ConfigError`."""
    return tuple(each for path in paths for each in _read(path))


def _read(path: str) -> Iterator[BehaviorFile]:
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
    if not text.startswith("{"):
        yield BehaviorFile(path, text.rstrip(";").rstrip())
        return
    try:
        yield from _flow(path, text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--behavior {path}: {error}; export a flow as JSON from the recorder of Chrome") from None


def _flow(path: str, text: str) -> Iterator[BehaviorFile]:
    """Yield a behavior for each page of the flow in *text*. Raises `ValueError`."""
    try:
        flow = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is no JSON ({error})") from None
    given = flow.get("steps")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_STEPS:
        raise ValueError(f"a flow has a list of 1 to {MOST_STEPS} steps")
    pages: list[tuple[str, list[str]]] = [("", [])]
    for number, step in enumerate(given, 1):
        kind = str(step.get("type")) if isinstance(step, dict) else ""
        if kind == "navigate":
            pages.append((_text(number, step, "url"), []))
        elif kind in _ON_ELEMENTS | _ELSEWHERE:
            pages[-1][1].append(_step(number, step))
        elif kind not in _IGNORED:
            raise ValueError(f"step {number} is of the unknown type {kind[:100]!r}")
    title = str(flow.get("title") or Path(path).stem)[:200]
    found = [(address, steps) for address, steps in pages if steps]
    if not found:
        raise ValueError("it has no step to make on a page")
    for address, steps in found:
        yield BehaviorFile(path, f"archiver.flow({json.dumps(title)}, {json.dumps(address)}, [{', '.join(steps)}])")


def _step(number: int, step: Mapping[str, Any]) -> str:
    """Return *step* in JavaScript. Raises `ValueError`."""
    kind = str(step["type"])
    kept: dict[str, Any] = {"type": kind}
    if kind in _ON_ELEMENTS or "selectors" in step:
        kept["selectors"] = _selectors(number, step.get("selectors"))
    kept |= {name: _text(number, step, name) for name in _TEXTS.get(kind, ())}
    for name in ("x", "y", "count"):
        value = step.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"step {number} has no number in {name!r}")  # noqa: TRY004 - of the file, not of the program
        kept |= {name: value} if name in step else {}
    if kind == "waitForElement" and step.get("operator", ">=") not in _OPERATORS:
        raise ValueError(f"step {number}: its operator is none of {', '.join(_OPERATORS)}")
    frame = step.get("frame", [])
    if not isinstance(frame, list) or not all(isinstance(each, int) for each in frame):
        raise ValueError(f"step {number}: its frame is no list of numbers")
    kept |= {name: step[name] for name in ("operator", "frame") if name in step}
    if kind != "waitForExpression":
        return json.dumps(kept)
    return f"{{type: {json.dumps(kind)}, expression: () => ({_text(number, step, 'expression')}\n)}}"


def _text(number: int, step: Mapping[str, Any], name: str) -> str:
    found = step.get(name)
    if not isinstance(found, str) or len(found) > LONGEST:
        raise ValueError(f"step {number} has no text in {name!r}, of at most {LONGEST} characters")
    return found


def _selectors(number: int, given: object) -> list[list[str]]:
    """Return the ways to an element, each as parts in nested shadow trees. Raises `ValueError`."""
    ways = [[way] if isinstance(way, str) else way for way in given] if isinstance(given, list) else []
    for way in ways:
        if not isinstance(way, list) or not all(isinstance(part, str) and len(part) <= LONGEST for part in way):
            raise ValueError(f"step {number} has a selector that is no text, of at most {LONGEST} characters")
    if not ways or not all(ways):
        raise ValueError(f"step {number} has no selectors")
    return ways


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
