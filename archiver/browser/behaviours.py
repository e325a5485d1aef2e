"""What a view does with a page as a person might, and what it reads there, hidden from the scripts of the page.

The user's own behaviors have the class form of browsertrix. They are bounded in time and steps; one that fails ends.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

from archiver.browser.devtools import BrowserGoneError, DevTools, DevToolsError
from archiver.humanize import printable

_FILES = resources.files("archiver.browser")
BEHAVIOURS = _FILES.joinpath("behaviours.js").read_text("utf-8").partition("\n")[2].strip()
RUNNER = _FILES.joinpath("behavior_files.js").read_text("utf-8").strip()
MAX_GROWTH = 20  # times that a page may become longer while it is scrolled
PAUSE, LONG_PAUSE = 50, 250  # milliseconds at a place while scrolling; longer if scripts look at times where it is
MAX_FRAMES = 20  # of a page, in which behaviors run
MAX_MESSAGE = 300  # characters of an error
LONGEST_TEXT = 300  # characters of the text of a link


class BehaviorFile(NamedTuple):
    """A behavior of the user."""

    path: str
    source: str  # one class, as an expression


@dataclass(frozen=True, slots=True)
class BehaviourPlan:
    """What is done with each page."""

    clicks: int = 0  # on buttons that load more
    files: tuple[BehaviorFile, ...] = ()  # of the user; the first that is for a page runs there …
    seconds: float = 60.0  # … for so long at most …
    steps: int = 1000  # … and so many steps


class ScriptError(DevToolsError):
    """A script has thrown an error."""


class IsolatedWorld:
    """A world of its own in the main *frame* of a page: it shares the document with the page, and no objects."""

    def __init__(self, devtools: DevTools, session: str, frame: str) -> None:
        self._devtools = devtools
        self._session = session
        self._frame = frame

    async def value(self, script: str, default: Any = None) -> Any:
        """Return the value of *script*; *default* if there is none, as of a page that has gone elsewhere meanwhile."""
        with suppress(DevToolsError):
            return (await self.run(await self.context(), script)).get("value", default)
        return default

    async def context(self) -> int:
        """Return a new context, which lasts as long as the document. Raises `DevToolsError`."""
        world = await self._devtools.call("Page.createIsolatedWorld", self._session, frameId=self._frame)
        return int(world["executionContextId"])

    async def inner(self) -> list["IsolatedWorld"]:
        """Return a world in each frame of the page, but not in frames of other sites."""
        found: list[IsolatedWorld] = []
        with suppress(DevToolsError):
            trees = [(await self._devtools.call("Page.getFrameTree", self._session))["frameTree"]]
            while trees and len(found) < MAX_FRAMES:
                inner = trees.pop().get("childFrames", ())
                found += (IsolatedWorld(self._devtools, self._session, each["frame"]["id"]) for each in inner)
                trees += inner
        return found[:MAX_FRAMES]

    async def run(self, context: int, script: str) -> dict[str, Any]:
        """Return the result of *script* in *context*. Raises `DevToolsError`."""
        ran = await self._devtools.call(
            "Runtime.evaluate",
            self._session,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            contextId=context,
        )
        if "exceptionDetails" in ran:
            raise ScriptError(message_of(ran["exceptionDetails"]))
        result: dict[str, Any] = ran.get("result", {})
        return result

    async def listens(self, kind: str) -> bool:
        """Return True if the page's scripts listen to events *kind* of its window or document."""
        with suppress(DevToolsError):
            for target in ("window", "document"):
                found = (await self._devtools.call("Runtime.evaluate", self._session, expression=target))["result"]
                told = await self._devtools.call(
                    "DOMDebugger.getEventListeners", self._session, objectId=found["objectId"]
                )
                if any(each["type"] == kind for each in told["listeners"]):
                    return True
        return False

    def interrupt(self) -> None:
        """End the script that runs."""
        self._devtools.send("Runtime.terminateExecution", self._session)

    async def title(self) -> str:
        """Return the title of the document."""
        return str(await self.value("document.title", ""))

    async def text(self) -> str:
        """Return the text that is visible on the page, also in frames of the same origin; at most a million letters."""
        return str(await self.value(f"{BEHAVIOURS}.text()", ""))

    async def links(self, *, texts: bool) -> dict[str, str]:
        """Return the links of the live document, and the text of each, "" without *texts*."""
        found = await self.value(f"{BEHAVIOURS}.links({json.dumps(texts)})", ())
        return {str(address): str(text)[:LONGEST_TEXT] for address, text in found}

    async def pictures(self) -> tuple[str, ...]:
        """Return the pictures that the live document offers to screens of any size."""
        return tuple(map(str, await self.value(f"{BEHAVIOURS}.pictures()", ())))

    async def routes(self) -> tuple[str, ...]:
        """Return the routes in the links to the page itself, such as `#/about`."""
        return tuple(map(str, await self.value(f"{BEHAVIOURS}.routes()", ())))

    async def go(self, route: str) -> None:
        """Go to a *route* of the page."""
        await self.value(f"{BEHAVIOURS}.go({json.dumps(route)})")

    async def rewind(self) -> None:
        """Scroll back to the beginning, and wait until that is drawn."""
        await self.value(f"{BEHAVIOURS}.rewind()")


