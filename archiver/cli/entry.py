"""The command group `archiver`: finds a command by its name, and turns exceptions into a message and an exit code.

Each command is in a module that is imported only when the command is used: `archiver --help` imports none of them.
For a mistyped command line the message suggests the right command or option. People come from wget, HTTrack,
browsertrix, Heritrix and grab-site and type the names that they know.
"""

import errno
import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import NoReturn

import click

from archiver import __version__
from archiver.cli.options import CONTEXT, write_examples
from archiver.cli.terminal import complain, without_secrets
from archiver.errors import ArchiveError, ConfigError
from archiver.model import ExitCode

# The first line of each command's help, in the order in which people need them. A test compares the two.
COMMANDS = {
    "crawl": "Archive one or more sites, starting from seed URLs.",
    "resume": "Continue a crawl after Ctrl+C, a crash or a limit.",
    "join": "Crawl with the other machines of a crawl in PostgreSQL.",
    "recrawl": "Crawl a site again into the same collection, so that you can replay each date.",
    "record": "Record what a browser or client requests through a proxy.",
    "schedule": "Crawl a collection again every day, week or month.",
    "status": "Show the progress of a crawl.",
    "report": "Report the results of a crawl.",
    "explain": "Explain what happened to a URL and why.",
    "urls": "List the URLs of a crawl.",
    "retry": "Queue failed URLs again.",
    "forget": "Write off a machine that does not come back.",
    "add": "Add seeds to a crawl.",
    "pause": "Pause a crawl until archiver go.",
    "go": "Continue a paused crawl.",
    "stop": "Stop a running crawl, as Ctrl+C does.",
    "set": "Change settings of a crawl, even while it runs.",
    "config": "Show the settings of a crawl, and where each comes from.",
    "exclude": "Exclude URLs from a crawl, including queued ones.",
    "include": "Include URLs that the rules of a crawl leave out.",
    "block": "Send no more requests to a host.",
    "unblock": "Allow requests to a blocked host again.",
    "first": "Fetch some waiting URLs before the others.",
    "orders": "List the orders given to a crawl.",
    "note": "Write a note for colleagues into the list of orders.",
    "watch": "Show crawls in a browser, and change them while they run.",
    "events": "List the events of a crawl, and who received them.",
    "cookies": "List, export or clear the cookies of a crawl.",
    "login": "Log in to a site with a browser window, and give the cookies to a crawl.",
    "verify": "Check archives and report every fault.",
    "ls": "List captures.",
    "get": "Print a capture.",
    "replay": "Serve archives with pywb on this machine.",
    "look": "Show archived pages in a browser, and name what their replay would lack.",
    "pack": "Pack a collection into a WACZ file.",
    "export": "Write an archive as files that a browser opens from disk.",
    "import": "Import WARC, ARC and WACZ files into a collection.",
    "adopt": "Continue a crawl that another program began.",
    "index": "Rebuild the index from the WARC files.",
    "rebuild": "Rebuild a lost or damaged database from the WARC files.",
    "prune": "Delete the WARC files of earlier crawls that nothing refers to any more.",
    "store": "Send a collection to an object store, check what is there, or fetch it back.",
}
# Module and name of the commands that are not COMMAND in a module of their name.
PLACES = {
    "import": ("import_", "COMMAND"),
    "resume": ("crawl", "RESUME"),
    "forget": ("retry", "FORGET"),
    "join": ("crawl", "JOIN"),
    "recrawl": ("crawl", "RECRAWL"),
    "rebuild": ("index", "REBUILD"),
    "config": ("config.config", "COMMAND"),
    "pause": ("orders.pause", "COMMAND"),
    "go": ("orders.pause", "GO"),
    "stop": ("orders.stop", "COMMAND"),
    "set": ("orders.set", "COMMAND"),
    "exclude": ("orders.exclude", "COMMAND"),
    "include": ("orders.exclude", "INCLUDE"),
    "first": ("orders.exclude", "FIRST"),
    "orders": ("orders.orders", "COMMAND"),
    "note": ("orders.orders", "NOTE"),
    "block": ("orders.block", "COMMAND"),
    "unblock": ("orders.block", "UNBLOCK"),
    "watch": ("watch.watch", "COMMAND"),
    "record": ("record.record", "COMMAND"),
    "events": ("events.events", "COMMAND"),
}
GC_THRESHOLD = 20_000  # new objects per collection, in place of 700: crawl objects live long and form hardly any cycles

