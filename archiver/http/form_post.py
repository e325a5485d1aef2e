"""A form that is sent with POST. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FormPost:
    """A form that is sent with POST: its body, which may hold a password, and what the headers say of it."""

    body: bytes = field(repr=False)
    content_type: str
    page: str  # URL of the page that has the form
