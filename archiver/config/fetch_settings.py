"""Settings of requests and connections: what is sent, how long to wait, and how much to read."""

from dataclasses import dataclass

from archiver.config.addresses import ANY, DNS_SERVER, IP_VERSION, RESOLVE, SOURCE_ADDRESS
from archiver.config.auth import AUTH, AuthRule
from archiver.config.logins import LOGIN, Login
from archiver.config.option_types import (
    BOOLEAN,
    COOKIES,
    HEADER,
    NUMBER,
    PLACE,
    REFERER,
    SECONDS,
    SECONDS_OR_NONE,
    SIZE,
    TEXT,
)
from archiver.config.proxies import PROXY
from archiver.config.responses import ACCEPT, ACCEPT_ENCODING, LANGUAGE_LIST, LANGUAGES, MEDIA_TYPE, STATUSES
from archiver.config.scope_settings import setting
from archiver.config.tls import CA_FILE, CLIENT_CERT, TLS_VERSION, ClientCert


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How to send requests and read responses."""

    user_agent: str = setting(
        "", TEXT, "Send this User-Agent header. Empty: archiver's name and version, and your contact."
    )
    contact: str = setting(
        "", TEXT, "Give a URL or mail address where site owners can reach you; sent in User-Agent and From."
    )
    header: tuple[str, ...] = setting(
        (),
        HEADER,
        "Send this header with each request. Headers that may be secret (Cookie, Authorization, X-Api-Key) go "
        "only to seed hosts; write where the secret is: 'X-Api-Key: env:NAME'.",
        many=True,
    )
    cookies: str = setting(
        "keep",
        COOKIES,
        "Keep the cookies that sites set and send them back, as a browser does (keep), or ignore them (off).",
    )
    referer: str = setting(
        "policy", REFERER, "Name the page with the link in Referer, as its policy says, or never (off)."
    )
    accept: str = setting("", ACCEPT, "Send this Accept header. Empty: as a browser for pages, and */* for all else.")
    accept_language: str = setting("", LANGUAGES, "Send this Accept-Language header. Empty: none.")
    also_accept_language: str = setting(
        "",
        LANGUAGE_LIST,
        "Fetch a URL again in each of these languages if Vary says that its response depends on Accept-Language; at "
        "most as many more requests as URLs times languages.",
    )
    accept_encoding: str = setting("gzip", ACCEPT_ENCODING, "Accept these content codings. identity: no compression.")
    auth: tuple[AuthRule, ...] = setting(
        (),
        AUTH,
        "Log in with this user and password where a server asks for them (Basic, Digest, Negotiate or NTLM "
        "authentication), at URLs that begin with URL.",
        many=True,
    )
    proxy: tuple[str, ...] = setting(
        (),
        PROXY,
        "Send requests through this proxy: http, socks4, socks5, or socks5h, which also looks up names. env: as "
        "HTTP_PROXY and NO_PROXY say. 'HOSTS URL': only for these hosts.",
        many=True,
    )
    login: tuple[Login, ...] = setting(
        (),
        LOGIN,
        "Log in with this form before its site is crawled. Also: form, success, logged-out, attempts, store-login.",
        many=True,
    )
    insecure_secrets: tuple[str, ...] = setting(
        (),
        PLACE,
        "Send secret headers to this seed host even if its certificate cannot be verified.",
        many=True,
    )
    timeout: float = setting(60.0, SECONDS, "Give up a request if nothing arrives for this long.", live=True)
    max_response_size: int = setting(0, SIZE, "Truncate a response after this many bytes. 0: no limit.")
    max_unstated_size: int = setting(
        10**9,
        SIZE,
        "Truncate a body without a stated length after this many bytes, or earlier if the disk gets full. It is "
        "not retried. 0: limited only by the disk.",
    )
    exclude_type: tuple[str, ...] = setting(
        (),
        MEDIA_TYPE,
        "Do not read bodies of this media type (video/*); store only the head and what arrived with it. Overrides "
        "include-type.",
        many=True,
    )
    include_type: tuple[str, ...] = setting(
        (),
        MEDIA_TYPE,
        "Read only bodies of this media type; add text/html to follow links. Bodies without a media type are "
        "always read.",
        many=True,
    )
    keep_status: str = setting(
        "",
        STATUSES,
        "Read only bodies of responses with these status codes (200,304 or 2xx,3xx); store only the head of others and "
        "what arrived with it. Redirects are always read.",
    )
    allow_private: tuple[str, ...] = setting(
        (),
        PLACE,
        "Allow requests to this private host, address or network (10.0.0.0/8). A seed written as an address is "
        "always allowed.",
        many=True,
    )
    conditional: bool = setting(
        True,
        BOOLEAN,
        "In a recrawl, request only what has changed since the last crawl, where the server supports it (ETag, "
        "Last-Modified).",
    )
    newer_sitemap: bool = setting(
        False,
        BOOLEAN,
        "In a recrawl, skip pages that a sitemap dates before their last capture. Pages without a trustworthy date are "
        "requested.",
    )
    changed_only: bool = setting(
        False,
        BOOLEAN,
        "In a recrawl, skip pages until half of their mean interval of change has passed, by their captures in earlier "
        "crawls.",
    )
    retries: int = setting(
        3, NUMBER, "Retry a URL up to N times if there is no answer or the server is overloaded.", live=True
    )


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """How to find hosts, how to leave this machine, and how long to wait."""

    resolve: tuple[str, ...] = setting(
        (),
        RESOLVE,
        "Use this address for a host, without a DNS lookup. HOST:PORT=ADDRESS: only for this port. A private address "
        "also needs --allow-private.",
        many=True,
    )
    dns_server: tuple[str, ...] = setting(
        (), DNS_SERVER, "Look names up with this DNS server instead of the system's resolver.", many=True
    )
    source_address: str = setting("", SOURCE_ADDRESS, "Connect from this address of this machine.")
    ip_version: str = setting(ANY, IP_VERSION, "Connect over IPv4 or IPv6 only. Short: -4, -6.")

    dns_timeout: float = setting(0.0, SECONDS_OR_NONE, "Give up a DNS lookup after this long. 0: 15 seconds.")
    connect_timeout: float = setting(
        0.0,
        SECONDS_OR_NONE,
        "Give up a connection, with its TLS handshake, after this long. 0: as --timeout, with the DNS lookup.",
    )
    first_byte_timeout: float = setting(
        0.0, SECONDS_OR_NONE, "Give up a request if its response does not begin within this long. 0: as --timeout."
    )
    max_response_time: float = setting(
        0.0, SECONDS_OR_NONE, "Truncate a response that is not complete after this long. 0: no limit."
    )


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Certificates and versions of TLS."""

    client_cert: tuple[ClientCert, ...] = setting(
        (),
        CLIENT_CERT,
        "Show this client certificate to https hosts that match and ask for one. Only a host whose own certificate is "
        "valid gets it, or one named in insecure-secrets.",
        many=True,
    )
    ca_file: tuple[str, ...] = setting(
        (), CA_FILE, "Trust the certificate authorities in this PEM file too.", many=True
    )
    system_ca: bool = setting(
        True, BOOLEAN, "Trust the certificate authorities of this machine, or only those of ca-file."
    )
    tls_min: str = setting(
        "1.2", TLS_VERSION, "Use no TLS version below this. 1.0 and 1.1, for old servers, permit weak ciphers and keys."
    )
    tls_max: str = setting("1.3", TLS_VERSION, "Use no TLS version above this.")
