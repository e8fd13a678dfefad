"""What `doctor` checks in a file.

The chain is recomputed from the events themselves. The read models are made again from the log in a
database of their own and compared with those in use, row by row: they are functions of the log, so
any difference is damage. SQLite compares every index with its table, and says which page is broken.

There are three kinds of damage. Read models can be rebuilt from the log. A file with damaged pages
can be rewritten, as long as every event can be read. Only damage to events themselves cannot be
repaired, and then each damaged event is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import apsw

from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Finding, Progress
from stratagem.storage.relational import chain
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.requests import SqlRequests, is_genuine
from stratagem.storage.rescue import find_losses
from stratagem.storage.scratch import scratch_folder
from stratagem.storage.sqlite import maintenance
from stratagem.storage.sqlite.connection import DAMAGE, MEMORY, add_functions, translating_errors
from stratagem.storage.sqlite.reader import make_queries
from stratagem.storage.sqlite.salvage import salvage
from stratagem.storage.sqlite.statements import SQL, script

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["examine", "examine_unopened"]

_COMPARED: Final = (
    "branches", "versions", "tallies", "knows", "tags", "links", "numbers", "turns", "unindexed",
)  # fmt: skip
_READ_MODELS: Final = frozenset((*_COMPARED, "vectors", "unembedded", "texts", "terms"))
_FINDINGS_MAX: Final = 100
_UNREADABLE: Final = (apsw.Error, *DAMAGE, DatabaseCorrupt)
_TREE: Final = re.compile(r"[Tt]ree ([0-9]{1,10})")
_INDEX: Final = re.compile(r"index ([A-Za-z0-9_]{1,64})")
_PAGE: Final = re.compile(r"[Pp]age ([0-9]{1,10})")


def examine(
    store: SqliteStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the file, the chain and the read models; say what is wrong."""
    with translating_errors(store.location):
        connection = store.connect()
        structure = list(_structure(connection))
        log = _log(store, connection, progress, expect)
        findings = [
            *log,
            *_repairable_by_log(structure, whole=all(each.part != "log" for each in log)),
        ]
        if not log:
            findings += [*_settings(connection), *_requests(connection)]
        if not findings:
            findings = _read_models(store, progress)
    return findings[:_FINDINGS_MAX]


def examine_unopened(path: str, progress: Progress) -> list[Finding]:
    """Say what is lost of a file that SQLite cannot open, page by page."""
    return [
        Finding("SQLite cannot open the file.", path, repairable=False, part="file"),
        *_losses(path, progress),
    ]


def _log(
    store: SqliteStore,
    connection: apsw.Connection,
    progress: Progress,
    expect: tuple[int, str] | None,
) -> list[Finding]:
    try:
        found = _chain(connection, progress, expect)
        reason = "a name was altered"
    except _UNREADABLE as error:
        if store.location == MEMORY:
            raise
        found, reason = [], str(error)
    else:
        if not found or expect is not None or store.location == MEMORY:
            return found
    if lost := list(_losses(store.location, progress)):
        return found or lost
    # Events lie in leaves, and names in two places: the tables may be damaged and the log whole.
    words = f"The tables of the log are damaged: {reason}."
    return [Finding(words, "every event can be read", repairable=True, part="file")]


def _chain(
    connection: apsw.Connection,
    progress: Progress,
    expect: tuple[int, str] | None,
) -> list[Finding]:
    connection.execute("BEGIN")
    try:
        return list(chain.check(SqlLog(make_queries(connection)), progress, expect))
    finally:
        connection.execute("COMMIT")


def _losses(path: str, progress: Progress) -> Iterator[Finding]:
    with salvage(path, progress) as found:
        yield from find_losses(found, progress)


def _structure(connection: apsw.Connection) -> Iterator[Finding]:
    """Have SQLite check its pages and compare every index with its table."""
    whole = list(_check(connection, ""))
    if whole == ["ok"]:
        return
    objects: list[Any] = []
    with suppress(*_UNREADABLE):
        objects = connection.execute(SQL["objects"]).fetchall()
    roots = {root: name for _, name, _, root in objects if root}
    owners = {name: table for _, name, table, _ in objects}
    indexes = {name for kind, name, _, _ in objects if kind == "index"}
    reported: set[str] = set()
    # The check of the whole file does not say which table a line is about; that of one table does.
    for kind, table, _, _ in objects:
        if kind == "table" and not _is_shadow(table):
            for line in _check(connection, table):
                if line != "ok":
                    reported.add(line)
                    name = _object_of(line, roots) or table
                    yield _structure_finding(
                        line, name, owners.get(name, table), index=name in indexes
                    )
    # What is left is about the file itself, such as its list of free pages.
    for line in whole:
        if line != "ok" and line not in reported:
            name = _object_of(line, roots)
            table = owners.get(name, "") if name else ""
            yield _structure_finding(line, name or "", table, index=name in indexes)


