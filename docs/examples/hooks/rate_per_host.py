"""Give hosts settings by a rule: wpull's `wait_time`, the sleeps in wget-AT's `httploop_result`."""


def settings(host: str) -> dict[str, object] | None:
    """Return settings as in a [[host]] table of crawl.toml; None for those of the crawl."""
    if host.endswith((".gov", ".museum")):
        return {"rate": "1/5", "host-concurrency": 1}
    if host.startswith(("static.", "cdn.", "img.")):
        return {"rate": 10, "max-response-size": "50M"}
    return None
