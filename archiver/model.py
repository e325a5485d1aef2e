"""The values that travel, one for each stage, holding only what is known by then.

`Link` (found) → `Claim` (may be fetched now) → `Exchange` (what crossed the wire) → `Capture` (where it
lies) → `Settlement` (what the frontier is told). All are frozen. The life of a URL is a table, and so are
the exit codes; the documents and the database are held to both by tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol


class ExitCode(IntEnum):
    """What the command tells the shell."""

    DONE = 0  # everything asked for was done
    BUG = 1  # a fault of this program, with a traceback
    USAGE = 2  # the input or the settings cannot be used
    STORAGE = 3  # disk full or below --min-free-disk, not writable, or the database is damaged
    STOPPED = 4  # stopped by a signal; `resume` goes on
    LIMIT = 5  # a limit was reached; `resume` goes on
    NO_SEED = 6  # the crawl is done, but no seed gave a usable answer (2xx or 3xx)
    FAULTS = 7  # `verify` or `import` found a fault
    TROUBLE = 8  # `--strict`: the crawl is done, but a seed or a page failed, or something was held back or refused


class Hop(StrEnum):
    """How one URL led to the next: Heritrix's letters, of which a hop path is made."""

    LINK = "L"  # a page that a person could follow
    REQUISITE = "E"  # needed to show the page: image, style, script, frame
    SPECULATIVE = "X"  # looks like a requisite, but nothing in the format says so
    REDIRECT = "R"  # the Location of a redirect
    PREREQUISITE = "P"  # robots.txt
    MANIFEST = "M"  # a sitemap, or an entry of one


class State(StrEnum):
    """Where a URL is in its life. There is no "in progress": a crash leaves nothing to repair."""

    WAITING = "waiting"
    ARCHIVED = "archived"
    FAILED = "failed"
    EXCLUDED = "excluded"
    HELD = "held"  # suspected to be in a trap, and kept until a person releases it


class Event(StrEnum):
    """What may happen to a waiting URL when a visit settles, and how it may come back."""

    CAPTURE = "capture"  # an answer is on disk and it is the last word
    RETRY = "retry"  # due again later
    GIVE_UP = "give up"  # no answer after the last try
    FORBID = "forbid"  # robots.txt refuses it
    HOLD = "hold"  # the budget of its pattern is spent
    DELAY = "delay"  # its pattern became suspicious while it waited: it goes later
    AGAIN = "again"  # a person asked for another try


