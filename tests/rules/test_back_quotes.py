"""Strings of scripts in back quotes: some minifiers, as that of Vite 8, write all strings so."""

import re

import pytest

from archiver.extract import Document, links
from archiver.model import Hop

ROOT = "http://host.test"
STRING = re.compile(r'"([^"\n]*)"')
SCRIPTS = (
    r'new Search({bundlePath:"/docs/".replace(/\/$/,"")+"/pagefind/"})',
    'new Search({bundlePath:"/docs/pagefind/"})',
    'mount(C,{basename:"/app"});r=[{path:"/one",component:A},{path:"/two",component:B}]',
    'new R({history:h("/app/")});r=[{path:"/one",component:A},{path:"/two",component:B}]',
    'r=[["/guide/a.html",{loader:()=>1}],["/guide/b/",{loader:()=>1}]]',
    'self.skipWaiting();precacheAndRoute([{url:"a.html",revision:"f0"},{revision:"f1",url:"b.js"}],{})',
    'n.setAttribute("src","pics/a.png");e.setAttribute("href","/about/us")',
    'n.setAttribute("src","a.png")',
    'x.open("GET","/items/list");y.open("GET","d/items.json")',
    'L.tileLayer("t/{z}/{x}/{y}.png",{maxZoom:3,minZoom:1}).addTo(L.map("m").setView([10,10],2))',
    'OpenSeadragon({id:"x",prefixUrl:"osd/images/",tileSources:"pics/a.dzi"})',
    'OpenSeadragon({tileSources:{type:"zoomifytileservice",width:600,height:400,tilesUrl:"z/"}})',
    (
        'OpenSeadragon({tileSources:{Image:{xmlns:"http://schemas.microsoft.com/deepzoom/2008",Url:"z_files/",'
        'Format:"jpg",TileSize:"256",Size:{Width:"600",Height:"300"}}}})'
    ),
    'define(["./a","./b"],function(){})',
    'const a=["one.png","two.png"];i.src="pics/"+a[0]',
    'const a=["one.png","two.png"];i.setAttribute("src","pics/"+a[0])',
    'for(let i=1;i<4;i++)d.innerHTML+="<a href=\'page"+i+".html\'>x</a>"',
    'const p=["a","b","c"];for(const s of p)h("a",{href:"/story/"+s})',
    'const names={a:"x",b:"y"};for(const k in names)im.src="pics/"+k+".png"',
    'const base="/files/";fetch(base+"a.json")',
    'const base=new URL("./",import.meta.url).href;fetch(base+"a.json")',
    'new Worker(new URL("./w.js",import.meta.url))',
    'u={url:"/one/page",to:"/two/page"};history.pushState({},"","/three/page")',
    "e.innerHTML=\"<img src='a/b.png'><a href='/q/r'>\"",
    'e.innerHTML="<img src=\'a/b.png\'>"+t("x")+"<img src=\'a/c.png\'>"',
    'window.$docsify={homepage:"start.md",loadSidebar:"nav.md"}',
    'load(gitbook.state.root+"/search_index.json")',
    'e={baseUrl:"https://cdn.test/e/",files:{a:"a.png",b:"pics/b.png"}};i.src="own.png"',
)


def named(script: str, *, inline: bool) -> set[tuple[str, Hop]]:
    if inline:
        body = f"<script>{script}</script>".encode()
        document = Document(f"{ROOT}/p/", "text/html", "utf-8", body, Hop.LINK)
    else:
        at = f"{ROOT}/p/gitbook/x.js"
        document = Document(at, "text/javascript", "utf-8", script.encode(), Hop.REQUISITE, f"{ROOT}/p/")
    return {(link.url, link.hop) for link in links(document).links}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_string_means_the_same_in_every_kind_of_quotes(script: str) -> None:
    one, two = named(script, inline=True), named(script, inline=False)
    assert one | two
    for quotes in (r"`\1`", r"'\1'") if "'" not in script else (r"`\1`",):
        other = STRING.sub(quotes, script)
        assert (named(other, inline=True), named(other, inline=False)) == (one, two), other
