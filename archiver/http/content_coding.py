"""Undoes Content-Encoding for those who look into a body; what is archived stays encoded.

Never raises and never gives more than the limit, nor much more than what was sent could mean: a bomb ends
early. Broken data gives what came before the break, a header that lies gives the bytes as they are (or what
they are packed with in truth), and the note says so.

Content codings undone as bytes come, in bounded memory, however large the payload is.

As lenient as browsers: what is not packed as its header says is given as it is, what breaks or is cut gives what came
before. The note says so. Nothing raises.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

import brotlicffi

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

_MOST_CODINGS = 4  # each one may blow a body up to the limit again
_STEP = 1 << 16
_BITE = 1 << 12
_SIP = 512
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPED = b"\x2a\x4d\x18"  # ends the magic number of a zstd frame that holds no data
_WINDOW = 23  # bits: what RFC 9659 allows a zstd body to ask for, 8 MiB of memory
_MOST_FRAMES = 10_000  # each costs a decoder; a frame of a real body holds megabytes
_SMALL = 4 << 20  # a body that grows to no more than this is no bomb
_RATIO = 500  # real pages and sitemaps grow by 5 to 50, tables of zeros by a few hundred


def decoded(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, str]:
    """*body* without *codings* (as the header lists them), at most *limit* bytes, and what was wrong ("": nothing)."""
    notes = []
    most = min(limit, max(_SMALL, _RATIO * len(body)))
    names = [name for name in (coding.strip().lower() for coding in codings) if name not in ("", "identity")]
    if len(names) > _MOST_CODINGS:
        return body[:limit], "too many content codings"
    for name in reversed(names):
        decode = _DECODERS.get(name)
        if decode is None:
            notes.append(f"unknown content coding {name[:40]!r}")
            break
        body, note = decode(body, most)
        if note:
            notes.append(note)
    if len(body) > most:
        notes.append(f"only the first {most} bytes" + ", the rest is a bomb" * (most < limit))
    return body[:most], "; ".join(notes)


def _gzip(body: bytes, limit: int) -> tuple[bytes, str]:
    if not body.startswith(_GZIP_MAGIC):
        return _mislabelled(body, limit, "gzip")
    return _inflated(body, limit, 31, "gzip")


def _deflate(body: bytes, limit: int) -> tuple[bytes, str]:
    """HTTP's "deflate" is zlib's format; many servers send the bare stream."""
    if not body:
        return body, ""
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    for bits in (15, -15) if wrapped else (-15,):
        output, note = _inflated(body, limit, bits, "deflate")
        if output or not note:
            return output, note
    return _mislabelled(body, limit, "deflate")


def _inflated(body: bytes, limit: int, bits: int, name: str, bad: int | None = None) -> tuple[bytes, str]:
    """The output, one byte more than *limit* where there is more; gzip's further members are a part of it.

    The library gives nothing of a bite that holds a fault, so *bad*, where such a one starts, is fed by bytes.
    """
    output = bytearray()
    engine = zlib.decompressobj(bits)
    starts = list(range(0, len(body), _BITE))  # small ones, for what follows a member's end is copied
    if bad is not None:
        starts = [*range(0, bad, _BITE), *range(bad, min(bad + _BITE, len(body)))]
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        data = body[start:end]
        while data:
            if engine.eof:
                if name != "gzip" or not data.startswith(_GZIP_MAGIC[:1]):
                    return bytes(output), ""
                engine = zlib.decompressobj(bits)
            try:
                output += engine.decompress(data, limit + 1 - len(output))
            except zlib.error:
                if bad is None:
                    return _inflated(body, limit, bits, name, start)
                return bytes(output), f"broken {name} data"
            if len(output) > limit:
                return bytes(output), ""
            data = engine.unused_data if engine.eof else engine.unconsumed_tail
    return bytes(output), "" if engine.eof else f"{name} data is cut"


def _brotli(body: bytes, limit: int) -> tuple[bytes, str]:
    if not body:
        return body, ""
    pieces = [body[start : start + _SIP] for start in range(0, len(body), _SIP)]
    output, fed, note = _sip(pieces, limit)
    if note == "broken br data":  # the library gives nothing of the piece that holds the fault: feed that one by bytes
        bad = pieces[fed]
        output, _, note = _sip([*pieces[:fed], *(bad[at : at + 1] for at in range(len(bad)))], limit)
    return (output, note) if output or not note else _mislabelled(body, limit, "br")


def _sip(pieces: Sequence[bytes], limit: int) -> tuple[bytes, int, str]:
    """The output of *pieces*, how many went well, and what was wrong. A few bytes of brotli may stand for gigabytes."""
    output = bytearray()
    engine = brotlicffi.Decompressor()
    for index, piece in enumerate(pieces):
        if engine.is_finished():
            return bytes(output), index, ""
        try:
            output += engine.process(piece, output_buffer_limit=_STEP)
            while len(output) <= limit and not engine.can_accept_more_data():
                output += engine.process(b"", output_buffer_limit=_STEP)
        except brotlicffi.error:
            return bytes(output), index, "broken br data"
        if len(output) > limit:
            return bytes(output), index, ""
    return bytes(output), len(pieces), "" if engine.is_finished() else "br data is cut"


def _zstd(body: bytes, limit: int) -> tuple[bytes, str]:
    """Any number of frames. A dictionary is never at hand, so a frame that asks for one is broken."""
    if not body.startswith(_ZSTD_MAGIC) and body[1:4] != _SKIPPED:
        return _mislabelled(body, limit, "zstd")
    output = bytearray()
    engine, frames = _zstd_frame(), 0
    for start in range(0, len(body), _BITE):
        data = body[start : start + _BITE]
        while data or not engine.needs_input:
            try:
                output += engine.decompress(data, limit + 1 - len(output))
            except zstd.ZstdError:
                return bytes(output), "broken zstd data"
            if len(output) > limit:
                return bytes(output), ""
            data = engine.unused_data
            if engine.eof:
                if start + _BITE >= len(body) and not data:
                    return bytes(output), ""
                frames += 1
                if frames > _MOST_FRAMES:
                    return bytes(output), f"more than {_MOST_FRAMES} zstd frames"
                engine = _zstd_frame()
    return bytes(output), "zstd data is cut"


def _zstd_frame() -> zstd.ZstdDecompressor:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW})


def _mislabelled(body: bytes, limit: int, name: str) -> tuple[bytes, str]:
    """What is not packed as *name* says: unpacked by what its first bytes say, or left as it is."""
    if not body:
        return body, ""
    for magic, decode in ((_GZIP_MAGIC, _gzip), (_ZSTD_MAGIC, _zstd)):
        if body.startswith(magic):
            output, _ = decode(body, limit)
            body = output or body
            break
    return body, f"not {name}, as the header says"


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, str]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

STEP = 1 << 16  # bytes given at a time
_READ_BITE = 1 << 14  # bytes fed at a time
_MOST = 4  # codings, one in the other
_READ_WINDOW = 27  # bits: what the command zstd reads without being told to
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
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _READ_WINDOW})


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
        yield from (piece[start : start + _READ_BITE] for start in range(0, len(piece), _READ_BITE))


def _engine(name: str, first: bytes) -> _Engine | None:
    """What undoes *name*; None where *first*, the first bytes, are not so packed."""
    try:
        engine = _ENGINES[name](first)
        if engine is not None:
            probe = _ENGINES[name](first)
            for _ in probe.feed(first[:_READ_BITE]) if probe is not None else ():
                break
    except _BROKEN:
        return None
    return engine


def _deflate_engine(first: bytes) -> _Engine:
    wrapped = len(first) > 1 and first[0] & 0x0F == 8 and (first[0] << 8 | first[1]) % 31 == 0
    return _Zlib(15 if wrapped else -15)


def _gzip_engine(first: bytes) -> _Engine | None:
    return _Zlib(31) if first.startswith(_GZIP) else None


def _zstd_engine(first: bytes) -> _Engine | None:
    return _Zstd() if first.startswith(_ZSTD[0]) or first[1:4] == _ZSTD[1] else None


def _brotli_engine(_: bytes) -> _Engine:
    return _Brotli()


_ENGINES: dict[str, Callable[[bytes], _Engine | None]] = {
    "gzip": _gzip_engine,
    "x-gzip": _gzip_engine,
    "deflate": _deflate_engine,
    "br": _brotli_engine,
    "zstd": _zstd_engine,
}
