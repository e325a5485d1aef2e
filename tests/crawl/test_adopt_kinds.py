"""`archiver adopt` for each program: archives by the real wget, queues and settings in the form of the program."""

import gzip
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from archiver.config import toml
from archiver.model import ExitCode
from archiver.tools.adopt.beans import properties, without_comments
from archiver.tools.adopt.detect import adopted_crawl
from fixtures.adopted_crawls import WGET, fetched_by_wget, heritrix_job, mirror, saved_state
from fixtures.archives import rows, states
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.sites import tree
from tests.crawl.test_adopt import adopted, all_is_sound, asked, resumed

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

HTTRACK = shutil.which("httrack")
SITE = tree(12, images=2)
needs_wget = pytest.mark.skipif(WGET is None, reason="wget is not installed")

BEANS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE beans [<!ENTITY bomb "&bomb;&bomb;">]>
<beans xmlns="http://www.springframework.org/schema/beans">
 <bean id="simpleOverrides" class="org.springframework.beans.factory.config.PropertyOverrideConfigurer">
  <property name="properties">
   <value>
# a comment
metadata.operatorContactUrl=https://library.example/crawler
metadata.jobName=basic
metadata.description=Basic crawl &amp; more
   </value>
  </property>
 </bean>
 <bean id="longerOverrides" class="org.springframework.beans.factory.config.PropertyOverrideConfigurer">
  <property name="properties"><props><prop key="seeds.textSource.value">
# URLS HERE
http://other.example/
  </prop></props></property>
 </bean>
 <bean id="metadata" class="org.archive.modules.CrawlMetadata" autowire="byName">
  <property name="robotsPolicyName" value="obey"/>
  <property name="operatorContactUrl" value="[see override above]"/>
  <property name="description" value="[see override above]"/>
  <!-- <property name="operator" value="not this"/> -->
 </bean>
 <bean id="scope" class="org.archive.modules.deciderules.DecideRuleSequence">
  <property name="rules"><list>
   <bean class="org.archive.modules.deciderules.TooManyHopsDecideRule"><property name="maxHops" value="25" /></bean>
   <bean class="org.archive.modules.deciderules.PathologicalPathDecideRule"></bean>
   <bean class="org.archive.modules.deciderules.MatchesListRegexDecideRule">
    <property name="decision" value="REJECT"/>
    <property name="regexList"><list><value>.*/calendar/.*</value><value>.*\\.iso</value></list></property>
   </bean>
  </list></property>
 </bean>
 <bean id="disposition" class="org.archive.crawler.postprocessor.DispositionProcessor">
  <property name="delayFactor" value="5.0" /><property name="minDelayMs" value="2000" />
 </bean>
 <bean id="crawlLimiter" class="org.archive.crawler.framework.CrawlLimitEnforcer">
  <property name="maxBytesDownload" value="0" /><property name="maxTimeSeconds" value="3600" />
 </bean>
