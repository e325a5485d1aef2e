"""The answers of the name servers, as far as the guard lets a host be asked at them."""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from archiver.fetch.guard import Guard


class GuardedResolver(AbstractResolver):
    """Another resolver, whose answers the guard has seen: nobody connects to the others."""

    def __init__(self, guard: Guard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of *host* at which it may be asked."""
        return self._guard.choose(host, await self._resolver.resolve(host, port, family))

    async def close(self) -> None:
        """Close the other one."""
        await self._resolver.close()
