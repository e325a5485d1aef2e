"""`archiver record`: run the proxy until Ctrl+C, and show what it has recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archiver.cli.config.setting_options import profile_option, setting_options
from archiver.cli.options import config_option, define_command, output_option, port_option, verbosity, verbosity_options
from archiver.cli.record.settings import APPLICABLE, OPTIONS
from archiver.cli.terminal import log_to_stderr, result, say
from archiver.cli.watch.beside import served, watch_options, watch_request
from archiver.cli.watch.metrics import metrics_options, metrics_request, metrics_served
from archiver.config.option_types import SIZE
from archiver.errors import ConfigError
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.crawl.record.authority import Authority

PORT = 8088
LARGEST_REQUEST = 100 * 10**6  # bytes of a body


def record(output: Path | None, port: int, address: str, **rest: Any) -> ExitCode:
    """Record into *output* what clients ask at *port* of *address*, until Ctrl+C."""
    authority = _authority(rest["ca"], output)
    if rest["print_ca"]:
        result(authority.pem)
        say(f"archiver: the certificate is also in {authority.certificate}; SHA-256 {authority.fingerprint}")
        return ExitCode.DONE
    if output is None:
        raise ConfigError("-o is missing: name the collection to record into, for example: archiver record -o DIR")
    from archiver.cli.config.sources import given_by_user
    from archiver.cli.directory import make_directory
    from archiver.cli.record.logins import RecordingLogins
    from archiver.cli.record.prepare import prepare_recording
    from archiver.cli.record.running import listening, run_recording
    from archiver.crawl.record.recording import Clients
    from archiver.tools.watch.users import read_users

    watch, metrics = watch_request(rest), metrics_request(rest)
    prepared = prepare_recording(output, given_by_user(rest, APPLICABLE), is_named=_is_named)
    level = verbosity(rest)
    if level > 0:
        log_to_stderr(debug=level > 1)
    users = None if rest["users"] is None else read_users(rest["users"])
    logins = None if users is None else RecordingLogins(users)
    with listening(address, port, users) as where:
        new = not output.exists()
        make_directory(output)
        if new:
            output.chmod(0o700)
        clients = Clients(where, authority, rest["max_request_size"], rest["websockets"] == "pass", logins)
        with served(output, watch), metrics_served(output, metrics, quiet=level < 0):
            return run_recording(output, prepared, clients, level)


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


def _is_named(option: str) -> bool:
    """Return True if *option* was given on the command line."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _size(text: str) -> int:
    try:
        return int(SIZE.parse(text))
    except ConfigError as error:
        raise ConfigError(f"--max-request-size: {error}") from None


COMMAND = define_command(
    "record",
    record,
    """Record what a browser or client requests through a proxy.

    Stores every request and its response in DIR, byte for byte, in the same kind of collection as a crawl. The client
    receives a response while it is stored, but its end only when it is on disk. HTTPS is read with your own certificate
    authority, whose key stays on this machine: let the client trust its certificate. robots.txt is not requested, and
    no link is followed. Press Ctrl+C to end; the same command continues later.
    """,
    [
        output_option("DIR", "Record into DIR, a new collection or one of archiver record."),
        port_option(PORT),
        click.Option(
            ["--listen", "address"],
            default="127.0.0.1",
            metavar="ADDRESS",
            help="Listen on this address. One that other machines can reach needs --users. [default: 127.0.0.1]",
        ),
        click.Option(
            ["--users"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Ask for a name and a password in this file, of a user with the role operator: see archiver watch "
            "--add-user.",
        ),
        click.Option(
            ["--ca"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Keep the certificate authority in DIR. [default: ~/.local/share/archiver/record]",
        ),
        click.Option(["--print-ca"], is_flag=True, help="Print the certificate that clients must trust, and exit."),
        click.Option(
            ["--max-request-size"],
            type=_size,
            default=str(LARGEST_REQUEST),
            metavar="SIZE",
            help="Refuse a request whose body is longer. [default: 100MB]",
        ),
        click.Option(
            ["--websockets"],
            type=click.Choice(["refuse", "pass"]),
            default="refuse",
            help="Refuse WebSocket connections, or pass them on: then only their handshakes are recorded. "
            "[default: refuse]",
        ),
        config_option("Read the settings of a new recording from a file such as crawl.toml. Options override it."),
        profile_option(),
        *setting_options(OPTIONS),
        *verbosity_options(),
        *watch_options(),
        *metrics_options(),
    ],
    ("archiver record -o visit", "then set 127.0.0.1:8088 as the proxy of a browser"),
    ("archiver record -o visit --allow-private wiki.intranet", "record a host of your own network"),
    ("archiver record -o visit --watch 8085", "see in another browser what is recorded"),
    ("archiver record --print-ca", "the certificate to import into the browser"),
)