</beans>
"""


@needs_wget
@pytest.mark.parametrize("packed", [True, False])
def test_a_heritrix_job_goes_on_from_its_recovery_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, packed: bool
) -> None:
    """The log is cut in the middle of a line, as Heritrix leaves it when it is killed."""
    job = tmp_path / "job"
    (job / "20261101100000" / "warcs").mkdir(parents=True)
    launch = job / "20261101100000"
    with RawServer(SITE.routes) as server:
        start = server.url()
        (job / "crawler-beans.cxml").write_text(BEANS.replace("http://other.example/", start))
        done = [start, server.url("/p1.html"), server.url("/style.css")]
        fetched_by_wget(launch / "warcs", "WEB-0", urls=done)
        first = asked(server)
        lines = [
            *(f"F+ {start}  ", "F+ dns:127.0.0.1 P " + start, f"Fe {start}", f"F+ {start}robots.txt P {start}"),
            *(f"Fs {start}robots.txt P {start}", f"Fs {start}  ", f"F+ {start}p1.html L {start}"),
            *(f"F+ {start}style.css E {start}", f"Fs {start}p1.html L {start}", f"Fs {start}style.css E {start}"),
            *(f"F+ {start}p2.html L {start}", f"Fs {start}p2.html L {start}", f"F+ {start}p5.html LL {start}p1.html"),
            *(f"F+ {start}gone 12+LLLLR {start}p1.html", f"Ff {start}gone 12+LLLLR {start}p1.html"),
            f"F+ {start}never-read LL {start}p1.html",
        ]
        log = heritrix_job(launch, lines, packed=packed)
        log.write_bytes(log.read_bytes()[: -12 if not packed else -9])
        assert adopted(job, "-o", tmp_path / "c") == ExitCode.DONE
        said = capsys.readouterr()
        found = states(tmp_path / "c")
        assert {address for address, state in found.items() if state == "archived"} == set(done)
        assert found[f"{start}p2.html"] == found[f"{start}p5.html"] == "waiting"
        assert found[f"{start}gone"] == "failed"
        assert rows(tmp_path / "c", "SELECT path, depth FROM urls WHERE url LIKE '%/gone'") == [("12+LLLLR", 16)]
        assert "1 URL that it calls fetched, but without a whole capture" in said.out
        settings = toml.parse((tmp_path / "c" / "crawl.toml").read_text(), "crawl.toml")
        assert settings["contact"] == "https://library.example/crawler"
        assert settings["description"] == "Basic crawl & more"
        assert settings["seeds"] == (start,)
        assert settings["exclude"] == ("^(?:.*/calendar/.*)$", r"^(?:.*\.iso)$")
        assert (settings["max_hops"], settings["max_time"], settings["scope"]) == (25, 3600, "prefix")
        assert (str(settings["rate"]), settings["host_concurrency"], settings["max_repeats"]) == ("1/2", 1, 2)
        assert "no counterpart: disposition.delayFactor = 5.0" in said.err
        assert "not this" not in (tmp_path / "c" / "crawl.toml").read_text()
        assert adopted(log, "-o", tmp_path / "c") == ExitCode.USAGE  # it holds a crawl by now
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert len(again) == len(set(again))
    assert not {server.url(target) for target in again} & set(done)
    assert "/gone" not in again
    assert SITE.reachable <= set(again) | {address.removeprefix(start[:-1]) for address in done}
    all_is_sound(tmp_path / "c")


def test_the_properties_of_a_configuration_are_those_of_an_xml_parser() -> None:
    found = {(each.key, each.values) for each in properties(without_comments(BEANS))}
    assert ("TooManyHopsDecideRule.maxHops", ("25",)) in found
    assert ("MatchesListRegexDecideRule.regexList", (".*/calendar/.*", r".*\.iso")) in found
    assert ("seeds.textSource.value", ("# URLS HERE\nhttp://other.example/",)) in found
    assert not any(name == "metadata.operator" for name, _ in found)


@needs_wget
def test_a_browsertrix_collection_goes_on_from_its_saved_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    (source / "archive").mkdir(parents=True)
    with RawServer(SITE.routes) as server:
        start = server.url()
        done = [start, server.url("/p1.html"), server.url("/style.css"), server.url("/i0.gif")]
        fetched_by_wget(source / "archive", "rec-0", urls=done)
        first = asked(server)
        state: dict[str, list[object]] = {
            "queued": [
                {"added": "2026-11-01T10:00:00.000Z", "url": server.url("/p3.html"), "seedId": 0, "depth": 1},
                {"added": "2026-11-01T10:00:00.000Z", "url": server.url("/it''s.html"), "seedId": 0, "depth": 2},
            ],
            "pending": [{"url": server.url("/p4.html"), "seedId": 0, "depth": 1, "started": "x", "extraHops": 0}],
            "failed": [{"url": server.url("/gone"), "seedId": 0, "depth": 2, "retry": 2}],
            "finished": [start, server.url("/p1.html"), server.url("/p2.html")],
            "errors": [],
            "extraSeeds": [{"origSeedId": 0, "newUrl": server.url("/blog/")}],
        }
        options = ("collection: source", "limit: 0", "depth: 5", "workers: 2", "behaviors: autoscroll,autoplay")
        more = (
            "exclude:",
            "  - /calendar\\/",
            "  - !<tag:yaml.org,2002:js/regexp> /print=1/i",
            "blockAds: true",
            "userAgent: null",
            "headless: true",
        )
        saved_state(source, start, state, *options, *more)
        assert adopted(source, "-o", tmp_path / "c") == ExitCode.DONE
        said = capsys.readouterr()
        found = states(tmp_path / "c")
        assert {address for address, state in found.items() if state == "archived"} == set(done)
        assert {found[server.url(f"/p{number}.html")] for number in (2, 3, 4)} == {"waiting"}
        assert found[server.url("/gone")] == "failed"
        assert found[server.url("/it's.html")] == "waiting"
        assert "1 URL that it calls fetched, but without a whole capture" in said.out
        settings = toml.parse((tmp_path / "c" / "crawl.toml").read_text(), "crawl.toml")
        assert settings["seeds"] == (start, server.url("/blog/"))
        assert (settings["scope"], settings["max_depth"], settings["max_urls"]) == ("prefix", 5, 0)
        assert settings["exclude"] == ("/calendar\\/", "(?i)print=1")
        assert "no counterpart: behaviors: autoscroll,autoplay" in said.err
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert len(again) == len(set(again))
    assert not {server.url(target) for target in again} & set(done)
    assert SITE.reachable <= set(again) | {address.removeprefix(start[:-1]) for address in done}
    all_is_sound(tmp_path / "c")


JS_YAML = """collection: c
seeds:
  - url: http://example.org/
    scopeType: host
    depth: -1
    include:
      - '/x: y/'
    exclude:
      - a'b
      - ^\\d+$
      - '- x'
