"""Client certificates, authorities and TLS versions in whole crawls, judged by the log of a real nginx."""

import gzip
import signal
import ssl
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.config.host_rules import HOST_RULE
from archiver.config.option_types import LEFT_OUT
from archiver.config.tls import CLIENT_CERT
from archiver.model import ExitCode
from fixtures.archives import captured, rows
from fixtures.auth_servers import command
from fixtures.command import archiver, running
from fixtures.crawl_in_process import crawl
from fixtures.proxies import microsocks, needs_microsocks, needs_tinyproxy, tinyproxy
from fixtures.tls_servers import ASKS, FALSE, KEY_PASSWORD, OLD, ONE, PAGES, TWO, TlsSite, tls_site, write_client

pytestmark = pytest.mark.skipif(command("nginx") is None, reason="nginx is not installed")

STATUS = "SELECT urls.url, captures.status FROM captures JOIN urls ON urls.id = captures.url"

LOOPBACK = {"allow_private": ("127.0.0.0/8",)}


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[TlsSite]:
    with tls_site(tmp_path / "server") as site:
        yield site


def statuses(folder: Path, site: TlsSite, address: str) -> set[int]:
    pages = ((str(url), int(str(status))) for url, status in rows(folder, STATUS))
    return {
        status
        for url, status in pages
        if url.startswith(site.url(address)) and url.endswith(("/", "p1.html", "pixel.html"))
    }


def subjects(site: TlsSite, address: str) -> set[str]:
    return {subject for host, _, subject, _, _ in site.seen() if host == address}


def run(folder: Path, site: TlsSite, *addresses: str, code: ExitCode = ExitCode.DONE, **values: Any) -> None:
    seeds = [site.url(address) for address in addresses]
    ending = crawl(folder, *seeds, **{"ca_file": (site.file("ca.pem"),), **LOOPBACK, **values})
    assert ending.code is code, ending.reason


def cert(site: TlsSite, hosts: str, name: str) -> object:
    return CLIENT_CERT.parse(f"{hosts} {site.file(name)}.crt key={site.file(name)}.key")


def test_each_host_sees_its_own_certificate_alone(tmp_path: Path, site: TlsSite) -> None:
    run(tmp_path / "without", site, ONE, code=ExitCode.NO_SEED)
    assert statuses(tmp_path / "without", site, ONE) == {400}
    assert subjects(site, ONE) == {"-"}
    rules = (HOST_RULE.parse(f"{TWO} client-cert='{site.file('two.pem')}'"),)
    run(tmp_path / "c", site, ONE, client_cert=(cert(site, ONE, "one"),), host=rules)
    assert statuses(tmp_path / "c", site, ONE) == statuses(tmp_path / "c", site, TWO) == {200}
    assert subjects(site, ONE) == {"-", "one"}
    assert subjects(site, TWO) == {"two"}
    assert subjects(site, ASKS) == subjects(site, FALSE) == {"-"}
    assert (ASKS, 200, "/moved.html") in {(address, status, target) for address, _, _, status, target in site.seen()}
    assert len(captured(tmp_path / "c")) > PAGES
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE


@needs_tinyproxy
@needs_microsocks
@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_proxy_never_sees_the_certificate(tmp_path: Path, site: TlsSite, kind: str) -> None:
    """It goes through the tunnel to its host, and to no other one behind the proxy."""
    with tinyproxy(tmp_path, "127.0.0.1") if kind == "http" else microsocks("127.0.0.1") as port:
        proxy = f"{kind}://127.0.0.1:{port}"
        run(
            tmp_path / "c",
            site,
            ONE,
            FALSE,
            client_cert=(cert(site, ONE, "one"), cert(site, FALSE, "one")),
            proxy=(proxy,),
        )
    assert statuses(tmp_path / "c", site, ONE) == {200}
    assert subjects(site, ONE) == {"one"}
    assert subjects(site, FALSE) == {"-"}
    log = (tmp_path / "c/logs/crawl.log").read_text()
    assert all(f"proxy:{proxy}" in line for line in log.splitlines() if " 200 " in line)


def test_a_host_whose_certificate_is_not_valid_sees_none(
    tmp_path: Path, site: TlsSite, caplog: pytest.LogCaptureFixture
) -> None:
    """It is archived all the same; --insecure-secrets shows the certificate."""
    given = (cert(site, FALSE, "one"), cert(site, ASKS, "one"))
    run(tmp_path / "c", site, FALSE, ASKS, client_cert=given)
    assert subjects(site, FALSE) == {"-"}
    assert subjects(site, ASKS) == {"one"}
    assert statuses(tmp_path / "c", site, FALSE) == {200}
    assert f"--insecure-secrets {FALSE} shows yours" in caplog.text
    run(tmp_path / "d", site, FALSE, client_cert=given, insecure_secrets=(FALSE,))
    assert subjects(site, FALSE) == {"-", "one"}


