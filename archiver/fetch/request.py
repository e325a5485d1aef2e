"""Requests: their header lines, and which of them are only for the seeds' hosts."""

import logging
import re
from dataclasses import dataclass, replace

from archiver import __version__, url
from archiver.config.fetch_settings import FetchSettings, NetworkSettings
from archiver.config.secret_settings import SECRET
from archiver.config.settings import SettingsByHost
from archiver.errors import Failure, FetchError
from archiver.fetch.exchange import Bounds
from archiver.fetch.private_networks import AddressGuard, normalized_host
from archiver.http import WantedBodies
from archiver.http.form_post import FormPost

_OUR_LANGUAGE = re.compile(rb"^Accept-Language: .*\r\n", re.MULTILINE)
MAX_WARNED = 1000  # origins that are warned about

log = logging.getLogger(__name__)


def user_agent(settings: FetchSettings) -> str:
    """Return the User-Agent: the setting, or product, version and contact."""
    contact = f"+{settings.contact}; " if settings.contact else ""
    return settings.user_agent or f"Mozilla/5.0 (compatible; {contact}archiver/{__version__})"


def request_fields(settings: FetchSettings, *, trusted: bool = True) -> bytes:
    """Return all header lines except Host, in the order they are sent. The user's headers replace ours.

    An untrusted host (not *trusted*) gets no header that may identify the user.
    """
    ours = {
        "User-Agent": user_agent(settings),
        "Accept-Encoding": settings.accept_encoding,
    }
    if settings.accept_language:
        ours["Accept-Language"] = settings.accept_language
    if "@" in settings.contact:
        ours["From"] = settings.contact.removeprefix("mailto:")
    given = [line.partition(":")[::2] for line in settings.header]
    replaced = {name.lower() for name, _ in given}
    lines = [f"{name}: {value}" for name, value in ours.items() if name.lower() not in replaced]
    said = [(name, value) for name, value in given if name.lower() != "host" and (trusted or not SECRET.search(name))]
    lines += [f"{name}: {value.strip()}" for name, value in said]
    return "".join(line + "\r\n" for line in lines).encode("utf-8")


def in_language(settings: FetchSettings, language: str) -> FetchSettings:
    """Return *settings* with *language* as the only Accept-Language."""
    others = tuple(line for line in settings.header if line.partition(":")[0].lower() != "accept-language")
    return replace(settings, accept_language=language, header=others)


def absolute_form(request: bytes, origin: str) -> bytes:
    """Return *request* to *origin* as a proxy needs it: with the whole URL in the first line (RFC 9112 §3.2.2)."""
    method, _, rest = request.partition(b" ")
    return b"%b %b%b" % (method, origin.encode(), rest)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The header lines of requests to hosts with the same settings, and the limits of their responses."""

    fields: bytes  # header lines of every request
    fields_for_strangers: bytes  # the same without headers that may be secret
    bounds: Bounds
    needed: Bounds  # of a response that is read whatever its media type is

    @classmethod
    def of(cls, settings: FetchSettings, network: NetworkSettings, bandwidth: int) -> "HostPlan":
        """Return the plan for hosts with *settings*, the time limits of *network* and this *bandwidth*; 0: no limit."""
        needed = Bounds(
            settings.max_response_size,
            settings.timeout,
            WantedBodies(),
            settings.max_unstated_size,
            first_byte=network.first_byte_timeout,
            max_time=network.max_response_time,
            bandwidth=bandwidth,
        )
        wanted = replace(
            needed,
            wanted=WantedBodies(
                settings.include_type, settings.exclude_type, tuple(filter(None, settings.keep_status.split(",")))
            ),
        )
        return cls(request_fields(settings), request_fields(settings, trusted=False), wanted, needed)


class RequestMaker:
    """Builds requests. Headers that may be secret are sent only to the seeds' own hosts."""

    def __init__(self, settings: SettingsByHost, guard: AddressGuard) -> None:
        self._settings = settings
        self._guard = guard
        self._plans: dict[tuple[FetchSettings, NetworkSettings, int, str], HostPlan] = {}
        self._withheld: set[str] = set()  # origins without secret headers, already warned about

    def plan(self, origin: str, language: str = "") -> HostPlan:
        """Return how the host *origin* is asked; with *language* as Accept-Language, if it is given."""
        settings = self._settings.of(origin)
        fetch = settings.fetch
        key = fetch, settings.network, settings.politeness.host_bandwidth, language
        plan = self._plans.get(key)
        if plan is None:
            spoken = in_language(fetch, language) if language else fetch
            plan = self._plans[key] = HostPlan.of(spoken, *key[1:3])
        return plan

    def request(
        self, address: str, plan: HostPlan, further: bytes, form: FormPost | None = None, *, verified: bool
    ) -> bytes:
        """Return the request for URL *address*, whose host has *plan*, with *further* header lines.

        With *form* it is a POST. *verified*: no certificate of the connection is invalid. Raises `FetchError` if the
        form must not be sent over an unverified connection.
        """
        origin = url.origin(address)
        fields = plan.fields_for_strangers
        if self._guard.trusts(origin):
            if self._guard.may_send_secrets(origin, verified=verified):
                fields = plan.fields
            elif fields != plan.fields:
                self._warn_withheld(origin)
        if form is not None and form.secret and not self._guard.may_send_secrets(origin, verified=verified):
            raise FetchError(Failure.TLS, _unsafe(origin))
        if form is not None:
            further += _form_fields(form)
        if b"Accept-Language: " in further:  # a script has set it
            fields = _OUR_LANGUAGE.sub(b"", fields)
        host = origin[origin.index("//") + 2 :]
        return b"%b %b HTTP/1.1\r\nHost: %b\r\n%b%b\r\n%b" % (
            b"GET" if form is None else b"POST",
            address[len(origin) :].encode(),
            host.encode(),
            fields,
            further,
            b"" if form is None else form.body,
        )

    def _warn_withheld(self, origin: str) -> None:
        if origin in self._withheld or len(self._withheld) >= MAX_WARNED:
            return
        self._withheld.add(origin)
        log.warning(
            "%s: the certificate does not verify, so headers that may be secret are not sent; "
            "--insecure-secrets %s sends them",
            origin,
            normalized_host(url.host(f"{origin}/")),
        )


def _form_fields(form: FormPost) -> bytes:
    """Return the header lines of a POST. Many sites compare Origin and Referer with their own names (CSRF)."""
    lines = [
        f"Origin: {url.origin(form.page)}",
        f"Referer: {form.page}",
        *([f"Content-Type: {form.content_type}"] if form.content_type else ()),
        f"Content-Length: {len(form.body)}",
    ]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _unsafe(origin: str) -> str:
    host = normalized_host(url.host(f"{origin}/"))
    return f"the certificate does not verify, so the form is not sent; --insecure-secrets {host} sends it"
