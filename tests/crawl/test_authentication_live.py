"""HTTP authentication in whole crawls: what servers saw, what is archived, and who never gets the password."""

import base64
import gzip
import hashlib
import os
import re
import signal
import stat
import subprocess
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.config.auth import AUTH
from archiver.config.host_rules import HOST_RULE
from archiver.config.logins import LOGIN
from archiver.crawl.login.authentication import MOST_ANSWERS
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.auth_servers import PASSWORD, USER, apache, command, lighttpd, nginx
from fixtures.command import COMMAND, archiver
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.pywb_server import archiver_replay, plain_wayback
from fixtures.rawserver import RawServer, Route, Sendable
from fixtures.site_with_login import MEMBERS, PLEASE, MembersSite
from fixtures.site_with_login import PASSWORD as FORM_PASSWORD
from fixtures.site_with_login import USER as FORM_USER
from fixtures.sites import ok, page

CAPTURES = "SELECT urls.url, captures.status FROM captures JOIN urls ON urls.id = captures.url ORDER BY captures.id"
BASIC = b"Authorization: Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode())


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
    monkeypatch.setenv("FORM_PASSWORD", FORM_PASSWORD)


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(command(name) is None, reason=f"{name} is not installed")


def rule(space: str) -> tuple[object, ...]:
    return (AUTH.parse(f"{space} {USER}:env:SITE_PASSWORD"),)


def statuses(folder: Path, root: str) -> dict[str, list[int]]:
    """The statuses of the captures of each URL, in order."""
    found: dict[str, list[int]] = {}
    for url, status in rows(folder, CAPTURES):
        found.setdefault(str(url).removeprefix(root.rstrip("/")), []).append(int(str(status)))
    return found


def settled(folder: Path) -> Counter[tuple[str, int]]:
    return Counter((str(state), int(str(status))) for state, status in rows(folder, "SELECT state, status FROM urls"))


def refused(challenge: str, body: str = "who are you?") -> Sendable:
    head = f"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\nContent-Length: {len(body)}\r\n\r\n"
    return f"{head}{body}".encode()


def sent(row: Row) -> bytes:
    lines = [line for line in row.request.split(b"\r\n") if line.startswith(b"Authorization:")]
    assert len(lines) <= 1
    return lines[0] if lines else b""


def sent_lines(folder: Path, root: str) -> dict[str, bytes]:
    """The Authorization of the last stored request for each URL; b"" where it has none."""
    found: dict[str, bytes] = {}
    for path in warcs(folder):
        with path.open("rb") as file:
            for each in ArchiveIterator(file, no_record_parse=True):
                if each.rec_type == "request":
                    target = each.rec_headers["WARC-Target-URI"].removeprefix(root.rstrip("/"))
                    block = each.raw_stream.read()
                    found[target] = b"".join(re.findall(rb"\r\nAuthorization: ([^\r]+)", block))
    return found


@needs("nginx")
def test_basic_with_nginx(tmp_path: Path) -> None:
    with nginx(tmp_path / "server") as root:
        crawl(tmp_path / "c", root, auth=rule(f"{root}private/"), robots="ignore")
    found = statuses(tmp_path / "c", root)
    assert found.pop("/private/") == [401, 200]
    assert set(map(tuple, found.values())) == {(200,)}
    assert len(found) == 7
    assert settled(tmp_path / "c") == {("archived", 200): 8}


@needs("lighttpd")
@pytest.mark.parametrize("folder", ["md5", "sha"])
def test_digest_with_lighttpd(tmp_path: Path, folder: str) -> None:
    with lighttpd(tmp_path / "server") as root:
        crawl(tmp_path / "c", f"{root}{folder}/", auth=rule(root), robots="ignore", host_concurrency=1)
    found = statuses(tmp_path / "c", root)
    assert found.pop(f"/{folder}/") == [401, 200]
    assert set(map(tuple, found.values())) == {(200,)}
    assert len(found) == 6


@needs("lighttpd")
def test_two_realms_in_one_space(tmp_path: Path) -> None:
    with lighttpd(tmp_path / "server") as root:
        crawl(tmp_path / "c", root, auth=rule(root), robots="ignore")
    assert settled(tmp_path / "c") == {("archived", 200): 15}


