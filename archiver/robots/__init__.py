"""robots.txt: what one answer for it means (RFC 9309). Pure; linear in the size of the file.

2xx is read, 4xx allows everything, 5xx and no answer allow nothing. A file is read once into `Rules`; asking them about
a URL costs a bounded time, whatever the file says. `rules` knows the lines, `paths` the patterns.
"""

from archiver.robots.rules import MAX_BODY, MAX_REDIRECTS, MAX_SITEMAPS, PRODUCT, Rules, product_token, sitemaps

__all__ = ["MAX_BODY", "MAX_REDIRECTS", "MAX_SITEMAPS", "PRODUCT", "Rules", "product_token", "sitemaps"]
