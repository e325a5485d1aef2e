"""Scripts: strings that are certainly files, and strings that never are.

The second table lists URLs that other crawlers request in vain.
"""

from functools import partial
from itertools import chain
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract import Document, links
from archiver.extract.references import WHOLE_URL
from archiver.extract.script import docsify, folders, generators, inline, javascript, markup, versions
from archiver.model import Hop
from fixtures.growth import growth

PAGE = "http://host.test/dir/page.html"
SCRIPT = "http://host.test/js/app.js"


def named(text: str, *, inline: bool = False) -> list[str]:
    return [name for name, context in javascript.references(text, inline=inline) if context != WHOLE_URL]


def found(text: str, media_type: str = "text/javascript", hop: Hop = Hop.REQUISITE, at: str = SCRIPT) -> list[str]:
    return [f"{link.url} {link.context}" for link in links(Document(at, media_type, None, text.encode(), hop)).links]


SURE = [
    ('x="/img/a.png"', "string", "/img/a.png"),
    ("x='/fonts/a.woff2?v=4.7.0'", "string", "/fonts/a.woff2?v=4.7.0"),
    ("x=`/css/site.css`", "string", "/css/site.css"),
    ('$.getJSON("/data/places.geojson",f)', "string", "/data/places.geojson"),
    ('fetch("https://cdn.test/a/b.json")', "string", "https://cdn.test/a/b.json"),
    ('x="//cdn.test/a.js"', "string", "//cdn.test/a.js"),
    ('x="http://10.0.0.7:8080/a.png"', "string", "http://10.0.0.7:8080/a.png"),
    ('x="http://[::1]:8080/a.png"', "string", "http://[::1]:8080/a.png"),
    ('x="http://wiki/a.png"', "string", "http://wiki/a.png"),
    ('use("/sprite.svg#icon-close")', "string", "/sprite.svg#icon-close"),
    (r'x="\/a\/b.jpg"', "string", "/a/b.jpg"),
    (r'x="\u002Fa\x2fb.jpg"', "string", "/a/b.jpg"),
    (r'x="\u{2f}a.jpg"', "string", "/a.jpg"),
    ('x=c?"/a.png":"/b.png"', "string", "/a.png /b.png"),
    ("`${f(`/in.png`)}${{a:1}}`;x='/after.png'", "string", "/in.png /after.png"),
    ('/["/]/.test(a);x="/b.png"', "string", "/b.png"),
    ("a=b/c;x='/d.png';e/f", "string", "/d.png"),
    ("return/[/\"']/.test(a)?'/a.png':0", "string", "/a.png"),
    ('{files:["/files/plan.pdf","/feed.xml"]}', "string", "/files/plan.pdf /feed.xml"),
    ('import a,{b}from"./c.js";import"./d.mjs"', "import", "./c.js ./d.mjs"),
    ("export * from \"../e.js\"; export {f} from\n'/g.js'", "import", "../e.js /g.js"),
    ('await import("./h.js"); import( `./i.js` ).then(j)', "import", "./h.js ./i.js"),
    ('importScripts("sw-lib.js", "/k.js")', "import", "sw-lib.js /k.js"),
    ('new URL("img/l.png",import.meta.url)', "url", "img/l.png"),
    ('new Worker(new URL("m.js", "" + import.meta.url),{type:"module"})', "url", "m.js"),
    ('fetch(new URL("./part.html", import.meta.url)); new URL("d.txt",import.meta.url)', "url", "./part.html d.txt"),
    ('import.meta.resolve("./a.css"); import.meta . resolve( "../b.png")', "import", "./a.css ../b.png"),
    ('new URL("/m.js", location); new URL("/n.json", window.location.origin)', "string", "/m.js /n.json"),
    ('x="/sw.js?v=" + encodeURIComponent(v)', "string", "/sw.js"),
    ("fetch('/a.json?'+q); y = '/b.png?x=1&v=' + c + '&d'", "string", "/a.json /b.png"),
    ("a()\n//# sourceMappingURL=app.js.map\n", "sourcemap", "app.js.map"),
    ("a()\n//@ sourceMappingURL=app.js.map", "sourcemap", "app.js.map"),
]


@pytest.mark.parametrize(("text", "kind", "expected"), SURE, ids=[row[0][:30] for row in SURE])
def test_strings_that_are_certainly_files(text: str, kind: str, expected: str) -> None:
    assert list(javascript.references(text)) == [(reference, f"script/{kind}") for reference in expected.split()]


