"""Which other archives the person at this machine has named for a collection (`--dedup-from`).

`crawl.toml` remembers them, and may come from somebody else: then it could have us read, refer to and replay whatever
archive lies here. So a collection also holds a mark for each, made with a key that never leaves this user's own folder.
"""

import hmac
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from archiver.archive.layout import Layout, replace_file
from archiver.disk import opened

NAME = "dedup-from.known"  # in the collection: a line for each path
LARGEST = 1 << 20  # bytes of it
_LENGTH = 32  # bytes of the key


def vouch(layout: Layout, paths: Sequence[str]) -> None:
    """Note that *paths* were named by the person at this machine, if there is a place for the key."""
    key = _key(make=True) if paths else b""
    marks = _marks(layout)
    wanted = {_mark(key, path) for path in paths} if key else set()
    if wanted <= marks:
        return
    text = "".join(f"{mark}\n" for mark in sorted(marks | wanted)).encode()
    replace_file(layout.directory / NAME, lambda file: file.writelines((text,)))


def strangers(layout: Layout, paths: Iterable[str]) -> list[str]:
    """Return those of *paths* that this user has not named for this collection."""
    key, marks = _key(make=False), _marks(layout)
    return [path for path in paths if not key or _mark(key, path) not in marks]


def _mark(key: bytes, path: str) -> str:
    return hmac.digest(key, str(Path(path).resolve()).encode(errors="surrogateescape"), "sha256").hex()


def _marks(layout: Layout) -> set[str]:
    with suppress(FileNotFoundError), opened(layout.directory / NAME) as file:
        return set(file.read(LARGEST).decode("ascii", "replace").split())
    return set()


def _key(*, make: bool) -> bytes:
    """Return this user's key; nothing if there is none, or no place for it."""
    with suppress(OSError, RuntimeError):  # without a home folder, or one that may not be written
        path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "archiver/key"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"key.{os.getpid()}")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(_LENGTH))
            try:
                os.link(draft, path)  # of two processes one makes it
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = path.read_bytes()
        return key if len(key) == _LENGTH else b""
    return b""
