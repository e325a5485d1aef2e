"""Who may use the recording proxy where other machines reach it: the people in a file of `archiver watch`.

A client sends name and password with each request (RFC 7617). A check takes a tenth of a second and 16 MB, so checks
come one after another, and what was right is known from then on by its hash. Wrong ones are counted, by address.
"""

import asyncio
import binascii
import hashlib
import logging
import time
from base64 import b64decode

from archiver.crawl.record.proxy import LoginRefusal
from archiver.tools.watch.guard import Attempts, RefusedError
from archiver.tools.watch.users import Role, Users

log = logging.getLogger(__name__)
MOST_KNOWN = 1000  # logins, of a few people and programs
LONGEST = 3000  # characters of a login
ASK = LoginRefusal(407, "send the name and the password of someone who may record")
WRONG = LoginRefusal(407, "wrong name or password")
LOOKS_ONLY = LoginRefusal(403, "you may look, but not record")


class RecordingLogins:
    """Checks the logins of clients."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._attempts = Attempts(time.monotonic)
        self._known: set[bytes] = set()
        self._one = asyncio.Lock()

    async def refusal(self, login: str, address: str) -> LoginRefusal | None:
        """Return why a request from *address* with this Proxy-Authorization is refused; None if it is not."""
        digest = hashlib.sha256(login.encode("latin-1", "replace")).digest()
        if digest in self._known:
            return None
        name, password = _parts(login)
        if not name:
            return ASK
        try:
            async with self._one:
                self._attempts.check(address)
                role = await asyncio.to_thread(self._users.role, name, password)
                if role is None:
                    self._attempts.failed(address)
                    log.warning("%s: a wrong name or password", address)
        except RefusedError as refused:
            return LoginRefusal(refused.status, refused.why)
        if role is Role.OPERATOR and len(self._known) < MOST_KNOWN:
            self._known.add(digest)
        return WRONG if role is None else None if role is Role.OPERATOR else LOOKS_ONLY


def _parts(login: str) -> tuple[str, str]:
    """Return name and password of a Proxy-Authorization header; ("", "") if it has none."""
    scheme, _, text = login.strip().partition(" ")
    if scheme.lower() != "basic" or len(text) > LONGEST:
        return "", ""
    try:
        name, _, password = b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return name, password