NEVER = [
    *("text/javascript", "application/json", "image/png", "text/css", "/text/javascript", "multipart/form-data"),
    *(
        "jquery.fn",
        "/jquery.fn",
        "/a.b",
        "a/b",
        "/a/b",
        "index.js",
        "app.min.js",
        "Node.js",
        "./src/index.js",
        "a/b.js",
    ),
    *("1.2.3", "/1.2.3", "v4.7.0", "MM/DD/YYYY", "d.m.Y", "dd/mm/yy", "yyyy-MM-dd", "0.5", "/", "//", "./", "../"),
    *("//div[@class='a.png']", "//a.png", "/html/body/div.png[1]", "/:id.json", "/*.js", "/**/*.css", "/{id}.json"),
    *("/img/%s.png", "/img/$1.png", "/<b>.html", "/a b.png", "See /help.html for more.", "/.js", "/.css", "/-min.js"),
    *(
        "/^a.js$/",
        "/a.js$",
        "/a|b.js",
        "(/a.js)",
        "http://",
        "https://host.test",
        "https://host.test/a",
        "http://a.png",
        "//a/b.png",
    ),
    *("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "data:image/png;base64,iVBO/a.png", "blob:/a.png"),
    *(
        "/a.json?id=",
        "/a.json?",
        "/a..png",
        "/../a.png",
        "/a//b.png",
        "/node_modules/a/b.js",
        "/__data.json",
        "/package.json",
    ),
    *("/x/index.js", "use strict", "mailto:a@b.test/c.png", "javascript:/a.js", ".png", ".js", "*.png", "#/a.html"),
    *("en-US", "+1/2", "r,g,b", "\\\\d+/a.js", "\\n/a.png", "/a\\n.png", "window.location.href", "a@b.test"),
]


@pytest.mark.parametrize("value", NEVER)
def test_strings_that_are_never_files(value: str) -> None:
    assert named(f'x="{value}"') == []


@pytest.mark.parametrize("value", [value for value in NEVER if value not in {"../", "./"}])
def test_strings_that_are_never_files_in_a_page_either(value: str) -> None:
    assert named(f'f("{value}")', inline=True) == []


@pytest.mark.parametrize(
    "text",
    [
        *('b+"/a.js?c="+d', '"/a.js?c="+=d', 'f("/a.html?id=" + d)', '"/a=" + b', '"a.json?b=" + c'),
        *('getDocsUrl({ asset: "/a.png" })', 'e.toURL({path:"/a.js",x:1})'),
        *('"/a.js"+b', 'b+"/a.js"', '"/a.js"==b', 'b==="/a.js"', 'b!="/a.js"', 'switch(a){case"/a.js":b()}'),
        *('a.indexOf("/a.js")', 'a.endsWith("/a.js")', 'a.split("/a.js")', 'a.replace("/a.png",b)', '"/a.js".length'),
        *('require("/a.js")', 'require("./a.js")', '{"/a.js":b}', 'f({"./a.js":1,"/b.js":2})', "gql`/a.js`"),
        *("// '/a.js'", "/* '/a.js' */", '/\'/.test("/")', 'x=/"\\/a.js"/', "`/${a}/b.js`", "`/a.js${b}`"),
        *('import a from "vue"', 'import "a.js"', 'import("a")', 'new URL("/a.js",b)', 'new URL("a.js",location)'),
        *('"/a.js', "'/a.js\n'", "\"/a.js'", 'console.log("/a.js")', "//# sourceMappingURL=data:application/json,{}"),
        *("self.webpackChunk=1;a.u=e=>e+'.js';a.p=''", "a.u=e=>({1:'b'}[e])+'.js';a.p='/'", 'Error("/a.js")'),
    ],
)
def test_strings_that_are_parts_or_names(text: str) -> None:
    assert named(text) == []


def test_relative_strings_in_a_page_are_relative_to_it() -> None:
    text = 'i.src="over.gif";f("images/a.jpg","../b.webp","app/c.js");new Worker("d.js");import("./e.js")'
    text += ";navigator.serviceWorker.register('sw.js')"
    assert named(text, inline=True) == ["over.gif", "images/a.jpg", "../b.webp", "d.js", "./e.js", "sw.js"]
    assert named(text) == ["./e.js"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            """self.webpackChunk=[];r.u=e=>"js/"+({1:"home"}[e]||e)+"."+{1:"aa",22:"bb"}[e]+".js",
            r.miniCssF=e=>"css/"+e+"."+{22:"cc"}[e]+".css",r.p="/app/",f()""",
            "/app/js/home.aa.js /app/js/22.bb.js /app/css/22.cc.css",
        ),
        (
            "webpackChunk;t.u=e=>27===e?'static/27-a.js':'static/'+(({9:'n'})[e]||e)+'.'+({9:'q'})[e]+'.js';t.p='/_next/'",
            "/_next/static/27-a.js /_next/static/n.q.js",
        ),
        (
            'webpackJsonp;function s(e){return u.p+"js/"+({0:"v"}[e]||e)+"."+{0:"h"}[e]+".js"}u.p="https://cdn.test/";',
            "https://cdn.test/js/v.h.js",
        ),
        (
            """__webpack_require__.u = (chunkId) => {
                // return url
                return '' + {'src_a':'x1'}[chunkId] + '.js';
            };
            var s = document.currentScript.src;
            __webpack_require__.p = s + '../';""",
            "../x1.js",
        ),
        (  # a single chunk has a name
            """webpackChunk;r.u=e=>"static/chunks/"+(113===e?"ad2866b8":e)+"."+({113:"3c",209:"a7"})[e]+".js";r.p="/_next/",
            r.miniCssF=e=>(e==="x"?'y':e)+".css",0!==e[t]&&{x:1,22:1}[t]&&f()""",
            "/_next/static/chunks/ad2866b8.3c.js /_next/static/chunks/209.a7.js /_next/y.css /_next/22.css",
        ),
        (
            """webpackChunk;r.u=e=>e+"."+({1e3:"a",62e4:"b","7e3":"c",e5:"d"})[e]+".js";r.p="/";""",
            "/1000.a.js /620000.b.js /7e3.c.js /e5.d.js",
        ),
        (
            """rspackChunk;t.push(n.p=e);_.p=o("url")+"/";_.u=e=>e+".js";_.e(1);currentScript;
            _.p=(e=e.replace(/^blob:/,"").replace(/#.*$/,""))+"../",f()""",
            "../1.js",
        ),
        (  # of several programs in one page: the folder of the script in two variables
            """webpackChunk;R.u=e=>""+e+".03957c.js?v=03957c";R.e("0").then(f);document.currentScript;
            R.p=J=J.replace(/^blob:/,"").replace(/#.*$/,"").replace(/\\?.*$/,"").replace(/\\/[^\\/]+$/,"/"),R.c={}""",
            "./0.03957c.js?v=03957c",
        ),
        (  # Rspack: more brackets, another name, and a style sheet of one chunk
            """self.rspackChunk=[];i.u=e=>"js/"+(({1:"a"})[e]||e)+"."+({1:"f0"})[e]+".js",i.miniCssF=e=>"css/a.e1.css",
            document.currentScript;if(i.p=(l=l.replace(/^blob:/,"").replace(/#.*$/,""))+"../","u">typeof document){}""",
            "../js/a.f0.js ../css/a.e1.css",
        ),
        (  # no table is needed: what the script asks for, and of style sheets the chunks that have one
            """webpackChunk;n.u=e=>({1:"a"}[e]||e)+".js",n.miniCssF=e=>e+".9f.css",n.p="/",0!==e[t]&&{1:1}[t]&&f();
            n.e(1),n.e(22).then(n.bind(n,"x")),new URL(n.p+n.u("late"))""",
            "/a.js /22.js /late.js /1.9f.css",
        ),
        (  # a development build: each module is a string
            """__webpack_require__.u = (chunkId) => ("js/" + chunkId + ".js"); __webpack_require__.p = "/";
            eval("f(__webpack_require__.e(/*! import() */ \\"src_a_js\\"))");
            f(__webpack_require__.e(/*! import() | b */ "src_b_js"))""",
            "/js/src_a_js.js /js/src_b_js.js",
        ),
        (  # a loader in a script of its own: which chunk the others load is known only if it has a style sheet
            """webpackChunk;n.u=e=>"js/"+e+".f0.js",n.miniCssF=e=>e+".9f.css",n.p="/",0!==e[t]&&{7:1}[t]&&f();{8:1}[t]""",
            "/js/7.f0.js /7.9f.css",
        ),
        (  # the folder of the script, without a variable for its address
            """webpackChunk;r.u=e=>e+".f0.js";r.e(1);document.currentScript;q.p="";
            r.p=e.replace(/^blob:|[?#].*$/g,"").replace(/\\/[^/]+$/,"/")+"../"})()""",
            "../1.f0.js",
        ),
        (  # modules, which import their parts themselves; their style sheets are still joined
            """__webpack_esm_ids__;import.meta.url;r.miniCssF=e=>"css/"+e+".css";0!==e[t]&&{1:1}[t]&&f();
            r.p=e.replace(/^blob:|[?#].*$/g,"").replace(/\\/[^/]+$/,"/")+"../",import("./a.js")""",
            "../css/1.css ./a.js",
        ),
        (
            """parcelRequire1;Object.assign(a.i??={},{kf1V9:"deep.87f9ba98.js"});r("x").register(
            JSON.parse('{"5xQz1":"index.2f4c6a8b.js","6Wv4c":"a.b.js"}'))""",
            "./deep.87f9ba98.js ./index.2f4c6a8b.js",
        ),
        (
            'const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=["./a.js","./b.css","/c.js"])))=>i',
            "./a.js ./b.css /c.js",
        ),
        (
            'const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=["assets/a.js","assets/b.css"])))=>i',
            "../assets/a.js ../assets/b.css",
        ),
    ],
)
def test_files_that_loaders_assemble(text: str, expected: str) -> None:
    assert named(text) == expected.split()


@pytest.mark.parametrize(
    ("address", "text", "expected"),
    [
        ("/app/js/1.js", 'r.p+"a.png",r.p+"fonts/b.woff2"', "/app/a.png /app/fonts/b.woff2"),
        ("/app/static/js/1.js", 'r.p+"static/media/a.png"', "/app/static/media/a.png"),
        ("/app/1.js", 'r.p+"img/a.png";r.p+"b";r.p+"c.png"+d', "/app/img/a.png"),
        ("/x/static/1.js", 'r.p+"a.worker.1.js"', "/x/static/a.worker.1.js"),
        ("/js/main.js", 'r.p+"a.png",r.p="/cdn/",f()', "/cdn/a.png"),
        ("/js/main.js", 'currentScript;r.p+"a.png",r.p=e+"../",f()', "/a.png"),
        ("/shop/_next/static/chunks/1.js", '["static/chunks/2.js","static/chunks/3.css","chunks/4.js"]', "2.js 3.css"),
    ],
)
def test_files_below_the_folder_that_the_loader_states(address: str, text: str, expected: str) -> None:
    body = f"(self.webpackChunk=self.webpackChunk||[]).push({text})".encode()
    found = links(Document(f"http://h.test{address}", "text/javascript", "", body, Hop.REQUISITE)).links
    folder = "/shop/_next/static/chunks/" if "_next" in address else ""
    assert [link.url for link in found] == [f"http://h.test{folder}{name}" for name in expected.split()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"version": "1.0", "title": "1", "aliases": ["latest"]}, {"version": "dev", "aliases": []}]', "1.0/ dev/"),
        ('[{"name": "x (dev)", "version": "dev", "url": "https://x.test/dev/"}]', "https://x.test/dev/"),
        ('var DOC_VERSIONS = [\n "stable",\n "v1.0" ];', "stable/ v1.0/"),
        *((text, "") for text in ('[{"version": "1.0"}]', '[{"version": "../a", "aliases": []}]', '[{"version": "1"')),
        *((text, "") for text in ('[{"version":1,"aliases":[]}, 2, null]', 'DOC_VERSIONS = ["a"]', '{"version": "1"}')),
    ],
)
def test_versions_of_a_manual(text: str, expected: str) -> None:
    assert list(versions.listed(text)) == expected.split()


def test_names_of_modules_in_a_development_build_are_no_files() -> None:
    name = "./pages/a/long/name/of/a/folder/somewhere/a.png"
    text = f"""f(__webpack_require__(/*! {name} */ "{name}"), __webpack_require__(/*! ./img/a.png */ "./img/a.png")
    /***/ "./img/a.png"
    /*!****!*\\
      !*** ./img/a.png ***!"""
    assert list(javascript.references(text, near=True)) == []


