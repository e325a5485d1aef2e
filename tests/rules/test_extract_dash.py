"""URLs in DASH manifests."""

import pytest

from archiver.extract import Document, links, media
from archiver.model import Hop

PAGE = "http://e.org/d/p"
E = Hop.REQUISITE


def mpd(inside: str, more: str = "mediaPresentationDuration='PT10S'") -> list[tuple[str, Hop]]:
    body = f"<MPD xmlns='urn:mpeg:dash:schema:mpd:2011' {more}>{inside}</MPD>"
    named = links(Document(PAGE, "application/dash+xml", None, body.encode(), E)).links
    return [(link.url.removeprefix("http://e.org"), link.hop) for link in named]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (
            (
                "<BaseURL>/v/</BaseURL><BaseURL>//copy.org/</BaseURL><Period><AdaptationSet><BaseURL>a/</BaseURL>"
                "<Representation id='r' bandwidth='9'><BaseURL>f.mp4</BaseURL><SegmentBase indexRange='0-9'/>"
                "</Representation>"
            ),
            ["/v/a/f.mp4"],
        ),
        (
            (
                "<Period><AdaptationSet><SegmentTemplate timescale='10' duration='40' startNumber='0' "
                "media='$RepresentationID$/$Number%05d$-$Bandwidth$$$.m4s' "
                "initialization='$RepresentationID$/i.mp4'/>"
                "<Representation id='x' bandwidth='7'/><Representation id='y' bandwidth='8'/></AdaptationSet>"
                "</Period>"
            ),
            [
                *("x/i.mp4", "x/00000-7$.m4s", "x/00001-7$.m4s", "x/00002-7$.m4s"),
                *("y/i.mp4", "y/00000-8$.m4s", "y/00001-8$.m4s", "y/00002-8$.m4s"),
            ],
        ),
        (
            (
                "<Period><AdaptationSet><SegmentTemplate timescale='1' media='$Time$.m4s'><SegmentTimeline>"
                "<S t='5' d='2' r='1'/><S d='3'/></SegmentTimeline></SegmentTemplate>"
                "<Representation id='x'/></AdaptationSet></Period>"
            ),
            ["5.m4s", "7.m4s", "9.m4s"],
        ),
        (
            (
                "<Period><AdaptationSet><SegmentTemplate media='$Number$.m4s'><SegmentTimeline>"
                "<S t='0' d='4' r='-1'/></SegmentTimeline></SegmentTemplate>"
                "<Representation id='x'/></AdaptationSet></Period>"
            ),
            ["1.m4s", "2.m4s", "3.m4s"],
        ),
        (
            (
                "<Period><AdaptationSet><SegmentTemplate media='p-$Number$.m4s'/><Representation id='x'>"
                "<SegmentTemplate duration='5' endNumber='3'/></Representation></AdaptationSet></Period>"
            ),
            ["p-1.m4s", "p-2.m4s", "p-3.m4s"],
        ),
        (
            (
                "<Period duration='PT6S'><AdaptationSet><SegmentTemplate media='$Number$' duration='6'/>"
                "<Representation/></AdaptationSet></Period>"
                "<Period start='PT6S'><AdaptationSet><SegmentTemplate media='b$Number$' duration='2'/>"
                "<Representation/></AdaptationSet></Period>"
            ),
            ["1", "b1", "b2"],
        ),
        (
            (
                "<Period><AdaptationSet><Representation><SegmentList><Initialization sourceURL='i'/>"
                "<SegmentURL media='1' index='1x'/><SegmentURL mediaRange='0-1'/></SegmentList></Representation>"
            ),
            ["i", "1", "1x"],
        ),
        ("<Period><AdaptationSet><Representation/></AdaptationSet></Period>", []),
    ],
)
def test_dash(inside: str, expected: list[str]) -> None:
    assert mpd(inside) == [(path if path.startswith("/") else f"/d/{path}", E) for path in expected]


def test_a_live_dash_manifest_names_its_current_segments() -> None:
    template = "<SegmentTemplate media='$Number$' initialization='i' duration='2'/>"
    inside = f"<Period><AdaptationSet>{template}<Representation/></AdaptationSet></Period>"
    assert mpd(inside, "type='dynamic'") == [("/d/i", E)]


@pytest.mark.parametrize(
    "inside",
    [
        (
            "<Period><AdaptationSet><SegmentTemplate media='$Number$' duration='1' timescale='1000000000'/>"
            "<Representation/></AdaptationSet></Period>"
        ),
        "<Period><AdaptationSet><SegmentTemplate media='$Time$'><SegmentTimeline><S d='0' r='999999999999'/>"
        "<S d='1' r='-1'/>"
        "</SegmentTimeline></SegmentTemplate>" + "<Representation/>" * 20_000 + "</AdaptationSet></Period>",
        "<Period><AdaptationSet><SegmentTemplate media='x'><SegmentTimeline>"
        + "<S/>" * 10_000
        + "</SegmentTimeline></SegmentTemplate>"
        + "<Representation/>" * 10_000,
    ],
)
def test_dash_is_bounded(inside: str) -> None:
    text = f"<MPD mediaPresentationDuration='P9999999Y'>{inside}"
    named, _ = media.read_dash(lambda: iter((text,)), PAGE)
    assert len(named.links(PAGE, "utf-8").links) <= media.MOST


def test_a_template_with_too_many_fields_is_ignored() -> None:
    template = "$Number$" * 5000
    inside = f"<SegmentTemplate media='{template}' duration='1'/><Representation/>"
    assert mpd(f"<Period><AdaptationSet>{inside}</AdaptationSet></Period>") == []
