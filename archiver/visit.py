"""One visit, from what came back to what the frontier is told: the same words live and in recovery.

`read_links` looks into a body (bounded, off the event loop), `conclude` turns an exchange and its links into a
settlement. No network, no disk of its own, no database; the time is an argument.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from archiver import extract, outcome, robots, url
from archiver.errors import Failure, FetchError
from archiver.guesses import Guesses
from archiver.http import Dechunker, read_head, transfer_codings, unread
from archiver.model import (
    OUTSIDE,
    Claim,
    Event,
    Exchange,
    Hop,
    Link,
    Links,
    NewUrl,
    PatternTally,
    Refusal,
    Robots,
    Settlement,
    Truncation,
)
from archiver.scope import Scope, Scopes, is_guess, redirects_in_a_row
from archiver.texts import excerpt
from archiver.traps import Page, Traps

MAX_DOCUMENT = 32 << 20  # bytes of a body that are read for links; real pages stay below 5 MB
LARGE = 1 << 20  # bytes of a response that is not taken into memory before its beginning says that it can be read
PROBE = 4 << 10
MAX_SITEMAP = 50_000_000  # the format's own limit

ROBOTS_EXCLUDED = "robotExcluded"  # Heritrix's word in crawl.log for what robots.txt would have kept it from

_TRUNCATED = {Truncation.LENGTH: "lenTrunc", Truncation.TIME: "timeTrunc"}  # Heritrix's words

YEAR = 31_556_952  # seconds
GUESS_RETRIES = 1  # of a URL that only a script names, when no answer comes

PAGES = frozenset(("text/html", "application/xhtml+xml"))
_OPAQUE = ("image/", "video/", "audio/", "font/")  # few of them are text: drawings and playlists

_LINK, _REQUISITE = Hop.LINK, Hop.REQUISITE  # looked up once, not for each link

_HEAD_END = re.compile(rb"\r?\n\r?\n")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visited:
    """What came of one claim: an exchange, or an error, or a refusal by robots.txt before anything was asked."""

    claim: Claim
    exchange: Exchange | None = None
    error: FetchError | None = None
    final: bool = False  # the error is known from the host's robots.txt: nothing was asked, and nothing will be
    forbidden: str = ""  # the rule
    failure: Failure = Failure.ROBOTS  # whose rule forbids it


@dataclass(frozen=True, slots=True)
class RobotsTerms:
    """How robots.txt is asked for, and whether pages may speak of their links."""

    patience: float = 300.0  # seconds for which an error is borne; 0: no limit
    nofollow: str = ""  # the name by which pages may tell us not to follow; empty: they may not


@dataclass(frozen=True, slots=True)
class Terms:
    """By what visits are judged."""

    scope: Scope | Scopes
    retries: int
    traps: Traps | None = None
    rules: RobotsTerms = RobotsTerms()
    guesses: Guesses | None = None
    turn: Lock = field(default_factory=Lock)  # for one thread at a time counts what pages brought


def is_robots(claim: Claim) -> bool:
    """Whether the answer holds (or leads to) the rules of a host."""
    if claim.url == url.origin(claim.url) + "/robots.txt":
        return True
    return claim.path[:1] == Hop.PREREQUISITE and claim.path.strip("PR") == ""


def read_links(claim: Claim, exchange: Exchange) -> Links:
    """Everything that the exchange names. Whatever its bytes are, this returns, and the visit is stored."""
    if unread.reason(exchange.notes):
        return Links()
    try:
        return _read_links(claim, exchange)
    except Exception:  # a fault of a reader must not keep a page from being stored: the note stands in its record
        log.exception("links of %s could not be read", claim.url)
        return Links(note="the links could not be read: a fault of archiver")


def _read_links(claim: Claim, exchange: Exchange) -> Links:
    fields = exchange.framing.fields
    status = exchange.framing.status
    if 300 <= status < 400:
        link = extract.redirect(claim.url, fields)
        return Links((link,)) if link is not None else Links()
    moved_to_page = claim.path.endswith(Hop.REDIRECT) and exchange.framing.media_type in PAGES
    if is_robots(claim) and not moved_to_page:  # a page that stands in for robots.txt is still a page of the site
        return _sitemaps(claim, exchange)
    if not (200 <= status < 300 or status == 0):
        return Links()
    named = extract.from_fields(claim.url, (*fields, *_hints(exchange.interim)))
    nofollow = extract.nofollow(fields)
    media_type = exchange.framing.media_type
    sitemap = claim.path.rstrip(Hop.REDIRECT).endswith(Hop.MANIFEST)  # one that has moved is one still
    hop = Hop.MANIFEST if sitemap else claim.hop
    if exchange.response.length > LARGE or media_type.startswith(_OPAQUE):
        beginning = extract.Document(claim.url, media_type, None, payload(exchange, PROBE)[0], hop)
        if not extract.readable(beginning):
            return Links(tuple(named), nofollow=nofollow)
    body, note = payload(exchange, MAX_SITEMAP if sitemap else MAX_DOCUMENT)
    document = extract.Document(claim.url, media_type, _charset(exchange), body, hop)
    if is_guess(claim.path) and extract.is_page(document):  # what a site says where there is no such file
        return Links(note=note)
    read = extract.links(document)
    found = read.links
    if named:
        found = tuple({(link.url, link.hop): link for link in (*named, *found)}.values())
    return Links(
        found,
        charset=read.charset,
        note="; ".join(filter(None, (note, read.note))),
        nofollow=(*nofollow, *read.nofollow),
        page=excerpt(body) if media_type in PAGES and _is_page(claim) else None,
    )


def _hints(interim: bytes) -> tuple[tuple[str, str], ...]:
    """The Link fields of early hints: a browser loads what they name before the answer itself has come."""
    heads = [read_head(head + b"\r\n\r\n") for head in _HEAD_END.split(interim) if head.strip()]
    return tuple(field for head in heads if head.status == 103 for field in head.fields if field[0] == "link")


def _sitemaps(claim: Claim, exchange: Exchange) -> Links:
    body, note = payload(exchange, robots.MAX_BODY)
    named = robots.sitemaps(Robots(exchange.framing.status, body))
    addresses = dict.fromkeys(filter(None, map(partial(url.join, claim.url), named)))
    return Links(tuple(Link(address, Hop.MANIFEST, "robots.txt/Sitemap") for address in addresses), note=note)


def payload(exchange: Exchange, limit: int) -> tuple[bytes, str]:
    """The first *limit* bytes of the body, without any coding, and what could not be undone."""
    skip = exchange.framing.head_length
    dechunker = Dechunker() if exchange.framing.chunked else None
    body = bytearray()
    for whole in exchange.response.pieces():
        piece, skip = whole[skip:], max(0, skip - len(whole))
        for part in dechunker.feed(piece) if dechunker is not None else (piece,):
            body += part
        if len(body) > limit:
            break
    if dechunker is not None:
        body += b"".join(dechunker.finish())
    fields = exchange.framing.fields
    codings = [*_list(exchange.framing.all("content-encoding")), *transfer_codings(fields)]
    del body[limit:]
    return extract.decoded(bytes(body), codings, limit) if codings else (bytes(body), "")


def _list(values: list[str]) -> list[str]:
    return [part.strip().lower() for value in values for part in value.split(",") if part.strip()]


def _charset(exchange: Exchange) -> str | None:
    for value in exchange.framing.all("content-type"):
        for parameter in value.split(";")[1:]:
            name, _, text = parameter.partition("=")
            if name.strip().lower() == "charset":
                return text.strip().strip("\"'") or None
    return None


def conclude(terms: Terms, claim: Claim, exchange: Exchange, links: Links, now: float) -> Settlement:
    """What an answered visit means; its capture is still to be added."""
    result = _outcome(terms, claim, exchange, now)
    nofollow = _nofollow(terms.rules.nofollow.lower(), links)
    found: list[NewUrl] = []
    refused: list[Refusal] = []
    named = {link.url for link in links.links if link.hop is not Hop.SPECULATIVE}
    guesses = 0
    notes = [result.note, unread.reason(exchange.notes)]
    if ROBOTS_EXCLUDED in exchange.notes:
        notes.append("robots.txt would have forbidden it")
    tallies = _brought(terms, claim, links) if result.event is Event.CAPTURE else ()  # before its links are judged
    for link in links.links:
        if link.hop is Hop.SPECULATIVE and link.url in named:
            continue
        rule = nofollow(link)
        verdict = Refusal(link.url, rule) if rule else judged(terms, link, claim, now)
        if link.hop is Hop.SPECULATIVE and isinstance(verdict, NewUrl):
            guesses += 1
            verdict = _within(terms, verdict, guesses)
        if link.hop is Hop.REDIRECT:
            notes.append(_redirect_note(terms.scope, claim, link, verdict))
        if isinstance(verdict, Refusal):
            refused.append(verdict)
        elif verdict.url != claim.url:
            found.append(verdict)
    tallies += _guessed(terms, claim, result.event, there=_is_there(exchange))
    answer = _robots(claim, exchange, links) if is_robots(claim) and result.event is Event.CAPTURE else None
    return Settlement(
        claim=claim,
        event=result.event,
        status=exchange.framing.status,
        note="; ".join(filter(None, notes)),
        due=result.due,
        park=result.park,
        found=tuple(found),
        refused=tuple(refused),
        robots=answer,
        settled=now,
        took=exchange.took,
        annotations=_annotations(claim, exchange),
        tallies=tallies,
    )


def _outcome(terms: Terms, claim: Claim, exchange: Exchange, now: float) -> outcome.Outcome:
    if is_robots(claim):
        return outcome.after_rules(exchange.framing, exchange.truncated, claim.tries, terms.rules.patience, now)
    return outcome.after_answer(exchange.framing, exchange.truncated, claim.tries, terms.retries, now)


def _nofollow(token: str, links: Links) -> Callable[[Link], str]:
    """By which rule a link of this document is not to be followed by *token*; "" where it may be."""
    heard = {"robots", "*", token, robots.PRODUCT}
    page = next((f"nofollow: {said}" for said in links.nofollow if said.rpartition(" ")[2] in heard), "")

    def rule(link: Link) -> str:
        if not token or link.hop is not Hop.LINK:
            return ""
        return page or ("nofollow: rel" if link.context.endswith(extract.NOFOLLOW) else "")

    return rule


def judged(terms: Terms, link: Link, claim: Claim, now: float) -> NewUrl | Refusal:
    """Whether *link*, found in the document of *claim*, is taken, and as what; or which rule refuses it."""
    verdict = terms.scope.judge(link, claim)
    if isinstance(verdict, Refusal):
        return verdict
    if link.hop is Hop.SPECULATIVE and terms.guesses is not None and (rule := terms.guesses.refusal(verdict.url)):
        return Refusal(verdict.url, rule)
    if terms.traps is None:
        return verdict
    hop = link.hop if link.hop is not Hop.REDIRECT or _is_page(claim) else Hop.REQUISITE
    rule = terms.traps.refusal(verdict.url, hop, int(now / YEAR) + 1970)
    return Refusal(verdict.url, rule) if rule else verdict


def _within(terms: Terms, new: NewUrl, number: int) -> NewUrl | Refusal:
    """*new*, unless so many guesses from one document are too many."""
    most = terms.guesses.per_page if terms.guesses is not None else 0
    return Refusal(new.url, f"speculative-per-page: {most}") if 0 < most < number else new


def _is_there(exchange: Exchange) -> bool:
    """Whether a guess was right: many sites answer with a page, and status 200, where there is nothing."""
    return 200 <= exchange.framing.status < 400 and exchange.framing.media_type not in PAGES


def _guessed(terms: Terms, claim: Claim, event: Event, *, there: bool) -> tuple[PatternTally, ...]:
    """What is to be remembered of the guesses on this host, where *claim* was one and this is the last word on it."""
    if terms.guesses is None or event is Event.RETRY or not is_guess(claim.path):
        return ()
    with terms.turn:
        return (terms.guesses.saw(claim.url, there=there),)


def _is_page(claim: Claim) -> bool:
    """Whether *claim* is one that a person could open, however often it has moved, and not a part of one."""
    return claim.path.rstrip(Hop.REDIRECT)[-1:] in {"", Hop.LINK}


def _brought(terms: Terms, claim: Claim, links: Links) -> tuple[PatternTally, ...]:
    if terms.traps is None or links.page is None:
        return ()
    home = f"{url.origin(claim.url)}/"
    near = [link for link in links.links if link.url.startswith(home)]
    shown = [link.url for link in near if link.hop is _REQUISITE]
    leads = [link.url for link in near if link.hop is _LINK]
    with terms.turn:
        return terms.traps.saw(Page(claim.url, links.page, shown, leads, claim.via or "", len(claim.path)))


def held(terms: Terms, claim: Claim) -> str:
    """The budget that was used up while *claim* waited, "" where none was; a seed has none."""
    if terms.guesses is not None and claim.hop is Hop.SPECULATIVE:
        return terms.guesses.refusal(claim.url)
    if terms.traps is None or not claim.path or not _is_page(claim):
        return ""
    return terms.traps.held(claim.url, Hop.LINK)


def room(terms: Terms, claim: Claim) -> tuple[str, int]:
    """The pattern of *claim*, and how many of it may be under way; "" where it does not matter."""
    if terms.traps is None or not claim.path or not _is_page(claim):
        return "", 0
    return terms.traps.room(claim.url)


def conclude_failure(terms: Terms, visited: Visited, now: float) -> Settlement:
    """What a visit means that got no answer."""
    claim, error = visited.claim, visited.error
    if error is None:
        raise ValueError(f"the visit of {claim.url} did not fail")
    guess = is_guess(claim.path)
    retries = 0 if visited.final else min(terms.retries, GUESS_RETRIES) if guess else terms.retries
    if is_robots(claim) and not visited.final:
        limits = retries, terms.rules.patience
        result = outcome.after_no_rules(error.failure, error.reason, claim.tries, limits, now)
    else:
        result = outcome.after_failure(error.failure, error.reason, claim.tries, retries, now)
    gone = is_robots(claim) and result.event is not Event.RETRY
    nothing = guess and result.event is Event.GIVE_UP  # no fault of the site: nobody said that there is something
    return Settlement(
        claim=claim,
        event=Event.FORBID if nothing else result.event,
        failure=error.failure.value,
        note=f"speculative, and no answer came ({result.note})" if nothing else result.note,
        tallies=_guessed(terms, claim, result.event, there=False),
        due=result.due,
        robots=Robots(0, f"{error.failure.value}: {error.reason}".encode()) if gone else None,
        settled=now,
        asked=not visited.final,
    )


def conclude_forbidden(claim: Claim, rule: str, now: float, failure: Failure = Failure.ROBOTS) -> Settlement:
    """robots.txt refuses the claim, or another rule of ours does; nothing was asked."""
    return Settlement(claim=claim, event=Event.FORBID, failure=failure.value, note=rule, settled=now)


def _redirect_note(scope: Scope | Scopes, claim: Claim, link: Link, verdict: NewUrl | Refusal) -> str:
    if link.url == claim.url:
        return "redirect loop: back to itself"
    if isinstance(verdict, Refusal):
        return f"redirects to {link.url}, not followed ({verdict.rule})"
    return f"redirects to {link.url}" if scope.contains(link.url) else f"redirects to {link.url}, {OUTSIDE}"


def _robots(claim: Claim, exchange: Exchange, links: Links) -> Robots:
    status = exchange.framing.status
    if 300 <= status < 400:
        target = links.links[0].url if links.links else None
        followed = target is not None and target != claim.url and redirects_in_a_row(claim.path) < robots.MAX_REDIRECTS
        return Robots(status, b"", redirect=target if followed else None)
    if exchange.truncated in outcome.CUT:
        return Robots(503, b"")  # what is missing may be the rule that matters
    if status == 0 or 200 <= status < 300:
        return Robots(status or 200, payload(exchange, robots.MAX_BODY)[0])
    return Robots(503 if status == 429 else status, b"")  # asked to slow down is not the same as allowed


def _annotations(claim: Claim, exchange: Exchange) -> tuple[str, ...]:
    words = [f"{claim.tries + 1}t"] if claim.tries else []
    if exchange.truncated:
        words.append(_TRUNCATED.get(exchange.truncated, "midFetchTrunc"))
    return (*words, *exchange.framing.faults, *exchange.notes)
