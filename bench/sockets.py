"""Count the sockets of browsers that have no network: those of their network namespaces, by the kernel's own counters.

The lists of a namespace name the sockets that are open; its counters also those that were closed between two looks,
if they have tried to connect or to send.
"""

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

EVERY = 0.2  # seconds between two looks
LISTS = ("tcp", "tcp6", "udp", "udp6", "udplite", "raw", "raw6", "packet")
OPENED = {"Ip": ("OutRequests",), "Tcp": ("ActiveOpens",), "Udp": ("OutDatagrams",)}  # counters of /proc/net/snmp
ROUTELESS = {"Ip": ("OutNoRoutes",)}  # looks for a route, of which there is none


@dataclass
class BrowserSockets:
    """The sockets of all browsers that are started in the block, in namespaces other than ours."""

    looks: int = 0  # at a namespace
    namespaces: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)  # lines that name a socket
    opened: dict[str, int] = field(default_factory=dict)  # connections begun and packets sent, by namespace
    routeless: dict[str, int] = field(default_factory=dict)  # looks for a route in vain, by namespace
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def number(self) -> int:
        """Sockets seen open, connections begun and packets sent."""
        return len(self.seen) + sum(self.opened.values())

    def _watch(self) -> None:
        own = Path("/proc/self/ns/net").readlink()
        while not self._over.wait(EVERY):
            found: set[Path] = set()
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it has ended meanwhile
                    space = (process / "ns/net").readlink()
                    is_browser = space not in {own, *found} and b"chrom" in (process / "cmdline").read_bytes()
                    if is_browser and is_ours(int(process.name)):
                        found.add(space)
                        self._look(str(space), process / "net")

    def _look(self, space: str, folder: Path) -> None:
        for name in LISTS:
            self.seen.update(f"{space} {name} {line}" for line in (folder / name).read_text().splitlines()[1:])
        counters = (folder / "snmp").read_text()
        self.opened[space], self.routeless[space] = total(counters, OPENED), total(counters, ROUTELESS)
        self.namespaces.add(space)
        self.looks += 1


def is_ours(process: int) -> bool:
    """Return True if this program, or one that it has started, has started *process*."""
    while process > 1 and process != os.getpid():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process == os.getpid()


def total(counters: str, wanted: dict[str, tuple[str, ...]]) -> int:
    """Return the sum of the *wanted* counters of /proc/net/snmp: for each protocol a line of names, then of numbers."""
    lines = [line.split() for line in counters.splitlines()]
    return sum(
        int(number)
        for names, numbers in zip(lines[::2], lines[1::2], strict=True)
        for name, number in zip(names, numbers, strict=True)
        if name in wanted.get(names[0].rstrip(":"), ())
    )
