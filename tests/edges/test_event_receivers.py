"""One try to deliver an event: signed, guarded and bounded. A command has a limit of time, and JSON only on stdin."""

import asyncio
import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from archiver.config.event_settings import KINDS, Receiver
from archiver.crawl.events.attempts import LONGEST_STDERR, EventAttempts, run_command
from archiver.errors import ConfigError
from archiver.fetch import webhook
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.webhook import key_of
from archiver.frontier.events.deliveries import TryResult
from fixtures.command import ROOT
from fixtures.flag import PATIENCE
from fixtures.rawserver import Answer, End, RawServer, Route, keep, silence

SECRET = "tell no one"
BODY = json.dumps({"id": "0123456789abcdef", "data": {"reason": 'hostile: "; touch x; $(touch y) \n'}})
NO_CONTENT = keep(b"HTTP/1.1 204 No Content\r\n\r\n")


def answer(status: int, head: str = "") -> bytes:
    """Return an answer without a body."""
    return f"HTTP/1.1 {status} x\r\n{head}Content-Length: 0\r\n\r\n".encode()


def posted(target: str, key: bytes = b"", allowed: tuple[str, ...] = ()) -> TryResult:
    """Send `BODY` to *target* and return what came of it."""
    guard = AddressGuard(allowed, (target,))
    return asyncio.run(EventAttempts(Receiver(KINDS, target), key, guard).deliver(BODY))


def documented_check() -> Callable[[str, dict[str, str], bytes], str]:
    """Return the receiver's function that docs/how-to/act-on-events.md shows."""
    page = (ROOT / "docs/how-to/act-on-events.md").read_text("utf-8")
    names: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0], names)
    check: Callable[[str, dict[str, str], bytes], str] = names["check"]
    return check


def test_the_documented_receiver_accepts_what_we_sign_and_nothing_else() -> None:
    with RawServer({"/hook": NO_CONTENT}) as server:
        assert posted(server.url("/hook"), key_of(SECRET)) == TryResult(delivered=True, text="status 204")
        (row,) = server.log
    head, _, body = row.request.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
    signature = next(line for line in head.decode().split("\r\n") if line.startswith("webhook-signature"))
    headers["webhook-signature"] = signature.partition(": ")[2]
    assert body.decode() == BODY
    assert headers["content-type"] == "application/json"
    assert not {"cookie", "authorization", "referer"} & headers.keys()
    check = documented_check()
    assert check(SECRET, headers, body) == "0123456789abcdef"
    late = {**headers, "webhook-timestamp": str(int(time.time()) - 400)}
    for secret, given, content in ((SECRET + "x", headers, body), (SECRET, headers, body + b" "), (SECRET, late, body)):
        with pytest.raises(ValueError, match="not from our crawler"):
            check(secret, given, content)
    old = webhook.signed_headers(key_of(SECRET), "0123456789abcdef", int(time.time()) - 400, body)
    with pytest.raises(ValueError, match="replay"):
        check(SECRET, old, body)


def test_a_key_in_base64() -> None:
    assert key_of("whsec_dGVsbCBubyBvbmU=") == SECRET.encode()
    with pytest.raises(ConfigError, match="is not base64"):
        key_of("whsec_tell no one")


@pytest.mark.parametrize(
    ("route", "result"),
    [
        (answer(503), TryResult(delivered=False, text="status 503")),
        (answer(503, "Retry-After: 120\r\n"), TryResult(delivered=False, text="status 503", wait=120.0)),
        (answer(503, "Retry-After: soon\r\n"), TryResult(delivered=False, text="status 503")),
        (answer(410), TryResult(delivered=False, text="status 410", final=True)),
        (
            answer(307, "Location: /other\r\n"),
            TryResult(delivered=False, text="status 307; redirects are not followed"),
        ),
        (Answer((), End.CLOSE), TryResult(delivered=False, text="it closed the connection without an answer")),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, TryResult(delivered=False, text="ClientResponseError")),
        (
            Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n" + b"x" * 9000,), End.HANG),
            TryResult(delivered=True, text="status 200"),
        ),
    ],
    ids=["503", "later", "soon", "gone", "redirect", "closed", "endless head", "endless body"],
)
def test_what_a_receiver_answers(route: Route, result: TryResult) -> None:
    with RawServer({"/hook": route}, otherwise=NO_CONTENT) as server:
        assert posted(server.url("/hook")) == result
        assert server.log.targets() == ["/hook"]


