"""The architecture: which package may know which, what is pure, how large a thing may grow, and which words we use.

`FLOORS` is the rule and the reading order. A module imports only from earlier lines, wherever the import
is: at the top, in a function, under TYPE_CHECKING. Names on one line do not know each other.
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from archiver.cli.entry import archiver

ROOT = Path(__file__).parents[1] / "archiver"

FLOORS = (
    "errors",
    "url ask",
    "model clock humanize storage",
    "config",
    "http",
    "warc",
    "policy",
    "extract",
    "browser fetch frontier",
    "collection",
    "crawl tools",
    "cli",
    "__main__",
)
RANK = {name: rank for rank, names in enumerate(FLOORS) for name in names.split()}
PURE = {"errors", "url", "ask", "model", "humanize", "http", "warc", "policy", "extract"}
IMPURE = {
    Path("warc/writer.py"),
    Path("warc/cdx.py"),
    Path("extract/exchange.py"),
}  # files in pure packages that write or log

IMPURE_MODULES = {
    *("asyncio", "concurrent", "multiprocessing", "queue", "sched", "selectors", "signal", "subprocess", "threading"),
    *("ftplib", "http", "requests", "select", "smtplib", "socket", "ssl", "urllib3"),
    *("ctypes", "fcntl", "fileinput", "glob", "importlib", "mmap", "os", "shutil", "sys", "tempfile"),
    *("atexit", "getpass", "locale", "logging", "platform", "random", "secrets", "time", "warnings"),
    *("aiohttp", "aiosqlite", "click", "dbm", "rich", "shelve", "sqlite3", "uvloop"),
}
PURE_PARTS = {"pathlib": {"PurePath", "PurePosixPath", "PureWindowsPath"}, "sys": {"maxsize"}}  # of impure modules
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint"}
CLOCK_AND_CHANCE = {"now", "utcnow", "today", "uuid1", "uuid4"}

# Each outside thing has its owners, packages or parts of one; the others ask the owner.
OWNERS = {
    "aiohttp": {"fetch", "tools/watch"},
    "aiosqlite": {"frontier"},
    "click": {"cli"},
    "prometheus_client": {"tools"},
    "python_socks": {"fetch"},
    "uvloop": {"crawl", "cli"},
    "ada_url": {"url"},
    "surt": {"url"},
    "webencodings": {"extract"},
    "lxml": {"extract"},
    "regex": {"config"},
}
OPENS_DATABASE = re.compile(r"(aio)?sqlite3?\.connect")
HAVE_DATABASES = {
    "frontier",
    "tools/verify",
}  # crawl.db, and a scratch one; all others read on a connection they are given
HAVE_NAMES = re.compile(r"tempfile\.(TemporaryDirectory|NamedTemporaryFile|mkdtemp|gettempdir)")
PRIVATE_AIOHTTP = re.compile(r"aiohttp\.(?!abc$|typedefs$)\w+")
COMMAND_GROUP = Path("cli/entry.py")  # imports a command by its name

MAX_FILE = 400
MAX_PACKAGE = 25  # modules
SMALL_FILE = 60  # lines: below this a module needs…
MIN_IMPORTERS = 3
MAX_ROOMS = 20
MAX_FUNCTION = 50  # lines: a screen
MAX_PARAMETERS = 6
DRAWERS = {"base", "common", "helper", "helpers", "lib", "misc", "util", "utils"}
EMPTY_WORDS = re.compile(r"\w(Manager|Helper|Handler|Util|Utils)$")

UNCLEAR_WORDS = re.compile(
    r"\b(anew|nobody|whoever|told by|tells? of|of which none|stands (for|in)|of old|in truth|be it|is had)\b",
    re.IGNORECASE,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Check = Callable[[ast.Module, Path, str], Iterator[str]]


def home_of(path: Path) -> str:
    """The name on the floors to which the file at *path* (below the package) belongs: `fetch/wire.py` to `fetch`.

    The package itself, which offers the library, stands on top.
    """
    return "__main__" if path == Path("__init__.py") else path.parts[0].removesuffix(".py")


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every (module, name) that *tree* imports, in functions and under TYPE_CHECKING too; name is "" for `import x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            near = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*near, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def wrong_floor(tree: ast.Module, path: Path, _text: str) -> Iterator[str]:
    """Imports that go up, or sideways."""
    home = home_of(path)
    for module, name in imported(tree, ("archiver", *path.parts[:-1])):
        first, _, rest = module.partition(".")
        there = rest.partition(".")[0] or name
        if first != "archiver" or there == home or there.startswith("__version"):
            continue
        if there not in RANK:
            yield f"imports {there or 'the whole package'}, which stands on no floor"
        elif RANK[there] >= RANK[home]:
            yield f"imports {there}, which is not below it"
    for node in ast.walk(tree):
        if path == COMMAND_GROUP or not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func).endswith(("__import__", "import_module")):
            yield f"line {node.lineno}: imports what nobody can see"


def impure(tree: ast.Module, path: Path, _text: str) -> Iterator[str]:
    """What a rule may not do: wait, look at the clock, touch files, the network, a database or a log."""
    if home_of(path) not in PURE or path in IMPURE:
        return
    for module, name in imported(tree, ("archiver", *path.parts[:-1])):
        first = module.partition(".")[0]
        if name in PURE_PARTS.get(first, ()):
            continue
        if first in IMPURE_MODULES or first in PURE_PARTS or module == "urllib.request":
            yield f"is pure, yet imports {module} {name}".rstrip()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"line {node.lineno}: is pure, yet waits"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")
            if called[2] in (CLOCK_AND_CHANCE if called[1] else IMPURE_CALLS):
                yield f"line {node.lineno}: is pure, yet calls {''.join(called)}"


def wrong_owner(tree: ast.Module, path: Path, _text: str) -> Iterator[str]:
    """Outside things in the hands of somebody who does not own them; aiohttp's inside anywhere."""
    for module, _ in imported(tree, ("archiver", *path.parts[:-1])):
        owners = OWNERS.get(module.partition(".")[0])
        if owners is not None and not _is_in(path, owners):
            yield f"imports {module}, which belongs to {' and '.join(sorted(owners))}"
        if PRIVATE_AIOHTTP.match(module):
            yield f"imports {module}, a part of aiohttp's inside"
    if path != Path("storage/temporary.py") and (names := HAVE_NAMES.search(ast.unparse(tree))):
        yield f"uses {names[0]}, whose files a kill leaves for ever; use archiver.storage.temporary"
    if not path.as_posix().startswith(tuple(HAVE_DATABASES)):
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        for call in calls:
            if OPENS_DATABASE.fullmatch(ast.unparse(call.func)):
                yield f"line {call.lineno}: opens a database, and has none of its own"


