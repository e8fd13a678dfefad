"""Every event of a damaged file that can still be read and proves genuine by its own hash.

Names are wanted to check a hash, and each is there twice: in its table and in the index over it. So
the names of a damaged page are found in the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import apsw

from stratagem.engine.events import Event, Space, content_hash
from stratagem.storage.contract import Progress
from stratagem.storage.rescue import Salvage, Trace, highest_sequence
from stratagem.storage.scratch import scratch_folder
from stratagem.storage.sqlite.connection import translating_errors
from stratagem.storage.sqlite.pages import Cell, PageFile

__all__ = ["salvage"]

_EVENT_COLUMNS: Final = 14
_SUBJECT_COLUMNS: Final = 3
# Seven before the length of texts was kept.
_VERSION_COLUMNS: Final = (7, 8)
_BRANCH_COLUMNS: Final = 5
_HASH_BYTES: Final = 32
_PAGES_AT_ONCE: Final = 1_000

_Names = dict[int, list[Any]]


@contextmanager
def salvage(path: str, progress: Progress) -> Iterator[Salvage]:
    """Read every page of a database file; give what can be read of its log."""
    with scratch_folder("stratagem-rescue-") as folder:
        copied = folder / "pages.db"
        with translating_errors(path):
            _copy_pages(path, copied)
        with closing(PageFile(copied)) as pages:
            yield _Scan(pages, progress)


def _copy_pages(path: str, target: Path) -> None:
    """Copy a file page by page, those that are still in the write-ahead log too."""
    try:
        with (
            closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as source,
            closing(apsw.Connection(str(target))) as copied,
            copied.backup("main", source, "main") as backup,
        ):
            while not backup.done:
                backup.step(_PAGES_AT_ONCE)
    except apsw.Error:
        # Not even its first page makes sense to SQLite.
        target.unlink(missing_ok=True)
        shutil.copyfile(path, target)


class _Scan:
    """See `stratagem.storage.rescue.Salvage`."""

    def __init__(self, pages: PageFile, progress: Progress) -> None:
        self._pages = pages
        self._events: dict[int, list[tuple[int, int]]] = {}
        self._spaces: _Names = {}
        self._subjects: _Names = {}
        self._versions: dict[int, Trace] = {}
        self.branches: dict[int, tuple[Any, ...]] = {}
        self.branches_used: set[int] = set()
        for page in range(1, pages.count + 1):
            for cell in pages.cells(page):
                self._sort(cell)
            if page % _PAGES_AT_ONCE == 0:
                progress(page, pages.count, "reading pages")
        self.last = highest_sequence({*self._events, *self._versions})

    def candidates(self, sequence: int) -> Iterator[Event]:
        """See `Salvage`."""
        for page, offset in self._events.get(sequence, ()):
            cell = self._pages.cell(page, offset)
            if cell is not None:
                yield from self._read(sequence, cell.columns)

    def trace(self, sequence: int) -> Trace | None:
        """See `Salvage`."""
        trace = self._versions.get(sequence)
        if trace is None or trace.subject is None:
            return trace
        keys = self._subjects.get(trace.subject, [])
        return trace._replace(key=keys[0][1] if keys else None)

    def space(self, number: int) -> Space | None:
        """See `Salvage`."""
        names = self._spaces.get(number)
        return names[0] if names else None

    def _sort(self, cell: Cell) -> None:
        """Keep what a row may be, by its shape."""
        columns = cell.columns
        if cell.number is None:
            self._sort_index(columns)
        elif len(columns) == _EVENT_COLUMNS:
            if cell.number > 0:
                self._events.setdefault(cell.number, []).append((cell.page, cell.offset))
                self.branches_used |= {columns[3]} if isinstance(columns[3], int) else set()
        elif columns[:1] != [None]:
            # The number of a row stands for its first column, in every table of ours.
            return
        elif len(columns) == _SUBJECT_COLUMNS:
            self._name(cell.number, columns[1:])
        elif len(columns) in _VERSION_COLUMNS:
            subject, branch, space = columns[1:4]
            if isinstance(branch, int) and isinstance(space, int) and cell.number > 0:
                self._versions[cell.number] = Trace(subject, branch, space, None)
                self.branches_used.add(branch)
        elif len(columns) == _BRANCH_COLUMNS and isinstance(columns[1], str):
            self.branches[cell.number] = tuple(columns[1:])

    def _sort_index(self, columns: list[Any]) -> None:
        if len(columns) == _SUBJECT_COLUMNS and isinstance(columns[2], int):
            self._name(columns[2], columns[:2])

    def _name(self, number: int, names: list[Any]) -> None:
        first, second = names
        if not isinstance(second, str):
            return
        if isinstance(first, str):
            _add(self._spaces, number, Space(first, second))
        elif isinstance(first, int):
            _add(self._subjects, number, (first, second))

    def _read(self, sequence: int, columns: list[Any]) -> Iterator[Event]:
        """Return an event whose content is what was written; a purged one as it is."""
        _, at, wall, branch, kind, space, subject, actor, request, origin, *rest = columns
        payload, salt, content, link = rest
        numbers = (at, wall, branch)
        if not all(isinstance(each, int) for each in numbers) or not isinstance(kind, str):
            return
        if not isinstance(actor, str) or not _is_hash(content) or not _is_hash(link):
            return
        if not isinstance(request, str | None) or not isinstance(origin, int | None):
            return
        for names, key in self._names_of(space, subject):
            event = Event(
                sequence, at, wall, branch, kind, names, key, actor, request, origin, payload,
                salt, content, link,
            )  # fmt: skip
            if payload is None and salt is None:
                yield event
                return
            with suppress(TypeError):
                if content_hash(salt, names, key, payload) == content:
                    yield event
                    return

    def _names_of(
        self, space: int | None, subject: int | None
    ) -> Iterator[tuple[Space | None, str | None]]:
        spaces = [None] if space is None else self._spaces.get(space, [])
        keys = [None] if subject is None else [k for _, k in self._subjects.get(subject, [])]
        for names in spaces:
            for key in keys:
                yield names, key


def _add(names: _Names, number: int, name: Any) -> None:
    known = names.setdefault(number, [])
    if name not in known:
        known.append(name)


def _is_hash(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == _HASH_BYTES
