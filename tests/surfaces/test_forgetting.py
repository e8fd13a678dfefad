"""A server forgets old executions by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stratagem
from stratagem import limits
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings
from stratagem.surfaces.server.forgetting import Forgetting
from tests.surfaces.serving import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with stratagem.open(str(tmp_path / "old.db"), embedder="none") as db:
        db.gateway.execute("calculator", {"expression": "41 + 1"})
    return tmp_path / "old.db"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take what is a moment old for old."""
    from stratagem.gateway.inputs import RetentionInput

    monkeypatch.setattr(RetentionInput.model_fields["days"], "default", 0)
    RetentionInput.model_rebuild(force=True)
    yield
    monkeypatch.undo()
    RetentionInput.model_rebuild(force=True)


def count(path: Path) -> int:
    with stratagem.open(str(path), embedder="none", read_only=True) as db:
        return len(db.gateway.executions())


@pytest.mark.usefixtures("at_once")
def test_what_is_old_is_erased_soon_after_the_start(path: Path) -> None:
    settings = ServerSettings(str(path), embedder="none")
    database = Database(settings)
    forgetting = Forgetting(settings, database, first_seconds=0.01)

    forgetting.start()
    eventually(lambda: count(path) == 0)
    forgetting.stop()
    database.close()


@pytest.mark.usefixtures("at_once")
def test_a_server_that_only_reads_forgets_nothing(path: Path) -> None:
    settings = ServerSettings(str(path), embedder="none", read_only=True)
    database = Database(settings)
    forgetting = Forgetting(settings, database, first_seconds=0.01)

    forgetting.start()
    forgetting.stop()
    database.close()

    assert count(path) == 1
    assert limits.EXECUTION_DAYS_KEPT == 90