@pytest.mark.parametrize("folder", ["", "./", "static/", "../"])
def test_chunks_in_a_folder_relative_to_the_page(folder: str) -> None:
    text = f'self.webpackChunk=1;x.p="no/";r.u=e=>"js/"+e+"."+{{1:"f0"}}[e]+".js",r.p="{folder}",r.p+"a.png"'
    script, page = "http://h.test/files/app/main.js", "http://h.test/shop/here/"
    body = text.encode()
    found = links(Document(script, "text/javascript", "", body, Hop.REQUISITE, page=page)).links
    assert {link.url for link in found} == {urljoin(page, f"{folder}{name}") for name in ("js/1.f0.js", "a.png")}
    inline = f"<script>{text}</script>".encode()
    assert f"{urljoin(page, folder)}js/1.f0.js" in {
        link.url for link in links(Document(page, "text/html", "", inline)).links
    }


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/app/assets/1.js", "/app/assets/a.js /app/assets/x/b.css /app/c.js"),
        ("/app/assets/x/2.js", "/app/assets/a.js /app/assets/x/b.css /app/assets/c.js"),
        ("/app/js/1.js", "/app/assets/a.js /assets/x/b.css /app/c.js"),  # as deep below the base as each file
    ],
)
def test_files_that_vite_preloads_from_folders_of_any_depth(address: str, expected: str) -> None:
    body = b'const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=["assets/a.js","assets/x/b.css","../c.js"])))=>i'
    found = links(Document(f"http://h.test{address}", "text/javascript", "", body, Hop.REQUISITE)).links
    assert [link.url.removeprefix("http://h.test") for link in found] == expected.split()


TREE = """var branch =
[
    [ "A \\"[ b", "d0/d01/a.html#x", "d0/d01/a" ],
    [ "C", null, [
      [ "D", "d.html", null ] ] ]
];
"""


@pytest.mark.parametrize(
    ("text", "address", "expected"),
    [
        (
            """var menudata={children:[
{text:"Main \\"Page",url:"index.html"},
{text:"Classes",url:"annotated.html",children:[
{text:"Elsewhere",url:"^https://other.test/a"}]}]}""",
            "menudata.js",
            "index.html L annotated.html L https://other.test/a L",
        ),
        (TREE, "branch.js", "d0/d01/a.html#x L d0/d01/a.js E d.html L"),
        (
            TREE,
            "m/d0/dff/branch.js",
            "../../d0/d01/a.html#x L ../../d0/d01/a.js E ../../d.html L",
        ),
        (
            TREE.replace("d.html", "^https://d.test/d"),
            "m/d0/dff/b.js",
            "../../d0/d01/a.html#x L ../../d0/d01/a.js E https://d.test/d L",
        ),
        (
            TREE.replace("branch", "NAVTREE") + 'var NAVTREEINDEX =\n[\n"a.html",\n"b.html#c"\n];',
            "navtreedata.js",
            "d0/d01/a.html#x L d0/d01/a.js E d.html L navtreeindex0.js E navtreeindex1.js E",
        ),
        ("NAVTREE[0];n.html('<img src=\"'+relpath+'sync_on.png\" title=\"\"/>')", "navtree.js", "sync_on.png E"),
        ('i.src = node.relpath+"ftv2pnode.png"; // NAVTREE', "navtree.js", "ftv2pnode.png E"),
        ('e=this.props.baseUrl+"/doc-index.json",t=0', "haddock-bundle.min.js", "doc-index.json X"),
        (
            """createElem(doc, tag, 'type-search-index.js');$.get(pathtoroot + "tag-search-index.zip")
            script.src = pathtoroot + path; a('b.js'); u = pathtoroot + "c.html" """,
            "script.js",
            "type-search-index.js X tag-search-index.zip X",
        ),
        ("i.attr('src', src.substr(0, src.length-9) + 'plus.png')", "doctools.js", "plus.png X"),
        ("el.src = `${el.src.substr(0, el.src.length - 9)}plus.png`;", "doctools.js", "plus.png X"),
        ("$(i).attr('src',src.substring(0,src.length-10)+'open.png');", "dynsections.js", "open.png X"),
        ("l = a.substring(0,a.length-10)+'open.png'", "other.js", ""),
        ("toggle = '/plus.png'", "doctools.js", ""),
        ('[["/",{loader:()=>f()}],["/b/c.html",{loader:g}]]', "v/assets/app.js", "../ X ../b/c.html X"),
        ('i="search-index{dir}.json?_=5e",p=1', "d/assets/js/1.js", "../../search-index.json?_=5e X"),
        ("i='search-index{dir}-5e.json'", "d/assets/js/1.js", "../../search-index-5e.json X"),
        ('new Worker(joinUrl(base_url, "search/worker.js"))', "search/main.js", "../search/worker.js X"),
        (
            "var index_path = base_path + '/search_index.json';",
            "search/worker.js",
            "lunr.js X search_index.json X",
        ),
        ('var branch = [["A", "a.html", "a"]]; f({text:"A",url:"b.html"})', "a.js", ""),
    ],
)
def test_scripts_of_generated_documentation(text: str, address: str, expected: str) -> None:
    got = [f"{reference} {hop}" for reference, hop, _ in generators.script_urls(text, f"http://host.test/{address}")]
    assert " ".join(got) == expected


PAGES = [
    ("x='/good/query/string.html?foo=bar'", "/good/query/string.html?foo=bar"),
    ("[{title:'A',url:'a.html'}]", "a.html"),
    ('{"toc":["a.html","b/c.html#d"]}', "a.html b/c.html#d"),
    ("['Title','a.html',null],['B','b.html',[]]", "a.html b.html"),
    ("{'a.html':'A',\n'b.html':'B'}", "a.html b.html"),
    ('$("#nav").load("nav.html")', "nav.html"),
    ("e.href='next.html';", "next.html"),
    ('[{"url":"/docs/a"},{"url":"/docs/b/"},{"url":"/docs/c#d"}]', "/docs/a /docs/b/ /docs/c#d"),
    ('k(L,{to:"/a",children:"A"}),k(L,{to:"/b"}),k(L,{to:"/b/c"})', "/a /b /b/c"),
    ('k(L,{to:"/a"}),k(L,{to:`/b/${i}`}),k(R,{from:"/b",to:"../c"})', ""),
    ("nav('a/b.html','../../');f(\"c.html\", `../`, 1)", "../../a/b.html ../c.html"),
    (
        "['/a/b.html','../'],['http://h.test/c.html','../'],['./d.html','../']",
        "/a/b.html http://h.test/c.html ./d.html",
    ),
    (
        '{"fields":["title","b"],"fieldVectors":[["title/a/b.html",[0,0.6]],["b/a/b.html",[]]],"x":["other/d.html"]}',
        "a/b.html other/d.html",
    ),
    ('{"fields":["title"],"x":[["title/a.html",[0,0.6]],["title/b.html",[]]]}', "title/a.html title/b.html"),
    ("x={index:'index.html'}", ""),
    ("f('index.html', 1)", ""),
    ("x = 'a.html' + y; z = y + 'b.html'; a == 'c.html'", ""),
    ("x = y ? '/a.html' : 'b.html'", ""),
    ('[{"url":"/docs/a"},{"href":"\\/docs\\/b\\/"}]', "/docs/a /docs/b/"),
    ('[{"u":"/docs/a"},{"u":"/docs/b/"}]', ""),
    ('[{"url":"/api/a"},{"url":"/api/b/"},{"url":"/logout"},{"href":"/x/delete/"}]', ""),
    ('{"href":"https://h.test/index.php?rest_route=/wp/v2/comments&post=5","x":"/index.php?a&rest_route=%2Fb"}', ""),
    (
        '{"href":"https://h.test/index.php?route=/wp/v2","x":"/index.php?p=5"}',
        "https://h.test/index.php?route=/wp/v2 /index.php?p=5",
    ),
    ("define(['dojo/text!./a.html','dojo/text!./b.html'])", ""),
    ("['text/html','Object.html()','x.html=y','a b?.html']", ""),
    ("['a.do','b.do','e.pl','f.cgi']", ""),
    ("['e.exports','t.prototype','n.length']", ""),
    ("disqus_identifier = '/cache/a.html'; this.page.identifier = '/cache/b.html'", ""),
    ("{'identifier': '/cache/a.html', \"url\": \"/b.html\"}", "/b.html"),
]


