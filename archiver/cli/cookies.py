"""`archiver cookies`: list, export and clear the cookies of a crawl; and the files of `--load-cookies`."""

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from archiver import humanize
from archiver.cli.directory import check_is_directory
from archiver.cli.options import EACH_LINE, define_command, directory_argument, json_option
from archiver.cli.terminal import result, results, say
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, crawl_lock
from archiver.config.settings import Settings, SettingsByHost, all_values_of
from archiver.errors import ConfigError
from archiver.frontier import totals
from archiver.humanize import iso, printable
from archiver.model import Cookie, ExitCode
from archiver.policy.cookie_files import MAX_FILE, check_bounds, cookies_in, cookies_txt, host_of
from archiver.storage import replace_file

HIDDEN = "…"
LONGEST = 500  # characters of a name or a value in the list


@dataclass(frozen=True, slots=True)
class CookiesRequest:
    """The arguments of `archiver cookies`."""

    domain: str  # "": all
    export: Path | None
    clear: bool
    as_json: bool
    show_values: bool


def load(files: Sequence[str], settings: Settings) -> tuple[Cookie, ...]:
    """Return the cookies in *files*, for a crawl with *settings*; a later file replaces those of an earlier one."""
    if not files:
        return ()
    check_cookies_kept(settings, "--load-cookies")
    now = time.time()
    known = SettingsByHost(settings)
    found: dict[tuple[str, str, str, bool], Cookie] = {}
    for name in files:
        try:
            cookies = list(_read(name, now))
            check_bounds(cookies)
        except ConfigError as error:
            raise ConfigError(f"--load-cookies {printable(name, LONGEST)}: {error}") from None
        usable = [cookie for cookie in cookies if cookie.expires > now]
        expired = len(cookies) - len(usable)
        left_out = f"; {expired} more have expired" if expired else ""
        say(f"archiver: {printable(name, LONGEST)}: {humanize.count(len(usable), 'cookie')}{left_out}")
        found |= {(cookie.domain, cookie.path, cookie.name, cookie.host_only): cookie for cookie in usable}
    check_bounds(found.values())
    _warn_of_headers(known)
    return tuple(found.values())


def check_cookies_kept(settings: Settings, what: str) -> None:
    """Refuse *what* if a crawl with *settings* sends no cookies."""
    if "keep" not in all_values_of(settings, "cookies"):
        raise ConfigError(f"{what} has no effect with --cookies off; leave one of them out")


def _warn_of_headers(known: SettingsByHost) -> None:
    """Warn if a Cookie header of the user replaces all cookies."""
    if any(line.lower().startswith("cookie:") for line in known.common.fetch.header):
        say("archiver: --header 'Cookie: …' replaces all other cookies, also those of --load-cookies")


def _read(name: str, now: float) -> Iterator[Cookie]:
    from archiver.frontier import cookies as cookie_rows
    from archiver.policy.domains import public_suffix

    path = Path(name)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_FILE:
        raise ConfigError(f"larger than {MAX_FILE >> 20} MiB; this cannot be a file of cookies")
    if content.startswith(cookie_rows.MAGIC):
        found, encrypted = cookie_rows.read_database(path, now)
        if encrypted:
            say(f"archiver: {printable(name, LONGEST)}: left out {encrypted} cookies that Chromium has encrypted")
    else:
        found = list(cookies_in(content.decode("latin-1"), now))
    for cookie in found:  # one for a public suffix goes to that host only
        yield cookie._replace(host_only=cookie.host_only or public_suffix(cookie.domain) == cookie.domain)


def cookies(directory: Path, request: CookiesRequest) -> ExitCode:
    """List the cookies in *directory*, or export or clear them."""
    check_is_directory(directory)
    domain = host_of(request.domain) if request.domain else ""
    with totals.open_totals(directory) as db:
        from archiver.frontier.cookies import matching

        found = matching(db, domain)
    if request.export is not None:
        export_cookies(request.export, found)
    if request.clear:
        result(f"{humanize.count(_clear(directory, domain), 'cookie')} deleted")
    elif request.export is None:
        if not found:
            say(f"archiver: {directory} has no cookies{f' of {domain}' if domain else ''}")
        results(_lines(found, request))
    return ExitCode.DONE