@pytest.mark.parametrize("system", [True, False], ids=["with the system's", "alone"])
def test_an_authority_makes_certificates_valid(tmp_path: Path, site: TlsSite, *, system: bool) -> None:
    run(tmp_path / "c", site, ASKS, system_ca=system)
    run(tmp_path / "d", site, ASKS, ca_file=(), host=(HOST_RULE.parse(f"{ASKS} ca-file='{site.file('ca.pem')}'"),))
    run(tmp_path / "e", site, ASKS, ca_file=())
    for name, valid in (("c", True), ("d", True), ("e", False)):
        log = (tmp_path / name / "logs/crawl.log").read_text()
        own = [line for line in log.splitlines() if line.split()[3].startswith(site.url(ASKS))]
        assert {"tls-unverified" not in line for line in own} == {valid}, name


@pytest.mark.skipif(not ssl.HAS_TLSv1, reason="this OpenSSL has no TLS 1.0")
def test_old_versions_only_where_they_are_allowed(tmp_path: Path, site: TlsSite) -> None:
    run(
        tmp_path / "c", site, ASKS, host=(HOST_RULE.parse(f"{OLD} tls-min=1.0"), HOST_RULE.parse(f"{ASKS} tls-max=1.2"))
    )
    run(tmp_path / "d", site, OLD, retries=0, code=ExitCode.NO_SEED)
    assert not statuses(tmp_path / "d", site, OLD)
    ((note,),) = rows(tmp_path / "d", "SELECT note FROM urls WHERE failure = 'tls' AND priority >= 0")
    assert str(note).endswith("; an old server may need --host 'HOST tls-min=1.0'")
    run(tmp_path / "e", site, OLD, host=(HOST_RULE.parse(f"{OLD} tls-min=1.0"),))
    assert statuses(tmp_path / "e", site, OLD) == {200}
    versions = {(address, version) for address, version, *_ in site.seen()}
    assert (OLD, "TLSv1") in versions
    assert {version for address, version in versions if address == ASKS} == {"TLSv1.2", "TLSv1.3"}


