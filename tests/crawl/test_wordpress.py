"""WordPress: pages and files that only the REST interface lists are taken, with few requests more."""

import json
from pathlib import Path

from archiver.model import ExitCode
from fixtures.crawl_in_process import crawl
from fixtures.log import Row
from fixtures.rawserver import NOT_FOUND, Answer, RawServer, Route, keep
from fixtures.sites import PIXEL, message, ok

API = "/index.php?rest_route="
MEDIA = f"{API}/wp/v2/media&per_page=100"
REFUSED = keep(message("401 Unauthorized", b'{"code":"rest_forbidden"}', content_type="application/json"))


def _here(row: Row) -> str:
    return f"http://{row.request.partition(b'ost: ')[2].partition(bytes([13]))[0].decode()}"


def _json(data: object, link: str = "") -> Answer:
    body = json.dumps(data, separators=(",", ":")).replace("/", "\\/").encode()
    return keep(message("200 OK", body, content_type="application/json", **({"link": link} if link else {})))


def _description(row: Row) -> Answer:
    endpoints = [{"methods": ["GET"], "args": {"per_page": {}, "slug": {}, "status": {}}}]
    routes = {
        f"/wp/v2/{kind}": {
            "endpoints": endpoints,
            "_links": {"self": [{"href": f"{_here(row)}{API}/wp/v2/{kind}"}]},
        }
        for kind in ("posts", "media")
    }
    return _json({"name": "Blog", "namespaces": ["wp/v2"], "routes": routes})


def _media(row: Row, numbers: range, link: str = "") -> Answer:
    home = _here(row)
    entries = [
        {"id": n, "link": f"{home}/?attachment_id={n}", "source_url": f"{home}/up/{n}.gif", "_links": {}}
        for n in numbers
    ]
    return _json(entries, link)


ROUTES: dict[str, Route] = {
    "/": ok(f'<title>Blog</title><link rel="https://api.w.org/" href="{API}/"><a href="/?p=1">one</a>'),
    "/?p=1": ok("<title>One</title><p>A post</p>"),
    f"{API}/": _description,
    MEDIA: lambda row: _media(row, range(2), f'<{_here(row)}{MEDIA}&page=2>; rel="next"'),
    f"{MEDIA}&page=2": lambda row: _media(row, range(2, 4)),
    f"{API}/wp/v2/posts&per_page=100": REFUSED,
    **{f"/?attachment_id={n}": ok(f"<title>Picture {n}</title><p>It shows {'abcd'[n] * 9}</p>") for n in range(4)},
    **{f"/up/{n}.gif": ok(PIXEL + b"%d" % n, "image/gif") for n in range(4)},
}


def test_what_only_the_rest_interface_lists(tmp_path: Path) -> None:
    with RawServer(ROUTES, keep(NOT_FOUND)) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        asked = [target for target in server.log.targets() if target != "/robots.txt"]
    assert sorted(asked) == sorted(ROUTES)


def test_a_list_that_the_site_keeps_to_itself_is_no_fault(tmp_path: Path) -> None:
    routes = {**ROUTES, MEDIA: REFUSED}
    with RawServer(routes, keep(NOT_FOUND)) as server:
        ending = crawl(tmp_path, server.url())
        asked = server.log.targets()
    assert ending.code is ExitCode.DONE
    assert sum("per_page" in target for target in asked) == 2
    assert not any("attachment" in target for target in asked)


def test_without_guesses_no_list_is_asked_for(tmp_path: Path) -> None:
    with RawServer(ROUTES, keep(NOT_FOUND)) as server:
        assert crawl(tmp_path, server.url(), speculative="off").code is ExitCode.DONE
        assert not any("per_page" in target for target in server.log.targets())
