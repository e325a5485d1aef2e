"""The frontier's statements in the words of PostgreSQL, and new connections to it.

Statements are written for SQLite, in what both share as far as possible: `ON CONFLICT`, `RETURNING`, `UPDATE … FROM`,
CTEs. The rules here are all that differs. They work on the text, once for each statement.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import Any

from psycopg import Connection as Psycopg
from psycopg import Error
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import TextLoader

from archiver.errors import ConfigError
from archiver.frontier import database

_LISTED = r"json_each\((\?|:\w+)\)"
_SELECTED = rf"\(SELECT value FROM {_LISTED}\)"  # noqa: S608 - a constant
_ARRAY = r"translate(\2, '[]', '{}')::bigint[]"


def _grouped(statement: re.Match[str]) -> str:
    keys, sums, source, columns = statement.groups()
    added = re.sub(r"\w+", r"sum(\g<0>)", sums)
    places = ", ".join(str(place) for place, _ in enumerate(columns.split(","), 1))
    return f" SELECT {keys}, count(*){added} FROM {source} GROUP BY {places}"  # noqa: S608 - words of ours


RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        # Lists come as JSON. Rows are named by numbers, everything else by text. A list of numbers becomes an array,
        # which has other brackets: an index finds all its rows in one go.
        (rf"\b(id|host|seed|status) IN {_SELECTED}", rf"\1 = ANY({_ARRAY})"),
        (rf"\b(id|host|seed|status) NOT IN {_SELECTED}", rf"\1 <> ALL({_ARRAY})"),
        (rf"FROM {_LISTED} AS (\w+)", r"FROM jsonb_array_elements_text(\1::jsonb) AS \2 (value)"),
        (rf"FROM {_LISTED}", r"FROM jsonb_array_elements_text(\1::jsonb) AS given (value)"),
        (r"\bjson_group_array\(", "json_agg("),
        (r"\bjson_array\(", "json_build_array("),
        (r" OR ROLLBACK\b", ""),
        (r" INDEXED BY \w+", ""),
        (r"\bCROSS JOIN\b", "JOIN"),  # which fixes the order of tables in SQLite
        (r"\bwaiting > 0\b", "has_waiting"),  # see postgres.sql
        (r"\b9e999\b", "'Infinity'::float8"),
        (r"\boffset\b", '"offset"'),
        (r"\btemp\.", ""),
        (r"\bINTEGER\)", "BIGINT)"),
        (r"\bsubstr\((rtrim\([^()]*\)|[\w.]+), -(\d+)\)", r"right(\1, \2)"),
        (r"\bGLOB '\*", "LIKE '%"),
        (r"\binstr\(", "strpos("),
        (r" WITHOUT ROWID\b", ""),
        (r"\bINTEGER PRIMARY KEY\b", "BIGINT PRIMARY KEY"),
        # Counting and adding up rows that are alike: SQLite sorts them for GROUP BY, and PostgreSQL does not.
        (
            r"(?s) AS groups\s+SELECT (.*?),\s+1((?:, \w+)*) FROM (.*?)(?: WHERE true)?\s+ON CONFLICT \(([\w, ]+)\).*",
            _grouped,
        ),
        # Unique indexes of texts that may be long: see postgres.sql.
        (r"ON CONFLICT \(pattern\)", "ON CONFLICT (md5(pattern))"),
        (r"ON CONFLICT \(rule, host\)", "ON CONFLICT (md5(rule), host)"),
        (r"ON CONFLICT \(domain, path, name, host_only\)", "ON CONFLICT (domain, md5(path), md5(name), host_only)"),
    )
)
CONNECT = 10  # seconds for one attempt
# The server notices within half a minute that a machine is gone, and lets another run have its lock.
NOTICED = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
IDLE = 20  # seconds after which the server ends a transaction whose process says nothing

_LITERAL = re.compile(r"('(?:[^']|'')*')")
_NAMED = re.compile(r"(?<![:\w]):([a-z_]+)")


@cache
def translate(sql: str) -> str:
    """Return the statement *sql* for PostgreSQL, with the placeholders of psycopg."""
    for pattern, new in RULES:
        sql = pattern.sub(new, sql)
    parts = _LITERAL.split(sql.replace("%", "%%"))
    parts[::2] = [_NAMED.sub(r"%(\1)s", part.replace("?", "%s")) for part in parts[::2]]
    return "".join(parts)


def arrays_of(values: Sequence[Sequence[object]]) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns of *values* as the texts of arrays, and before them their types; "": all are NULL. One is not.

    A parameter for each value would cost the client more than all else that it does for a row.
    """
    columns = [(_kind(column), column) for column in zip(*values, strict=True)]
    arrays = [_texts(column) if kind == "text" else _numbers(column) for kind, column in columns if kind]
    return tuple(kind for kind, _ in columns), arrays


def _kind(column: Sequence[object]) -> str:
    types = set(map(type, column)) - {type(None)}
    if not types:
        return ""
    if float in types:
        return "float8"
    return "bigint" if issubclass(types.pop(), int) else "text"


def _numbers(column: Sequence[Any]) -> str:
    if not {int, float, type(None)}.issuperset(map(type, column)):  # flags
        column = [each if each is None else each + 0 for each in column]
    return "{" + ",".join(map(repr, column)).replace("None", "NULL") + "}"


