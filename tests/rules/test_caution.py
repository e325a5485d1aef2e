"""Caution: no more visits of one pattern are under way than there is room for."""

from archiver.crawl.caution import Caution
from archiver.model import Claim, Hop


def _claim(number: int, name: str) -> Claim:
    return Claim(number, f"http://example.org/{name}/{number}", 1, Hop.LINK, "L", 1, 0, 0)


def _room(claim: Claim) -> tuple[str, int]:
    name = claim.url.split("/")[3]
    return ("", 0) if name == "free" else (name, 2)


def test_room() -> None:
    caution = Caution(_room)
    first, second, third = (_claim(number, "trap") for number in range(3))
    assert not caution.premature(first)
    assert not caution.premature(second)
    assert caution.premature(third)
    assert not caution.premature(_claim(9, "other"))
    caution.over(third)  # it never was under way
    assert caution.premature(third)
    caution.over(first)
    caution.over(first)
    assert not caution.premature(third)
    assert caution.premature(first)


def test_where_there_is_no_limit() -> None:
    caution = Caution(_room)
    assert not any(caution.premature(_claim(number, "free")) for number in range(100))
