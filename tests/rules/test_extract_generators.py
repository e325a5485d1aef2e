"""Links from pages and indexes of site generators, for cases that a crawl of a built site does not show."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.extract import Document, links
from archiver.extract.script import rustdoc
from archiver.model import Hop

ROOT = "http://host.test"
LINKS = (
    '<a href="/docs/">h</a> <a href="/docs/guide/">g</a> <a href="/docs/API.html#x">a</a> <a href="/docs/a%20b">b</a>'
)

LEAN = '<link rel="modulepreload" href="/docs/assets/index.md.a.lean.js">'


def named(body: str | bytes, at: str, media_type: str = "text/html", hop: Hop = Hop.LINK) -> set[str]:
    """Return what the document names as data of a generator, below the host."""
    data = body.encode() if isinstance(body, str) else body
    found = links(Document(ROOT + at, media_type, "utf-8", data, hop)).links
    return {f"{link.url.removeprefix(ROOT)} {link.hop.value}" for link in found if link.context == "script/loader"}


def table(pages: str, data: str = r"{\"base\":\"/docs/\"}") -> str:
    pages = pages.replace('"', r"\"")
    return f'<script>__VP_HASH_MAP__ = JSON.parse("{pages}")\n__VP_SITE_DATA__ = JSON.parse("{data}")</script>'


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            LINKS + table('{"index.md":"a1","guide_index.md":"b-2","api.md":"c_3","a b.md":"d","other.md":"e"}'),
            {"index.md.a1", "guide_index.md.b-2", "API.md.c_3", "a%20b.md.d"},  # of the last the capitals are not known
        ),
        (LEAN + table('{"index.md":"a","other.md":"b"}'), {"index.md.a", "other.md.b"}),
        (LEAN.replace("index", "API") + table('{"api.md":"a","other.md":"b"}'), {"API.md.a"}),
        (table('{"index.md":"a","other.md":"b"}'), set()),  # 404.html names no page, so the capitals are not known
        (
            f'{LEAN}<script>window.__VP_HASH_MAP__={{"index.md":"a"}};__VP_SITE_DATA__={{"base":"/docs/"}}</script>',
            {"index.md.a"},
        ),
        (table("{}"), set()),
        (table('{"../index.md":"a","b.md":"x/y"}'), set()),
    ],
)
def test_the_pages_of_vitepress(page: str, expected: set[str]) -> None:
    found = {name for name in named(page, "/docs/") if name.endswith(" X")}
    assert found == {f"/docs/assets/{name}.js X" for name in expected}


@pytest.mark.parametrize("data", ['"relativePath":"guide/a.md"', r"\"relativePath\": \"guide/a.md\""])
def test_links_in_the_script_of_a_vitepress_page_are_relative_to_that_page(data: str) -> None:
    text = f'const d=JSON.parse(\'{{{data},"filePath":"x"}}\');h(\'<a href="./b.html"><img src="c.png">\')'
    for name, folder in (("guide_a.md.x1", "/s/guide/"), ("guide_a.md.x1.lean", "/s/guide/"), ("guide_a", "/s/")):
        at = f"{ROOT}/s/assets/{name}.js"
        found = links(Document(at, "text/javascript", "utf-8", text.encode(), Hop.REQUISITE, f"{ROOT}/s/")).links
        assert {link.url.removeprefix(ROOT) for link in found} == {f"{folder}b.html", f"{folder}c.png"}


def test_vitepress_with_another_folder_for_its_files() -> None:
    lean = '<link rel="modulepreload" href="/s/index.md.aa.lean.js">'
    own = table('{"index.md":"aa","b.md":"bb"}', r"{\"base\":\"/\"}")
    assert named(lean + own, "/") == {"/s/index.md.aa.js E", "/s/index.md.aa.js X", "/s/b.md.bb.js X"}
    assert named('<link rel="modulepreload" href="/s/lean.js"><link rel=icon href=/a.md.lean.js>', "/") == set()


def test_rustdoc_of_many_versions() -> None:
    newest = {"stringdex-js": "x.js", "search-js": "s.js", "settings-js": "t.js", "static-root-path": "../f/"}
    cases: list[tuple[dict[str, str], set[str]]] = [
        (newest, {"/f/x.js", "/f/s.js", "/f/t.js", "/search.index/root1.2.js"}),
        (
            {"search-js": "s.js", "settings-js": "t.js", "static-root-path": "../f/", "themes": "a,b"},
            {"/f/s.js", "/f/t.js", "/search-index1.2.js", "/a.css", "/b.css"},
        ),
        ({}, {"/search1.2.js", "/settings1.2.js", "/search-index1.2.js"}),
        ({"search-index-js": "../i.js", "search-js": "../s.js"}, {"/i.js", "/s.js", "/settings1.2.js"}),
    ]
    for attributes, expected in cases:
        written = "".join(f' data-{name}="{value}"' for name, value in attributes.items())
        page = f'<div id="rustdoc-vars" data-root-path="../" data-resource-suffix="1.2"{written}></div>'
        assert named(page, "/std/index.html") == {f"{name} E" for name in expected}
    assert named('<div data-root-path="../">', "/a/") == set()
    assert named('<div data-root-path="a b" data-resource-suffix="\'">', "/a/") == set()


@pytest.mark.parametrize(
    ("folder", "begins"),
    [
        ("implementors", "(function() {var implementors = {};"),
        ("trait.impl", "(function() {\n    var implementors = Object.fromEntries(["),
        ("type.impl", "(function() {\n    var type_impls = Object.fromEntries(["),
    ],
)
def test_what_rustdoc_adds_to_a_page_is_relative_to_the_root(folder: str, begins: str) -> None:
    script = (begins + r'["a","<a class=\"struct\" href=\"alloc/struct.Box.html\">Box</a>"]').encode()
    page = f"{ROOT}/doc/core/iter/trait.Iterator.html"
    for name, expected in ((f"/doc/{folder}/core/iter/trait.Iterator.js", "doc"), ("/doc/own.js", "doc/core/iter")):
        document = Document(ROOT + name, "text/javascript", "", script, Hop.REQUISITE, page=page)
        assert [link.url for link in links(document).links] == [f"{ROOT}/{expected}/alloc/struct.Box.html"]


def test_the_columns_of_rustdocs_search_have_hashes_of_any_length() -> None:
    root = (
        """rr_('{"a":{"N":"bCc","E":"","H":"AAECAwQFBgcICQoL"},"b":{"N":"x","H":"AAECAwQ="},"c":{"N":"a","H":"?"}}')"""
    )
    expected = {"a/000102030405", "a/060708090a0b", "b/0001020304"}
    assert named(root, "/d/search.index/root.js", "text/javascript") == {
        f"/d/search.index/{name}.js E" for name in expected
    }


BRANCH = (  # of the manuals of Rust 1.95
    "UUAAADuAPIBfgmCCk5SUlFFBAAC/kcCREZQSlASzBbNRQQAAvZG+kQ+UEJQCswOzcwAEDqoppamrMTM4ZeK2aQAA"
)
BRANCH_AT = "/search.index/5f797e61b0af.js"


def test_a_branch_of_rustdocs_search_names_its_children() -> None:
    expected = {"/search.index/0eaa29a5a9ab.js E"}
    assert named(f'rn_("{BRANCH}")', BRANCH_AT, "text/javascript", Hop.REQUISITE) == expected


@pytest.mark.parametrize(
    ("at", "packed"),
    [
        (f"/search.index/00{BRANCH_AT[-13:]}", BRANCH),
        ("/search.index/5f797e61b0.js", BRANCH),
        (BRANCH_AT, BRANCH[:-4]),
        (BRANCH_AT, "AAAA" + BRANCH),
        (BRANCH_AT, BRANCH + "AAAA"),
        (BRANCH_AT, ""),
        (BRANCH_AT, "A"),
    ],
)
def test_a_branch_of_rustdocs_search_with_another_hash_names_nothing(at: str, packed: str) -> None:
    assert named(f'rn_("{packed}")', at, "text/javascript", Hop.REQUISITE) == set()


def test_a_branch_that_repeats_its_text_without_end_names_nothing() -> None:
    first, again = b"\x00\xbf" + b"x" * 63 + b"\x00\x00", b"\x08\x80\x00\x00"
    assert rustdoc.tree_urls(base64.b64encode(first + again).decode()) == []
    assert rustdoc.tree_urls(base64.b64encode(first + again * (rustdoc.MOST_WRITTEN // 60)).decode()) == []


@given(st.binary(max_size=400))
def test_any_branch_of_rustdocs_search(data: bytes) -> None:
    assert all(len(name) == 15 for name in rustdoc.tree_urls(base64.b64encode(data).decode()))


ENTRY = "/pagefind/pagefind-entry.json"
META = "/pagefind/pagefind.en_1.pf_meta"


def test_other_data_than_a_pagefind_index_names_nothing() -> None:
    for body in ("{", "[]", '{"languages":[]}', '{"languages":{"a":1,"b":{"hash":2},"c":{"hash":"../x"}}}', "[" * 9999):
        assert named(body, ENTRY, "application/json", Hop.REQUISITE) == set()
    deep, long = b"\x84" * 9999, b"\x84\x61a\x9b" + b"\xff" * 8 + b"\x82\x61b\x01"
    for data in (b"", b"\x1f\x8b", b"\x1f\x8b\x08broken", *(b"pagefind_dcd" + part for part in (b"", deep, long))):
        assert not any("pf_index" in name for name in named(data, META, "application/octet-stream", Hop.REQUISITE))


@given(st.binary())
def test_any_list_of_pagefind(body: bytes) -> None:
    named(b"pagefind_dcd" + body, META, "application/octet-stream", Hop.REQUISITE)


LITE = '{"jupyter-config-data": {%s}}'
LITE_THEMES = [f"x/@jupyterlab/theme-{name}-extension/index.css" for name in ("light", "dark")]
LITE_ROOT = (
    '"appUrl": "./lab", "baseUrl": "./", "settingsUrl": "../schemas", "faviconUrl": "./lab/favicon.ico",'
    '"fullLabextensionsUrl": "./extensions", "licensesUrl": "./lab/api/licenses",'
    '"federated_extensions": [{"name": "@a/b", "load": "static/remoteEntry.1.js"}, {"name": "c"}, 1]'
)


@pytest.mark.parametrize(
    ("at", "body", "expected"),
    [
        (
            "/n/l/jupyter-lite.json",
            LITE % LITE_ROOT,
            {
                *("l/lab/index.html", "schemas/all.json", "schemas/all_federated.json", "l/lab/favicon.ico"),
                *("l/api/contents/all.json", "l/api/translations/all.json", "l/api/translations/en.json"),
                "l/extensions/@a/b/static/remoteEntry.1.js",
            },
        ),
        ("/n/lab/jupyter-lite.json", LITE % '"appUrl": "/lab", "themesUrl": "./x"', {*LITE_THEMES}),
        ("/n/jupyter-lite.json", LITE % '"appUrl": "/lab", "themesUrl": "./x"', set()),
        ("/n/jupyter-lite.json", LITE[:-4], set()),
        ("/n/jupyter-lite.json", '{"jupyter-config-data": []}', set()),
        (
            "/n/api/contents/d/all.json",
            '{"content": [{"path": "d/a b.ipynb", "type": "notebook"}, {"path": "d/e", "type": "directory"}, {}, 1]}',
            {"files/d/a%20b.ipynb", "api/contents/d/e/all.json"},
        ),
        ("/n/api/contents/all.json", '{"content": null}', set()),
        ("/n/other/all.json", '{"content": [{"path": "a.ipynb"}]}', set()),
    ],
)
def test_the_files_of_jupyterlite(at: str, body: str, expected: set[str]) -> None:
    assert named(body, at, "application/json", Hop.SPECULATIVE) == {f"/n/{name} X" for name in expected}


@pytest.mark.parametrize(
    ("root", "folders"), [(".", {"/n/lab/"}), ("..", {"/n/lab/", "/n/"}), ("x", set()), ("../" * 20, set())]
)
def test_a_page_of_jupyterlite_reads_the_configurations_up_to_its_root(root: str, folders: set[str]) -> None:
    page = f'<script id=jupyter-config-data type=application/json data-jupyter-lite-root="{root}">{{}}</script>'
    expected = {f"{folder}jupyter-lite.{ending} X" for folder in folders for ending in ("json", "ipynb")}
    assert named(page, "/n/lab/index.html") == expected


STORY = '"a--b":{"id":"a--b","title":"A","importPath":"./a.stories.js"}'


@pytest.mark.parametrize(
    ("at", "body", "expected"),
    [
        ("/ui/stories.json", f'{{"v": 3, "stories": {{{STORY}}}}}', {"a--b": "story"}),
        ("/ui/index.json", f'{{"v":4,"entries":{{{STORY[:-1]},"type":"docs"}}}}}}', {"a--b": "docs"}),
        ("/ui/index.json", '{"v":4,"entries":{"a--b":{"id":"other"},"../x":{"id":"../x"},"c":1}}', {}),
        ("/ui/index.json", '{"v":4,"entries":{"a":', {}),
        ("/ui/index.json", f'{{"entries":{{{STORY}}}}}', {}),
        ("/ui/data.json", f'{{"v":4,"entries":{{{STORY}}}}}', {}),
    ],
)
def test_the_stories_of_storybook(at: str, body: str, expected: dict[str, str]) -> None:
    frames = {f"/ui/iframe.html?id={name}&viewMode={view} X" for name, view in expected.items()}
    pages = {f"/ui/?path=/{view}/{name} X" for name, view in expected.items()}
    first = {"/ui/iframe.html?id=*&viewMode=story X"} if expected else set()
    assert named(body, at, "application/json", Hop.SPECULATIVE) == frames | pages | first


def manual(body: str, at: str) -> set[str]:
    """Return what the script names as part of generated documentation, below the host."""
    found = links(Document(ROOT + at, "text/javascript", "utf-8", body.encode(), Hop.REQUISITE, f"{ROOT}/page/")).links
    return {link.url.removeprefix(ROOT) for link in found if link.context == "script/manual"}


def sections(characters: str, names: str = '0: "all"') -> str:
    return f"var indexSectionsWithContent =\n{{\n  {characters}\n}};\n\nvar indexSectionNames =\n{{\n  {names}\n}};\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (sections('0: "ab\\"}\\\\"'), {f"all_{part}" for part in range(5)}),
        (sections('0: "a",\n  2: "b"', '0: "all",\n  2: "pages"'), {"all_0", "pages_0"}),
        (sections(f'0: "{"x" * 18}"'), {f"all_{part:x}" for part in range(18)}),
        (sections('0: "a"', '0: "../x"'), set()),
        (sections('0: "a"', '1: "all"'), set()),
        ('var indexSectionsWithContent =\n{\n  0: "a', set()),
    ],
)
def test_the_results_of_doxygens_search(script: str, expected: set[str]) -> None:
    assert manual(script, "/d/search/searchdata.js") == {f"/d/search/{name}.js" for name in expected}


def test_the_results_of_the_search_of_old_doxygens() -> None:
    """Each section has a bit for each character code, in the script that searches."""
    bits = "".join("1" if chr(code) in "\x01a~" else "0" for code in range(256))
    script = f"// Search script generated by doxygen\n{sections(f'0: {bits!r}'.replace(chr(39), chr(34)))}"
    assert manual(script, "/d/search/search.js") == {
        f"/d/search/{name}.html" for name in ("all_01", "all_61", "all_7e", "nomatches")
    }


def loaded(markup: str, at: str) -> set[str]:
    """Return what scripts of the page at *at* load."""
    found = links(Document(ROOT + at, "text/html", "utf-8", markup.encode())).links
    return {link.url.removeprefix(ROOT) for link in found if link.hop is Hop.SPECULATIVE}


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ("\"search\",'Search','.html'", {"/d/e/search/all_0.html", "/d/e/search/nomatches.html"}),
        ("\"../search\",false,'Search'", {"/d/search/all_0.html", "/d/search/nomatches.html"}),
        ("\"search/\",'.html'", set()),
    ],
)
def test_the_search_box_of_doxygen_shows_whether_results_are_pages(box: str, expected: set[str]) -> None:
    script = f'<script>var searchBox = new SearchBox("searchBox", {box});</script>'
    assert loaded(script, "/d/e/index.html") == expected


@pytest.mark.parametrize(
    ("name", "script", "expected"),
    [
        ("all_f", "all_f.js", {"all_10"}),
        ("classes_0", "classes_0.js", {"classes_1"}),
        ("all_f", "all_e.js", set()),
        ("nomatches", "search.js", set()),
    ],
)
def test_results_of_doxygens_search_lead_to_the_next(name: str, script: str, expected: set[str]) -> None:
    inner = 'var searchResults = new SearchResults("searchResults");\nsearchResults.Search();'
    markup = f'<script src="{script}"></script><body class="SRPage"><script>{inner}</script>'
    assert loaded(markup, f"/d/search/{name}.html") == {f"/d/search/{each}.html" for each in expected}


def test_results_of_doxygens_search_are_relative_to_the_script() -> None:
    for names in ("a",), ("a", "b"):
        rows = ",".join(f"['../{name}.html#x',1,'']" for name in names)
        results = f"var searchData=\n[\n  ['a_0',['A',{rows}]],\n"
        document = Document(
            f"{ROOT}/d/search/all_0.js", "text/javascript", "utf-8", results.encode(), page=f"{ROOT}/x/y/"
        )
        assert {link.url: link.hop for link in links(document).links} == {
            f"{ROOT}/d/{name}.html": Hop.LINK for name in names
        }


TREE_OF_DOXYGEN = """=
[
    [ "A", "d0/d01/a.html", "d0/d01/a" ],
    [ "B", "b.html#x", null ],
    [ "C", "c.html", null ]
];
"""
IN_TREE = {"/d/d0/d01/a.html L", "/d/d0/d01/a.js E", "/d/b.html L", "/d/c.html L"}


@pytest.mark.parametrize(
    ("at", "script", "expected"),
    [
        ("/d/d1/d02/branch.js", f"var branch {TREE_OF_DOXYGEN}", IN_TREE),
        ("/d/branch.js", f"var branch {TREE_OF_DOXYGEN}", IN_TREE),
        ("/d/navtreedata.js", f"/*\n{'licence ' * 200}*/\nvar NAVTREE {TREE_OF_DOXYGEN}", IN_TREE),
        (
            "/d/menudata.js",
            'var menudata={children:[\n{text:"B",url:"b.html"},\n{text:"C",url:"d0/d01/c.html"}]}',
            {"/d/b.html L", "/d/d0/d01/c.html L"},
        ),
        (
            "/d/navtree.js",
            "function initNavTree(toroot,relpath)\n{ NAVTREE; n.html('<img src=\"'+relpath+'sync_on.png\"/>') }",
            {"/d/sync_on.png E"},
        ),
    ],
)
def test_menus_and_trees_of_doxygen_start_at_its_root(at: str, script: str, expected: set[str]) -> None:
    """Pages of a manual with many files are two folders below the root, as are branches of its tree."""
    page = f"{ROOT}/d/d1/d02/page.html"
    document = Document(ROOT + at, "text/javascript", "utf-8", script.encode(), Hop.REQUISITE, page)
    assert {f"{link.url.removeprefix(ROOT)} {link.hop}" for link in links(document).links} == expected


@pytest.mark.parametrize(
    "script",
    [
        'function initMenu(items) { return [{url: "a.html"}, {url: "b.html"}]; }',
        'var entries = [{url: "a.html"}, {url: "b.html"}];',
    ],
)
def test_other_menus_are_relative_to_the_page(script: str) -> None:
    document = Document(f"{ROOT}/js/m.js", "text/javascript", "", script.encode(), Hop.REQUISITE, f"{ROOT}/d/p.html")
    assert {link.url for link in links(document).links} == {f"{ROOT}/d/a.html", f"{ROOT}/d/b.html"}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("/gitbook/gitbook.js", {"/search_index.json"}),
        ("/gitbook/gitbook/gitbook-plugin-lunr/search-lunr.js", {"/gitbook/search_index.json"}),
        ("/a/gitbook/@honkit/honkit-plugin-lunr/search-lunr.js", {"/a/search_index.json"}),
        ("/a/other/search-lunr.js", set()),
    ],
)
def test_the_search_index_of_gitbook(at: str, expected: set[str]) -> None:
    for written in (
        "$.getJSON(gitbook.state.basePath+'/search_index.json')",
        'f(gitbook.state.root + "search_index.json")',
    ):
        assert manual(written, at) == expected


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("[a](a) [b](/b.md) [c](c/) [d](d.html) [e](mailto:e@x) [f](#f) [g](?id=g)", "/s/x.md", {"a", "b", "c/README"}),
        ("[a](a.md)", "/s/deep/x.md", {"a", "deep/a"}),
        ("[a](/a) [b](//other/b) [c](https://other/c.md)", "/s/deep/x.md", {"a"}),
        ("* [a](deep/a)\n* [b](deep/b)\n* [c](../c)", "/s/_sidebar.md", {"deep/a", "deep/b", "deep/_sidebar", "../c"}),
        ("* [a](deeper/a)", "/s/deep/_sidebar.md", {"deeper/a", "deep/deeper/a"}),
        ("* [a](deep/a) [c](<b.md> 'x')", "/s/deep/x.md", {"deep/a", "b", "deep/b"}),  # by the folder, from the root
        ("<a href='#/a'>x</a> <a href='#a'>y</a> <a href=b.md>c</a>", "/s/x.md", {"a"}),
    ],
)
def test_the_texts_of_docsify(text: str, at: str, expected: set[str]) -> None:
    document = Document(ROOT + at, "text/markdown", "utf-8", text.encode(), Hop.SPECULATIVE, f"{ROOT}/s/")
    assert {link.url.removeprefix(ROOT) for link in links(document).links} == {
        f"/s/{name}.md".replace("/s/..", "") for name in expected
    }


def test_files_in_the_texts_of_docsify() -> None:
    text = "<img width=1 src=a.png> <video src='/b.mp4'> [c](c.pdf ':ignore') [d](d.pdf) [e](/e/ \":ignore t\")"
    document = Document(f"{ROOT}/s/deep/x.md", "text/markdown", "utf-8", text.encode(), Hop.SPECULATIVE, f"{ROOT}/s/")
    assert {link.url.removeprefix(ROOT) for link in links(document).links} == {"/s/a.png", "/b.mp4", "/s/c.pdf", "/e/"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("loadSidebar: true, notFoundPage: true", {"README", "_sidebar", "_404"}),
        ("homepage: 'home.md', loadNavbar: 'n.md', notFoundPage: 'no.md'", {"home", "n", "no"}),
    ],
)
def test_the_settings_of_docsify(settings: str, expected: set[str]) -> None:
    page = f"<script>window.$docsify = {{ {settings} }}</script>"
    assert named(page, "/s/") == {f"/s/{name}.md X" for name in expected}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('"indexing":"full","lang":["en"],"separator":"x"', set()),
        ('"lang":["de"],"separator":"x"', {"m/lunr.de", "m/lunr.stemmer.support"}),
        (
            '"indexing":"full","lang":["de"]',
            {"s/lunr.de", "s/lunr.stemmer.support", "m/lunr.de", "m/lunr.stemmer.support"},
        ),
        (
            '"indexing":"full","lang":["en","ja"],"prebuild_index":false',
            {
                *(f"{folder}/lunr.{name}" for folder in "sm" for name in ("ja", "stemmer.support", "multi")),
                *("s/tinyseg", "/assets/javascripts/lunr/tinyseg"),
            },
        ),
    ],
)
def test_the_languages_of_the_search_of_mkdocs(config: str, expected: set[str]) -> None:
    found = named(f'{{"config":{{{config}}},"docs":[]}}', "/search/search_index.json", "application/json")
    folders = {"s/": "/search/", "m/": "/assets/javascripts/lunr/min/"}
    assert found == {
        f"{folders.get(name[:2], name[:2])}{name[2:]}{'.min' * name.startswith('m/')}.js X" for name in expected
    }


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (
            """{"docs":[{"location":"","text":"/z.png"},{"location":"two/#a"},{"location":"two/#b"},8,
            {"location":"g/one.html"},{"location":"/s/x/"},{"location":"x:y"},{"location":7}]}""",
            {"/s/", "/s/two/", "/s/g/one.html"},
        ),
        (
            '{"index":{"ref":"url","documentStore":{"store":{"./":["a"]}}},"store":{"./":{},"a/b c.html":{}}}',
            {"/s/search/", "/s/search/a/b%20c.html"},
        ),
        ('{"version":"0.5.12","ref":"url","documentStore":{"store":{"a.html#x":["w"]}}}', {"/s/search/a.html"}),
        ('{"version":"0.5.12","ref":"id","documentStore":{"store":{"a.html":["w"]}}}', set()),
        ('{"docs":{"location":"a/"},"index":[],"ref":"url","store":["a.html"],"documentStore":1}', set()),
        ('{"docs":[{"location":"a/"', set()),
        ('{"docs":' + "[" * 100_000, set()),
    ],
    ids=["MkDocs", "GitBook 3", "GitBook 2", "unknown names", "other types", "torn", "deep"],
)
def test_the_pages_in_a_search_index(index: str, expected: set[str]) -> None:
    assert named(index, "/s/search/search_index.json", "application/json") == {f"{page} X" for page in expected}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (
            '{"config":{"lang":["de"]},"items":[{"location":""},{"location":"a/b/#x"},{"location":"//b.example/c/"}]}',
            {"/s/", "/s/a/b/"},
        ),
        ('{"config":{"lang":["en"]},"pages":["/a.html","b.html"]}', set()),
        ('{"items":[{"location":"Town hall"}]}', set()),  # of another program
    ],
)
def test_the_pages_in_the_search_index_of_zensical(index: str, expected: set[str]) -> None:
    """It lies at the root of the site. Without an address of the site in its settings, only it names some pages."""
    assert named(index, "/s/search.json", "application/json") == {f"{page} X" for page in expected}


WORKER = "self.addEventListener('install',()=>self.skipWaiting());"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WORKER + "c.addAll(['a/b.html','d.html','img/c.png'])", {"a/b.html", "d.html", "img/c.png"}),
        ('define(["./workbox-1a"],function(e){e.precacheAndRoute([],{})})', {"workbox-1a.js"}),
        ('define(["require", "exports", "./a/b", "../c.js", "d", "text!./e.txt"], f)', {"a/b.js", "../c.js"}),
        ('typeof define=="function"&&define.amd?define(["./a"],f):f()', set()),
        (
            'e.precacheAndRoute([{url:"a",revision:"1"},{url:"b.html",revision:null},{"revision":"2","url":"/c"}],{})',
            {"a", "b.html", "/c"},
        ),
        (
            "p='precache';e.addToCacheList([{'revision':'1','url':'404.html'},{'url':'app-1.js'}])",
            {"404.html", "app-1.js"},
        ),
        ('f([{url:"a",revision:"1"}])', set()),
        (
            "workbox.setConfig({modulePathPrefix: 'wb-v4'});workbox.core.skipWaiting();workbox.cacheableResponse.f(x)",
            {"wb-v4/workbox-core.prod.js", "wb-v4/workbox-cacheable-response.prod.js"},
        ),
    ],
)
def test_what_a_service_worker_keeps_is_relative_to_the_worker(text: str, expected: set[str]) -> None:
    document = Document(f"{ROOT}/s/sw.js", "text/javascript", "utf-8", text.encode(), Hop.SPECULATIVE, f"{ROOT}/s/a/b")
    found = {link.url.removeprefix(ROOT) for link in links(document).links}
    assert found == {f"/s/{name}".replace("/s//", "/").replace("/s/..", "") for name in expected}


@given(st.text(alphabet="{}[]\"'url:revision,. \n", max_size=300))
def test_any_list_of_a_service_worker(text: str) -> None:
    document = Document(f"{ROOT}/sw.js", "text/javascript", "utf-8", f"precacheAndRoute([{text}".encode())
    assert all(link.url.startswith(ROOT) for link in links(document).links)


@given(st.text(alphabet='{}"\\:,0123 \nabc=_', max_size=300))
def test_any_table_of_doxygens_search(text: str) -> None:
    manual("var indexSectionsWithContent =\n{" + text, "/d/search/searchdata.js")
    manual(sections(text, text), "/d/search/searchdata.js")


NUXT = (
    r'<script>__NUXT__.config={app:{baseURL:"\u002Fa\u002F",buildId:"b-1",'
    'buildAssetsDir:"/_nuxt/",cdnURL:"CDN"}}</script>'
)
ROUTER = '<script>window.__reactRouterContext = {"basename":"/b","ssr":true};</script>'
LOADED = (
    "<script>window.__reactRouterContext.streamController.enqueue("
    r'"[{\"_1\":2,\"_3\":-5},\"loaderData\",{DATA}]");</script>'
)
WITH_DATA, WITHOUT = ROUTER + LOADED.replace("DATA", r"\"_5\":6"), ROUTER + LOADED.replace("DATA", "")


def of_svelte(*nodes: str, declared: bool = False) -> str:
    listed = f"[{','.join(nodes)}]"
    start = "kit.start(app,element,{node_ids:[0,2],"
    call = f"const data = {listed};{start}data,form:null}});" if declared else f"{start}data: {listed},form:null}});"
    return f"<script>{{{call}}}</script>"


DATA = '{type:"data",data:{t:"a],[ \\"b",d:new Date(1),m:new Map([["a",1]])},uses:{params:["s"]}}'
OF_URL = '{type:"data",data:{},uses:{url:1}}'


def of_next(route: str) -> str:
    return f'<script id=__NEXT_DATA__ type=application/json>{{{route},"buildId":"b","gsp":true}}</script>'


@pytest.mark.parametrize(
    ("at", "page", "expected"),
    [
        ("/a/x", NUXT.replace("CDN", ""), {"/a/_nuxt/builds/meta/b-1.json"}),
        ("/a/x", NUXT.replace("CDN", "/cdn"), {"/cdn/_nuxt/builds/meta/b-1.json"}),
        ("/s/p", of_svelte("null", DATA), {"/s/p/__data.json?x-sveltekit-invalidated=01"}),
        ("/s/p", of_svelte("null", DATA, declared=True), {"/s/p/__data.json?x-sveltekit-invalidated=01"}),
        ("/p.html", of_svelte("null", DATA), {"/p.html__data.json?x-sveltekit-invalidated=01"}),
        ("/", of_svelte(DATA, DATA), {"/__data.json?x-sveltekit-trailing-slash=1&x-sveltekit-invalidated=01"}),
        ("/p?q=1", of_svelte(OF_URL, DATA), {"/p/__data.json?q=1&x-sveltekit-invalidated=11"}),
        ("/p", of_svelte(DATA, DATA, DATA), {f"/p/__data.json?x-sveltekit-invalidated={b}" for b in ("011", "001")}),
        ("/p", of_svelte(DATA, "null"), {"/p/__data.json"}),
        ("/p", of_svelte(DATA, DATA).replace("]", ""), {"/p/__data.json"}),
        ("/p", of_svelte("null", "null"), set()),
        ("/b", WITH_DATA, {"/b/_root.data"}),
        ("/b/c/", WITH_DATA, {"/b/c.data"}),
        ("/", WITH_DATA.replace('"/b"', '"/"'), {"/_root.data"}),
        ("/b/c", WITHOUT, set()),
        ("/b/c", WITH_DATA.replace("reactRouter", "remix"), {"/b/c.data"}),
        ("/c/d", of_next('"query":{"s":["c","d e"]},"page":"/[...s]"'), {"/_next/data/b/c/d.json?s=c&s=d+e"}),
        ("/c", of_next('"query":{},"page":"/c"'), {"/_next/data/b/c.json"}),
        ("/c", of_next('"query":{broken}'), {"/_next/data/b/c.json"}),
        ("/c", of_next(r'"query":{"s":"\ud800"}'), {"/_next/data/b/c.json?s=%3F"}),
    ],
)
def test_page_data_loaded_by_links(at: str, page: str, expected: set[str]) -> None:
    assert named(page, at) == {f"{name} X" for name in expected}


ROUTER_OF_EXPORT = '(e=new URL(e)).pathname.endsWith("/")?e.pathname+="index.txt":e.pathname+=".txt"'


@pytest.mark.parametrize(
    ("page", "script", "expected"),
    [
        ("/b/", ROUTER_OF_EXPORT, {"/b/index.txt"}),
        ("/b/a", ROUTER_OF_EXPORT, {"/b/a.txt"}),
        ("/b/a.html", ROUTER_OF_EXPORT, set()),
        ("/b/a", 'e.endsWith("/index.txt")?10:4', set()),
    ],
)
def test_the_router_of_a_next_site_of_files_names_the_payload_of_its_page(
    page: str, script: str, expected: set[str]
) -> None:
    at = f"{ROOT}/b/_next/static/chunks/1.js"
    found = links(Document(at, "text/javascript", "", script.encode(), Hop.REQUISITE, f"{ROOT}{page}")).links
    assert {link.url.removeprefix(ROOT) for link in found} == expected


PAYLOAD = (
    '1:"$Sreact.fragment"\n2:I[2619,["619","static/chunks/619.js"],""]\n0:{"P":null,"b":"x","p":"","c":[OWN],"i":false,'
    '"f":[["$","$L2",null,{"href":"/","children":"H"}],["$","$L2","k",{"className":"c","href":"/a#x"}],'
    '["$","$L2",null,{"href":"/d/e","prefetch":false}],["$","$L2",null,{"href":"/f"}],["$","a",null,{"href":"/no"}],'
    '["$","$L2",null,{"href":"/g.pdf"}],["$","$L2",null,{"href":"//h"}],["$","$L2",null,{"href":"#i"}]]}'
)


@pytest.mark.parametrize(
    ("at", "own", "expected"),
    [
        ("/b/d/e.txt", '"","d","e"', {"index", "a", "d/e", "f"}),
        ("/b/d/e/index.txt", '"","d","e",""', {"index", "a/index", "d/e/index", "f/index"}),
        ("/b/index.txt", '"",""', {"index", "a", "a/index", "d/e", "d/e/index"}),
    ],
)
def test_a_payload_of_next_names_those_of_its_links(at: str, own: str, expected: set[str]) -> None:
    found = named(PAYLOAD.replace("OWN", own), at, "text/plain", Hop.SPECULATIVE)
    assert found == {f"/b/{name}.txt X" for name in expected}


@pytest.mark.parametrize(
    ("at", "own", "tree"),
    [("/d/e.txt", '"","d","e"', "/d/e/"), ("/d/index.txt", '"","d",""', "/d/"), ("/index.txt", '"",""', "/")],
)
def test_a_payload_of_next_16_names_its_tree(at: str, own: str, tree: str) -> None:
    text = PAYLOAD.replace("OWN", own).replace('"f":[', '"t":{"t":{"s":""}},"f":[')
    assert f"{tree}__next._tree.txt X" in named(text, at, "text/plain", Hop.SPECULATIVE)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (['"s":"__PAGE__","h":160'], {"__next.__PAGE__"}),
        (
            [
                '"s":"posts","h":96,"c":"$Q2"',
                '"s":{"n":"slug","t":"d","k":"p1","s":[]},"h":96,"c":"$Q3"',
                '"s":"__PAGE__"',
            ],
            {"__next.posts.$d$slug.__PAGE__"},
        ),
        (['"s":"(shop)","c":"$Q2"', '"s":"__PAGE__"'], {"__next.!KHNob3Ap.__PAGE__"}),
        (
            ['"s":"a","c":"$Q2"}],["modal",{"s":"__DEFAULT__"', '"s":"__PAGE__"'],
            {"__next.a.__PAGE__", "__next.@modal.__DEFAULT__"},
        ),
        (['"s":"a","c":"$Q1"', '"s":"__PAGE__"'], set()),
        ([], set()),
    ],
)
def test_the_tree_of_next_16(rows: list[str], expected: set[str]) -> None:
    lines = [f'{number}:[["children",{{{row}}}]]' for number, row in enumerate(rows, 1)]
    text = "\n".join([':HL["/_next/1.css","style"]', *reversed(lines), '0:{"b":"x","t":{"t":{"s":"","c":"$Q1"}}}'])
    found = named(text, "/d/__next._tree.txt", "text/plain", Hop.SPECULATIVE)
    assert found == {f"/d/{name}.txt X" for name in expected}


@pytest.mark.parametrize(
    "row", ['1:"/b/_next/static/chunks/1.js"', ':HL["/b/_next/1.css","style"]', '0:I[2619,["1"],""]']
)
def test_a_payload_of_next_may_begin_with_another_row(row: str) -> None:
    text = row + "\n" + PAYLOAD.replace("OWN", '"","d","e"')
    assert "/b/d/e.txt X" in named(text, "/b/d/e.txt", "text/plain", Hop.SPECULATIVE)


def test_other_texts_are_no_payloads() -> None:
    assert named(PAYLOAD.replace("1:", "Hello:", 1), "/b/a.txt", "text/plain", Hop.SPECULATIVE) == set()
    assert named(PAYLOAD, "/b/a.txt", "text/plain", Hop.LINK) == set()
    assert named(PAYLOAD, "/b/a/__next.a.__PAGE__.txt", "text/plain", Hop.SPECULATIVE) == set()


def test_the_scripts_of_islands() -> None:
    attributes = 'component-url="/_astro/A.1.js" renderer-url=b/client.js props="/p" opts=/x.png'
    page = f"<astro-island {attributes} ssr></astro-island>"
    found = links(Document(ROOT + "/a/", "text/html", "utf-8", page.encode(), Hop.LINK)).links
    assert {(link.url.removeprefix(ROOT), link.hop) for link in found} == {
        ("/_astro/A.1.js", Hop.REQUISITE),
        ("/a/b/client.js", Hop.REQUISITE),
        ("/x.png", Hop.SPECULATIVE),
    }


@pytest.mark.parametrize("at", ["/g/a/b/", "/g/a/b/index.html", "/g/a/b"])
@pytest.mark.parametrize("quote", ['"', r"\""])
def test_the_chunks_of_gatsby_are_below_its_prefix(at: str, quote: str) -> None:
    chunks = '{"app":["/app-1.js"],"c---d":["/c---d-2.js","/e.css"]}'.replace('"', quote)
    page = f"<script>window.pagePath='/a/b/';</script><script>window.___chunkMapping=\"{chunks}\";</script>"
    expected = {"app-1.js", "c---d-2.js", "e.css", "page-data/a/b/page-data.json", "page-data/app-data.json"}
    found = links(Document(ROOT + at, "text/html", "utf-8", page.encode(), Hop.LINK)).links
    assert {link.url.removeprefix(ROOT) for link in found} == {f"/g/{name}" for name in expected}


def test_the_slices_of_gatsby() -> None:
    data = '{"path":"/","staticQueryHashes":[],"slicesMap":{"foot":"foot--main","head":"head","x":"../y"}}'
    expected = {"/g/slice-data/foot--main.json E", "/g/slice-data/head.json E"}
    assert named(data, "/g/page-data/index/page-data.json", "application/json", Hop.REQUISITE) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<html q:container=paused q:base="/b/"><p on:click="q-1.js#s_a[0]">', {"/b/q-1.js E"}),
        ('<html q:container="paused" q:base="/b"><p q-e:click="x/c.mjs#s">', {"/b/x/c.mjs E"}),
        (r'<html q:container q:base="/b/"><script type="qwik/json">{"o":["\u0002q-1.js#s"]}</script>', {"/b/q-1.js E"}),
        ('<html q:container q:base="/b/"><a q:link href="#">', {"/d/e/q-data.json?x=1 X"}),
        ('<html q:container><a href="#" on:click="q-1.js#s">', set()),
        ('<html q:base="/b/"><a href="#" on:click="q-1.js#s">', set()),
    ],
)
def test_the_chunks_and_data_of_qwik(page: str, expected: set[str]) -> None:
    assert named(page, "/d/e?x=1") == expected


@pytest.mark.parametrize(
    ("index", "page", "expected"),
    [
        ('{docnames:["index","sub/orphan"],envversion:{}})', "search.html", {"index.html", "sub/orphan.html"}),
        (
            '{"alltitles": {"A": [[0, "a"]]}, "docnames": ["a]\\ud55c? b"]})',
            "search.html",
            {"a%5D%ED%95%9C%3F%20b.html"},
        ),
        ('{"docnames":["index","sub/index","myindex","a"]})', "search/", {"", "sub/", "myindex/", "a/"}),
        ('{"docnames":["a"]})', "", {"a.html"}),
        ('{"docnames":[["a"],1,{},"\\ud800"]})', "search.html", {"%3F.html"}),
        ('{"docnames":["a"', "search.html", set()),
        ('{"docnames":' + "[" * 100_000, "search.html", set()),
        ('{"titles":["docnames"]})', "search.html", set()),
    ],
    ids=["old", "new", "folders", "start page", "other types", "torn", "deep", "no names"],
)
def test_the_pages_in_the_search_index_of_sphinx(index: str, page: str, expected: set[str]) -> None:
    """A page that no table of contents names is found by the search only."""
    document = Document(
        "http://h/s/searchindex.js",
        "text/javascript",
        None,
        f"Search.setIndex({index}".encode(),
        page=f"http://h/s/{page}",
    )
    found = {link.url for link in links(document).links if link.hop is Hop.SPECULATIVE}
    assert found == {f"http://h/s/{name}" for name in expected}


@pytest.mark.parametrize(
    ("nodes", "at", "expected"),
    [
        (
            '={"extras":[{"id":"read-me","headers":[{"id":"Use"}]}],"modules":[{"id":"A.B","nodes":[{"id":"run/4"}]}]}',
            "dist/sidebar_items-1A2B.js",
            {"read-me.html", "A.B.html"},
        ),
        (' = {\n  "modules": [\n{"id": "A"\n}]\n};\nfill(sidebarNodes);', "sidebar_items.js", {"A.html"}),
        ('={"extras":[{"id":"paper","url":"http://p.example/"}],"modules":[{"id":7},1],"x":"y"}', "dist/a.js", set()),
        ('={"extras":[{"id":"a"}', "dist/a.js", set()),
        ("=[]", "dist/a.js", set()),
        ('={"extras":' + "[" * 100_000, "dist/a.js", set()),
    ],
    ids=["new", "old", "other types", "torn", "no object", "deep"],
)
def test_the_sidebar_of_exdoc(nodes: str, at: str, expected: set[str]) -> None:
    """A script writes the list of modules and pages into each page."""
    document = Document(
        f"http://h/s/{at}", "text/javascript", None, f"sidebarNodes{nodes}".encode(), page="http://h/s/"
    )
    found = {link.url for link in links(document).links if link.url.startswith("http://h/")}
    assert found == {f"http://h/s/{name}" for name in expected}


DOCC = """<script>var baseUrl = "/Cast/"</script><script src="/Cast/js/index.d2.js"></script>
<noscript>This page requires JavaScript.</noscript><div id="app"></div>"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("/Cast/documentation/cast/cast(_:)/", {"data/documentation/cast/cast(_:).json"}),
        ("/Cast/tutorials/a?b=c#d", {"data/tutorials/a.json"}),
        ("/Cast/documentation/", {"data/documentation.json"}),
        ("/Cast/", set()),
        ("/documentation/cast/", set()),
    ],
)
def test_the_data_of_a_page_of_docc(page: str, expected: set[str]) -> None:
    found = links(Document(f"http://h{page}", "text/html", None, DOCC.encode())).links
    loaded = {(url.path(link.url), link.hop) for link in found if link.url.endswith(".json")}
    assert loaded == {(f"/Cast/{name}", Hop.REQUISITE) for name in (*expected, "index/index.json")}


