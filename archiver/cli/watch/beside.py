"""The control room beside a crawl: `archiver crawl --watch PORT` starts it as a process of its own.

It reads what any other process can read, so its end, whatever the reason, changes nothing for the crawl. It ends when
the pipe to its stdin closes: with the crawl, also with one that is killed.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from archiver.errors import ConfigError

END_TIME = 5.0  # seconds that it may take to end


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Where the page of a crawl is served."""

    address: str
    port: int
    users: Path | None

    @classmethod
    def parse(cls, text: str, users: Path | None) -> "WatchRequest":
        """Return the request that *text* names: [HOST:]PORT. Raises `ConfigError` if it cannot be served there."""
        from archiver.tools.watch.serve import Listening, check_listening
        from archiver.tools.watch.users import read_users

        host, _, number = text.rpartition(":")
        address = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not (number.isascii() and number.isdigit() and int(number) < 1 << 16):
            raise ConfigError(f"--watch {text}: write a port, or an address and a port: 8085 or 192.0.2.7:8085")
        known = read_users(users) if users is not None else None
        check_listening(Listening(address, int(number), known))
        return cls(address, int(number), users)

    def words(self, directory: Path) -> tuple[str, ...]:
        """Return the command line of archiver that serves the crawl in *directory*."""
        users = () if self.users is None else ("--users", str(self.users))
        where = ("--listen", self.address, "--port", str(self.port))
        return ("watch", *where, *users, "--with-parent", "--", str(directory))


@contextmanager
def served(directory: Path, request: WatchRequest | None) -> Iterator[None]:
    """Serve the page of the crawl in *directory* while the block runs; nothing without a *request*."""
    if request is None:
        yield
        return
    from archiver.tools.watch.starting import own_command

    process = subprocess.Popen(  # noqa: S603 - our own program
        own_command(*request.words(directory)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C is not meant for it
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_TIME)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def watch_options() -> list[click.Parameter]:
    """Return the options of a command that runs a crawl and can serve its page."""
    return [
        click.Option(
            ["--watch"],
            metavar="[ADDRESS:]PORT",
            help="Serve the page of archiver watch while the crawl runs; print its address.",
        ),
        click.Option(
            ["--watch-users"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Who may see that page: see archiver watch --users. Needed for an address that others can reach.",
        ),
    ]


def watch_request(given: dict[str, object]) -> WatchRequest | None:
    """Return what the options ask for; None without --watch."""
    text, users = given["watch"], given["watch_users"]
    assert users is None or isinstance(users, Path)
    if text is None:
        if users is not None:
            raise ConfigError("--watch-users is used with --watch")
        return None
    return WatchRequest.parse(str(text), users)
