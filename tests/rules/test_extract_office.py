"""Office files and e-books: small files of each format, broken ones, and any bytes."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract import Document, links, office, readable
from archiver.model import Hop
from fixtures.extracted_links import PAGE

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"
RELATIONS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
 Target="http://e.org/a?b=1&amp;c=2" TargetMode="External"/><Relationship Id="r2" Target='media/image1.png'/>
<Relationship Id="r3" TargetMode="External" Target='https://f.org/caf\u00e9'/></Relationships>"""
FIELDS = (
    '<w:p xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    '<w:instrText> HYPERLINK "http://e.org/f" </w:instrText><w:fldSimple w:instr="HYPERLINK &quot;http://e.org/g?a=1&amp;b=2&quot;"/><w:t>http://no.org/</w:t></w:p>'
)
CONTENT = (
    '<office:document-content xmlns:xlink="http://www.w3.org/1999/xlink"><text:a xlink:type="simple" '
    'xlink:href="http://e.org/o"/><draw:image xlink:href="Pictures/1.png"/></office:document-content>'
)
CHAPTER = '<html xmlns="http://www.w3.org/1999/xhtml"><a href="http://e.org/b">x</a><a href="c2.xhtml"/><video src="http://e.org/v"/></html>'
WORD_FILE = {"[Content_Types].xml": "<Types/>", "word/_rels/document.xml.rels": RELATIONS, "word/document.xml": FIELDS}
FILES: dict[str, dict[str, str]] = {
    WORD: WORD_FILE,
    ODT: {"mimetype": ODT, "content.xml": CONTENT, "Pictures/1.png": 'href="http://no.org/"'},
    EPUB: {"mimetype": EPUB, "META-INF/container.xml": "<container/>", "OEBPS/c1.xhtml": CHAPTER},
}
EXPECTED = {
    WORD: ["http://e.org/a?b=1&c=2", "https://f.org/caf%C3%A9", "http://e.org/f", "http://e.org/g?a=1&b=2"],
    ODT: ["http://e.org/o"],
    EPUB: ["http://e.org/b", "http://e.org/v"],
}


def packed(files: dict[str, str], *, stored: bool = False) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in files.items():
            kind = zipfile.ZIP_STORED if stored or name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(name, text, kind)
    return target.getvalue()


def found(body: bytes, media_type: str) -> list[str]:
    read = links(Document(PAGE, media_type, None, body))
    assert {link.hop for link in read.links} <= {Hop.LINK}
    return [link.url for link in read.links]


@pytest.mark.parametrize("media_type", FILES)
def test_links_of_each_format(media_type: str) -> None:
    body = packed(FILES[media_type])
    assert found(body, media_type) == EXPECTED[media_type]
    for unspecific in ("application/octet-stream", "", "application/zip"):
        assert found(body, unspecific) == EXPECTED[media_type]


@pytest.mark.parametrize("media_type", [WORD, "application/vnd.ms-excel.sheet.macroenabled.12", ODT, EPUB])
def test_the_first_bytes_decide(media_type: str) -> None:
    assert not readable(Document(PAGE, media_type, None, b"\xd0\xcf\x11\xe0 an older format"))
    assert readable(Document(PAGE, media_type, None, packed(WORD_FILE)[:4096]))


def test_other_zip_archives_are_not_read() -> None:
    body = packed({"page.html": '<a href="http://no.org/">'})
    assert [found(body, kind) for kind in ("application/zip", "application/octet-stream", "image/png")] == [[], [], []]


def test_broken_archives() -> None:
    body = packed(WORD_FILE)
    for cut in (body[:-10], body[: len(body) // 2], b"PK\x03\x04"):
        read = links(Document(PAGE, WORD, None, cut))
        assert (read.links, read.note) == ((), "a broken or encrypted ZIP archive: its links were not read")
    at = body.index(b"word/_rels") + 60
    read = links(Document(PAGE, WORD, None, body[:at] + b"\0\xff\0\xff" + body[at + 4 :]))
    assert (len(read.links), read.note) == (2, "not all parts were read")


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_UNPACKED", 5000)
    read = links(Document(PAGE, WORD, None, packed({"bomb.xml": " " * 5001} | WORD_FILE)))
    assert ([link.url for link in read.links], read.note) == (EXPECTED[WORD], "not all parts were read")
    monkeypatch.setattr(office, "MOST_MEMBERS", 2)
    read = links(Document(PAGE, WORD, None, packed(WORD_FILE)))
    assert (len(read.links), read.note) == (2, "not all parts were read")


@given(st.binary() | st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=8)))
def test_any_bytes(given: bytes | tuple[int, bytes]) -> None:
    body = packed(WORD_FILE, stored=True)
    if isinstance(given, bytes):
        body = b"PK\x03\x04" + given
    else:
        body = body[: given[0]] + given[1] + body[given[0] + len(given[1]) :]
    for media_type in FILES:
        read = links(Document(PAGE, media_type, None, body))
        assert all(link.url.startswith(("http://", "https://")) for link in read.links)