ADDRESSES = [
    *(
        (text, "/a/b")
        for text in (
            'fetch("/a/b")',
            "const r = await fetch('/a/b', {headers: {Accept: 'application/json'}})",
            '$.get("/a/b", show); axios.get("/a/b").then(f)',
            '$("#x").load("/a/b")',
            '$.ajax({url: "/a/b", type: "GET", success: f})',
            'x.open("GET", "/a/b")',
            'this.http.get("/a/b"); httpGet("/a/b"); this.httpClient.get("/a/b")',
            'useSWR("/a/b", f)',
            'fetch(new Request("/a/b", {headers: h})); htmx.ajax("GET", "/a/b", "#x")',
            'a.href = "/a/b"; a.href == "/c"',
            "img.src='/a/b'",
            'e.setAttribute("href", "/a/b")',
            'document.location = "/a/b"',
            'e.onclick = () => { location.href = "/a/b" }',
            'location.assign("/a/b")',
            "window.open('/a/b', '_blank')",
            'this.$router.push("/a/b")',
            'history.pushState({}, "", "/a/b")',
            'navigate("/a/b", {replace: true})',
            'x = {link: "/a/b", title: "B"}',
            r'{"permalink":"\/a\/b"}',
            '$.ajax({type: "POST", url: "/c"}); $.ajax({url: "/a/b"})',
            'fetch("/a/b").then(f); fetch("/c", {method: "POST"})',
        )
    ),
    ('r=[{path:"/a/b",component:B}]', "/a/b"),
    ('k(Route,{path:"/a/b",element:k(B,{})})', "/a/b"),
    ('r=[{path:"/",component:A},{path:"/a/b",name:"b",component:()=>f(B)},{path:"*",component:N}]', "/a/b"),
    ('r=[{component:B,path:"/a/b"},{path:"/c/:id",component:C}]', "/a/b"),
    ('[{path:"/a/b",name:"b"},{path:"/a/:c",name:"c"},{path:"/x",component:X},{path:"/y",children:[]}]', "/a/b /x /y"),
    ('{"links":{"next":"/api/v1/a?page=2","self":"/api/v1/a"}}', "/api/v1/a?page=2"),
    ('{"@odata.nextLink":"http://host.test/api/a?skip=20","nextPageUrl":"/api/b"}', "/api/a?skip=20 /api/b"),
    ("const pages = ['/a/b', '/c',\n '/d/']", "/a/b /c /d/"),
    ('fetch("/a/b?page=2&sort=new")', "/a/b?page=2&sort=new"),
    ('fetch("/api/v1/things"); x = {url: "/api/v1/other"}', "/api/v1/things"),
    (
        'x = ["http://host.test/a/b", "https://www.host.test/c/", "http://other.test/d"]',
        "/a/b https://www.host.test/c/",
    ),
    (r'{"items":[{"page":"http:\/\/host.test\/a\/b"}]}', "/a/b"),
    *(
        (text, "")
        for text in (
            'fetch("/a/b", {method: "POST", body: x})',
            "fetch(`/a/b`,{method:`POST`})",
            '$.ajax({url: "/a/b", data: {x: 1}, type: "post"})',
            '$.ajax({type: "DELETE", url: "/a/b"})',
            '$.post("/a/b"); axios.put("/a/b"); x.open("POST", "/a/b"); new EventSource("/a/b")',
            'fetch("/a/b" + x); fetch(x + "/a/b"); fetch(`/a/${b}`)',
            'fetch("/logout"); location = "/cart/add/5"; $.get("/items/5/like"); fetch("/graphql"); fetch("/login")',
            'fetch("/list?action=delete&id=5"); a.href = "/index?do=logout"',
            'a.href = "/a b"; a.href = "/"; fetch("a/b")',
            'router.push(x); f("/a/b"); navigate(y), g("/c")',
            'f("/a/b"); x = ["/a/b", "/c"]; y = "/a/b"; map.get("/a/b"); x.replace("/a/b", "")',
            '{path: "/a/b"}; {path: "/c", key: 5}; {path: "/d", x: 1}',
            'x = {path: "/a/b", name: "b"}; y = {path: "/c", methods: {element: 1}}; z = {component: C, path: "c d"}',
            'fetch(new Request("/a/b", {method: "POST"})); htmx.ajax("POST", "/a/b", "#x"); f("GET", "/a/b")',
            'x = {apiUrl: "http://host.test/a", base: "http://host.test/b", "http://host.test/c": 1}',
            'x = "http://host.test/"; y = "http://host.test"; log("http://host.test/api/v1/x")',
            '// fetch("/a/b")',
        )
    ),
]


@pytest.mark.parametrize(("text", "expected"), ADDRESSES, ids=[row[0][:50] for row in ADDRESSES])
def test_addresses_without_an_extension(text: str, expected: str) -> None:
    """Where the code requests or opens them, and sends nothing; whole URLs only of the own host."""
    read = links(Document(SCRIPT, "text/javascript", None, text.encode(), Hop.REQUISITE)).links
    wanted = [name if "//" in name else f"http://host.test{name}" for name in expected.split()]
    assert [link.url for link in read] == wanted


def test_relative_addresses_without_an_extension_are_relative_to_their_page() -> None:
    script = """fetch('api/things?page=1'); $("#x").load( "../frag/a" ); x.open("GET", "b/c"); a.href = './d/e';
    f('g/h'); x = 'i/j'; y = ['k/l', 'text/html']; fetch('m/n', {method: 'POST'}); a.href = 'o/p' + q"""
    found = links(Document(PAGE, "text/html", None, f"<script>{script}</script>".encode())).links
    assert {link.url.removeprefix("http://host.test") for link in found} == {
        "/dir/api/things?page=1",
        "/frag/a",
        "/dir/b/c",
        "/dir/d/e",
    }


@pytest.mark.parametrize("kind", ["application/json", "text/javascript"])
def test_addresses_in_the_data_of_a_page(kind: str) -> None:
    data = '{"next":{"href":"/story/two"},"all":["http://host.test/story/three","http://other.test/x"],"n":"/x"}'
    page = f"<title>x</title><script type='{kind}'>{'x=' * (kind != 'application/json')}{data}</script>"
    found = links(Document(PAGE, "text/html", None, page.encode())).links
    assert {(link.url, link.hop) for link in found} == {
        (f"http://host.test/story/{name}", Hop.SPECULATIVE) for name in ("two", "three")
    }


@pytest.mark.parametrize(("text", "expected"), PAGES, ids=[row[0][:40] for row in PAGES])
def test_pages_that_a_script_lists(text: str, expected: str) -> None:
    assert [reference for reference, kind in javascript.references(text) if kind == javascript.PAGE] == expected.split()


def test_the_tokens_of_an_editors_language_are_no_pages() -> None:
    text = (
        'c={tokenPostfix:".php",tokenizer:{root:[[/<!--/,"comment.html","@c"],[/a/,["tag.html","number.hex.php"]]]}};'
    )
    assert named(text) == []
    assert named(f'{text} [{{url: "a.html"}}, {{url: "b/c.html"}}]') == ["a.html", "b/c.html"]
    assert named(text.replace("tokenPostfix", "x")) == ["comment.html", "tag.html", "number.hex.php"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'Tileset.fromUrl("t/tileset.json"); new Map({style: "s/style.json"}); ePub("a.epub")',
            "t/tileset.json s/style.json a.epub",
        ),
        ('require(["a/b.js"]); x("c/d.css"); y("e/@f"); z("data.json")', ""),
    ],
)
def test_data_in_a_folder_that_a_script_of_the_page_names(text: str, expected: str) -> None:
    assert named(text, inline=True) == expected.split()


@pytest.mark.parametrize(
    ("text", "media_type", "expected"),
    [
        (
            '{"asset":{"version":"2.0"},"buffers":[{"uri":"a.bin"}],"images":[{"uri":"t/b c.png"},{"uri":"data:,x"}]}',
            "model/gltf+json",
            {"/js/a.bin", "/js/t/b%20c.png"},
        ),
        ('{"buffers": [{"uri" : "a.bin"}]}', "text/plain", {"/js/a.bin"}),
        ('{"buffers": [{"uri" : "a.bin"}]}', "application/octet-stream", {"/js/a.bin"}),
    ],
)
def test_the_parts_of_a_model_are_in_its_folder(text: str, media_type: str, expected: set[str]) -> None:
    document = Document("http://host.test/js/m.gltf", media_type, None, text.encode(), Hop.SPECULATIVE, PAGE)
    assert {link.url.removeprefix("http://host.test") for link in links(document).links} == expected


