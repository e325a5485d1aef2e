"""An object store for the files of a collection: S3 and compatible, Google, Azure, or a folder, through obstore.

A file counts as stored when the store has given back its length and its checksum. S3's ETag is the MD5 of what was
received, or of the MD5s of its parts; other ETags prove nothing, so the object is read back. `StoredFiles` notes what
is stored in a file of the collection, `stored.jsonl`, so the note outlives each database and covers imported files.
"""

import hashlib
import json
import logging
import os
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from archiver.collection.layout import Layout
from archiver.collection.records import is_below, is_stored, warc_files
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.address import machine_of
from archiver.storage import OPEN, open_file, replace_file, storage, sync_data

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PIECE = 8 << 20  # bytes of one part of a large file; a few of them are in memory at once
READ_SIZE = 1 << 20  # bytes of what is read and used at once
AT_ONCE = 2  # parts under way
TIMEOUT = "120s"  # for one request
LONGEST_LINE = 4096
INSTALL = "pip install 'warchiver[store]'"
PROBE = "archiver-was-here"
_MD5 = re.compile(r"[0-9a-f]{32}(-[0-9]+)?")

Sent = Callable[[int], None]  # gets the number of bytes sent so far


class StoreError(ArchiveError):
    """The store did not do what it was asked; to ask again later may help."""


class StoppedError(Exception):
    """The upload is to end now."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the store holds it."""

    key: str  # its path in the collection: archive/NAME
    size: int
    digest: str  # sha256:HEX
    modified: int  # nanoseconds since the epoch, of the file here when it was sent
    store: str  # the address of the store
    tag: str = ""  # the ETag that the store gave it


