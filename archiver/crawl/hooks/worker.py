"""The process in which hooks and extractors run: `serve` is its program.

It reads questions from a pipe and answers in JSON, so what a hook returns can do no harm to the crawl. An alarm
interrupts a function that takes too long, and the answer names the line at which it was. Code that no alarm can
interrupt, or that uses up the memory, ends with this process: see `archiver.crawl.hooks.process`.
"""

import json
import os
import pickle
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, NoReturn

from archiver.crawl.hooks.pipes import limit_memory, receive, send
from archiver.crawl.hooks.values import FUNCTIONS, HOPS, HookDocument, HookExchange, HookLink, HookPage, HookStop

GROUP = "archiver.extractors"  # of entry points
EXTRACTOR = "extractor "  # before the media type of one, in messages
MODULE = "archiver_hooks"  # the name under which the file of the user is imported
OUT_OF_MEMORY = 77  # the exit code of a process that needs more
MOST_ADDED = 10_000  # links that one function may add to one document
LONGEST_URL = 8192  # characters of a link
LONGEST_ERROR = 300  # characters
AGAIN = 0.2  # seconds until the alarm goes off again, in case a function has caught it
LARGEST = 64 << 20  # bytes of a question or an answer

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class HookProgram:
    """All that the process runs."""

    path: str  # of the user's file; "" without one
    text: bytes
    extractors: tuple[tuple[str, str], ...]  # media type and value of each entry point
    seconds: float  # for each function and document
    memory: int  # bytes of address space


class _TooLongError(BaseException):
    """The alarm: no `except Exception` of a hook catches it."""


