"""Read WACZ packages safely: the ZIP is treated as hostile, and only parts of it ever become file names.

Refused are files that are not ZIP, encrypted or unusual compression, names that lead elsewhere or occur twice, members
that overlap, and ZIP bombs. What only contradicts the package's own list is a doubt, which is reported. Source: WACZ
1.1.1, and the older form of the list in 1.0.
"""

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from archiver.errors import ConfigError
from archiver.tools.wacz.signature import SignatureCheck, SignatureStatus, check_signature

LIST = "datapackage.json"
DIGEST = "datapackage-digest.json"
MOST_MEMBERS = 100_000
LARGEST_LIST = 32 << 20  # bytes: a hundred thousand members with their hashes
MOST_KEPT = 1000  # lists of pages and logs; a package has three
MOST_VALUES = 1_000_000  # in a list: what three bytes of text say, "[],", takes 64 in memory
PLENTY = 64 << 20  # bytes; what unpacks to more than this …
MOST_TIMES = 200  # … may not unpack to more than so many times its size: texts come to 20 times
CHUNK = 1 << 20

_WARC = re.compile(r"archive/.+\.warc(?:\.gz)?", re.IGNORECASE)
_KEPT = re.compile(r"datapackage\.json|datapackage-digest\.json|pages/[^/]+|logs/[^/]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
_ENCRYPTED = 0x1
_HEADER = struct.Struct("<4s22xHH")  # of a member, before its name: lengths of that, and of the extra fields
_SIGNATURE = b"PK\x03\x04"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
_HASHES = frozenset(("md5", "sha1", "sha224", "sha256", "sha384", "sha512"))


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file in a package."""

    name: str
    size: int  # unpacked
    stated: str  # its hash in the package's list, `algorithm:hex`; empty if missing
    place: int | None = None  # offset of its header if it is stored
    info: zipfile.ZipInfo | None = field(default=None, compare=False, repr=False)  # as in the ZIP directory


@dataclass(frozen=True, slots=True)
class ReceivedPackage:
    """A package, as far as it can be checked without reading its archives."""

    path: Path
    mark: str  # distinguishes it from others with its name
    warcs: tuple[PackedFile, ...]
    kept: tuple[PackedFile, ...]  # side files: the list, its digest, pages and logs
    others: tuple[PackedFile, ...]  # files that are rebuilt from the archives
    doubts: tuple[str, ...]
    signature: SignatureCheck | None = None  # None: not signed


def read_package(path: Path) -> ReceivedPackage:
    """Read the package at *path*. Raises `ConfigError` if it cannot be used."""
    with _opened(path) as file:
        infos = [info for info in file.infolist() if not info.is_dir()]
        _check(path, infos)
        hashes, doubts, signature = _list(file, {info.filename for info in infos})
        members = [
            PackedFile(info.filename, info.file_size, hashes.get(info.filename, ""), _place(info), info)
            for info in infos
        ]
    warcs = tuple(member for member in members if _WARC.fullmatch(member.name))
    if not warcs:
        raise ConfigError(f"{path}: a ZIP file, but not a WACZ: it has no archive/*.warc or *.warc.gz")
    kept = tuple(member for member in members if _KEPT.fullmatch(member.name))
    if len(kept) > MOST_KEPT:
        raise ConfigError(f"{path}: it has {len(kept)} page lists and logs; the maximum is {MOST_KEPT}")
    named = {member.name for member in (*warcs, *kept)}
    others = tuple(member for member in members if member.name not in named)
    if hashes:
        missing = sorted(hashes.keys() - {member.name for member in members})
        doubts += [f"{LIST} lists {name[:200]!r}, which is not in it" for name in missing[:10]]
        doubts += [f"{LIST} does not list {member.name[:200]!r}" for member in warcs if not member.stated][:10]
    outline = "\n".join(f"{info.filename} {info.file_size} {info.CRC}" for info in infos)
    mark = hashlib.sha256(outline.encode("utf-8", "replace")).hexdigest()[:8]
    return ReceivedPackage(path, mark, warcs, kept, others, tuple(doubts), signature)


@contextmanager
def open_member(path: Path, member: PackedFile) -> Iterator[IO[bytes]]:
    """Open *member*, which is unpacked while it is read. Damage raises `ConfigError`."""
    with path.open("rb") as file:  # `zipfile` would read the list of all members each time
        try:
            assert member.info is not None
            file.seek(_bytes_of(file, path, member, member.info.header_offset))
            with zipfile.ZipExtFile(file, "r", member.info) as stream:
                yield cast("IO[bytes]", stream)
        except _BROKEN as error:
            raise ConfigError(f"{path}: {member.name} cannot be unpacked: {error}") from None


@contextmanager
def open_archive(path: Path, member: PackedFile) -> Iterator[IO[bytes]]:
    """Open an archive. Stored bytes are returned as they are, even if damaged."""
    if member.place is None:
        with open_member(path, member) as stream:
            yield stream
        return
    with path.open("rb") as file:
        file.seek(_bytes_of(file, path, member, member.place))
        yield io.BufferedReader(_Stretch(file, member.size))


def offset_of(path: Path, member: PackedFile) -> int:
    """Return the offset of the bytes of *member*, which is stored. Raises `ConfigError`."""
    assert member.place is not None
    with path.open("rb") as file:
        return _bytes_of(file, path, member, member.place)


def _bytes_of(file: BinaryIO, path: Path, member: PackedFile, place: int) -> int:
    """Return the offset of the bytes of *member*, whose header is at *place*."""
    file.seek(place)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_SIGNATURE):
        raise ConfigError(f"{path}: {member.name} is not where the ZIP directory says")
    name, extra = _HEADER.unpack(header)[1:]
    return file.tell() + int(name) + int(extra)


class _Stretch(io.RawIOBase):
    """The next *size* bytes of *file*."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._begin = file.tell()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = min(max(start + offset, 0), self._size)
        self._file.seek(self._begin + self._position)
        return self._position

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), self._size - self._position))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


