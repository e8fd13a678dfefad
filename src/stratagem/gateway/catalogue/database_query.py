"""`database_query`: one statement on a database that an administrator connected.

The statement is parsed before it goes anywhere: one statement, only reading unless the connection
is writable, values as parameters. The database itself is opened for reading as well, so that a
statement that the parser misreads still changes nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from stratagem import limits
from stratagem.errors import (
    ExecutionFailed,
    PermissionDenied,
    ToolUnavailable,
    ValidationFailed,
)
from stratagem.gateway.catalogue.standard_tool import (
    Settings,
    StandardTool,
    ToolRun,
    define,
    examples,
)
from stratagem.gateway.handlers.child_processes import run_worker

__all__ = ["TOOLS", "check_statement", "query_file"]

_WORD: Final = re.compile(r"[^\W\d][\w$]*+")
_ESCAPED_NAME: Final = re.compile(r"[uU]&\"")
# Volatile functions of PostgreSQL that change and reach nothing.
_HARMLESS: Final = frozenset(
    {"random", "random_normal", "clock_timestamp", "timeofday", "gen_random_uuid", "uuidv4"}
    | {"uuidv7", "uuid_generate_v1", "uuid_generate_v4", "pg_relation_size", "pg_table_size"}
    | {"pg_indexes_size", "pg_total_relation_size", "pg_database_size", "pg_column_size"}
)
# What a connection for writing may use as well.
_SEQUENCES: Final = frozenset({"nextval", "currval", "lastval"})
WORKER: Final = Path(__file__).parent / "workers" / "database_reader.py"
_PORT: Final = 5432
_DIALECTS: Final = {"sqlite": "sqlite", "duckdb": "duckdb", "postgres": "postgres"}
_WRITES: Final = ("Insert", "Update", "Delete", "Merge")
# They leave the database: files, other servers, programs, or the time of the server.
_FUNCTIONS: Final = frozenset(
    {"pg_read_file", "pg_read_binary_file", "pg_ls_dir", "pg_sleep", "pg_sleep_for", "lo_import"}
    | {"lo_export", "dblink", "dblink_exec", "pg_terminate_backend", "pg_reload_conf", "readfile"}
    | {"load_extension", "read_csv", "read_csv_auto", "read_parquet", "read_json", "read_text"}
    | {
        "read_blob",
        "glob",
        "pg_stat_file",
        "query_to_xml",
        "set_config",
        "sniff_csv",
        "parquet_scan",
        "fts3_tokenizer",
    }
)


async def _query(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    settings = run.connection(given.get("connection"))
    engine = settings["engine"]
    writable = bool(settings.get("writable"))
    statement = await run.in_thread(
        lambda: check_statement(given["sql"], engine, writable=writable)
    )
    order = {
        "engine": engine,
        "path": settings.get("path"),
        "sql": given["sql"],
        "parameters": given.get("parameters") or [],
        "rows_max": given.get("limit", 100),
        "writable": writable and statement != "select",
    }
    seconds = min(run.seconds, given.get("timeout", 10_000) / 1000)
    if engine == "postgres":
        found = await _postgres(run, settings, order, seconds)
    else:
        found = await query_file(order, seconds)
    rows = [dict(zip(_unique(found["columns"]), row, strict=True)) for row in found["rows"]]
    answer = {"columns": _unique(found["columns"]), "rows": rows, "rowCount": len(rows)}
    answer["truncated"] = found["truncated"]
    return answer if found.get("changed") is None else {**answer, "changed": found["changed"]}


async def query_file(order: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Run a statement on a database file, in a process that is killed when it takes too long."""
    path = order.get("path")
    if path and path != ":memory:" and not await asyncio.to_thread(Path(path).is_file):
        raise ExecutionFailed(
            "The database file of this connection does not exist.",
            safe=True,
            hint="An administrator has to set the connection to a file that exists.",
        )
    found: dict[str, Any] = await run_worker(
        WORKER,
        order,
        seconds=seconds,
        file_bytes_max=limits.QUERY_FILE_BYTES_MAX if order["writable"] else 0,
    )
    return found


def check_statement(sql: str, engine: str, *, writable: bool) -> str:
    """Return what kind of statement it is: "select" or "write".

    Raises:
        ValidationFailed: It is no single statement that can be parsed.
        PermissionDenied: It changes something, and the connection is for reading.
    """
    import sqlglot
    from sqlglot import exp

    try:
        parsed = sqlglot.parse(sql, dialect=_DIALECTS[engine])
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        words = str(error).splitlines()[0][:300] if str(error) else "it is nested too deeply"
        raise ValidationFailed(f"`sql` cannot be parsed: {words}.", field="sql") from error
    # A comment after the last semicolon is no statement.
    statements = [each for each in parsed if each and not isinstance(each, exp.Semicolon)]
    if len(statements) != 1:
        raise ValidationFailed(
            f"`sql` has {len(statements)} statements; only one is allowed.", field="sql"
        )
    [statement] = statements
    _refuse_functions(statement, exp)
    reads = isinstance(statement, exp.Query | exp.Describe)
    changing = next(
        (
            node
            for node in statement.walk()
            if type(node).__name__ in {*_WRITES, "Into", "Create", "Drop", "Lock"}
        ),
        None,
    )
    if reads and changing is None:
        return "select"
    if not reads and type(statement).__name__ not in _WRITES:
        raise PermissionDenied(
            f"{_first_word(sql)} is not allowed here: only SELECT, and where the connection "
            "is writable INSERT, UPDATE and DELETE.",
            reason="statement",
            field="sql",
        )
    if not writable:
        raise PermissionDenied(
            "The statement changes data, and this connection is read-only.",
            reason="read_only",
            field="sql",
            hint="An administrator can set `writable` on the connection.",
        )
    return "write"


