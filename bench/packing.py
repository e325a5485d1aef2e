"""Measure packing a large archive: time, bytes per second, and peak memory.

    python bench/packing.py --size 5G --directory /var/tmp/packing

It makes DIRECTORY/collection once: WARC files of a gigabyte, each with a few incompressible records of a hundred
megabytes and very many small pages, and an index. Then it packs the collection with the command and prints a table.
It removes the package afterwards, unless you give --keep.
"""

import argparse
import json
import multiprocessing
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from archiver.config.option_types import SIZE
from archiver.warc.cdxj import lookup_key
from archiver.warc.writer import member, member_in_pieces

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
FILE = 1_000_000_000  # bytes of a WARC file
LARGE = 100 << 20  # bytes of a large record
SMALL = 0.1  # share of small pages in all bytes
PIECE = 1 << 20
WORDS = [
    f"{first}{second}" for first in ("am", "ba", "ce", "de", "fi") for second in ("ber", "sin", "dar", "lta", "rth")
]


def header(kind: str, address: str, length: int, number: int, *more: str) -> bytes:
    """Return the header of a record."""
    lines = [f"WARC/1.1\r\nWARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{number:032x}>"]
    lines += ["WARC-Date: 2026-01-02T03:04:05.678901Z", f"WARC-Target-URI: {address}", *more]
    return ("\r\n".join(lines) + f"\r\nContent-Length: {length}\r\n\r\n").encode()


def page(number: int, chance: random.Random) -> bytes:
    """Return some kilobytes of HTML."""
    text = " ".join(chance.choices(WORDS, k=1000))
    return f"<!doctype html><title>Page {number}</title><body><h1>{number}</h1><p>{text}</p>".encode()


def small(number: int, chance: random.Random) -> Iterator[tuple[str, str, bytes]]:
    """Return address, media type (None if not indexed) and gzip member of each record of a small page."""
    address = f"https://host{number % 97}.example.org/pages/{number * 2654435761 % 2**32:08x}-{number}"
    body = page(number, chance)
    block = HEAD % (b"text/html", len(body)) + body
    yield address, "text/html", member(header("response", address, len(block), number) + block + b"\r\n\r\n")
    notes = f"hopsFromSeed: {'L' if number else ''}\r\n".encode()
    said = header("metadata", address, len(notes), number + 2**64, f"WARC-Concurrent-To: <urn:uuid:{number:032x}>")
    yield address, "", member(said + notes + b"\r\n\r\n")


def large(number: int, length: int, noise: bytes) -> Iterator[bytes]:
    """Yield the member of a large record in pieces."""
    address = f"https://films.example.org/{number}"
    length = length // PIECE * PIECE
    head = HEAD % (b"video/mp4", length)
    first = header("response", address, len(head) + length, number + 2**96) + head + noise
    yield from member_in_pieces(first, [*[noise] * (length // PIECE - 1), b"\r\n\r\n"])


def make(directory: Path, size: int, length: int) -> None:
    """Make a collection of about *size* bytes."""
    chance = random.Random(1)
    for folder in ("archive", "indexes"):
        (directory / folder).mkdir(parents=True)
    lines: list[str] = []
    total = pages = films = 0
    while total < size:
        name = f"bench-{len(list((directory / 'archive').iterdir())):05}.warc.gz"
        with (directory / "archive" / name).open("wb") as file:

            def listed(address: str, mime: str, offset: int) -> None:
                said = {"url": address, "mime": mime, "status": "200", "digest": "-"}
                said |= {"length": str(file.tell() - offset), "offset": str(offset), "filename": name}  # noqa: B023
                lines.append(f"{lookup_key(address)} 20260102030405 {json.dumps(said)}\n")

            while file.tell() < min(FILE, size - total) * SMALL:
                for address, mime, data in small(pages, chance):
                    offset = file.tell()
                    file.write(data)
                    if mime:
                        listed(address, mime, offset)
                pages += 1
            while file.tell() < min(FILE, size - total):
                offset = file.tell()
                file.writelines(large(films, length, chance.randbytes(PIECE)))
                listed(f"https://films.example.org/{films}", "video/mp4", offset)
                films += 1
            total += file.tell()
    (directory / "indexes" / "index.cdxj").write_text("".join(sorted(lines)))


def main() -> int:
    """Make, pack, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=SIZE.parse, default="5G", help="bytes of the archive [5G]")
    parser.add_argument("--directory", type=Path, required=True, help="where to make it")
    parser.add_argument("--large", type=SIZE.parse, default=LARGE, help="bytes of a large record [100M]")
    parser.add_argument("--keep", action="store_true", help="do not remove the package")
    given, options = parser.parse_known_args()
    collection, output = given.directory / "collection", given.directory / "packed.wacz"
    if not collection.exists():
        # In a process of its own: the system counts a large parent's memory towards its children.
        making = multiprocessing.get_context("spawn").Process(target=make, args=(collection, given.size, given.large))
        making.start()
        making.join()
    size = sum(path.stat().st_size for path in (collection / "archive").iterdir())
    with (collection / "indexes" / "index.cdxj").open("rb") as index:
        lines = sum(1 for _ in index)
    begun = monotonic()
    command = [sys.executable, "-m", "archiver", "pack", str(collection), "-o", str(output), "--force", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    rate = f"{size / took / 1e6:.0f} | {memory / 1e6:.0f} MB"
    print("| archive | captures | seconds | of CPU | MB/s | most memory |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    print(f"| {size / 1e9:.2f} GB | {lines} | {took:.1f} | {cpu:.1f} | {rate} |")
    if not given.keep:
        output.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
