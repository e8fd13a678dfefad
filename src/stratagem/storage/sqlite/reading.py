"""Reading a log in SQLite: the shared reader over a connection, and FTS5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import getmembers, isfunction
from typing import Any

import apsw
import orjson

from stratagem.engine.events import Space
from stratagem.engine.lineage import Lineage, View
from stratagem.engine.records import Kinds
from stratagem.storage.contract import Found, Version
from stratagem.storage.relational.reading import Held, Names, SqlReader
from stratagem.storage.sqlite.connection import DAMAGE, translation
from stratagem.storage.sqlite.format import check_format
from stratagem.storage.sqlite.statements import SQL, STATEMENTS, statement

__all__ = ["Held", "LookupReader", "Names", "SqliteReader"]


def _array(items: Sequence[Any]) -> str:
    return orjson.dumps(list(items)).decode()


class SqliteReader(SqlReader):
    """See `stratagem.storage.contract.Reader`.

    `checks_format`: whether another process may raise the format while this reader is in use.
    """

    checks_format = True

    statements = STATEMENTS
    faults = (apsw.Error, *DAMAGE)
    _array = staticmethod(_array)

    def __init__(self, connection: apsw.Connection, kinds: Kinds, names: Names) -> None:
        super().__init__(connection, kinds, names)
        self._connection = connection
        # The commit of somebody else that the format was last looked at after.
        self._checked_at = -1

    def current(self, lineage: Lineage, space: Space, key: str) -> Version | None:
        version = super().current(lineage, space, key)
        # Only now: a connection learns of others' commits by reading.
        if self.checks_format and self._connection.data_version() != self._checked_at:
            self.check_format()
        return version

    def check_format(self) -> None:
        """Refuse to read on where a newer Stratagem has upgraded the file since it was opened.

        Raises:
            DatabaseTooNew: It has.
        """
        version, read_models = self._execute(SQL["formats"]).fetchone()
        check_format(version, read_models, self._connection.filename)
        self._checked_at = self._connection.data_version()

    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int,
    ) -> list[Found]:
        sql = statement(
            "matches", len(view.lineage), 10, spaces=spaces is not None, tags=bool(tags)
        )
        wanted = _array(sorted(set(tags)))
        filters = (_array(spaces or ()), wanted, len(set(tags)))
        rows = self._execute(
            sql, (view.time, expression, limit, *weights, *filters, *view.lineage.numbers)
        )
        return list(map(Found._make, rows))

    def text_count(self) -> int:
        averages = self._one("text_averages")
        return _first_varint(averages) if averages else 0

    def _translation(self, error: Exception) -> Exception:
        return translation(error, self._connection.filename)


def _translating(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def look_up(self: SqliteReader, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except SqliteReader.faults as error:
            raise self._translation(error) from error

    return look_up


class LookupReader(SqliteReader):
    """A reader outside of any transaction: whatever it meets, its errors are ours."""


# A look-up of a value translates by itself: it is asked for more than all the others together.
for _name, _method in getmembers(SqliteReader, isfunction):
    if not _name.startswith("_") and _name != "current":
        setattr(LookupReader, _name, _translating(_method))


def _first_varint(data: bytes) -> int:
    """Return the number that FTS5's averages record begins with: how many rows it has."""
    number = 0
    for byte in data[:9]:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 -- the top bit says that more follows
            break
    return number
