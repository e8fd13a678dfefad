"""Databases of other tools, read and never written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import values
from stratagem.errors import ImportRefused
from stratagem.storage.relational.statements import Statements

__all__ = ["ChromaRecord", "chroma_records", "is_sqlite", "memory_service_records", "table_names"]

_MAGIC: Final = b"SQLite format 3\x00"
_DOCUMENT: Final = "chroma:document"
# Operations of Chroma's queue: add, update, upsert, delete.
_DELETE: Final = 3


class ChromaRecord(NamedTuple):
    """A document of a collection, and the metadata that stood beside it."""

    collection: str
    id: str
    text: str
    metadata: dict[str, Any]


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def table_names(path: Path) -> set[str]:
    """Return the tables of a database.

    Raises:
        ImportRefused: It cannot be read.
    """
    with _rows(path) as read:
        return {row["name"] for row in read("table_names")}


def memory_service_records(path: Path) -> Iterator[dict[str, Any]]:
    """Return the memories of mcp-memory-service.

    Raises:
        ImportRefused: It is another database, or cannot be read.
    """
    with _rows(path) as read:
        columns = {row["name"] for row in read("column_names", table="memories")}
        if not {"content_hash", "content", "tags", "memory_type", "metadata"} <= columns:
            raise ImportRefused(f"{path} is not a database of mcp-memory-service.", file=str(path))
        has_deletions = "deleted_at" in columns
        yield from read("memories" if has_deletions else "memories_without_deletion")


def chroma_records(path: Path) -> list[ChromaRecord]:
    """Return the documents of every collection of Chroma.

    Raises:
        ImportRefused: It is another database, or cannot be read.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with _rows(path) as read:
        tables = {row["name"] for row in read("table_names")}
        if not {"collections", "segments", "embeddings", "embedding_metadata"} <= tables:
            raise ImportRefused(f"{path} is not a database of Chroma.", file=str(path))
        for row in read("documents"):
            fields = found.setdefault((row["collection"], row["id"]), {})
            fields[row["field"]] = row["value"]
        if {"embeddings_queue", "max_seq_id"} <= tables:
            for row in read("pending"):
                _take_pending(found, row)
    return [
        ChromaRecord(
            collection,
            identity,
            str(fields.get(_DOCUMENT) or ""),
            {name: value for name, value in fields.items() if not name.startswith("chroma:")},
        )
        for (collection, identity), fields in found.items()
    ]


def _take_pending(found: dict[tuple[str, str], dict[str, Any]], row: dict[str, Any]) -> None:
    place = (row["collection"], row["id"])
    if row["operation"] == _DELETE:
        found.pop(place, None)
        return
    fields: Any = values.read((row["metadata"] or "{}").encode())
    known = found.setdefault(place, {})
    known |= {name: value for name, value in fields.items() if value is not None}


@contextmanager
def _rows(path: Path) -> Iterator[Any]:
    """Give a function that runs one of our queries on a database of somebody else."""
    import apsw

    statements = Statements(__package__ or "", mark=":").queries
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            connection.set_busy_timeout(5_000)

            def read(name: str, **values: Any) -> Iterator[dict[str, Any]]:
                cursor = connection.execute(statements[name], values)
                names: list[str] = []
                for row in cursor:
                    names = names or [column[0] for column in cursor.get_description()]
                    yield dict(zip(names, row, strict=True))

            yield read
    except apsw.Error as error:
        raise ImportRefused(f"{path} cannot be read: {error}.", file=str(path)) from error
