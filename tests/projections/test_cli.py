"""The commands for read models elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stratagem.surfaces.cli.app import app
from tests.ports import free_port
from tests.projections.conftest import Opener
from tests.projections.servers import ChromaServer


@pytest.fixture(autouse=True)
def _chosen(monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer) -> None:
    monkeypatch.setenv("STRATAGEM_VECTORS", "chroma")
    monkeypatch.setenv("CHROMA_URL", chroma.url)


@pytest.fixture
def path(opened: Opener, tmp_path: Path, chroma: ChromaServer) -> Path:
    db = opened(vectors="chroma", chroma=chroma.url)
    for name in ("One", "Two", "Three"):
        db.concept(name, f"What {name} means.")
    db.close()
    return tmp_path / "log.db"


def run(path: Path, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["--db", str(path), *arguments])
    assert result.exit_code == code, result.output
    return result.output


def told(path: Path, *arguments: str, code: int = 0) -> Any:
    return json.loads(run(path, *arguments, "--json", code=code))


def test_status_says_how_much_waits(path: Path) -> None:
    assert "chroma: 6 pending, 0 failed, 0 processed" in run(path, "outbox", "status")


def test_rebuild_and_verify(path: Path) -> None:
    differs = run(path, "projections", "verify", "chroma", code=7)
    made = run(path, "projections", "rebuild", "chroma")
    equal = told(path, "projections", "verify", "chroma")

    assert "missing" in differs
    assert "waits in the outbox" in differs
    assert "differs from the log in 3 places" in differs
    assert "Rebuilt chroma from 3 records." in made
    assert (equal["items"], equal["different"]) == (3, 0)
    assert "chroma equals the log: 3 items." in run(path, "projections", "verify", "chroma")


def test_retry_delivers_what_waits(path: Path) -> None:
    answer = told(path, "outbox", "retry")

    assert answer == {"retried": {"chroma": 0}, "left": {"chroma": 0}}
    (state,) = told(path, "outbox", "status")["projections"]
    assert (state["pending"], state["processed"], state["rows"]) == (0, 6, [])


def test_list_says_which_are_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "chroma: there; not made yet" in run(path, "projections", "list")

    monkeypatch.setenv("CHROMA_URL", f"http://127.0.0.1:{free_port()}")
    away = run(path, "projections", "list")
    retried = run(path, "outbox", "retry", code=6)
    monkeypatch.delenv("STRATAGEM_VECTORS")

    assert "Chroma" in away
    assert "Chroma" in retried
    assert "not configured here" in run(path, "projections", "list")


def test_a_projection_that_is_not_chosen_is_refused_with_how_to_choose_it(path: Path) -> None:
    answer = told(path, "projections", "rebuild", "neo4j", code=2)

    assert answer["error"] == "validation_error"
    assert "STRATAGEM_GRAPH=neo4j" in answer["hint"]


def test_remove_forgets_a_projection(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRATAGEM_VECTORS")

    run(path, "projections", "remove", "chroma", "--yes")

    assert told(path, "outbox", "status") == {"projections": []}
    assert "nothing is waiting" in run(path, "outbox", "status")
    again = told(path, "projections", "remove", "chroma", "--yes", code=2)
    assert again["details"]["allowed"] == []


def test_a_service_nobody_knows_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATAGEM_GRAPH", "orientdb")

    answer = told(path, "outbox", "status", code=2)

    assert answer["details"]["allowed"] == ["built-in", "neo4j"]
