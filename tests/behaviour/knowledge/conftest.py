"""Short ways to write concepts and relationships."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call, Opener


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
def call_type() -> type[Call]:
    return Knowing


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
