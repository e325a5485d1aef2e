"""Files and pages that scripts name in places other than a plain request: workers, tables, folders of a theme."""

import gzip

import pytest

from archiver.extract import Document, links
from archiver.model import Hop

ROOT = "http://host.test"


def named(body: str | bytes, at: str, media_type: str = "text/html", page: str = "") -> set[str]:
    """Return what the document names, below the host."""
    data = body.encode() if isinstance(body, str) else body
    found = links(Document(ROOT + at, media_type, "utf-8", data, Hop.SPECULATIVE, page=page and ROOT + page)).links
    return {link.url.removeprefix(ROOT) for link in found}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('new Worker(new URL("./w/a.js", location).href)', "/d/w/a.js"),
        ("new SharedWorker(new URL('w.js', self.location))", "/d/w.js"),
        ('fetch(new URL("x/a.txt", document.baseURI))', "/d/x/a.txt"),
        ('new URL("../x/w.js", document.baseURI)', "/x/w.js"),
        ('lib.GlobalWorkerOptions.workerSrc = "w.min.js"', "/d/w.min.js"),
        ("open({worker:`search.worker.js`,limit:3})", "/d/search.worker.js"),
        ('start({workerUrl: "x/w.mjs"})', "/d/x/w.mjs"),
        ('var o = {"wasmPath":"a.wasm"}', "/d/a.wasm"),
        ('add("./a.txt", {"mimeType":"text/plain","path":"./f/a.98ea.txt","size":3})', "/d/f/a.98ea.txt"),
        ('add({file: "../f/a.yaml"})', "/f/a.yaml"),
    ],
)
def test_a_file_whose_place_says_that_it_is_loaded(code: str, expected: str) -> None:
    assert named(f"<script>{code}</script>", "/d/p.html") == {expected}
    assert named(code, "/s/own.js", "text/javascript", page="/d/p.html") == {expected}


@pytest.mark.parametrize(
    "code",
    [
        'if (worker == "w.js") go()',
        'report({path: "notes/a.txt"})',  # may be a file on a disk
        'open({path: "./src/a.js"})',
        'eval("import.meta.url").replace("/worker.js", "/worker/worker.js")',
        'new URL("a.js", other)',
    ],
)
def test_names_that_are_no_files_of_the_site(code: str) -> None:
    assert named(f"<script>{code}</script>", "/d/p.html") == set()
    assert named(code, "/s/own.js", "text/javascript", page="/d/p.html") == set()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('File({"name":"../d/c.txt","path":"../f/c.98.txt","size":3}, import.meta.url).text()', {"/f/c.98.txt"}),
        ('load({url:"./c.bin"},import.meta.url)', {"/s/c.bin"}),
    ],
)
def test_options_beside_the_url_of_the_module_are_relative_to_it(code: str, expected: set[str]) -> None:
    assert named(code, "/s/own.js", "text/javascript", page="/d/p.html") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('const N={"/":[2],"/about":[3],"/list/[id]":[-5],"/orphan":[5]},P={}', {"/about", "/orphan"}),
        ('x={"/a":()=>import("./a.js"),"/b":()=>t(()=>import(`./b.js`))}', {"/a", "/b", "/s/a.js", "/s/b.js"}),
        ('x = {\n "/a": {\n  component: A },\n "/b": {lazy: B}}', {"/a", "/b"}),
        ('f({onClick:()=>(0,r.navigate)("/away/")})', {"/away/"}),
        ('h("button",{onClick:()=>(0,c.oo)("/away/")},"x")', {"/away/"}),
        ("o(`click`,w,()=>_(`/away`))", {"/away"}),
        ('{onClick:e[0]||(e[0]=n=>m(yt)("/away"))}', {"/away"}),
        ('{onClick:()=>api.post("/away")}', set()),
        ('{onClick:()=>c("/away",1)}', set()),
        ('{onLoad:()=>c("/away")}', set()),
        ('x = {"/a": [post], "/b": {get: f}, "/c": 3}', set()),
        ('x = {"/api/a": [1], "/v1/b": [2]}', set()),
    ],
)
def test_paths_of_a_router_and_of_clicks(code: str, expected: set[str]) -> None:
    assert named(code, "/s/own.js", "text/javascript", page="/p.html") == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            '{"documentCount":4,"documentIds":{"0":"/","1":"/sub/two","2":"/alone","3":"/more#top"},"index":[]}',
            {"/sub/two", "/alone", "/more"},
        ),
        ('{"documentIds":{"0":"/a.html","1":"/sub/b.html"}}', {"/a.html", "/sub/b.html"}),
        ('{"0":"/a","1":"/b"}', set()),  # too few to be a list
    ],
)
def test_paths_listed_under_numbers(data: str, expected: set[str]) -> None:
    assert named(data, "/search.json", "application/json", page="/p.html") == expected