def hash_for(stated: str) -> "hashlib._Hash | None":
    """Return a new hash for *stated*; None if nothing is stated or the algorithm is unknown."""
    algorithm = stated.partition(":")[0]
    return hashlib.new(algorithm, usedforsecurity=False) if algorithm in _HASHES else None


def mismatches(path: Path, members: Iterable[PackedFile]) -> Iterator[tuple[PackedFile, str]]:
    """Read each of *members* and yield what is wrong with it: damage, or another hash than stated; empty if nothing.

    The package is opened once, because opening it reads the list of all its members.
    """
    with _opened(path) as file:
        for member in members:
            state = hash_for(member.stated)
            try:
                with file.open(member.name) as stream:
                    while piece := stream.read(CHUNK):
                        if state is not None:
                            state.update(piece)
            except _BROKEN as error:
                yield member, f"{member.name} cannot be unpacked: {error}"
                continue
            yield member, "" if state is None else disagreement(member, state)


def disagreement(member: PackedFile, state: "hashlib._Hash") -> str:
    """Return what is wrong with *member*, whose bytes were hashed by *state*."""
    found, stated = state.hexdigest(), member.stated.partition(":")[2]
    return "" if found == stated else f"{member.name} does not match {LIST}: its {state.name} is {found[:64]}"


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as file:
            yield file
    except (*_BROKEN, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: it begins like a ZIP file, but cannot be read: {error}; perhaps the download was incomplete"
        ) from None