def test_resume_after_a_kill_shows_the_certificate_again(
    tmp_path: Path, site: TlsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", KEY_PASSWORD)
    given = f"{ONE} server/one.crt key=server/one.locked password=env:KEY_PASSWORD"
    options = ("--ca-file", "server/ca.pem", "--client-cert", given, "-o", "c", "--rate", "20", "--probe", "off")
    with running("crawl", site.url(ONE), *options, cwd=tmp_path) as process:
        site.wait_for(PAGES // 2)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    ran = archiver("resume", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert subjects(site, ONE) == {"one"}
    assert statuses(tmp_path / "c", site, ONE) == {200}
    assert len(captured(tmp_path / "c")) == len({url for url, _ in captured(tmp_path / "c")})
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE


def test_no_path_and_no_password_is_handed_on(tmp_path: Path, site: TlsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", KEY_PASSWORD)
    place = tmp_path / "server"
    given = f"{ONE} {place}/one.crt key={place}/one.locked password=env:KEY_PASSWORD"
    rule = f"{TWO} client-cert={place}/two.pem ca-file={place}/ca.pem"
    words = ("--client-cert", given, "--ca-file", f"{place}/ca.pem", "--host", rule, "-o", "c", "-vv", "--rate", "0")
    said = [archiver("crawl", site.url(ONE), *words, cwd=tmp_path).stderr]
    for last in (("report", "c"), ("status", "c"), ("explain", "c", site.url(TWO)), ("pack", "c")):
        ran = archiver(*last, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        said += [ran.stdout, ran.stderr]
    texts = {f"said {number}": text.encode() for number, text in enumerate(said)}
    for path in (tmp_path / "c").rglob("*"):
        if path.is_file() and path.name != "crawl.toml":
            texts[path.name] = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    with zipfile.ZipFile(tmp_path / "c.wacz") as package:
        for name in package.namelist():
            data = package.read(name)
            texts[f"packed {name}"] = gzip.decompress(data) if name.endswith(".gz") else data
    for name, data in texts.items():
        for hidden in (str(place), "one.crt", "one.locked", "two.pem", KEY_PASSWORD, "BEGIN PRIVATE", "KEY_PASSWORD"):
            assert hidden.encode() not in data, (name, hidden)
    assert any(f"{ONE} {LEFT_OUT}".encode() in data for data in texts.values())
    assert (tmp_path / "c/crawl.toml").stat().st_mode & 0o77 == 0
    (tmp_path / "c/crawl.toml").unlink()
    done = archiver("rebuild", "c", cwd=tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "name them again with --client-cert" in done.stderr
    assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE


BAD = [
    ("{one}.nothing", "cannot be read: No such file"),
    ("{folder}", "Is a directory"),
    ("/dev/zero", "is not a file"),
    ("{one}.key", "no certificate is in it"),
    ("{one}.crt", "no private key is in it"),
    ("{one}.crt key={one}.nothing", "cannot be read"),
    ("{one}.crt key={folder}/two.key", "belongs to another certificate"),
    ("{one}.crt key={one}.locked", "the key is encrypted"),
    ("{one}.crt key={one}.locked password=env:WRONG", "env:WRONG is not the password of the key"),
    ("{one}.crt key={one}.locked password=env:NOT_SET", "NOT_SET is not set"),
    ("{one}.crt key={one}.locked password=hunter2", "a secret is not written here"),
    ("{one}.crt key={one}.open", "others may read this key"),
    ("{one}.crt key={one}.torn", "is damaged"),
    ("{one}.crt key=", "not hosts, a PEM file"),
    ("{one}.crt {one}.key more", "not hosts, a PEM file"),
    ("{one}.p12", "openssl pkcs12"),
]


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name in ("one", "two"):
        write_client(folder, name)
    key = (folder / "one.key").read_bytes()
    (folder / "one.open").write_bytes(key)
    (folder / "one.open").chmod(0o644)
    (folder / "one.torn").write_bytes(key[:60] + b"!!" + key[62:])
    (folder / "one.torn").chmod(0o600)
    (folder / "one.p12").write_bytes(b"\x30\x82\x00")
    return folder


@pytest.mark.parametrize(("given", "reason"), BAD)
def test_a_client_certificate_that_cannot_be_used_is_refused_at_once(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch, given: str, reason: str
) -> None:
    monkeypatch.setenv("WRONG", "not it")
    text = given.format(one=files / "one", folder=files)
    for words in (("--client-cert", f"example.org {text}"), ("--host", f'example.org client-cert="{text}"')):
        done = archiver("crawl", "https://example.org/", *words, "-o", "c", cwd=tmp_path)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert reason in done.stderr
        assert "hunter2" not in done.stderr
        assert "not it" not in done.stderr
        assert len(done.stderr.splitlines()) <= 1 or done.stderr.startswith("Usage"), done.stderr
        assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--client-cert", "x.pem"), "without hosts, it could be shown to any host"),
        (("--client-cert", "* x.pem"), "may match hosts of others"),
        (("--client-cert", "*.org x.pem"), "may match hosts of others"),
        (("--client-cert", "http://example.org x.pem"), "not a pattern of https hosts"),
        (("--host", "*.com client-cert=x.pem"), "may match hosts of others"),
        (("--ca-file", "nothing.pem"), "ca-file nothing.pem cannot be read"),
        (("--ca-file", "empty.pem"), "no certificate is in it"),
        (("--ca-file", "torn.pem"), "a certificate in it is damaged"),
        (("--ca-file", "~no.such.user/ca.pem"), "there is no such home folder"),
        (("--client-cert", "a.example ~no.such.user/me.pem"), "there is no such home folder"),
        (("--no-system-ca",), "give --ca-file"),
        (("--tls-min", "1.3", "--tls-max", "1.2"), "tls-min 1.3 is above tls-max 1.2"),
        (("--host", "example.org tls-max=1.1"), "example.org: tls-min 1.2 is above tls-max 1.1"),
        (("--tls-min", "1.4"), "one of"),
        (("--tls-min", "ssl3"), "one of"),
    ],
)
def test_other_bad_settings_are_refused(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    (tmp_path / "empty.pem").write_text("no PEM")
    (tmp_path / "torn.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    done = archiver("crawl", "https://example.org/", *words, "-o", "c", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert reason.replace("nothing.pem", str(tmp_path / "nothing.pem")) in done.stderr.replace("\n", " ")
    assert not (tmp_path / "c").exists()


def test_a_received_collection_cannot_use_certificates_of_this_user(tmp_path: Path, site: TlsSite) -> None:
    run(tmp_path / "c", site, ONE, code=ExitCode.NO_SEED)
    settings = tmp_path / "c/crawl.toml"
    settings.write_text(
        f'seeds = ["{site.url(ONE)}"]\nrate = 0\nca-file = ["{site.file("ca.pem")}"]\n'
        f'[[host]]\nmatch = "{ONE}"\nclient-cert = "{site.file("one.pem")}"\n'
    )
    for words in (("resume", "c"), ("recrawl", "c")):
        done = archiver(*words, cwd=tmp_path)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert "you have not named client-cert" in done.stderr
        assert f"--client-cert '{ONE} {site.file('one.pem')}'" in done.stderr
    assert subjects(site, ONE) == {"-"}
    named = ("--client-cert", f"{ONE} {site.file('one.pem')}", "--ca-file", site.file("ca.pem"))
    assert archiver("resume", "c", *named, cwd=tmp_path).returncode == ExitCode.NO_SEED  # nothing is left to do
    done = archiver("recrawl", "c", cwd=tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert subjects(site, ONE) == {"-", "one"}
    elsewhere = settings.read_text().replace(f'match = "{ONE}"', f'match = "{ASKS}"')
    settings.write_text(elsewhere.replace(f"{ONE} {site.file('one.pem')}", f"{ASKS} {site.file('one.pem')}"))
    assert "you have not named" in archiver("resume", "c", cwd=tmp_path).stderr