@needs("apache2")
def test_apache_with_basic_and_digest_and_its_next_nonces(tmp_path: Path) -> None:
    with apache() as root:
        crawl(tmp_path, f"{root}in/", root, auth=rule(root), robots="ignore", host_concurrency=1, scope="host")
    found = statuses(tmp_path, root)
    assert found.pop("/in/") == found.pop("/private/") == [401, 200]
    assert set(map(tuple, found.values())) == {(200,)}
    assert len(found) == 20
    lines = sent_lines(tmp_path, root)
    inside = [lines[target] for target in found if target.startswith("/in/")]
    assert len({re.findall(rb'nonce="([^"]+)"', line)[0] for line in inside}) == len(inside)  # each answer brings one
    assert all(b"nc=00000001" in line for line in inside)
    assert all(lines[target].startswith(b"Basic ") for target in found if target.startswith("/private/"))
    assert not [target for target in found if target.startswith("/out/") and lines[target]]  # not in the domain


@needs("apache2")
def test_a_login_form_behind_digest(tmp_path: Path) -> None:
    site = MembersSite()
    with RawServer(site.routes) as server, apache(server.url(), FORM_PASSWORD) as root:
        login = LOGIN.parse(f"{root}login user={FORM_USER} password=env:FORM_PASSWORD 'logged-out={PLEASE}'")
        auth = (AUTH.parse(f"{root} {FORM_USER}:env:FORM_PASSWORD"),)
        assert crawl(tmp_path, root, auth=auth, login=(login,), host_concurrency=1).code is ExitCode.DONE
    assert site.answers["in"] == site.answers["posted"] == 1
    found = statuses(tmp_path, root)
    assert {tuple(found[target]) for target in ("/", *MEMBERS)} == {(200,)}


@pytest.mark.parametrize("quality", ["auth", "auth-int"])
def test_a_form_whose_digest_covers_the_post(tmp_path: Path, quality: str) -> None:
    """The server challenges the POST alone, and checks method and body."""
    site = MembersSite()
    posts: list[bytes] = []

    def hashed(*parts: bytes) -> bytes:
        return hashlib.sha256(b":".join(parts)).hexdigest().encode()

    def posted(row: Row) -> Sendable:
        if row.method != "POST":
            return site.routes["/login"](row)  # type: ignore[operator]
        line, body = sent(row), row.request.partition(b"\r\n\r\n")[2]
        posts.append(line)
        if not line:
            return refused(f'Digest realm="r", nonce="n", algorithm=SHA-256, qop="{quality}", userhash=true')
        given = dict(re.findall(rb'(\w+)="?([^",]+)', line))
        key = hashed(FORM_USER.encode(), b"r", FORM_PASSWORD.encode())
        signed = hashed(b"POST", b"/login", *((hashed(body),) if quality == "auth-int" else ()))
        assert given[b"response"] == hashed(key, b"n", given[b"nc"], given[b"cnonce"], quality.encode(), signed)
        assert given[b"username"] == hashed(FORM_USER.encode(), b"r")
        return site.routes["/login"](row)  # type: ignore[operator]

    with RawServer({**site.routes, "/login": posted}) as server:
        root = server.url()
        login = LOGIN.parse(f"{root}login user={FORM_USER} password=env:FORM_PASSWORD 'logged-out={PLEASE}'")
        auth = (AUTH.parse(f"{root} {FORM_USER}:env:FORM_PASSWORD"),)
        assert crawl(tmp_path, root, auth=auth, login=(login,), host_concurrency=1).code is ExitCode.DONE
    assert [bool(line) for line in posts] == [False, True]
    assert site.answers["posted"] == 1


@needs("nginx")
def test_a_rebuilt_database_settles_the_same(tmp_path: Path, forks: Forks) -> None:
    with nginx(tmp_path / "server") as root:
        crawl(tmp_path / "c", root, auth=rule(root), robots="ignore")
    query = "SELECT url, state, status, tries FROM urls ORDER BY url"
    before, captured = [tuple(row) for row in rows(tmp_path / "c", query)], statuses(tmp_path / "c", root)
    assert forks.archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert [tuple(row) for row in rows(tmp_path / "c", query)] == before
    assert statuses(tmp_path / "c", root) == captured


