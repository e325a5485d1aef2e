"""Undoes Content-Encoding for those who look into a body; what is archived stays encoded.

Never raises and never gives more than the limit. Broken data gives what came before the break, a header
that lies gives the bytes as they are, and the note says so.
"""

import zlib
from collections.abc import Callable, Sequence

import brotlicffi

_MOST_CODINGS = 4  # each one may blow a body up to the limit again
_STEP = 1 << 16
_BITE = 1 << 12
_SIP = 512
_GZIP_MAGIC = b"\x1f\x8b"


def decoded(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, str]:
    """*body* without *codings* (as the header lists them), at most *limit* bytes, and what was wrong ("": nothing)."""
    notes = []
    names = [name for name in (coding.strip().lower() for coding in codings) if name not in ("", "identity")]
    if len(names) > _MOST_CODINGS:
        return body[:limit], "too many content codings"
    for name in reversed(names):
        decode = _DECODERS.get(name)
        if decode is None:
            notes.append(f"unknown content coding {name[:40]!r}")
            break
        body, note = decode(body, limit)
        if note:
            notes.append(note)
    if len(body) > limit:
        notes.append(f"only the first {limit} bytes")
    return body[:limit], "; ".join(notes)


def _gzip(body: bytes, limit: int) -> tuple[bytes, str]:
    if not body.startswith(_GZIP_MAGIC):
        return body, "not gzip, as the header says" if body else ""
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
    return body, "not deflate, as the header says"


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
    return (output, note) if output or not note else (body, "not br, as the header says")


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


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, str]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
}
