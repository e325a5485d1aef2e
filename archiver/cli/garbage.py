"""When Python searches for garbage that lies in cycles: seldom, because there is hardly any.

What begins is nearly all kept, and a visit leaves no cycle behind: without any search a crawl of 5,000 pages needs
4 MB more. With Python's own threshold the searches took a tenth of the start, a twentieth of a crawl of one host,
and a fifth of one of ten thousand.
"""

import gc

YOUNG = 20_000  # new objects after which those are searched; Python's own number is 700


def search_seldom() -> None:
    """From now on, for whatever command this is."""
    gc.set_threshold(YOUNG)


def spare_what_is_there() -> None:
    """All that there is now stays until the end, and is not searched again."""
    gc.freeze()
