"""The Referer field in whole crawls: hot-link protection, referrer policies, redirects, and that a crash keeps them."""

from pathlib import Path

import pytest

from archiver.config.host_rules import HOST_RULE
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.auth_servers import command, run_nginx
from fixtures.crawl_in_process import crawl
from fixtures.log import Log, Row
from fixtures.rawserver import RawServer, Route, Sendable, keep
from fixtures.sites import PIXEL, message, ok, page

OTHER = "127.0.0.2"
HOSTS = ("127.0.0.1", OTHER)


def referers(log: Log) -> dict[str, str]:
    """The Referer of each request, by target; "" if it has none. Loopback origins are written as HOME and OTHER."""
    found = {}
    for row in log:
        lines = [line for line in row.request.split(b"\r\n") if line.lower().startswith(b"referer:")]
        assert len(lines) <= 1
        value = lines[0].partition(b": ")[2].decode() if lines else ""
        port = value.partition("127.0.0.")[2][2:].partition("/")[0]
        found[row.target] = value.replace(f"http://127.0.0.1:{port}", "HOME").replace(f"http://{OTHER}:{port}", "OTHER")
    return found


def moved(location: str, **fields: str) -> Route:
    return keep(message("302 Found", b"moved", content_type="text/plain", location=location, **fields))


def protected(row: Row) -> Sendable:
    """Answer with a picture if a page of this host asks for it, with 403 otherwise."""
    own = b"\r\nReferer: http://127.0.0.1:" in row.request
    return ok(PIXEL, "image/gif") if own else keep(message("403 Forbidden", b"hot link", content_type="text/plain"))


def test_pictures_with_hot_link_protection_are_archived(tmp_path: Path) -> None:
    site: dict[str, Route] = {
        "/": ok(page("Front", images=["/one.gif", "/moved.gif"])),
        "/one.gif": protected,
        "/moved.gif": moved("/store/two.gif"),
        "/store/two.gif": protected,
    }
    with RawServer(site) as server:
        assert crawl(tmp_path / "with", server.url()).code is ExitCode.DONE
        assert crawl(tmp_path / "without", server.url(), referer="off").code is ExitCode.DONE
    pictures = "SELECT status FROM urls WHERE url LIKE '%/one.gif' OR url LIKE '%/two.gif'"
    assert [row[0] for row in rows(tmp_path / "with", pictures)] == [200, 200]
    assert [row[0] for row in rows(tmp_path / "without", pictures)] == [403, 403]


NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
    access_log off; types {{ text/html html; image/gif gif; text/css css; }}
    client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
    uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
    server {{
        listen 127.0.0.1:{port}; root {folder}/site;
        location /pictures/ {{ valid_referers server_names 127.0.0.1; if ($invalid_referer) {{ return 403; }} }}
    }}
}}
"""


@pytest.mark.skipif(command("nginx") is None, reason="needs nginx")
def test_what_nginx_protects_from_hot_links_is_archived(tmp_path: Path) -> None:
    """`valid_referers` with neither `none` nor `blocked`: a picture needs the Referer of a page of the site."""
    (tmp_path / "nginx/site/pictures").mkdir(parents=True)
    (tmp_path / "nginx/site/index.html").write_text(page("Front", images=["/pictures/a.gif"], styles=["/style.css"]))
    (tmp_path / "nginx/site/style.css").write_text("body { background: url(pictures/b.gif) }")
    for name in ("a", "b"):
        (tmp_path / f"nginx/site/pictures/{name}.gif").write_bytes(PIXEL)
    with run_nginx(tmp_path / "nginx", NGINX) as port:
        for name, referer in (("with", "policy"), ("without", "off")):
            assert crawl(tmp_path / name, f"http://127.0.0.1:{port}/", referer=referer).code is ExitCode.DONE
    pictures = "SELECT status FROM urls WHERE url LIKE '%.gif'"
    assert rows(tmp_path / "with", pictures) == [(200,), (200,)]
    assert rows(tmp_path / "without", pictures) == [(403,), (403,)]


def test_seeds_and_robots_have_no_referer_and_parts_name_what_names_them(tmp_path: Path) -> None:
    site: dict[str, Route] = {
        "/": ok(page("Front", ["/a?b=c"], styles=["/style.css", "/lib.js/theme.css"])),
        "/lib.js/theme.css": ok("p { background: url(/l.gif) }", "text/css"),
        "/l.gif": ok(PIXEL, "image/gif"),
        "/a?b=c": ok(page("A", ["/last"])),
        "/last": ok("<script src='/app.js'></script>"),
        "/app.js": ok("fetch('/data.json')", "text/javascript"),
        "/data.json": ok('{"icon": "/k.gif"}', "application/json"),
        "/k.gif": ok(PIXEL, "image/gif"),
        "/style.css": ok("@import '/more.css'; p { background: url(/i.gif) }", "text/css"),
        "/more.css": ok("p { background: url(/j.gif) }", "text/css", referrer_policy="origin"),
        "/i.gif": ok(PIXEL, "image/gif"),
        "/j.gif": ok(PIXEL, "image/gif"),
        "/robots.txt": ok("User-agent: *\nSitemap: /map.xml\n", "text/plain"),
        "/map.xml": ok("<urlset><url><loc>/listed</loc></url></urlset>", "application/xml"),
        "/listed": ok(page("Listed")),
    }
    with RawServer(site) as server:
        crawl(tmp_path, server.url(), probe="on")
        sent = referers(server.log)
    assert sent == {
        "/robots.txt": "",
        "/": "",
        "/favicon.ico": "",
        "/map.xml": "",
        "/listed": "",
        "/a?b=c": "HOME/",
        "/last": "HOME/a?b=c",
        "/app.js": "HOME/last",
        "/data.json": "HOME/last",
        "/k.gif": "HOME/last",
        "/style.css": "HOME/",
        "/lib.js/theme.css": "HOME/",
        "/l.gif": "HOME/lib.js/theme.css",
        "/i.gif": "HOME/style.css",
        "/more.css": "HOME/style.css",
        "/j.gif": "HOME/",
    }


META = '<meta name="referrer" content="{}">'


@pytest.mark.parametrize(
    ("header", "head", "link", "expected"),
    [  # Referer to the own host, and to another one
        ("", "", "", ("HOME/p?q", "HOME/")),
        ("no-referrer", "", "", ("", "")),
        ("same-origin", "", "", ("HOME/p?q", "")),
        ("unsafe-url", "", "", ("HOME/p?q", "HOME/p?q")),
        ("origin, unknown", "", "", ("HOME/", "HOME/")),
        ("no-referrer", META.format("unsafe-url"), "", ("HOME/p?q", "HOME/p?q")),
        ("no-referrer", META.format("default"), "", ("HOME/p?q", "HOME/")),
        ("", META.format("never"), "", ("", "")),
        ("origin", META.format("nonsense"), "", ("HOME/", "HOME/")),
        ("", META.format("origin") + META.format("same-origin"), "", ("HOME/p?q", "")),
        ("", f"<!--[if IE]>{META.format('never')}<![endif]-->", "", ("HOME/p?q", "HOME/")),
        ("", "", 'referrerpolicy="no-referrer"', ("", "")),
        ("", "", 'referrerpolicy="UNSAFE-URL"', ("HOME/p?q", "HOME/p?q")),
        ("unsafe-url", "", 'referrerpolicy="strict-origin-when-cross-origin"', ("HOME/p?q", "HOME/")),
        ("no-referrer", META.format("origin"), 'referrerpolicy="same-origin"', ("HOME/p?q", "")),
        ("", "", 'referrerpolicy="nonsense"', ("HOME/p?q", "HOME/")),
    ],
)
@pytest.mark.parametrize("tag", ["img", "a"])
def test_the_policy_of_the_link_goes_before_that_of_the_page_and_its_header(
    tmp_path: Path, header: str, head: str, link: str, expected: tuple[str, str], tag: str
) -> None:
    attribute = "src" if tag == "img" else "href"
    with RawServer({"/other": ok(PIXEL, "image/gif")}, hosts=(OTHER,)) as other:
        places = ("/own", other.url("/other"))
        body = head + "".join(f'<{tag} {attribute}="{place}" {link}></{tag}>' for place in places)
        fields = {"referrer_policy": header} if header else {}
        site: dict[str, Route] = {"/p?q": ok(page("P", body=body), **fields), "/own": ok(PIXEL, "image/gif")}
        with RawServer(site) as server:
            crawl(tmp_path, server.url("/p?q"), other.url("/seed"), robots="ignore")
            sent = referers(server.log) | referers(other.log)
    assert (sent["/own"], sent["/other"]) == expected


def test_rel_noreferrer_counts_on_links_of_pages_but_not_on_style_sheets(tmp_path: Path) -> None:
    body = '<a rel="nofollow noreferrer" href="/a">A</a><a rel="noopener" href="/b">B</a>'
    body += '<link rel="stylesheet noreferrer" href="/c.css"><a rel=noreferrer referrerpolicy=origin href="/d">D</a>'
    with RawServer({"/": ok(page("Front", body=body))}) as server:
        crawl(tmp_path, server.url(), robots="ignore")
        sent = referers(server.log)
    assert sent == {"/": "", "/a": "", "/b": "HOME/", "/c.css": "HOME/", "/d": ""}


def test_redirects_keep_the_page_and_cut_it_further(tmp_path: Path) -> None:
    """The referrer of each request starts from that of the one before, as in the Fetch standard."""
    with RawServer({}, hosts=HOSTS) as server:
        here, there = server.url("", HOSTS[0]), server.url("", OTHER)
        server.routes = {
            "/": ok(page("Front", images=["/same", "/across", "/quiet", "/silent"])),
            "/same": moved("/same2"),
            "/same2": moved("/same3"),
            "/across": moved(f"{there}/away"),
            "/away": moved(f"{here}/back"),
            "/quiet": moved("/quiet2", referrer_policy="no-referrer"),
            "/quiet2": moved("/quiet3", referrer_policy="unsafe-url"),
            "/silent": moved(f"{there}/silent2", referrer_policy="same-origin"),
            "/silent2": moved(f"{here}/silent3"),
            "/seed": moved("/moved-seed"),
        }
        crawl(tmp_path, f"{here}/", f"{here}/seed", robots="ignore", allow_private=(OTHER,))
        sent = referers(server.log)
    assert {target: value for target, value in sent.items() if value != "HOME/"} == {
        "/": "",
        "/seed": "",
        "/moved-seed": "",
        "/quiet2": "",
        "/quiet3": "",
        "/silent2": "",
        "/silent3": "",
    }
    assert len(sent) == 15


def test_it_is_off_for_one_host_and_a_header_of_the_user_replaces_it(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("Front", ["/one"]))}, hosts=HOSTS) as server:
        rule = HOST_RULE.parse(f"{OTHER} referer=off")
        crawl(tmp_path / "off", server.url("/", OTHER), host=(rule,), robots="ignore")
        assert referers(server.log)["/one"] == ""
        crawl(tmp_path / "own", server.url("/"), header=("referer: https://search.example/",), robots="ignore")
        assert referers(server.log)["/one"] == "https://search.example/"


PAGES = "SELECT url, referrer FROM urls WHERE hop <> 'P' ORDER BY url"


def test_a_resumed_crawl_and_one_restored_from_its_records_keep_the_policies(tmp_path: Path) -> None:
    body = '<a href="/a" referrerpolicy="origin">A</a><a href="/b">B</a><a href="/c" rel=noreferrer>C</a>'
    site: dict[str, Route] = {
        "/": ok(page("Front", body=body), referrer_policy="unsafe-url"),
        "/b": moved("/b2"),
        "/b2": ok(page("B", ["/d"], body=META.format("same-origin"))),
    }
    with RawServer(site) as server:
        assert crawl(tmp_path, server.url(), robots="ignore", max_urls=4).code is ExitCode.LIMIT
        before = [tuple(row) for row in rows(tmp_path, PAGES)]
        for left in tmp_path.glob("crawl.db*"):
            left.unlink()
        assert crawl(tmp_path, server.url(), robots="ignore", max_urls=4, resume=True).code is ExitCode.LIMIT
        assert [tuple(row) for row in rows(tmp_path, PAGES)] == before
        assert {policy for _, policy in before} == {0, 1, 4, 7}
        assert crawl(tmp_path, server.url(), robots="ignore", resume=True).code is ExitCode.DONE
        sent = referers(server.log)
    assert sent == {"/": "", "/a": "HOME/", "/b": "HOME/", "/c": "", "/b2": "HOME/", "/d": "HOME/b2"}
