"""The routes of the control room: what is asked, who may ask it, and what is answered.

A handler checks the session first, reads in a thread, and answers JSON. Errors of a crawl are one line.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from archiver import __version__
from archiver.collection.named_crawl import NamedCrawl
from archiver.collection.orders import give as giving
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.connection import Reader
from archiver.frontier.orders.table import Verb
from archiver.tools.watch import patterns, reading
from archiver.tools.watch.crawls import Crawls, WatchedCrawl
from archiver.tools.watch.guard import (
    HEADERS,
    MESSAGES,
    REPORT_POLICY,
    Asking,
    Guard,
    LoggedIn,
    RefusedError,
    is_loopback,
)
from archiver.tools.watch.reading import Json, ListQuery, shown
from archiver.tools.watch.starting import Starting, printed
from archiver.tools.watch.threads import in_thread

LARGEST_BODY = 64 << 10
BODY_TIME = 10.0  # seconds for a body to arrive
SLOWEST = 30.0  # seconds in which a viewer takes an event
MOST_STREAMS = 200
MOST_ARGUMENTS = 100
MOST_ORDERS = 8  # orders and previews at once; each waits some seconds for the crawl
FOLDER = Path(__file__).with_name("pages")
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

REPORTS = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><title>Reports</title><h1>Reports</h1>
"""

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Heard = Callable[[web.Request], None]
Explain = Callable[[NamedCrawl, str], list[str]]  # the lines that `archiver explain` prints


@dataclass(frozen=True, slots=True)
class Serving:
    """How the server is reached."""

    port: int
    secure: bool  # the page comes over TLS
    near: bool  # it listens on this machine only, and no proxy is in front
    behind: bool  # a proxy is in front
    replay: str = ""  # the address at which the archive is replayed, for links