limit: 100
exclude:
  - /cal/
  - '#frag'
blockRules:
  - url: ads
    type: block
description: |-
  line one
  line two
userAgent: 'Me: 1 # x'
empty: {}
none: null
state:
  finished:
    - http://example.org/
    - 'http://example.org/a?b=c#d: e'
    - http://example.org/it's
  queued:
    - '{"url":"http://example.org/it''s%20\\"q\\"","seedId":0,"depth":2,"extraHops":0}'
  pending:
    - added: '2026-11-01T10:00:00.000Z'
      url: http://example.org/p
      seedId: 0
      depth: 1
      extraHops: 0
    - url: http://example.org/q
      depth: 3
  sitemapDone: false
  failed: []
  errors:
    - |-
      x
      y: z
  excluded: []
"""


def test_a_saved_state_as_js_yaml_writes_it(tmp_path: Path) -> None:
    """By js-yaml 4, with a pending page as a map, as older versions have it."""
    (tmp_path / "s" / "crawls").mkdir(parents=True)
    (tmp_path / "s" / "crawls" / "crawl-1.yaml").write_text(JS_YAML)
    crawl = adopted_crawl(tmp_path / "s")
    assert [(each.url, each.path) for each in crawl.urls()] == [
        ("http://example.org/", "L"),
        ("http://example.org/a?b=c#d: e", "L"),
        ("http://example.org/it's", "L"),
        ('http://example.org/it\'s%20"q"', "LL"),
        ("http://example.org/p", "L"),
        ("http://example.org/q", "LLL"),
    ]
    assert crawl.settings.seeds == ("http://example.org/",)
    assert crawl.settings.values["exclude"] == ("a'b", r"^\d+$", "- x", "/cal/", "#frag")
    assert crawl.settings.values["include"] == ("/x: y/",)
    assert crawl.settings.values["description"] == "line one line two"
    assert crawl.settings.values["user_agent"] == "Me: 1 # x"
    assert [note for note in crawl.settings.notes if "blockRules" in note]
    several = JS_YAML.replace("seeds:\n", "seeds:\n  - http://second.example/\n")
    (tmp_path / "s" / "crawls" / "crawl-1.yaml").write_text(several)
    crawl = adopted_crawl(tmp_path / "s")
    assert crawl.settings.seeds == ("http://second.example/", "http://example.org/")
    assert crawl.settings.values["exclude"] == ("/cal/", "#frag")
    assert sum("[[seed]]" in note for note in crawl.settings.notes) == 3


@needs_wget
def test_wget_has_no_queue_so_links_are_read_from_its_archives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """wget stopped after the links of the first page, because it was told to; its archive has the command line."""
    (tmp_path / "w").mkdir()
    with RawServer(SITE.routes) as server:
        words = ("-r", "-l", "1", "-p", "-np", "-e", "robots=off", "--reject", "zip,*-old*", "-Q", "10m", "-w", "0.1")
        fetched_by_wget(tmp_path / "w", "a", *words, "--header", "X-Secret: abc", urls=[server.url()])
        first = asked(server)
        assert set(first) < SITE.reachable
        assert adopted(tmp_path / "w", "-o", tmp_path / "c") == ExitCode.DONE
        said = capsys.readouterr()
        text = (tmp_path / "c" / "crawl.toml").read_text()
        settings = toml.parse(text, "crawl.toml")
        assert settings["seeds"] == (server.url(),)
        assert (settings["max_depth"], settings["scope"], settings["robots"]) == (1, "prefix", "ignore")
        assert settings["exclude_ext"] == ("zip",)
        assert settings["max_bytes"] == 10 << 20
        assert "no counterpart: --reject *-old*" in said.err
        assert "abc" not in text + said.err + said.out
        (tmp_path / "c" / "crawl.toml").write_text(text.replace("max-depth = 1", 'max-depth = "none"'))
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert not set(again) & set(first)
    assert len(again) == len(set(again))
    all_is_sound(tmp_path / "c")


@needs_wget
def test_archives_of_wget_at_are_compressed_by_zstd(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with RawServer(SITE.routes) as server:
        warc = fetched_by_wget(tmp_path / "w", "a", "-r", "-l", "1", "-p", urls=[server.url()])
        first = asked(server)
        (tmp_path / "w" / "a.warc.zst").write_bytes(zstd.compress(gzip.decompress(warc.read_bytes())))
        warc.unlink()
        assert adopted(tmp_path / "w", "-o", tmp_path / "c") == ExitCode.DONE
        found = states(tmp_path / "c")
        assert {address for address, state in found.items() if state == "archived"} == set(map(server.url, first))
        assert "waiting" in found.values()
    all_is_sound(tmp_path / "c")


def test_arc_files_of_an_old_heritrix_are_captures_too(tmp_path: Path) -> None:
    """They state no digests."""
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/b>b</a>"
    version = b"1 0 Maker\nURL IP-address Archive-date Content-type Archive-length\n"
    arc = b"filedesc://old.arc 0.0.0.0 20040102030405 text/plain %d\n%b\n" % (len(version), version)
    arc += b"http://example.org/ 127.0.0.1 20040102030406 text/html %d\n%b\n" % (len(body), body)
    (tmp_path / "job" / "arcs").mkdir(parents=True)
    (tmp_path / "job" / "arcs" / "old.arc.gz").write_bytes(gzip.compress(arc))
    heritrix_job(tmp_path / "job", ["F+ http://example.org/  ", "Fs http://example.org/  "])
    assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
    assert states(tmp_path / "c") == {"http://example.org/": "archived", "http://example.org/b": "waiting"} | {
        f"http://example.org/{name}": "waiting" for name in ("sitemap.xml", "sitemap_index.xml", "favicon.ico")
    }
    all_is_sound(tmp_path / "c")


def test_a_package_of_browsertrix_is_enough_when_its_archives_are_gone(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with RawServer(SITE.routes) as server:
        for arguments in (("crawl", server.url(), "-o", "p", "--rate", "0", "--max-urls", "3"), ("pack", "p")):
            assert archiver(*arguments, cwd=tmp_path).returncode in (ExitCode.DONE, ExitCode.LIMIT)
        shutil.move(tmp_path / "p.wacz", tmp_path / "s" / "p.wacz")
        saved_state(tmp_path / "s", server.url(), {"queued": [{"url": server.url("/p9.html"), "depth": 2}]})
        first = asked(server)
        assert adopted(tmp_path / "s", "-o", tmp_path / "c") == ExitCode.DONE
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert not set(again) & set(first)
    assert set(again) | set(first) >= SITE.reachable
    all_is_sound(tmp_path / "c")


@pytest.mark.skipif(HTTRACK is None, reason="httrack is not installed")
def test_a_mirror_of_httrack_waits_because_its_cache_holds_no_exact_answers(tmp_path: Path) -> None:
    with RawServer(SITE.routes) as server:
        assert HTTRACK is not None
        words = (
            HTTRACK,
            server.url(),
            "-O",
            str(tmp_path / "m"),
            "-q",
            "-c1",
            "-%c5",
            "-r3",
            "-s0",
            "-*.zip",
            "-F",
            'Me/1 (of "us")',
            "-%F",
            "it's",
            "-*?day=a b",
        )
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            server.log.holds(6).wait(60)
            process.send_signal(signal.SIGKILL)
        assert adopted(tmp_path / "m", "-o", tmp_path / "c") == ExitCode.DONE
        assert set(states(tmp_path / "c").values()) == {"waiting"}
        settings = toml.parse((tmp_path / "c" / "crawl.toml").read_text(), "crawl.toml")
        assert settings["seeds"] == (server.url(),)
        assert (settings["max_depth"], settings["robots"], settings["user_agent"]) == (2, "ignore", 'Me/1 (of "us")')
        assert settings["exclude"] == (r"^https?://.*\.zip$", r"^https?://.*\?day=a\ b$")
        resumed(tmp_path / "c")
    assert "waiting" not in states(tmp_path / "c").values()
    all_is_sound(tmp_path / "c")


def test_the_log_of_httrack_gives_urls_and_what_led_to_them(tmp_path: Path) -> None:
    start = "http://example.org/"
    mirror(
        tmp_path / "m",
        f"-qwC2%Ps2u1%s -r6 {start} -O1 /x +*.png -mime:video/* -%e1",
        start,
        f"{start}a",
        "javascript:x",
    )
    assert adopted(tmp_path / "m", "-o", tmp_path / "c") == ExitCode.DONE
    query = "SELECT urls.url, above.url FROM urls LEFT JOIN urls AS above ON above.id = urls.via ORDER BY urls.id"
    assert rows(tmp_path / "c", query) == [(start, None), (f"{start}a", start)]
    settings = toml.parse((tmp_path / "c" / "crawl.toml").read_text(), "crawl.toml")
    assert (settings["extra_hops"], settings["exclude_type"]) == (1, ("video/*",))


def test_a_command_line_of_httrack_is_split_as_it_is_written(tmp_path: Path) -> None:
    """HTTrack quotes words with blanks, quotes or backslashes, and no apostrophes."""
    start = "http://example.org/o'neill/"
    words = r"""-qwC2 -F "The \"best\" one's" -%F it's -O "C:\\My Web Sites\\x\\" -*/o'hara/*"""
    mirror(tmp_path / "m", f"{words} {start}", start)
    assert adopted(tmp_path / "m", "-o", tmp_path / "c") == ExitCode.DONE
    settings = toml.parse((tmp_path / "c" / "crawl.toml").read_text(), "crawl.toml")
    assert settings["seeds"] == (start,)
    assert settings["user_agent"] == 'The "best" one\'s'
    assert settings["exclude"] == (r"^https?://.*/o'hara/.*$",)


def test_a_recovery_log_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = heritrix_job(tmp_path / "job", ["F+ http://example.org/  "])
    with log.open("ab") as file:
        for _ in range(40):
            file.write(gzip.compress(bytes(4 << 20), 9))
    assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.USAGE
    assert "gzip bomb" in capsys.readouterr().err
