"""Hosts that have reached what one host is allowed: the questions in which they count for less, as SQL."""

from archiver.allowance import Allowance

# Of a host that may be asked any URL will do, of another one only what leads to a robots.txt. Given: bounds, now, now.
HAS_DUE = """
CASE WHEN hosts.spent < ? AND hosts.received < ? AND NOT hosts.paused
THEN EXISTS (SELECT 1 FROM urls WHERE urls.host = hosts.id AND urls.state = 'waiting' AND urls.due <= ?)
ELSE EXISTS (SELECT 1 FROM urls WHERE urls.host = hosts.id AND urls.state = 'waiting' AND urls.due <= ?
             AND urls.priority < 0) END
"""
REACHED = """
WITH bounds (urls, size) AS (VALUES (?, ?))
SELECT spent >= bounds.urls AS by_urls, count(*), sum(waiting) FROM hosts, bounds
WHERE waiting > 0 AND (spent >= bounds.urls OR received >= bounds.size) GROUP BY by_urls ORDER BY by_urls DESC
"""  # given: bounds


def words(allowance: Allowance, by_urls: int, hosts: int, waiting: int) -> str:
    """One row of the answer for a person."""
    limit = f"--max-urls-per-host {allowance.urls}" if by_urls else f"--max-bytes-per-host {allowance.size}"
    urls = f"{waiting} URL{'s wait' if waiting != 1 else ' waits'}"
    return f"{limit} is reached by {hosts} host{'s' if hosts != 1 else ''}, for which {urls}"
