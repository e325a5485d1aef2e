"""The frozen values of a URL's way: `Link` (found) → `Claim` → `Exchange` (bytes) → `Capture` → `Settlement`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol, Self

from archiver.ask import Ask


class ExitCode(IntEnum):
    """The exit codes of the command."""

    DONE = 0  # all work was done
    BUG = 1  # a bug in this program, with a traceback
    USAGE = 2  # the input or the settings cannot be used
    STORAGE = 3  # disk full or below --min-free-disk, not writable, or the database is damaged or away
    STOPPED = 4  # stopped by a signal or an order; `resume` goes on
    LIMIT = 5  # a limit was reached; `resume` goes on
    NO_SEED = 6  # the crawl is done, but no seed gave a usable answer (2xx or 3xx)
    FAULTS = 7  # `verify` or `import` found a fault, a run a lost WARC file, or `status --check` a crawl that hangs
    TROUBLE = 8  # `--strict`: the crawl is done, but a seed or a page failed, was held or was refused


class Hop(StrEnum):
    """The ways from one URL to the next, in the letters of Heritrix's hop paths."""

    LINK = "L"  # a page that a person could follow
    REQUISITE = "E"  # needed to show the page: image, style, script, frame
    SPECULATIVE = "X"  # looks like a requisite, but nothing in the format says so
    REDIRECT = "R"  # the Location of a redirect
    PREREQUISITE = "P"  # robots.txt
    MANIFEST = "M"  # a sitemap, or an entry of one


class State(StrEnum):
    """The states of a URL. There is no "in progress", so a crash leaves nothing to repair."""

    WAITING = "waiting"
    ARCHIVED = "archived"
    FAILED = "failed"
    EXCLUDED = "excluded"
    HELD = "held"  # suspected to be in a trap; kept until a person releases it


class Event(StrEnum):
    """The events that change the state of a URL: the results of a visit, and a person's request to try again."""

    CAPTURE = "capture"  # a final response is on disk
    VARIANT = "variant"  # a response is on disk; the URL is visited again in another language
    RETRY = "retry"  # due again later
    GIVE_UP = "give up"  # no response after the last try
    FORBID = "forbid"  # robots.txt forbids it
    HOLD = "hold"  # the budget of its pattern is spent
    DELAY = "delay"  # its pattern became suspicious while it waited, so its priority drops
    AGAIN = "again"  # a person asked for another try, or a redirect led back with other cookies


LIFE: dict[tuple[State, Event], State] = {
    (State.WAITING, Event.CAPTURE): State.ARCHIVED,
    (State.WAITING, Event.VARIANT): State.WAITING,
    (State.WAITING, Event.RETRY): State.WAITING,
    (State.WAITING, Event.GIVE_UP): State.FAILED,
    (State.WAITING, Event.FORBID): State.EXCLUDED,
    (State.WAITING, Event.HOLD): State.HELD,
    (State.WAITING, Event.DELAY): State.WAITING,
    (State.FAILED, Event.AGAIN): State.WAITING,
    (State.EXCLUDED, Event.AGAIN): State.WAITING,
    (State.ARCHIVED, Event.AGAIN): State.WAITING,
    (State.HELD, Event.AGAIN): State.WAITING,
}
LINK_OUTSIDE = 1000  # a link outside the scope adds this to `off_scope_hops`; a path has fewer requisites in a row


class Truncation(StrEnum):
    """The reasons why a stored body is incomplete, in the tokens of WARC 1.1 §5.13."""

    LENGTH = "length"  # our own size limit
    TIME = "time"  # our own time limit
    DISCONNECT = "disconnect"  # the connection ended before the message did
    UNSPECIFIED = "unspecified"  # the framing is broken, so the end is unknown; or another protocol follows


class Profile(StrEnum):
    """The reasons not to store a payload again: the last words of the profiles of WARC 1.1 §6.7."""

    IDENTICAL = "identical-payload-digest"  # the same payload is stored already
    NOT_MODIFIED = "server-not-modified"  # the server answered 304


class Revisit(NamedTuple):
    """A reference to the stored response with the same payload. That is whole, on disk, and not a revisit."""

    profile: Profile
    url: str
    date: str  # its WARC-Date, character for character
    record_id: str  # its WARC-Record-ID, "<urn:uuid:…>"; "" if unknown
    payload_digest: str
    payload_length: int  # bytes


class Link(NamedTuple):
    """A link found in a document: an absolute canonical URL, the kind of hop, and its place in the document."""

    url: str
    hop: Hop
    context: str = ""  # element and attribute, "img/@src"; "" if there is none


@dataclass(frozen=True, slots=True)
class Links:
    """All links of one document, each (URL, hop) once, in document order."""

    links: tuple[Link, ...] = ()
    charset: str = ""  # the text was decoded with it; "" if none was needed
    note: str = ""  # why links may be missing: a limit was reached, a coding is broken
    nofollow: tuple[str, ...] = ()  # where the document forbids following its links, and to whom: "meta robots"
    icon: bool = False  # the document links to the icon of its site
    page: bytes | None = None  # the beginning of the document, if it is a page and no part of one
    referrer_policy: str = ""  # that the document itself sets, in a meta element
    texts: Mapping[tuple[str, Hop], str] = field(default_factory=dict)  # of the links, if a hook judges them