class Store:
    """The store at one address."""

    def __init__(self, address: str) -> None:
        try:
            from obstore import store as stores  # noqa: PLC0415 - slow to import, and few crawls need it
        except ImportError:
            raise ConfigError(f"--store needs the package obstore: {INSTALL}") from None
        self.address = address.rstrip("/")
        with _errors(f"--store {address}", ConfigError):
            if address.startswith("file:"):
                Path(address.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
            remote = {} if address.startswith("file:") else _REMOTE
            self._store: ObjectStore = stores.from_url(self.address, **remote)

    def check(self) -> None:
        """Raise `ConfigError` if the store cannot be written to, for want of the right or of the place."""
        import obstore  # noqa: PLC0415 - see above
        from obstore.exceptions import BaseError  # noqa: PLC0415 - see above

        with _errors(f"--store {self.address} cannot be written to", ConfigError):
            obstore.put(self._store, PROBE, b"")
            with suppress(OSError, BaseError):  # it may be forbidden to delete
                obstore.delete(self._store, PROBE)

    def send(self, path: Path, key: str, stop: threading.Event, sent: Sent = lambda _: None) -> StoredFile:
        """Send the file at *path* and check what arrived. Raises `StoreError`; ends early if *stop* is set."""
        import obstore  # noqa: PLC0415 - see above

        before = path.stat()
        whole, parts = hashlib.sha256(), list[bytes]()

        def pieces() -> Iterator[bytes]:
            done = 0
            with open_file(path) as file:
                while piece := file.read(PIECE):
                    if stop.is_set():
                        raise StoppedError
                    whole.update(piece)
                    parts.append(hashlib.md5(piece, usedforsecurity=False).digest())
                    done += len(piece)
                    sent(done)
                    yield piece

        with _errors(f"{self.address}: {key}", StoreError):
            if before.st_size > PIECE:
                found = obstore.put(
                    self._store, key, pieces(), use_multipart=True, chunk_size=PIECE, max_concurrency=AT_ONCE
                )
            else:
                found = obstore.put(self._store, key, b"".join(pieces()))
        digest = f"sha256:{whole.hexdigest()}"
        stored = StoredFile(key, before.st_size, digest, before.st_mtime_ns, self.address, str(found["e_tag"] or ""))
        if wrong := self.fault(stored, _etag(parts)):
            raise StoreError(f"{self.address}: {key} {wrong}")
        return stored

    def read(self, key: str, start: int = 0, length: int = -1) -> Iterator[bytes]:
        """Yield *length* bytes of *key* from *start* on; without a length, all to its end. Raises `StoreError`."""
        import obstore  # noqa: PLC0415 - see above

        with _errors(f"{self.address}: {key}", StoreError):
            found = obstore.get(
                self._store, key, options={"range": (start, start + length) if length > 0 else {"offset": start}}
            )
            for piece in found.stream(min_chunk_size=READ_SIZE):
                yield bytes(piece)

    def fetch(self, file: StoredFile, path: Path) -> None:
        """Write *file* to *path*, which appears there only when all of it has come. Raises `StoreError`."""

        def fill(target: BinaryIO) -> None:
            whole, size = hashlib.sha256(), 0
            for piece in self.read(file.key):
                size += len(piece)
                if size > file.size:
                    break
                whole.update(piece)
                target.write(piece)
            if size != file.size or f"sha256:{whole.hexdigest()}" != file.digest:
                raise StoreError(f"{self.address}: {file.key} differs from what was sent")

        replace_file(path, fill)
        os.utime(path, ns=(file.modified, file.modified))  # so it is not taken for a new one that has to be sent

    def fault(self, file: StoredFile, etag: str = "", *, read: bool = False) -> str:
        """Return what is wrong with *file* in the store; "" if nothing is.

        With *read*, or without an ETag that proves it (*etag*: of the bytes that were sent), read the whole object.
        """
        import obstore  # noqa: PLC0415 - see above

        with _errors(f"{self.address}: {file.key}", StoreError):
            try:
                found = obstore.head(self._store, file.key)
            except FileNotFoundError:
                return "is missing"
            if found["size"] != file.size:
                return f"has {found['size']} bytes instead of {file.size}"
            tag = str(found["e_tag"] or "").strip('"')
            proves = bool(_MD5.fullmatch(tag)) and tag == (etag or file.tag.strip('"'))
            if proves and not read:
                return ""
            if not (etag or read) and tag == file.tag.strip('"'):
                return ""  # it was read back when it was sent, and has not been written since
            whole = hashlib.sha256()
            for piece in obstore.get(self._store, file.key).stream(min_chunk_size=PIECE):
                whole.update(piece)
            return "" if f"sha256:{whole.hexdigest()}" == file.digest else "holds other bytes"


_REMOTE: dict[str, Any] = {
    "client_options": {"allow_http": True, "timeout": TIMEOUT},
    "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=30)},
}


def _etag(parts: list[bytes]) -> str:
    """Return the ETag that S3 gives to an object of these parts, by their MD5s."""
    if len(parts) == 1:
        return parts[0].hex()
    return f"{hashlib.md5(b''.join(parts), usedforsecurity=False).hexdigest()}-{len(parts)}"


@contextmanager
def _errors(what: str, kind: type[Exception]) -> Iterator[None]:
    """Turn errors of obstore into *kind*, with one line that begins with *what*."""
    from obstore.exceptions import BaseError  # noqa: PLC0415 - see above

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise kind(f"{what}: {said[:500]}") from error


class StoredFiles:
    """The list of the files of a collection that are in a store: one line of JSON for each time one was sent."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.directory / "stored.jsonl"

    def read(self, store: str) -> dict[str, StoredFile]:
        """Return the files in *store* by key; lines that are damaged count for nothing."""
        return {each.key: each for each in self.everywhere() if each.store == store}

    def of_warcs(self, store: str) -> list[StoredFile]:
        """Return the WARC files in *store*."""
        return [
            each
            for each in self.read(store).values()
            if each.key.startswith("archive/") and is_below(each.key.removeprefix("archive/"))
        ]

    def everywhere(self) -> list[StoredFile]:
        """Return the files in all stores."""
        found: dict[tuple[str, str], StoredFile] = {}
        with suppress(FileNotFoundError), open_file(self._path) as file:
            while line := file.readline(LONGEST_LINE):
                with suppress(ValueError, TypeError):
                    each = StoredFile(**json.loads(line))
                    found[each.store, each.key] = each
        return [each for each in found.values() if each.size >= 0]

    def absent(self) -> list[StoredFile]:
        """Return the WARC files in stores that are not in the directory any more."""
        folder = self._path.parent
        stored = [each for each in self.everywhere() if each.key.startswith("archive/")]
        return [each for each in stored if not is_stored(folder / "archive", each.key.removeprefix("archive/"))]

    def forget(self, file: StoredFile) -> None:
        """Note durably that *file* is not stored any more."""
        self.add(replace(file, size=-1))

    def replace(self, files: Iterable[StoredFile]) -> None:
        """Note durably that *files* are stored, and no others."""
        lines = [f"{json.dumps(asdict(file))}\n".encode() for file in files]
        replace_file(self._path, lambda file: file.writelines(lines))

    def add(self, file: StoredFile) -> None:
        """Note durably that *file* is stored."""
        line = f"{json.dumps(asdict(file))}\n".encode()
        with storage(self._path, lambda: len(line)), open_file(self._path, "a+b") as notes:
            if notes.seek(0, os.SEEK_END) and (notes.seek(-1, os.SEEK_END), notes.read(1))[1] != b"\n":
                line = b"\n" + line  # a crash has cut the last one off
            notes.write(line)
            sync_data(notes)


def unsent(layout: Layout, store: str, *, others: bool) -> list[tuple[Path, str]]:
    """Return the finished WARC files that *store* lacks as they are now, with their keys.

    With *others* also the index and crawl.log, which change until the crawl ends.
    """
    known = StoredFiles(layout).read(store)
    return [
        (path, key) for key, path in finished_files(layout, others=others).items() if not is_same(path, known.get(key))
    ]


def finished_files(layout: Layout, *, others: bool) -> dict[str, Path]:
    """Return the files that a store is to have, by their keys; *others*: as for `unsent`.

    Machines that share a frontier may share a store too. So index and log of each have its name there.
    """
    paths = [path for path in warc_files(layout) if not path.name.endswith(OPEN)]
    found = {path.relative_to(layout.directory).as_posix(): path for path in paths}
    machine = f"-{machine_of(layout.database)}" if layout.address.exists() else ""
    for path in (layout.indexes / "index.cdxj", layout.log) if others else ():
        if path.exists():
            found[f"{path.parent.name}/{path.stem}{machine}{path.suffix}"] = path
    return found


def is_same(path: Path, stored: StoredFile | None) -> bool:
    """Return True if the file at *path* is still what was sent as *stored*."""
    now = path.stat()
    return stored is not None and (stored.size, stored.modified) == (now.st_size, now.st_mtime_ns)


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after a failure, doubled each time
LOOK_EVERY = 5.0  # seconds between two looks for finished files

log = logging.getLogger(__name__)


class Uploads:
    """Sends finished WARC files while a crawl runs, in a thread of its own, one after the other."""

    def __init__(self, layout: Layout, store: Store, begin: Callable[[], None]) -> None:
        """*begin* is called first in the thread, to lower its priority."""
        self._layout = layout
        self._store = store
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(begin,), name="store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sending; a file under way is sent again later."""
        self._stop.set()
        self._thread.join()

    def _run(self, begin: Callable[[], None]) -> None:
        begin()
        pause = 0.0
        while not self._stop.wait(pause or LOOK_EVERY):
            try:
                send_all(self._layout, self._store, self._stop, others=False)
            except ArchiveError as error:
                if not pause:
                    log.warning("%s; the crawl goes on, and the file is sent later", error)
                pause = next_pause(pause)
            else:
                if pause:
                    log.warning("%s takes files again", self._store.address)
                pause = 0.0


def next_pause(pause: float) -> float:
    """Return the pause after one more failure, with some chance in it, so that many crawlers do not come together."""
    return min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * pause)) * random.uniform(0.8, 1.0)  # noqa: S311 - no secret


def send_all(
    layout: Layout,
    store: Store,
    stop: threading.Event,
    *,
    others: bool,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> int:
    """Send what *store* lacks and return the number of files; *report* gets a key, bytes sent and bytes in all."""
    notes, count = StoredFiles(layout), 0
    with suppress(StoppedError):
        for path, key in unsent(layout, store.address, others=others):
            size = path.stat().st_size
            notes.add(store.send(path, key, stop, lambda done, key=key, size=size: report(key, done, size)))  # type: ignore[misc]
            count += 1
    return count
