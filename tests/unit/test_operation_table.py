"""The table of operations, which several threads may be the first to read."""

from __future__ import annotations

import threading

import pytest

from stratagem import operations
from stratagem.operations import SYSTEMS, Table


def test_a_thread_that_reads_slowly_takes_nothing_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first requests of a client come together: one of them must not miss a tool."""
    reading, go_on = threading.Event(), threading.Event()
    read_memory = SYSTEMS[0][0]

    def read_slowly() -> operations.Rows:
        if threading.current_thread() is slow:
            reading.set()
            assert go_on.wait(60)
        return read_memory()

    monkeypatch.setattr(operations, "SYSTEMS", ((read_slowly, SYSTEMS[0][1]), *SYSTEMS[1:]))
    table = Table()
    slow = threading.Thread(target=lambda: table["strata_recall"])
    slow.start()
    assert reading.wait(60)
    before = table["tool_help"]

    go_on.set()
    slow.join(60)

    assert table["tool_help"] is before
    assert len(table) == len(operations.TABLE)
