"""The input of every reader: a body, and what the response says about it.

Content codings are already removed from the body. Everything else may be wrong, and each reader must cope with that.
"""

from dataclasses import dataclass

from archiver.model import Hop


@dataclass(frozen=True, slots=True)
class Document:
    """A body in which links may be found. `url` is canonical and final: it is the base of relative references."""

    url: str
    media_type: str  # in lower case, without parameters; "" if the response does not say
    charset: str | None  # the parameter of Content-Type, as written
    body: bytes
    hop: Hop = Hop.LINK  # how the document was reached; a MANIFEST is read as a sitemap
    page: str = ""  # for a script or its data: the page that runs it, if known
