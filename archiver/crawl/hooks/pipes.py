"""Messages between this process and the processes that it starts for work that may hang, crash or eat memory.

A message has its length before it. The other process limits its own memory.
"""

import os
import struct
from contextlib import suppress
from io import FileIO
from typing import IO

_LENGTH = struct.Struct(">Q")
_PIECE = 1 << 20  # bytes that are read at once


def send(pipe: int, message: bytes) -> None:
    """Write *message*, with its length before it."""
    for piece in (_LENGTH.pack(len(message)), message):
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(pipe, rest) :]


def receive(pipe: IO[bytes] | FileIO, most: float = float("inf")) -> bytes:
    """Return the next message. Raises `EOFError` if there is none, or one of more than *most* bytes."""
    size = _LENGTH.unpack(_whole(pipe, _LENGTH.size))[0]
    if size > most:
        raise EOFError
    return _whole(pipe, size)


def _whole(pipe: IO[bytes] | FileIO, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = pipe.read(min(size - len(found), _PIECE))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def limit_memory(memory: int) -> None:
    """Give this process *memory* bytes of address space at most, and no core file. Unix alone has it."""
    import resource  # noqa: PLC0415 - Unix alone has it

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory if most < 0 else min(memory, most), most))
