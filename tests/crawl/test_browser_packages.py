"""Packages and exports of single hosts from a crawl that showed pages: the views of these hosts, and only those."""

import io
from pathlib import Path
from zipfile import ZipFile

from warcio.archiveiterator import ArchiveIterator

from archiver.model import ExitCode
from fixtures.archives import resources
from fixtures.command import archiver
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.packages import pages, valid
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok

pytestmark = SLOW_IN_BROWSER
OPTIONS = ("--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off", "--processes", "2")
HOSTS = ("127.0.0.1", "127.0.0.2")
KINDS = ("pageinfo", "text", "view")
SCRIPTED = """<!doctype html><title>Empty</title><div id=app></div><script>
const get = async () => (await fetch("/" + "da" + "ta")).text()
get().then(text => { document.title = "Shown " + text; document.getElementById("app").innerHTML = text + LINK })
</script>"""


def site(server: RawServer) -> dict[str, Route]:
    """Two hosts with a page each that its script fills, and a link to another one of the same host."""
    routes: dict[str, Route] = {}
    for host in HOSTS:
        link = "' <a href=/second>on</a>'"
        routes[f"//{host}/"] = ok(SCRIPTED.replace("LINK", link))
        routes[f"//{host}/second"] = ok(SCRIPTED.replace("LINK", "''"))
        routes[f"//{host}/data"] = ok(f"text of {host}", "text/plain")
    return routes


def records(package: Path) -> list[tuple[str, str]]:
    """Return type and URI of each record in the WARC files of *package*, by warcio."""
    with ZipFile(package) as opened:
        files = [opened.read(name) for name in opened.namelist() if name.startswith("archive/")]
    read = (record for data in files for record in ArchiveIterator(io.BytesIO(data)))
    return [(record.rec_type, record.rec_headers.get_header("WARC-Target-URI") or "") for record in read]


def test_each_host_has_its_views(tmp_path: Path) -> None:
    routes: dict[str, Route] = {}
    with RawServer(routes, hosts=HOSTS) as server:
        routes.update(site(server))
        seeds = {host: server.url("/", host) for host in HOSTS}
        words = ("-o", "c", *OPTIONS, "--browser", "auto", "--browser-screenshots", "on")
        ran = archiver("crawl", *seeds.values(), *words, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    views = {uri for uri, _ in resources(tmp_path / "c") if uri.startswith("urn:") and "http:" in uri}
    assert views == {f"urn:{kind}:{seed}{name}" for kind in KINDS for seed in seeds.values() for name in ("", "second")}
    for host, seed in seeds.items():
        ran = archiver("pack", "c", "--host", host, "-o", f"{host}.wacz", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        package = tmp_path / f"{host}.wacz"
        assert valid(package)
        found = records(package)
        assert {uri for kind, uri in found if kind == "resource"} == {each for each in views if seed in each}
        assert {uri for kind, uri in found if kind == "response"} == {
            f"{seed}{name}" for name in ("robots.txt", "", "second", "data")
        }
        shown = [*pages(package), *pages(package, "extraPages")]
        assert {each["url"] for each in shown} == {seed, f"{seed}second"}
        assert {each["title"] for each in shown} == {f"Shown text of {host}"}
        assert all(each["text"].startswith(f"text of {host}") for each in shown)
        assert archiver("look", package.name, cwd=tmp_path).returncode == ExitCode.DONE
        ran = archiver("export", "c", "--host", host, "--to", f"to-{host}", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        names = {path.name for path in (tmp_path / f"to-{host}").rglob("*") if path.is_file()}
        assert not any("urn" in name for name in names)
