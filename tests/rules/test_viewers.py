"""Files that viewers and loaders put together: animations, maps, panoramas, sheets of pictures, folders of loaders."""

import pytest

from archiver.extract import Document, links
from archiver.extract.script import loader_paths, viewers
from archiver.model import Hop

ROOT = "http://host.test"
LOTTIE = (
    '{"v":"5.7.4","fr":30,"assets":[{"id":"image_0","w":9,"h":9,"u":"images/","p":"img_0.png","e":0},'
    '{"id":"image_1","u":"","p":"img_1.svg"},{"id":"image_2","u":"","p":"data:image/png;base64,AA","e":1}]}'
)
STYLE = (
    '{"version":8,"sources":{"a":{"type":"vector"}},"sprite":"/map/sprite?v=1","glyphs":"/f/{fontstack}/{range}.pbf",'
    '"layers":[{"layout":{"text-font":["Open Sans Bold","Arial"]}},{"layout":{"text-font":["X"]}}]}'
)
TOUR = (
    '{"default":{"firstScene":"a"},"scenes":{"a":{"panorama":"one.jpg"},"b":{"type":"cubemap","cubeMap":["f.jpg",'
    '"r.jpg","b.jpg","l.jpg","u.jpg","d.jpg"]},"c":{"type":"multires","multiRes":{"basePath":"t","path":'
    '"/%l/%s%y_%x","fallbackPath":"/fallback/%s","extension":"png","tileResolution":512,"maxLevel":2,'
    '"cubeResolution":1024}}}}'
)
SHEET = '{"frames":{"a.png":{"frame":{"x":0}}},"meta":{"app":"x","image":"sheet.png","scale":"1"}}'
SHEETS = (
    '{"textures":[{"image":"s-0.png","format":"R","frames":[]},{"image":"s-1.png","frames":[]}],"meta":{"app":"x"}}'
)


def named(text: str, at: str, media_type: str = "application/json", page: str = "/p/") -> set[str]:
    """Return what the document names, below the host, and not relative to two folders."""
    document = Document(ROOT + at, media_type, "utf-8", text.encode(), Hop.SPECULATIVE, ROOT + page)
    return {link.url.removeprefix(ROOT) for link in links(document).links}


def lettered(stack: str) -> set[str]:
    return {f"/f/{stack}/{letters}.pbf" for letters in viewers.RANGES}


SYMBOLS = {f"/map/sprite{end}?v=1" for end in (".json", ".png", "@2x.json", "@2x.png")}
TILES = {
    *(f"t/fallback/{side}.png" for side in "fbudlr"),
    *(f"t/1/{side}0_0.png" for side in "fbudlr"),
    *(f"t/2/{side}{row}_{column}.png" for side in "fbudlr" for row in "01" for column in "01"),
}
PANORAMAS = {"one.jpg", *(f"{side}.jpg" for side in "frblud"), *TILES}
CASES = [
    (LOTTIE, {"images/img_0.png", "img_1.svg"}),
    (TOUR, PANORAMAS),
    (SHEET, {"sheet.png"}),
    (SHEETS, {"s-0.png", "s-1.png"}),
    (TOUR.replace('"default":{', '"default":{"basePath":"/pano/",'), {f"/pano/{name}" for name in PANORAMAS}),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_data_names_files_beside_itself_and_a_script_means_its_page(text: str, expected: set[str]) -> None:
    def below(folder: str) -> set[str]:
        return {name if name.startswith("/") else folder + name for name in expected}

    found = named(text, "/d/data.json")
    assert below("/d/") <= found
    assert below("/p/") <= named(f"show({text})", "/js/a.js", "text/javascript")
    page = f"<script>show({text})</script>"
    assert below("/") <= named(page, "/", "text/html", "")


@pytest.mark.parametrize("text", [LOTTIE.replace("images/", ""), SHEETS, TOUR.replace('"t"', '"/t"')])
def test_a_bare_name_in_data_is_not_looked_for_beside_the_page(text: str) -> None:
    assert not {name for name in named(text, "/d/data.json") if name.startswith("/p/")}


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (STYLE, SYMBOLS | lettered("Open%20Sans%20Bold,Arial") | lettered("X")),
        (STYLE.replace('"/map/sprite?v=1"', '[{"id":"a","url":"/map/sprite?v=1"}]'), SYMBOLS | lettered("X")),
        (STYLE.replace("text-font", "text-face"), lettered("Open%20Sans%20Regular,Arial%20Unicode%20MS%20Regular")),
        (STYLE.replace('"version":8', '"version":2'), set()),
        (STYLE.replace('"/map/sprite?v=1"', '""'), lettered("X")),
    ],
)
def test_symbols_and_letters_of_a_map(style: str, expected: set[str]) -> None:
    for found in (named(style, "/d/style.json"), named(f"m={{style:{style}}}", "/js/a.js", "text/javascript")):
        assert expected <= found
        assert expected or not found
        assert '""' not in style or not found & SYMBOLS


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('lottie.loadAnimation({container:e,renderer:"svg",path:"anim/data.json"})', {"/p/anim/data.json"}),
        ("new M.Map({container:'m',style:'map/style.json'})", {"/p/map/style.json"}),
        ('url:"pmtiles:///t/a.pmtiles"', {"/t/a.pmtiles"}),
        ("b=ePub('books/a/')", {"/p/books/a/META-INF/container.xml"}),
        ("b=ePub('books/a/OPS/a.opf')", {"/p/books/a/OPS/a.opf"}),
        ('sprite:"hero",version:8', set()),
        ('panorama:"left"', set()),
        ('meta:{image:"x.png"}', set()),
    ],
)
def test_what_scripts_give_to_viewers(script: str, expected: set[str]) -> None:
    assert named(script, "/js/a.js", "text/javascript") == expected


