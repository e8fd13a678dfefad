"""`database_query`: one statement on a database that an administrator connected.

The statement is parsed before it goes anywhere: one statement, only reading unless the connection
is writable, values as parameters. The database itself is opened for reading as well, so that a
statement that the parser misreads still changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stratagem import limits
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
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
        "sql": given["sql"].strip().rstrip(";"),
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
            "The database file of this connection is not there.",
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
        statements = [each for each in sqlglot.parse(sql, dialect=_DIALECTS[engine]) if each]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        words = str(error).splitlines()[0][:300] if str(error) else "it is nested too deeply"
        raise ValidationFailed(
            f"`sql` is no statement that can be read: {words}.", field="sql"
        ) from error
    if len(statements) != 1:
        raise ValidationFailed(
            f"`sql` has {len(statements)} statements; one is taken.", field="sql"
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
            f"{type(statement).__name__.upper()} is not run here: only SELECT, and where the "
            "connection allows it INSERT, UPDATE and DELETE.",
            reason="statement",
            field="sql",
        )
    if not writable:
        raise PermissionDenied(
            "The statement changes data, and this connection is for reading.",
            reason="read_only",
            field="sql",
            hint="An administrator can set `writable` on the connection.",
        )
    return "write"


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
    try:
        import psycopg
    except ImportError as error:
        raise ToolUnavailable(
            "PostgreSQL takes psycopg, which is not installed.",
            hint="Install it: pip install 'stratagem[postgres]'",
        ) from error
    host, port = settings["host"], settings.get("port", _PORT)
    # The guard decides, and the connection goes to the very address that it has passed.
    address = (await run.parts.outbound().addresses(host, port))[0]
    password = (
        run.secret(settings["password"], f"postgresql://{host}:{port}")
        if "password" in settings
        else None
    )
    try:
        async with asyncio.timeout(seconds):
            connection = await psycopg.AsyncConnection.connect(
                host=host,
                hostaddr=address,
                port=port,
                dbname=settings["database"],
                user=settings.get("user"),
                password=password,
                sslmode=settings.get("ssl", "prefer"),
                connect_timeout=max(int(min(seconds, limits.OUTBOUND_CONNECT_SECONDS)), 2),
                application_name="stratagem",
                options=_session_options(order, seconds),
            )
            async with connection:
                return await _run_postgres(connection, order)
    except TimeoutError:
        raise ExecutionTimeout(f"The database took longer than {seconds:g} seconds.") from None
    except psycopg.errors.QueryCanceled as error:
        raise ExecutionTimeout(f"The database took longer than {seconds:g} seconds.") from error
    except psycopg.OperationalError as error:
        words = str(error).strip().splitlines()[-1][:300]
        raise ExecutionFailed(f"The database cannot be reached: {words}.", safe=True) from None
    except psycopg.Error as error:
        words = str(error).strip().splitlines()[0][:300]
        raise ExecutionFailed(f"The database says: {words}.", answered=True) from None


def _session_options(order: Mapping[str, Any], seconds: float) -> str:
    read_only = "off" if order["writable"] else "on"
    return (
        f"-c default_transaction_read_only={read_only} -c statement_timeout={int(seconds * 1000)} "
        "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=10000"
    )


async def _run_postgres(connection: Any, order: Mapping[str, Any]) -> dict[str, Any]:
    # A cursor on the server: of a million rows only those that are shown are ever sent.
    name = None if order["writable"] else "stratagem"
    async with connection.cursor(name=name) if name else connection.cursor() as cursor:
        await cursor.execute(_psycopg_marks(order["sql"]), list(order["parameters"]) or None)
        if cursor.description is None:
            return {"columns": [], "rows": [], "truncated": False, "changed": cursor.rowcount}
        columns = [each.name for each in cursor.description]
        most = order["rows_max"]
        rows = await cursor.fetchmany(most + 1)
        changed = cursor.rowcount if order["writable"] else None
    from stratagem.gateway.catalogue.workers.database_reader import plain_value

    return {
        "columns": columns,
        "rows": [[plain_value(value) for value in row] for row in rows[:most]],
        "truncated": len(rows) > most,
        "changed": changed,
    }


def _psycopg_marks(sql: str) -> str:
    """Return a statement with the marks of psycopg: ? becomes %s, and a % stands for itself."""
    pieces: list[str] = []
    quote = ""
    for char in sql:
        if quote:
            quote = "" if char == quote else quote
        elif char in {"'", '"'}:
            quote = char
        elif char == "?":
            pieces.append("%s")
            continue
        pieces.append("%%" if char == "%" else char)
    return "".join(pieces)


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
                "writable; nothing that defines, copies or configures. Write `?` for each value "
                "and give the values in `parameters`: never put them into the statement. At most "
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
