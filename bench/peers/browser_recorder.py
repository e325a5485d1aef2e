"""A recorder built like browsertrix's: Chromium loads each page from the network, once, and its answers are stored.

It has the live clock and live chance. Each answer is taken at the response stage of DevTools' Fetch domain, so its body
is decoded and its headers are those that the browser reports. Event streams, HEAD and OPTIONS are left out, as
browsertrix leaves them out. Pages are scrolled to their end.
"""

import asyncio
import base64
from collections.abc import Iterable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cdxj_indexer.main import CDXJIndexer
from warcio.statusandheaders import StatusAndHeaders
from warcio.timeutils import datetime_to_iso_date
from warcio.warcwriter import WARCWriter

from fixtures.browser import Page
from fixtures.devtools import TARGET, DevTools, DevToolsError, Event, Order, chromium

REQUESTS: Order = ("Fetch.enable", {"patterns": [{"urlPattern": "*", "requestStage": "Response"}]})
PATIENCE = 60.0  # seconds for a page to become quiet
LEFT_OUT_METHODS = ("HEAD", "OPTIONS")
REWRITTEN = ("content-encoding", "content-length", "transfer-encoding")  # the body is stored decoded


class Recorder:
    """Writes the answers that a browser gets into one WARC file."""

    def __init__(self, devtools: DevTools, writer: WARCWriter) -> None:
        self._devtools = devtools
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()
        pass_on = devtools.on_event

        def take(event: Event) -> None:
            if event.name == "Fetch.requestPaused":
                task = asyncio.create_task(self._answer(event))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            pass_on(event)

        devtools.on_event = take

    async def finish(self) -> None:
        """Wait for the answers that are being read."""
        await asyncio.gather(*self._tasks)

    async def _answer(self, event: Event) -> None:
        try:
            if "responseStatusCode" in event.params and event.params["request"]["method"] not in LEFT_OUT_METHODS:
                await self._store(event)
            await self._devtools.call("Fetch.continueRequest", event.session, requestId=event.params["requestId"])
        except DevToolsError:  # the page has gone elsewhere meanwhile
            return

    async def _store(self, event: Event) -> None:
        params = event.params
        fields = [(each["name"], each["value"]) for each in params.get("responseHeaders", ())]
        if any(name.lower() == "content-type" and "event-stream" in value for name, value in fields):
            return
        body = b""
        if not 300 <= params["responseStatusCode"] < 400:
            found = await self._devtools.call("Fetch.getResponseBody", event.session, requestId=params["requestId"])
            body = base64.b64decode(found["body"]) if found["base64Encoded"] else found["body"].encode()
        kept = [(name, value) for name, value in fields if name.lower() not in REWRITTEN]
        kept.append(("Content-Length", str(len(body))))
        status = f"{params['responseStatusCode']} {params.get('responseStatusText', '')}".strip()
        self._write(params["request"], StatusAndHeaders(status, kept, "HTTP/1.1"), body)

    def _write(self, request: dict[str, Any], head: StatusAndHeaders, body: bytes) -> None:
        url = request["url"].partition("#")[0]
        date = {"WARC-Date": datetime_to_iso_date(datetime.now(UTC).replace(tzinfo=None), use_micros=True)}
        response = self._writer.create_warc_record(
            url, "response", payload=BytesIO(body), http_headers=head, warc_headers_dict=dict(date)
        )
        parts = (base64.b64decode(entry.get("bytes", "")) for entry in request.get("postDataEntries", ()))
        sent = b"".join(parts)
        split = urlsplit(url)
        target = (split.path or "/") + (f"?{split.query}" if split.query else "")
        fields = [("Host", split.netloc), *request["headers"].items()]
        if sent:
            fields.append(("Content-Length", str(len(sent))))
        asked = self._writer.create_warc_record(
            url,
            "request",
            payload=BytesIO(sent),
            http_headers=StatusAndHeaders(f"{request['method']} {target} HTTP/1.1", fields, is_http_request=True),
            warc_headers_dict=dict(date),
        )
        self._writer.write_request_response_pair(asked, response)


def record(urls: Iterable[str], collection: Path, profile: Path) -> None:
    """Record the pages *urls*, one after another in one browser, into a new collection with an index."""
    (collection / "archive").mkdir(parents=True)
    (collection / "indexes").mkdir()
    warc = collection / "archive" / "recorded.warc.gz"

    async def run() -> None:
        async with chromium(profile, (*TARGET, REQUESTS)) as devtools:
            page = Page(devtools, await devtools.page())
            await page.resize()
            with warc.open("wb") as file:
                recorder = Recorder(devtools, WARCWriter(file, gzip=True))
                await page.forget()
                for url in urls:
                    await _visit(page, url)
                await recorder.finish()

    asyncio.run(run())
    with (collection / "indexes" / "index.cdxj").open("w") as index:
        CDXJIndexer(index, [str(warc)], post_append=True, sort=True).process_all()


async def _visit(page: Page, url: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await page.go(url)
            await page.down(await page.shown(url), idle=1.0)
    except TimeoutError:  # it never becomes quiet
        return
