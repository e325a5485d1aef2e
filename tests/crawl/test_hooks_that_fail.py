"""Hooks that hang, crash, lie or waste memory: the crawl goes on by the usual rules, and says so once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--hook-timeout", "0.3")
SITE = {"/": ok(page("F", ["/a", "/b"])), "/a": ok(page("A", ["/c"])), "/b": ok(page("B")), "/c": ok(page("C"))}

FAILING = {
    "an endless loop": ("def judge(link, page):\n    while True: pass", "it took more than 0.3 s (hooks.py line 2)"),
    "an endless sleep": (
        "import time\ndef links(document):\n    time.sleep(10000)",
        "it took more than 0.3 s (hooks.py line 3)",
    ),
    "a loop that catches all": (
        (
            "def judge(link, page):\n    while True:\n        try:\n            while True: pass\n"
            "        except BaseException: pass"
        ),
        "it took more than 0.3 s",
    ),
    "code that no alarm interrupts": (
        "import signal\ndef judge(link, page):\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while 1: ...",
        "it took more than 0.3 s, and nothing could interrupt it",
    ),
    "sys.exit": ("import sys\ndef links(document):\n    sys.exit(3)", "SystemExit: 3 (hooks.py line 3)"),
    "os._exit": ("import os\ndef links(document):\n    os._exit(3)", "it ended its process (exit code 3)"),
    "a killed process": (
        "import os\ndef links(document):\n    os.kill(os.getpid(), 9)",
        "it ended its process (signal 9)",
    ),
    "too much memory": ("def links(document):\n    return ['x' * (1 << 34)]", "it took more memory than 2 GiB"),
    "too many links": (
        "def links(document):\n    while True: yield 'http://127.0.0.1:9/'",
        "ValueError: it returned more than 10,000 links",
    ),
    "a URL that is too long": ("def links(document):\n    return ['/' + 'x' * 10000]", "a URL of more than 8,192"),
    "a text for a list": ("def links(document):\n    return '/a'", "TypeError: it returned a value of type str"),
    "numbers for links": ("def links(document):\n    return [1]", "TypeError: it returned a value of type int"),
    "a wrong hop": ("from archiver import HookLink\ndef links(d):\n    return [HookLink('/a', 'R')]", "the hop 'R'"),
    "a word for a truth value": ("def judge(link, page):\n    return 'no'", "not True, False or None"),
    "an exception": ("def judge(link, page):\n    return link.title", "AttributeError: 'HookLink' object has no"),
    "an error that cannot be shown": (
        "class Odd(Exception):\n    def __str__(self):\n        raise self\ndef judge(link, page):\n    raise Odd",
        "hook judge failed: Odd",
    ),
    "a wrong number of parameters": ("def judge(link):\n    return False", "TypeError: judge() takes 1 positional"),
    "keep with a number": ("def keep(exchange):\n    return 0", "not True, False or None"),
    "settings that are none": ("def settings(host):\n    return {'rate': 'often'}", "127.0.0.1: rate: "),
    "settings that JSON lacks": ("def settings(host):\n    return {'rate': {1, 2}}", "TypeError: Object of type set"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_crawl_goes_on_by_the_usual_rules(tmp_path: Path, name: str) -> None:
    text, told = FAILING[name]
    (tmp_path / "hooks.py").write_text(f"{text}\n")
    with RawServer(SITE) as server:
        ran = archiver("crawl", *OPTIONS, "--hooks", "hooks.py", server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert states(tmp_path / "c") == dict.fromkeys(
            [server.url(target) for target in (*SITE, "/robots.txt")], "archived"
        )
    lines = [line for line in ran.stderr.splitlines() if told in line and "the usual rules decide" in line]
    assert len(lines) == 1, ran.stderr
    assert "in this run" in ran.stderr
    if "def judge" in text or "def links" in text:
        assert "a hook failed for" in archiver("report", "c", cwd=tmp_path).stdout
        assert rows(tmp_path / "c", "SELECT count(*) FROM urls WHERE note LIKE '%hook % failed: %'") != [(0,)]


UNUSABLE = {
    "a syntax error": ("def judge(:\n", "SyntaxError: invalid syntax"),
    "a module that is missing": ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
    "an error while it is imported": ("1 / 0\n", "ZeroDivisionError: division by zero (hooks.py line 1)"),
    "the end of the process": ("import os\nos._exit(0)\n", "it ended its process (exit code 0)"),
    "no function": ("judge = 1\n", "it has no hook; write a function judge, links, keep or settings"),
    "no Python": ("\0", "source code string cannot contain null bytes"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    text, told = UNUSABLE[name]
    (tmp_path / "hooks.py").write_text(text)
    ran = archiver("crawl", *OPTIONS, "--hooks", "hooks.py", "http://127.0.0.1:9/", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert told in ran.stderr
    assert ran.stderr.startswith(f"archiver: --hooks {tmp_path / 'hooks.py'}: ")
    assert len(ran.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists()


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    ran = archiver("crawl", *OPTIONS, "--hooks", "hooks.py", "http://127.0.0.1:9/", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert len(ran.stderr.splitlines()) == 1
    assert "cannot be read: No such file or directory" in ran.stderr


def test_what_a_hook_prints_goes_to_stderr(tmp_path: Path) -> None:
    text = "import os\ndef judge(link, page):\n    print('printed')\n    os.write(1, b'written\\n')\n"
    (tmp_path / "hooks.py").write_text(text)
    with RawServer(SITE) as server:
        ran = archiver("crawl", *OPTIONS, "--hooks", "hooks.py", server.url(), cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE
    assert "printed" in ran.stderr
    assert "written" in ran.stderr
    assert ran.stdout == ""


def test_a_function_that_always_hangs_is_not_asked_for_ever(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def links(document):\n    while True: pass\n")
    site = {"/": ok(page("F", [f"/{n}" for n in range(15)])), **{f"/{n}": ok(page(f"{n}")) for n in range(15)}}
    with RawServer(site) as server:
        ran = archiver("crawl", *OPTIONS, "--hooks", "hooks.py", server.url(), cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE
    assert "hook links is not asked again in this run: it failed 10 times in a row" in ran.stderr
    told = re.search(r"^hook links failed (\d+) times in this run$", ran.stderr, re.MULTILINE)
    assert told is not None, ran.stderr
    assert 10 <= int(told[1]) < len(site), ran.stderr


AT_AN_EDGE = """
import signal, sys
from archiver.crawl.hooks.worker import _Alarm
calls = []
def late(timer, seconds, again=0.0):
    calls.append(seconds)
    if len(calls) == int(sys.argv[1]):
        signal.raise_signal(signal.SIGALRM)
signal.setitimer = late
alarm = _Alarm(1)
with alarm:
    print("inside")
signal.raise_signal(signal.SIGALRM)
print(calls)
"""


@pytest.mark.parametrize("edge", ["1", "2"])
def test_an_alarm_at_the_beginning_or_the_end_of_a_block_does_not_stay_on(edge: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", AT_AN_EDGE, edge], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("inside\n[1, 0]\n", "")
