"""Remove content codings (gzip, deflate, br, zstd) piece by piece, in bounded memory.

The archive keeps bodies encoded; link extraction and the readers of stored payloads decode them here. The decoder is as
lenient as browsers and never raises. A body that is not encoded as its header says is decoded by its first bytes, or
passed on unchanged. Broken or cut data yields everything before the fault. The notes say which of these happened.
"""

import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

import brotlicffi

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

MAX_CODINGS = 4  # on top of each other; each one may expand a body up to the limit again
OUTPUT_STEP = 1 << 16  # bytes of output at a time: a few bytes of input may expand to gigabytes
INPUT_STEP = 1 << 12  # bytes of input at a time; zlib copies what follows the end of a gzip member
REREADABLE = 4 << 20  # bytes of input kept so that decoding can start again from the beginning

# A body for link extraction or an export must not expand beyond this.
SMALL_OUTPUT = 4 << 20  # bytes: a body that stays below is no decompression bomb
BOMB = ", the rest is a bomb"
MAX_RATIO = 500  # real pages and sitemaps grow by 5 to 50, tables of zeros by a few hundred
PAGE_WINDOW = 23  # bits: RFC 9659 allows zstd responses this window, 8 MiB of memory
MAX_FRAMES = 10_000  # each frame costs a decoder; a frame of a real body holds megabytes

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # bytes 2 to 4 of a zstd frame that holds no data


@dataclass(frozen=True, slots=True)
class DecoderLimits:
    """Limits on output and memory of a decoder; the defaults suit readers that stream a stored payload."""

    size: int = 1 << 62  # bytes of output of each coding; one byte more is given where there is more
    window: int = 27  # bits of a zstd window: the default of the zstd command
    frames: int = 1 << 62  # zstd frames


UNLIMITED = DecoderLimits()


def decoded(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, str]:
    """Return *body* without *codings* (in the order of the header), cut at *limit* bytes, and a note on any fault."""
    most = min(limit, most_output(len(body)))
    decoder = Decoder((body,), codings, DecoderLimits(most, PAGE_WINDOW, MAX_FRAMES))
    output = b"".join(decoder)
    if len(output) > most:
        decoder.notes.append(f"only the first {most} bytes" + BOMB * (most < limit))
    return output[:most], "; ".join(decoder.notes)


def most_output(size: int) -> int:
    """Return how many bytes a body of *size* encoded bytes may expand to; one that expands to more is a bomb."""
    return max(SMALL_OUTPUT, MAX_RATIO * size)