def _check(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MOST_MEMBERS:
        raise ConfigError(f"{path}: it has {len(infos)} members; the maximum is {MOST_MEMBERS}")
    seen: set[str] = set()
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        fault = _fault(info)
        if not fault and info.filename.casefold() in seen:
            fault = "its name occurs twice"
        if not fault and info.header_offset < end:
            fault = "it overlaps another member"
        if fault:
            raise ConfigError(f"{path}: its member {info.filename[:200]!r} is refused: {fault}")
        seen.add(info.filename.casefold())
        end = info.header_offset + info.compress_size
    size, packed = sum(info.file_size for info in infos), sum(info.compress_size for info in infos)
    if size > max(PLENTY, MOST_TIMES * packed):
        raise ConfigError(f"{path}: a ZIP bomb: {packed} bytes unpack to {size}")


def _place(info: zipfile.ZipInfo) -> int | None:
    stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
    return info.header_offset if stored else None


def _fault(info: zipfile.ZipInfo) -> str:
    name = PurePosixPath(info.filename)
    if name.is_absolute() or ".." in name.parts or _CONTROL.search(info.orig_filename) or ":" in name.parts[0]:
        return "its name leads out of the package or has forbidden characters"
    if info.flag_bits & _ENCRYPTED:
        return "it is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "it is neither stored nor deflated, as WACZ requires"
    if info.file_size > max(PLENTY, MOST_TIMES * info.compress_size):
        return f"a ZIP bomb: {info.compress_size} bytes unpack to {info.file_size}"
    return ""


def _list(file: zipfile.ZipFile, names: set[str]) -> tuple[dict[str, str], list[str], SignatureCheck | None]:
    """Return the stated hashes by name, the doubts, and the signature."""
    if LIST not in names:
        return {}, [f"it has no {LIST}, so its files cannot be checked"], None
    text = _read(file, LIST)
    doubts, signature = _digest(text, _json(_read(file, DIGEST))) if DIGEST in names else ([], None)
    resources = _json(text).get("resources")
    if not isinstance(resources, list):
        return {}, [*doubts, f"{LIST} cannot be read, or lists no resources"], signature
    hashes = {str(each["path"]): _hash_of(each) for each in resources if isinstance(each, dict) and "path" in each}
    return hashes, doubts, signature


def _digest(text: bytes, digest_file: dict[str, Any]) -> tuple[list[str], SignatureCheck | None]:
    """Return the doubts about the list *text* by the digest file, and the signature."""
    doubts = []
    stated = _hash_of(digest_file)
    state = hash_for(stated)
    if state is None:
        doubts.append(f"{DIGEST} has no hash that can be checked")
    else:
        state.update(text)
        if state.hexdigest() != stated.partition(":")[2]:
            doubts.append(f"{LIST} does not match {DIGEST}: its {state.name} is {state.hexdigest()}")
    if digest_file.get("signedData") is None:
        return doubts, None
    signature = check_signature(digest_file["signedData"], f"sha256:{hashlib.sha256(text).hexdigest()}")
    if signature.status is SignatureStatus.NOT_VALID:
        doubts.append(str(signature))
    return doubts, signature


def _read(file: zipfile.ZipFile, name: str) -> bytes:
    with file.open(name) as stream:
        return stream.read(LARGEST_LIST)


def _json(text: bytes) -> dict[str, Any]:
    try:
        data = bounded_json(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def bounded_json(text: bytes) -> Any:
    """Parse *text*. Raises ValueError if it is not JSON or would take too much memory."""
    if len(text) >= LARGEST_LIST:
        raise ValueError(f"it has {LARGEST_LIST} bytes or more")
    if sum(map(text.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    return json.loads(text)


def _hash_of(entry: dict[str, Any]) -> str:
    """Return the hash in an entry of the list, in the form of WACZ 1.1; in 1.0 it is two fields."""
    stats = entry.get("stats")
    if isinstance(stats, dict):
        return f"{str(entry.get('hashing', 'sha256')).lower()}:{str(stats.get('hash', '')).lower()}"
    stated = str(entry.get("hash", "")).lower()
    return stated if ":" in stated or not stated else f"sha256:{stated}"
