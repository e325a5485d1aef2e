"""Proxies of the kind http: our login, and what their answers say of themselves."""

from collections.abc import Sequence
from secrets import token_hex

from archiver.http.auth import Credentials, DigestUse, basic, digest, is_stale, strongest
from archiver.http.challenges import Challenge
from archiver.model import Exchange

AUTHENTICATION_REQUIRED = 407
CHALLENGES = "proxy-authenticate"
MAX_CHALLENGES = 4  # that one request answers: requests may overtake each other, and then the count of a nonce is wrong
LOGIN_REFUSED = (AUTHENTICATION_REQUIRED, 401)  # tinyproxy 1.11 answers a wrong password with 401


class ProxyLogin:
    """The login to one proxy of the kind http: Basic, until it asks for Digest."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._challenge: Challenge | None = None
        self._client_nonce = ""
        self._count = 0  # of requests with the nonce of the proxy

    def line(self, request: bytes) -> bytes:
        """Return the header line with the login for *request*; b"" without a login."""
        if not self._credentials.user:
            return b""
        if self._challenge is None:
            value = basic(self._credentials)
        else:
            self._count += 1
            method, target = request.split(b" ", 2)[:2]
            use = DigestUse(method.decode(), target.decode(), self._client_nonce, self._count)
            value = digest(self._challenge, self._credentials, use)
        return b"Proxy-Authorization: %b\r\n" % value

    def takes(self, fields: Sequence[str], sent: bytes) -> bool:
        """Take the Digest challenge in the Proxy-Authenticate *fields*, which answer a request that *sent* this line.

        True if the request should be sent again.
        """
        offered = strongest(fields)
        if not self._credentials.user or offered is None or offered.scheme != "digest":
            return False
        if b" Digest " in sent and not is_stale(offered):
            return False
        self._challenge, self._client_nonce, self._count = offered, token_hex(16), 0
        return True

    @property
    def has_challenge(self) -> bool:
        """True if the proxy has asked for Digest."""
        return self._challenge is not None


def keeps_connection(exchange: Exchange | None) -> bool:
    """Return True if a proxy of the kind http has said that it reads another request on the connection of *exchange*.

    tinyproxy reads one, and may relay what follows to the site as it comes, with our login. It takes away what the
    site says of its own connection.
    """
    if exchange is None:
        return False
    said = (*exchange.framing.all("connection"), *exchange.framing.all("proxy-connection"))
    return "keep-alive" in {word.strip().lower() for field in said for word in field.split(",")}


def own_error(exchange: Exchange) -> str:
    """Return the text of the error that a proxy of the kind http reports; "" if the answer is the site's.

    squid names the error in a field. If the site runs squid too, our proxy adds a second Via. tinyproxy adds Via only
    to answers of the site. A site that imitates an error only looks unreachable.
    """
    framing = exchange.framing
    if framing.status < 400:
        return ""
    hops = [each for field in framing.all("via") for each in field.split(",") if each.strip()]
    error = framing.first("x-squid-error")
    if error is not None and len(hops) < 2:
        return f"{framing.status} {error}"[:100]
    own = not hops and (framing.first("server") or "").startswith("tinyproxy/")
    return str(framing.status) if own else ""
