"""The network: one exchange with one server, byte for byte as it crossed the wire.

`tap` lends connections that aiohttp makes, `idle` keeps them between two exchanges, `spool` holds what came, and
`client` makes the exchange.
"""

from archiver.fetch.client import Fetcher

__all__ = ["Fetcher"]