def test_the_parts_of_tiles_of_a_landscape() -> None:
    text = '{"geometricError":9,"root":{"content":{"uri":"0.b3dm"},"children":[{"content":{"url":"c/1.json"}}]}}'
    data = found(text, "application/json", at="http://host.test/t/tileset.json")
    assert data == ["http://host.test/t/0.b3dm script/loader", "http://host.test/t/c/1.json script/loader"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e.innerHTML = '<li><a href=\"a.html\">A</a>' + '<a href=\"b' + '.html\">'", "a.html b.html"),
        (
            'w(\'<img src="./menu.svg"><a href="\' + x + \'" title="x"><a class="\' + y + \'" href="/b.html">\')',
            "./menu.svg /b.html",
        ),
        ("w('<img src=\"/i/' + n + '.png\" alt=\"x\"><a href=\"c.html?' + f(x) + '\">')", ""),
        ("w('<a href=\"c.html')", ""),
        ("w('<a href=c.html'); w('<a href=d.html>')", "d.html"),
        (
            'x=`<a href="/x/${id}.html"><a href="/y.html">${l.map(i=>`<a href="in.html">${i}</a>`)}`;z=\'<b>\'',
            "/y.html in.html",
        ),
        (
            r"""x='\x3ca href="a.html"\x3e'; y="\u003cimg src='b.png'>"; z="<a href=\"http:\/\/h.test\/c.html\">" """,
            "a.html b.png http://h.test/c.html",
        ),
        ("x='<a href=\"c\\\n.html\">'", "c.html"),
        ("document.write(unescape('%3Cimg src=%22d.gif%22%3E'))", "d.gif"),
        ('document.write(unescape("%3Cscript src=\'" + host + "x.test/a.js\'%3E%3C/script%3E"))', ""),
        ("document.write('<script src=\"a.js\"><\\/script>')", "a.js"),
        ('w("<scr" + "ipt src=\'a.js\'></scr" + "ipt>"); w("<s"+"cript src=b.js ></s"+"cript>")', "a.js b.js"),
        ("// '<a href=\"a.html\">'\nx = /'<a href=\"b.html\">'/", ""),
        (
            'x=\'<a href="/a">a</a><a href="#"><img src="x"><form action="/y"><a href="{{u}}.html"><a href="%s.htm">\'',
            "",
        ),
        ('x=\'<a href="javascript:f()"><a href="$1/a.html"><a href="[[x]].html"><base href="/b/">\'', ""),
        ("if (a<b && c>d) f('a.html')", ""),
    ],
)
def test_markup_in_strings(text: str, expected: str) -> None:
    got = [
        value
        for _, attributes in markup.tags(text)
        for name, value in attributes.items()
        if name in {"href", "src", "action"}
    ]
    sure = [value for value in got if markup.is_sure(value, Hop.LINK)]
    assert [value for value in sure if not value.startswith(("#", "javascript:"))] == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e.style.backgroundImage = \"url('/i/a.png')\"", "i/a.png"),
        ("$(e).css('background', 'red url( b.jpg ) no-repeat'); f(\"url('../c.php?d=1')\")", "dir/b.jpg c.php?d=1"),
        ("sheet.insertRule(`p::after { content: url(/i/a.png) ${b} url(${c}.png) url('/d.png') }`)", "i/a.png d.png"),
        ('s.textContent = "a{background:" + "url(/i/a.png)}" + x', "i/a.png"),
        ("f('url(' + a + 'b.png)', 'url(#a)', 'url(data:image/png;base64,AA==)', 'url(%s/a.png)', 'url(x)')", ""),
        ("f('curl(/a.png)', 'a url() b', \"url('a b.png')\"); // url(/a.png)\n /url(/.test(a)", ""),
    ],
)
def test_styles_in_strings(text: str, expected: str) -> None:
    document = Document(SCRIPT, "text/javascript", None, text.encode(), Hop.REQUISITE, PAGE)
    assert [link.url[17:] for link in links(document).links if link.context == "script/url()"] == expected.split()
    inline = Document(PAGE, "text/html", None, f"<!doctype html><script>{text}</script>".encode())
    assert {link.url[17:] for link in links(inline).links if link.context == "script/url()"} == set(expected.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = ['a.png', 'b.JPG']; e.src = 'i/' + n[0]", "i/a.png i/b.JPG"),
        (
            'n = [{src: "a.gif"}]; h += "<a href=\'x\'><img src=\'../i/j/"; h += n[i].src; h += "\'></a>"',
            "../i/j/a.gif",
        ),
        (
            "n = ['a.png']; h = `<img class=\"x\" src=\"/i/${n[0]}\">`; e.setAttribute('src', `k/${x}`)",
            "/i/a.png k/a.png",
        ),
        ("n = ['a.png']; e.style.backgroundImage = 'url(i/' + n[0] + ')'", "i/a.png"),
        ("n = ['a.png']; e.src = '//h.test/i/' + n[0]", "//h.test/i/a.png"),
        ("n = ['a.png', 'i/b.png', 'c', 'd.html']; e.src = 'i/x.png'; f('i/' + n[0]); e.src = n[0]", ""),
        ("e.src = 'i/' + n + '.png'; f('.png', '-x.png')", ""),
    ],
)
def test_pictures_in_the_folder_that_a_script_puts_before_them(text: str, expected: str) -> None:
    assert list(folders.pictures(text)) == expected.split()


def test_strings_are_relative_to_the_page_that_runs_the_script() -> None:
    text = "x.innerHTML='<a href=\"a.html\">'; y=['b.html','c.html']; import './d.js'; f('img/e.png','/g.png')"
    document = Document(SCRIPT, "text/javascript", None, text.encode(), Hop.REQUISITE, PAGE)
    expected = "js/d.js X, g.png X, dir/a.html X, dir/img/e.png X, dir/b.html X, dir/c.html X"
    assert ", ".join(f"{link.url[17:]} {link.hop}" for link in links(document).links) == expected


def test_files_that_a_script_loads_for_its_page() -> None:
    text = "fetch('toc.json');$.getJSON('data/x.json');r.open('GET','i.json');i.src='a.png';load('b.json')"
    text += ";d3.csv('c.csv');fetchJSON('index.json', found);prefetch('d.json')"
    text += ";fetch('t.txt');SwaggerUIBundle({url:'api.yaml'});f('u.txt','v.yaml')"
    text += ";httpGetPromise('h.json');_xhrLoad('x.js');this._http.get('i18n/en.json');ajaxGet('all.html')"
    document = Document(SCRIPT, "text/javascript", None, text.encode(), Hop.REQUISITE, PAGE)
    expected = "dir/toc.json dir/data/x.json dir/i.json dir/a.png dir/c.csv dir/index.json"
    expected += " dir/t.txt dir/api.yaml dir/h.json dir/x.js dir/i18n/en.json dir/all.html"
    assert " ".join(link.url[17:] for link in links(document).links) == expected


def test_scripts_in_variables_that_are_named_as_urls() -> None:
    text = "const script_url = './sw.js'; let dataURL='d.json'; var src = 'a.mjs'; const program = './p.js'"
    assert named(text, inline=True) == ["./sw.js", "d.json", "a.mjs"]


@pytest.mark.parametrize(
    ("address", "text", "expected"),
    [
        ("v/assets/app.js", 'r=[["/",{loader:f}],["/b/",{loader:f}],["/c.html",{loader:f}]]', "v/ v/b/ v/c.html"),
        (
            "v/assets/index.html-BPCQb9PH.js",
            'a(l,{to:"/b/a.html"});x="/p.png";y={to:"//o.test/a.html"}',
            "v/b/a.html p.png",
        ),
        ("v/assets/other-BPCQb9PH.js", 'a(l,{to:"/b/a.html"})', "b/a.html"),
    ],
)
def test_pages_in_scripts_of_vuepress_are_below_the_base(address: str, text: str, expected: str) -> None:
    document = Document(f"http://host.test/{address}", "text/javascript", None, text.encode(), Hop.REQUISITE, PAGE)
    found = {link.url[17:] for link in links(document).links if "host.test" in link.url}
    assert found == set(expected.split())


def test_the_index_of_haddock_is_relative_to_its_folder() -> None:
    data = b'[{"link":"A.html#t:B","display_html":"<a href=\\"B.html\\">"},{"link":"../c-1.0/C.html"}]'
    document = Document("http://host.test/lib/d/doc-index.json", "application/json", None, data, Hop.SPECULATIVE, PAGE)
    assert {link.url[17:] for link in links(document).links} == {"lib/d/A.html", "lib/d/B.html", "lib/c-1.0/C.html"}


