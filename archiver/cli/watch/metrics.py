"""The options of a crawl that serve its metrics while it runs. They are no settings, so no crawl.toml opens a port."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archiver.cli.terminal import say
from archiver.errors import ConfigError

if TYPE_CHECKING:
    from archiver.tools.metrics.server import MetricsAddress


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """Where to serve the metrics, and who may read them."""

    address: "MetricsAddress"
    token: str = field(default="", repr=False)


def metrics_options() -> list[click.Parameter]:
    """Return the options of a command that runs a crawl."""
    return [
        click.Option(
            ["--metrics"],
            metavar="[IP:]PORT",
            help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics while the crawl runs.",
        ),
        click.Option(
            ["--metrics-token"],
            metavar="SECRET",
            help="Answer only clients that send this bearer token. An IP that other machines can reach needs one. "
            "Write where it is: env:NAME, file:/PATH or keyring:SERVICE/USER.",
        ),
    ]


def metrics_request(given: Mapping[str, Any]) -> MetricsRequest | None:
    """Return what the options ask for. Raises `ConfigError`, also if the port is taken: nothing has happened yet."""
    text, source = given["metrics"], given["metrics_token"]
    if text is None:
        if source is not None:
            raise ConfigError("--metrics-token: give --metrics PORT too")
        return None
    from archiver.tools.metrics.server import listening, metrics_address

    address = metrics_address(text)
    if source is None and not address.is_loopback:
        raise ConfigError(
            f"--metrics {address}: other machines could read the metrics; give --metrics-token env:NAME or file:/PATH "
            "too, or only a port"
        )
    listening(address).close()
    return MetricsRequest(address, "" if source is None else _secret(source))


def _secret(source: str) -> str:
    from archiver.config.secrets import secret_source
    from archiver.crawl.secrets import read_source

    try:
        return read_source(secret_source(source))
    except ConfigError as error:
        raise ConfigError(f"--metrics-token: {error}") from None


@contextmanager
def metrics_served(directory: Path, request: MetricsRequest | None, *, quiet: bool) -> Iterator[None]:
    """Serve the metrics of the crawl in *directory* while the block runs, if there is a *request*, and print where."""
    if request is None:
        yield
        return
    from archiver.tools.metrics.server import metrics_server

    with metrics_server(directory, request.address, request.token) as url:
        if not quiet:
            say(f"archiver: metrics at {url}")
        yield