@pytest.mark.parametrize("media_type", ["text/xml", "application/octet-stream"])
def test_an_unpacked_book(media_type: str) -> None:
    container = (
        '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf"><manifest><item href="text/1.xhtml"/>'
        '<item href="toc.ncx"/><item href="pics/a.jpg"/></manifest></package>'
    )
    assert named(container, "/b/META-INF/container.xml", media_type) == {"/b/OPS/a.opf"}
    parts = {f"/b/OPS/{name}" for name in ("text/1.xhtml", "toc.ncx", "pics/a.jpg")}
    assert named(package, "/b/OPS/a.opf", media_type) == parts


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('new A.Cube().setPath("sky/").load(["px.jpg","nx.jpg"],f)', {"sky/px.jpg", "sky/nx.jpg"}),
        ('const l=new G;l.setPath("m/");l.load("a.glb",f);o.load("b.glb")', {"m/a.glb"}),
        ('const l = new THREE.G( m ).setPath( "m" );\nl.loadAsync( "a.glb" )', {"m/a.glb"}),
        ('l.setPath("a/");l.load("1.png");l.setPath("b/");l.load("2.png")', {"a/1.png", "b/2.png"}),
        ("l.setDecoderPath('d/');", {"d/draco_wasm_wrapper.js", "d/draco_decoder.wasm"}),
        (
            (
                'this.load.setPath("assets");this.load.image("logo","logo.png");this.load.image("sky");'
                'this.load.atlas("k","a.png","a.json");this.load.audio("s",["s.ogg","s.mp3"])'
            ),
            {f"assets/{name}" for name in ("logo.png", "sky.png", "a.png", "a.json", "s.ogg", "s.mp3")},
        ),
        (
            'this.load.setBaseURL("/game");this.load.setPath("img/");this.load.image(`logo`,`logo.png`)',
            {"/game/img/logo.png"},
        ),
        ('this.load.tilemapTiledJSON("map","maps/1.json")', {"maps/1.json"}),
        ('l.setPath(p);l.load("a.glb")', set()),
        ('l.load("a.glb")', set()),
        ('/**\n * this.load.image("a", "b/c.png");\n */\n  // this.load.image("a","b/d.png")\n', set()),
        ('$("#a").load("b.html");x.load.call(this,"c")', set()),
    ],
)
def test_loaders_with_a_folder(script: str, expected: set[str]) -> None:
    def is_file(name: str) -> bool:
        return name.rpartition(".")[1] == "."

    assert set(loader_paths.urls(script, is_file)) == expected
    assert {f"/p/{name}" for name in expected if name[0] != "/"} <= named(script, "/js/a.js", "text/javascript")


HOSTILE = ("{u:", '"u":"', '"u":"",', "{", "meta:{", "textures frames image {", "multiRes:{", "panorama:`", "cubeMap:[")
MORE = (".load(", ".load.image(", ".setPath('a/')", "a=new B(", "cubeMap:['a',", "text-font:['a',", "sources glyphs:'")


@pytest.mark.parametrize("piece", [*HOSTILE, *MORE])
def test_many_of_a_piece_are_bounded(piece: str) -> None:
    text = "panorama frames image sources version:8 .load. setPath(" + piece * 20_000
    assert len(list(viewers.of_script(text))) <= 3 * viewers.MOST
    assert len(list(loader_paths.urls(text, bool))) <= loader_paths.MOST
