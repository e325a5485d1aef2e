"""Judges one visit: turns an answer and its links into a settlement, both while crawling and in recovery.

`archiver.extract.exchange.read_links` reads a body; `conclude` turns an exchange and its links into a settlement. No
network, no disk of its own, no database; the time is an argument.
"""

from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter

from archiver import url
from archiver.collection.earlier_crawls import EarlierCrawls, StoredVersion
from archiver.crawl.login.authentication import AUTHENTICATING
from archiver.crawl.visit_rules import (
    ERRORS,
    LATER,
    VisitRules,
    is_there,
    judged,
    judged_first,
    placed,
    redirect_note,
    year_of,
)
from archiver.errors import Failure, FetchError
from archiver.extract.body_faults import is_cut, is_incomplete
from archiver.extract.exchange import (
    PAGES,
    UNREAD,
    is_page,
    is_robots,
    nofollow_rule,
    payload,
    referrer_policy,
    robots_answer,
)
from archiver.extract.references import policy_in, redirect_target, refreshes_itself
from archiver.http.body import unread_reason
from archiver.model import (
    Block,
    Claim,
    Cookie,
    Event,
    Exchange,
    Framing,
    Grade,
    Hop,
    Links,
    NewUrl,
    PatternTally,
    Refusal,
    Robots,
    Settlement,
    Sign,
    Truncation,
)
from archiver.policy import block_pages, referrer, retry
from archiver.policy.scope import HOOK, is_guess
from archiver.policy.seed_scopes import remember
from archiver.policy.speculative import FAULTY_SITEMAP, ICON, Probes, is_unnamed
from archiver.policy.traps import PageEvidence
from archiver.policy.unlisted import is_unlisted

OTHER_VERSION = "otherVersion"  # a 304 with another tag than the one in our request
HOOK_FAILED = "hook "  # the beginning of the note on a URL for which a hook failed
ROBOTS_EXCLUDED = "robotExcluded"  # Heritrix's word in crawl.log for a URL that robots.txt would have forbidden

_TRUNCATED = {Truncation.LENGTH: "lenTrunc", Truncation.TIME: "timeTrunc"}  # Heritrix's words
NOT_THERE = frozenset((404, 410))
PART = 4 << 10  # bytes by which we tell images, styles and scripts apart
GUESS_RETRIES = 1  # of a URL that only a script names, when no answer comes

_ADDRESS, _HOP, _CONTEXT = map(itemgetter, range(3))  # of a link; the first one of a verdict, too
_LINK, _REQUISITE, _SPECULATIVE, _REDIRECT = Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE, Hop.REDIRECT  # quick names


@dataclass(frozen=True, slots=True)
class Visited:
    """The result of one claim: an exchange, an error, or a refusal before any request."""

    claim: Claim
    exchange: Exchange | None = None
    error: FetchError | None = None
    final: bool = False  # the error is that of the host's robots.txt: no request was made, and none will be
    forbidden: str = ""  # the rule
    failure: Failure = Failure.ROBOTS  # whose rule forbids it
    event: Event = Event.FORBID  # or HOLD, or DELAY, if a rule prevented the request
    priority: int = 0  # the new priority of a delayed URL
    unmodified: StoredVersion | None = None  # the stored version, which the exchange says is still the newest
    cookies: tuple[Cookie, ...] = ()  # that the answer set
    links: Links | None = None  # in the answer, if it has been read
    upload: Block | None = None  # the end of the request, if that is large


