"""Connections to a PostgreSQL server, and the translation of its errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal, Protocol, TypeVar

import orjson
import psycopg
from psycopg import errors as faults
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.types import TypeInfo
from psycopg.types.numeric import Int8BinaryDumper

from stratagem import limits
from stratagem.errors import (
    DatabaseCorrupt,
    ReadOnly,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    StratagemError,
    ValidationFailed,
)
from stratagem.places import is_readable
from stratagem.storage.postgres.pool import Pool
from stratagem.storage.postgres.rows import (
    VECTOR,
    EncodedArray,
    EncodedArrayDumper,
    StoredVector,
    column_types,
    encode_rows,
    encode_vector,
)
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational.session import Parameter

__all__ = [
    "NO_ROWS",
    "READS",
    "SCHEMA",
    "Connection",
    "Durability",
    "PooledSession",
    "PostgresCursor",
    "PostgresSession",
    "connect",
    "translate_error",
    "translating_errors",
]

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
Durability = Literal["full", "fast"]

# Apart from the tables of other programs in the same database.
SCHEMA = "stratagem"
# How many neighbours an index looks at in one go: as many as a search asks for.
_NEIGHBOURS = 200
_PREPARED_MAX = 500
# The first words of statements that only read.
READS = ("SELECT", "WITH")
# The connection broke: whether the server ran the statement is not known here.
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError)
# A connection that is refused has no code of its own: the driver has only the server's words.
_NOT_NOW = re.compile("too many clients|too many connections|connection slots|database system is")
# Without them a machine that vanished is waited for until the kernel gives up, after hours.
_WATCHING: dict[str, Any] = {
    "keepalives_idle": limits.SERVER_WAIT_SECONDS,
    "keepalives_interval": limits.SERVER_WAIT_SECONDS // 2,
    "keepalives_count": 2,
    "tcp_user_timeout": limits.SERVER_WAIT_SECONDS * 2_000,
}
# The driver warns of each pipeline that ends by an error, with the server's user. Errors are raised
# anyway: without a handler of the program's own the warning would go to its standard error.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
_BUSY = (faults.LockNotAvailable, faults.DeadlockDetected, faults.SerializationFailure)


class _VectorDumper(Dumper):
    """Sends a vector in pgvector's own form."""

    format = pq.Format.BINARY

    def dump(self, obj: StoredVector) -> Buffer:
        return encode_vector(obj)