class Decoder:
    """Iterate over it for the payload without its content codings; `notes` is complete at the end."""

    def __init__(self, pieces: Iterable[bytes], codings: Iterable[str], limits: DecoderLimits = UNLIMITED) -> None:
        self.notes: list[str] = []
        names = [name for name in (coding.strip().lower() for coding in codings) if name not in ("", "identity")]
        self._limits = limits
        self._output = iter(pieces)
        if len(names) > MAX_CODINGS:
            self.notes.append("too many content codings")
            return
        for name in reversed(names):
            if name not in _ENGINES:
                self.notes.append(f"unknown content coding {name[:40]!r}")
                return
            self._output = _first_bytes(self._decode(self._output, name), limits.size + 1)

    def __iter__(self) -> Iterator[bytes]:
        return (piece for piece in self._output if piece)

    def _decode(self, pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
        """Yield *pieces* without coding *name*."""
        source = _Source(pieces)
        if not source.start:
            return
        has_magic = name in ("gzip", "x-gzip", "zstd")
        for engine in _ENGINES[name](source.start, self._limits):
            given, fault = yield from _run(engine, source)
            if given or not fault or has_magic or not source.complete:
                if fault:
                    self.notes.append(fault.format(name=name))
                return
        self.notes.append(f"not {name}, as the header says")
        for magic, other in ((_GZIP, "gzip"), (_ZSTD, "zstd")):
            for engine in _ENGINES[other](source.start, self._limits) if source.start.startswith(magic) else ():
                given, _ = yield from _run(engine, source)
                if given:
                    return
        if source.complete:
            yield from source


class _Source:
    """The input of one coding in small pieces. It can be read again until `REREADABLE` bytes have been read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        start = b""
        for piece in pieces:
            start += piece
            if len(start) >= len(_ZSTD):
                break
        self.start = start[: len(_ZSTD)]
        self.complete = True  # `_kept` holds everything that was read
        self._kept: list[bytes] = []
        self._size = 0
        self._rest = _small_pieces(chain((start,), pieces))

    def __iter__(self) -> Iterator[bytes]:
        yield from self._kept
        for piece in self._rest:
            self._size += len(piece)
            if self._size <= REREADABLE:
                self._kept.append(piece)
            else:
                self.complete = False
                self._kept.clear()
            yield piece


def _small_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from (piece[start : start + INPUT_STEP] for start in range(0, len(piece), INPUT_STEP))


def _first_bytes(pieces: Iterator[bytes], left: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


class _TooManyFramesError(Exception):
    """A body has more zstd frames than the limits allow."""


class _Engine(Protocol):
    """Decodes one coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what *data* decodes to, at most `OUTPUT_STEP` bytes at a time. Raises one of `_BROKEN`."""

    @property
    def whole(self) -> bool:
        """True if the data may end here."""


_NewEngine = Callable[[], _Engine]
_BROKEN = (zlib.error, zstd.ZstdError, brotlicffi.error)


def _run(new_engine: _NewEngine, source: _Source) -> Generator[bytes, None, tuple[int, str]]:
    """Yield what *source* decodes to; return the number of bytes and a note on the fault that ended it."""
    engine = new_engine()
    given = number = 0
    try:
        for number, piece in enumerate(source):  # noqa: B007  used after a fault
            for output in engine.feed(piece):
                given += len(output)
                yield output
    except _TooManyFramesError as error:
        return given, str(error)
    except _BROKEN:
        engine = new_engine()
        if source.complete:
            for output in _before_fault(engine, source, number, given):
                given += len(output)
                yield output
        return given, "" if engine.whole else "broken {name} data"
    return given, "" if engine.whole else "{name} data is cut"


def _before_fault(engine: _Engine, source: _Source, number: int, given: int) -> Iterator[bytes]:
    """Yield the output after the first *given* bytes and before the fault in piece *number* of *source*.

    The libraries give nothing of the input that holds the fault, so that piece is fed byte by byte. With brotli this
    also finds where the data ended, if something else follows it.
    """
    try:
        for index, piece in enumerate(source):
            for data in (piece,) if index < number else (piece[at : at + 1] for at in range(len(piece))):
                for output in engine.feed(data):
                    yield output[given:]
                    given = max(0, given - len(output))
    except _BROKEN:
        return


class _Zlib:
    """gzip, also of several members; zlib and raw deflate, which both go by the name of deflate.

    Browsers, curl and wget accept data without its checksum, and so does this; a wrong checksum is a fault.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._engine = zlib.decompressobj(bits)
        self._ended = False  # padding follows
        self._broken = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._ended:
            if self._engine.eof:
                if self._bits != _GZIP_BITS or not data.startswith(_GZIP[:1]):
                    self._ended = True
                    return
                self._engine = zlib.decompressobj(self._bits)
            try:
                yield self._engine.decompress(data, OUTPUT_STEP)
            except zlib.error as error:
                if self._bits == _GZIP_BITS and _NO_HEADER in str(error):  # what follows a member is no other one
                    self._ended = True
                    return
                self._broken = True
                raise
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail

    @property
    def whole(self) -> bool:
        return self._engine.eof or self._ended or (not self._broken and self._lacks_its_sum())

    def _lacks_its_sum(self) -> bool:
        """Return True if the data has ended, but not the checksum behind it.

        Then any further byte is one of the checksum. Inside the data, no code begins with zeros and with ones alike.
        """
        return all(_reaches_the_sum(self._engine.copy(), further) for further in (b"\0", b"\xff"))


def _reaches_the_sum(engine: "zlib._Decompress", further: bytes) -> bool:
    """Return True if *engine* takes the byte *further*, several times, for a checksum, and gives no more output."""
    try:
        for _ in range(_SUM):
            if engine.decompress(further):
                return False
            if engine.eof:
                return True
    except zlib.error as error:
        return _WRONG_SUM.search(str(error)) is not None
    return False


class _Brotli:
    def __init__(self) -> None:
        self._engine = brotlicffi.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.whole:
            return
        yield self._engine.process(data, output_buffer_limit=OUTPUT_STEP)
        while not self._engine.can_accept_more_data():
            yield self._engine.process(b"", output_buffer_limit=OUTPUT_STEP)

    @property
    def whole(self) -> bool:
        return bool(self._engine.is_finished())


class _Zstd:
    """zstd, any number of frames. Dictionaries are not supported: a frame that needs one is broken."""

    def __init__(self, limits: DecoderLimits) -> None:
        self._limits = limits
        self._frames = 1
        self._engine = self._new_frame()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._engine.needs_input or self._engine.eof):
            if self._engine.eof:
                self._frames += 1
                if self._frames > self._limits.frames:
                    raise _TooManyFramesError(f"more than {self._limits.frames} zstd frames")
                self._engine = self._new_frame()
            yield self._engine.decompress(data, OUTPUT_STEP)
            data = self._engine.unused_data if self._engine.eof else b""

    @property
    def whole(self) -> bool:
        return bool(self._engine.eof)

    def _new_frame(self) -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: self._limits.window})


_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 31, 15, -15  # zlib's numbers for its three formats
_NO_HEADER = "incorrect header check"  # zlib's words for data that does not begin as its format does …
_WRONG_SUM = re.compile(r"incorrect (?:data|length) check")  # … and for a checksum or length that is not right
_SUM = 8  # bytes of the checksum and the length behind gzip data


def _gzip_engines(start: bytes, _: DecoderLimits) -> list[_NewEngine]:
    return [partial(_Zlib, _GZIP_BITS)] if start.startswith(_GZIP) else []


def _deflate_engines(start: bytes, _: DecoderLimits) -> list[_NewEngine]:
    """Return the engines for "deflate": HTTP means the zlib format, but many servers send raw deflate."""
    is_zlib = len(start) > 1 and start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
    return [partial(_Zlib, bits) for bits in ((_ZLIB_BITS, _RAW_BITS) if is_zlib else (_RAW_BITS,))]


def _brotli_engines(_: bytes, __: DecoderLimits) -> list[_NewEngine]:
    return [_Brotli]


def _zstd_engines(start: bytes, limits: DecoderLimits) -> list[_NewEngine]:
    return [partial(_Zstd, limits)] if start == _ZSTD or start[1:] == _ZSTD_SKIPPABLE else []


_ENGINES: dict[str, Callable[[bytes, DecoderLimits], list[_NewEngine]]] = {  # the engines to try, by the first bytes
    "gzip": _gzip_engines,
    "x-gzip": _gzip_engines,
    "deflate": _deflate_engines,
    "br": _brotli_engines,
    "zstd": _zstd_engines,
}
