"""Threads whose work may take longer: hashing and writing what is large, beside pages that somebody waits for.

A scheduler that is fair to threads lets one that computes go on for milliseconds while one that was just woken waits,
and a page wakes a dozen, one after the other.
"""

import os
import sys
import threading

NICE = 5  # steps behind the others: a quarter of a processor that all want, all of one that nobody else wants


def stand_back() -> None:
    """The calling thread lets the others of this process go first. Only Linux has priorities of single threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE)