class PostgresCursor(Protocol):
    """The rows of a statement that was run, as the driver converts them."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        ...


class _NoRows:
    """The cursor of a statement without rows, or one that has not been run yet."""

    def fetchone(self) -> None:
        """Return nothing."""

    def fetchall(self) -> list[tuple[object, ...]]:
        """Return nothing."""
        return []


NO_ROWS: Final = _NoRows()


def connect(
    address: str,
    *,
    durability: Durability = "full",
    read_only: bool = False,
    lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
) -> Connection:
    """Open a connection with the settings every reader and writer shares."""
    connection = psycopg.connect(
        address,
        autocommit=True,
        cursor_factory=psycopg.RawCursor,
        connect_timeout=limits.SERVER_WAIT_SECONDS,
        application_name="stratagem",
        # Arrays are sent in it (`rows.py`), whatever the address or the environment says.
        client_encoding="utf8",
        **_keepalive_settings(address),
    )
    prepare(connection, durability, read_only=read_only, lock_wait_seconds=lock_wait_seconds)
    return connection


def _keepalive_settings(address: str) -> dict[str, Any]:
    """Return the settings that detect a silent server, unless the address has its own.

    Raises:
        ValidationFailed: The address cannot be read. What is wrong with it is not quoted: it may
            be a part of the password.
    """
    given: dict[str, Any] | None = None
    with suppress(psycopg.ProgrammingError):
        given = conninfo_to_dict(address)
    if given is None or not is_readable(address):
        raise ValidationFailed(
            "The address of the PostgreSQL server cannot be read.",
            field="database",
            hint="Write postgresql://user@host:port/database#workspace. In a password write "
            "%, @, /, ?, # and : as %25, %40, %2F, %3F, %23 and %3A, or keep the password "
            "in ~/.pgpass.",
        )
    return {name: value for name, value in _WATCHING.items() if name not in given}


def prepare(
    connection: Connection, durability: Durability, *, read_only: bool, lock_wait_seconds: float
) -> None:
    """Give a new connection its settings."""
    # Always of one size: a statement is then prepared once for all numbers.
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(StoredVector, _VectorDumper)
    connection.adapters.register_dumper(EncodedArray, EncodedArrayDumper)
    # Each statement is prepared once; by default a connection forgets all but the last hundred.
    connection.prepared_max = _PREPARED_MAX
    connection.execute(
        f"{SQL['search_path'].replace('{schema}', SCHEMA)}; "
        f"SET lock_timeout TO {round(lock_wait_seconds * 1000)}; "
        f"SET synchronous_commit TO {'on' if durability == 'full' else 'off'}; "
        f"SET default_transaction_read_only TO {'on' if read_only else 'off'}; "
        # A writer has to see what was committed while it waited for its turn.
        "SET default_transaction_isolation TO 'read committed'; "
        "SET jit TO off; "
        # A filtered search goes on until enough was found, nearest first.
        "SET hnsw.iterative_scan TO strict_order; "
        f"SET hnsw.ef_search TO {_NEIGHBOURS}"
    )


class PostgresSession:
    """A connection as the shared code uses it: every statement is about one workspace."""

    def __init__(self, connection: Connection, workspace: int) -> None:
        self.connection = connection
        self.workspace = workspace

    def execute(
        self, sql: str, parameters: Sequence[Parameter] = (), /, *, binary: bool = False
    ) -> PostgresCursor:
        if "$" not in sql:
            # BEGIN and the like: nothing is gained by preparing them.
            return self.connection.execute(sql.encode(), prepare=False)
        if column_types(sql):
            self.executemany(sql, [parameters])
            return NO_ROWS
        given: tuple[Parameter, ...] = (self.workspace, *parameters)
        if sql.startswith(READS):
            given = tuple(map(_without_nul, given))
        return self.connection.execute(sql.encode(), given, binary=binary)

    def executemany(self, sql: str, rows: Iterable[Sequence[Parameter]], /) -> None:
        if types := column_types(sql):
            self.send_rows(sql, types, rows)
        else:
            given = [(self.workspace, *row) for row in rows]
            self.connection.cursor().executemany(sql.encode(), given)

    def send_rows(
        self, sql: str, types: tuple[str, ...], rows: Iterable[Sequence[Parameter]]
    ) -> None:
        """Run a statement once for some rows."""
        numbers = {VECTOR: self._vector_type_number()} if VECTOR in types else {}
        arrays = encode_rows(types, rows, numbers)
        if arrays:
            self.connection.execute(sql.encode(), (self.workspace, *arrays))

    def _vector_type_number(self) -> int:
        """Return the number that the database gave to pgvector's type when it was installed."""
        known = self.connection.adapters.types
        if (info := known.get(VECTOR)) is None:
            # Not by the driver's own way: it begins and ends a transaction where it cannot know, in
            # a pipeline, that there is one.
            found = self.connection.execute(SQL["vector_type"].encode()).fetchone()
            assert found is not None, "the tables could not be made without it"
            info = TypeInfo(VECTOR, found[0], 0)
            known.add(info)
        return info.oid


def _without_nul(value: Parameter) -> Parameter:
    """Return values without NUL: PostgreSQL stores none, so a text with one matches nothing."""
    return value.replace("\0", "\ufffe") if isinstance(value, str) and "\0" in value else value


