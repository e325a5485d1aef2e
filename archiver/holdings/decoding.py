"""Content codings undone as bytes come, in bounded memory, however large the payload is.

As lenient as browsers: what is not packed as its header says is given as it is, what breaks or is cut gives what came
before. The note says so. Nothing raises.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Protocol

import brotlicffi

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

STEP = 1 << 16  # bytes given at a time
_BITE = 1 << 14  # bytes fed at a time
_MOST = 4  # codings, one in the other
_WINDOW = 27  # bits: what the command zstd reads without being told to
_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")


class _Engine(Protocol):
    """What undoes one coding: a member or frame at a time."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What *data* means. Raises one of `_BROKEN`."""

    @property
    def whole(self) -> bool:
        """Whether it may end here."""


class _Zlib:
    """gzip, also of several members; zlib and the bare stream, which both go by the name of deflate."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._engine = zlib.decompressobj(bits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._engine.eof:
                if self._bits != 31 or not data.startswith(_GZIP[:1]):
                    return  # what follows is padding
                self._engine = zlib.decompressobj(self._bits)
            yield self._engine.decompress(data, STEP)
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail

    @property
    def whole(self) -> bool:
        return self._engine.eof


class _Brotli:
    """br: a few bytes may stand for gigabytes."""

    def __init__(self) -> None:
        self._engine = brotlicffi.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.whole:
            return
        yield self._engine.process(data, output_buffer_limit=STEP)
        while not self._engine.can_accept_more_data():
            yield self._engine.process(b"", output_buffer_limit=STEP)

    @property
    def whole(self) -> bool:
        return bool(self._engine.is_finished())


class _Zstd:
    """zstd, any number of frames."""

    def __init__(self) -> None:
        self._engine = self._frame()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._engine.needs_input or self._engine.eof):
            if self._engine.eof:
                self._engine = self._frame()
            yield self._engine.decompress(data, STEP)
            data = self._engine.unused_data if self._engine.eof else b""

    @property
    def whole(self) -> bool:
        return bool(self._engine.eof)

    @staticmethod
    def _frame() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW})


_BROKEN = (zlib.error, zstd.ZstdError, brotlicffi.error)


class Decoder:
    """The payload without its content codings; `notes` are whole when it has been read to its end."""

    def __init__(self, pieces: Iterable[bytes], codings: Iterable[str]) -> None:
        self.notes: list[str] = []
        names = [name for name in (coding.strip().lower() for coding in codings) if name not in ("", "identity")]
        self._output = iter(pieces)
        if len(names) > _MOST:
            self.notes.append("too many content codings")
            return
        for name in reversed(names):
            if name not in _ENGINES:
                self.notes.append(f"unknown content coding {name[:40]!r}")
                return
            self._output = self._undone(self._output, name)

    def __iter__(self) -> Iterator[bytes]:
        return (piece for piece in self._output if piece)

    def _undone(self, pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
        first = b""
        for piece in pieces:
            first += piece
            if len(first) >= len(_ZSTD[0]):
                break
        if not first:
            return
        engine = _engine(name, first)
        if engine is None:
            self.notes.append(f"not {name}, as the header says")
            yield first
            yield from pieces
            return
        given = False
        try:
            for piece in _bites(first, pieces):
                for output in engine.feed(piece):
                    given = given or bool(output)
                    yield output
        except _BROKEN:
            self.notes.append(f"broken {name} data" if given else f"broken {name} data, from its first bytes on")
            return
        if not engine.whole:
            self.notes.append(f"{name} data is cut")


def _bites(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    for piece in chain((first,), rest):
        yield from (piece[start : start + _BITE] for start in range(0, len(piece), _BITE))


def _engine(name: str, first: bytes) -> _Engine | None:
    """What undoes *name*; None where *first*, the first bytes, are not so packed."""
    try:
        engine = _ENGINES[name](first)
        if engine is not None:
            probe = _ENGINES[name](first)
            for _ in probe.feed(first[:_BITE]) if probe is not None else ():
                break
    except _BROKEN:
        return None
    return engine


def _deflate(first: bytes) -> _Engine:
    wrapped = len(first) > 1 and first[0] & 0x0F == 8 and (first[0] << 8 | first[1]) % 31 == 0
    return _Zlib(15 if wrapped else -15)


def _gzip(first: bytes) -> _Engine | None:
    return _Zlib(31) if first.startswith(_GZIP) else None


def _zstd(first: bytes) -> _Engine | None:
    return _Zstd() if first.startswith(_ZSTD[0]) or first[1:4] == _ZSTD[1] else None


def _brotli(_: bytes) -> _Engine:
    return _Brotli()


_ENGINES: dict[str, Callable[[bytes], _Engine | None]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
