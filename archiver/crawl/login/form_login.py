"""One login: fetch the page with the form, fill the form in, send it once, and judge by the answers if it worked.

Every request goes through the gate of the host, and robots.txt is obeyed. The login stays on the host of its page:
no other one gets the password. Its records go into a WARC of their own under private/, which no index, package or
replay reads, because the request holds the password.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import url
from archiver.collection.layout import Layout
from archiver.collection.writer import Archive, PendingVisit, WarcIdentity
from archiver.config.logins import COOKIE, REACHED, Login
from archiver.config.option_types import Pattern
from archiver.config.secrets import PLAIN
from archiver.crawl.login.authentication import AUTHENTICATING
from archiver.crawl.requests import Requests
from archiver.crawl.secrets import Secrets
from archiver.crawl.visit import Visited
from archiver.errors import FetchError
from archiver.extract import charset
from archiver.extract.exchange import PAGES, payload, redirect
from archiver.extract.exchange import charset as stated_charset
from archiver.http.form_post import FormPost
from archiver.model import Claim, Cookie, Exchange, Hop, Links
from archiver.storage import close_to_others, storage, sync_folder
from archiver.warc.records import RecordIds

if TYPE_CHECKING:
    from archiver.extract.forms import Form

MAX_REDIRECTS = 10
READ = 1 << 20  # decoded bytes of a page that are read
KIND = "-login"  # before the ending of the file's name
_ERRORS, _SERVER_ERRORS, _TOO_MANY = 400, 500, 429


class Result(Enum):
    """The results of a login."""

    IN = "in"
    REFUSED = "refused"  # another try with the same fields would be refused too, and may lock the account
    LATER = "later"  # no usable answer: worth another try
    HELD = "held"  # a request had to wait for too long; the host is asked again later


@dataclass(frozen=True, slots=True)
class LoginResult:
    """What came of one login."""

    result: Result
    reason: str = ""  # for a person
    cookies: tuple[Cookie, ...] = ()  # that the site set


class _EndedError(Exception):
    """The login has ended early."""

    def __init__(self, result: Result, reason: str = "") -> None:
        super().__init__(reason)
        self.result = result
        self.reason = reason


@dataclass(slots=True)
class _Course:
    """The course of one login so far."""

    rule: Login
    host: int
    steps: list[PendingVisit] = field(default_factory=list)
    cookies: dict[tuple[str, str, str], Cookie] = field(default_factory=dict)
    sent: bool = False  # the form was sent
    reached: list[str] = field(default_factory=list)  # URLs since then
    set_by_form: set[str] = field(default_factory=set)  # names of cookies


class FormLogin:
    """Logs in with the form of a page. *refusal* returns the visit that a claim becomes if robots.txt forbids it.

    *records*: the folder of its WARC files, and their identity.
    """

    def __init__(
        self,
        requests: Requests,
        refusal: Callable[[Claim], Visited | None],
        secrets: Secrets,
        records: tuple[Path, WarcIdentity],
    ) -> None:
        self._requests = requests
        self._secrets = secrets
        self._refusal = refusal
        self._records = LoginRecords(*records)

    async def run(self, rule: Login, host: int, logged_out: Pattern | None) -> LoginResult:
        """Log in by *rule*, whose page is on *host*."""
        course = _Course(rule, host)
        try:
            result = LoginResult(*await self._run(course, logged_out))
        except FetchError as error:
            result = LoginResult(Result.LATER, f"{error.failure.value}: {error.reason}")
        except _EndedError as end:
            result = LoginResult(end.result, end.reason)
        try:
            if course.steps and rule.store_login:
                await asyncio.to_thread(self._records.write, course.steps)
        finally:
            for step in course.steps:
                step.exchange.response.close()
        self._records.close_database()
        return replace(result, cookies=tuple(course.cookies.values()))

    async def _run(self, course: _Course, logged_out: Pattern | None) -> tuple[Result, str]:
        rule = course.rule
        values = {name: value if isinstance(value, str) else self._secrets[value] for name, value in rule.fields}
        page, answer = await self._followed(course, rule.page, None)
        _check(page, answer)
        form = _form(page, answer, rule.form)
        if form is None:
            which = f"no form {rule.form!r}" if rule.form else "no form with a password field"
            return Result.REFUSED, f"{page} has {which}"
        if plain := [name for name, value in rule.fields if name in form.passwords and isinstance(value, str)]:
            return Result.REFUSED, f"{plain[0]} is a password field; {PLAIN}"
        pairs = form.filled(values)
        if unknown := _unknown_secret(rule, form):
            own = ", ".join(control.name for control in form.controls if control.name)
            return (
                Result.REFUSED,
                f"its form has no field {unknown}, but {own:.200}; or give success, if a script adds it",
            )
        target = form.address(pairs)
        if not target or url.origin(target) != url.origin(rule.page):
            return Result.REFUSED, f"its form goes to {form.action or 'no URL'}, which is not on the host of the page"
        course.sent = True
        end, answer = await self._followed(course, target, form.body(pairs))
        _check(end, answer)
        return _judged(course, end, answer, logged_out)

    async def _followed(self, course: _Course, address: str, form: FormPost | None) -> tuple[str, Exchange]:
        """Request *address*, and follow redirects as far as they stay on its host; return the last URL and answer."""
        sent, home = course.sent, url.origin(address)
        for _ in range(MAX_REDIRECTS):
            answer = await self._step(course, address, form)
            if sent:
                course.reached.append(address)
            link = redirect(address, answer.framing.fields) if 300 <= answer.framing.status < 400 else None
            if link is None:
                return address, answer
            if form is not None and answer.framing.status in {307, 308}:
                raise _EndedError(Result.REFUSED, f"{address} wants the form to be sent again to {link.url}")
            if url.origin(link.url) != home:
                if not sent:
                    raise _EndedError(Result.REFUSED, f"{address} leads to {link.url}; give that URL as the page")
                course.reached.append(link.url)
                return address, answer
            address, form = link.url, None
        raise _EndedError(Result.REFUSED, f"{address}: more than {MAX_REDIRECTS} redirects")

    async def _step(self, course: _Course, address: str, form: FormPost | None) -> Exchange:
        """Request *address* until no HTTP authentication is asked for that we have not tried; return that answer.

        A form that gets 401 was not accepted, so it is sent again with the password of `--auth`.
        """
        claim = Claim(0, address, course.host, Hop.LINK, "", 0, 0, 0, priority=-1)
        if refused := self._refusal(claim):
            raise _EndedError(Result.REFUSED, refused.forbidden or str(refused.error))
        while True:
            answered = await self._requests.exchange(claim, form)
            if answered is None:
                raise _EndedError(Result.HELD)
            exchange, cookies = answered
            course.steps.append(PendingVisit(claim, exchange, Links()))
            for cookie in cookies:
                course.cookies[cookie.domain, cookie.path, cookie.name] = cookie
                if course.sent:
                    course.set_by_form.add(cookie.name)
            if AUTHENTICATING not in exchange.notes:
                return exchange


def _check(address: str, answer: Exchange) -> None:
    status = answer.framing.status
    if status >= _ERRORS:
        later = status >= _SERVER_ERRORS or status == _TOO_MANY
        raise _EndedError(Result.LATER if later else Result.REFUSED, f"{address} answered {status}")


def _form(address: str, answer: Exchange, name: str) -> "Form | None":
    """Return the form of the page at *address* that *name* names, or with "" the first one that asks for a password."""
    from archiver.extract.forms import chosen, forms_of  # noqa: PLC0415 - slow to import, and most crawls log in nowhere

    if answer.framing.media_type not in PAGES:
        return None
    return chosen(forms_of(payload(answer, READ)[0], stated_charset(answer.framing), address), name)


def _unknown_secret(rule: Login, form: "Form") -> str:
    """Return a secret field of *rule* that *form* lacks, if none fills its password fields; "" if there is none."""
    own = {control.name for control in form.controls}
    secret = [name for name, value in rule.fields if not isinstance(value, str)]
    if rule.success or not all(form.passwords) or not form.passwords or any(name in own for name in secret):
        return ""
    return next(iter(secret), "")


def _judged(course: _Course, end: str, answer: Exchange, logged_out: Pattern | None) -> tuple[Result, str]:
    """Return the result of a login that ended with *answer* of URL *end*."""
    success = course.rule.success
    if success.startswith(COOKIE):
        name = success.removeprefix(COOKIE)
        worked = name in course.set_by_form
        return (Result.IN, "") if worked else (Result.REFUSED, f"the site set no cookie {name}")
    if success.startswith(REACHED):
        pattern = Pattern("success", success.removeprefix(REACHED))
        worked = any(pattern.found_in(address) is True for address in course.reached)
        return (Result.IN, "") if worked else (Result.REFUSED, f"it led to {course.reached[-1]}")
    if success:
        return (Result.IN, "") if success in text_of(answer) else (Result.REFUSED, f"{end} does not have {success!r}")
    if logged_out is not None and shows(logged_out, end, answer):
        return Result.REFUSED, f"{end} still shows being logged out"
    if _form(end, answer, "") is not None:
        return Result.REFUSED, f"{end} asks for a password again"
    return Result.IN, ""


def shows(pattern: Pattern, address: str, answer: Exchange) -> bool:
    """Return True if *pattern* matches the URL to which *answer* of *address* redirects, or the text of the page."""
    link = redirect(address, answer.framing.fields) if 300 <= answer.framing.status < 400 else None
    if link is not None:
        return pattern.found_in(link.url) is True
    return answer.framing.media_type in PAGES and pattern.found_in(text_of(answer)) is True


def text_of(answer: Exchange) -> str:
    """Return the source of a page as text."""
    body, _ = payload(answer, READ)
    return charset.text(body, charset.of_html(body, stated_charset(answer.framing)))


class LoginRecords:
    """Writes the exchanges of a login into a WARC of their own in *folder*, for its owner alone."""

    def __init__(self, folder: Path, identity: WarcIdentity) -> None:
        self._folder = folder
        self._identity = replace(identity, prefix=f"{identity.prefix}{KIND}", private=True)

    def close_database(self) -> None:
        """Let only the owner read crawl.db, which is to hold the cookies of the session."""
        close_to_others(*Layout(self._folder.parent).database_files())

    def write(self, visits: list[PendingVisit]) -> None:
        """Write *visits*; they are on disk when this returns."""
        with storage(self._folder):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self._folder.parent)
            serial = sum(1 for _ in self._folder.iterdir())
        archive = Archive(
            self._folder,
            self._identity,
            serials=partial(int, serial),
            now=lambda: time.time_ns() // 1000,
            new_id=RecordIds(os.urandom),
        )
        try:
            archive.append(visits)
            archive.close()
        except BaseException:
            archive.abandon()
            raise
