"""Runs one statement on a database: an order as JSON in, rows as JSON out."""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from contextlib import closing
from datetime import date, datetime, time
from itertools import islice
from typing import Any, NoReturn
from urllib.parse import quote

__all__ = ["plain_value"]

_DOLLAR_QUOTE = re.compile(r"\$[^\W\d]?\w{0,60}\$")
# They load code, read files, or tell where code lies in memory.
_CODE_OF_SQLITE = frozenset({"load_extension", "readfile", "fts3_tokenizer"})


def plain_value(value: Any) -> Any:
    """Return a value of a database as plain JSON."""
    if isinstance(value, dict):
        return {str(name): plain_value(child) for name, child in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(child) for child in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    is_finite = not isinstance(value, float) or math.isfinite(value)
    is_plain = isinstance(value, str | int | float | bool | None) and is_finite
    return value if is_plain else str(value)


def _sqlite(order: dict[str, Any]) -> dict[str, Any]:
    import sqlite3

    mode = "rw" if order["writable"] else "ro"
    uri = f"file:{quote(order['path'])}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
        # A file can bring triggers and views of its own; none of them may load code.
        connection.execute("PRAGMA trusted_schema = OFF")
        if not order["writable"]:
            connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_allow)
        cursor = connection.execute(order["sql"], order["parameters"])
        answer = _rows(cursor, order)
        if order["writable"]:
            connection.commit()
            answer["changed"] = max(connection.total_changes, 0)
    return answer


def _allow(action: int, _first: Any, second: Any, _database: Any, _trigger: Any) -> int:
    import sqlite3

    refused = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
    loads_code = action == sqlite3.SQLITE_FUNCTION and second in _CODE_OF_SQLITE
    return sqlite3.SQLITE_DENY if action in refused or loads_code else sqlite3.SQLITE_OK


def _duckdb(order: dict[str, Any]) -> dict[str, Any]:
    import duckdb

    connection = duckdb.connect(
        order["path"],
        read_only=not order["writable"],
        config={
            # No file, no address and no extension but this one database.
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "allow_unsigned_extensions": "false",
            "memory_limit": "512MB",
            "max_temp_directory_size": "0GB",
            "threads": "1",
        },
    )
    connection.execute("SET lock_configuration = true")
    for name, rows in (order.get("tables") or {}).items():
        _load(connection, name, rows)
    cursor = connection.execute(order["sql"], order["parameters"])
    answer = _rows(cursor, order)
    connection.close()
    if order["writable"] and answer["columns"] == ["Count"]:
        [[changed]] = answer["rows"]
        return {"columns": [], "rows": [], "truncated": False, "changed": changed}
    return answer


class _Unreachable(Exception):
    """The database did not let us in."""


def _postgres(order: dict[str, Any]) -> dict[str, Any]:
    import psycopg

    seconds, writable = order["seconds"], order["writable"]
    try:
        connection = psycopg.connect(
            **order["connect"],
            connect_timeout=max(int(min(seconds, 10)), 2),
            application_name="stratagem",
            options=f"-c default_transaction_read_only={'off' if writable else 'on'} "
            f"-c statement_timeout={int(seconds * 1000)} "
            "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=10000",
        )
    except psycopg.OperationalError as error:
        raise _Unreachable(str(error).strip().splitlines()[-1][:300]) from error
    connection.read_only = not writable
    with connection, connection.cursor() as cursor:
        if volatile := _volatile_functions(cursor, order):
            return {"volatile": volatile}
        return _read_postgres(cursor, order)


def _volatile_functions(cursor: Any, order: dict[str, Any]) -> list[str]:
    """Return the words of a statement that are functions which may do more than read."""
    cursor.execute(
        "SELECT DISTINCT proname::text FROM pg_catalog.pg_proc WHERE provolatile = 'v' "
        "AND proname = ANY(%s) AND NOT proname = ANY(%s) ORDER BY 1",
        [[*order["names"], *(name.lower() for name in order["names"])], order["harmless"]],
    )
    return [name for (name,) in cursor.fetchall()]