def test_a_password_is_sent_in_its_space_only_and_refused_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that refuses everything."""
    site: dict[str, Route] = {"/": ok(page("Front", [f"/in/{n}" for n in range(20)] + ["/out/1"]))}
    with RawServer(site, otherwise=lambda _: refused('Basic realm="x"')) as server:
        crawl(tmp_path, server.url(), auth=rule(server.url("/in/")), robots="ignore", host_concurrency=1)
        log = list(server.log)
    assert not any(sent(row) for row in log if not row.target.startswith("/in/"))
    assert sum(bool(sent(row)) for row in log) == 1
    assert len(log) == 23
    assert settled(tmp_path) == {("archived", 200): 1, ("archived", 401): 21}
    assert [record.message for record in caplog.records if "refuses the user" in record.message] == [
        f"{server.url('/in/')}: the server refuses the user and password; they are not sent any more"
    ]
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize("more", ["", ", stale=true"])
def test_an_endless_challenge_with_new_nonces_and_realms_ends(tmp_path: Path, more: str) -> None:
    counts = iter(range(10**6))

    def answer(_: Row) -> Sendable:
        return refused(f'Digest realm="r{next(counts)}", nonce="n{next(counts)}", qop="auth"{more}')

    with RawServer({}, otherwise=answer) as server:
        seeds = [server.url(f"/{n}") for n in range(5)]
        crawl(tmp_path, *seeds, auth=rule(server.url("/")), robots="ignore", host_concurrency=1)
        log = list(server.log)
    assert max(Counter(row.target for row in log).values()) == 1 + MOST_ANSWERS
    assert settled(tmp_path) == {("archived", 401): 5}


def test_a_nonce_that_is_too_old_is_replaced_and_counted(tmp_path: Path) -> None:
    """Each nonce is good for three requests."""
    used: Counter[str] = Counter()
    counts: dict[str, list[int]] = {}

    def answer(row: Row) -> Sendable:
        line = sent(row).decode()
        nonce = line.partition('nonce="')[2].partition('"')[0]
        if not nonce or used[nonce] >= 3:
            return refused(f'Digest realm="r", nonce="n{len(used)}", qop="auth"{", stale=true" if nonce else ""}')
        used[nonce] += 1
        counts.setdefault(nonce, []).append(int(line.partition("nc=")[2][:8], 16))
        assert f'uri="{row.target}"' in line
        return ok(page("Page", ["/1", "/2", "/3?x=1", "/4", "/5", "/6"]))

    with RawServer({}, otherwise=answer) as server:
        crawl(tmp_path, server.url(), auth=rule(server.url("/")), robots="ignore", host_concurrency=1)
    found = statuses(tmp_path, server.url())
    assert found["/"] == [401, 200]
    assert all(each == sorted(set(each)) for each in counts.values())
    assert sum(each.count(401) for each in found.values()) == 3
    assert settled(tmp_path) == {("archived", 200): 7}


def test_no_other_host_gets_the_password_also_over_redirects(tmp_path: Path) -> None:
    basic = refused('Basic realm="x"')
    with RawServer({}, otherwise=lambda _: basic, hosts=("127.0.0.2",)) as other:
        away = other.url("/private/", "127.0.0.2")

        def front(row: Row) -> Sendable:
            if not sent(row):
                return basic
            return f"HTTP/1.1 302 Found\r\nLocation: {away}\r\nContent-Length: 0\r\n\r\n".encode()

        with RawServer({"/private/": front}) as server:
            space = server.url("/")
            seeds = (server.url("/private/"),)
            crawl(tmp_path, *seeds, auth=rule(space), robots="ignore", scope="any", allow_private=("127.0.0.2",))
            assert [bool(sent(row)) for row in server.log] == [False, True]
        assert [sent(row) for row in other.log] == [b""]


@pytest.mark.parametrize("insecure", [False, True])
def test_an_unverified_certificate_gets_the_password_only_if_you_say_so(tmp_path: Path, *, insecure: bool) -> None:
    def answer(row: Row) -> Sendable:
        return ok(page("In")) if sent(row) == BASIC else refused('Basic realm="x"')

    with RawServer({}, otherwise=answer, tls=True) as server:
        hosts = ("127.0.0.1",) if insecure else ()
        crawl(tmp_path, server.url(), auth=rule(server.url("/")), robots="ignore", insecure_secrets=hosts)
    assert statuses(tmp_path, server.url()) == {"/": [401, 200] if insecure else [401]}


def test_a_rule_of_hosts_gives_them_a_password(tmp_path: Path) -> None:
    def answer(row: Row) -> Sendable:
        return ok(page("In")) if sent(row) == BASIC else refused('Basic realm="x"')

    with RawServer({}, otherwise=answer, hosts=("127.0.0.1", "127.0.0.2")) as server:
        text = f"{server.url('', '127.0.0.2')} auth='{USER}:env:SITE_PASSWORD'"
        seeds = [server.url("/", host) for host in server.hosts]
        crawl(tmp_path, *seeds, host=(HOST_RULE.parse(text),), robots="ignore")
    assert statuses(tmp_path, "") == {seeds[0]: [401], seeds[1]: [401, 200]}


def test_a_resumed_crawl_answers_again(tmp_path: Path) -> None:
    def answer(row: Row) -> Sendable:
        return ok(page("In", ["/1", "/2"])) if sent(row) == BASIC else refused('Basic realm="x"')

    with RawServer({}, otherwise=answer) as server:
        auth = rule(server.url("/"))
        assert crawl(tmp_path, server.url(), auth=auth, robots="ignore", max_urls=1).code is ExitCode.LIMIT
        assert crawl(tmp_path, server.url(), auth=auth, robots="ignore", resume=True).code is ExitCode.DONE
    assert settled(tmp_path) == {("archived", 200): 3}


def test_robots_txt_is_asked_for_with_the_password(tmp_path: Path) -> None:
    def answer(row: Row) -> Sendable:
        if sent(row) != BASIC:
            return refused('Basic realm="x"')
        return (
            ok("User-agent: *\nDisallow: /no", "text/plain") if row.target == "/robots.txt" else ok(page("", ["/no"]))
        )

    with RawServer({}, otherwise=answer) as server:
        crawl(tmp_path, server.url(), auth=rule(server.url("/")))
        assert [(row.target, bool(sent(row))) for row in server.log] == [
            ("/robots.txt", False),
            ("/robots.txt", True),
            ("/", True),
        ]


def test_the_password_is_in_no_file_but_the_request_records(tmp_path: Path, forks: Forks) -> None:
    def answer(row: Row) -> Sendable:
        return ok(page("In", ["/1", "/2"])) if sent(row) == BASIC else refused('Basic realm="x"')

    with RawServer({}, otherwise=answer) as server:
        words = (server.url(), "-o", "c", "--rate", "0", "--auth", f"{server.url()} {USER}:env:SITE_PASSWORD", "-vv")
        done = forks.archiver("crawl", *words, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
    assert forks.archiver("pack", "c", cwd=tmp_path).returncode == ExitCode.DONE
    report = forks.archiver("report", "c", cwd=tmp_path)
    assert f"{USER}:env:SITE_PASSWORD" in (tmp_path / "c/crawl.toml").read_text()
    shown = {"messages": done.stderr + done.stdout, "report": report.stdout}
    data = {name: text.encode() for name, text in shown.items()}
    for path in (tmp_path / "c").rglob("*"):
        if path.is_file() and path not in warcs(tmp_path / "c"):
            data[path.name] = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    with zipfile.ZipFile(tmp_path / "c.wacz") as package:
        data |= {name: package.read(name) for name in package.namelist() if not name.startswith("archive/")}
    needles = (PASSWORD.encode(), BASIC.split()[-1], b"hunter2")
    assert [name for name, text in data.items() if any(needle in text for needle in needles)] == []
    holding = [path for path in warcs(tmp_path / "c") if BASIC in gzip.decompress(path.read_bytes())]
    assert holding
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in holding} == {0o600}


def test_a_secret_header_comes_from_its_source_and_is_in_no_settings(tmp_path: Path, forks: Forks) -> None:
    with RawServer({}, otherwise=ok(page("In"))) as server:
        words = (server.url(), "-o", "c", "--header", "Authorization: Bearer env:SITE_PASSWORD")
        rules = ("--host", "127.0.0.1 header='X-Api-Key: env:SITE_PASSWORD' header='X-Plain: env:SITE_PASSWORD'")
        assert forks.archiver("crawl", *words, cwd=tmp_path).returncode == ExitCode.DONE
        assert forks.archiver("resume", "c", *rules, cwd=tmp_path).returncode == ExitCode.DONE
        assert forks.archiver("retry", "c", "--status", "200", cwd=tmp_path).returncode == ExitCode.DONE
        assert forks.archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        first, last = server.log[0].request, server.log[-1].request
    assert f"Authorization: Bearer {PASSWORD}\r\n".encode() in first
    assert f"X-Api-Key: {PASSWORD}\r\nX-Plain: env:SITE_PASSWORD\r\n".encode() in last
    assert PASSWORD not in (tmp_path / "c/crawl.toml").read_text()
    assert "Bearer env:SITE_PASSWORD" in (tmp_path / "c/reports/report.txt").read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("http://127.0.0.1/ me:hunter2", "env:NAME, file:/PATH or keyring:SERVICE/USER"),
        ("http://127.0.0.1/ me:env:NOT_SET_ANYWHERE", "the environment variable NOT_SET_ANYWHERE is not set"),
        ("me:env:SITE_PASSWORD", "without a URL, the password could go to any host"),
        ("http://127.0.0.1/ me:file:/nowhere/at/all", "cannot be read: No such file"),
    ],
)
def test_a_secret_that_is_missing_ends_the_command_before_any_request(
    tmp_path: Path, forks: Forks, given: str, message: str
) -> None:
    with RawServer({}) as server:
        done = forks.archiver("crawl", server.url(), "-o", "c", "--auth", given, cwd=tmp_path)
        assert not list(server.log)
    assert done.returncode == ExitCode.USAGE
    assert message in done.stderr
    assert "hunter2" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists()


def in_folders(row: Row) -> Sendable:
    """A page that links to twelve folders, each of which asks for the password on its own."""
    if row.target == "/":
        return ok(page("Front", [f"/{number}/" for number in range(12)]))
    if sent(row) == BASIC:
        return ok("In", ("text/html", "video/mp4", "application/pdf")[int(row.target[1:-1]) % 3])
    answer = refused(f'Basic realm="{row.target}"')
    assert isinstance(answer, bytes)
    return answer.replace(b"\r\n", b"\r\nContent-Type: text/html\r\n", 1)


@pytest.mark.replay
def test_replay_shows_the_page_and_not_the_401_of_the_same_second(tmp_path: Path, forks: Forks) -> None:
    collection = tmp_path / "collections" / "c"
    with RawServer({}, otherwise=in_folders) as server:
        crawl(collection, server.url(), auth=rule(server.url("/")), robots="ignore")
        addresses = [server.url(f"/{number}/") for number in range(12)]
    before = rows(collection, CAPTURES)
    assert sorted(int(str(status)) for _, status in before) == [200] * 13 + [401] * 12
    for remade in ((), ("index", "c"), ("rebuild", "c")):
        if remade:
            done = forks.archiver(*remade, cwd=collection.parent)
            assert done.returncode == ExitCode.DONE, done.stderr
        for wayback in (archiver_replay(collection), plain_wayback(collection)):
            with wayback as pywb:
                assert [pywb.get(address).status for address in addresses] == [200] * 12, (remade, wayback)
    assert rows(collection, CAPTURES) == before


def responses(folder: Path) -> int:
    """Return the number of response records."""
    count = 0
    for path in warcs(folder):
        with path.open("rb") as file:
            count += sum(each.rec_type == "response" for each in ArchiveIterator(file, no_record_parse=True))
    return count


@pytest.mark.parametrize("answered", [False, True], ids=["before the answer", "after it"])
def test_a_crawl_killed_between_the_401_and_its_answer_goes_on(tmp_path: Path, *, answered: bool) -> None:
    """The server kills the crawl when the password arrives for the fifth folder, or in the request after that."""
    killed: list[subprocess.Popen[bytes]] = []
    fatal = "/5/" if answered else "/4/"

    def killing(row: Row) -> Sendable:
        if row.target == fatal and (answered or sent(row)) and killed[0].poll() is None:
            killed[0].kill()
            killed[0].wait()
        return in_folders(row)

    with RawServer({}, otherwise=killing) as server:
        words = ("crawl", server.url(), "-o", "c", "--rate", "0", "--host-concurrency", "1", "--robots", "ignore")
        given = ("--probe", "off", "--auth", f"{server.url()} {USER}:env:SITE_PASSWORD")
        killed.append(subprocess.Popen([*COMMAND, *words, *given], cwd=tmp_path))
        assert killed[0].wait() == -signal.SIGKILL
        done = archiver("resume", "c", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        log = list(server.log)
    found = statuses(tmp_path / "c", server.url())
    assert {target: each.count(200) for target, each in found.items()} == dict.fromkeys(
        ["/", *(f"/{number}/" for number in range(12))], 1
    )
    assert all(each in ([200], [401, 200], [401, 401, 200]) for each in found.values())
    assert sum(map(len, found.values())) == responses(tmp_path / "c") <= len(log)  # those in no file were made again
    assert settled(tmp_path / "c") == {("archived", 200): 13}
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
