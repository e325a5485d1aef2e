"""`archiver login`: log in with a browser window, and give its cookies to a crawl."""

import math
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click

from archiver import humanize, url
from archiver.cli.cookies import check_cookies_kept, check_export, export_cookies
from archiver.cli.directory import check_is_directory, check_resumable
from archiver.cli.options import define_command
from archiver.cli.terminal import result, say
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, crawl_lock
from archiver.collection.settings_file import read_settings
from archiver.config.seeds import lacks_scheme, seed
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.humanize import printable
from archiver.model import Cookie, ExitCode
from archiver.policy.cookie_files import brought, check_bounds
from archiver.policy.set_cookie import SameSite

LONGEST = 500  # characters of a name or an address in a message


def login(place: str, address: str, browser: str, export: Path | None, *, all_sites: bool) -> ExitCode:
    """Let the user log in at *address*, and save the cookies of the browser in *export* or in the crawl *place*."""
    if export is not None:
        check_export(export)  # before the user logs in
    if not lacks_scheme(place):
        if export is None:
            raise ConfigError(
                f"{place} is not the directory of a crawl; to log in before the first crawl: "
                f"archiver login {quote(place)} --export cookies.txt, then archiver crawl --load-cookies cookies.txt"
            )
        page = seed(place)
        export_cookies(export, _from_browser(browser, page, () if all_sites else (page,)))
        return ExitCode.DONE
    directory = Path(place)
    check_is_directory(directory)
    check_resumable(directory)
    settings = with_values(Settings(), read_settings(Layout(directory).settings))
    check_cookies_kept(settings, "archiver login")
    rules = settings.fetch.login
    known = (*(rule.page for rule in rules), *settings.seeds)
    if not address and not known:
        raise ConfigError(f"{Layout(directory).settings}: no seeds; give a URL: archiver login {quote(place)} URL")
    page = seed(address) if address else known[0]
    sites = () if all_sites else (page, *known)
    with crawl_lock(NamedCrawl.in_directory(directory)) as running:
        if running:
            raise ConfigError(f"{directory}: the crawl is running; stop it first, with Ctrl+C")
        if not Layout(directory).database.exists():
            raise ConfigError(f"{directory}: the crawl has not started; run archiver resume first")
        found = _from_browser(browser, page, sites)
        if export is not None:
            export_cookies(export, found)
        else:
            _save(directory, found)
            result(f"{humanize.count(len(found), 'cookie')} taken over; to continue: archiver resume {quote(place)}")
    return ExitCode.DONE


def _save(directory: Path, found: tuple[Cookie, ...]) -> None:
    import asyncio

    from archiver.frontier.sqlite import SqliteFrontier
    from archiver.storage import close_to_others

    layout = Layout(directory)

    async def saved() -> None:
        async with await SqliteFrontier.open(layout.database) as frontier:
            close_to_others(*layout.database_files())
            await frontier.bring_cookies(found, ())

    asyncio.run(saved())


def _from_browser(command: str, page: str, sites: Iterable[str]) -> tuple[Cookie, ...]:
    """Return the cookies of the user's browser after a login at *page*: those of *sites* (URLs), or of all."""
    from archiver.browser.chromium import find
    from archiver.browser.window import BrowserWindow

    program = find(command)
    domains = {_registered(url.host(each)) for each in sites}
    places = printable(", ".join(sorted(domains)) or "any site", LONGEST)
    found: list[Cookie] = []
    with BrowserWindow(program, page) as window:
        say(f"archiver: log in at {printable(page, LONGEST)} in the browser window; then close it, or press Enter here")
        for given in window.cookies(None if sys.stdin.closed else sys.stdin):
            before, found = len(found), _of_sites(given, domains)
            if len(found) != before:
                say(f"archiver: the browser has {humanize.count(len(found), 'cookie')} of {places}")
    if others := sorted({_registered(each["domain"].lstrip(".")) for each in given} - domains if domains else ()):
        names = printable(", ".join(others), LONGEST)
        say(f"archiver: left out the cookies of {names}; --all-sites takes them too")
    if not found:
        raise ConfigError(f"the browser has no cookies of {places}")
    check_bounds(found)
    return tuple(found)


def _of_sites(given: Sequence[dict[str, Any]], domains: Collection[str]) -> list[Cookie]:
    """Return the cookies *given*, if they are of *domains*; an empty set means all."""
    now = time.time()
    return [
        _cookie(each, now)
        for each in given
        if "partitionKey" not in each  # those are for parts of pages of other sites
        and (not domains or _registered(each["domain"].lstrip(".")) in domains)
    ]


def _registered(host: str) -> str:
    from archiver.crawl.rules import owners

    return owners()(host)


def _cookie(given: dict[str, Any], now: float) -> Cookie:
    """Return the cookie that *given* means, a `Network.Cookie` of the DevTools protocol."""
    name, value = (str(given[key]).encode().decode("latin-1") for key in ("name", "value"))
    known = {str(each): each for each in SameSite}
    cookie = brought(
        (given["domain"], given["path"]),
        (name, value),
        math.inf if given.get("session") else float(given["expires"]),
        now,
        host_only=not given["domain"].startswith("."),
        secure=given["secure"],
    )
    same_site = known.get(given.get("sameSite", ""), SameSite.DEFAULT)
    return cookie._replace(http_only=given["httpOnly"], same_site=same_site)


def _run(place: str, address: str, browser: str, export: Path | None, *, all_sites: bool) -> int:
    return login(place, address, browser, export, all_sites=all_sites)


COMMAND = define_command(
    "login",
    _run,
    """Log in to a site with a browser window, and give the cookies to a crawl.

    Opens Chromium, Chrome, Edge or Brave with an empty profile at URL: by default at the login page in crawl.toml, or
    else at the first seed of the crawl in DIR. Log in there; a second factor works too. Then close the window, or press
    Enter in the terminal: the cookies of the crawl's sites are saved in DIR/crawl.db, and the profile is deleted.

    Before the first crawl, give the URL instead of DIR, and use --export.
    """,
    [
        click.Argument(["place"], metavar="DIR"),
        click.Argument(["address"], default="", metavar="[URL]"),
        click.Option(
            ["--browser"],
            default="",
            metavar="COMMAND",
            help="Start this browser, for example 'google-chrome --proxy-server=localhost:8080'.",
        ),
        click.Option(
            ["--export"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write the cookies as cookies.txt, not to the crawl. Only you may read the file.",
        ),
        click.Option(["--all-sites"], is_flag=True, help="Save the cookies of all sites, not only of the crawl's."),
    ],
    ("archiver login collections/example.org", "log in, then archiver resume"),
    ("archiver login collections/example.org https://sso.example.net/", "log in on another page"),
    ("archiver login https://example.org/login --export cookies.txt", "log in before the first crawl"),
)
