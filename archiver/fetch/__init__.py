"""The network: one exchange with one server, byte for byte as it crossed the wire.

`tap` lends connections out of aiohttp's pool, `spool` holds what came, `client` makes the exchange.
"""

from archiver.fetch.client import Fetcher

__all__ = ["Fetcher"]
