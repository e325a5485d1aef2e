"""Add the URLs that answers of an API name: wpull's `get_urls`, wget-AT's `get_urls`.

A list of posts names the next list, the page of each post, and its pictures.
"""

import json
from collections.abc import Iterator

from archiver import HookDocument, HookLink


def links(document: HookDocument) -> Iterator[HookLink]:
    """Yield what the answer names; URLs may be relative to it."""
    if document.content_type != "application/json" or "/api/posts" not in document.url:
        return
    found = json.loads(document.text)
    if found.get("next"):
        yield HookLink(found["next"], "E")  # E: fetched soon, as part of the page
    for post in found.get("posts", []):
        yield HookLink(f"/post/{post['id']}")
        for picture in post.get("pictures", []):
            yield HookLink(picture, "E")