def _is_in(path: Path, owners: set[str]) -> bool:
    """Return True if *path* (below the package) is one of *owners* or in one."""
    return any(path.with_suffix("").parts[: owner.count("/") + 1] == tuple(owner.split("/")) for owner in owners)


def shape(tree: ast.Module, path: Path, text: str) -> Iterator[str]:
    """Docstrings, sizes, names."""
    if not ast.get_docstring(tree):
        yield "does not say what it is for"
    if (lines := text.count("\n")) > MAX_FILE:
        yield f"has {lines} lines; {MAX_FILE} is the most"
    if path.stem in DRAWERS:
        yield "is a drawer: what lies in it has an owner or a noun of its own"
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield from _function(node)
        elif isinstance(node, ast.ClassDef) and EMPTY_WORDS.search(node.name):
            foreign = any(EMPTY_WORDS.search(ast.unparse(base)) for base in node.bases)
            if not foreign:
                yield f"line {node.lineno}: {node.name} says nothing about what it is"


def _function(node: Function) -> Iterator[str]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > MAX_FUNCTION:
        yield f"line {node.lineno}: {node.name} has {lines} lines; {MAX_FUNCTION} is the most"
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    count = len([argument for argument in given if argument.arg not in ("self", "cls")])
    if count > MAX_PARAMETERS:
        yield f"line {node.lineno}: {node.name} takes {count} parameters; {MAX_PARAMETERS} is the most"


def broad_except(tree: ast.Module, _path: Path, text: str) -> Iterator[str]:
    """Broad excepts that neither hand the error on as it is nor say in a comment what becomes of it."""
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            if isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None:
                continue
            caught = ast.unparse(node.type) if node.type else "BaseException"
            beside = lines[node.lineno - 1 : node.body[0].lineno]
            if re.search(r"\b(Base)?Exception\b", caught) and not any("#" in line for line in beside):
                yield f"line {node.lineno}: catches {caught} and does not say why"


