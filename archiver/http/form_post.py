"""A request with a body. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FormPost:
    """A form, or data of a script, that is sent with POST."""

    body: bytes = field(repr=False)  # of a form, it may hold a password
    content_type: str  # "": none is named
    page: str  # URL of the page that has the form or the script
    secret: bool = True  # only for verified connections