def message_of(details: dict[str, Any]) -> str:
    """Return the error in the `exceptionDetails` of an evaluation, in one line."""
    described = str(details.get("exception", {}).get("description", "")) or str(details.get("text", ""))
    return printable(described.partition("\n")[0], MAX_MESSAGE)


class Behaviours:
    """Opens, plays and scrolls a page, runs a behavior of the user, and clicks what loads more, if that is wanted."""

    def __init__(self, world: IsolatedWorld, quiet: Callable[[], Awaitable[bool]], plan: BehaviourPlan) -> None:
        """*quiet* waits until the page is quiet; False: the view has reached a limit."""
        self.links: tuple[str, ...] = ()  # that the user's behavior has named
        self.ran = ""  # the id of the user's behavior
        self.faults: list[str] = []  # of the user's behaviors
        self._world = world
        self._quiet = quiet
        self._plan = plan
        self._begun = 0  # behaviors of the user

    async def run(self) -> None:
        """Run all of them, one after the other."""
        await self._world.value(f"{BEHAVIOURS}.open()")
        await self._run_files(self._world, framed=False)
        if any("runInIframe" in each.source for each in self._plan.files):
            for world in await self._world.inner():
                await self._run_files(world, framed=True)
        reached = await self.scroll(0)
        for _ in range(self._plan.clicks):
            if not await self._quiet() or not await self._world.value(f"{BEHAVIOURS}.more()"):
                break
            await self._quiet()
            reached = await self.scroll(reached)

    async def scroll(self, reached: int) -> int:
        """Scroll from *reached* to the end, also if the page becomes longer meanwhile; return the place reached."""
        pause = LONG_PAUSE if await self._world.listens("scroll") else PAUSE
        for _ in range(MAX_GROWTH):
            reached = int(await self._world.value(f"{BEHAVIOURS}.scroll({reached}, {pause})", reached))
            if not await self._quiet() or not await self._world.value(f"{BEHAVIOURS}.continues({reached})"):
                break
        return reached

    async def _run_files(self, world: IsolatedWorld, *, framed: bool) -> None:
        """Run the first behavior that is for the page; *framed*: for this frame of it."""
        begun = self._begun
        for each in self._plan.files:
            if self._begun == begun:
                await self._run_file(each, world, framed=framed)

    async def _run_file(self, file: BehaviorFile, world: IsolatedWorld, *, framed: bool) -> None:
        """Run the behavior in *file*, if it is for the document of *world*."""
        plan, fault = self._plan, ""
        try:
            async with asyncio.timeout(plan.seconds):
                fault = await self._steps(file, world, framed=framed)
        except TimeoutError:
            world.interrupt()
            fault = f"it was ended after {plan.seconds:g} seconds"
        except BrowserGoneError:
            raise
        except DevToolsError as error:
            fault = str(error)
        if fault:
            self.faults.append(f"{file.path}: {fault}")

    async def _steps(self, file: BehaviorFile, world: IsolatedWorld, *, framed: bool) -> str:
        """Begin the behavior in *file*, and make its steps; return why it was ended, "" if it ended by itself."""
        context = await world.context()
        await world.run(context, f"globalThis.archiver = {RUNNER}; 0")
        begin = f"archiver.begin({expression(file)}, {json.dumps(framed)})"
        ran = str((await world.run(context, begin)).get("value") or "")
        self.ran = self.ran or ran
        self._begun += bool(ran)
        fault = f"it was ended after {self._plan.steps} steps" if ran else ""
        for _ in range(self._plan.steps if ran else 0):
            if not (await world.run(context, "archiver.step()")).get("value"):
                fault = ""
                break
            if not await self._quiet():
                break
        named = (await world.run(context, "archiver.links()")).get("value", ())
        self.links = (*self.links, *map(str, named))
        return fault


def expression(file: BehaviorFile) -> str:
    """Return the class in *file* as an expression; its lines keep their numbers."""
    return f"({file.source}\n)"