class _Alarm:
    """Interrupts what runs in its block when its time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._armed = False
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, _number: int, frame: FrameType | None) -> None:
        """Interrupt the block, but neither its beginning nor its end: the alarm would stay on after it."""
        while frame is not None:
            if frame.f_code in _EDGES:
                return  # it goes off again
            frame = frame.f_back
        if self._armed:
            raise _TooLongError

    def __enter__(self) -> None:
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds, AGAIN)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


_EDGES = frozenset((_Alarm.__enter__.__code__, _Alarm.__exit__.__code__))


class HookWorker:
    """Calls the functions of one program."""

    def __init__(self, program: HookProgram) -> None:
        """Load *program*. Raises whatever its file raises."""
        self._path = program.path
        self._alarm = _Alarm(program.seconds)
        self._seconds = program.seconds
        self._functions: dict[str, Function] = {}
        self._extractors = dict[str, Function]()
        self._program = program
        self._errors: Counter[tuple[str, str]] = Counter()
        self._late: set[str] = set()
        self._stop: tuple[str, str] | None = None
        self._asks: dict[str, Function] = {"judge": self._judge, "links": self._links, "keep": self._keep}
        self._asks["settings"] = self._settings
        if program.path:
            module = sys.modules[MODULE] = ModuleType(MODULE)
            module.__file__ = program.path
            exec(compile(program.text, program.path, "exec"), vars(module))  # noqa: S102 - the user's own file
            found = {name: getattr(module, name, None) for name in FUNCTIONS}
            self._functions = {name: function for name, function in found.items() if callable(function)}

    @property
    def functions(self) -> list[str]:
        """The names of the functions that the file has."""
        return list(self._functions)

    def answer(self, kind: str, question: Any) -> dict[str, Any]:
        """Return the answer to a *question*, with the errors on the way to it."""
        self._errors.clear()
        self._late.clear()
        value = getattr(self, f"_{kind}")(*question)
        errors = [[name, text, times, name in self._late] for (name, text), times in self._errors.items()]
        return {"value": value, "errors": errors, "stop": self._stop}

    def _judge(self, page: HookPage, links: list[tuple[str, str, str, str]]) -> str:
        """Return a letter for each link: y, n, or - where the usual rules decide."""
        judge, letters = self._functions["judge"], list[str]()

        def judge_all() -> None:
            for link in links:
                try:
                    given = judge(HookLink(*link), page)
                except HookStop:
                    raise
                except Exception as error:  # noqa: BLE001 - becomes an error of this link alone
                    given = None
                    self._failed("judge", error)
                letters.append(self._letter("judge", given))

        self._call("judge", judge_all)
        return "".join(letters)

    def _keep(self, exchange: HookExchange) -> str:
        return self._letter("keep", self._call("keep", lambda: self._functions["keep"](exchange)))

    def _settings(self, hosts: list[str]) -> list[str]:
        """Return for each host a JSON object, "" if it has no settings of its own."""
        return [self._call("settings", partial(self._settings_of, host)) or "" for host in hosts]

    def _settings_of(self, host: str) -> str:
        given = self._functions["settings"](host)
        if given is None:
            return ""
        if not isinstance(given, dict):
            raise TypeError(f"it returned {_name(given)}, not a dict or None")
        return json.dumps(given)

    def _links(self, document: HookDocument, reader: str) -> list[list[str]]:
        """Return URL, hop and context of each link that *reader* finds: the hook, or the extractor of a media type."""
        name = reader if reader == "links" else f"{EXTRACTOR}{reader}"
        found: list[list[str]] = []

        def read() -> None:
            given = self._reader(reader)(document)
            if given is None:
                return
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise TypeError(f"it returned {_name(given)}, not a list of links")
            for each in given:
                if len(found) >= MOST_ADDED:
                    raise ValueError(f"it returned more than {MOST_ADDED:,} links")
                found.extend(self._link(name, each))

        self._call(name, read)
        return found

    def _reader(self, media_type: str) -> Function:
        """Return the hook, or the extractor for *media_type*, which is imported when it is needed first."""
        if media_type == "links":
            return self._functions["links"]
        if media_type not in self._extractors:
            from importlib.metadata import EntryPoint  # noqa: PLC0415 - slow, and each crawl imports this module

            value = dict(self._program.extractors)[media_type]
            self._extractors[media_type] = EntryPoint(media_type, value, GROUP).load()
        return self._extractors[media_type]

    def _link(self, name: str, given: Any) -> Iterator[list[str]]:
        link = HookLink(given) if isinstance(given, str) else given
        if not isinstance(link, HookLink) or not isinstance(link.url, str):
            self._failed(name, TypeError(f"it returned {_name(given)}, not a text or a HookLink"))
        elif link.hop not in HOPS:
            self._failed(name, ValueError(f"it returned the hop {str(link.hop)[:20]!r}, not one of {', '.join(HOPS)}"))
        elif len(link.url) > LONGEST_URL:
            self._failed(name, ValueError(f"it returned a URL of more than {LONGEST_URL:,} characters"))
        else:
            yield [link.url, link.hop, str(link.context)[:100]]

    def _letter(self, name: str, given: Any) -> str:
        if given is not None and not isinstance(given, bool):
            self._failed(name, TypeError(f"it returned {_name(given)}, not True, False or None"))
            return "-"
        return "-" if given is None else "y" if given else "n"

    def _call(self, name: str, function: Callable[[], Any]) -> Any:
        """Return what *function* returns within its time; None if it fails."""
        try:
            with self._alarm:
                return function()
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except HookStop as stop:
            self._stop = name, (str(stop) or "no reason given")[:LONGEST_ERROR]
        except _TooLongError as error:
            self._late.add(name)
            self._failed(name, error)
        except BaseException as error:  # noqa: BLE001 - told, and counted; the usual rules decide
            self._failed(name, error)
        return None

    def _failed(self, name: str, error: BaseException) -> None:
        what = f"it took more than {self._seconds:g} s" if isinstance(error, _TooLongError) else described(error)
        self._errors[name, f"{what}{place(error, self._path)}"[:LONGEST_ERROR]] += 1


def described(error: BaseException) -> str:
    """Return *error* in one line."""
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    except Exception:  # noqa: BLE001 - an error that cannot be shown; its name can
        return type(error).__name__


def place(error: BaseException, path: str) -> str:
    """Return the last line of the file at *path* that *error* came through, else the last line of all."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f" ({Path(path).name} line {error.lineno})"
    steps = traceback.extract_tb(error.__traceback__)
    ours = [step for step in steps if step.filename == path]
    if not ours and (not steps or steps[-1].filename == __file__):
        return ""
    last = (ours or list(steps))[-1]
    return f" ({Path(last.filename).name} line {last.lineno})"


def _name(given: Any) -> str:
    return "None" if given is None else f"a value of type {type(given).__name__}"


def serve() -> NoReturn:
    """Answer the questions that come through standard input until it ends."""
    questions, answers = FileIO(os.dup(0)), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # what hooks print, line by line
    with suppress(EOFError, BrokenPipeError):
        program: HookProgram = pickle.loads(receive(questions, LARGEST))  # noqa: S301 - from our own process
        limit_memory(program.memory)
        worker = _loaded(program, answers)
        while worker is not None:
            kind, question = pickle.loads(receive(questions, LARGEST))  # noqa: S301 - from our own process
            send(answers, json.dumps(worker.answer(kind, question)).encode())
    with suppress(Exception):
        sys.stderr.flush()
    os._exit(0)  # whatever threads a hook has started


def _loaded(program: HookProgram, answers: int) -> HookWorker | None:
    try:
        worker = HookWorker(program)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException as error:  # noqa: BLE001 - told to the user, who gets no crawl
        send(answers, json.dumps({"fault": f"{described(error)}{place(error, program.path)}"}).encode())
        return None
    send(answers, json.dumps({"functions": worker.functions}).encode())
    return worker
