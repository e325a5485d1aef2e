"""What the system says of the way to a host before anything is connected to it: its address, and if there is one."""

import asyncio
import socket
from contextlib import suppress

from archiver import url
from archiver.addresses import read

LONGEST = 5.0  # seconds; a host whose name is looked up for longer is asked by itself until it is leased again


async def address(origin: str) -> str:
    """The first address of the host of *origin* in the order of addresses, the same at each look; "" if it has none."""
    host = url.host(f"{origin}/").strip("[]")
    if read(host) is not None:
        return host
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LONGEST):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return ""
    return min((str(each[4][0]) for each in found), default="")


def routed() -> bool:
    """Whether this machine has a route to anywhere; nothing is sent."""
    for family, address in ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1")):  # RFC 5737, RFC 3849
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return True
    return False
