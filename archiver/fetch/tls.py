"""TLS contexts: which certificates and versions each host gets. Files are read here.

A client certificate goes to hosts that match its pattern, and only if the certificate of the host is valid: without a
check, anyone could pose as the host and be shown who we are. `--insecure-secrets HOST` permits it. Hosts without
settings of their own share two contexts. Each context is made with the first connection that needs it.

TLS 1.0 and 1.1 need OpenSSL's security level 0, which also permits short keys and SHA-1.
"""

import logging
import os
import re
import ssl
import stat
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from archiver import url
from archiver.config.fetch_settings import TlsSettings
from archiver.config.settings import Settings, SettingsByHost
from archiver.config.tls import TLS_KEYS, VERSIONS, ClientCert
from archiver.errors import ConfigError, Failure, FetchError
from archiver.fetch.private_networks import AddressGuard, normalized_host

LARGEST = 16 << 20  # bytes of a file with certificates
MAX_WARNED = 1000  # hosts that are warned about
OLD = ("1.0", "1.1")
OTHERS = stat.S_IRGRP | stat.S_IROTH
DEFAULT = TlsSettings()

_VERSIONS = dict(
    zip(
        VERSIONS,
        (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        strict=True,
    )
)
_LEGACY_SERVER = getattr(ssl, "OP_LEGACY_SERVER_CONNECT", 0x4)  # by that name from Python 3.12 on
_CERTIFICATE = re.compile(r"-----BEGIN (X509 |)CERTIFICATE-----.+?-----END \1CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN ((?:[A-Z0-9]+ )*)PRIVATE KEY-----(.*?)-----END", re.DOTALL)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Everything that a context is made of. Connections with different ones share nothing."""

    authorities: tuple[str, ...]
    system: bool
    least: str
    most: str
    cert: ClientCert | None
    verified: bool


class TlsContexts:
    """The TLS context of each host."""

    def __init__(self, settings: SettingsByHost, guard: AddressGuard) -> None:
        self._settings = settings
        self._guard = guard
        self._contexts: dict[_Kind, ssl.SSLContext] = {}
        self._withheld: set[str] = set()  # hosts that did not get a certificate, already warned about

    def of(self, origin: str, *, verified: bool) -> ssl.SSLContext | None:
        """Return the context for *origin*, which checks certificates if *verified*; None without TLS.

        Raises `FetchError` if a file cannot be read any more.
        """
        if not origin.startswith("https://"):
            return None
        tls = self._settings.of(origin).tls
        if tls == DEFAULT:
            return _usual_context(verified=verified)
        cert = next((cert for cert in tls.client_cert if cert.covers(origin)), None)
        if cert is not None and not self._guard.may_send_secrets(origin, verified=verified):
            self._warn_withheld(origin)
            cert = None
        kind = _Kind(tls.ca_file, tls.system_ca, tls.tls_min, tls.tls_max, cert, verified)
        context = self._contexts.get(kind)
        if context is None:
            try:
                context = self._contexts[kind] = _context(kind)
            except ConfigError as error:
                raise FetchError(Failure.TLS, str(error)) from error
        return context

    def _warn_withheld(self, origin: str) -> None:
        if origin not in self._withheld and len(self._withheld) < MAX_WARNED:
            self._withheld.add(origin)
            name = normalized_host(url.host(f"{origin}/"))
            log.warning(
                "%s: its certificate does not verify, so your client certificate is not shown; --ca-file FILE names "
                "an authority to trust, and --insecure-secrets %s shows yours all the same",
                origin,
                name,
            )


def check_tls(settings: Settings) -> None:
    """Make the contexts of *settings*, those of rules for hosts and of seeds too. Raises `ConfigError`."""
    different = {settings.tls: ""}  # each with one of its users; there may be very many seeds
    for rule in settings.politeness.host:
        different.setdefault(_with(settings, rule.given), f"{rule.match}: ")
    for seed in settings.scope.seed:
        different.setdefault(_with(settings, seed.given), f"{seed.url}: ")
    for tls, where in different.items():
        _check(tls, where)


def _with(settings: Settings, given: Iterable[tuple[str, object]]) -> TlsSettings:
    """Return the TLS settings of *settings* with those of a rule or a seed in their place."""
    own: dict[str, Any] = {}
    for key, value in given:
        if key in TLS_KEYS:
            name = key.replace("-", "_")
            before = own.get(name, ())
            many = isinstance(getattr(DEFAULT, name), tuple)
            own[name] = (*before, value) if many and isinstance(before, tuple) else value
    return replace(settings.tls, **own)


def _check(tls: TlsSettings, where: str) -> None:
    if sum(not cert.hosts for cert in tls.client_cert) > 1:
        raise ConfigError(f"{where}client-cert: given twice for the same hosts; write it once")
    try:
        for cert in (*tls.client_cert, None):
            if tls != DEFAULT:
                _context(_Kind(tls.ca_file, tls.system_ca, tls.tls_min, tls.tls_max, cert, verified=True))
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from None


@cache
def _usual_context(*, verified: bool) -> ssl.SSLContext:
    return _context(_Kind(DEFAULT.ca_file, DEFAULT.system_ca, DEFAULT.tls_min, DEFAULT.tls_max, None, verified))


def _context(kind: _Kind) -> ssl.SSLContext:
    if kind.least > kind.most:
        raise ConfigError(f"tls-min {kind.least} is above tls-max {kind.most}; no version is left")
    if not (kind.system or kind.authorities):
        raise ConfigError("system-ca is off and there is no ca-file, so no certificate could be valid; give --ca-file")
    authorities = "\n".join(map(_authorities, kind.authorities))
    context = ssl.create_default_context(cadata=None if kind.system else authorities)
    if kind.system and authorities:
        context.load_verify_locations(cadata=authorities)
    if authorities:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # from 3.13 on Python rejects many private authorities
    if not kind.verified:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(("http/1.1",))
    _limit(context, kind.least, kind.most)
    if kind.cert is not None:
        _show(context, kind.cert)
    return context


def _limit(context: ssl.SSLContext, least: str, most: str) -> None:
    if least in OLD:
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.options |= _LEGACY_SERVER
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, for 1.0 and 1.1
        try:
            context.minimum_version, context.maximum_version = _VERSIONS[least], _VERSIONS[most]
        except ValueError:
            raise ConfigError(f"TLS {least} to {most}: {ssl.OPENSSL_VERSION} does not have these versions") from None


def _authorities(path: str) -> str:
    """Return the certificates in the file *path*."""
    found = [each.group() for each in _CERTIFICATE.finditer(_text(path, "ca-file"))]
    if not found:
        raise ConfigError(f"ca-file {path}: no certificate is in it; name a PEM file (BEGIN CERTIFICATE)")
    text = "\n".join(found)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"ca-file {path}: a certificate in it is damaged; write the file again") from None
    return text


def _show(context: ssl.SSLContext, cert: ClientCert) -> None:
    """Let *context* show *cert*. Without a password callback OpenSSL would ask on the terminal."""
    if _CERTIFICATE.search(_text(cert.cert, "client-cert")) is None:
        hint = "if it is PKCS#12: openssl pkcs12 -in FILE -out NEW.pem"
        raise ConfigError(f"client-cert {cert.cert}: no certificate is in it; name a PEM file ({hint})")
    place = cert.key or cert.cert
    encrypted = _check_key(place)
    if encrypted and not cert.secret:
        raise ConfigError(f"client-cert {place}: the key is encrypted; add where its password is: password=env:NAME")
    try:
        context.load_cert_chain(cert.cert, cert.key or None, lambda: cert.password)
    except (ssl.SSLError, OSError, ValueError) as error:
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"client-cert {cert.cert}: the key in {place} belongs to another certificate") from None
        if encrypted:
            raise ConfigError(f"client-cert {place}: {cert.secret} is not the password of the key") from None
        raise ConfigError(f"client-cert {cert.cert}: the certificate or the key in {place} is damaged") from None


def _check_key(path: str) -> bool:
    """Return True if the key in the file *path* is encrypted; if not, no one else may read it."""
    found = _KEY.search(_text(path, "client-cert"))
    if found is None:
        raise ConfigError(f"client-cert {path}: no private key is in it; name the file with the key: key=FILE")
    encrypted = "ENCRYPTED" in found[1] or "ENCRYPTED" in found[2].partition("\n\n")[0]
    if os.name == "posix" and not encrypted and Path(path).stat().st_mode & OTHERS:
        raise ConfigError(f"client-cert {path}: others may read this key; run chmod 600 {path}")
    return encrypted


def _text(path: str, key: str) -> str:
    """Return the text of the regular file *path*, named by the setting *key*."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ConfigError(f"{key} {path} is not a file")
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{key} {path} cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST:
        raise ConfigError(f"{key} {path} has more than {LARGEST >> 20} MB; name a PEM file")
    return data.decode("ascii", "replace")


# OpenSSL uses IANA names for TLS 1.3 suites, and its own for earlier ones. WARC-Cipher-Suite takes those of IANA.
_KEY_EXCHANGE = {"ECDHE-ECDSA": "ECDHE_ECDSA", "ECDHE-RSA": "ECDHE_RSA", "DHE-RSA": "DHE_RSA", "DHE-DSS": "DHE_DSS"}
_BULK = {
    "AES128-GCM-SHA256": "AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "AES_256_GCM_SHA384",
    "CHACHA20-POLY1305": "CHACHA20_POLY1305_SHA256",
    "AES128-SHA256": "AES_128_CBC_SHA256",
    "AES256-SHA384": "AES_256_CBC_SHA384",
    "AES256-SHA256": "AES_256_CBC_SHA256",
    "AES128-SHA": "AES_128_CBC_SHA",
    "AES256-SHA": "AES_256_CBC_SHA",
    "AES128-CCM": "AES_128_CCM",
    "AES256-CCM": "AES_256_CCM",
}


def iana_cipher(name: str) -> str:
    """Return the IANA name of OpenSSL's cipher suite *name*; *name* itself if no rule applies."""
    if name.startswith("TLS_"):
        return name
    exchange = next((key for key in _KEY_EXCHANGE if name.startswith(key + "-")), None)
    bulk = name[len(exchange) + 1 :] if exchange else name
    if bulk not in _BULK:
        return name
    return f"TLS_{_KEY_EXCHANGE[exchange] if exchange else 'RSA'}_WITH_{_BULK[bulk]}"
