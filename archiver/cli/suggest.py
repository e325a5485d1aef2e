"""What to say to a command line that is not one of ours: which command or option was probably meant.

People come from wget, httrack, browsertrix, Heritrix and grab-site, and type the names that they know.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from shlex import quote

import click

from archiver.cli.terminal import without_secrets
from archiver.config.seeds import lacks_scheme, seed
from archiver.errors import ConfigError

_BY_ITSELF = "a crawl does that by itself"
# Names of other programs' options, without hyphens and in lower case: ours, the first one that the command has, or a
# sentence.
_ELSEWHERE: dict[str, tuple[str, ...] | str] = {
    # how far
    **dict.fromkeys(("level", "l", "depth", "recursion-level", "depthlimit"), ("max-depth",)),
    **dict.fromkeys(
        ("ext-depth", "extrahops", "max-trans-hops", "maxtranshops", "offsite-links"), ("extra-hops", "scope")
    ),
    **dict.fromkeys(("maxhops", "max-link-hops", "page-requisites-level"), ("max-hops",)),
    **dict.fromkeys(("scopetype", "domains", "no-offsite-links", "near", "stay-on-same-domain", "1"), ("scope",)),
    **dict.fromkeys(("no-parent", "np", "can-go-down", "stay-on-same-dir", "d"), ("scope",)),
    **dict.fromkeys(("span-hosts", "h", "go-everywhere"), ("extra-hops", "scope")),
    **dict.fromkeys(("accept-regex", "accept", "a", "allow", "scopeincluderx", "follow-tags"), ("include",)),
    **dict.fromkeys(("reject-regex", "reject", "exclude-directories", "exclude-domains", "deny", "x"), ("exclude",)),
    **dict.fromkeys(("blockrules", "blockads", "scopeexcluderx", "ignore", "block"), ("exclude",)),
    **dict.fromkeys(("igsets", "ignore-sets", "ignoresets"), ("without",)),
    **dict.fromkeys(("recursive", "r", "mirror", "m", "convert-links", "k", "adjust-extension", "e-links"), _BY_ITSELF),
    **dict.fromkeys(("p", "requisites", "images"), ("page-requisites",)),
    # how fast
    **dict.fromkeys(("wait", "w", "delay", "pageextradelay", "min-delay-ms", "delay-factor"), ("rate",)),
    **dict.fromkeys(("random-wait", "connection-per-second", "requests-per-second", "download-delay"), ("rate",)),
    **dict.fromkeys(("limit-rate", "max-rate", "maxrate", "throttle"), ("bandwidth",)),
    **dict.fromkeys(("workers", "sockets", "threads", "parallel", "jobs", "j", "max-toe-threads"), ("concurrency",)),
    **dict.fromkeys(("tries", "t", "retry", "max-retries", "maxpageretries", "waitretry"), ("retries",)),
    **dict.fromkeys(("pageloadtimeout", "read-timeout", "connect-timeout", "dns-timeout"), ("timeout",)),
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
    **dict.fromkeys(("headers", "cookie", "cookies", "load-cookies", "referer", "b"), ("header",)),
    **dict.fromkeys(("user", "password", "http-user", "http-password", "auth"), ("header",)),
    **dict.fromkeys(
        ("no-check-certificate", "insecure", "ignore-https-errors"), "certificates are not checked, but noted"
    ),
    **dict.fromkeys(("usesitemap", "sitemap", "sitemaps"), "sitemaps are found by robots.txt, or give one as a seed"),
    # from where, and where to
    **dict.fromkeys(("input-file", "i", "seedfile", "urls", "list", "url-file"), ("seeds",)),
    **dict.fromkeys(("url", "seed"), "give URLs without an option: archiver crawl https://example.org/"),
    **dict.fromkeys(("directory-prefix", "output-directory", "path", "dir", "outdir", "out"), ("output",)),
    **dict.fromkeys(("collection", "crawl-id", "crawlid", "finished-warc-dir", "warc-file"), ("output",)),
    **dict.fromkeys(("warc-max-size", "rolloversize", "max-file-size-bytes", "max-warc-size"), ("warc-size",)),
    **dict.fromkeys(("warcprefix", "prefix"), ("warc-prefix",)),
    **dict.fromkeys(("warc-dedup", "warc-cdx"), ("dedup-from", "dedup")),
    **dict.fromkeys(("continue", "c", "update", "restart"), "archiver resume DIR goes on with a crawl"),
    **dict.fromkeys(("timestamping", "since-date"), ("since",)),
    **dict.fromkeys(("generatewacz", "wacz"), "archiver pack DIR makes a WACZ file of a crawl"),
    **dict.fromkeys(("host", "bind", "b-address"), "it listens on this machine only; --port chooses the port"),
}


def option(name: str, known: Iterable[str]) -> str:
    """What to say to the option *name* of a command that has the options *known*."""
    options = [each for each in known if each.startswith("--")]
    meant = _of_others(name, options)
    if not meant:
        close = _beginning(name, options) or get_close_matches(name, options, 1, 0.6) or _containing(name, options)
        meant = f"did you mean {' or '.join(close)}?" if close else ""
    return f"there is no option {name}" + (f"; {meant}" if meant else "")


def command(name: str, known: Iterable[str]) -> str:
    """What to say to the word *name* in the place of one of the commands *known*."""
    if name and ("/" in name or "." in name or name.startswith("localhost")):
        try:
            address = seed(name)
        except ConfigError:
            address = ""
        if address and not (lacks_scheme(name) and name.startswith((".", "/"))):
            return f"there is no command {name}; to archive it: archiver crawl {quote(address)}"
    close = get_close_matches(name, list(known), 1, 0.5)
    others = {"replay": ("serve", "view", "open", "browse", "wayback"), "pack": ("wacz", "zip"), "get": ("cat", "show")}
    others |= {"crawl": ("archive", "start", "mirror", "fetch", "download"), "resume": ("continue", "go-on")}
    close = [ours for ours, theirs in others.items() if name.lower() in theirs] or close
    meant = f"did you mean {close[0]}?" if close else "archiver --help lists the commands"
    return f"there is no command {name}; {meant}"


def _of_others(name: str, options: list[str]) -> str:
    bare = name.lstrip("-").lower()
    for spelled in (bare, bare.replace("_", "-"), bare.replace("-", "").replace("_", "")):
        meant = _ELSEWHERE.get(spelled)
        if isinstance(meant, str):
            return meant
        for ours in meant or ():
            if f"--{ours}" in options:
                return f"here it is --{ours}"
    return ""


def _beginning(name: str, options: list[str]) -> list[str]:
    """The longest option with which *name* begins, or the first that begins with it."""
    shorter = [each for each in options if name.startswith(each)]
    return sorted(shorter, key=len)[-1:] or [each for each in options if len(name) > 4 and each.startswith(name)][:1]


def _containing(name: str, options: list[str]) -> list[str]:
    """The options that hold a whole word of *name*."""
    words = {word for word in name.strip("-").lower().split("-") if len(word) > 3}
    return [each for each in options if words & set(each.strip("-").split("-"))][:2]


def refused(error: click.UsageError) -> str:
    """What to say to a command line that click refused."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        known = [
            name for param in error.ctx.command.get_params(error.ctx) for name in (*param.opts, *param.secondary_opts)
        ]
        return option(error.option_name, known)
    return without_secrets(error.format_message())
