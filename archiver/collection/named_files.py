"""Files of this machine that the user named for a collection: other archives, client certificates, authorities.

A received collection can name any file in its crawl.toml. It counts only if this user named it for this collection:
then the collection holds a mark of it, made with the user's own key.
"""

import hmac
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from archiver import url
from archiver.collection.layout import Layout
from archiver.config.settings import Settings
from archiver.storage import open_file, replace_file

NAME = "named-files.known"  # in the collection: one signature per line
LARGEST = 1 << 20  # bytes of it
_LENGTH = 32  # bytes of the key


def vouch(layout: Layout, uses: Sequence[str]) -> None:
    """Sign *uses*, which this user named, if a key can be stored."""
    key = _key(make=True) if uses else b""
    marks = _marks(layout)
    wanted = {_mark(key, use) for use in uses} if key else set()
    if wanted <= marks:
        return
    text = "".join(f"{mark}\n" for mark in sorted(marks | wanted)).encode()
    replace_file(layout.directory / NAME, lambda file: file.writelines((text,)))


def strangers(layout: Layout, uses: Iterable[str]) -> list[str]:
    """Return those of *uses* that this user did not name for this collection."""
    key, marks = _key(make=False), _marks(layout)
    return [use for use in uses if not key or _mark(key, use) not in marks]


def archive_use(path: str) -> str:
    """Return the use of the archive at *path* for deduplication."""
    return str(Path(path).resolve())


def tls_uses(settings: Settings) -> dict[str, str]:
    """Return the uses of files of this machine for TLS, and for each the option that names it."""
    certs = tuple(("client-cert", cert) for cert in settings.tls.client_cert)
    given = [
        ("", (*certs, *(("ca-file", path) for path in settings.tls.ca_file))),
        *((rule.match, rule.given) for rule in settings.politeness.host),
        *((url.host(own.url), own.given) for own in settings.scope.seed),
    ]
    found: dict[str, str] = {}
    for hosts, pairs in given:
        for key, value in pairs:
            if key == "client-cert":
                use = str(replace(value, hosts=value.hosts or hosts))
                found[f"client-cert {use}"] = f"--client-cert {quote(use)}"
            elif key == "ca-file":
                found[f"ca-file {value}"] = f"--ca-file {quote(value)}"
    return found


def _mark(key: bytes, use: str) -> str:
    return hmac.digest(key, use.encode(errors="surrogateescape"), "sha256").hex()


def _marks(layout: Layout) -> set[str]:
    with suppress(FileNotFoundError), open_file(layout.directory / NAME) as file:
        return set(file.read(LARGEST).decode("ascii", "replace").split())
    return set()


def _key(*, make: bool) -> bytes:
    """Return this user's key; b"" if there is none and none can be stored."""
    with suppress(OSError, RuntimeError):  # there is no home folder, or it is read-only
        path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "archiver/key"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"key.{os.getpid()}")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(_LENGTH))
            try:
                os.link(draft, path)  # if two processes try, one succeeds
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = path.read_bytes()
        return key if len(key) == _LENGTH else b""
    return b""
