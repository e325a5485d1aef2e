"""Windows and macOS are not broken by an import: every module loads where the Unix-only ones are missing."""

import subprocess
import sys

PROGRAM = '''
import importlib, importlib.abc, pkgutil, sys, types

# What archiver stands on is loaded first, as this platform has it.
standing_on = """
    aiohttp aiosqlite asyncio psycopg brotlicffi click concurrent.futures.process isal.isal_zlib lxml.etree
    multiprocessing.reduction rich.live surt tldextract zlib_ng.zlib_ng
"""
for name in standing_on.split():
    importlib.import_module(name)

platform = sys.argv[1]
missing = {"fcntl", "grp", "pwd", "resource", "termios", "uvloop"} if platform == "win32" else {"uvloop"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in missing:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
sys.platform = platform
if platform == "win32":
    sys.modules["msvcrt"] = types.ModuleType("msvcrt")

import archiver
with_pywb = {"archiver.tools.replay.rewriter"}  # imported only to serve an archive; pywb decides where it runs
for module in pkgutil.walk_packages(archiver.__path__, "archiver."):
    if module.name != "archiver.__main__" and module.name not in with_pywb:
        importlib.import_module(module.name)
print("loaded")
'''


def loads_on(platform: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, platform], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, "loaded"), done.stderr


def test_every_module_loads_on_windows() -> None:
    loads_on("win32")


def test_every_module_loads_without_uvloop_on_a_mac() -> None:
    loads_on("darwin")