def conclude(rules: VisitRules, claim: Claim, exchange: Exchange, links: Links, now: float) -> Settlement:
    """Return the settlement of an answered visit; its capture is added later."""
    result = _outcome(rules, claim, exchange, now)
    event, language = rules.follow_up(claim, result.event, exchange.framing)
    notes = _notes(exchange, links, result.note)
    new = result.event is Event.CAPTURE and not claim.language  # a variant is no evidence of anything more
    tallies = _brought(rules, claim, exchange, links) if new else ()  # before its links
    redirect, sign = "", _sign(claim, exchange, links)
    blocked = sign if sign is not None and sign.grade > Grade.HINT else None
    if exchange.framing.status >= ERRORS and (blocked or event is Event.RETRY):
        links = replace(links, links=())  # of the error page of a seed
    policy = referrer_policy(claim, exchange.framing, links)
    found, refused, hook_failed = judged_links(rules, claim, links, "" if policy == referrer.DEFAULT else policy, now)
    notes.append(hook_failed)
    if redirect_target(links):
        redirect = found[0].url if found else ""
        notes.append(redirect_note(rules.scope, claim, links.links[0], found[0] if found else refused[0]))
    elif new and refreshes_itself(claim.url, links):
        redirect = claim.url
    found = [new for new in found if new.url != claim.url]
    if not claim.language:
        tallies += _guessed(rules, claim, result.event, there=is_there(claim, exchange.framing), page=links.page)
    if rules.probes is not None and new:
        unnamed, learned = _unnamed(rules, rules.probes, claim, exchange.framing, links)
        named = set(map(_ADDRESS, found)) if unnamed else set()
        found += (new for new in unnamed if new.url not in named and new.url != claim.url)
        tallies += learned
    if claim.language:  # the notes on the first visit stay
        failed = exchange.framing.status >= ERRORS and event is not Event.RETRY
        notes = [f"{claim.language}: status {exchange.framing.status}"] if failed else []
        redirect = ""
    return Settlement(
        claim=claim,
        event=event,
        status=exchange.framing.status,
        note="; ".join(filter(None, notes)),
        due=result.due,
        not_before=result.not_before,
        found=tuple(found),
        refused=tuple(refused),
        robots=robots_answer(claim, exchange, links) if is_robots(claim) and result.event is Event.CAPTURE else None,
        settled=now,
        duration=exchange.duration,
        annotations=_annotations(claim, exchange, links, blocked),
        tallies=tallies,
        redirect=redirect,
        sign=sign,
        language=language,
        view=rules.view(claim, result.event, exchange.framing, links),
    )


def _notes(exchange: Exchange, links: Links, first: str) -> list[str]:
    told = UNREAD in links.note or HOOK_FAILED in links.note or FAULTY_SITEMAP in links.note
    notes = [first, unread_reason(exchange.notes), links.note if told else ""]
    return [*notes, "robots.txt would have forbidden it" if ROBOTS_EXCLUDED in exchange.notes else ""]


def _sign(claim: Claim, exchange: Exchange, links: Links) -> Sign | None:
    """Return the sign that the answer is a challenge or block page; only suspect bodies are read."""
    framing = exchange.framing
    leads = (link for link in links.links if link[1] is _LINK)
    pages = sum(1 for _ in islice(leads, block_pages.FEW_LINKS + 1))  # more is as good as many
    page = framing.media_type in PAGES and is_page(claim) and not is_robots(claim)
    body = b""
    if block_pages.looks_suspect(framing.status, exchange.response.length - framing.head_length, pages, page=page):
        body, _ = payload(exchange, block_pages.READ)
    return block_pages.sign_of(framing.status, framing.fields, body, pages)


def _outcome(rules: VisitRules, claim: Claim, exchange: Exchange, now: float) -> retry.RetryDecision:
    if AUTHENTICATING in exchange.notes:
        return retry.RetryDecision(Event.RETRY, "asks for a password, which the next request sends", now)
    own = rules.of_host(claim.url)
    if is_robots(claim):
        ends = is_cut(exchange)
        return retry.after_rules(exchange.framing, exchange.truncated, claim.tries, own.patience, now, is_cut=ends)
    if OTHER_VERSION in exchange.notes and claim.tries < max(own.retries, 1):
        return retry.RetryDecision(Event.RETRY, "not modified, but of another version", now + retry.pause(claim.tries))
    cut, is_damaged = exchange.truncated, is_incomplete(exchange)
    return retry.after_answer(exchange.framing, cut, claim.tries, own.retries, now, is_damaged=is_damaged)


def judged_links(
    rules: VisitRules, claim: Claim, links: Links, policy: str, now: float
) -> tuple[list[NewUrl], list[Refusal], str]:
    """Return which of *links* are taken and which are refused, by a hook or the usual rules, and how the hook failed.

    Those without a referrer policy of their own get *policy*.
    """
    asked, failed = rules.asked(claim, links)
    if not asked:
        return *_verdicts(rules, claim, links, policy, now), failed
    left = tuple(link for link in links.links if link[:2] not in asked)
    found, refused = _verdicts(rules, claim, replace(links, links=left), policy, now)
    for link in links.links:
        wanted = asked.get(link[:2])
        if wanted is None:
            continue
        verdict = judged(rules, link, claim, now, wanted=True) if wanted else Refusal(link.url, HOOK)
        if isinstance(verdict, Refusal):
            refused.append(verdict)
        else:
            found.append(verdict._replace(referrer_policy=policy_in(link.context) or policy))
    return found, refused, failed


