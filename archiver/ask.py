"""A request with a body, as a page in a browser sends it by itself. Pure."""

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field

METHOD = "__wb_method="  # in the keys of responses to other methods than GET
POST = "POST"
ASKED_BY_SCRIPT = "askedByScript"  # in the notes of its exchange
LARGEST = 1 << 20  # bytes of a body


@dataclass(frozen=True, slots=True)
class Ask:
    """A POST: all that is sent but the headers that every request has."""

    target: str  # canonical URL; its row has another one, by which a replay looks the answer up
    content_type: str  # "" if the page names none
    body: bytes = field(repr=False)
    fields: tuple[tuple[str, str], ...] = ()  # further headers that scripts of the page have set

    def text(self) -> str:
        """Return it as text for a database."""
        return json.dumps([self.target, self.content_type, b64encode(self.body).decode(), self.fields])

    @classmethod
    def of_text(cls, text: str) -> "Ask":
        """Return what `text` has written."""
        target, content_type, body, fields = json.loads(text)
        return cls(target, content_type, b64decode(body), tuple((name, value) for name, value in fields))
