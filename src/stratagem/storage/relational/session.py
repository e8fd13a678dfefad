"""A connection to a database as the shared code sees it, and typed access to its statements.

A driver returns rows as tuples of anything. The caller of a statement declares the shape of its
rows, in the line that names the statement: `queries.rows(_NUMBER_AND_KEY, "subject_ids", …)`. From
there on the type checker knows what is in them. Nothing is converted: that a statement gives such
rows is proved by the contract suite, on each database.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from stratagem.engine.lineage import Lineage
from stratagem.errors import DatabaseCorrupt
from stratagem.storage.relational.statements import Statements

__all__ = ["NUMBER", "Cursor", "Parameter", "Queries", "Shape", "SqlSession"]

# The types of parameters. Databases without arrays get lists through `Queries.array`.
Parameter = int | float | str | bytes | None | Sequence[int] | Sequence[str]

R = TypeVar("R")
V = TypeVar("V", int, str, bytes)
N = TypeVar("N", bound=tuple[Any, ...])

# For a row that is a tuple already: calling the class would unpack it and pack it again.
_new_tuple = tuple.__new__


class Shape(Generic[R]):
    """The type of a row: `Shape[tuple[int, str]]()`. It does nothing while the program runs."""


# Rows of one column.
NUMBER = Shape[tuple[int]]()


class Cursor(Protocol):
    """The rows of a statement that was run."""

    def fetchone(self) -> tuple[object, ...] | None:
        """Return the next row."""
        ...

    def fetchall(self) -> list[tuple[object, ...]]:
        """Return all rows that are left."""
        ...


class SqlSession(Protocol):
    """Runs statements."""

    def execute(self, sql: str, parameters: Sequence[Parameter] = ..., /) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Parameter]], /) -> object:
        """Run one statement for each of some rows."""
        ...


class Queries:
    """Runs the statements of a store by their names.

    `array` makes one parameter of several values. `faults` are the driver's errors that are
    translated here, by `translate`. A reader outside of any transaction translates all of them;
    inside one they pass through as they are, because group commit has to tell a database that
    failed from work that failed.
    """

    __slots__ = ("_execute", "_faults", "_sql", "_translate", "array", "session", "statements")

    def __init__(
        self,
        session: SqlSession,
        statements: Statements,
        *,
        array: Callable[[Sequence[int] | Sequence[str]], Parameter],
        faults: tuple[type[Exception], ...] = (),
        translate: Callable[[Exception], Exception] = lambda error: error,
    ) -> None:
        self.session = session
        self.statements = statements
        self.array = array
        self._execute = session.execute
        self._sql = statements.queries
        self._faults = faults
        self._translate = translate

    @property
    def state(self) -> Hashable:
        """What all statements see, the same for the same; None where each may see another state."""
        return None

    def rows(self, _shape: Shape[R], name: str, *parameters: Parameter) -> list[R]:
        """Return the rows of a statement, which are tuples of some shape."""
        return cast("list[R]", self._fetch_all(self._sql[name], parameters))

    def rows_as(self, kind: type[N], name: str, *parameters: Parameter) -> list[N]:
        """Return the rows of a statement as named tuples."""
        return [_new_tuple(kind, row) for row in self._fetch_all(self._sql[name], parameters)]

    def row(self, _shape: Shape[R], name: str, *parameters: Parameter) -> R | None:
        """Return the first row of a statement, a tuple of some shape."""
        return cast("R | None", self._fetch_one(self._sql[name], parameters))

    def row_as(self, kind: type[N], name: str, *parameters: Parameter) -> N | None:
        """Return the first row of a statement as a named tuple."""
        row = self._fetch_one(self._sql[name], parameters)
        return None if row is None else _new_tuple(kind, row)

    def value(self, kind: type[V], name: str, *parameters: Parameter) -> V | None:
        """Return the first column of the first row; None where there is no row, or no value.

        Raises:
            DatabaseCorrupt: It has another type: databases that are damaged hold anything.
        """
        row = self._fetch_one(self._sql[name], parameters)
        if row is None:
            return None
        value = row[0]
        if value is None or isinstance(value, kind):
            return value
        raise DatabaseCorrupt(f"The database is damaged: {name} is a {type(value).__name__}.")

    def number(self, name: str, *parameters: Parameter) -> int:
        """Return the number that a statement always gives, such as a count; 0 for no value."""
        return self.value(int, name, *parameters) or 0

    def rows_through(
        self,
        _shape: Shape[R],
        name: str,
        lineage: Lineage,
        *parameters: Parameter,
        subject: str = "",
    ) -> list[R]:
        """Return the rows of a statement that reads through a lineage.

        The branches of the lineage are its parameters after those that are given. `subject` is
        the column, or parameter, that says which record's versions are looked for.
        """
        sql = self.statements.statement(name, len(lineage), len(parameters) + 1, subject=subject)
        return cast("list[R]", self._fetch_all(sql, parameters + lineage.numbers))

    def row_through(
        self,
        _shape: Shape[R],
        name: str,
        lineage: Lineage,
        *parameters: Parameter,
        subject: str = "",
    ) -> R | None:
        """Return the first row of a statement that reads through a lineage."""
        sql = self.statements.statement(name, len(lineage), len(parameters) + 1, subject=subject)
        return cast("R | None", self._fetch_one(sql, parameters + lineage.numbers))

    def rows_of(self, kind: type[N], sql: str, parameters: Sequence[Parameter]) -> list[N]:
        """Return the rows of a statement that its caller has put together, as named tuples."""
        return [_new_tuple(kind, row) for row in self._fetch_all(sql, parameters)]

    def tuples_of(self, _shape: Shape[R], sql: str, parameters: Sequence[Parameter]) -> list[R]:
        """Return the rows of a statement that its caller has put together, as they come."""
        return cast("list[R]", self._fetch_all(sql, parameters))

    def run(self, name: str, *parameters: Parameter) -> None:
        """Run a statement that gives no rows."""
        self._execute(self._sql[name], parameters)

    def run_many(self, name: str, rows: Iterable[Sequence[Parameter]]) -> None:
        """Run a statement for each of some rows."""
        self.session.executemany(self._sql[name], rows)

    def run_on_table(self, name: str, table: str) -> None:
        """Run a statement on a table of ours."""
        self._execute(self._sql[name].replace("{table}", table))

    def _fetch_all(self, sql: str, parameters: Sequence[Parameter]) -> list[tuple[object, ...]]:
        try:
            return self._execute(sql, parameters).fetchall()
        except self._faults as error:
            raise self._translate(error) from error

    def _fetch_one(self, sql: str, parameters: Sequence[Parameter]) -> tuple[object, ...] | None:
        try:
            return self._execute(sql, parameters).fetchone()
        except self._faults as error:
            raise self._translate(error) from error