@pytest.mark.parametrize("name", ["module", "package", "type", "member", "tag"])
def test_the_indexes_of_javadoc_are_relative_to_their_folder(name: str) -> None:
    data = (
        f'{name}SearchIndex = [{{"l":"All","u":"all.html"}},{{"p":"x","l":"Y","u":"x/Y.html"}}];updateSearchResults();'
    )
    address = f"http://host.test/api/{name}-search-index.js"
    document = Document(address, "text/javascript", None, data.encode(), Hop.SPECULATIVE, PAGE)
    assert {link.url[17:] for link in links(document).links} == {"api/all.html", "api/x/Y.html"}


BOTH = "js/a.js dir/a.js"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("base = window.top_folder || '/x/'; s.src = base + 'a.js'", BOTH),
        ('fetch(root + "a.js").then(f)', BOTH),
        ("f({url: base+'../a.js'})", "a.js"),
        ("r.open('GET', prefix + `a.js`)", BOTH),
        ("var base = '/x'; f(base + '/a.js')", "x/a.js"),
        ("var base = '../', n=1; s.href = base + 'a.css'", "a.css"),
        ("let base = ''; f(base + 'b/a.png')", "dir/b/a.png"),
        ("const here = document.currentScript.src.replace(/[^/]*$/, ''); f(here + 'a.js')", "js/a.js"),
        ("var tags = document.getElementsByTagName('script'), p = 1; f(tags + '/a.js')", "js/a.js"),
        ("here = location.pathname.split('/').slice(0, -1).join('/'); f(here + '/img/a.png')", "dir/img/a.png"),
        ("img.setAttribute('src', `${root_path}a.svg`)", "js/a.svg dir/a.svg"),
        ("x = `<p><img src=\"${path}a.svg\" alt=''>`; y = `${z}b.svg`", "js/a.svg dir/a.svg"),
        ("const base = '/x/'; f(`${base}a.js`)", "x/a.js"),
        ("f(`${base}a.js`, `${base}/${b}a.js`, `x${base}a.js`); s.src = `${base}${c}`", ""),
        ("base = 1; base = 2; f(base + 'a.js')", ""),
        ("s.src = name + '-min.js'; s.href = host + '.test/a.css'; fetch(base + '/a.json')", ""),
        ("var short = 'me'; s.src = '//' + short + '.host.test/a.js'", ""),
        ("e = '/x/'; f(e + 'a.js')", ""),  # a short name has many meanings
        ("f(base + 'a.js')", ""),
        ("s.src = base + 'a.js' + version", ""),
        ("s.src = x.base + 'a.js'", ""),
        ("s.src = base + '.js'; s.href = base + 'a.b'; s.src = base + '/a.js'", ""),
        ("var base = 'a b/'; f(base + 'a.js')", ""),
    ],
)
def test_names_that_a_script_joins_to_a_variable(text: str, expected: str) -> None:
    document = Document(SCRIPT, "text/javascript", None, text.encode(), Hop.REQUISITE, PAGE)
    assert sorted(link.url[17:] for link in links(document).links if link.context == "script/joined") == sorted(
        expected.split()
    )
    inline = Document(PAGE, "text/html", None, f"<!doctype html><script>{text}</script>".encode())
    found = {link.url[17:] for link in links(inline).links if link.context == "script/joined"}
    assert found == {name for name in expected.split() if not name.startswith("js/")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("importScripts('lib.js'); fetch('a.json').then(postMessage)", "js/lib.js js/a.json"),
        ("self.onmessage = e => fetch('a.json').then(r => postMessage(r))", "js/a.json"),
        ("addEventListener('message', async () => postMessage(await fetch('a.json')))", "js/a.json"),
        ("onconnect = e => fetch('a.json').then(r => e.ports[0].postMessage(r))", "js/a.json"),
        ("if (window.x) importScripts('lib.js'); fetch('a.json')", "js/lib.js dir/a.json"),  # it may run in a page
        ("document.title = 1; onmessage = f; postMessage(1); fetch('a.json')", "dir/a.json"),
        ("onmessage = f; fetch('a.json')", "dir/a.json"),
        ("onmessage = () => parent.postMessage(1); fetch('a.json')", "dir/a.json"),
    ],
)
def test_names_in_a_worker_are_relative_to_it(text: str, expected: str) -> None:
    document = Document(SCRIPT, "text/javascript", None, text.encode(), Hop.SPECULATIVE, PAGE)
    assert [link.url[17:] for link in links(document).links] == expected.split()


COMPOSED = [
    (
        "for (var i = 1; i <= 3; i++) document.write('<a href=\"page' + i + '.html\">x</a>')",
        "page1.html page2.html page3.html",
    ),
    ("for(let i=8;i<10;++i){h+=`<li>${t[i]}<a href=/p/${i}>${i}</a>`}", "/p/8 /p/9"),
    ('for (i = 0; i < 2; i += 1) { h += "<img src=\\"img/" + i + ".png\\">"; }', "img/0.png img/1.png"),
    (
        "var n = ['one', 'two']; n.forEach(function(s) { h += '<a href=\"/story/' + s + '\">' })",
        "/story/one /story/two",
    ),
    ("['a','b'].map(s => `<a href='/tag/${s}/'>`)", "/tag/a/ /tag/b/"),
    (
        "const n = ['a', 'b']; for (const s of n) { load(s); fetch('/data/' + s + '.json') }",
        "/data/a.json /data/b.json",
    ),
    ("var n = new Array('a','b'); for (i in n) { x.href = '/d/' + n[i]; }", "/d/a /d/b"),
    ('p=[{slug:\'one\',t:\'A\'},{"slug":"two/b"}];p.map(p=>`<a href="/s/${p.slug}">`)', "/s/one /s/two/b"),
    ("p=[{id:1},{id:22}];p.map(p=>{e.onclick=()=>{location.href=`/s/${p.id}`}})", "/s/1 /s/22"),
    *(
        (text, "")
        for text in (
            "for (i = 1; i < 3; i++) f('a' + i + '.html')",  # no place for a URL
            "for (i = 1; i < 3; i++) x.href = 'a' + i + y + '.html'",
            "for (i = 1; i < 3; i++) x.href = '/a/' + i + '.html'.b; x.href = '/a/' + j",
            "for (i = 1; i < n; i++) x.href = '/a/' + i",
            "n = ['Edge', 'b c', '../x']; n.map(s => { window.open(s); x.href = '.' + s })",
            "h += '<a href=\"' + e.href + '\">'; x = {href: '/a/b'.c}",
            "h += '<a title=\"/a/' + o.id + '\">'; o = {id: 5}",
        )
    ),
]


@pytest.mark.parametrize(("text", "expected"), COMPOSED, ids=[row[0][:50] for row in COMPOSED])
def test_urls_that_a_script_puts_together(text: str, expected: str) -> None:
    assert [name for name, _ in javascript.joined_urls(text, page=True, worker=False)] == expected.split()


def test_names_that_a_service_worker_joins_to_its_folder() -> None:
    text = "var e=location.pathname.split(`/`).slice(0,-1).join(`/`),t=[e+`/a.js`,e+`/i/b.png`];self.skipWaiting()"
    document = Document(SCRIPT, "text/javascript", None, text.encode(), Hop.SPECULATIVE, PAGE)
    assert {link.url[17:] for link in links(document).links} == {"js/a.js", "js/i/b.png"}


def test_names_in_a_table_below_another_address_are_not_below_the_page() -> None:
    table = '{x:{baseURL:"https://pictures.test/e/",data:{1:"u/1.png?v8",2:"u/2.png?v8",3:"/3.png"}},y:"u/4.png"}'
    document = Document(SCRIPT, "text/javascript", None, table.encode(), Hop.REQUISITE, PAGE)
    assert {link.url[17:] for link in links(document).links} == {"3.png", "dir/u/4.png"}
    own = table.replace("https://pictures.test/e/", "e/").encode()
    document = Document(SCRIPT, "text/javascript", None, own, Hop.REQUISITE, PAGE)
    assert "dir/u/1.png?v8" in {link.url[17:] for link in links(document).links}


def test_markup_in_data_is_relative_to_the_page() -> None:
    text = r'{"a": {"body": "<a href=\"library/gc.html\">", "path": "b/c.html"}}'
    document = Document(
        "http://host.test/_static/data.json", "application/json", None, text.encode(), Hop.SPECULATIVE, PAGE
    )
    named = {link.url for link in links(document).links}
    assert "http://host.test/dir/library/gc.html" in named
    assert "http://host.test/_static/library/gc.html" not in named


