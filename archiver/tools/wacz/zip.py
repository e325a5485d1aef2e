"""Write one WACZ file: a ZIP whose members are written in order and hashed on the way; and describe packages.

All members have the same time and permissions, so the same collection gives the same bytes except for dates. Compressed
data are stored, which random access needs. Members are written in pieces, whatever their size.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import IO, Any, BinaryIO
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from zlib_ng import zlib_ng

from archiver import storage
from archiver.config.seeds import SeedAbout

VERSION = "1.1.1"
DATAPACKAGE, DIGEST = "datapackage.json", "datapackage-digest.json"

_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time in a ZIP
_RIGHTS = 0o100644 << 16
_UNIX = 3
_LARGE = 1 << 30  # bytes; larger members get ZIP64 fields

LEVEL = 5  # of zlib-ng: a quarter of the time of zlib's usual level 6, for 2 % more bytes
_RAW = -15  # deflate without a frame, largest window


@dataclass(frozen=True, slots=True)
class PackagePart:
    """One of several packages."""

    name: str  # of its file
    digest: str  # of all its bytes
    size: int


def describe_parts(parts: Sequence[PackagePart], title: str, created: str, software: str) -> bytes:
    """Return the JSON file that describes *parts*, which are in the same folder."""
    description = {
        "profile": "multi-wacz-package",
        "title": title,
        "created": created,
        "software": software,
        "resources": [
            {"name": part.name, "path": quote(part.name), "hash": part.digest, "bytes": part.size} for part in parts
        ],
    }
    return json.dumps(description, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def describe_relation(before: Sequence[PackagePart], names: Sequence[str], number: int) -> dict[str, Any]:
    """Return what package *number* of *names* says about the others; the hashes of those *before* it are known."""
    others = [{"filename": part.name, "hash": part.digest} for part in before]
    others += [{"filename": name} for name in names[number + 1 :]]
    return {"relation": {"requires": others}}


def describe_seeds(about: Mapping[str, SeedAbout]) -> list[dict[str, str]]:
    """Return what a package says about its seeds: those with a description, and only texts that there are."""
    return [
        {"url": address, **{key: text for key, text in asdict(texts).items() if text}}
        for address, texts in about.items()
    ]


Sign = Callable[[str, str], Mapping[str, str]]  # of the hash and date of the package


class ZipMember:
    """A member that is being written."""

    def __init__(self, target: IO[bytes], draft: BinaryIO) -> None:
        self._target = target
        self._draft = draft
        self._sum = sha256()
        self._unsynced = 0
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add *piece*."""
        self._target.write(piece)
        self._sum.update(piece)
        self.size += len(piece)
        self._unsynced += len(piece)
        if self._unsynced >= storage.STEP:
            storage.sync_data(self._draft)
            self._unsynced = 0

    @property
    def digest(self) -> str:
        """The digest of what was written so far."""
        return f"sha256:{self._sum.hexdigest()}"


class PackageWriter:
    """Writes one package into *draft*, an empty file."""

    def __init__(self, draft: BinaryIO) -> None:
        self._draft = draft
        self._zip = ZipFile(draft, "w", ZIP_STORED, allowZip64=True)
        self._resources: list[dict[str, Any]] = []
        self._names: set[str] = set()

    @contextmanager
    def member(self, path: str, size: int, *, packed: bool) -> Iterator[ZipMember]:
        """Open the member at *path* of about *size* bytes for writing; *packed*: compressed."""
        with self._zip.open(_info(path, packed=packed), "w", force_zip64=size >= _LARGE) as target:
            if packed:  # `zipfile` has no other way to name a compressor
                target._compressor = zlib_ng.compressobj(LEVEL, zlib_ng.DEFLATED, _RAW)  # type: ignore[attr-defined]  # noqa: SLF001
            member = ZipMember(target, self._draft)
            yield member
        self._resources.append(
            {"name": self._name(path), "path": path, "hash": member.digest, "bytes": member.size},
        )

    def add(self, path: str, pieces: Iterable[bytes], *, size: int = 0, packed: bool = True) -> None:
        """Write *pieces* as the member at *path*."""
        with self.member(path, size, packed=packed) as member:
            for piece in pieces:
                member.write(piece)

    def finish(self, metadata: Mapping[str, Any], sign: Sign | None) -> None:
        """Write the package metadata and the list of members, and sync everything to disk."""
        package = {"profile": "data-package", "wacz_version": VERSION, **metadata, "resources": self._resources}
        text = json.dumps(package, indent=2, ensure_ascii=False).encode("utf-8", "replace")
        digest: dict[str, Any] = {"path": DATAPACKAGE, "hash": f"sha256:{sha256(text).hexdigest()}"}
        if sign is not None:
            digest["signedData"] = dict(sign(digest["hash"], metadata["created"]))
        self._zip.writestr(_info(DATAPACKAGE, packed=True), text)
        self._zip.writestr(_info(DIGEST, packed=True), json.dumps(digest, indent=2).encode())
        self._zip.close()
        storage.sync_data(self._draft)

    def abandon(self) -> None:
        """Stop writing, finished or not."""
        self._zip.fp = None

    def _name(self, path: str) -> str:
        """Return a resource name that is valid and unique in the package."""
        base = path.rpartition("/")[2].lower()
        name = plain = "".join(char if char.isascii() and (char.isalnum() or char in "-._") else "-" for char in base)
        number = 1
        while name in self._names:
            number += 1
            name = f"{number}-{plain}"
        self._names.add(name)
        return name


def _info(path: str, *, packed: bool) -> ZipInfo:
    info = ZipInfo(path, _TIME)
    info.compress_type = ZIP_DEFLATED if packed else ZIP_STORED
    info.create_system = _UNIX
    info.external_attr = _RIGHTS
    return info