def _first_word(sql: str) -> str:
    found = _WORD.search(sql)
    return found[0][:40].upper() if found else "This"


def _refuse_functions(statement: Any, exp: Any) -> None:
    for node in statement.find_all(exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).casefold()
        if name in _FUNCTIONS or type(node).__name__ in {"ReadCSV", "ReadParquet"}:
            raise PermissionDenied(
                f"The function {name} reaches outside of the database.",
                reason="function",
                field="sql",
            )


async def _postgres(
    run: ToolRun, settings: Settings, order: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    if find_spec("psycopg") is None:
        raise ToolUnavailable(
            "PostgreSQL needs psycopg, which is not installed.",
            hint="Install it: pip install 'stratagem[postgres]'",
        )
    if _ESCAPED_NAME.search(order["sql"]):
        raise ValidationFailed(
            'Names in the form U&"…" are not accepted.', field="sql", hint="Write the name itself."
        )
    host, port = settings["host"], settings.get("port", _PORT)
    # The guard decides, and the connection goes to the very address that it has passed.
    address = (await run.parts.outbound().addresses(host, port))[0]
    password = (
        run.secret(settings["password"], f"postgresql://{host}:{port}")
        if "password" in settings
        else None
    )
    found: dict[str, Any] = await run_worker(
        WORKER,
        {
            **order,
            "seconds": seconds,
            # Of all words, also those in texts: what the parser misreads is in none of them.
            "names": sorted(set(_WORD.findall(order["sql"]))),
            "harmless": sorted(_HARMLESS | (_SEQUENCES if order["writable"] else frozenset())),
            "connect": {
                "host": host,
                "hostaddr": address,
                "port": port,
                "dbname": settings["database"],
                "user": settings.get("user"),
                "password": password,
                "sslmode": settings.get("ssl", "prefer"),
            },
        },
        seconds=seconds,
    )
    if names := found.get("volatile"):
        raise PermissionDenied(
            f"The function {names[0]} may do more than read: PostgreSQL marks it as volatile.",
            reason="function",
            field="sql",
        )
    return found


def _unique(columns: list[str]) -> list[str]:
    """Return the names of columns, those that stand twice with a number."""
    seen: dict[str, int] = {}
    shown = []
    for name in columns:
        seen[name] = seen.get(name, 0) + 1
        shown.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return shown


TOOLS: Final = (
    StandardTool(
        define(
            "database_query",
            "Query a connected database (SQLite, DuckDB or PostgreSQL) with one SQL statement.",
            category="integration",
            details=(
                "Runs one statement on a connection that an administrator set. SELECT (with WITH, "
                "UNION and so on) always; INSERT, UPDATE and DELETE only where the connection is "
                "writable; nothing that defines, copies or configures. Write `?` for each "
                "value and pass the values in `parameters`; never write them into the statement. "
                "At most "
                "`limit` rows come back; `truncated` says that there are more. To see the tables: "
                "SELECT name FROM sqlite_master (SQLite), or from information_schema.tables."
            ),
            takes={
                "sql": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": limits.SQL_CHARS_MAX,
                    "description": "One statement, ? for each value",
                },
                "parameters": {
                    "type": "array",
                    "items": {"type": ["string", "number", "boolean", "null"]},
                    "maxItems": 1_000,
                    "description": "The values for ?, in order",
                },
                "connection": {"type": "string", "description": "Which one, if there are several"},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": limits.QUERY_ROWS_MAX,
                    "default": 100,
                    "description": "Most rows",
                },
                "timeout": {
                    "type": "integer",
                    "minimum": 100,
                    "maximum": 60_000,
                    "default": 10_000,
                    "description": "Milliseconds",
                },
            },
            required=("sql",),
            gives={
                "columns": {"type": "array", "items": {"type": "string"}},
                "rows": {"type": "array", "items": {"type": "object"}},
                "rowCount": {"type": "integer"},
                "truncated": {"type": "boolean"},
                "changed": {"type": "integer", "description": "Rows that were changed"},
            },
            gives_always=("columns", "rows", "rowCount", "truncated"),
            tags=("sql", "database", "query", "table"),
            shown=examples(
                (
                    "Rows of a table",
                    {"sql": "SELECT name, price FROM items WHERE price > ?", "parameters": [10]},
                )
            ),
            changes=True,
            seconds=60,
            output_bytes=4 * 1024 * 1024,
        ),
        _query,
        packages=("sqlglot", "duckdb"),
        connection="database",
    ),
)
