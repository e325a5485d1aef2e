"""What is wrong with a seed, in words: for the verdict, and the tables and pages of the report."""

from archiver.frontier.totals import SeedAccount
from archiver.humanize import printable
from archiver.policy.scope import OUTSIDE


def has_failed(seed: SeedAccount) -> bool:
    """Return True if *seed* has been asked for and gave no usable answer."""
    return seed.state in {"failed", "excluded"} or (seed.state == "archived" and not _is_good(seed.status))


def _is_good(status: int) -> bool:
    return 200 <= status < 400 or status == 0  # 0 is a response without a status line


def seed_problem(seed: SeedAccount) -> str:
    """Return what is wrong with a seed; empty if nothing is."""
    if seed.state == "failed":
        return f"failed: {_why(seed)}"
    if seed.state == "excluded":
        return f"is excluded: {_why(seed)}"
    if seed.refused:
        return f"redirects out of scope, to {printable(seed.refused)} ({printable(seed.rule)})"
    if seed.state == "archived" and seed.note.endswith(OUTSIDE):
        return f"{printable(seed.note)}; only its in-scope links are followed"
    if seed.state == "archived" and not _is_good(seed.status):
        return f"returned status {seed.status}"
    return ""


def _why(seed: SeedAccount) -> str:
    reason = seed.failure or (f"status {seed.status}" if seed.status else "")
    repeated = reason and seed.note.startswith(reason)  # a note may begin with the reason's own word
    return printable(seed.note if repeated else ", ".join(filter(None, (reason, seed.note))))
