"""Pages in the route tables of client-side routers, and objects with a `path` that are no routes."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract import Document, links
from archiver.extract.script import routes
from archiver.model import Hop
from fixtures.growth import growth

ROOT = "http://h.test"
ANGULAR = (
    'var d=[{path:"",pathMatch:"full",redirectTo:"intro"},{path:"intro",loadComponent:()=>import("./c.js")}],'
    'r=[{path:"",component:h},{path:"about",component:e,title:"Us",data:{a:{b:1}},children:[{path:"team",component:t},'
    '{path:"news/:id",component:n}]},{path:"docs",component:o,children:d},{path:"tours",loadChildren:()=>import("./s.js")'
    '.then(e=>e.r)},{path:"old/one",redirectTo:"about"},{path:"",children:[{path:"tips",component:i}]},'
    '{path:"**",component:m}];p(r)'
)
REACT = (
    "b([{path:`/`,element:(0,t.jsx)(n,{n:`root`}),children:[{index:!0,element:(0,t.jsx)(n,{})},{path:`about`,element:"
    "(0,t.jsx)(n,{}),children:[{path:`team`,lazy:()=>q(()=>import(`./t.js`),[])}]},{element:(0,t.jsx)(l,{}),children:"
    "[{path:`contact`,Component:()=>(0,t.jsx)(n,{}),loader:async()=>1}]},{path:`docs`,children:[{path:`intro`,"
    "async lazy(){return f()}}]},{path:`user/:id`,element:x(),children:[{path:`posts`,element:x()}]}]}])"
)
ELEMENTS = (
    "(0,n.jsxs)(k,{children:[(0,n.jsxs)(O,{element:(0,n.jsx)(r,{}),children:[(0,n.jsx)(O,{index:!0,element:(0,n.jsx)(r,{})}),"
    "(0,n.jsx)(O,{path:`about`,element:(0,n.jsx)(r,{}),children:(0,n.jsx)(O,{path:`team`,element:(0,n.jsx)(i,{})})})]}),"
    "(0,n.jsx)(O,{path:`*`,element:(0,n.jsx)(r,{})})]})"
)
CLASSIC = (
    'h(Routes,null,h(Route,{element:h(L)},h(Route,{path:"about",element:h(A)},h(Route,{path:"team",element:h(T)})),'
    'h(Route,{path:"*",element:h(N)})))'
)
VUE = (
    "const c=[{path:`a`,component:e(`a`)},{path:`b/c`,component:()=>q(()=>import(`./p.js`),[])}],n=[{path:`/about`,"
    "name:`about`,component:e(`b`),meta:{x:{y:1}},children:[{path:`team`,name:`team`,component:t},{path:`/away`,component:w}]},"
    "{path:`/docs`,component:d,children:c},{path:`/p/:id`,component:p,children:[{path:`x`,component:x}]},"
    "{path:`/blog/:page?`,component:o},{path:`/old`,redirect:`/about`},{path:`/:all(.*)*`,component:f}]"
)
TANSTACK = (
    "i=K({getParentRoute:()=>r,path:`/`,component:n}),a=K({getParentRoute:()=>r,path:`about`,component:n}),o=K({getParent"
    "Route:()=>a,path:`team`,component:n}),s=K({getParentRoute:()=>r,path:`/posts`}).lazy(()=>f()),c=K({getParentRoute:()"
    "=>s,path:`$id`,component:n}),l=(0,q.K)({getParentRoute:()=>s,path:`/top`,component:n}),u=K({getParentRoute:()=>r,id:"
    "`_lay`,component:n}),d=D.update({id:`/deep`,path:`/deep`,getParentRoute:()=>u})"
)
MANIFEST = (
    'window.__reactRouterManifest={"routes":{"root":{"id":"root","path":"","hasErrorBoundary":false},'
    + ",".join(
        f'"{name}":{{"id":"{name}","parentId":"{parent}",{path},"hasDefaultExport":{shows},"hasErrorBoundary":false}}'
        for name, parent, path, shows in (
            ("r/home", "root", '"index":true', "true"),
            ("r/about", "root", '"path":"about"', "true"),
            ("r/team", "r/about", '"path":"team"', "true"),
            ("r/layout", "root", '"caseSensitive":false', "true"),
            ("r/contact", "r/layout", '"path":"contact"', "true"),
            ("r/user", "root", '"path":"u/:id"', "true"),
            ("r/data", "root", '"path":"data"', "false"),
        )
    )
    + "}}"
)
SOLID = (
    "N(R,{base:`/s`,get children(){return[N($,{path:`/`,component:n}),N($,{path:`/about`,component:n,get children()"
    "{return[N($,{path:`/team`,component:t}),N($,{path:`/`,component:n})]}}),N($,{path:`/docs`,get children(){return "
    "N($,{path:`intro`,component:t})}}),N($,{path:`*404`,component:n})]}})"
)
SPLIT = (
    "function S(){return(0,t.jsx)(R,{children:(0,t.jsx)(A,{path:`deep`,element:(0,t.jsx)(n,{})})})}"
    "b([{path:`/`,element:x(),children:[{path:`part/*`,element:(0,t.jsx)(S,{})},{path:`one`,element:x()}]}])"
)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ANGULAR, "./about ./about/team ./docs ./docs/intro ./tours ./old/one ./tips"),
        (REACT, "/about /about/team /contact /docs/intro"),
        (ELEMENTS, "/about /about/team"),
        (CLASSIC, "/about /about/team"),
        (VUE, "/about /about/team /away /docs /docs/a /docs/b/c /blog /old"),
        (TANSTACK, "/about /about/team /posts /posts/top /deep"),
        (MANIFEST, "/about /about/team /contact"),
        (SOLID, "/about /about/team /docs/intro"),
        (SPLIT, "/part/deep /one"),
        (f"function U(){{return h(I,{{accept:`image/*`}})}}function V(){{return {ELEMENTS}}}", "/about /about/team"),
        ('x=[{path:"a",children:[{path:"",component:A},{path:"b",component:B}]}]', "/a /a/b"),
        ('x=[{path:"a",component:A},...y],y=[{path:"b",component:B}]', "/a /b"),
        ('y=[{path:"b",component:B}];x=[{path:"a",children:y},{path:"c",children:y}]', "/a/b /c/b"),
        ('x=[{component:A,name:"a","path":"a-b/c_d"}]', "/a-b/c_d"),
        ("x=[{path:'a/',component:A}]", "/a/"),
    ],
)
def test_routes_are_joined_with_their_parents(code: str, expected: str) -> None:
    assert sorted(routes.pages(code)) == sorted(expected.split())


@pytest.mark.parametrize(
    "code",
    [
        'c={name:"a",value:"b",path:"about",domain:"h.test"}',
        'i=[{path:"M0 0h24v24H0z",component:A},{path:"M1",fill:"none"}]',
        'f.writeFile({path:"about",data:x});d.readdir({path:"docs",directory:D})',
        's={path:"about",type:"string"};e={path:"a",element:"div"};j={path:"a",component:"pages/about"}',
        't=[{path:"src",children:[{path:"main"},{path:"lib",children:[]}]}]',
        'x={path:"a",lazy:!0,redirect:!1,component:null}',
        'x={path:"a",component:void 0};y=[{path:"b",element:3}]',
        'x=[{path:":id",component:A},{path:"*",component:B},{path:"**",component:C},{path:"",component:D},{path:"/",component:E}]',
        'x=[{path:"a/:b",component:A,children:[{path:"c",component:C}]}]',
        '/** [{path: "about", component: A}] */ y = 1',
        '// [{path: "about", component: A}]\ny = 1',
        "y = 'x=[{path:\"about\",component:A}]'",
        'x={path:"about",get:{component:A}};y={path:"b",options:[{component:B}]}',
        'x=[{path:"logout",component:A},{path:"api/x",component:B}]',
        'x=[{path:"about"+y,component:A},{path:`a${b}`,component:B}]',
        'p(r,{useHash:!0});r=[{path:"about",component:A}]',
    ],
)
def test_other_objects_with_a_path_name_no_page(code: str) -> None:
    assert list(routes.pages(code)) == []


def test_a_path_below_another_route_is_no_path_of_the_site() -> None:
    document = Document(f"{ROOT}/main.js", "text/javascript", "", TANSTACK.encode(), Hop.REQUISITE, f"{ROOT}/")
    found = {link.url.removeprefix(ROOT) for link in links(document).links}
    assert found == {"/about", "/about/team", "/posts", "/posts/top", "/deep"}


@pytest.mark.parametrize(
    "code",
    [
        'var r=[{path:"list",component:A}];export{r as routes}',
        'export default [{path:"list",component:A}]',
        'M.forChild([{path:"list",component:A}])',
        'r=[{path:"list",component:A}];M.forChild(r)',
    ],
)
def test_a_table_for_the_children_of_a_route_in_another_script_names_nothing(code: str) -> None:
    """Its parent is unknown, so the pages at the root would be wrong."""
    assert list(routes.pages(code)) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('r=[{path:"about",loadComponent:()=>f()}]', "/app/about"),  # Angular's scripts are in the folder of its base
        ('r=[{path:"about",component:A}]', "/about"),
        ('r=[{path:"about",component:A}];s({redirectTo:x,letters:"\u0275"})', "/about"),
        ('r=[{path:"about",component:A}];A.\u0275cmp=d()', "/app/about"),
        ('r=[{path:"about",component:A}];k({history:w("/app/"),routes:r})', "/app/about"),
    ],
)
def test_a_table_begins_at_the_base_of_the_application(code: str, expected: str) -> None:
    document = Document(
        f"{ROOT}/app/main.js", "text/javascript", "utf-8", code.encode(), Hop.REQUISITE, f"{ROOT}/app/x/y"
    )
    assert [link.url for link in links(document).links] == [ROOT + expected]
    page = Document(f"{ROOT}/app/x/y", "text/html", "utf-8", f"<script>{code}</script>".encode())
    inline = expected if "history" in code else "/about"  # Angular's scripts are never part of the page
    assert [link.url for link in links(page).links] == [ROOT + inline]


PIECES = (
    *('path:"a"', "path:`b/c`", "component:A", "children:[", "children:x", "x=[", "...x", "index:!0", "element:h(B)"),
    *("{", "}", "[", "]", "(", ")", ",", ";", '"', "`", "${", "/", "export{x}", "=>", 'path:"d/*"', "redirectTo:"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_pieces_name_only_joined_paths(pieces: list[str]) -> None:
    for path in routes.pages("".join(pieces)):
        assert set(path.removeprefix(".").split("/")) <= {"", "a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("piece", "between"),
    [
        ('{path:"a",component:A,children:[', ""),
        ('{component:A,children:[{path:"a"', ""),
        ('x=[{path:"a",component:A,children:x},...x],', ""),
        ('h(R,{path:"a",element:h(A)},', ""),
        ('path:"a",component:A,', "{"),
        ('path:"a/*",element:h(A),', "("),
        ('a=K({getParentRoute:()=>b,path:"a"}),b=K({getParentRoute:()=>a,path:"b"}),', ""),
    ],
)
def test_the_time_grows_with_the_length_of_the_script(piece: str, between: str) -> None:
    def run(count: int) -> None:
        list(routes.pages(between + piece * count))

    assert growth(partial(run, 500), partial(run, 4000), enough=30, floor=0.02) < 30