def _verdicts(
    rules: VisitRules, claim: Claim, links: Links, policy: str, now: float
) -> tuple[list[NewUrl], list[Refusal]]:
    """Return which of *links* are taken and which are refused; skip guesses that the document names for certain.

    Those without a referrer policy of their own get *policy*.
    """
    token = rules.of_host(claim.url).nofollow
    nofollow = nofollow_rule(token.lower(), links) if token else None
    guessed = _SPECULATIVE in map(_HOP, links.links)
    named = {address for address, hop, _ in links.links if hop is not _SPECULATIVE} if guessed else set()
    own = {context: word for context in set(map(_CONTEXT, links.links)) if (word := policy_in(context))}
    pages, parts, foreign = rules.verdicts.at(claim, rules.scope.moved_seeds, year_of(now), policy)
    others: dict[str, NewUrl] = {}
    traps = rules.traps
    at_once = nofollow is None and (traps is None or (traps.calm and not traps.is_poor(claim.url)))
    found: list[NewUrl] = []
    refused: list[Refusal] = []
    for link in links.links:
        address, hop, context = link
        known = pages if hop is _LINK else parts if hop is _REQUISITE else others
        if own and context in own:
            known = others
        new = known.get(address)
        if new is not None and at_once and "&" not in address:  # as most are
            found.append(new)
            continue
        if guessed and hop is _SPECULATIVE and address in named:
            continue
        if nofollow is not None and (rule := nofollow(link)):
            refused.append(Refusal(address, rule))
            continue
        verdict = (
            _again(rules, new, hop, claim, now) if new is not None else judged_first(rules, link, claim, now, foreign)
        )
        if isinstance(verdict, Refusal):
            refused.append(verdict)
            continue
        if new is None and (word := own.get(context, policy)) and word != referrer.DEFAULT:
            verdict = verdict._replace(referrer_policy=word)
        if new is None and known is not others and verdict.priority < LATER:
            remember(known, address, verdict)
        found.append(verdict)
    if traps is not None:
        traps.met(map(_ADDRESS, found))
    return found, refused


def _again(rules: VisitRules, new: NewUrl, hop: Hop, claim: Claim, now: float) -> NewUrl:
    """Return the verdict on a link that was taken elsewhere in the same way, as *new*."""
    if rules.traps is None:
        return new
    return placed(new, rules.traps.judge(new.url, hop, claim.url, year_of(now)))


def _guessed(
    rules: VisitRules, claim: Claim, event: Event, *, there: bool, page: bytes | None = None
) -> tuple[PatternTally, ...]:
    """Return the counts of guesses on this host to remember, if *claim* was a guess and this answer is final."""
    if rules.guesses is None or event is Event.RETRY or not is_guess(claim.path) or is_unnamed(claim.url):
        return ()
    with rules.lock:
        return (rules.guesses.saw(claim.url, claim.via or "", there=there, page=page),)


def _unnamed(
    rules: VisitRules, probes: Probes, claim: Claim, framing: Framing, links: Links
) -> tuple[list[NewUrl], tuple[PatternTally, ...]]:
    """Return URLs to try that no link names (such as a sitemap), and what to remember about the host.

    A page that exists shows that its host belongs to the site; the host of a missing seed may still have a sitemap.
    """
    if is_robots(claim):
        with rules.lock:
            return [], probes.named(claim, links)
    shown = 200 <= framing.status < 300 or (framing.status in NOT_THERE and not claim.path)
    if not shown or not is_page(claim) or not rules.scope.contains(claim.url):
        return [], ()
    with rules.lock:
        wanted, learned = probes.after(claim.url, links, html=framing.status < 300 and framing.media_type in PAGES)
        if not claim.path.strip(_REDIRECT):
            below, of_folder = probes.below(claim.url, links)
            wanted, learned = wanted + below, learned + of_folder
    taken = (rules.scope.unnamed(each, claim, shown=each.endswith(ICON)) for each in wanted)
    return [new for new in taken if new is not None], learned


def _brought(rules: VisitRules, claim: Claim, exchange: Exchange, links: Links) -> tuple[PatternTally, ...]:
    """Return the counts to remember for the URL pattern of *claim*, or for the page that needs it."""
    if rules.traps is not None and links.page is not None:
        home = f"{url.origin(claim.url)}/"
        leads = [address for address, hop, _ in links.links if hop is _LINK and address.startswith(home)]
        markup = exchange.framing.media_type in PAGES
        unlisted = markup and is_unlisted(links.page, exchange.framing.all("x-robots-tag"))
        page = PageEvidence(claim.url, links.page, leads, claim.via or "", markup=markup, unlisted=unlisted)
        with rules.lock:
            return rules.traps.saw(page)
    if rules.traps is not None and is_page(claim):
        with rules.lock:
            rules.traps.missed(claim.url, exchange.framing.status, redirect_target(links))
    if rules.traps is None or claim.hop is not _REQUISITE or not claim.via or not rules.traps.is_barren(claim.via):
        return ()
    start, size = exchange.framing.head_length, exchange.response.length
    content = (
        hash((size - start, exchange.response.head(start + PART)[start:])) if is_there(claim, exchange.framing) else 0
    )
    with rules.lock:
        return rules.traps.saw_part(claim.url, claim.via, content)