class PooledSession:
    """Runs each statement on any idle connection, and sees the newest commit."""

    def __init__(self, pool: Pool, workspace: int, place: str) -> None:
        self._pool = pool
        self.workspace = workspace
        self._place = place

    def execute(
        self, sql: str, parameters: Sequence[Parameter] = (), /, *, binary: bool = False
    ) -> PostgresCursor:
        return self.run(lambda session: session.execute(sql, parameters, binary=binary))

    def executemany(self, _sql: str, _rows: Iterable[Sequence[Parameter]], /) -> None:
        raise AssertionError("a reader does not write")

    def run(self, work: Callable[[PostgresSession], T]) -> T:
        """Run something that only reads; once more where the connection was found broken."""
        with translating_errors(self._place):
            with self._pool.connection() as connection:
                try:
                    return work(PostgresSession(connection, self.workspace))
                except _AWAY:
                    if not connection.broken:
                        raise
            # The server was restarted: what else is in the pool is as dead as this one was.
            self._pool.drop_idle()
            with self._pool.connection() as connection:
                return work(PostgresSession(connection, self.workspace))


@contextmanager
def translating_errors(place: str) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except (psycopg.Error, orjson.JSONDecodeError) as error:
        raise translate_error(error, place) from error


def translate_error(error: Exception, place: str) -> StratagemError:
    """Return our error for one of the driver's."""
    if isinstance(error, orjson.JSONDecodeError | faults.DataCorrupted | faults.IndexCorrupted):
        return DatabaseCorrupt(f"The database is damaged: {_line(error)}", path=place)
    if isinstance(error, psycopg.OperationalError) and _NOT_NOW.search(str(error)):
        return StorageBusy(
            f"The PostgreSQL server does not accept connections: {_line(error)}", path=place
        )
    for kinds, ours, message, hint in _WORDS:
        if isinstance(error, kinds):
            return ours(message, hint=hint, path=place)
    return StorageUnavailable(
        f"The PostgreSQL server cannot be used: {_line(error)}", hint=_hint(error), path=place
    )


_WORDS: tuple[tuple[tuple[type[Exception], ...], type[StratagemError], str, str | None], ...] = (
    (_BUSY, StorageBusy, "Another writer locked the workspace for too long.", None),
    (
        (faults.QueryCanceled,),
        StorageBusy,
        "The PostgreSQL server ended a statement that took too long.",
        "Nothing was written. Ask for less, or raise `statement_timeout` for its user.",
    ),
    ((faults.DiskFull,), StorageFull, "The disk of the PostgreSQL server is full.", None),
    (
        (faults.ReadOnlySqlTransaction,),
        ReadOnly,
        "The PostgreSQL server does not accept writes.",
        "Use the address of the primary server, not of a replica.",
    ),
)


def _hint(error: Exception) -> str:
    """Return the next step after an error that an administrator has to solve."""
    for kinds, words, hint in _STEPS:
        if isinstance(error, kinds) or (words and re.search(words, str(error))):
            return hint
    return "Check its address, that it runs, and how many connections it allows."


_STEPS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (faults.InsufficientPrivilege,),
        "",
        (
            f"Its user must own the schema {SCHEMA}, or be allowed to create it (GRANT CREATE ON"
            " DATABASE); a superuser has to run CREATE EXTENSION vector, unless the user may."
        ),
    ),
    (
        (),
        "authentication failed|no password supplied|no pg_hba.conf entry",
        (
            "Check the user and the password; ~/.pgpass and PGPASSWORD are read. The server's"
            " pg_hba.conf must let the user in from here."
        ),
    ),
    (
        (faults.UntranslatableCharacter,),
        "",
        "Create a database for it: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
    ),
    ((), 'role ".{0,200}?" does not exist', "Create the user: CREATE ROLE … LOGIN."),
    ((), 'database ".{0,200}?" does not exist', "Create the database: CREATE DATABASE …."),
    (
        (faults.FeatureNotSupported, faults.UndefinedFile),
        "",
        "Install pgvector 0.8 or later on the machine of the PostgreSQL server.",
    ),
)


def _line(error: Exception) -> str:
    """Describe an error in one line.

    For one about data only by its name, because its message quotes them.
    """
    text = str(error).strip().partition("\n")[0]
    explained = psycopg.OperationalError | psycopg.ProgrammingError | faults.FeatureNotSupported
    if not text or not isinstance(error, explained):
        text = type(error).__name__
    return f"{text.rstrip('.')}."
