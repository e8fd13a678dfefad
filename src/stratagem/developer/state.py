"""State cells: single values that are written by comparing and setting.

A cell is a record of its own kind, apart from entries. Its *counter* is its version: the sequence
of the event that wrote it. It grows with every write and is never used twice on any branch, so
compare-and-set cannot mistake another value for the one that was read.
"""

from __future__ import annotations

from typing import Annotated, Any

import orjson

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.developer.kinds import CELL_DELETED, CELL_SET, cells
from stratagem.developer.models import (
    CellDeleted,
    CellList,
    CellVersion,
    CellVersions,
    CellWritten,
    RecordsPurged,
    StateCell,
)
from stratagem.developer.parameters import HistoryLimit, ListLimit, Prefix, SpaceName
from stratagem.developer.records import KeyedRecords
from stratagem.engine import moments, values
from stratagem.engine.lineage import OPEN_END
from stratagem.errors import VersionConflict
from stratagem.parameters import AsOf, BranchName, Cursor, Param, RequestId
from stratagem.storage.contract import Version

__all__ = ["StateCells"]

_CellName = Annotated[str, Param("The cell", quiet=True, aliases=("key", "name"))]
_Value = Annotated[Any, Param("Any JSON, not as text")]


class StateCells(KeyedRecords):
    """State cells, for one caller."""

    def set(
        self,
        cell: _CellName,
        value: _Value,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> CellWritten:
        """Write a cell, whatever it held."""
        return self._write_cell(cell, value, namespace, branch, request_id, "state_set")

    def get(
        self,
        cell: _CellName,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> StateCell | None:
        """Return a cell, now or at a past moment; None where there is none."""
        where = self._namespace(namespace)
        version = self._current(cells(where), self._key(cell, "cell"), branch, as_of)
        return None if version is None else _cell(cell, version, where)

    def delete(
        self,
        cell: _CellName,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> CellDeleted:
        """Delete a cell; views of earlier moments still show it."""
        where = self._namespace(namespace)
        done = self._delete_record(
            cells(where), self._key(cell, "cell"), CELL_DELETED, branch, request_id, "state_delete"
        )
        return CellDeleted(cell, bool(done), where, done.get("version"), done.get("timestamp"))

    def init(
        self,
        cell: _CellName,
        value: _Value,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> CellWritten:
        """Write a cell that is not there yet; one that is there is left as it is."""
        return self._write_cell(
            cell, value, namespace, branch, request_id, "state_init", only_new=True
        )

    def cas(
        self,
        cell: _CellName,
        value: _Value,
        expected_counter: Annotated[
            int,
            Param(
                "The counter that was read; 0: the cell must not exist",
                ge=0,
                le=OPEN_END,
                aliases=("expected_version", "expected"),
            ),
        ],
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> CellWritten:
        """Write a cell only if its counter is the expected one: compare and set.

        Raises:
            VersionConflict: It is another; the error has the counter and the value that are there.
        """
        return self._write_cell(
            cell, value, namespace, branch, request_id, "state_cas", expected=expected_counter
        )

    def list(
        self,
        prefix: Prefix = None,
        *,
        limit: ListLimit = limits.LIST_PAGE_DEFAULT,
        cursor: Annotated[str | None, Param("`next` of the last answer", quiet=True)] = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> CellList:
        """Return cells in the order of their names, a page at a time."""
        where = self._namespace(namespace)
        page, following = self._page(cells(where), prefix, limit, cursor, branch, as_of)
        return CellList(
            [_cell(key, version, where) for key, version in page], following is not None, following
        )

    def history(
        self,
        cell: _CellName,
        *,
        limit: HistoryLimit = limits.HISTORY_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> CellVersions:
        """Return the versions of a cell, newest first."""
        before = read_cursor(cursor, start=OPEN_END, least=1)
        space = cells(self._namespace(namespace))
        page, more = self._versions(space, self._key(cell, "cell"), before, limit, branch, as_of)
        return CellVersions(
            [_version(each) for each in page], more, str(page[-1].sequence) if more else None
        )

    def purge(self, cell: _CellName, *, namespace: SpaceName = None) -> RecordsPurged:
        """Erase a cell for good, with every version on any branch."""
        return self._purge(cells(self._namespace(namespace)), self._key(cell, "cell"))

    def _write_cell(  # noqa: PLR0917 -- of the methods above
        self,
        cell: str,
        value: Any,
        namespace: str | None,
        branch: str | None,
        request_id: str | None,
        operation: str,
        *,
        expected: int | None = None,
        only_new: bool = False,
    ) -> CellWritten:
        where, key = self._namespace(namespace), self._key(cell, "cell")
        values.encode(value)

        def check(version: Version | None) -> bool:
            if expected is not None:
                _compare(cell, version, expected)
            return version is None or not only_new

        done = self._write_record(
            cells(where),
            key,
            CELL_SET,
            {"value": value},
            branch,
            request_id,
            operation,
            check=check,
            arguments={"expected": expected},
        )
        return CellWritten(
            cell,
            done["version"],
            done["version"],
            done["timestamp"],
            where,
            done["written"],
            self._other_branch(branch),
        )


def _compare(cell: str, version: Version | None, expected: int) -> None:
    found = version.sequence if version else 0
    if found == expected:
        return
    value = orjson.loads(version.payload or b"{}").get("value") if version else None
    raise VersionConflict(
        f"The cell {cell!r} has the counter {found}, not {expected}."
        if found
        else f"There is no cell {cell!r}.",
        field="expected_counter",
        cell=cell,
        expected_counter=expected,
        counter=found,
        value=value,
        hint="Read the cell again, and compare with the counter it has now."
        if found
        else "Pass 0 to write a cell that does not exist.",
    )


def _cell(name: str, version: Version, namespace: str) -> StateCell:
    content = orjson.loads(version.payload or b"{}")
    return StateCell(
        name,
        content.get("value"),
        version.sequence,
        version.sequence,
        moments.iso(version.at),
        namespace,
        version.actor,
    )


def _version(version: Version) -> CellVersion:
    content = orjson.loads(version.payload) if version.payload else {}
    return CellVersion(
        content.get("value"),
        version.sequence,
        version.sequence,
        moments.iso(version.at),
        "value" not in content,
        version.actor,
        version.payload is None or None,
    )
