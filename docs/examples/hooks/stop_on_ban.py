"""End the crawl when the site bans us: wpull's `Actions.STOP`, wget-AT's `wget.actions.ABORT`."""

from archiver import HookDocument, HookExchange, HookStop


def keep(exchange: HookExchange) -> None:
    """Stop at an answer whose head shows the ban."""
    if exchange.status == 403 and exchange.header("x-banned"):
        raise HookStop(f"{exchange.url} answered 403 with X-Banned")


def links(document: HookDocument) -> None:
    """Stop at a page that says so with status 200."""
    if b"Your IP address has been banned" in document.body:
        raise HookStop(f"{document.url} says that we are banned")
