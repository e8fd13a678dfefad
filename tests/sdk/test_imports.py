"""What `import stratagem` offers, and what its everyday paths do not import."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import stratagem
from stratagem import errors
from stratagem.sdk.generated.memory import MemoryMethods

SDK = """
import stratagem
with stratagem.open(":memory:") as db:
    db.memory.store("city", "Oslo")
    db.memory.recall("city")
    db.memory.log("note", "rain")
    db.memory.search("rain")
    db.debugging.ranked_solutions("boom", "auto")
"""
COMMAND = """
import sys
sys.argv = ["stratagem", *{words!r}]
from stratagem.surfaces.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
SETTINGS = """
from stratagem.bootstrap import Settings
from stratagem.surfaces.serving.settings import ServerSettings
Settings(":memory:")
ServerSettings(":memory:")
"""
COMMANDS = (
    ("store", "city", "Oslo"),
    ("recall", "city"),
    ("log", "note", "rain"),
    ("search", "rain"),
    ("ranked-solutions", "--query-text", "boom", "--env", "auto"),
    ("config",),
)


RECALL = """
import stratagem
with stratagem.open("{place}") as db:
    db.memory.recall("city")
"""
# Each takes longer to import than a recall takes to answer.
HEAVY = ("numpy", "asyncio", "ssl", "rich", "importlib.metadata", "zipfile", "stratagem.knowledge.service",
         "stratagem.knowledge.models", "stratagem.search.analysis", "stratagem.debugging.service",
         "stratagem.gateway.service", "stratagem.storage.sqlite.examination", "cachetools", "difflib", "tempfile",
         "zoneinfo", "tomllib", "platformdirs", "typer", "stratagem.gateway.kinds", "stratagem.knowledge.kinds",
         "stratagem.storage.branch_merge", "stratagem.storage.relational.transaction", "stratagem.search.vectors",
         "stratagem.projections.worker", "stratagem.redaction", "stratagem.access.service")  # fmt: skip

# As many modules of ours as a recall imports, and a few more; each takes a third of a millisecond.
OWN_MODULES_MAX = 127


def imported(code: str, folder: Path) -> list[str]:
    """Return the modules that are there when some code has run."""
    asked = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, "STRATAGEM_DB": str(folder / "a.db")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "code", [SDK, SETTINGS, *(COMMAND.format(words=words) for words in COMMANDS)],
    ids=["SDK", "settings", *(" ".join(words[:2]) for words in COMMANDS)],
)  # fmt: skip
def test_pydantic_is_not_imported(code: str, tmp_path: Path) -> None:
    with stratagem.open(tmp_path / "a.db") as db:
        db.memory.store("city", "Oslo")

    assert [name for name in imported(code, tmp_path) if "pydantic" in name] == []


@pytest.mark.parametrize(
    "code", [RECALL, COMMAND.format(words=("recall", "city"))], ids=["SDK", "command"]
)
def test_a_recall_imports_only_what_it_needs(code: str, tmp_path: Path) -> None:
    with stratagem.open(tmp_path / "a.db") as db:
        db.memory.store("city", "Oslo")

    modules = imported(code.replace("{place}", str(tmp_path / "a.db")), tmp_path)

    assert [name for name in HEAVY if name in modules] == []
    own = [name for name in modules if name.startswith("stratagem")]
    assert len(own) <= OWN_MODULES_MAX, own


def test_what_the_package_offers_is_for_users() -> None:
    offered = set(dir(stratagem))
    entries = {"open", "open_async", "connect", "connect_async", "tool"}
    kinds_of_database = {"AsyncStratagem", "Stratagem"}

    assert entries | kinds_of_database <= offered
    kinds = {each.__name__ for each in errors.StratagemError.__subclasses__()}
    rest = offered - entries - kinds_of_database - {"StratagemError"}
    assert rest == {name for name in kinds if getattr(errors, name, None)}
    assert all(getattr(stratagem, name) for name in offered)


def test_errors_are_the_same_wherever_they_are_imported_from() -> None:
    assert stratagem.BranchNotFound is errors.BranchNotFound
    with pytest.raises(AttributeError):
        _ = stratagem.bootstrapp  # type: ignore[attr-defined]


def test_help_shows_what_is_for_users_with_its_real_parameters() -> None:
    shown = pydoc.plain(pydoc.render_doc(stratagem))
    store = pydoc.plain(pydoc.render_doc(stratagem.Stratagem))

    for name in ("open_database(", "connect(", "open_async("):
        assert name in shown
    assert "transaction(" in store
    signature = str(inspect.signature(MemoryMethods.store))
    for name in ("tags", "ttl", "path", "namespace", "timedelta"):
        assert name in signature
    assert "object at 0x" not in signature
