"""Leave out links by a rule that depends on their page: wpull's `accept_url`, wget-AT's `download_child_p`.

Threads of a forum are wanted, but not the profiles that they link to, nor "next page" links below old threads.
"""

import re

from archiver import HookLink, HookPage

OLD = re.compile(r"/thread/(\d+)")


def judge(link: HookLink, page: HookPage) -> bool | None:
    """Return False for what is not wanted; None lets the usual rules decide."""
    thread = OLD.search(page.url)
    if thread is None:
        return None
    if "/user/" in link.url:
        return False
    if "page=" in link.url and int(thread[1]) < 1000:
        return False
    return None
