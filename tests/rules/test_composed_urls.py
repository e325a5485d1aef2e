"""URLs that scripts put together around a part: as people write them, and as minifiers and compilers do."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract import Document, links
from archiver.extract.script import composed, javascript
from fixtures.growth import growth

OBJECTS = '[{slug:"one",title:"One"},{slug:"two",title:"Two"}]'
OTHERS = '[{slug:"x",id:7},{slug:"y"}]'

MINIFIED = [
    # What an expression is followed by
    ('for(var e=1;e<3;e++){document.createElement("a").href="/c/"+e+"/"}', "/c/1/ /c/2/"),
    ('for(var r=1;r<3;r++){var a=document.createElement("a");a.href="/c/"+r}', "/c/1 /c/2"),
    ('for(let o=1;o<3;o++)imgs.push(((t=new Image).src="g/"+o+".jpg",t))', "g/1.jpg g/2.jpg"),
    ('for(let e=1;e<3;e++)2==e?x.href="/q/"+e:y()', "/q/1 /q/2"),
    ("for(let e=1;e<3;e++)x.href = '/q/' + e\nshow(x)", "/q/1 /q/2"),
    ("for(var h=[],r=1;r<3;r++)h.push('<a href=\"/p/'+r+'\">');show(h);", "/p/1 /p/2"),
    (
        'Promise.all(["x","y"].map(async a=>(await fetch("/api/"+a+".json")).json())).then(f);',
        "/api/x.json /api/y.json",
    ),
    ('["a","b"].forEach(function(e){$.getJSON("/d/"+e+".json",function(e){f(e)})})', "/d/a.json /d/b.json"),
    ("for(let e=1;e<3;e++){const t=`/api/p/${e}.json`;fetch(t).then(f)}", "/api/p/1.json /api/p/2.json"),
    ('for(let t=1;t<3;t++)n.push({url:"/p/"+t+"/",title:"P "+t});', "/p/1/ /p/2/"),
    ('["a","b"].map(a=>k("a",{href:`/t/${a}`,children:a}))', "/t/a /t/b"),
    # What compilers make of a template
    ('["a","b"].map(function(e){return\'<a href="/t/\'.concat(e,\'">\').concat(e,"</a>")})', "/t/a /t/b"),
    ('["a","b"].map(function(e){return fetch("/t/".concat(e,".json"))})', "/t/a.json /t/b.json"),
    # Lists
    ('for(const o of["a","b"])load(o),fetch("/data/"+o+".json")', "/data/a.json /data/b.json"),
    ('!function(){var r=new Array("a","b");for(var a in r)x.href="/d/"+r[a]}();', "/d/a /d/b"),
    ('new Set(["a","b"]).forEach(e=>{h+=`<a href="/t/${e}">`})', "/t/a /t/b"),
    ('"a b".split(" ").forEach(e=>{h+=`<a href="/t/${e}">`})', "/t/a /t/b"),
    ('const n=["a","b"];n.slice().sort().forEach(e=>{h+=`<a href="/t/${e}">`})', "/t/a /t/b"),
    ('$.each(["a","b"],function(t,a){$("#x").append(\'<a href="/t/\'+a+\'">\')})', "/t/a /t/b"),
    ('function f(){n.map(e=>{h+=`<a href="/t/${e}">`})}const n=["a","b"];f()', "/t/a /t/b"),
    ('D={names:["a","b"]};D.names.map(e=>{h+=`<a href="/t/${e}">`})', "/t/a /t/b"),
    (
        'const b="/t/";["x","y"].map(e=>{h+=`<a href="${b}${e}">`;fetch(b+"d/"+e+".json")})',
        "/t/d/x.json /t/d/y.json /t/x /t/y",
    ),
    ('["a","b"].map(a=>[1,2].map(b=>{h+=`<a href="/${a}/${b}">`}))', "/a/1 /a/2 /b/1 /b/2"),
    ("['A B','Ä'].map(t=>`<a href='/t/${encodeURIComponent(t)}'>`)", "/t/A%20B /t/%C3%84"),
    ("['News','Sport'].map(t=>`<a href='/${t.toLowerCase()}/'>`)", "/news/ /sport/"),
    ("const n=['a','b'];n.filter(e=>e.includes(q)).map(e=>{h+=`<a href='/t/${e}'>`})", "/t/a /t/b"),
    ("['a','b'].filter(function(e){return e!=q}).forEach(e=>{x.href='/t/'+e})", "/t/a /t/b"),
    (f"{OBJECTS}.filter((e)=>!e.draft).map(e=>{{x.href='/s/'+e.slug}})", "/s/one /s/two"),
    ("const n=['a'],o=['b','c'];[...n,...o].map(e=>{h+=`<a href='/t/${e}'>`})", "/t/a /t/b /t/c"),
    ("const n=['b'];for(const e of['a',...n,'c'])x.href='/t/'+e", "/t/a /t/b /t/c"),
    ("const l=navigator.language||'en';['a','b'].map(e=>{x.href='/'+l+'/'+e})", "/en/a /en/b"),
    ("const l=q.get('l')??'en';['a','b'].map(e=>{x.href='/'+l+'/'+e})", "/en/a /en/b"),
    ("[['a','A'],['b','B']].forEach(([e,t])=>{h+=`<a href='/t/${e}'>${t}</a>`})", "/t/a /t/b"),
    ("const n=[[1,'a'],[2,'b'],];for(const[e,t]of n)x.href='/t/'+t", "/t/a /t/b"),
    # Keys of an object
    ('Object.keys({a:1,"b-c":2}).map(k=>`<a href="/k/${k}">`)', "/k/a /k/b-c"),
    ('const n={a:"A",b:{c:[1,2],d:3}};for(const o in n)h+=`<a href="/k/${o}/">${n[o]}</a>`', "/k/a/ /k/b/"),
    ('const e={a:"A",b:"B"};for(const[n,o]of Object.entries(e))h+=`<a href="/k/${n}">${o}</a>`', "/k/a /k/b"),
    ('Object.entries({a:"A",b:"B"}).map(([e,a])=>{h+=`<a href="/k/${e}">${a}</a>`})', "/k/a /k/b"),
    # Numbers
    ("[...Array(3).keys()].map(i=>`<a href='/n/${i}'>`)", "/n/0 /n/1 /n/2"),
    ("Array.from({length:2},(r,h)=>`<a href='/n/${h+1}'>`)", "/n/1 /n/2"),
    ("Array.from({length:2},(e,t)=>t+1).map(r=>`<a href='/n/${r}'>`)", "/n/1 /n/2"),
    ("const p=Array.from({length:2},(r,n)=>n+1);p.forEach(r=>{h+=`<a href='/n/${r}'>`})", "/n/1 /n/2"),
    ("[...Array(2)].map((a,r)=>`<a href='/n/${r+1}'>`)", "/n/1 /n/2"),
    ("const N=2;for(let e=1;e<=N;e++)x.href='/q/'+e;", "/q/1 /q/2"),
    ("const t=['a','b'];for(let e=0;e<t.length;e++)x.href='/q/'+e;", "/q/0 /q/1"),
    ("for(let e=3;e>0;e--)x.href='/y/'+e;", "/y/3 /y/2 /y/1"),
    ("for(let e=2003;e>=2001;--e)h+=`<a href='/y/${e}/'>${e}</a>`", "/y/2003/ /y/2002/ /y/2001/"),
    ("for(let r=0;r<=20;r+=10)h+=`<a href='/list?from=${r}'>`", "/list?from=0 /list?from=10 /list?from=20"),
    ("var i=1; while (i <= 2) { x.href = '/w/' + i; i++; }", "/w/1 /w/2"),
    ("for(var r=0;r<2;)r++,h+='<a href=\"/w/'+r+'\">';", "/w/1 /w/2"),
    ("let i=1;do{x.href='/w/'+i;i++}while(i<3);", "/w/1 /w/2"),
    ("var r=0;do{r++,h+='<a href=\"/w/'+r+'\">'}while(r<2)", "/w/1 /w/2"),
    ("let i=1; do { x.href = '/w/' + i; i += 2; } while (i <= 5);", "/w/1 /w/3 /w/5"),
    ("for(let r=9;r<11;r++)h+='<a href=\"/z/'+String(r).padStart(2,\"0\")+'\">'", "/z/09 /z/10"),
    ("for(let r=9;r<11;r++)h+=`<a href='/z/${r.toString().padStart(3,'0')}'>`", "/z/009 /z/010"),
    ("for(let r=9;r<11;r++)x.src='z/'+('0'+r).slice(-2)+'.png'", "z/09.png z/10.png"),
    ("for(let r=9;r<11;r++)x.src='z/'+('00'+(r+1)).substr(-3)+'.png'", "z/010.png z/011.png"),
    ("for(let r=9;r<11;r++)x.src='z/'+(r<10?'0'+r:r)+'.png'", "z/09.png z/10.png"),
    ("for(let r=9;r<11;r++)x.src=`z/${r<10?`0${r}`:r}.png`", "z/09.png z/10.png"),
    ("for(let r=9;r<11;r++)x.src='z/'+(r<10?'0':'')+r+'.png'", "z/09.png z/10.png"),
    ('for(let t=9;t<11;t++){const n=String(t).padStart(2,"0");h+=`<a href="/z/${n}.html">`}', "/z/09.html /z/10.html"),
    # A template and its data
    (f'{OTHERS};const s={OBJECTS};for(const e of s)h+=`<a href="/s/${{e.slug}}">${{e.title}}</a>`', "/s/one /s/two"),
    (f'const s={OBJECTS};s.forEach(s=>{{a.href="/s/"+s.slug+".html",b(a)}})', "/s/one.html /s/two.html"),
    (f'{OBJECTS}.forEach(({{slug:t,title:e}})=>{{h+=`<a href="/s/${{t}}">${{e}}</a>`}})', "/s/one /s/two"),
    (f"for(const{{slug}}of {OBJECTS}){{h+=`<a href='/s/${{slug}}'>`}}", "/s/one /s/two"),
    (f"{OBJECTS}.forEach(o=>{{b.onclick=()=>{{window.location='/s/'+o.slug}}}})", "/s/one /s/two"),
    (f"const n={OBJECTS};for(var e=0;e<n.length;e++)h+='<a href=\"/s/'+n[e].slug+'\">'", "/s/one /s/two"),
    (f"const n={OBJECTS};for(let e=0;e<n.length;e++){{const t=n[e];x.href='/s/'+t.slug}}", "/s/one /s/two"),
    (f"const card=s=>`<a href='/s/${{s.slug}}'>`;show({OBJECTS}.map(card))", "/s/one /s/two"),
]

UNKNOWN = [
    # The name means something else there
    "for(let e=1;e<3;e++){f(e)}function g(e){x.href='/a/'+e}",
    "for(let e=1;e<3;e++){g(function(e){x.href='/a/'+e})}",
    "for(let e=1;e<3;e++){g(e=>{x.href='/a/'+e})}",
    "for(let e=1;e<3;e++)f(e);x.href='/a/'+e",
    "function f(){var n=['a','b']}function g(n){n.map(e=>{x.href='/a/'+e})}",
    "const n=['a','b'];n.filter(f).map(e=>{x.href='/a/'+e})",
    "['a','b'].map((e,t,n)=>{x.href='/a/'+n})",
    "['a','b'].reduce((e,t)=>{x.href='/a/'+t})",
    "try{f(['a'])}catch(e){x.href='/a/'+e}",
    "let p='a';p+=f();x.href='/a/'+p",
    "const n=['a','b'];x.href='/a/'+n",
    f"const s={OBJECTS};s.map(e=>{{x.href='/a/'+e.id}});o={{id:5}}",
    # Not known
    "[['a',f()],['b',y]].map(([e,t])=>{x.href='/a/'+t})",
    "[['a','b']].map(e=>{x.href='/a/'+e})",
    "[['a',['b','c']]].map(([e,t])=>{x.href='/a/'+t})",
    "const n=['a'];[...n,...f()].map(e=>{x.href='/a/'+e})",
    "let i=1;do{x.href='/a/'+i}while(i<3)",
    "let i=1;do{x.href='/a/'+i;i--}while(i<3)",
    "let i=1;do{x.href='/a/'+i;i++}while(i<n)",
    "const p=q||f();x.href='/a/'+p",
    "const p='a'+q||'b';x.href='/a/'+p",
    "for(let e=1;e<n;e++)x.href='/a/'+e;",
    "for(let e=1;e<3;e--)x.href='/a/'+e;",
    "for(let e=1;e<3;e+=0)x.href='/a/'+e;",
    "for(let e=f();e<3;e++)x.href='/a/'+e;",
    "for(let e=9;e>3;)x.href='/a/'+e;",
    "['a','b'].map(e=>{x.href='/a/'+e+f(e)})",
    "['a','b'].map(e=>{x.href=`/a/${e}/${y}`})",
    "['a','b'].map(e=>{x.href='/a/'+e.b})",
    "['a','b'].map(e=>{x.href='/a/'+e\n+y})",
    "['a','b'].map(e=>{x.href='//'+e+'.test/b'})",
    # Not used as a URL, or something is sent
    "['a','b'].map(e=>{const t='/a/'+e;f(t)})",
    "['a','b'].map(e=>{x.title='/a/'+e})",
    "['a','b'].map(e=>fetch('/a/'+e,{method:'POST'}))",
    "['a','b'].map(e=>$.ajax({url:'/a/'+e,type:'DELETE'}))",
    "['a','b'].map(e=>{const t='/a/'+e;fetch(t,{method:'PUT'})})",
    "['login','logout'].map(e=>{x.href='/'+e})",
]


def urls(text: str) -> list[str]:
    return [name for name, _ in javascript.joined_urls(text, page=True, worker=False)]


@pytest.mark.parametrize(("text", "expected"), MINIFIED, ids=[row[0][:50] for row in MINIFIED])
def test_urls_in_minified_code(text: str, expected: str) -> None:
    assert urls(text) == expected.split()
    assert urls(f"(()=>{{{text}\n}})();") == expected.split()


@pytest.mark.parametrize("text", UNKNOWN, ids=[text[:50] for text in UNKNOWN])
def test_parts_that_are_unknown(text: str) -> None:
    assert urls(text) == []


@pytest.mark.parametrize(
    ("opening", "closing"), [("[...", "]"), ("[...n,...", "]"), ("Object.keys(", ")"), ("structuredClone(", ")")]
)
@pytest.mark.parametrize("depth", [20, 400, 3000])
def test_lists_inside_lists(opening: str, closing: str, depth: int) -> None:
    nested = f"const n=['z'];const d={opening * depth}['a']{closing * depth};d.map(e=>{{x.href='/t/'+e}});"
    assert set(urls(nested + "n.map(e=>{x.href='/u/'+e})")) - {"/t/z", "/t/a"} == {"/u/z"}


PIECES = [
    *(
        "for(let e=1;e<3;e++)",
        "x.href='/a/'+e",
        ";",
        "}",
        "{",
        "(",
        ")",
        "[",
        "]",
        "`",
        "${",
        "${e}",
        "e=>",
        "function f(e)",
    ),
    *(
        "['a','b']",
        ".map(",
        "n",
        "=",
        "n[e]",
        "const n=",
        "of",
        "for(const e of",
        "...",
        "Array(3)",
        ".keys()",
        ".",
        ",",
    ),
    *(
        "Object.entries(",
        "{a:1,b:2}",
        "{slug:'a'}",
        "({slug:e})",
        "while(e<9)",
        "e++",
        "'<a href=\"/'+",
        "+'\">'",
        "'",
        '"',
        "\n",
    ),
]


@given(st.lists(st.sampled_from(PIECES)))
def test_any_pieces_of_code(pieces: list[str]) -> None:
    for address in composed.urls("href" + "".join(pieces), lambda _: False):
        assert not set(address) & set("\"'`{}[]\\\n*<>"), address


@pytest.mark.alone
@pytest.mark.parametrize(
    "piece",
    [
        "for(let e=1;e<9;e++)x.href='/'+e;",
        "['a'].map(e=>{x.href='/'+e});",
        "e=>{x.href='/'+e;",
        "e=f;x.href='/'+e;",
        "e=e1;e1=e2;e2=e;x.href='/'+e;",
        "const n=[{a:1}];n.map(e=>{x.href='/'+e.a});",
        "x.href='/'+e.a;o={a:1};",
        "while(e<9)x.href='/'+e;",
        "f((x.href='/'+e,",
        "function(e,e,e){x.href='/'+e",
        "Object.keys({a:1,b:{}}).map(e=>x.href='/'+e);",
        "x.href=`/${e}${e}`;e=[",
        "u='/'+e;fetch(u);",
        "[...",
        "[...n,'a',...",
        "[['a','b']].map(([e,t])=>{x.href='/'+t});",
        "do{x.href='/'+e;e++}while(e<9);",
        "e=e||'a';x.href='/'+e;",
        "{a:",
        "x.href='/'.concat(e,",
    ],
)
def test_ten_times_as_much_takes_about_ten_times_as_long(piece: str) -> None:
    def run(size: int) -> None:
        list(composed.urls("href;" + piece * (size // len(piece)), lambda _: False))

    assert growth(partial(run, 10_000), partial(run, 100_000), enough=20, floor=0.05) < 20


DATA = '[{"slug":"one","title":"One"},{"slug":"two","title":"Two"}]'


@pytest.mark.parametrize("start", ["<title>x</title>", "<p title='a'b>"])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            f'<script type="application/json" id="stories">{DATA}</script>',
            'const s=JSON.parse(f("stories").textContent);h(s.map(e=>`<a href="/story/${e.slug}">`))',
            "/story/one /story/two",
        ),
        (
            f"<script>window.__DATA__ = {{stories: {DATA}}};</script>",
            "window.__DATA__.stories.forEach(s => { h += '<a href=\"/story/' + s.slug + '.html\">' })",
            "/story/one.html /story/two.html",
        ),
        (
            "<script>window.tags = ['x', 'y']</script>",
            "for (const t of window.tags) a.href = '/tag/' + t;",
            "/tag/x /tag/y",
        ),
        ("<script>var tags = ['x', 'y']</script>", "tags.map(t => `<a href='/tag/${t}'>`)", "/tag/x /tag/y"),
        (
            f'<script type="application/json" id="others">{DATA}</script>',
            "h(s.map(e=>`<a href='/story/${e.slug}'>`))",
            "",
        ),
        (f"<script>var others = {DATA}</script>", "h(s.map(e=>`<a href='/story/${e.slug}'>`))", ""),
    ],
)
def test_data_in_another_script_of_the_page(start: str, first: str, second: str, expected: str) -> None:
    page = f"<!doctype html>{start}{first}<script>{second}</script>"
    found = links(Document("http://host.test/", "text/html", None, page.encode())).links
    assert {link.url for link in found} == {f"http://host.test{path}" for path in expected.split()}


def test_lists_inside_lists_lose_no_link_of_the_page() -> None:
    script = f"const n={'[...' * 2000}['a']{']' * 2000};n.map(e=>{{x.href='/t/'+e}})"
    page = f"<!doctype html><title>x</title><a href='/about'>a</a><script>{script}</script>"
    found = links(Document("http://host.test/", "text/html", None, page.encode())).links
    assert [link.url for link in found] == ["http://host.test/about"]