def _read_postgres(cursor: Any, order: dict[str, Any]) -> dict[str, Any]:
    sql, parameters = _psycopg_marks(order["sql"]), order["parameters"]
    if order["writable"]:
        # A statement that is prepared is one statement, whatever a parser took it for.
        cursor.execute(sql, parameters, prepare=True)
        return {**_rows(cursor, order), "changed": max(cursor.rowcount, 0)}
    most = order["rows_max"]
    # Row by row: of a million rows only those that are shown are read. A stream is one statement.
    stream = islice(cursor.stream(sql, parameters), most + 1)
    rows = [[plain_value(value) for value in row] for row in stream]
    return {
        "columns": [each.name for each in cursor.description or ()],
        "rows": rows[:most],
        "truncated": len(rows) > most,
    }


def _psycopg_marks(sql: str) -> str:
    """Return a statement with the marks of psycopg: ? becomes %s, and a % stands for itself."""
    pieces: list[str] = []
    at = 0
    while at < len(sql):
        end = _quoted_end(sql, at)
        piece = sql[at:end].replace("%", "%%")
        pieces.append("%s" if piece == "?" else piece)
        at = end
    return "".join(pieces)


def _quoted_end(sql: str, at: int) -> int:
    """Return where a text, a name in quotes or a comment ends; else the next place."""
    closing = {"'": "'", '"': '"', "--": "\n", "/*": "*/"}
    opening = sql[at] if sql[at] in closing else sql[at : at + 2]
    tag = _DOLLAR_QUOTE.match(sql, at)
    if tag is not None:
        opening, closing[tag[0]] = tag[0], tag[0]
    if opening not in closing:
        return at + 1
    found = sql.find(closing[opening], at + len(opening))
    return len(sql) if found < 0 else found + len(closing[opening])


def _load(connection: Any, name: str, rows: list[dict[str, Any]]) -> None:
    """Make a table of rows that were given, each column of the type of all its values."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    kinds = [_column_type([row.get(column) for row in rows]) for column in columns]
    quoted = [f'"{column.replace(chr(34), chr(34) * 2)}"' for column in columns]
    described = ", ".join(f"{column} {kind}" for column, kind in zip(quoted, kinds, strict=True))
    table = f'"{name.replace(chr(34), chr(34) * 2)}"'
    connection.execute(f"CREATE TABLE {table} ({described})")
    marks = ", ".join("?" for _ in columns)
    for at in range(0, len(rows), 1_000):
        connection.executemany(
            f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 -- the name is quoted above
            [[_to_cell(row.get(column)) for column in columns] for row in rows[at : at + 1_000]],
        )


def _column_type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT" if all(abs(v) < 2**62 for v in values if v is not None) else "DOUBLE"
    return "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"


def _to_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _rows(cursor: Any, order: dict[str, Any]) -> dict[str, Any]:
    if cursor.description is None:
        return {"columns": [], "rows": [], "truncated": False}
    columns = [each[0] for each in cursor.description]
    most = order["rows_max"]
    found = cursor.fetchmany(most + 1)
    return {
        "columns": columns,
        "rows": [[plain_value(value) for value in row] for row in found[:most]],
        "truncated": len(found) > most,
    }


def _main() -> NoReturn:
    order = json.loads(sys.stdin.buffer.readline())
    try:
        answer: dict[str, Any] = {
            "result": {"sqlite": _sqlite, "duckdb": _duckdb, "postgres": _postgres}[
                order["engine"]
            ](order)
        }
    except _Unreachable as error:
        answer = {"failed": f"The database cannot be reached: {error}.", "safe": True}
    except MemoryError:
        answer = {"failed": "The query takes too much memory."}
    except Exception as error:  # noqa: BLE001 -- what the database says is the answer
        answer = {"failed": f"The database says: {str(error)[:500]}"}
    sys.stdout.write(json.dumps(answer))
    sys.exit(0)


if __name__ == "__main__":
    _main()
