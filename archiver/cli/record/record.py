"""`archiver record`: run the proxy until Ctrl+C, and show what it has recorded."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from archiver.cli.options import (
    define_command,
    given_settings,
    output_option,
    port_option,
    setting_options,
    verbosity,
    verbosity_options,
)
from archiver.cli.terminal import log_to_stderr, result, say
from archiver.config.option_types import SIZE
from archiver.errors import ConfigError
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.config.settings import Settings
    from archiver.crawl.build import Opening
    from archiver.crawl.record.authority import Authority

PORT = 8088
LARGEST_REQUEST = 100 * 10**6  # bytes of a body
SETTINGS = frozenset(
    (
        *("allow-private", "insecure-secrets", "proxy", "timeout", "max-response-size", "max-unstated-size"),
        *("resolve", "dns-server", "source-address", "ip-version"),
        *("dns-timeout", "connect-timeout", "first-byte-timeout", "max-response-time"),
        *("ca-file", "system-ca", "client-cert", "tls-min", "tls-max"),
        *("min-free-disk", "drain-timeout"),
        *("warc-prefix", "warc-size", "metadata-warc", "digest", "operator", "description"),
        *("dedup", "dedup-min-size", "dedup-from"),
    )
)


def record(output: Path | None, port: int, address: str, **rest: Any) -> ExitCode:
    """Record into *output* what clients ask at *port* of *address*, until Ctrl+C."""
    authority = _authority(rest["ca"], output)
    if rest["print_ca"]:
        result(authority.pem)
        say(f"archiver: the certificate is also in {authority.certificate}; SHA-256 {authority.fingerprint}")
        return ExitCode.DONE
    if output is None:
        raise ConfigError("-o is missing: name the collection to record into, for example: archiver record -o DIR")
    from archiver.cli.directory import make_directory
    from archiver.cli.record.running import listening, run_recording
    from archiver.crawl.record.recording import Clients

    settings, opening = _prepared(output, given_settings(rest))
    level = verbosity(rest)
    if level > 0:
        log_to_stderr(debug=level > 1)
    with listening(address, port) as where:
        new = not output.exists()
        make_directory(output)
        if new:
            output.chmod(0o700)
        clients = Clients(where, authority, rest["max_request_size"])
        return run_recording(output, settings, clients, opening, level)


def _authority(folder: Path | None, output: Path | None) -> "Authority":
    """Return the authority in *folder*, or the user's own. Its key must not be handed on with a collection."""
    from archiver.crawl.record.authority import Authority, authority_folder

    try:
        folder = folder or authority_folder()
    except RuntimeError:
        raise ConfigError("there is no home folder for the certificate authority; name one with --ca") from None
    if output is not None and folder.resolve().is_relative_to(output.resolve()):
        raise ConfigError(f"--ca {folder}: it is inside the collection, which may be handed on; name another folder")
    return Authority(folder)


def _prepared(directory: Path, given: dict[str, Any]) -> tuple["Settings", "Opening"]:
    """Return the settings of the recording in *directory*, and how it is opened. Nothing is written yet."""
    from archiver.cli.config.named_files import check_named_files
    from archiver.cli.config.sources import (
        check_disk_space,
        check_network_choices,
        check_proxies,
        check_secrets,
        with_absolute_paths,
    )
    from archiver.cli.directory import check_free, check_resumable
    from archiver.collection.layout import Layout, holds_crawl
    from archiver.collection.settings_file import settings_text
    from archiver.config import toml
    from archiver.crawl.build import Opening
    from archiver.crawl.record.recording import recording_settings

    read, before, layout = "", {}, Layout(directory)
    there = directory.is_dir() and holds_crawl(directory)
    if there:
        check_resumable(directory)
        read = settings_text(layout.settings)
        before = toml.parse(read, str(layout.settings))
        if not before.get("recording"):
            name = quote(str(directory))
            raise ConfigError(
                f"{directory} holds a crawl, and a recording needs a collection of its own: choose another directory "
                f"with -o; archiver replay {name} DIR serves both as one"
            )
    else:
        check_free(directory)
    settings = recording_settings({**before, **given})
    check_proxies(settings)
    check_network_choices(settings)
    if there:
        check_named_files(directory, settings, given, trusted=False)
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    check_secrets(settings)
    text = toml.render(settings) if given or not there else ""
    return settings, Opening(there and layout.has_frontier(), text, read)


def _size(text: str) -> int:
    try:
        return int(SIZE.parse(text))
    except ConfigError as error:
        raise ConfigError(f"--max-request-size: {error}") from None


COMMAND = define_command(
    "record",
    record,
    """Record what a browser or client asks through a proxy.

    Every request with its response goes into DIR, byte for byte, into the same kind of collection as a crawl makes. The
    response reaches the client while it is stored; its end comes when it is on disk. HTTPS is read with a certificate
    authority of your own, whose key stays on this machine: let the client trust its certificate. robots.txt is not
    asked, and no link is followed: you ask. Press Ctrl+C to end; the same command goes on later.
    """,
    [
        output_option("DIR", "Record into DIR, a new collection or one of archiver record."),
        port_option(PORT),
        click.Option(
            ["--host", "address"],
            default="127.0.0.1",
            metavar="ADDRESS",
            help="Listen on this address of this machine: 127.0.0.1 or ::1. [default: 127.0.0.1]",
        ),
        click.Option(
            ["--ca"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Keep the certificate authority in DIR. [default: ~/.local/share/archiver/record]",
        ),
        click.Option(["--print-ca"], is_flag=True, help="Print the certificate that clients must trust, and end."),
        click.Option(
            ["--max-request-size"],
            type=_size,
            default=str(LARGEST_REQUEST),
            metavar="SIZE",
            help="Refuse a request whose body is longer. [default: 100MB]",
        ),
        *setting_options(SETTINGS),
        *verbosity_options(),
    ],
    ("archiver record -o visit", "then set 127.0.0.1:8088 as the proxy of a browser"),
    ("archiver record -o visit --allow-private wiki.intranet", "record a host of your own network"),
    ("archiver record --print-ca", "the certificate to import into the browser"),
)