@pytest.mark.parametrize(
    ("data", "at", "expected"),
    [
        (
            r'{"a":{"url":"doc:\/\/C\/d"},"b":{"url":"\/documentation\/c\/f(_:)"},"c":[{"url":"\/images\/c\/i.png"}]}',
            "/c/data/documentation/c.json",
            {"/c/documentation/c/f(_:)", "/c/images/c/i.png"},
        ),
        (
            '{"interfaceLanguages":{"swift":[{"children":[{"path":"/documentation/c/a b"}],"path":"/tutorials/c"}]}}',
            "/index/index.json",
            {"/tutorials/c", "/documentation/c/a%20b"},
        ),
        ('{"pictures":[{"url":"/a/b.png"}]}', "/c/data/documentation/c.json", set()),
    ],
    ids=["page", "list of all pages", "another program"],
)
def test_the_data_of_docc(data: str, at: str, expected: set[str]) -> None:
    """Paths in it begin at the base of the site."""
    assert {name.split()[0] for name in named(data, at, "application/json")} == expected


@pytest.mark.parametrize(
    ("data", "at", "expected"),
    [
        (
            '{"dataUrl":"g.data.unityweb","wasmCodeUrl":"g.wasm.code.unityweb","x":1}',
            "/a/g.json",
            {"/a/g.data.unityweb"},
        ),
        (
            '{"resources":{"a":{"de":{"de/A.resources.dll":"a"}},"b":[1],"c":{"A.dll":"b"}},"config":["appsettings.json",7]}',
            "/a/_framework/blazor.boot.json",
            {"/a/_framework/de/A.resources.dll", "/a/_framework/A.dll", "/a/appsettings.json"},
        ),
        ('{"resources":{"assembly":["A.dll"]},"config":"x"}', "/a/_framework/blazor.boot.json", set()),
        ('{"assets/b.png":["assets/b.png"]}', "/a/assets/AssetManifest.json", {"/a/assets/assets/b.png"}),
        (
            '[{"fonts":[{"asset":"f.otf"},{"asset":1},2]},{"fonts":3},4]',
            "/a/assets/FontManifest.json",
            {"/a/assets/f.otf"},
        ),
        ('"BwVhLnBuZwf/YQ=="', "/a/assets/AssetManifest.bin.json", {"/a/assets/a.png"}),
        ('"not base64!"', "/a/assets/AssetManifest.bin.json", set()),
        ("[" * 100_000, "/a/assets/FontManifest.json", set()),
    ],
    ids=["Unity", ".NET 7", "other types", "assets", "fonts", "binary assets", "damaged", "deep"],
)
def test_the_lists_of_applications(data: str, at: str, expected: set[str]) -> None:
    document = Document(f"http://h{at}", "application/json", None, data.encode(), page="http://h/a/")
    assert {link.url for link in links(document).links} >= {f"http://h{name}" for name in expected}
    assert expected or not links(document).links


@pytest.mark.parametrize(
    "text", ['const RESOURCES = {"en": "English"};', "var executable = 1, fileSizes = {}", "frameworkUrl"]
)
def test_other_scripts_are_no_applications(text: str) -> None:
    assert not links(Document("http://h/a.js", "text/javascript", None, text.encode(), page="http://h/")).links
    assert not links(Document("http://h/", "text/html", None, f"<script>{text}</script>".encode())).links


def test_a_template_in_the_settings_of_unity_is_no_name() -> None:
    text = '<script>b="Build";start({dataUrl:b+"/x.data.br",frameworkUrl:`${b}/x.js.br`,codeUrl:`Build/x.br`})</script>'
    found = {link.url for link in links(Document("http://h/a/", "text/html", None, text.encode())).links}
    assert found == {"http://h/a/Build/x.data.br", "http://h/a/Build/x.br"}
