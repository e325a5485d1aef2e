"""Undoes Content-Encoding for those who look into a body; what is archived stays encoded.

Never raises and never gives more than the limit, nor much more than what was sent could mean: a bomb ends
early. Broken data gives what came before the break, a header that lies gives the bytes as they are (or what
they are packed with in truth), and the note says so.
"""

import zlib
from collections.abc import Callable, Sequence

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
