"""Random histories of knowledge, compared with a plain model of each branch.

The model holds for each branch what its concepts and relationships are. After the history
every branch, and the moment it was forked at, must show what the model says, and the read
models must be what the log says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import ConceptNotFound, ValidationFailed
from stratagem.knowledge.spaces import TYPES

AREAS = (None, "A", "B")


@dataclass
class Model:
    live: dict[str, tuple[str, str | None, int | None]] = field(default_factory=dict)
    gone: dict[str, tuple[str, str | None, int | None]] = field(default_factory=dict)
    edges: set[tuple[str, str, str]] = field(default_factory=set)


OPPOSITES: dict[str, Callable[[str, str], tuple[str, str, str]]] = {
    "supersedes": lambda source, target: (target, source, "supersedes"),
    "confirms": lambda source, target: (source, target, "contradicts"),
    "contradicts": lambda source, target: (source, target, "confirms"),
}


def step(db: Stratagem, draw: random.Random, models: dict[str, Model]) -> None:
    branch = draw.choice(list(models))
    model, knowledge = models[branch], db.knowledge
    live = list(model.live)
    action = draw.random()
    if action < 0.3 or len(live) < 2:
        name, area = f"n{draw.randrange(1000)}", draw.choice(AREAS)
        score = draw.choice((None, draw.randrange(101)))
        made = knowledge.create_concept(name, "e", area=area, certainty_score=score, branch=branch)
        model.live[made.concept_id] = (name, area, score)
    elif action < 0.45:
        concept_id, area = draw.choice(live), draw.choice(AREAS)
        knowledge.update_concept(concept_id, area=area, branch=branch)
        name, _, score = model.live[concept_id]
        model.live[concept_id] = (name, area, score)
    elif action < 0.55:
        concept_id = draw.choice(live)
        knowledge.delete_concept(concept_id, branch=branch)
        model.gone[concept_id] = model.live.pop(concept_id)
    elif action < 0.62 and model.gone:
        concept_id = draw.choice(list(model.gone))
        knowledge.restore_concept(concept_id, branch=branch)
        model.live[concept_id] = model.gone.pop(concept_id)
    elif action < 0.9:
        source, target = draw.sample(live, 2)
        label = draw.choice([each for each in TYPES if each != "prerequisite"])
        edge = (source, target, label)
        if edge in model.edges:
            with pytest.raises(ValidationFailed):
                knowledge.create_relationship(*edge, branch=branch)
            knowledge.delete_relationship(*edge, branch=branch)
            model.edges.discard(edge)
        elif OPPOSITES.get(label, lambda *_: None)(source, target) in model.edges:
            with pytest.raises(ValidationFailed, match="would contradict"):
                knowledge.create_relationship(*edge, branch=branch)
        else:
            knowledge.create_relationship(*edge, strength=draw.random(), branch=branch)
            model.edges.add(edge)
    elif len(models) < 4:
        name = f"b{len(models)}"
        db.memory.branch("fork", name=name, branch=branch)
        models[name] = deepcopy(model)


def check(db: Stratagem, branch: str, model: Model) -> None:
    knowledge = db.knowledge
    listed = knowledge.search_concepts_exact(limit=100, branch=branch).results
    assert {each.concept_id for each in listed} == set(model.live)
    counts: dict[str, int] = {}
    for _, area, _ in model.live.values():
        counts[area or "Uncategorized"] = counts.get(area or "Uncategorized", 0) + 1
    assert knowledge.list_hierarchy(branch=branch).counts() == counts
    for concept_id, (name, area, score) in model.live.items():
        concept = knowledge.get_concept(concept_id, branch=branch).concept
        assert (concept.name, concept.area) == (name, area)
        assert score is None or concept.certainty_score == score
        related = knowledge.get_related_concepts(concept_id, limit=50, branch=branch).results
        expected = {
            (target if source == concept_id else source, label.upper(), source == concept_id)
            for source, target, label in model.edges
            if concept_id in {source, target} and {source, target} <= model.live.keys()
        }
        assert expected == {
            (each.concept_id, each.relationship_type, each.direction == "outgoing")
            for each in related
        }
    for concept_id in model.gone:
        with pytest.raises(ConceptNotFound):
            knowledge.get_concept(concept_id, branch=branch)
    found = knowledge.get_concepts_by_certainty(limit=50, branch=branch).results
    assert {each.concept_id for each in found} == set(model.live)
    scores = [each.certainty_score for each in found]
    assert scores == sorted(scores)


@pytest.mark.parametrize("seed", range(6))
def test_every_branch_shows_what_was_done_on_it(seed: int) -> None:
    draw = random.Random(seed)
    models = {"default": Model()}
    with stratagem.open(":memory:", embedder="none") as db:
        for _ in range(80):
            step(db, draw, models)

        for branch, model in models.items():
            check(db, branch, model)
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []


@pytest.mark.parametrize("seed", range(6))
def test_certainty_is_what_computing_it_anew_gives(seed: int) -> None:
    draw = random.Random(100 + seed)
    models = {"default": Model()}
    with stratagem.open(":memory:", embedder="none") as db:
        for _ in range(60):
            step(db, draw, models)
        for branch in [name for name in models if name != "default"]:
            db.memory.branch("merge", source=branch, strategy="source_wins")

        recent = db.knowledge.get_recent_concepts(limit=50).results
        before = {each.concept_id: score(db, each.concept_id) for each in recent}
        for each in recent:
            # Deleting and restoring computes it from nothing but what is there.
            db.knowledge.delete_concept(each.concept_id)
            db.knowledge.restore_concept(each.concept_id)

        assert {concept_id: score(db, concept_id) for concept_id in before} == before


def score(db: Stratagem, concept_id: str) -> float:
    return db.knowledge.get_concept(concept_id).concept.certainty_score