def bound_late(tree: ast.Module, _path: Path, _text: str) -> Iterator[str]:
    """Methods called `attach`: what belongs together is given to a constructor."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name == "attach":
            yield f"line {node.lineno}: binds a collaborator late; give it to the constructor"


def unclear_words(tree: ast.Module, _path: Path, _text: str) -> Iterator[str]:
    """Words in strings and docstrings that a reader would not search for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (f"line {node.lineno}: says {found[0]!r}" for found in UNCLEAR_WORDS.finditer(node.value))


CHECKS: tuple[Check, ...] = (shape, wrong_floor, impure, wrong_owner, broad_except, bound_late, unclear_words)


def faults(path: Path, text: str) -> list[str]:
    """Everything that is wrong with the module at *path* (below the package)."""
    tree = ast.parse(text)
    return [fault for check in CHECKS for fault in check(tree, path, text)]


MODULES = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}


@cache
def trees() -> dict[Path, ast.Module]:
    """Each module, parsed; on first use, because every process of the tests imports this file."""
    return {path: ast.parse(text) for path, text in MODULES.items()}


def named(path: Path) -> str:
    """The dotted name of the module at *path* (below the package)."""
    return ".".join(("archiver", *path.with_suffix("").parts)).removesuffix(".__init__")


def importers() -> dict[Path, set[Path]]:
    """For each module the modules that import it or something from it."""
    homes = {named(path): path for path in MODULES}
    found: dict[Path, set[Path]] = {path: set() for path in MODULES}
    for path, tree in trees().items():
        for module, name in imported(tree, ("archiver", *path.parts[:-1])):
            home = homes.get(f"{module}.{name}") or homes.get(module)
            if home is not None:
                found[home].add(path)
    return found


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_module_breaks_this_rule(check: Check) -> None:
    found = {str(path): list(check(trees()[path], path, text)) for path, text in MODULES.items()}
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_each_module_is_on_a_floor() -> None:
    assert {home_of(path) for path in MODULES} - {"__init__"} == set(RANK)


def test_there_are_few_rooms() -> None:
    assert len(RANK) <= MAX_ROOMS


def test_no_package_has_more_than_25_modules() -> None:
    count = Counter(path.parent.as_posix() for path in MODULES)
    assert {package: modules for package, modules in count.items() if modules > MAX_PACKAGE} == {}


def test_a_small_module_has_three_importers() -> None:
    known = importers()
    small = {
        str(path): len(known[path])
        for path, text in MODULES.items()
        if text.count("\n") < SMALL_FILE and path.stem not in {"__init__", "__main__"} and path.parts[0] != "cli"
    }
    assert {path: users for path, users in small.items() if users < MIN_IMPORTERS} == {}


def test_each_class_name_occurs_once() -> None:
    count = Counter(node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, times in count.items() if times > 1 and not name.startswith("_")] == []


def test_no_function_is_just_called_read() -> None:
    named_read = [path for path, tree in trees().items() for node in tree.body if getattr(node, "name", "") == "read"]
    assert named_read == []


def test_each_command_has_a_file_of_its_name() -> None:
    files = {path.stem.removesuffix("_") for path in MODULES if path.parts[0] == "cli"}
    assert [name for name in archiver.commands if name not in files] == []


GOOD = '"""Says what it is for."""\n'


