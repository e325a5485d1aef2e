"""A coroutine for each host on bare aiohttp, which stores nothing: `python coroutines.py FILE`, a seed on each line.

It requests each host's robots.txt, then the page, and prints how many pages were answered with 200.
"""

import asyncio
import sys
from pathlib import Path
from urllib.parse import urljoin

import aiohttp

PATIENCE = aiohttp.ClientTimeout(60)


async def fetched(session: aiohttp.ClientSession, seed: str) -> bool:
    """Return True if the page was answered."""
    try:
        async with session.get(urljoin(seed, "/robots.txt")) as answer:
            await answer.read()
        async with session.get(seed) as answer:
            return bool(await answer.read()) and answer.status == 200
    except (aiohttp.ClientError, OSError, TimeoutError):
        return False


async def main(seeds: list[str]) -> None:
    """Fetch all of them at once."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=PATIENCE) as session:
        print(sum(await asyncio.gather(*(fetched(session, seed) for seed in seeds))))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).read_text().split()))