def test_data_are_relative_to_the_page_or_their_own_folder() -> None:
    document = Document(
        "http://host.test/js/toc.json", "application/json", None, b'["a.html","b.html"]', Hop.REQUISITE, PAGE
    )
    assert [link.url[17:] for link in links(document).links] == ["dir/a.html", "js/a.html", "dir/b.html", "js/b.html"]


DATA = [  # relative names in data, next to the whole address of the same file, and what is requested for them
    (r'{"file":"2020\/05\/a.jpg","source_url":"http:\/\/host.test\/files\/2020\/05\/a.jpg"}', "files/2020/05/a.jpg"),
    ('{"source_url":"http://host.test/f/05/a.jpg?w=9","file":"05/a.jpg"}', "f/05/a.jpg?w=9"),
    ('{"text":"<img src=/f/05/a.jpg>","file":"05/a.jpg"}', "f/05/a.jpg"),
    ('{"url":"/f/05/a.jpg","file":"05/a.jpg","other":"5/a.jpg"}', "f/05/a.jpg dir/5/a.jpg js/5/a.jpg"),
    ('{"thumb":"http://host.test/thumbs/a.png","src":"a.png"}', "thumbs/a.png dir/a.png js/a.png"),
]


@pytest.mark.parametrize(("text", "expected"), DATA)
def test_a_name_in_data_that_ends_a_whole_address_is_no_further_file(text: str, expected: str) -> None:
    document = Document("http://host.test/js/x.json", "application/json", None, text.encode(), Hop.LINK, PAGE)
    assert [link.url[17:] for link in links(document).links] == expected.split()


def test_names_in_data_are_compared_in_linear_time() -> None:
    def document(size: int) -> Document:
        names = (f'"{"a/" * 300}{number}.jpg","http://host.test/{"b/" * 400}{number}.jpg"' for number in range(size))
        return Document("http://host.test/x.json", "application/json", None, f"[{','.join(names)}]".encode())

    small, large = document(300), document(1200)
    assert growth(lambda: links(small), lambda: links(large), 8, 0.02) < 8


GOALS = [
    ("location = 'a.html'", "a.html L"),
    ('window.location.href = "/x/"\nf()', "/x/ L"),
    ("top.location.replace( 'b.html' )", "b.html L"),
    ('document.location.assign("c.html");', "c.html L"),
    ("self.location=`t.html`", "t.html L"),
    ("parent.frames[0].location.href='f.html'", "f.html L"),
    ("window['location']='y.html'", "y.html L"),
    ("location = 'next'", "next L"),
    ("location='a' +\n '.html'", "a.html L"),
    ("location.href=location.protocol+'//'+location.host+'/z/'", "/z/ L"),
    ("location.href=window.location.origin + '/x'", "/x L"),
    ("location.href=location.protocol+'//www.host.test/x'", "//www.host.test/x L"),
    ("setTimeout(\"location.href='d.html'\",500)", "d.html L"),
    ("setTimeout(function(){window.location='e.html'}, 3)", "e.html L"),
    ("if (self != top) top.location.href='index.html'", "index.html L"),
    (r"location='\x2fq\/r.html'", "/q/r.html L"),
    ("window.navigate('n.html')", "n.html L"),
    ("location.href = mobile ? 'm.html' : 'd.html';", "m.html X, d.html X"),
    ("window.open('w.html','n','width=2')", "w.html X"),
    *(
        (text, "")
        for text in ("location='a'+x", "location=x+'a'", "// location='a'", "x={location:'a'}", "var location='a'")
    ),
    *(
        (text, "")
        for text in ("foo.location='a'", "geolocation='a'", "location=='a'", "x.open('GET','/a')", "location.hash='a'")
    ),
    *(
        (text, "")
        for text in ("location='a b'", "location='{{x}}'", "location='a'.b", "location=['a']", "f('location=a')")
    ),
]


@pytest.mark.parametrize(("text", "expected"), GOALS, ids=[row[0][:40] for row in GOALS])
def test_navigation_in_scripts(text: str, expected: str) -> None:
    assert ", ".join(f"{goal.reference} {goal.hop}" for goal in inline.targets(text)) == expected


@pytest.mark.parametrize("broken", ["", "<p title='a'b>"])
@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<body onload=\"MM_preloadImages('a.gif','b.gif')\">", "a.gif X, b.gif X"),
        ("<a href=# onMouseOver=\"MM_swapImage('n','','img/c.gif',1)\">x</a>", "img/c.gif X"),
        ("<img onerror=\"this.src='f.png'\">", "f.png X"),
        ("<p onclick=\"window.open('w.html','x')\">", "w.html L"),
        ("<p ondblclick='location.href=&quot;w.html&quot;'>", "w.html L"),
        ("<a href=\"javascript:popup('m.html')\">x</a>", "m.html X"),
        ("<tr onclick=\"show('/about', 5)\">", "/about X"),
        ('<a href="javascript:go(&quot;/team/&quot;)">x</a>', "/team/ X"),
        ("<p onclick=\"remove('/items/5'); like('/b')\"><p onclick=\"f('/login', '/a b', 'c', '/d' + e)\">", ""),
        ("<area href=\"JavaScript:location.href='n.html'\">", "n.html L"),
        ('<a href="javascript:void(window.open(%27o.html%27))">x</a>', "o.html L"),
        ("<frame src=\"javascript:location='p.html'\">", "p.html L"),
        (
            "<select onchange='location=this.value'><option value=j.html><option value=k/><option value=''>",
            "j.html L, k/ L",
        ),
        (
            "<select><option value=/de/><option value=/l><option value=a/></select>",
            "/de/ X",
        ),
        ("<select><option value=/l.php><option value=red><option value=2.5></select>", "/l.php X"),
        ("<select onchange='go(this)'><option value=j/></select><select><option value=k/></select>", "j/ L"),
        ("<script>document.write('<img src=\"./menu.svg\">')</script>", "menu.svg X"),
        ("<script><!--\nlocation='splash.html'\n//--></script>", "splash.html L"),
        ("<script>pics = new Array('1.jpg','2.jpg')</script>", "1.jpg X, 2.jpg X"),
        ("<a href=\"javascript:erlhref('../../../doc/../','stdlib','io.html');\">io</a>", ""),
        ("<a href=\"javascript:erlhref('../../../doc/../','doc/system_architecture_intro','sys.html');\">io</a>", ""),
        ("<a href=\"javascript:show('../','io.html');\">io</a>", "io.html X"),
        (
            """<script>e.item(0).setAttribute("href", "style/site.css"); $(i).attr( 'src', 'a.js' );
            e.setAttribute("title", "b/c.css")</script>""",
            "style/site.css X, a.js X",
        ),
        ('<script>jQuery(function() { Search.loadIndex("searchindex.js"); });</script>', "searchindex.js X"),
        ('<script>loadScript("menu.js", done); preload("a.js"); upload("b.js")</script>', "menu.js X"),
        ('<script>$.ajax({ url: "london.xml", dataType: "xml", curl: "c.xml" })</script>', "london.xml X"),
    ],
)
def test_handlers_menus_and_scripts_in_a_page(broken: str, html: str, expected: str) -> None:
    document = Document(PAGE, "text/html", None, (html + broken).encode())
    assert (
        ", ".join(
            f"{link.url[21:] if '/dir/' in link.url else link.url[16:]} {link.hop}" for link in links(document).links
        )
        == expected
    )


@pytest.mark.parametrize("broken", ["", "<p title='a'b>"])
def test_requisites_before_the_base_are_resolved_both_ways(broken: str) -> None:
    page = f"{broken}<img src=a.png><a href=b><base href=/base/><img src=c.png>"
    found = [f"{link.url[16:]} {link.hop}" for link in links(Document(PAGE, "text/html", None, page.encode())).links]
    assert found == ["/base/a.png E", "/base/b L", "/base/c.png E", "/dir/a.png E"]


def test_a_menu_in_a_script_leads_to_pages() -> None:
    assert found('var menudata={children:[\n{text:"A",url:"a.html"}]}') == ["http://host.test/js/a.html script/menu"]


def test_script_elements_are_read_by_their_type() -> None:
    text = 'import "./a.js"; x = "/b.png"'
    both = ["http://host.test/js/a.js script/import", "http://host.test/b.png script/string"]
    for media_type in ("text/javascript", "application/javascript", "application/x-javascript"):
        assert found(text, media_type, Hop.LINK) == both
    for media_type in ("", "text/plain", "application/octet-stream"):
        assert found(text, media_type) == both
        assert found(text, media_type, Hop.SPECULATIVE) == both
        assert found(text, media_type, Hop.LINK) == []
    assert found("<!doctype html><a href=/c>no such script</a>") == ["http://host.test/c a/@href"]


