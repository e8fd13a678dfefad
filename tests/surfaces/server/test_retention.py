"""A server forgets old executions by itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import stratagem
from stratagem import limits
from stratagem.surfaces.server.retention import ExecutionRetention
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from tests.surfaces.serving import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with stratagem.open(str(tmp_path / "old.db"), embedder="none") as db:
        db.gateway.execute("calculator", {"expression": "41 + 1"})
    return tmp_path / "old.db"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what is a moment old for old."""
    from stratagem.gateway.inputs import RetentionInput

    read = RetentionInput.read.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        RetentionInput, "read", classmethod(lambda cls, given: read(cls, {"days": 0, **given}))
    )


def has_none(path: Path) -> bool:
    return count(path) == 0


def count(path: Path) -> int:
    with stratagem.open(str(path), embedder="none", read_only=True) as db:
        return len(db.gateway.executions())


@pytest.mark.usefixtures("at_once")
def test_what_is_old_is_erased_soon_after_the_start(path: Path) -> None:
    settings = ServerSettings(str(path), embedder="none")
    database = Database(settings)
    retention = ExecutionRetention(settings, database, first_seconds=0.01)

    retention.start()
    eventually(lambda: count(path) == 0)
    retention.stop()
    database.close()


@pytest.mark.usefixtures("at_once")
def test_every_workspace_forgets_whether_it_is_open_or_not(path: Path) -> None:
    beside = path.with_name("old.db-workspaces")
    beside.mkdir()
    (beside / "broken.db").write_bytes(b"no database at all, and long enough to be read as one")
    for name in ("red", "blue"):
        with stratagem.open(str(beside / f"{name}.db"), embedder="none") as db:
            db.gateway.execute("calculator", {"expression": "1 + 1"})
    settings = ServerSettings(str(path), embedder="none")
    database = Database(settings)
    database.runtime("blue")
    retention = ExecutionRetention(settings, database, first_seconds=0.01)

    retention.start()
    for each in (path, beside / "red.db", beside / "blue.db"):
        eventually(partial(has_none, each))
    retention.stop()

    assert database.workspaces() == [None, "blue", "broken", "red"]
    # It was opened for this only, and is not held open.
    assert eventually(lambda: list(database._workspaces) == ["blue"])  # noqa: SLF001 -- nothing tells
    database.close()


@pytest.mark.usefixtures("at_once")
def test_a_server_that_only_reads_forgets_nothing(path: Path) -> None:
    settings = ServerSettings(str(path), embedder="none", read_only=True)
    database = Database(settings)
    retention = ExecutionRetention(settings, database, first_seconds=0.01)

    retention.start()
    retention.stop()
    database.close()

    assert count(path) == 1
    assert limits.EXECUTION_DAYS_KEPT == 90
