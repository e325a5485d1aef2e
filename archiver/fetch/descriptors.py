"""How many files and sockets this process may hold open, as far as fetching has to know."""

import math
import sys


def allowed() -> float:
    """The limit in force; infinity where there is none."""
    if sys.platform == "win32":
        return math.inf
    import resource  # noqa: PLC0415 - not on Windows

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit
