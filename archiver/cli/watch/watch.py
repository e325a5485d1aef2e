"""`archiver watch`: the control room, a page in a browser that shows crawls and changes them."""

import getpass
import logging
import secrets
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from archiver.cli.explain import explained
from archiver.cli.explain.text import explanation_lines
from archiver.cli.options import define_command, place_of, port_option
from archiver.cli.terminal import complain, log_to_stderr, result, say
from archiver.collection.named_crawl import NamedCrawl
from archiver.errors import ConfigError
from archiver.model import ExitCode
from archiver.tools.watch import users
from archiver.tools.watch.users import Role

PORT = 8085


def watch(places: Sequence[Path | str], **chosen: Any) -> ExitCode:
    """Serve the page of the crawls at *places* until Ctrl+C."""
    name = chosen.pop("add_user")
    if name is not None:
        return add_user(chosen["users"], name, Role(chosen["role"]))
    if not places:
        raise ConfigError("no crawl: name one, or a folder of them; for example: archiver watch collections")
    from archiver.tools.watch import crawls, serve

    logging.getLogger("archiver").setLevel(logging.WARNING)
    log_to_stderr(debug=False)
    certificate, key = chosen["cert"], chosen["key"]
    if (certificate is None) != (key is None):
        raise ConfigError("--cert and --key are used together")
    listening = serve.Listening(
        chosen["listen"],
        chosen["port"],
        users.read_users(chosen["users"]) if chosen["users"] is not None else None,
        None if certificate is None else (certificate, key),
        chosen["behind_proxy"] or "",
        chosen["replay"] or "",
        chosen["with_parent"],
    )

    def started(address: str) -> None:
        result(address)
        end = "" if chosen["with_parent"] else "; press Ctrl+C to stop"
        say(f"archiver: watch {' and '.join(map(str, places))} at {address}{end}")
        if chosen["opened"] and not webbrowser.open(address):
            complain(f"no browser found; open {address} yourself")

    shown = crawls.places(places, may_be_new=chosen["with_parent"])
    serve.run(shown, listening, _explanation, started)
    return ExitCode.DONE


def _explanation(crawl: NamedCrawl, url: str) -> list[str]:
    found = explained(crawl, url)
    other = (f"{'':<9} not in the crawl, but {found.other} is",) if found.other else ()
    return [*explanation_lines(found), *other]


def add_user(path: Path | None, name: str, role: Role) -> ExitCode:
    """Add the user *name* to the file at *path*, with a password from the terminal or stdin."""
    if path is None:
        raise ConfigError("--add-user needs --users FILE: the file of users")
    if role is Role.METRICS:
        secret = secrets.token_urlsafe(32)
        users.add_user(path, users.new_user(name, role, secret))
        result(secret)
        say(f"archiver: {name} may read /metrics with this token; it is not stored, so copy it now")
        return ExitCode.DONE
    users.add_user(path, users.new_user(name, role, _password(name)))
    say(f"archiver: {name} is in {path} as {role}; a server that runs reads it when it starts again")
    return ExitCode.DONE


def _password(name: str) -> str:
    """Return the password of *name*: typed twice, or the first line of stdin."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(users.LONGEST_PASSWORD + 2).rstrip("\r\n")
    first = getpass.getpass(f"Password for {name}: ")
    if getpass.getpass("Again: ") != first:
        raise ConfigError("the two passwords differ; try again")
    return first


def _file(flag: str, text: str) -> click.Option:
    return click.Option([flag], type=click.Path(path_type=Path), metavar="FILE", help=text)


COMMAND = define_command(
    "watch",
    watch,
    """Show crawls in a browser, and change them while they run.

    Serves a page with the stream of URLs, the hosts and what each waits for, the queue, rules, problems, files and
    orders. DIR is a crawl that runs, is stopped or is done; a FOLDER shows all crawls in it; an ADDRESS shows one in
    PostgreSQL. The page can do what commands of archiver do, and no more. Ends with Ctrl+C; crawls go on.

    Only this machine can reach the page, and only with the address that is printed: it holds a random token. For other
    machines, give --listen and --users.
    """,
    [
        click.Argument(["places"], nargs=-1, metavar="DIR|FOLDER|ADDRESS...", type=place_of),
        port_option(PORT),
        click.Option(
            ["--listen"],
            default="127.0.0.1",
            metavar="ADDRESS",
            help="Listen on this address. One that other machines can reach needs --users. [default: 127.0.0.1]",
        ),
        _file("--users", "Ask for a name and a password of this file."),
        _file("--cert", "Serve over TLS with this certificate (PEM)."),
        _file("--key", "The key of the certificate (PEM)."),
        click.Option(
            ["--behind-proxy"],
            metavar="URL",
            help="A proxy serves the page at URL, such as https://watch.example.org.",
        ),
        click.Option(
            ["--replay"],
            metavar="URL",
            help="Link archived URLs to this replay: what archiver replay prints, up to the date.",
        ),
        click.Option(["--open", "opened"], is_flag=True, help="Open the page in the browser."),
        click.Option(
            ["--add-user"], metavar="NAME", help="Add a person to the file of --users, ask for a password, and end."
        ),
        click.Option(
            ["--role"],
            type=click.Choice([role.value for role in Role]),
            default=Role.OPERATOR.value,
            help="What --add-user allows: to look, to give orders too, or only to read /metrics. [default: operator]",
        ),
        click.Option(
            ["--with-parent"],
            is_flag=True,
            help="For a program that starts this one: end with stdin, and take DIR as a crawl that is yet to begin.",
        ),
    ],
    ("archiver watch collections/example.org", "show one crawl at http://127.0.0.1:8085/"),
    ("archiver watch collections --open", "show all crawls of a folder, and open the browser"),
    ("archiver watch collections --users watch.users --add-user ann", "let Ann log in, with a password that you type"),
    (
        "archiver watch collections --listen 192.0.2.7 --users watch.users --cert cert.pem --key key.pem",
        "let other machines look, over TLS",
    ),
)
