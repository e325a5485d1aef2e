"""`--load-cookies` and `archiver cookies`: what is sent then, what is shown, and what curl and wget make of it."""

import gzip
import json
import signal
import sqlite3
import stat
import subprocess
from contextlib import closing
from http.cookiejar import MozillaCookieJar
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.log import Log
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page
from fixtures.steps import START, SWITCH_OVER

OPTIONS = ("-o", "c", "--rate", "0", "--host-concurrency", "1", "--min-free-disk", "0", "-qq")
LOGIN = "127.0.0.1\tFALSE\t/\tFALSE\t0\tlogin\thunter2\n"
SITE: dict[str, Route] = {"/": ok(page("Front", ["/one"])), "/one": ok(page("One"))}


def sent(log: Log, target: str) -> list[str]:
    """The Cookie field of each request for *target*, "" without one."""
    heads = [request.split(b"\r\n") for request in log.requests(target)]
    fields = [[line[8:].decode() for line in head if line.startswith(b"Cookie: ")] for head in heads]
    return ["; ".join(each) for each in fields]


def test_loaded_cookies_are_sent_from_the_first_request_on(tmp_path: Path, forks: Forks) -> None:
    (tmp_path / "one.txt").write_text(LOGIN + LOGIN.replace("login", "old").replace("\t0\t", "\t1000000000\t"))
    (tmp_path / "two.txt").write_text("# Netscape HTTP Cookie File\n\n" + LOGIN.replace("login", "two"))
    files = ("--load-cookies", "one.txt", "--load-cookies", "two.txt")
    with RawServer(SITE, hosts=("127.0.0.1", "127.0.0.2")) as server:
        done = forks.archiver("crawl", server.url(), server.url("/", "127.0.0.2"), *OPTIONS, *files, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert "one.txt: 1 cookie; 1 more have expired" in done.stderr
        assert "hunter2" not in done.stderr
        assert sent(server.log, "/") in (["login=hunter2; two=hunter2", ""], ["", "login=hunter2; two=hunter2"])
    secret = [path for path in warcs(tmp_path / "c") if b"hunter2" in gzip.decompress(path.read_bytes())]
    assert secret
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "c/crawl.db", *secret)} == {0o600}
    holding = [path for path in (tmp_path / "c").rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert {path.name for path in holding} <= {"crawl.db", "crawl.db-wal"}  # and WARC files, which are compressed
    packed = forks.archiver("pack", "c", cwd=tmp_path)
    assert "the request records hold secret headers" in packed.stderr


@pytest.mark.parametrize("step", [step.name for step in START])
def test_no_kill_loses_loaded_cookies(tmp_path: Path, forks: Forks, step: str) -> None:
    """The crawl is killed while it starts, and goes on as a user would let it go on."""
    (tmp_path / "c.txt").write_text(LOGIN)
    with RawServer(SITE) as server:
        first = ("crawl", server.url(), *OPTIONS, "--load-cookies", "c.txt")
        assert forks.run(*first, cwd=tmp_path, step=step).code == -signal.SIGKILL
        begun = (tmp_path / "c/crawl.toml").exists()
        again = ("resume", "c", "-qq") if begun else first
        done = forks.archiver(*again, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert set(sent(server.log, "/") + sent(server.log, "/one")) == {"login=hunter2"}
        assert not (tmp_path / "c/loaded-cookies.json").exists()


@pytest.mark.parametrize("step", [*(step.name for step in START[3:]), *(step.name for step in SWITCH_OVER)])
def test_no_kill_of_a_recrawl_loses_loaded_cookies(tmp_path: Path, forks: Forks, step: str) -> None:
    (tmp_path / "c.txt").write_text(LOGIN)
    with RawServer(SITE) as server:
        assert forks.archiver("crawl", server.url(), *OPTIONS, cwd=tmp_path).returncode == ExitCode.DONE
        seen = len(server.log)
        again = ("recrawl", "c", "-qq", "--load-cookies", "c.txt")
        killed = forks.run(*again, cwd=tmp_path, step=step)
        assert killed.code in (-signal.SIGKILL, ExitCode.DONE)
        if killed.code == -signal.SIGKILL:
            forks.archiver("resume", "c", "-qq", cwd=tmp_path)
            later = {line for row in [*server.log][seen:] for line in row.request.split(b"\r\n") if b"Cookie: " in line}
            if len(server.log) > seen:
                assert later == {b"Cookie: login=hunter2"}


def test_a_resume_keeps_loaded_cookies_and_takes_newer_ones(tmp_path: Path, forks: Forks) -> None:
    (tmp_path / "c.txt").write_text(LOGIN)
    with RawServer(SITE) as server:
        first = ("crawl", server.url(), *OPTIONS, "--max-urls", "1", "--load-cookies", "c.txt")
        assert forks.archiver(*first, cwd=tmp_path).returncode == ExitCode.LIMIT
        (tmp_path / "c.txt").unlink()
        forks.archiver("resume", "c", "-qq", "--max-urls", "0", cwd=tmp_path)
        assert sent(server.log, "/one") == ["login=hunter2"]
        (tmp_path / "c.txt").write_text(LOGIN.replace("hunter2", "new"))
        forks.archiver("retry", "c", server.url("/one"), cwd=tmp_path)
        forks.archiver("resume", "c", "-qq", "--load-cookies", "c.txt", cwd=tmp_path)
        assert sent(server.log, "/one") == ["login=hunter2", "login=new"]


def test_over_an_invalid_certificate_no_loaded_cookie_goes(tmp_path: Path, forks: Forks) -> None:
    (tmp_path / "c.txt").write_text(LOGIN)
    with RawServer(SITE, tls=True) as server:
        done = forks.archiver("crawl", server.url(), *OPTIONS, "--load-cookies", "c.txt", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert sent(server.log, "/one") == [""]


def test_a_recrawl_begins_with_the_cookies_that_have_time_left(tmp_path: Path, forks: Forks) -> None:
    """A session cookie of the site ends with the crawl; those that the user brought stay."""
    (tmp_path / "c.txt").write_text(LOGIN)
    front = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: kept=1; Max-Age=1000\r\nSet-Cookie: gone=1\r\n\r\n"
    with RawServer({"/": front.encode(), "/robots.txt": b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"}) as server:
        forks.archiver("crawl", server.url(), *OPTIONS, "--load-cookies", "c.txt", cwd=tmp_path)
        done = forks.archiver("recrawl", "c", "-qq", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert sent(server.log, "/") == ["login=hunter2", "login=hunter2; kept=1"]
    assert stat.S_IMODE((tmp_path / "c/crawl.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a cookie file\n", "line 1: 1 of 7 fields; a tab must separate them"),
        (LOGIN.encode() * 3 + b"x\ty\n", "line 4: 2 of 7 fields"),
        (b"[]", "line 1: JSON"),
        (b"SQLite format 3\0 and no more", "file is not a database"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_bad_file_is_refused_before_anything_happens(
    tmp_path: Path, forks: Forks, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "bad.txt").write_bytes(content)
    done = forks.archiver("crawl", "http://127.0.0.1:9/", *OPTIONS, "--load-cookies", "bad.txt", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert "--load-cookies bad.txt: " in done.stderr
    assert message in done.stderr
    assert not (tmp_path / "c").exists()


def test_with_cookies_off_there_is_nothing_to_load(tmp_path: Path, forks: Forks) -> None:
    (tmp_path / "c.txt").write_text(LOGIN)
    given = ("--cookies", "off", "--load-cookies", "c.txt")
    done = forks.archiver("crawl", "http://127.0.0.1:9/", *OPTIONS, *given, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "--load-cookies has no effect with --cookies off" in done.stderr


COLUMNS_OF_FIREFOX = {
    15: "rawSameSite INTEGER DEFAULT 0, schemeMap INTEGER DEFAULT 0, isPartitionedAttributeSet INTEGER DEFAULT 0",
    17: "schemeMap INTEGER DEFAULT 0, isPartitionedAttributeSet INTEGER DEFAULT 0, updateTime INTEGER",
}  # the last ones of each version; since 16, a cookie expires in milliseconds


@pytest.mark.parametrize("version", COLUMNS_OF_FIREFOX)
def test_a_database_of_firefox(tmp_path: Path, forks: Forks, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / "cookies.sqlite")) as db:
        db.execute(
            "CREATE TABLE moz_cookies (id INTEGER PRIMARY KEY, originAttributes TEXT NOT NULL DEFAULT '', name TEXT, "
            "value TEXT, host TEXT, path TEXT, expiry INTEGER, lastAccessed INTEGER, creationTime INTEGER, "
            "isSecure INTEGER, isHttpOnly INTEGER, inBrowserElement INTEGER DEFAULT 0, sameSite INTEGER DEFAULT 0, "
            f"{COLUMNS_OF_FIREFOX[version]}, CONSTRAINT u UNIQUE (name, host, path, originAttributes))"
        )
        db.execute(f"PRAGMA user_version = {version}")
        columns = "originAttributes, name, value, host, path, expiry, isSecure, isHttpOnly, sameSite"
        unit = 1000 if version > 15 else 1
        late, over = 4_000_000_000 * unit, 1_000_000_000 * unit
        for row in [
            ("", "a", "1", "127.0.0.1", "/", late, 0, 1, 1),
            ("", "b", "2", "127.0.0.1", "/", late, 0, 0, 256),
            ("^userContextId=1", "c", "3", "127.0.0.1", "/", late, 0, 0, 0),
            ("", "d", "4", ".example.org", "/", late, 1, 0, 0),
            ("", "e", "5", "127.0.0.1", "/", over, 0, 0, 0),
        ]:
            db.execute(f"INSERT INTO moz_cookies ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.commit()
    with RawServer(SITE) as server:
        done = forks.archiver("crawl", server.url(), *OPTIONS, "--load-cookies", "cookies.sqlite", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert sent(server.log, "/") == ["a=1; b=2"]
    listed = rows(tmp_path / "c", "SELECT domain, name, host_only, secure, same_site FROM cookies ORDER BY name")
    assert listed == [("127.0.0.1", "a", 1, 0, "Lax"), ("127.0.0.1", "b", 1, 0, ""), ("example.org", "d", 0, 1, "None")]


def test_a_database_of_chromium_gives_what_is_not_encrypted(tmp_path: Path, forks: Forks) -> None:
    with closing(sqlite3.connect(tmp_path / "Cookies")) as db:
        db.execute(
            "CREATE TABLE cookies (host_key TEXT, path TEXT, name TEXT, value TEXT, encrypted_value BLOB, "
            "expires_utc INTEGER, is_secure INTEGER, is_httponly INTEGER, samesite INTEGER)"
        )
        insert = "INSERT INTO cookies VALUES ('127.0.0.1', '/', ?, ?, ?, 0, 0, 0, -1)"
        db.execute(insert, ("secret", "", b"v10xxxx"))
        db.commit()
        given = ("crawl", "http://127.0.0.1:9/", *OPTIONS, "--retries", "0", "--load-cookies", "Cookies")
        refused = forks.archiver(*given, cwd=tmp_path)
        assert refused.returncode == ExitCode.USAGE
        assert "Chromium has encrypted all 1 values; export them as cookies.txt" in refused.stderr
        db.execute(insert, ("plain", "1", b""))
        db.commit()
    taken = forks.archiver(*given, cwd=tmp_path)
    assert "left out 1 cookies that Chromium has encrypted" in taken.stderr
    assert rows(tmp_path / "c", "SELECT name, value FROM cookies") == [("plain", "1")]


def cookies_set(folder: Path) -> None:
    """A crawl in *folder* whose site set three cookies."""
    fields = ["a=secret1; Path=/; Max-Age=1000", "b=secret2; HttpOnly", "c=; Path=/one"]
    head = "".join(f"Set-Cookie: {field}\r\n" for field in fields)
    with RawServer({"/": f"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{head}\r\n".encode()}) as server:
        assert crawl(folder, server.url(), robots="ignore").code is ExitCode.DONE


def test_cookies_are_listed_without_their_values(tmp_path: Path, forks: Forks) -> None:
    cookies_set(tmp_path / "c")
    listed = forks.archiver("cookies", "c", cwd=tmp_path)
    assert listed.returncode == ExitCode.DONE, listed.stderr
    assert "secret" not in listed.stdout
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [
        ["127.0.0.1/", "a=…"],
        ["127.0.0.1/", "b=…"],
        ["127.0.0.1/one", "c=…"],
    ]
    assert "session, HttpOnly" in listed.stdout
    shown = forks.archiver("cookies", "c", "--json", "--show-values", cwd=tmp_path).stdout
    assert [json.loads(line)["value"] for line in shown.splitlines()] == ["secret1", "secret2", ""]
    assert forks.archiver("cookies", "c", "--domain", "example.org", cwd=tmp_path).stdout == ""
    refused = forks.archiver("cookies", "c", "--domain", "no domain", cwd=tmp_path)
    assert refused.returncode == ExitCode.USAGE
    assert "'no domain' is not a host name" in refused.stderr


def test_curl_wget_and_python_read_the_export(tmp_path: Path, forks: Forks) -> None:
    cookies_set(tmp_path / "c")
    refused = forks.archiver("cookies", "c", "--export", "-", cwd=tmp_path)
    assert (refused.returncode, (tmp_path / "-").exists()) == (ExitCode.USAGE, False)
    assert "give the name of a file" in refused.stderr
    exported = forks.archiver("cookies", "c", "--export", "cookies.txt", cwd=tmp_path)
    assert exported.returncode == ExitCode.DONE, exported.stderr
    file = tmp_path / "cookies.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    jar = MozillaCookieJar(file)
    jar.load(ignore_discard=True, ignore_expires=True)
    assert {cookie.name: cookie.value for cookie in jar} == {"a": "secret1", "b": "secret2", "c": ""}
    programs = [
        ("curl", "-s", "--noproxy", "*", "-b", str(file)),
        ("wget", "-q", "-O-", "--no-proxy", "--load-cookies", str(file)),
    ]
    for program in programs:
        with RawServer(SITE) as server:
            subprocess.run([*program, server.url("/one")], check=True, timeout=30, stdout=subprocess.DEVNULL)
            (fields,) = sent(server.log, "/one")
        assert {"a=secret1", "b=secret2"} <= set(fields.split("; ")), program
    again = ("crawl", "http://127.0.0.1:9/", "-o", "d", "--retries", "0", "-qq", "--load-cookies", "cookies.txt")
    forks.archiver(*again, cwd=tmp_path)
    columns = "SELECT domain, path, name, value, host_only FROM cookies ORDER BY name"
    assert rows(tmp_path / "d", columns) == rows(tmp_path / "c", columns)


@pytest.mark.parametrize(
    "program",
    [
        ("curl", "-s", "--noproxy", "*", "-c"),
        ("wget", "-q", "-O-", "--no-proxy", "--keep-session-cookies", "--save-cookies"),
    ],
    ids=["curl", "wget"],
)
def test_cookies_that_curl_and_wget_saved(tmp_path: Path, forks: Forks, program: tuple[str, ...]) -> None:
    fields = ["a=1; Path=/; Max-Age=1000", "b=2; Path=/one; HttpOnly", "c=3; Path=/one/set; Max-Age=1000"]
    head = "".join(f"Set-Cookie: {field}\r\n" for field in fields)
    setting: Route = f"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{head}\r\n".encode()
    with RawServer({**SITE, "/one/set": setting, "/one": ok(page("One"))}) as server:
        saved = [*program, str(tmp_path / "c.txt"), server.url("/one/set")]
        subprocess.run(saved, check=True, timeout=30, stdout=subprocess.DEVNULL)
        done = forks.archiver("crawl", server.url("/one"), *OPTIONS, "--load-cookies", "c.txt", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, (done.stderr, (tmp_path / "c.txt").read_text())
        assert [set(field.split("; ")) for field in sent(server.log, "/one")] == [{"a=1", "b=2"}]
    listed = rows(tmp_path / "c", "SELECT name, domain, path, host_only FROM cookies ORDER BY name")
    assert listed == [("a", "127.0.0.1", "/", 1), ("b", "127.0.0.1", "/one", 1), ("c", "127.0.0.1", "/one/set", 1)]


def test_cookies_are_cleared(tmp_path: Path, forks: Forks) -> None:
    cookies_set(tmp_path / "c")
    other = forks.archiver("cookies", "c", "--clear", "--domain", "example.org", cwd=tmp_path)
    assert other.stdout == "0 cookies deleted\n"
    assert forks.archiver("cookies", "c", "--clear", cwd=tmp_path).stdout == "3 cookies deleted\n"
    assert not rows(tmp_path / "c", "SELECT * FROM cookies")
    assert b"secret1" not in (tmp_path / "c/crawl.db").read_bytes()