@dataclass(frozen=True, slots=True)
class Claim:
    """One URL that may be fetched now. `path` is its hop path from the seed, empty for a seed."""

    id: int
    url: str
    host: int
    hop: Hop
    path: str
    depth: int  # links on the path; requisites, redirects and sitemaps do not count
    off_scope_hops: int  # hops since the crawl left its scope: 1 for each requisite, LINK_OUTSIDE for each link
    tries: int  # visits already made
    via: str | None = None
    seed: str = ""  # the seed at the head of the path
    priority: int = 0  # smaller goes first; negative for what leads to a robots.txt
    referrer_policy: str = ""  # of the link that led here; "" for the default
    referrer: str = ""  # the page whose URL, cut by that policy, is the Referer; "" if there is none
    language: str = ""  # the Accept-Language of a further visit; "" for the first, with that of the settings
    ask: Ask | None = None  # what a script of a page sends; None: a GET with our headers alone
    again: bool = False  # it was queued again, or only earlier crawls know it

    @property
    def target(self) -> str:
        """The URL that is requested; for a POST, `url` is only the one by which a replay looks the response up."""
        return self.url if self.ask is None or not self.ask.posts else self.ask.target

    @property
    def counts(self) -> bool:
        """True if a visit counts towards URL limits: it is the first one, and not of a robots.txt."""
        return self.tries == 0 and self.priority >= 0 and not self.language


class NewUrl(NamedTuple):
    """A link that the scope accepted, ready for the frontier."""

    url: str
    hop: Hop
    path: str
    depth: int
    off_scope_hops: int
    priority: int
    held: str = ""  # the rule that holds it, and its pattern; "" if it is not held
    referrer_policy: str = ""  # of the link, or of its document; "" for the default


class Refusal(NamedTuple):
    """A link that the scope refused, and the rule that did so."""

    url: str
    rule: str


class PatternTally(NamedTuple):
    """Counts of the pages of one URL pattern, or of one directory."""

    pattern: str  # `http://example.org/calendar/N/N`, `http://example.org/news/*`
    visits: int
    fruitful: int  # pages with new content
    streak: int  # barren pages since the last fruitful one
    barren: int = 0  # pages without new content
    listed: int = 0  # pages to which fruitful pages link several at a time; each makes up for one barren page
    released: int = 0  # additional barren pages that a person allows


class Block(Protocol):
    """The bytes of one message, in memory or in a spool file; they can be read several times."""

    @property
    def length(self) -> int:
        """Size in bytes."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in order, in pieces of bounded size."""

    def head(self, size: int) -> bytes:
        """Return the first *size* bytes, or all if there are fewer."""

    def close(self) -> None:
        """Free the memory or the file."""


@dataclass(frozen=True, slots=True)
class Framing:
    """The parts of a stored response: what its bytes mean, decided once."""

    status: int  # 0 if there was no status line
    head_length: int  # of status line, headers and the empty line
    chunked: bool
    media_type: str  # "text/html"; "" if the response does not say
    fields: tuple[tuple[str, str], ...]  # names in lower case, values as latin-1, in wire order
    protocol: str = "http/1.1"  # WARC-Protocol's word; "http/0.9" without a status line
    faults: tuple[str, ...] = ()  # faults of the message, in fixed words

    def first(self, name: str) -> str | None:
        """Return the first value of the header *name* (in lower case)."""
        return next((value for known, value in self.fields if known == name), None)

    def all(self, name: str) -> list[str]:
        """Return every value of the header *name* (in lower case), in order."""
        return [value for known, value in self.fields if known == name]


class Digests(NamedTuple):
    """Block and payload digest of one response, `algorithm:value` (WARC 1.1 §5.8, §5.9)."""

    block: str
    payload: str
    payload_length: int


class Peer(NamedTuple):
    """The server's address and TLS parameters."""

    ip: str | None
    tls: str | None = None  # "tls/1.3"
    cipher: str | None = None  # IANA name


class Lookup(NamedTuple):
    """The answer of the resolver for one host name."""

    host: str
    addresses: tuple[str, ...]  # all of them, in the resolver's order
    asked: int  # microseconds since the epoch


@dataclass(frozen=True, slots=True)
class Exchange:
    """The bytes that crossed the wire for one claim. There is always a response, even if it is incomplete."""

    request: bytes
    response: Block
    framing: Framing
    digests: Digests | None  # None if they will be computed later, off the event loop
    peer: Peer
    started: int  # microseconds since the epoch, when the request was sent
    duration: float  # seconds from sending the request to the end of the response
    truncated: Truncation | None = None
    interim: bytes = b""  # 1xx responses that came before the final one
    surplus: bytes = b""  # bytes that followed the end of the message on the same connection
    notes: tuple[str, ...] = ()  # other remarks in fixed words: "tls-unverified"
    time_to_first_byte: float = 0.0  # seconds from sending the request to the first byte of the response; 0: unknown
    language: str = ""  # as in its claim
    lookup: Lookup | None = None  # the DNS lookup behind the connection, on its first exchange only