@pytest.mark.parametrize(
    ("where", "text", "fault"),
    [
        ("url.py", "x = 1\n", "what it is for"),
        ("url.py", GOOD + "from archiver.model import Link\n", "imports model, which is not below"),
        ("url.py", GOOD + "from archiver import model\n", "imports model, which is not below"),
        ("url.py", GOOD + "def f():\n    import archiver.crawl\n", "imports crawl, which is not below"),
        ("url.py", GOOD + "if TYPE_CHECKING:\n    from archiver.cli import x\n", "imports cli"),
        ("policy/scope.py", GOOD + "from archiver.extract import x\n", "imports extract, which is not below"),
        ("policy/scope.py", GOOD + "from ..extract import x\n", "imports extract, which is not below"),
        ("http/head.py", GOOD + "from ..extract import x\n", "imports extract, which is not below"),
        ("url.py", GOOD + "import archiver\n", "the whole package"),
        ("url.py", GOOD + "from archiver.attic import x\n", "stands on no floor"),
        ("crawl.py", GOOD + "x = importlib.import_module('archiver.cli')\n", "nobody can see"),
        ("policy/scope.py", GOOD + "import asyncio\n", "yet imports asyncio"),
        ("policy/scope.py", GOOD + "def f():\n    import os.path\n", "yet imports os.path"),
        ("policy/scope.py", GOOD + "from pathlib import Path\n", "yet imports pathlib Path"),
        ("extract/css.py", GOOD + "import logging\n", "yet imports logging"),
        ("policy/scope.py", GOOD + "async def f():\n    pass\n", "yet waits"),
        ("policy/scope.py", GOOD + "x = open('x')\n", "yet calls open"),
        ("policy/scope.py", GOOD + "x = datetime.now()\n", "yet calls datetime.now"),
        ("crawl.py", GOOD + "import aiosqlite\n", "belongs to frontier"),
        ("tools/replay/server.py", GOOD + "from aiohttp import web\n", "belongs to fetch and tools/watch"),
        ("tools/watch/app.py", GOOD + "from aiohttp.web_server import Server\n", "aiohttp's inside"),
        ("tools/report/files.py", GOOD + "db = sqlite3.connect('crawl.db')\n", "opens a database"),
        ("fetch/client.py", GOOD + "from aiohttp.client_proto import ResponseHandler\n", "aiohttp's inside"),
        ("fetch/client.py", GOOD + "import aiohttp.connector\n", "aiohttp's inside"),
        ("url.py", GOOD + "\n" * MAX_FILE, "lines; 400 is the most"),
        ("fetch/utils.py", GOOD, "is a drawer"),
        ("url.py", GOOD + "class UrlManager:\n    pass\n", "says nothing"),
        ("url.py", GOOD + "def f():\n" + "    x = 1\n" * MAX_FUNCTION, "f has 51 lines"),
        ("url.py", GOOD + "def f(a, b, c, d, /, e, *, g, h): ...\n", "takes 7 parameters"),
        ("url.py", GOOD + "try:\n    x = 1\nexcept Exception:\n    pass\n", "does not say why"),
        ("url.py", GOOD + "try:\n    x = 1\nexcept:\n    pass\n", "does not say why"),
        ("url.py", GOOD + "try:\n    x = 1\nexcept (ValueError, BaseException):\n    pass\n", "does not say why"),
    ],
)
def test_a_fault_is_found(where: str, text: str, fault: str) -> None:
    found = faults(Path(where), text)
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("url.py", "import ada_url\nfrom archiver.errors import ConfigError\n"),
        ("http/framer.py", "from archiver.http.head import x\nfrom archiver.model import Framing\n"),
        ("http/framer.py", "from .head import x\n"),
        ("policy/scope.py", "from pathlib import PurePosixPath\nimport re, io, gzip\n"),
        ("crawl.py", "import asyncio, time\nfrom archiver import __version__\n"),
        ("fetch/client.py", "import aiohttp\nfrom aiohttp.abc import AbstractResolver\n"),
        ("cli/app.py", "class Quiet(logging.FileHandler):\n    pass\n"),
        ("crawl.py", "try:\n    x = 1\nexcept Exception:  # becomes the row's failure\n    x = 2\n"),
        ("crawl.py", "try:\n    x = 1\nexcept BaseException:\n    undo()\n    raise\n"),
        ("tools/verify/inventory.py", "import sqlite3\ndef f(db: sqlite3.Connection): ...\n"),
        ("crawl.py", "class Crawl:\n    def f(self, a, b, c, d, e, f): ...\n"),
    ],
)
def test_what_is_right_passes(where: str, text: str) -> None:
    assert faults(Path(where), GOOD + text) == []


def test_what_is_imported_is_installed_with_the_program() -> None:
    """Another distribution's modules are those of a dependency; some come with extras."""
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *extras["replay"],
        *extras["sign"],
        *extras["keyring"],
        *extras["negotiate"],
        *extras["store"],
        *extras["postgres"],
    ]
    brought = {re.split(r"[<>=;.\s]", line)[0].lower().replace("-", "_") for line in wanted}
    imported = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    brought |= {"yarl", "gevent"}  # by aiohttp and pywb, whose interfaces they are part of
    brought |= {"dns"} if "dnspython" in brought else set()
    brought |= {"spnego"} if "pyspnego" in brought else set()
    assert imported - sys.stdlib_module_names - {"archiver"} - brought <= {"compression"}  # of Python 3.14
