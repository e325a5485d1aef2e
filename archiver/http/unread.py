"""Bodies that are not read to their end, decided by the head alone: unwanted media types, and what never ends. Pure.

What is left out is told by a remark, which stands in the metadata record and in crawl.log, and from which a sentence
for people is made, live and in recovery alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from archiver.http import endless
from archiver.http.endless import Extent
from archiver.model import Framing


class Word(StrEnum):
    """The words with which such remarks begin; a colon follows, and what it was about."""

    EXCLUDED = "exclude-type"
    NOT_INCLUDED = "no-include-type"
    ENDLESS = "endless"
    UNSTATED = "unstated-length"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The media types whose bodies are read, as the settings name them (`video/*`); exclude goes before include."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def extent(self, framing: Framing) -> Extent:
        """How far the body of an answer that begins like this is read."""
        remark = self._refusal(framing.media_type) if 200 <= framing.status < 300 else ""
        return Extent(remark, seconds=0.0) if remark else endless.extent(framing)

    def _refusal(self, media_type: str) -> str:
        for pattern in self.exclude:
            if _is_like(media_type, pattern):
                return f"{Word.EXCLUDED}:{pattern}"
        named = not self.include or not media_type or any(_is_like(media_type, pattern) for pattern in self.include)
        return "" if named else f"{Word.NOT_INCLUDED}:{media_type}"


def _is_like(media_type: str, pattern: str) -> bool:
    return media_type.startswith(pattern[:-1]) if pattern.endswith("/*") else media_type == pattern


def reason(remarks: Iterable[str]) -> str:
    """Why a body was not read to its end, for a person; "" where no remark says that it was not."""
    for remark in remarks:
        word, _, detail = remark.partition(":")
        match word:
            case Word.ENDLESS:
                return f"an endless stream ({detail}), of which a sample is kept"
            case Word.UNSTATED:
                return f"no length was stated, and the rest was left at {detail}"
            case Word.EXCLUDED:
                return f"the rest was not wanted: exclude-type {detail}"
            case Word.NOT_INCLUDED:
                return f"the rest was not wanted: no include-type names {detail}"
    return ""
