"""The settings of a database, in any database that speaks SQL."""

from __future__ import annotations

from typing import TypeVar

from stratagem.errors import DatabaseCorrupt
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.session import Queries, Shape

__all__ = ["SqlSettingWriter", "SqlSettings"]

_SETTING_VALUE = Shape[tuple[str | int | None]]()

V = TypeVar("V", int, str)


class SqlSettings:
    """See `stratagem.storage.contract.SettingReader`."""

    __slots__ = ("_queries",)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def text(self, name: str) -> str | None:
        return _check_type(str, name, self._read(name))

    def number(self, name: str) -> int | None:
        return _check_type(int, name, self._read(name))

    def _read(self, name: str) -> str | int | None:
        row = self._queries.row(_SETTING_VALUE, "setting", name)
        return row[0] if row else None


class SqlSettingWriter(SqlSettings):
    """See `stratagem.storage.contract.SettingWriter`: it remembers what it has read."""

    __slots__ = ("_cache",)

    def __init__(self, queries: Queries, cache: WriterCache) -> None:
        super().__init__(queries)
        self._cache = cache

    def set(self, name: str, value: str | int | None) -> None:
        self._cache.settings[name] = value
        self._queries.run("set_setting", name, value)

    def _read(self, name: str) -> str | int | None:
        known = self._cache.settings
        if name not in known:
            known[name] = super()._read(name)
        return known[name]


def _check_type(kind: type[V], name: str, value: str | int | None) -> V | None:
    if value is None or isinstance(value, kind):
        return value
    raise DatabaseCorrupt(f"The setting {name} was altered.")
