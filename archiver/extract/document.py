"""The one thing every reader is given: a body, and what the answer said about it.

The body is free of content codings (`extract.coding`); everything else may be wrong, and each reader
must cope.
"""

from dataclasses import dataclass

from archiver.model import Hop


@dataclass(frozen=True, slots=True)
class Document:
    """A body in which links may be found. `url` is canonical and final: relative references start there."""

    url: str
    media_type: str  # in lower case, without parameters; "" where the answer does not say
    charset: str | None  # the parameter of Content-Type, as it stands there
    body: bytes
    hop: Hop = Hop.LINK  # how it was reached: a MANIFEST is read as a sitemap
    page: str = ""  # the page that runs it, if it is a script or data for one, and that is known
