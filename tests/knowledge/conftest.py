"""Knowledge, tried on every surface that the behaviour suite has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.conftest import Call, Opener
from tests.behaviour.surfaces import SERVED, SURFACES, Wanted
from tests.contracts.samples import Clock
from tests.postgres import a_workspace


class Knowing(Call):
    """Runs operations, with short ways to write."""

    def concept(self, name: str, explanation: str = "What it means.", **fields: Any) -> str:
        answer = self("create_concept", name=name, explanation=explanation, **fields)
        concept_id: str = answer["concept_id"]
        return concept_id

    def concepts(self, *names: str) -> list[str]:
        return [self.concept(name) for name in names]

    def relate(self, source: str, target: str, label: str = "relates_to", **fields: Any) -> str:
        answer = self(
            "create_relationship",
            source_id=source,
            target_id=target,
            relationship_type=label,
            **fields,
        )
        relationship_id: str = answer["relationship_id"]
        return relationship_id

    def get(self, concept_id: str, **view: Any) -> dict[str, Any]:
        concept: dict[str, Any] = self("get_concept", concept_id=concept_id, **view)["concept"]
        return concept

    def names(self, operation: str, **arguments: Any) -> list[str]:
        """Return the names in a list of results."""
        return [each["name"] for each in self(operation, **arguments)["results"]]

    def fork(self, name: str, **options: Any) -> str:
        self("strata_branch", action="fork", name=name, **options)
        return name

    def merge(self, name: str, **options: Any) -> dict[str, Any]:
        return self("strata_branch", action="merge", source=name, **options)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=SURFACES)
def surface(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server_place(surface: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where the test's database is, if not in a file of its own."""
    if surface != SERVED:
        return {}
    return {"address": f"{request.getfixturevalue('postgres_address')}#{a_workspace()}"}


@pytest.fixture
def opened(
    surface: str, tmp_path: Path, clock: Clock, server_place: dict[str, Any]
) -> Iterator[Opener]:
    with ExitStack() as stack:

        def open_call(**settings: Any) -> Knowing:
            wanted = Wanted(tmp_path / "knowledge.db", clock, **server_place, **settings)
            return Knowing(stack.enter_context(closing(SURFACES[surface](wanted))))

        yield open_call


@pytest.fixture
def call(opened: Opener) -> Knowing:
    opening = opened()
    assert isinstance(opening, Knowing)
    return opening


@pytest.fixture
def meaning(opened: Opener) -> Knowing:
    """With the embedder that search by meaning needs."""
    opening = opened(embedder="static")
    assert isinstance(opening, Knowing)
    return opening
