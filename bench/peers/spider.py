"""A crawl with Scrapy into a WARC file: `python spider.py SEED CONNECTIONS`, in the folder for the file.

It follows all links and requisites on the seed's host, those of style sheets too, obeys robots.txt and keeps its
queue on disk (JOBDIR). warcio writes a request and a response record for each answer. Scrapy hands over bodies
without their transfer coding and rebuilds the headers, so that is what it stores.
"""

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

IN_CSS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


class Archive:
    """A pipeline that turns each answer into two records."""

    def open_spider(self) -> None:
        self.file = Path("out.warc.gz").open("wb")  # noqa: SIM115 - closed with the spider
        self.writer = WARCWriter(self.file, gzip=True)

    def close_spider(self) -> None:
        self.file.close()

    def process_item(self, item: dict[str, Response]) -> dict[str, Response]:
        response = item["response"]
        request = response.request
        sent = StatusAndHeaders(
            f"GET {urlsplit(response.url).path} HTTP/1.1", fields(request.headers), is_http_request=True
        )
        got = StatusAndHeaders(f"{response.status} OK", fields(response.headers), protocol="HTTP/1.1")
        answer = self.writer.create_warc_record(response.url, "response", io.BytesIO(response.body), http_headers=got)
        asked = self.writer.create_warc_record(response.url, "request", io.BytesIO(b""), http_headers=sent)
        self.writer.write_request_response_pair(asked, answer)
        return item


def fields(headers: scrapy.http.Headers) -> list[tuple[str, str]]:
    """Return Scrapy's headers as warcio takes them."""
    return [(name.decode(), value.decode("latin-1")) for name, values in headers.items() for value in values]


class Spider(scrapy.Spider):
    """Follows everything on the host of its seed."""

    name = "site"
    links = LinkExtractor(
        allow_domains=[urlsplit(sys.argv[1]).netloc],  # with the port
        tags=("a", "area", "link", "img", "script"),
        attrs=("href", "src"),
        deny_extensions=[],
    )
    start_urls = (sys.argv[1],)

    def parse(self, response: Response) -> Iterator[dict[str, Response] | scrapy.Request]:
        yield {"response": response}
        if isinstance(response, HtmlResponse):
            for link in self.links.extract_links(response):
                yield scrapy.Request(link.url)
        elif response.url.endswith(".css"):
            for url, imported in IN_CSS.findall(response.text):
                yield response.follow(url or imported)


if __name__ == "__main__":
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": int(sys.argv[2]),
            "CONCURRENT_REQUESTS_PER_DOMAIN": int(sys.argv[2]),
            "DOWNLOAD_DELAY": 0,
            "ITEM_PIPELINES": {Archive: 1},
            "JOBDIR": "job",
            "LOG_LEVEL": "ERROR",
            "ROBOTSTXT_OBEY": True,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Spider)
    process.start()