@pytest.mark.parametrize(
    ("code", "at", "expected"),
    [
        ('i.src = uiRootPath + "/img/icons.svg#copy"', "/_/js/site.js", {"/_/img/icons.svg", "/img/icons.svg"}),
        ('i.src=c+"/js/vendor/h.js"', "/_/js/site.js", {"/_/js/vendor/h.js"}),
        ('u.setAttribute("href", o.root + "/img/a.svg")', "/t/assets/js/m.js", {"/t/assets/img/a.svg", "/img/a.svg"}),
        ('i.src = theme.url + "/assets/img/a.png"', "/themes/t/assets/js/m.js", {"/themes/t/assets/img/a.png"}),
        ("await fetch(`${e}/_app/v.json`,{})", "/b/_app/i/entry/start.js", {"/b/_app/v.json"}),
        ('fetch("".concat(r, "/data/a.json"))', "/static/js/m.js", {"/static/data/a.json", "/data/a.json"}),
        ('i.src = location.origin + "/img/a.png"', "/js/m.js", {"/img/a.png"}),
        ('var base = "/b"; i.src = base + "/img/a.png"', "/js/m.js", {"/b/img/a.png"}),
        ('i.src = root + "/a.png"', "/js/m.js", set()),  # may be below the address of an interface
        ('new Worker(__dirname + "/img/a.js")', "/js/m.js", set()),
        ("importScripts(`${e}/min/a.js`)", "/js/m.js", set()),  # the page tells its worker where to look
        ('log(root + "/img/a.png")', "/js/m.js", set()),
    ],
)
def test_a_path_below_an_unknown_root(code: str, at: str, expected: set[str]) -> None:
    assert named(code, at, "text/javascript", page="/d/e/p.html") == expected


def test_a_path_below_the_unknown_root_of_a_page() -> None:
    assert named('<script>i.src = root.path + "/img/a.png"</script>', "/d/p.html") == {"/img/a.png"}


RESULT = '{"url":"%s","content":"A text.","word_count":2,"filters":{},"meta":{"title":"A"},"anchors":[]}'


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("at", "page", "expected"),
    [
        ("/pagefind/fragment/en_1a2.pf_fragment", "/alone/", "/alone/"),
        ("/m/pagefind/fragment/en_1a2.pf_fragment", "/alone.html", "/m/alone.html"),
        ("/m/_pagefind/fragment/1a2.pf_fragment", r"\/a\/b.html#c", "/m/a/b.html"),
        ("/search/fragment/1a2.pf_fragment", "/alone/", "/alone/"),
        ("/pagefind/fragment/1a2.pf_fragment", "http://host.test/b", "/b"),
    ],
)
def test_a_result_of_pagefind_names_its_page(at: str, page: str, expected: str, *, packed: bool) -> None:
    body = b"pagefind_dcd" + (RESULT % page).encode()
    assert named(gzip.compress(body) if packed else body, at, "application/octet-stream") == {expected}
    assert named(body[:12] + b'{"content":"u"}', at, "application/octet-stream") == set()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"url":"/get/tool.zip"}', "/get/tool.zip"),
        ('{"href":"./files/a.docx","title":"x"}', "/d/files/a.docx"),
        ('[{"_canonical_uri": "texts/a%20b.tid"}]', "/d/texts/a%20b.tid"),
        ('{"downloadUrl":"../get/tool-1.2.tar.gz?v=1"}', "/get/tool-1.2.tar.gz?v=1"),
        ('{"pdf":"papers/a.pdf"}', "/d/papers/a.pdf"),
        ('{"link":"http://host.test/get/a.7z"}', "/get/a.7z"),
        ('{"file":"get/tool.tar.gz","size":3}', "/d/get/tool.tar.gz"),
        ('{"file":"/get/Tool-1.2.AppImage"}', "/get/Tool-1.2.AppImage"),
    ],
)
def test_a_file_of_any_kind_under_a_key_for_a_url(data: str, expected: str) -> None:
    assert expected in named(data, "/d/list.json", "application/json", page="/d/p.html")
    assert named(f'<script type="application/json">{data}</script>', "/d/p.html") == {expected}
    assert named(f"<script>show({data})</script>", "/d/p.html") == {expected}


@pytest.mark.parametrize(
    "data",
    [
        '{"url":"git.host.test/a/b.git"}',
        '{"url":"example.com/a.zip"}',
        '{"curl":"x/c.zip"}',
        '{"name":"x/c.zip"}',
        '{"iconUrl":"marker.xyz"}',
        '{"link":"http://other.test/get/a.7z"}',
        '{"url":"https://{host}/a.zip"}',
        '{"version_url":"/a/b/1.2"}',
        '{"file":"lib/tool.py"}',
        '{"file":"src/a.rs","line":3}',
        '{"file":"tool.zip"}',
        '{"profile":"x/c.zip"}',
    ],
)
def test_what_is_no_file_of_the_site(data: str) -> None:
    for body, media_type in (
        (data, "application/json"),
        (f'<script type="application/json">{data}</script>', "text/html"),
        (f"<script>show({data})</script>", "text/html"),
    ):
        assert named(body, "/d/p", media_type, page="/d/p.html") == set()


def test_a_program_of_observable_framework_names_the_libraries_that_the_site_has() -> None:
    """Those of its names that have no hash are of libraries that no page uses, and the site has not."""
    code = (
        'x=()=>import("../_npm/lodash@4.1.2/_esm.js");y=import("../_npm/d3@7.9.2/1a2b3c4d.js");import("./stdlib/zip.js");'
        'import("./stdlib/inputs.0a1b2c3d.js");import("../_npm/react-dom@19.3.1/client._esm.js");import("./own.js")'
    )
    built = {
        "/b/_npm/d3@7.9.2/1a2b3c4d.js",
        "/b/_observablehq/stdlib/inputs.0a1b2c3d.js",
        "/b/_observablehq/own.js",
    }
    at = "/b/_observablehq/client.d10d8454.js"
    assert named(code, at, "text/javascript") == built
    assert "/b/own/stdlib/zip.js" in named(code, "/b/own/client.js", "text/javascript")