LIFE: dict[tuple[State, Event], State] = {
    (State.WAITING, Event.CAPTURE): State.ARCHIVED,
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


LINK_OUTSIDE = 1000  # what a link outside the scope adds to `off_scope_hops`; requisites in a row are always fewer
OUTSIDE = "which is outside the scope"  # ends the note of a URL that redirects there


class Truncation(StrEnum):
    """Why a stored body is not whole: the tokens of WARC 1.1 §5.13."""

    LENGTH = "length"  # our own size limit
    TIME = "time"  # our own time limit
    DISCONNECT = "disconnect"  # the connection ended before the message did
    UNSPECIFIED = "unspecified"  # the framing is broken, so nobody can know where the message ended


class Profile(StrEnum):
    """Why a payload is not stored once more: the last words of the profiles of WARC 1.1 §6.7."""

    IDENTICAL = "identical-payload-digest"  # it came again, and is stored already
    NOT_MODIFIED = "server-not-modified"  # the server says that it has not changed (304)


class Revisit(NamedTuple):
    """The stored response whose payload an answer stands for. It is whole, on disk, and no revisit itself."""

    profile: Profile
    url: str
    date: str  # its WARC-Date, character for character
    record_id: str  # its WARC-Record-ID, "<urn:uuid:…>"; "" where it is not known
    payload_digest: str
    payload_length: int  # bytes


class Link(NamedTuple):
    """A reference found in a document: an absolute canonical URL, how it leads there, and where it stood."""

    url: str
    hop: Hop
    context: str = ""  # element and attribute, "img/@src"; "" where there is none


@dataclass(frozen=True, slots=True)
class Links:
    """Everything that one document names, each (URL, hop) once, in document order."""

    links: tuple[Link, ...] = ()
    charset: str = ""  # by which text was read; "" where none was needed
    note: str = ""  # why there may be more that was not read: a bound that was reached, broken coding
    nofollow: tuple[str, ...] = ()  # where it says not to follow its links, and to whom: "meta robots"
    icon: bool = False  # it names the icon of its site
    page: bytes | None = None  # the beginning of what was read, where it is a page and no part of one


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

    @property
    def counts(self) -> bool:
        """Whether a visit counts for limits of URLs: it is the first one, and of no robots.txt."""
        return self.tries == 0 and self.priority >= 0


class NewUrl(NamedTuple):
    """A link that scope took, ready for the frontier."""

    url: str
    hop: Hop
    path: str
    depth: int
    off_scope_hops: int
    priority: int
    held: str = ""  # the rule that holds it, and its pattern; "" where it may wait with the others


class Refusal(NamedTuple):
    """A link that scope did not take, and the rule that said so."""

    url: str
    rule: str


@dataclass(frozen=True, slots=True)
class PatternTally:
    """What the pages of one pattern of URLs, or of one directory, have brought so far."""

    pattern: str  # `http://example.org/calendar/N/N`, `http://example.org/news/*`
    visits: int
    fruitful: int  # that showed something not seen before
    streak: int  # barren ones since the last of these
    barren: int = 0  # that showed nothing new
    listed: int = 0  # pages that other, fruitful pages named several at a time: they answer for so many barren ones
    released: int = 0  # barren pages more that a person allows


class Block(Protocol):
    """The bytes of one message, in memory or in a spool file, to be read any number of times."""

    @property
    def length(self) -> int:
        """Size in bytes."""

    def pieces(self) -> Iterator[bytes]:
        """The bytes in order, in pieces of bounded size."""

    def head(self, size: int) -> bytes:
        """The first *size* bytes, fewer where there are fewer."""

    def close(self) -> None:
        """Give back what it holds; reading is over."""


@dataclass(frozen=True, slots=True)
class Framing:
    """Where the parts of a stored response lie: what its bytes mean, decided once."""

    status: int  # 0 where there was no status line
    head_length: int  # of status line, fields and the empty line
    chunked: bool
    media_type: str  # "text/html"; "" where the answer does not say
    fields: tuple[tuple[str, str], ...]  # names in lower case, values as latin-1, in wire order
    protocol: str = "http/1.1"  # WARC-Protocol's word; "http/0.9" without a status line
    faults: tuple[str, ...] = ()  # what is malformed about the message, in fixed words

    def first(self, name: str) -> str | None:
        """The first value of the field *name* (in lower case)."""
        return next((value for known, value in self.fields if known == name), None)

    def all(self, name: str) -> list[str]:
        """Every value of the field *name* (in lower case), in order."""
        return [value for known, value in self.fields if known == name]


class Digests(NamedTuple):
    """Block and payload digest of one response, `algorithm:value` (WARC 1.1 §5.8, §5.9)."""

    block: str
    payload: str
    payload_length: int


@dataclass(frozen=True, slots=True)
class Peer:
    """Who answered, and over what."""

    ip: str | None
    tls: str | None = None  # "tls/1.3"
    cipher: str | None = None  # IANA name


class Lookup(NamedTuple):
    """What the system's resolver answered when it was asked for one host name."""

    host: str
    addresses: tuple[str, ...]  # all of them, in the order in which they came
    asked: int  # microseconds since the epoch


@dataclass(frozen=True, slots=True)
class Exchange:
    """What crossed the wire for one claim. There is always a response, if only a part of one."""

    request: bytes
    response: Block
    framing: Framing
    digests: Digests | None  # None: still to be computed, off the event loop
    peer: Peer
    started: int  # microseconds since the epoch, when the request was sent
    duration: float  # seconds from sending the request to the end of the answer
    truncated: Truncation | None = None
    interim: bytes = b""  # 1xx responses that came before the final one
    surplus: bytes = b""  # bytes that followed the end of the message on the same connection
    notes: tuple[str, ...] = ()  # what else should be known about it, in fixed words: "tls-unverified"
    time_to_first_byte: float = 0.0  # seconds from sending the request to the first byte of the answer; 0: not known
    lookup: Lookup | None = None  # that led to the connection, where this is the first exchange to tell of it


class Span(NamedTuple):
    """Where one record lies in its file: the whole gzip member."""

    offset: int
    length: int


NOWHERE = Span(0, 0)  # of a record that a visit does not have


class Capture(NamedTuple):
    """Where an exchange lies on disk, and what an index says of it."""

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
    revisit: Profile | None = None  # the record is a revisit; the payload lies elsewhere


class Resource(NamedTuple):
    """Where a record lies that is no part of a visit, and what an index says of it: a look-up, a log, a report."""

    uri: str
    timestamp: int  # microseconds since the epoch; its WARC-Date
    mime: str
    digest: str  # of its payload, which is its block
    warc: str  # the file's final name
    span: Span


@dataclass(frozen=True, slots=True)
class FileState:
    """How far a WARC file is written, and whether it has its final name: only then the rest is known."""

    name: str
    size: int
    closed: bool
    digest: str = ""  # of all its bytes, `sha256:hex`
    modified: int = 0  # nanoseconds since the epoch


@dataclass(frozen=True, slots=True)
class Robots:
    """What one robots.txt said, as it is kept in the frontier."""

    status: int  # HTTP status; 0 where no answer came
    body: bytes  # de-coded, at most 512 KiB
    redirect: str | None = None  # where its rules are to be found instead


class Grade(IntEnum):
    """How much a sign says."""

    HINT = 1  # a small page that speaks as walls do: with others like it, it is one
    LIKELY = 2  # the wall names itself, but the site behind it may have answered
    CERTAIN = 3


class Sign(NamedTuple):
    """By what an answer is recognised as a challenge or block page."""

    name: str  # the wall: Cloudflare
    grade: Grade


class Settlement(NamedTuple):
    """All that one visit means for the frontier, in one value, committed in one transaction."""

    claim: Claim
    event: Event
    status: int = 0
    failure: str = ""  # a word of `errors.Failure`, or "" where an answer came
    note: str = ""  # why, for a person
    due: float = 0.0  # seconds since the epoch: when a RETRY may start
    priority: int = 0  # of a DELAY: what it goes by from now on
    not_before: float = 0.0  # seconds since the epoch: not one request to this host before (Retry-After)
    found: tuple[NewUrl, ...] = ()
    refused: tuple[Refusal, ...] = ()
    capture: Capture | None = None
    robots: Robots | None = None
    settled: float = 0.0  # seconds since the epoch
    duration: float = 0.0
    asked: bool = True  # whether its host was asked, or it was tried to
    annotations: tuple[str, ...] = ()
    tallies: tuple[PatternTally, ...] = ()  # what the patterns of its URL have brought, with this visit
    sign: Sign | None = None  # by which the answer is recognised as a challenge or block page

    @property
    def blocked(self) -> str:
        """The wall that answered in the place of the site; "" where the answer is the site's, or may well be."""
        return self.sign.name if self.sign is not None and self.sign.grade > Grade.HINT else ""