def _texts(column: Sequence[Any]) -> str:
    if None in column:
        return "{" + ",".join("NULL" if each is None else _texts((each,))[1:-1] for each in column) + "}"
    joined = "\0".join(column)
    if joined.count("\0") >= len(column):  # in a text too
        joined = "\0".join(each.replace("\0", "\ufffd") for each in column)
    return '{"' + joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","') + '"}'


@cache
def with_arrays(sql: str, kinds: tuple[str, ...]) -> str:
    """Return the statement *sql* for PostgreSQL, which takes its rows from arrays of these *kinds*."""
    given = ", ".join(f"?::{kind}[]" for kind in kinds if kind)
    names = [f"given{number}" if kind else "NULL" for number, kind in enumerate(kinds)]
    some = ", ".join(name for name in names if name != "NULL")
    rows = f"SELECT {', '.join(names)} FROM unnest({given}) AS given ({some})"  # noqa: S608 - names of ours
    return translate(sql.replace("VALUES {rows}", rows))


_COMMENT = re.compile(r"[ \t]*--[^\n]*")
_STATEMENT = re.compile(r"CREATE (TABLE|INDEX|TRIGGER) (\w+)(.*?);\n(?=\s*(?:CREATE|\Z))", re.DOTALL)
_KEYS = re.compile(r",\s*PRIMARY KEY \((?:rule|domain|url)[^()]*\)")
_COLUMNS = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\)\s*STRICT(, WITHOUT ROWID)?\s*$", ")"),
        (r"\bINTEGER PRIMARY KEY\b", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (r" REFERENCES \w+ \(\w+\)", ""),  # as in SQLite, nothing checks them
        (r"\bINTEGER\b", "BIGINT"),
        (r"\bREAL\b", "DOUBLE PRECISION"),
        (r"\bBLOB\b", "BYTEA"),
        (r"\bTEXT\b", 'TEXT COLLATE "C"'),  # by bytes, as in SQLite
        (r'\b((?:url|pattern)\s+TEXT COLLATE "C"\s+NOT NULL) (?:UNIQUE|PRIMARY KEY)', r"\1"),
        (r"\boffset\b", '"offset"'),
    )
)


@cache
def schema_script() -> str:
    """Return the SQL that makes the tables of an empty database."""
    folder = files("archiver.frontier")
    own = folder.joinpath("postgres.sql").read_text("utf-8")
    shared = _COMMENT.sub("", folder.joinpath("schema.sql").read_text("utf-8"))
    made: list[str] = []
    for kind, name, body in _STATEMENT.findall(shared):
        if kind == "TRIGGER" or f"CREATE INDEX {name} " in own:
            continue
        text = _KEYS.sub("", body)
        for pattern, new in _COLUMNS if kind == "TABLE" else ():
            text = pattern.sub(new, text)
        made.append(f"CREATE {kind} {name}{text};")
    version = f"INSERT INTO versions VALUES ({database.VERSION});"  # noqa: S608 - a constant
    return "\n".join([*made, own, version])


class NumberLoader(Loader):
    """Loads sums, which PostgreSQL gives as decimal fractions."""

    def load(self, data: Any) -> int | float:
        """Return the number in *data*."""
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class FlagDumper(Int8BinaryDumper):
    """Dumps False and True as 0 and 1, as SQLite has them."""

    def dump(self, obj: Any) -> Any:
        """Return *obj* as a number."""
        return super().dump(int(obj))


def name_of(address: str) -> str:
    """Return the *address* of a database without its password. Raises `ConfigError` if it is none.

    It may have several hosts, HOST:PORT,HOST:PORT: a server and its standby.
    """
    try:
        parts = conninfo_to_dict(address)
    except Error:  # its words may hold the password
        example = "postgresql://crawl@db.example/crawl"
        raise ConfigError(f"{_hidden(address)} is not the address of a database, such as {example}") from None
    user, host, port = (str(parts.get(key) or "") for key in ("user", "host", "port"))
    hosts = host.split(",")
    ports = port.split(",") * (len(hosts) if "," not in port else 1)  # one port may be that of all hosts
    places = [f"{each}:{its}" if its else each for each, its in zip_longest(hosts, ports[: len(hosts)], fillvalue="")]
    where = ",".join(places)
    return f"postgresql://{f'{user}@' if user else ''}{where}/{parts.get('dbname') or user}"


def _hidden(address: str) -> str:
    """Return *address* with nothing that might be a password."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://…@{rest.rpartition('@')[2]}" if "@" in rest else address


def connect(address: str, *, reads: bool) -> Psycopg[tuple[Any, ...]]:
    """Return a new connection; of several hosts in *address*, to the one that takes writes, not to its standby."""
    wanted = "primary" if reads else "read-write"
    read_only = "-c default_transaction_read_only=on" if reads else ""
    given = make_conninfo(
        address,
        connect_timeout=CONNECT,
        application_name="archiver",
        client_encoding="UTF8",
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=30_000,
        options=f"-c idle_in_transaction_session_timeout={IDLE}s -c timezone=UTC {NOTICED} {read_only}",
        target_session_attrs=wanted,
    )
    db = Psycopg.connect(given, autocommit=True)
    db.adapters.register_dumper(int, Int8BinaryDumper)
    db.adapters.register_dumper(bool, FlagDumper)
    db.adapters.register_loader("numeric", NumberLoader)
    db.adapters.register_loader("json", TextLoader)
    db.adapters.register_loader("jsonb", TextLoader)
    return db
