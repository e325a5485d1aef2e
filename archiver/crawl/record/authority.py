"""The certificate authority of this user, by which the proxy reads what goes over TLS.

Its key is made on first use and never leaves its folder, which lies outside of every collection: anyone who has the key
can pose as any site to a browser that trusts it. Certificates of hosts are made when they are needed and are valid for
a short time.
"""

import os
import ssl
import tempfile
import threading
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from archiver.errors import ConfigError
from archiver.fetch.private_networks import spelled_address
from archiver.frontier.address import host_name
from archiver.storage import open_file, replace_file, storage, sync_folder
from archiver.storage.temporary import temporary_folder

KEY, CERTIFICATE = "authority.pem", "ca.pem"  # the key with its certificate, and the certificate that clients get
AUTHORITY_DAYS = 1095  # an installed authority is a risk, so it ends
HOST_DAYS = 30
RENEW_AFTER = timedelta(days=HOST_DAYS / 2)
MOST_CONTEXTS = 256  # of hosts, each some 50 KB
LARGEST = 64 << 10  # bytes of the file with the key
OTHERS = 0o077
MISSING = "archiver record reads TLS with the package cryptography: pip install 'warchiver[record]'"


def authority_folder() -> Path:
    """Return the folder of this user's authority (XDG Base Directory Specification). RuntimeError without a home."""
    named = os.environ.get("XDG_DATA_HOME")
    base = Path(named) if named and Path(named).is_absolute() else Path.home() / ".local/share"
    return base / "archiver" / "record"


def check_installed() -> None:
    """Raises `ConfigError` if the package is missing that makes certificates."""
    try:
        import cryptography  # noqa: F401, PLC0415 - it is an extra
    except ImportError:
        raise ConfigError(MISSING) from None


class Authority:
    """The authority in one folder. Its methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        """Raises `ConfigError` if the files there cannot be used, and `ArchiveError` if none can be written."""
        check_installed()
        self.certificate = folder / CERTIFICATE
        self._key, self._issuer = _load(folder / KEY) if (folder / KEY).exists() else _make(folder / KEY)
        self._lock = threading.Lock()
        self._contexts: OrderedDict[str, tuple[datetime, ssl.SSLContext]] = OrderedDict()
        self._host_key = _new_key()  # of all certificates that this process makes
        if not self.certificate.exists() or self.certificate.read_text(errors="replace") != self.pem:
            replace_file(self.certificate, lambda file: file.writelines((self.pem.encode(),)))

    @property
    def pem(self) -> str:
        """The certificate that clients must trust."""
        return _pem(self._issuer)

    @property
    def fingerprint(self) -> str:
        """Its SHA-256 fingerprint."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - it is an extra

        return ":".join(f"{byte:02X}" for byte in self._issuer.fingerprint(hashes.SHA256()))

    def context(self, host: str) -> ssl.SSLContext:
        """Return the context with which the proxy answers as *host*, a name or address as in a canonical URL."""
        now = datetime.now(UTC)
        with self._lock:
            made, context = self._contexts.get(host, (None, None))
            if made is None or context is None or now - made > RENEW_AFTER:
                context = self._new_context(host, now)
                self._contexts[host] = now, context
            self._contexts.move_to_end(host)
            while len(self._contexts) > MOST_CONTEXTS:
                self._contexts.popitem(last=False)
        return context

    def _new_context(self, host: str, now: datetime) -> ssl.SSLContext:
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - it is an extra
            BestAvailableEncryption,
            Encoding,
            PrivateFormat,
        )

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        password = os.urandom(16).hex()  # OpenSSL takes keys from files only, so what lies there is of no use
        key = self._host_key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
        ).decode()
        with temporary_folder("record") as folder:
            file = folder / KEY
            file.write_text(key + _pem(self._certificate_of(host, now)) + self.pem)  # some trust it by its key
            context.load_cert_chain(file, password=password)
        return context

    def _certificate_of(self, host: str, now: datetime) -> Any:
        from cryptography import x509  # noqa: PLC0415 - it is an extra
        from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415 - it is an extra

        address = spelled_address(host)
        name = x509.DNSName(host.rstrip(".")) if address is None else x509.IPAddress(ip_address(str(address)))
        public = self._host_key.public_key()
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = _builder(host[:64], self._issuer.subject, public, now, HOST_DAYS)
        return (
            builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(issuer_id, critical=False)
            .sign(self._key, _sha256())
        )


def _builder(name: str, issuer: Any, public: Any, now: datetime, days: int) -> Any:
    from cryptography import x509  # noqa: PLC0415 - it is an extra
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - it is an extra

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, authority: bool) -> Any:
    from cryptography import x509  # noqa: PLC0415 - it is an extra

    uses = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    ends = {"encipher_only": False, "decipher_only": False}
    return x509.KeyUsage(digital_signature=not authority, key_cert_sign=authority, crl_sign=authority, **uses, **ends)


def _sha256() -> Any:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - it is an extra

    return hashes.SHA256()


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - it is an extra

    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - it is an extra

    return str(certificate.public_bytes(Encoding.PEM).decode())


def _make(path: Path) -> tuple[Any, Any]:
    """Make an authority, and keep its key at *path* for its owner alone. Another process may be quicker."""
    from cryptography import x509  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it is an extra

    key, now = _new_key(), datetime.now(UTC)
    public = key.public_key()
    certificate = (
        _builder(f"archiver record on {host_name()[:30]}", None, public, now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, _sha256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{KEY}.")  # for its owner alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text + _pem(certificate).encode())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            Path(draft).unlink()
        sync_folder(path.parent)
    return _load(path)


def _load(path: Path) -> tuple[Any, Any]:
    """Return the key and the certificate in *path*."""
    from cryptography import x509  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - it is an extra

    remedy = "move it away, and archiver record makes a new authority, which clients must be told to trust again"
    with storage(path), open_file(path) as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & OTHERS:
            raise ConfigError(f"{path}: others may read this key; run chmod 600 {path}, or better {remedy}")
        data = file.read(LARGEST)
    try:
        key, certificate = load_pem_private_key(data, None), x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError):
        raise ConfigError(f"{path}: it holds no key with its certificate; {remedy}") from None
    if certificate.not_valid_after_utc < datetime.now(UTC) + timedelta(days=HOST_DAYS):
        raise ConfigError(f"{path}: the certificate ends on {certificate.not_valid_after_utc:%Y-%m-%d}; {remedy}")
    return key, certificate
