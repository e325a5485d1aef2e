"""A thread for each host, which stores nothing: `python threads.py FILE`, a seed on each line.

It requests each host's robots.txt, then the page, and prints how many pages were answered with 200.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE = 60


def fetched(seed: str) -> bool:
    """Return True if the page was answered."""
    parts = urlsplit(seed)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/robots.txt")
        connection.getresponse().read()
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return bool(answer.read()) and answer.status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    seeds = Path(sys.argv[1]).read_text().split()
    with ThreadPoolExecutor(len(seeds)) as pool:
        print(sum(pool.map(fetched, seeds)))