def _check(connection: apsw.Connection, table: str) -> Iterator[str]:
    argument = f"('{table}')" if table else ""
    try:
        for (line,) in connection.execute(f"PRAGMA integrity_check{argument}"):
            # SQLite writes several lines into one row.
            yield from (each for each in line.splitlines() if not each.startswith("***"))
    except _UNREADABLE as error:
        yield str(error)


def _object_of(line: str, roots: dict[int, str]) -> str | None:
    """Return the table or index that a line of SQLite's is about."""
    if found := _INDEX.search(line):
        return found[1]
    found = _TREE.search(line)
    return roots.get(int(found[1])) if found else None


def _structure_finding(line: str, name: str, table: str, *, index: bool) -> Finding:
    page = _PAGE.search(line)
    on_page = f", page {page[1]}" if page else ""
    if index and table not in _READ_MODELS:
        words = f"The index {name} differs from its table: {line}"
        return Finding(words, f"index {name} of {table}{on_page}", repairable=True, part="derived")
    if table in _READ_MODELS or _is_shadow(table):
        what = f"index {name} of {table}" if index else f"read model {table}"
        words = f"The {what} is damaged: {line}"
        return Finding(words, f"{what}{on_page}", repairable=True, part="derived")
    where = f"table {name}{on_page}" if name else "the file as a whole"
    return Finding(f"SQLite's own check says: {line}", where, repairable=True, part="file")


def _is_shadow(table: str) -> bool:
    """Whether a table is one of those that FTS5 keeps its index in."""
    return table.startswith("texts_")


def _repairable_by_log(structure: list[Finding], *, whole: bool) -> list[Finding]:
    """Return what SQLite found; a file can only be written anew while its log is whole."""
    if whole:
        return structure
    return [replace(each, repairable=each.part == "derived") for each in structure]


def _settings(connection: apsw.Connection) -> Iterator[Finding]:
    try:
        broken = connection.execute(SQL["broken_seal"]).fetchone() is not None
    except _UNREADABLE:
        broken = True
    if broken:
        words = "The settings were altered."
        yield Finding(words, "table settings", repairable=True, part="derived")


def _requests(connection: apsw.Connection) -> Iterator[Finding]:
    """Say which remembered results were altered; those of older versions cannot be checked."""
    try:
        for result in SqlRequests(make_queries(connection)).all():
            if not is_genuine(result):
                words = "A stored result of a request was altered; a repair removes it."
                where = f"request {result.request!r} of {result.actor!r}"
                yield Finding(words, where, repairable=True, part="derived")
    except (*_UNREADABLE, TypeError) as error:
        words = (
            f"The stored results of requests cannot be read: {error}. A repair removes the rest."
        )
        yield Finding(words, "table requests", repairable=True, part="derived")


def _read_models(store: SqliteStore, progress: Progress) -> list[Finding]:
    with scratch_folder("stratagem-doctor-") as folder:
        # A database in memory can only be attached by its URI.
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        fresh = apsw.Connection(str(folder / "fresh.db"), flags=flags)
        fresh.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        add_functions(fresh)
        try:
            fresh.pragma("synchronous", "off")
            fresh.execute(script("read_models.sql"))
            fresh.execute("ATTACH ? AS source", (store.uri,))
            fresh.execute(SQL["text_vocabularies"])
            fresh.execute("BEGIN")
            maintenance.replay(fresh, store, progress, unindexed=_find_unindexed(fresh))
            findings = list(_differences(fresh, progress))
            fresh.execute("ROLLBACK")
        finally:
            fresh.close()
    return findings


def _find_unindexed(fresh: apsw.Connection) -> frozenset[int]:
    """Return the texts that the last commits have left; none where that is damaged."""
    try:
        return frozenset(row[0] for row in fresh.execute(SQL["source_unindexed"]))
    except _UNREADABLE:
        return frozenset()


def _differences(fresh: apsw.Connection, progress: Progress) -> Iterator[Finding]:
    questions = [
        *(
            (
                SQL["differences"].replace("{table}", table),
                f"The read model {table} differs from the log.",
            )
            for table in _COMPARED
        ),
        *((SQL[name], words) for name, words in _QUESTIONS.items()),
    ]
    for place, (question, words) in enumerate(questions):
        progress(place, len(questions), "comparing the read models")
        try:
            row = fresh.execute(question).fetchone()
        except _UNREADABLE as error:
            row = (str(error),)
        if row:
            yield Finding(words, _place(row), repairable=True, part="derived")


_QUESTIONS: Final = {
    "text_differences": "The search index differs from the log.",
    "term_differences": "The search index does not find a word.",
    "length_differences": "The search index has a wrong length for a text.",
    "average_differences": "The search index has a wrong average length of texts.",
    "vector_differences": "A text has neither a vector nor a place in the queue for one.",
    "vector_strays": "A vector belongs to no text.",
    "queue_strays": "The queue for vectors holds something that is not a text.",
    "altered_vectors": "A vector was altered.",
}


def _place(row: Any) -> str:
    return "row " + ", ".join(str(value) for value in row[:6])
