"""At which address a host is, asked of the system's resolver before anything is connected to it."""

import asyncio
import socket

from archiver import url

LONGEST = 5.0  # seconds; a host whose name is looked up for longer is asked by itself until it is leased again


async def address(origin: str) -> str:
    """The first address of the host of *origin* in the order of addresses, the same at each look; "" if it has none."""
    host = url.host(f"{origin}/").strip("[]")
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LONGEST):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return ""
    return min((str(each[4][0]) for each in found), default="")
