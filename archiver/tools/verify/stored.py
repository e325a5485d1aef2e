"""Check WARC files that are in a store, as those on disk are checked.

One file after the other is read once, into a temporary file: the checks go back and forth in it, and after damage they
search for the next record. So the disk holds one file at a time, and the store is asked for each byte once.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from archiver.collection.store import Store, StoredFile, StoreError
from archiver.storage import storage
from archiver.tools.verify.file import FileResult, ReadFile, ReadJob, check_file
from archiver.tools.verify.findings import VerifyFinding
from archiver.tools.verify.inventory import connect

ARCHIVE = "archive/"  # begins the keys of WARC files


def stored_name(store: Store, name: str) -> str:
    """Return how findings name the WARC *name* in *store*."""
    return f"{store.address}/{ARCHIVE}{name}"


def read_stored(store: Store, file: StoredFile, job: ReadJob, at: Callable[[int], None]) -> ReadFile:
    """Check *file*, as *store* has it now; *at* receives the number of bytes read. *job* is for the file on disk."""
    name = stored_name(store, job.path.name)
    fetched = job.inventory.with_name("fetched") / job.path.name
    fetched.parent.mkdir(exist_ok=True)
    whole, size = hashlib.sha256(), 0
    try:
        with storage(fetched), fetched.open("wb") as local:
            for piece in _bounded(store, file):
                whole.update(piece)
                local.write(piece)
                at(size := size + len(piece))
        result = check_file(replace(job, path=fetched, shown=name, summed=True), lambda _: None)
    except StoreError as error:
        return _unread(job, name, str(error))
    finally:
        fetched.unlink(missing_ok=True)
    return ReadFile(((job.inventory, _with_size(result, file, size, name)),), f"sha256:{whole.hexdigest()}")


def _bounded(store: Store, file: StoredFile) -> Iterator[bytes]:
    """Yield the bytes in the store, at most one more than *file* should have."""
    return store.read(file.key, 0, file.size + 1)


def _with_size(result: FileResult, file: StoredFile, size: int, name: str) -> FileResult:
    """Return *result*, with a finding if the file has not the *size* that was sent."""
    if size == file.size:
        return result
    has = f"{size} bytes" if size < file.size else "more bytes"
    finding = VerifyFinding(name, "warc-length", f"it has {has}, but {file.size} were sent")
    counts: Mapping[str, int] = {**result.counts, finding.code: result.counts.get(finding.code, 0) + 1}
    return replace(result, counts=counts, kept=(*result.kept, finding))


def _unread(job: ReadJob, name: str, why: str) -> ReadFile:
    with closing(connect(job.inventory)):  # an empty one
        finding = VerifyFinding(name, "unreadable", why)
    return ReadFile(((job.inventory, FileResult(0, 0, 0, 0, {finding.code: 1}, (finding,))),), "")


def stored_warcs(files: Mapping[str, StoredFile]) -> dict[str, StoredFile]:
    """Return those of *files* that are WARC files, by name."""
    return {key.removeprefix(ARCHIVE): file for key, file in files.items() if key.startswith(ARCHIVE)}