def test_a_receiver_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT", 0.2)
    with RawServer({"/hook": silence()}) as server:
        assert posted(server.url("/hook")) == TryResult(delivered=False, text="no answer within 0.2 s")


def test_a_certificate_must_be_valid() -> None:
    with RawServer({"/hook": NO_CONTENT}, tls=True) as server:
        assert posted(server.url("/hook")).text == "its certificate is invalid"
        assert not len(server.log)


@pytest.mark.parametrize(
    ("target", "allowed", "fault"),
    [
        ("https://169.254.169.254/", (), "which is never fetched"),
        ("https://169.254.169.254/", ("169.254.169.254",), "which is never fetched"),
        ("https://[fd00:ec2::254]/", (), "which is never fetched"),
    ],
)
def test_key_servers_of_clouds_get_nothing(target: str, allowed: tuple[str, ...], fault: str) -> None:
    result = posted(target, allowed=allowed)
    assert fault in result.text
    assert not result.delivered


@pytest.mark.parametrize(
    ("allowed", "result"),
    [
        ((), "hook.example resolves to a private address: 127.0.0.9 is a loopback address; use --allow-private"),
        (("hook.example",), "no connection: "),
        (("127.0.0.9",), "no connection: "),
    ],
)
def test_a_name_leads_inside_only_if_it_is_allowed(
    monkeypatch: pytest.MonkeyPatch, allowed: tuple[str, ...], result: str
) -> None:
    async def inside(*_: object) -> list[dict[str, object]]:
        return [{"hostname": "hook.example", "host": "127.0.0.9", "port": 9, "family": 2, "proto": 6, "flags": 4}]

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", inside)
    assert posted("https://hook.example:9/", allowed=allowed).text.startswith(result)


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("cat > got", TryResult(delivered=True, text="exit code 0", final=True)),
        ("exec < /dev/null; exit 1", TryResult(delivered=False, text="exit code 1", final=True)),
        ("exit 75", TryResult(delivered=False, text="exit code 75")),
        (
            "echo '\x1b[2J' wrong >&2; exit 2",
            TryResult(delivered=False, text="exit code 2: \\x1b[2J wrong", final=True),
        ),
        ("kill -9 $$", TryResult(delivered=False, text="signal 9", final=True)),
        ("sleep 1000 & cat > got", TryResult(delivered=True, text="exit code 0", final=True)),
    ],
    ids=["reads", "fails", "temporary", "says why", "killed", "background"],
)
def test_what_a_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, result: TryResult) -> None:
    monkeypatch.chdir(tmp_path)
    background = "&" in command and "sleep" in command
    line = f"{command}; echo $! > pid" if background else command
    try:
        assert asyncio.run(run_command(line, BODY)) == result
        assert {path.name for path in tmp_path.iterdir()} <= {"got", "pid"}
        if (tmp_path / "got").exists():
            assert (tmp_path / "got").read_text() == f"{BODY}\n"
    finally:
        if background:
            with suppress(ProcessLookupError):
                os.kill(int((tmp_path / "pid").read_text()), 9)


def test_stderr_is_bounded() -> None:
    result = asyncio.run(run_command("yes x | head -c 3000000 >&2; echo the end >&2; exit 3", BODY))
    assert result.text.startswith("exit code 3: ")
    assert result.text.endswith("the end")
    assert len(result.text) <= LONGEST_STDERR + 20


def test_a_command_is_killed_with_its_children_when_its_time_is_over(tmp_path: Path) -> None:
    line = f"sleep 1000 & echo $! > {tmp_path}/pid; echo started >&2; wait"
    result = asyncio.run(run_command(line, BODY, limit=1.0))
    assert result.text.startswith("killed after 1 s")
    assert result.final
    assert not result.delivered
    end = time.monotonic() + PATIENCE
    while _runs(int((tmp_path / "pid").read_text())):
        assert time.monotonic() < end
        time.sleep(0.01)


def _runs(process: int) -> bool:
    """Return True if *process* runs; a zombie does not."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