def check_export(output: Path) -> None:
    """Refuse *output* if cookies cannot be written to it."""
    if output.is_dir() or not output.absolute().parent.is_dir():
        wrong = "is a directory" if output.is_dir() else "cannot be written: its folder does not exist"
        raise ConfigError(f"--export {output} {wrong}; give the name of a file, such as cookies.txt")
    if str(output) == "-":
        raise ConfigError(
            "--export - would write secrets to the terminal; give the name of a file, such as cookies.txt"
        )


def export_cookies(output: Path, found: Sequence[Cookie]) -> None:
    """Write *found* to the file *output*, which only the user may read."""
    check_export(output)
    replace_file(output, lambda file: file.writelines((cookies_txt(found).encode("latin-1"),)), private=True)
    say(f"archiver: {humanize.count(len(found), 'cookie')} written to {output}, which only you may read")


def _clear(directory: Path, domain: str) -> int:
    import asyncio

    from archiver.frontier.sqlite import SqliteFrontier

    async def cleared() -> int:
        async with await SqliteFrontier.open(Layout(directory).database) as frontier:
            return await frontier.clear_cookies(domain)

    with crawl_lock(NamedCrawl.in_directory(directory)) as running:
        if running:
            raise ConfigError(f"{directory}: a crawl is running and has its cookies in memory; stop it first")
        return asyncio.run(cleared())


def _lines(found: Iterable[Cookie], request: CookiesRequest) -> Iterator[str]:
    for cookie in found:
        value = _text(cookie.value) if request.show_values else HIDDEN
        yield json.dumps(_facts(cookie, value), ensure_ascii=False) if request.as_json else _line(cookie, value)


def _text(latin1: str) -> str:
    """Return the text of a value, whose bytes are most likely UTF-8."""
    data = latin1.encode("latin-1")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return latin1


def _facts(cookie: Cookie, value: str) -> dict[str, Any]:
    return {
        "domain": cookie.domain,
        "subdomains": not cookie.host_only,
        "path": cookie.path,
        "name": _text(cookie.name),
        "value": value,
        "expires": None if math.isinf(cookie.expires) else cookie.expires,
        "secure": cookie.secure,
        "http_only": cookie.http_only,
        "same_site": cookie.same_site or None,
        "loaded": cookie.private,
    }


def _line(cookie: Cookie, value: str) -> str:
    words = [
        "session" if math.isinf(cookie.expires) else f"until {iso(cookie.expires)}",
        *(word for word, given in (("Secure", cookie.secure), ("HttpOnly", cookie.http_only)) if given),
        *([f"SameSite={cookie.same_site}"] if cookie.same_site else []),
        *(["loaded"] if cookie.private else []),
    ]
    place = f"{'' if cookie.host_only else '.'}{cookie.domain}{cookie.path}"
    pair = f"{printable(_text(cookie.name), LONGEST)}={printable(value, LONGEST)}"
    return f"{printable(place, LONGEST)}  {pair}  {', '.join(words)}"


def _run(directory: Path, **given: Any) -> int:
    return cookies(directory, CookiesRequest(**given))


COMMAND = define_command(
    "cookies",
    _run,
    """List, export or clear the cookies of a crawl.

    Prints the domain, path, name, expiry and attributes of each cookie. A dot before the domain means that subdomains
    get it too; "loaded" means that it came from --load-cookies. Values are hidden, because they may be logins. You can
    list and export while the crawl runs.
    """,
    [
        directory_argument(),
        click.Option(
            ["--domain"], default="", metavar="DOMAIN", help="Only cookies of this domain and its subdomains."
        ),
        json_option(EACH_LINE),
        click.Option(["--show-values"], is_flag=True, help="Print the values too."),
        click.Option(
            ["--export"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write them as cookies.txt for curl, wget or --load-cookies. Only you may read the file.",
        ),
        click.Option(["--clear"], is_flag=True, help="Delete them. The crawl must not be running."),
    ],
    ("archiver cookies collections/example.org", "list them"),
    ("archiver cookies collections/example.org --export cookies.txt", "use them with curl -b or wget"),
    ("archiver cookies collections/example.org --clear --domain example.net", "delete those of one domain"),
)
