"""The forms of an HTML page: take over their values, and encode them as a browser would (HTML §4.10.21). Pure.

A submitted form has the values of all its enabled controls, in document order, and that of its default button. Values
that are given replace them; a given field that the form lacks is appended, because scripts add such fields.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote_plus

from lxml import etree

from archiver import url
from archiver.extract import charset
from archiver.http.form_post import FormPost

MAX_PAGE = 4 << 20  # bytes of a page in which forms are looked for
MAX_FORMS = 200
MAX_CONTROLS = 2000  # of one page
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

_BUTTONS = frozenset(("submit", "image"))
_SILENT = frozenset(("button", "reset", "file"))  # never sent, or only with a file that was chosen
_CHOICES = frozenset(("checkbox", "radio"))
_NEWLINE = re.compile(r"\r\n|\r|\n")
_FOUND = ("input", "button", "select", "textarea")


class Control(NamedTuple):
    """One control of a form."""

    name: str
    kind: str  # the type of an input or a button; "select", "textarea"
    values: tuple[str, ...]  # several only for a list
    chosen: bool = True  # False for a box that is not checked
    action: str = ""  # of a button: it replaces that of the form


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a page."""

    page: str
    name: str  # its id, or its name
    action: str  # canonical URL; "" if that cannot be requested
    post: bool  # False: its values are the query of a GET
    enctype: str
    encoding: str
    controls: tuple[Control, ...]

    @property
    def has_password(self) -> bool:
        """True if it asks for a password."""
        return any(control.kind == "password" for control in self.controls)

    @property
    def passwords(self) -> frozenset[str]:
        """The names of its password fields."""
        return frozenset(control.name for control in self.controls if control.kind == "password")

    def filled(self, given: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the names and values that are sent, with those of *given* in place of the form's own."""
        left = dict(given)
        default = next((control for control in self.controls if control.kind in _BUTTONS), None)
        pressed = next(
            (control for control in self.controls if control.kind in _BUTTONS and control.name in given), default
        )
        pairs: list[tuple[str, str]] = []
        for control in self.controls:
            if not control.name or control.kind in _SILENT or (control.kind in _BUTTONS and control is not pressed):
                continue
            if control.name in given:
                if control.name in left and (control.kind not in _CHOICES or given[control.name] in control.values):
                    pairs.append((control.name, left.pop(control.name)))
            elif control.kind == "image":
                pairs += ((f"{control.name}.x", "0"), (f"{control.name}.y", "0"))
            elif control.chosen:
                pairs += ((control.name, value) for value in control.values)
        return [*pairs, *left.items()]

    def address(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Return the URL that is requested with *pairs*: the action, with them as its query if it is a GET."""
        if self.post:
            return self.action
        return url.canonical(f"{self.action.partition('?')[0]}?{_urlencoded(pairs, self.encoding)}") or ""

    def body(self, pairs: Sequence[tuple[str, str]]) -> FormPost | None:
        """Return what is posted for *pairs*; None if it is a GET."""
        if not self.post:
            return None
        if self.enctype == MULTIPART:
            boundary, body = _multipart(pairs, self.encoding)
            return FormPost(body, f"{MULTIPART}; boundary={boundary}", self.page)
        return FormPost(_urlencoded(pairs, self.encoding).encode("ascii"), URLENCODED, self.page)


def forms_of(body: bytes, header: str | None, address: str) -> list[Form]:
    """Return the forms of the page at URL *address*; *header* is the charset of its Content-Type."""
    body = body[:MAX_PAGE]
    encoding = charset.of_html(body, header)
    root = _parsed(charset.text(body, encoding))
    if root is None:
        return []
    base = next((each.get("href") for each in root.iter("base") if each.get("href") is not None), None)
    base = (base is not None and url.join(address, base)) or address
    elements: list[etree._Element] = []
    for each in root.iter("form"):
        elements.append(each)
        if len(elements) >= MAX_FORMS:
            break
    controls: dict[etree._Element, list[Control]] = {each: [] for each in elements}
    by_id = {each.get("id"): each for each in reversed(elements) if each.get("id")}
    for number, each in enumerate(root.iter(*_FOUND)):
        if number >= MAX_CONTROLS:
            break
        owner = by_id.get(each.get("form")) if each.get("form") else next(each.iterancestors("form"), None)
        if owner in controls and (control := _control(each)) is not None:
            controls[owner].append(control)
    return [_form(each, controls[each], address, base, encoding) for each in elements]


def chosen(forms: Sequence[Form], wanted: str) -> Form | None:
    """Return the form that *wanted* names: its number (from 1), its id or name, or a part of its action.

    Without *wanted* it is the first one with a password field.
    """
    if not wanted:
        return next((form for form in forms if form.has_password), None)
    if wanted.isdecimal() and 0 < int(wanted) <= len(forms):
        return forms[int(wanted) - 1]
    named = next((form for form in forms if form.name == wanted), None)
    return named or next((form for form in forms if wanted in form.action), None)


def _parsed(source: str) -> "etree._Element | None":
    parser = etree.HTMLParser(encoding="utf-8", recover=True, no_network=True)
    try:
        return etree.fromstring(source.encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        return None


def _form(element: "etree._Element", controls: list[Control], page: str, base: str, encoding: str) -> Form:
    button = next((control for control in controls if control.kind in _BUTTONS), None)
    action = (button.action if button is not None else "") or (element.get("action") or "").strip()
    accepted = (charset.encoding_name(label) for label in re.split(r"[\s,]+", element.get("accept-charset") or ""))
    encoding = next(filter(None, accepted), encoding)
    enctype = (element.get("enctype") or "").strip().lower()
    return Form(
        page,
        element.get("id") or element.get("name") or "",
        (url.join(base, action) if action else page) or "",
        (element.get("method") or "").strip().lower() == "post",
        enctype if enctype == MULTIPART else URLENCODED,
        "utf-8" if encoding.startswith(("utf-16", "replacement", "x-user")) else encoding,
        tuple(controls),
    )


def _control(element: "etree._Element") -> Control | None:
    """Return the control that *element* is; None if a form never sends it."""
    if element.get("disabled") is not None or next(element.iterancestors("datalist"), None) is not None:
        return None
    if any(each.get("disabled") is not None for each in element.iterancestors("fieldset")):
        return None
    name, value = element.get("name") or "", element.get("value")
    match element.tag:
        case "select":
            return Control(name, "select", tuple(_selected(element)))
        case "textarea":
            return Control(name, "textarea", ("".join(element.itertext()).removeprefix("\n"),))
        case "button":
            kind = (element.get("type") or "submit").strip().lower()
            kind = kind if kind in {"button", "reset"} else "submit"
        case _:
            kind = (element.get("type") or "text").strip().lower()
    if kind in _CHOICES:
        return Control(name, kind, ("on" if value is None else value,), element.get("checked") is not None)
    return Control(name, kind, (value or "",), action=(element.get("formaction") or "").strip())


def _selected(element: "etree._Element") -> Iterator[str]:
    options = [each for each in element.iter("option") if each.get("disabled") is None]
    picked = [each for each in options if each.get("selected") is not None]
    if element.get("multiple") is None:
        picked = picked[-1:] or options[:1]
    for each in picked:
        value = each.get("value")
        yield " ".join("".join(each.itertext()).split()) if value is None else value


def _urlencoded(pairs: Iterable[tuple[str, str]], encoding: str) -> str:
    return "&".join(
        f"{quote_plus(_encoded(name, encoding), safe='*')}={quote_plus(_encoded(value, encoding), safe='*')}".replace(
            "~", "%7E"
        )
        for name, value in pairs
    )


def _multipart(pairs: Sequence[tuple[str, str]], encoding: str) -> tuple[str, bytes]:
    """Return a boundary that occurs in no value, and the body."""
    parts = []
    for name, value in pairs:
        quoted = _encoded(name, encoding).replace(b'"', b"%22").replace(b"\r\n", b"%0D%0A")
        parts.append(b'Content-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (quoted, _encoded(value, encoding)))
    boundary = f"----form{hashlib.sha256(b''.join(parts)).hexdigest()[:32]}"
    mark = f"--{boundary}".encode()
    return boundary, b"".join(mark + b"\r\n" + part for part in parts) + mark + b"--\r\n"


def _encoded(text: str, encoding: str) -> bytes:
    """Return *text* in *encoding*; characters that it lacks become references, as browsers send them."""
    text = _NEWLINE.sub("\r\n", text)
    try:
        return charset.encoded(text, encoding)
    except UnicodeEncodeError:
        pieces = []
        for char in text:
            try:
                pieces.append(charset.encoded(char, encoding))
            except UnicodeEncodeError:
                pieces.append(b"&#%d;" % ord(char))
        return b"".join(pieces)
