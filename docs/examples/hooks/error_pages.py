"""Do not download the bodies of error pages: wget-AT's `write_to_warc`. Their heads are stored."""

from archiver import HookExchange


def keep(exchange: HookExchange) -> bool | None:
    """Return False if the body is not wanted; a short one costs less than another connection."""
    if exchange.status >= 400 and (exchange.length is None or exchange.length > 16_000):
        return False
    return None