class Span(NamedTuple):
    """The place of one record in its file: the whole gzip member."""

    offset: int
    length: int


NOWHERE = Span(0, 0)  # the place of a record that a visit lacks


class Capture(NamedTuple):
    """The place of an exchange on disk, and its fields in an index."""

    url: str
    timestamp: int  # microseconds since the epoch; the WARC-Date of its records
    status: int
    mime: str
    payload_digest: str
    payload_length: int
    received: int  # bytes of the response as they crossed the wire
    warc: str  # the file's final name
    response: Span
    request: Span
    metadata: Span
    truncated: Truncation | None = None
    revisit: Profile | None = None  # if the record is a revisit, whose payload is stored elsewhere
    language: str = ""  # as in its claim
    ask: Ask | None = None  # as in its claim

    @classmethod
    def of(cls, url: str, exchange: Exchange, digests: Digests, warc: str, spans: tuple[Span, Span, Span]) -> Self:
        """Return the capture of *url* whose response, request and metadata are stored at *spans* in *warc*."""
        answer = exchange.framing.status, exchange.framing.media_type
        sizes, cut = (digests.payload_length, exchange.response.length), exchange.truncated
        return cls(url, exchange.started, *answer, digests.payload, *sizes, warc, *spans, cut, None, exchange.language)


class Resource(NamedTuple):
    """The place and the index fields of a record outside of a visit: a DNS lookup, a log, a report."""

    uri: str
    timestamp: int  # microseconds since the epoch; its WARC-Date
    mime: str
    digest: str  # of its payload, which is its block
    warc: str  # the file's final name
    span: Span


class FileState(NamedTuple):
    """The size of a WARC file, and whether it has its final name; the other fields are known only then."""

    name: str
    size: int
    closed: bool
    digest: str = ""  # of all its bytes, `sha256:hex`
    modified: int = 0  # nanoseconds since the epoch


class Robots(NamedTuple):
    """A robots.txt as the frontier stores it."""

    status: int  # HTTP status; 0 if there was no response
    body: bytes  # decoded, at most 512 KiB
    redirect: str | None = None  # the URL that has the rules instead


class Grade(IntEnum):
    """The strength of a sign."""

    HINT = 1  # a small page with the words of a block page; several like it are one
    LIKELY = 2  # it names the product, but the site behind that may have answered
    CERTAIN = 3


class Sign(NamedTuple):
    """A sign that a response is a challenge or block page."""

    name: str  # the product: Cloudflare
    grade: Grade


class Cookie(NamedTuple):
    """One stored cookie, by RFC 6265bis §5.7."""

    domain: str  # host name without a leading dot
    path: str
    name: str
    value: str
    host_only: bool  # sent to *domain* alone, not to its subdomains
    secure: bool = False
    http_only: bool = False
    same_site: str = ""  # a word of `policy.cookies.SameSite`
    created: float = 0.0
    expires: float = float("inf")  # with the session, which is the whole crawl; in the past: deleted
    private: bool = False  # the user's own: only for verified connections
    changed: float = 0.0  # when it got its value, or was deleted


class Settlement(NamedTuple):
    """All changes that one visit makes to the frontier, committed in one transaction."""

    claim: Claim
    event: Event
    status: int = 0
    failure: str = ""  # a word of `errors.Failure`; "" if there was a response
    note: str = ""  # why, for a person
    due: float = 0.0  # seconds since the epoch; a RETRY may start then
    priority: int = 0  # the new priority after a DELAY
    not_before: float = 0.0  # seconds since the epoch; until then no request goes to this host (Retry-After)
    found: tuple[NewUrl, ...] = ()
    refused: tuple[Refusal, ...] = ()
    capture: Capture | None = None
    robots: Robots | None = None
    settled: float = 0.0  # seconds since the epoch
    duration: float = 0.0
    asked: bool = True  # a request was sent or attempted
    annotations: tuple[str, ...] = ()
    tallies: tuple[PatternTally, ...] = ()  # of the patterns of its URL, including this visit
    cookies: tuple[Cookie, ...] = ()  # that the response set, changed or deleted
    redirect: str = ""  # to which the response redirects, if the scope takes it, or its own if it refreshes itself
    language: str = ""  # of the next visit after a VARIANT
    sign: Sign | None = None  # that the response is a challenge or block page
    view: tuple[int, str] | None = None  # how much the page needs a browser, and its URL pattern, if one is to show it

    @property
    def blocked(self) -> str:
        """The product that answered in place of the site; "" if the site itself probably answered."""
        return self.sign.name if self.sign is not None and self.sign.grade > Grade.HINT else ""