# Errors of the operating system that the user can fix; any other one is a bug.
USER_ERRORS = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOSPC, errno.EDQUOT))


class CommandGroup(click.Group):
    """The command `archiver`. It imports a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order in which people need them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command *cmd_name*, None if there is none."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, name = PLACES.get(cmd_name, (cmd_name, "COMMAND"))
        command: click.Command = getattr(import_module(f"archiver.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the one that was probably meant."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS:
            raise ConfigError(unknown_command(name))
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(
            (
                ("archiver crawl https://example.org/", "archive a site into collections/example.org"),
                ("archiver resume collections/example.org", "continue after Ctrl+C, a crash or a limit"),
                ("archiver replay collections/example.org", "view the archive in a browser"),
            ),
            formatter,
        )


@click.group(cls=CommandGroup, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="archiver", message="%(prog)s %(version)s")
def archiver() -> None:
    """Archive web sites byte for byte into WARC files that you can replay.

    You can stop or kill a crawl at any time and continue it later. DIR is the directory of a crawl; ADDRESS is that of
    its queue in PostgreSQL, postgresql://HOST/NAME. Results go to stdout, messages to stderr.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line *arguments* and return the exit code. Only a bug raises."""
    try:
        code = archiver.main(arguments, prog_name="archiver", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except click.UsageError as error:
        complain(usage_message(error))
        return ExitCode.USAGE
    except click.ClickException as error:
        complain(error.format_message())
        return ExitCode.USAGE
    except ConfigError as error:
        complain(str(error))
        return ExitCode.USAGE
    except ArchiveError as error:
        complain(str(error))
        return ExitCode.STORAGE
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return ExitCode.STOPPED
    except OSError as error:  # of a path that was checked before anything was written, or of the help text
        if error.errno not in USER_ERRORS:
            raise
        complain(f"{error.filename or 'stdout cannot be written'}: {error.strerror}")
        return ExitCode.USAGE if error.errno == errno.ENAMETOOLONG else ExitCode.STORAGE
    return int(code or ExitCode.DONE)


def main() -> NoReturn:
    """Run the command `archiver` and exit."""
    if "_ARCHIVER_COMPLETE" in os.environ:
        import_module("archiver.cli.completion").register()
    _end_in_order()
    gc.set_threshold(GC_THRESHOLD)  # with Python's own, the searches took a fifth of a crawl of ten thousand hosts
    _repair_streams()
    if not sys.warnoptions:  # Python 3.12 warns when it compiles some libraries; users cannot fix them
        warnings.simplefilter("ignore", SyntaxWarning)
    sys.exit(run())


def _end_in_order() -> None:
    """Let SIGTERM and a closed terminal end a command like Ctrl+C, so that temporary files are removed.

    A crawl has its own handlers. `nohup` ignores the closed terminal, and that stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def _repair_streams() -> None:
    """Replace closed streams (`2>&-`) by the null device, and escape what the terminal's encoding lacks.

    In this order, each gets its own descriptor again. Otherwise a socket would get it, which uvloop does not allow.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - never closed: it is the stream
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def usage_message(error: click.UsageError) -> str:
    """Return the message for a command line that click refused."""
    if error.ctx is None:
        return without_secrets(error.format_message())
    if isinstance(error, click.NoSuchOption):
        params = error.ctx.command.get_params(error.ctx)
        return unknown_option(error.option_name, [name for one in params for name in (*one.opts, *one.secondary_opts)])
    if isinstance(error, click.MissingParameter):
        message = " ".join(error.format_message().split())  # click writes each choice on a line
        return f"{message.rstrip('.')}. Try '{error.ctx.command_path} --help'."
    return without_secrets(error.format_message())


def unknown_option(name: str, known: Iterable[str]) -> str:
    """Return the message for the option *name* of a command that has only the options *known*."""
    options = [each for each in known if each.startswith("--")]
    hint = _from_other_program(name, options)
    if not hint:
        close = (
            _sharing_prefix(name, options) or get_close_matches(name, options, 1, 0.6) or _sharing_word(name, options)
        )
        hint = f"did you mean {' or '.join(close)}?" if close else ""
    return f"there is no option {name}" + (f"; {hint}" if hint else "")


def unknown_command(name: str) -> str:
    """Return the message for the word *name* where a command is expected."""
    if name and ("/" in name or "." in name or name.startswith("localhost")):
        from archiver.config.seeds import lacks_scheme, seed

        try:
            address = seed(name)
        except ConfigError:
            address = ""
        if address and not (lacks_scheme(name) and name.startswith((".", "/"))):
            return f"there is no command {name}; to archive it: archiver crawl {quote(address)}"
    close = [ours for ours, theirs in COMMAND_SYNONYMS.items() if name.lower() in theirs]
    close = close or get_close_matches(name, COMMANDS, 1, 0.5)
    hint = f"did you mean {close[0]}?" if close else "archiver --help lists the commands"
    return f"there is no command {name}; {hint}"


def _from_other_program(name: str, options: list[str]) -> str:
    bare = name.lstrip("-").lower()
    for spelled in (bare, bare.replace("_", "-"), bare.replace("-", "").replace("_", "")):
        hint = OTHER_OPTIONS.get(spelled)
        if isinstance(hint, str):
            return hint
        for ours in hint or ():
            if f"--{ours}" in options:
                return f"use --{ours}"
    return ""


def _sharing_prefix(name: str, options: list[str]) -> list[str]:
    """Return the longest option that *name* starts with, or the shortest that starts with *name*."""
    shorter = sorted((each for each in options if name.startswith(each)), key=len)
    longer = sorted((each for each in options if len(name) > 4 and each.startswith(name)), key=len)
    return shorter[-1:] or longer[:1]


def _sharing_word(name: str, options: list[str]) -> list[str]:
    """Return the options that contain a whole word of *name*."""
    words = {word for word in name.strip("-").lower().split("-") if len(word) > 3}
    return [each for each in options if words & set(each.strip("-").split("-"))][:2]


COMMAND_SYNONYMS = {
    "replay": ("serve", "view", "open", "browse", "wayback"),
    "pack": ("wacz", "zip"),
    "get": ("cat", "show"),
    "crawl": ("archive", "start", "mirror", "fetch", "download"),
    "resume": ("continue", "go-on"),
}
AUTOMATIC = "not needed: every crawl does that"
# Options of other programs, without hyphens and in lower case: our options, the first one that the command has, or a
# sentence.
OTHER_OPTIONS: dict[str, tuple[str, ...] | str] = {
    # how far
    **dict.fromkeys(("level", "l", "depth", "recursion-level", "depthlimit"), ("max-depth",)),
    **dict.fromkeys(
        ("ext-depth", "extrahops", "max-trans-hops", "maxtranshops", "offsite-links"), ("extra-hops", "scope")
    ),
    **dict.fromkeys(("maxhops", "max-link-hops", "page-requisites-level"), ("max-hops",)),
    **dict.fromkeys(("scopetype", "domains", "no-offsite-links", "near", "stay-on-same-domain", "1"), ("scope",)),
    **dict.fromkeys(("no-parent", "np", "can-go-down", "stay-on-same-dir", "d"), ("scope",)),
    **dict.fromkeys(("span-hosts", "h", "go-everywhere"), ("extra-hops", "scope")),
    **dict.fromkeys(("accept-regex", "a", "allow", "scopeincluderx", "follow-tags"), ("include",)),
    **dict.fromkeys(("reject-regex", "reject", "exclude-directories", "exclude-domains", "deny", "x"), ("exclude",)),
    **dict.fromkeys(("blockrules", "blockads", "scopeexcluderx", "ignore", "block"), ("exclude",)),
    **dict.fromkeys(("igsets", "ignore-sets", "ignoresets"), ("without",)),
    **dict.fromkeys(("recursive", "r", "mirror", "m", "convert-links", "k", "adjust-extension", "e-links"), AUTOMATIC),
    **dict.fromkeys(("p", "requisites", "images"), ("page-requisites",)),
    # how fast
    **dict.fromkeys(("wait", "w", "delay", "pageextradelay", "min-delay-ms", "delay-factor"), ("rate",)),
    **dict.fromkeys(("random-wait", "connection-per-second", "requests-per-second", "download-delay"), ("rate",)),
    **dict.fromkeys(("limit-rate", "max-rate", "maxrate", "throttle"), ("bandwidth",)),
    **dict.fromkeys(("workers", "sockets", "threads", "parallel", "jobs", "j", "max-toe-threads"), ("concurrency",)),
    **dict.fromkeys(("tries", "t", "retry", "max-retries", "maxpageretries", "waitretry"), ("retries",)),
    **dict.fromkeys(("pageloadtimeout", "read-timeout"), ("timeout",)),
    # how much
    **dict.fromkeys(("limit", "pagelimit", "maxpagelimit", "max-pages", "max-files", "n"), ("max-urls",)),
    **dict.fromkeys(("max-document-download", "closespider-pagecount"), ("max-urls",)),
    **dict.fromkeys(("quota", "q-bytes", "sizelimit", "max-size", "max-bytes-download", "max-site"), ("max-bytes",)),
    **dict.fromkeys(("max-content-length", "max-file-size", "max-filesize", "maxfilesize"), ("max-response-size",)),
    **dict.fromkeys(("timelimit", "max-time-seconds", "max-duration"), ("max-time",)),
    **dict.fromkeys(("diskutilization", "min-disk"), ("min-free-disk",)),
    # who asks, and how
    **dict.fromkeys(("useragent", "u", "ua", "user-agents", "useragentsuffix"), ("user-agent",)),
    **dict.fromkeys(("operator-contact-url", "operator-from", "from", "mail", "email"), ("contact",)),
    **dict.fromkeys(("e", "execute", "ignore-robots", "no-robots", "obey-robots", "robotstxt-obey"), ("robots",)),
    "headers": ("header",),
    **dict.fromkeys(("cookie", "cookies-file", "cookie-jar", "cookies-from-browser", "b"), ("load-cookies", "header")),
    **dict.fromkeys(("user", "password", "http-user", "http-password", "http-passwd"), ("auth",)),
    **dict.fromkeys(("cert", "certificate", "private-key", "ssl-client-cert"), ("client-cert",)),
    **dict.fromkeys(("cacert", "ca-certificate", "capath", "ca-directory"), ("ca-file",)),
    **dict.fromkeys(("secure-protocol", "tlsv1", "tlsv1.0", "sslv3", "ciphers"), ("tls-min",)),
    **dict.fromkeys(("proxyserver", "proxy-server", "http-proxy", "https-proxy", "use-proxy"), ("proxy",)),
    **dict.fromkeys(("socks5", "socks5-hostname", "socks4", "socks-proxy", "tor", "httpproxyhost"), ("proxy",)),
    **dict.fromkeys(("noproxy", "no-proxy"), "give --host 'HOST proxy=none'"),
    **dict.fromkeys(
        ("no-check-certificate", "insecure", "ignore-https-errors"),
        "not needed: invalid certificates are accepted and recorded",
    ),
    **dict.fromkeys(
        ("usesitemap", "sitemap", "sitemaps"), "sitemaps are found through robots.txt, or give one as a seed"
    ),
    # from where, and where to
    **dict.fromkeys(("input-file", "i", "seedfile", "urls", "list", "url-file"), ("seeds",)),
    **dict.fromkeys(("url", "seed"), "give URLs without an option: archiver crawl https://example.org/"),
    **dict.fromkeys(("directory-prefix", "output-directory", "path", "dir", "outdir", "out"), ("output",)),
    **dict.fromkeys(("collection", "crawl-id", "crawlid", "finished-warc-dir", "warc-file"), ("output",)),
    **dict.fromkeys(("warc-max-size", "rolloversize", "max-file-size-bytes", "max-warc-size"), ("warc-size",)),
    **dict.fromkeys(("warcprefix", "prefix"), ("warc-prefix",)),
    **dict.fromkeys(("warc-dedup", "warc-cdx"), ("dedup-from", "dedup")),
    **dict.fromkeys(("continue", "c", "update", "restart"), "archiver resume DIR continues a crawl"),
    **dict.fromkeys(("timestamping", "since-date"), ("since",)),
    **dict.fromkeys(("generatewacz", "wacz"), "archiver pack DIR packs a crawl into a WACZ file"),
    **dict.fromkeys(("host", "bind", "b-address"), "replay listens on this machine only; --port sets the port"),
}