@pytest.mark.parametrize("broken", ["", "<p title='a'b>", "<xmp></xmp>"])
def test_scripts_in_pages(broken: str) -> None:
    page = (
        f"{broken}<base href=/base/><script>f('img/a.png')</script><script type=module>import './b.js'</script>"
        "<script src=c.js>f('/not-run.png')</script><script type=application/json>['/data.png']</script>"
        "<script type='text/template'>'/template.png'</script>"
        "<script type='application/x-javascript'>f('/old.png')</script>"
    )
    assert found(page, "text/html", Hop.LINK, PAGE) == [
        "http://host.test/base/img/a.png script/string",
        "http://host.test/base/b.js script/import",
        "http://host.test/base/c.js script/@src",
        "http://host.test/data.png script/json",
        "http://host.test/old.png script/string",
    ]


@pytest.mark.parametrize(
    ("at", "path", "expected"),
    [
        ("/archives/", "archives/index.html", set()),
        ("/b/2024/a.html?x=1", "2024/a.html", set()),  # below the root of a site that is not the root of the host
        ("/archives/", "archives/page/2/index.html", {"/archives/archives/page/2/index.html"}),
        ("/b/2024/a.html", "2025/a.html", {"/b/2024/2025/a.html"}),
        ("/", "a/index.html", {"/a/index.html"}),
    ],
)
@pytest.mark.parametrize("script", ["<script type=application/json>", "<script>var page="])
def test_a_page_tells_its_scripts_its_own_path(at: str, path: str, expected: set[str], script: str) -> None:
    page = f'{script}{{"title":"","path":"{path}"}}</script>'
    read = links(Document(f"http://host.test{at}", "text/html", "utf-8", page.encode())).links
    assert {link.url.removeprefix("http://host.test") for link in read} == expected


def test_a_link_to_a_folder_of_the_same_name_is_kept() -> None:
    page = b'<a href=a/index.html>a</a><script>var page={"path":"a/index.html"}</script>'
    read = links(Document("http://host.test/a/", "text/html", "utf-8", page)).links
    assert [(link.url, link.hop) for link in read] == [("http://host.test/a/a/index.html", Hop.LINK)]


PIECES = [
    '"',
    "'",
    "`",
    "/",
    "\\",
    "${",
    "}",
    "{",
    "[",
    "]",
    "\n",
    "//",
    "/*",
    "*/",
    "=",
    "a",
    ".js",
    "import(",
    "/a.js",
]


@pytest.mark.parametrize(
    ("router", "base"),
    [
        ('k(B,{basename:"/app/"})', "/app"),
        ("k({history:w('/app'),routes:r})", "/app"),
        ('k(B,{basename:"/"})', ""),
        ('k(B,{basename:"/app"});k(B,{basename:"/other"})', ""),
        ("k(B,{basename:x})", ""),
    ],
)
def test_routes_are_below_the_base_that_their_router_states(router: str, base: str) -> None:
    body = f'{router},k(L,{{to:"/a"}}),k(L,{{to:"/b"}}),k(L,{{to:"/c"}}),f.src="/d.png"'.encode()
    found = links(Document("http://h.test/app/assets/1.js", "text/javascript", "", body, Hop.REQUISITE)).links
    assert {link.url for link in found} == {f"http://h.test{base}/{name}" for name in "abc"} | {"http://h.test/d.png"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('loadCSS("@jupyterlab/theme/index.css"); x = "@a/b.png"', []),
        ('this.h.get("assets/a.json"); m.get("b/c.json"); x = "assets/d.json"', ["assets/a.json"]),
        ('x = ["video/vnd.uvvu.mp4", "image/x-a.svg", "video/a.mp4"]', ["video/a.mp4"]),
        (
            'o = {workerSrc: {\n      value: "../build/pdf.worker.mjs", kind: K.W}, x: {value: "../a.mjs"}}',
            ["../build/pdf.worker.mjs"],
        ),
    ],
)
def test_relative_names_in_separate_scripts(text: str, expected: list[str]) -> None:
    assert [reference for reference, _ in javascript.references(text, near=True)] == expected


@given(st.lists(st.sampled_from([*PIECES, "importScripts(", "webpackChunk", ".u=e=>", ".p=", "{1:'a'}[e]", "+"])))
def test_any_pieces_name_only_plain_urls(pieces: list[str]) -> None:
    for reference, context in javascript.references("".join(pieces), inline=True):
        assert not set(reference) & set("\"'`{}[]\\\n*"), (reference, context)


@given(st.text(), st.text())
def test_any_text(before: str, after: str) -> None:
    list(javascript.references(before + '"/a.js"' + after))


@pytest.mark.alone
@pytest.mark.parametrize(
    "piece",
    [
        *('"', "'", "`", "/", "\\", "`${", "`}${", "=/", "=/[a", "a/", '"/a.js",', "'/a.js'+", "import('", "/*a*/ /"),
        *("webpackChunk.u=e=>", ".u=e=>({1:'a',", ".u=e=>'a'+", ".p='a", "__vite__mapDeps=(=[", " ", "//\n", "{"),
        *('[ "', '[ "a", "b", ', "var a =\n[\n    [ ", "NAVTREE relpath+'a", "pathtoroot + 'a/", "pathtoroot + 'a.a"),
        *('var menudata={text:"', 'var NAVTREEINDEX =\n[\n"a",\n', 'joinUrl(base_url, "search/'),
        *(
            'rr_({"a":{"N":"',
            'rr_({"a":{"N":"a","H":"aaaaaaaa"}',
            "path_to_root + 'searchindex",
            "path_to_searchindex_js='",
        ),
        *(
            "+'a/",
            "+'a.js'",
            "a+'a.js';a=",
            "a1.src=a1+'a.js';a1=1,",
            '{url:"a",revision:"',
            "precacheAndRoute",
            '{url:"a"',
        ),
        *(
            'define(["./a",',
            "define(['a' ",
            'baseUrl:"https://a/",b:{',
            "baseUrl : ",
            "modulePathPrefix:'a",
            "workbox.ab",
        ),
        *("addEventListener('", "x='/a.js?b='+", "___chunkMapping=", "identifier"),
        *(
            "<img ",
            "<img src='a/",
            "a.src='a/a/'+",
            "'a.png'",
            "a.src='a/'+'a.png';",
            "`${a}a.js`",
            "src=${a",
            "a.a.a.src=a.a.",
            "fetch(`${a.",
            "fetch(`${a}/a.js#",
            "fetch(''.concat(a.a,'/a",
            "\"\".concat(a,'a.js')",
            "path:'./a.txt',a}",
            'x={"0":"/a",',
            '"/a":[1,',
            '"/a":()=>import(',
            ".replace('a.js','a.js',",
            "aworker",
            "{url:'/a.a",
            "{url:'/./",
            "{link:'a/a.zip',",
            "()=>a('/a'),click",
            "'<a href=\"/'+i+'\">'+",
            "`<a href=/${i}>",
            "for(i=1;i<999;i++)x.href='/'+i;",
            "i=['a',",
            "i=['a'];i.map(s=>x.href='/'+s)",
            "{a:1},h+='<a href=/'+o.a+'>';",
            "url(",
            "url('a",
        ),
    ],
)
def test_ten_times_as_much_takes_about_ten_times_as_long(piece: str) -> None:
    def run(size: int) -> None:
        text = "webpackChunk;r.p='/';" + piece * (size // len(piece))
        for _ in chain(javascript.references(text), generators.script_urls(text, "http://host.test/")):
            pass
        for _ in chain(javascript.joined_urls(text, page=True, worker=True), folders.kept_files(text)):
            pass
        for _ in chain(markup.style_urls(text), folders.pictures(text)):
            pass
        folders.is_worker(text.encode())

    assert growth(partial(run, 10_000), partial(run, 100_000), enough=20, floor=0.005) < 20


@pytest.mark.alone
@pytest.mark.parametrize("piece", ["](a", "](<", "[a](", "<img ", "<img src=a", "(#/a", "'#/", "](a 'b'", " ", "\n"])
def test_ten_times_as_much_of_docsify_takes_about_ten_times_as_long(piece: str) -> None:
    def run(size: int) -> None:
        for _ in docsify.of_text(piece.encode() * (size // len(piece)), "http://host.test/a.md", "http://host.test/"):
            pass

    assert growth(partial(run, 10_000), partial(run, 100_000), enough=20, floor=0.005) < 20