class Room:
    """The control room."""

    def __init__(self, crawls: Crawls, guard: Guard, serving: Serving, explain: Explain) -> None:
        self._crawls = crawls
        self._guard = guard
        self._serving = serving
        self._explain = explain
        self._starting = Starting(crawls.folders)
        self._streams = 0
        self._reports = asyncio.Lock()  # a report takes long, so one is made at a time
        self._orders = asyncio.Semaphore(MOST_ORDERS)
        self._cookie = f"archiver_{serving.port}"  # cookies are shared by all ports of a host
        self._pages = {path.name: path.read_bytes() for path in FOLDER.glob("*.*") if path.suffix in KINDS}

    def application(self, heard: Heard) -> web.Application:
        """Return the application; *heard* is called with each request whose head has come."""
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[_middleware(self._check, heard)])
        app.on_response_prepare.append(_add_headers)
        one = "/api/crawls/{id:[0-9a-f]{12}}"
        app.router.add_get("/", self._index)
        app.router.add_get("/static/{name:[a-z0-9._-]{1,60}}", self._static)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/report/", self._reports_list)
        app.router.add_post("/report/", self._log_in_for_reports)
        app.router.add_get("/report/{id:[0-9a-f]{12}}", self._report)
        app.router.add_get("/api/session", self._who)
        app.router.add_post("/api/session", self._log_in)
        app.router.add_post("/api/session/end", self._log_out)
        app.router.add_get("/api/crawls", self._list)
        app.router.add_post("/api/crawls", self._start)
        app.router.add_post("/api/crawls/preview", self._preview_start)
        app.router.add_get(one, self._details)
        app.router.add_get(f"{one}/stream", self._stream)
        app.router.add_post(f"{one}/orders", self._order)
        app.router.add_post(f"{one}/preview", self._preview)
        app.router.add_get(f"{one}/{{what:[a-z]{{1,20}}}}", self._rows)
        app.on_shutdown.append(self._close)
        return app

    async def _close(self, _: web.Application) -> None:
        self._crawls.close()
        self._starting.close()

    def _check(self, request: web.Request) -> None:
        self._guard.check(self._asking(request))

    def _asking(self, request: web.Request) -> Asking:
        fields = request.headers
        scheme, _, bearer = fields.get("Authorization", "").partition(" ")
        return Asking(
            method=request.method,
            path=request.path,
            host=fields.get("Host", ""),
            origin=fields.get("Origin", ""),
            content_type=request.content_type if "Content-Type" in fields else "",
            site=fields.get("Sec-Fetch-Site", ""),
            session=request.cookies.get(self._cookie, ""),
            bearer=bearer.strip() if scheme.lower() == "bearer" else "",
            is_near=self._serving.near and is_loopback(request.remote or ""),
        )

    def _session(self, request: web.Request) -> LoggedIn:
        return self._guard.session(self._asking(request))

    def _operator(self, request: web.Request) -> LoggedIn:
        return self._guard.operator(self._asking(request))

    def _sender(self, request: web.Request) -> str:
        """Return the address for which failures are counted. A proxy adds it as the last one."""
        forwarded = request.headers.get("X-Forwarded-For", "") if self._serving.behind else ""
        return forwarded.rpartition(",")[2].strip()[:60] or request.remote or ""

    async def _index(self, _: web.Request) -> web.Response:
        return self._page("index.html")

    async def _static(self, request: web.Request) -> web.Response:
        return self._page(request.match_info["name"])

    def _page(self, name: str) -> web.Response:
        content = self._pages.get(name)
        if content is None:
            raise RefusedError(404, "there is no such page")
        kind = KINDS[Path(name).suffix]
        return web.Response(body=content, content_type=kind, charset="utf-8", headers={"Cache-Control": "no-cache"})

    async def _metrics(self, request: web.Request) -> web.Response:
        self._guard.check_metrics(self._asking(request))
        crawls = await self._crawls.all()
        body, kind = await in_thread(_metrics_of, crawls, self._crawls.many, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": kind})

    async def _who(self, request: web.Request) -> web.Response:
        session = self._session(request)
        found = {"role": session.role, "user": session.name, "version": __version__, "many": self._crawls.many}
        return _answer({**found, "folder": bool(self._crawls.folders)})

    async def _log_in(self, request: web.Request) -> web.Response:
        return await self._logged_in(request, await _body(request), web.Response(status=204))

    async def _log_in_for_reports(self, request: web.Request) -> web.Response:
        async with asyncio.timeout(BODY_TIME):
            given = await request.post()
        fields = {key: value for key, value in given.items() if isinstance(value, str)}
        return await self._logged_in(request, fields, web.Response(status=303, headers={"Location": "/report/"}))

    async def _logged_in(self, request: web.Request, given: object, answer: web.Response) -> web.Response:
        before = request.cookies.get(self._cookie, "")
        number = await self._guard.log_in(given, self._sender(request), before)
        answer.set_cookie(self._cookie, number, httponly=True, samesite="Strict", secure=self._serving.secure)
        return answer

    async def _log_out(self, request: web.Request) -> web.Response:
        self._session(request)
        self._guard.log_out(request.cookies.get(self._cookie, ""))
        answer = web.Response(status=204)
        answer.del_cookie(self._cookie)
        return answer

    async def _crawl(self, request: web.Request) -> WatchedCrawl:
        found = await self._crawls.get(request.match_info["id"])
        if found is None:
            raise RefusedError(404, "there is no such crawl")
        return found

    async def _list(self, request: web.Request) -> web.Response:
        self._session(request)
        crawls = await self._crawls.all()
        return _answer({"crawls": await in_thread(lambda: [each.summary() for each in crawls])})

    async def _details(self, request: web.Request) -> web.Response:
        self._session(request)
        crawl = await self._crawl(request)
        found = await crawl.details()
        verbs = [] if found["recording"] else [verb.value for verb in Verb]  # a recording has no queue
        return _answer({**found, "report": True, "replay": self._serving.replay or None, "verbs": verbs})

    async def _rows(self, request: web.Request) -> web.Response:
        self._session(request)
        crawl, what, query = await self._crawl(request), request.match_info["what"], request.query
        words = ("after", "search", "sort", "host", "state")
        asked = ListQuery(**{name: query.get(name, "")[: reading.LONGEST] for name in words})
        return _answer(await self._found(crawl, what, asked, query.get("url", "")))

    async def _found(self, crawl: WatchedCrawl, what: str, asked: ListQuery, address: str) -> Json:
        lists: dict[str, Callable[[Reader], Json]] = {
            "hosts": lambda db: reading.hosts(db, asked, crawl.live(), time.time(), quotas=crawl.named.quotas(db)),
            "queue": lambda db: reading.queue(db, asked),
            "urls": lambda db: reading.urls(db, asked),
            "rules": lambda db: reading.rules(crawl.named, db),
            "refusals": lambda db: reading.refusals(crawl.named, db),
            "files": lambda db: reading.files(crawl.named, db, asked, crawl.captures),
            "orders": reading.orders,
        }
        if what in lists:
            return await crawl.read(lists[what])
        match what:
            case "patterns":
                return await crawl.patterns.get() or {"sampled": 0, "of": 0, "rows": []}
            case "problems":
                async with crawl.lock:
                    return await crawl.read(lambda db: crawl.problems.problems(db, asked.after, time.time()))
            case "suggest":
                return patterns.suggestions(address)
            case "explain":
                return {"lines": await in_thread(self._explain, crawl.named, address)}
        raise RefusedError(404, "there is no such list")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self._session(request)
        crawl = await self._crawl(request)
        if self._streams >= MOST_STREAMS:
            raise RefusedError(503, "too many viewers")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        self._streams += 1
        try:
            with crawl.stream.viewer(request.headers.get("Last-Event-ID", "")[:60]) as viewer:
                await response.prepare(request)
                async for event in viewer.events():
                    async with asyncio.timeout(SLOWEST):
                        await response.write(event)
                    self._session(request)  # it may have ended meanwhile
        except (TimeoutError, ConnectionError, RefusedError):
            request.protocol.force_close()
        finally:
            self._streams -= 1
        return response

    async def _order(self, request: web.Request) -> web.Response:
        session = self._operator(request)
        crawl, (verb, arguments, undo) = await self._crawl(request), _ordered(await _body(request))
        who = f"{session.name}@watch" if session.name else ""
        async with self._orders:
            given = await asyncio.to_thread(giving.give, crawl.named, verb, arguments, undo=undo, who=who)
        crawl.stream.changed()
        answer = given.order.answer if given.order.answered is not None else "not answered yet"
        return _answer({"id": given.order.id, "answer": shown(answer, 10_000), "command": shown(given.command)})

    async def _preview(self, request: web.Request) -> web.Response:
        self._operator(request)
        crawl, given = await self._crawl(request), _object(await _body(request))
        verb, argument = _text(given, "verb"), _text(given, "argument")
        async with self._orders:
            found = await asyncio.to_thread(giving.preview, crawl.named, verb, argument)
        return _answer({**asdict(found), "examples": list(map(shown, found.examples))})

    async def _preview_start(self, request: web.Request) -> web.Response:
        self._operator(request)
        new = self._starting.checked(_object(await _body(request)))
        return _answer({"toml": new.toml, "directory": shown(new.directory), "command": new.typed()})

    async def _start(self, request: web.Request) -> web.Response:
        self._operator(request)
        new = self._starting.checked(_object(await _body(request)))
        await self._starting.start(new)
        await self._crawls.find()
        named = WatchedCrawl(NamedCrawl.in_directory(new.directory))
        return _answer({"id": named.id})

    async def _reports_list(self, request: web.Request) -> web.Response:
        self._session(request)
        links = "".join(
            f'<li><a href="/report/{each.id}">{escape(shown(each.named.title, 200))}</a></li>\n'
            for each in await self._crawls.all()
        )
        return web.Response(text=f"{REPORTS}<ul>\n{links}</ul></html>\n", content_type="text/html")

    async def _report(self, request: web.Request) -> web.Response:
        self._session(request)
        crawl = await self._crawl(request)
        async with self._reports:
            page = await printed("report", "--html", "--", crawl.named.name)
        return web.Response(
            body=page, content_type="text/html", charset="utf-8", headers={"Content-Security-Policy": REPORT_POLICY}
        )


def _metrics_of(crawls: Sequence[WatchedCrawl], many: bool, accept: str) -> tuple[bytes, str]:  # noqa: FBT001
    """Return the metrics of *crawls* and their content type. *many*: their label is an id, as a name may be a host."""
    from archiver.tools.metrics.exposition import metrics_text  # noqa: PLC0415 - few servers are asked for metrics

    found = {each.id if many else "": each.figures() for each in crawls}
    return metrics_text({name: live for name, live in found.items() if live is not None}, accept)


def _middleware(check: Callable[[web.Request], None], heard: Heard) -> Middleware:
    """Return what comes before all handlers, and turns errors into one line of JSON."""

    @web.middleware
    async def answer(request: web.Request, handler: Answer) -> web.StreamResponse:
        heard(request)
        try:
            check(request)
            return await handler(request)
        except RefusedError as refused:
            return refusal(refused.status, refused.why)
        except web.HTTPException as error:
            return refusal(error.status, error.reason or "")
        except TimeoutError:
            return refusal(408, "the request came too slowly")
        except (ConfigError, ArchiveError) as error:
            return refusal(409, str(error))

    return answer


def refusal(status: int, why: str = MESSAGES[400]) -> web.Response:
    """Return the answer to a request that is refused: one line of JSON."""
    headers = {"Connection": "close"} if status == 408 else {}
    return web.json_response({"error": shown(" ".join(why.splitlines()), 2000)}, status=status, headers=headers)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    protect(response)


def protect(response: web.StreamResponse) -> None:
    """Add the fields to *response* that each answer has, unless it has them."""
    for name, value in HEADERS.items():
        if name == "Server" or name not in response.headers:
            response.headers[name] = value


def _answer(found: Json) -> web.Response:
    return web.Response(text=json.dumps(found), content_type="application/json")


async def _body(request: web.Request) -> object:
    """Return the JSON of a request."""
    async with asyncio.timeout(BODY_TIME):
        content = await request.read()
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body is no JSON") from None


def _object(given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise RefusedError(400, "the body is no JSON object")
    return given


def _text(given: dict[str, Any], key: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str):
        raise RefusedError(400, f"{key} is no text")
    return value


def _ordered(body: object) -> tuple[str, Sequence[str], bool]:
    """Return verb, arguments and undo of an order."""
    given = _object(body)
    arguments = given.get("arguments", [])
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise RefusedError(400, "arguments is no list of texts")
    if len(arguments) > MOST_ARGUMENTS:
        raise RefusedError(400, f"more than {MOST_ARGUMENTS} arguments")
    return _text(given, "verb"), tuple(arguments), given.get("undo") is True