def refusal(rules: VisitRules, claim: Claim, memory: EarlierCrawls | None = None) -> Visited | None:
    """Return a visit without a request if the budget of *claim* is used up by now, or its pattern goes later."""
    guesses = rules.guesses if claim.hop is Hop.SPECULATIVE and not claim.language else None
    if guesses is not None and (rule := guesses.refusal(claim.url, claim.via or "")):
        return Visited(claim, forbidden=rule, failure=Failure.TRAP)
    if rules.traps is None or not claim.path or claim.language or not is_page(claim):
        return None
    standing = rules.traps.waits(claim.url, claim.via or "")
    if standing.rule:
        if memory is not None and memory.has(claim.url):
            return None
        note = f"{standing.rule}: {standing.pattern}"
        return Visited(claim, forbidden=note, failure=Failure.TRAP, event=Event.HOLD)
    priority = claim.priority % LATER + LATER * standing.level
    if priority > claim.priority >= 0:
        return Visited(claim, forbidden="later", failure=Failure.TRAP, event=Event.DELAY, priority=priority)
    return None


def conclude_failure(rules: VisitRules, visited: Visited, now: float) -> Settlement:
    """Return the settlement of a visit that got no answer."""
    claim, error = visited.claim, visited.error
    if error is None:
        raise ValueError(f"the visit of {claim.url} did not fail")
    guess = is_guess(claim.path)
    own = rules.of_host(claim.url)
    retries = 0 if visited.final else min(own.retries, GUESS_RETRIES) if guess else own.retries
    if is_robots(claim) and not visited.final:
        limits = retries, own.patience
        result = retry.after_no_rules(error.failure, error.reason, claim.tries, limits, now)
    else:
        result = retry.after_failure(error.failure, error.reason, claim.tries, retries, now)
    gone = is_robots(claim) and result.event is not Event.RETRY
    nothing = guess and result.event is Event.GIVE_UP  # not the fault of the site, which never named it
    if claim.language:
        why = error.failure.value, error.reason
        return _without_variant(rules, claim, result, why, now, asked=not visited.final)
    return Settlement(
        claim=claim,
        event=Event.FORBID if nothing else result.event,
        failure=error.failure.value,
        note=f"speculative, and no answer came ({result.note})" if nothing else result.note,
        tallies=_guessed(rules, claim, result.event, there=False),
        due=result.due,
        robots=Robots(0, f"{error.failure.value}: {error.reason}".encode()) if gone else None,
        settled=now,
        asked=not visited.final,
    )


def _without_variant(
    rules: VisitRules, claim: Claim, result: retry.RetryDecision, why: tuple[str, str], now: float, *, asked: bool
) -> Settlement:
    """Return the settlement of a visit of a variant that got no answer: its URL has one already."""
    event, language = rules.follow_up(claim, result.event)
    note = "" if event is Event.RETRY else f"{claim.language}: {': '.join(why)}"
    end = Settlement(claim, event, failure=why[0], note=note, due=result.due, settled=now, language=language)
    return end._replace(asked=asked, annotations=(f"language:{claim.language}",))


def conclude_unasked(rules: VisitRules, visited: Visited, now: float) -> Settlement:
    """Return the settlement of a claim that robots.txt or another rule refuses, for good or for now, unasked."""
    if visited.claim.language:
        ended = retry.RetryDecision(visited.event, "", now)
        why = visited.failure.value, visited.forbidden
        return _without_variant(rules, visited.claim, ended, why, now, asked=False)
    late = visited.event is Event.DELAY
    return Settlement(
        claim=visited.claim,
        event=visited.event,
        failure="" if late else visited.failure.value,
        note="" if late else visited.forbidden,
        priority=visited.priority,
        settled=now,
        asked=False,
    )


def _annotations(claim: Claim, exchange: Exchange, links: Links, blocked: Sign | None) -> tuple[str, ...]:
    words = [f"{claim.tries + 1}t"] if claim.tries else []
    if claim.language:
        words.append(f"language:{claim.language}")
    if UNREAD in links.note:
        words.append("linksNotRead")
    if exchange.truncated:
        words.append(_TRUNCATED.get(exchange.truncated, "midFetchTrunc"))
    sign = (f"blocked:{blocked.name.replace(' ', '-')}",) if blocked else ()
    return (*words, *exchange.framing.faults, *exchange.notes, *sign)
