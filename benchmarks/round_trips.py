"""Random graphs of concepts, exported, imported elsewhere and compared field by field.

Prints how many graphs, records and fields were compared in each format, and how many differ:
`python -m benchmarks.round_trips [GRAPHS]`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import orjson

import stratagem
from stratagem.errors import ValidationFailed
from stratagem.knowledge.spaces import CONCEPTS, RELATIONSHIPS
from stratagem.knowledge.transfer import export_to, import_from
from stratagem.operation import Caller
from stratagem.sdk.embedded import Stratagem

__all__ = ["contents", "fill"]

GRAPHS = 100
FORMS: tuple[Literal["jsonl", "markdown"], ...] = ("jsonl", "markdown")
TEXTS = ("One line.", "- prerequisite: [[us]]\n\n  indented \n", "æ\n---\nx", "[[N1]] | `code`")

Contents = tuple[dict[str, Any], dict[str, Any]]


def main(graphs: int) -> None:
    """Compare so many graphs in each format."""
    for form in FORMS:
        records = fields = differences = changed = 0
        for seed in range(graphs):
            with (
                tempfile.TemporaryDirectory() as folder,
                stratagem.open(":memory:", embedder="none") as db,
                stratagem.open(":memory:", embedder="none") as other,
            ):
                fill(db, random.Random(seed))
                out = Path(folder) / "out"
                export_to(db.runtime.foundation, out, branch="default", form=form)
                import_from(other.runtime.foundation, Caller(), out, form=form)
                again = import_from(db.runtime.foundation, Caller(), out, form=form)
                compared = list(differing_fields(contents(db), contents(other)))
            records += len({name for name, _, _ in compared})
            fields += len(compared)
            differences += sum(not same for _, _, same in compared)
            changed += again.created + again.updated + again.related
        print(
            f"{form}: {graphs} graphs, {records:,} records, {fields:,} fields, {differences} differ"
            f"; imported again into the same database, {changed} change"
        )


def fill(db: Stratagem, dice: random.Random) -> list[str]:
    """Write a random graph: every field, twins by name and case, own types, and merged cycles."""
    knowledge = db.knowledge
    knowledge.declare_relationship_type("works_at", description="From a person to a company.")
    names = [f"N{dice.randrange(6)}" for _ in range(6)] + ["us", "US", "a/b: c?", "école"]
    ids = [
        knowledge.create_concept(
            name,
            dice.choice(TEXTS),
            area=dice.choice([None, "A", "B/C"]),
            certainty_score=dice.choice([None, 40, 99.5]),
            source=dice.choice([None, "a book"]),
            valid_from=dice.choice([None, "2019"]),
            valid_to=dice.choice([None, "2021-05"]),
        ).concept_id
        for name in names
    ]
    db.memory.fork("trial")
    for number, branch in enumerate(["default", "trial"] * 8):
        source, target = sorted(dice.sample(range(len(ids)), 2), reverse=branch == "trial")
        with suppress(ValidationFailed):
            knowledge.create_relationship(
                ids[source],
                ids[target],
                dice.choice(["prerequisite", "works_at", "includes", "contradicts"]),
                strength=dice.choice([1.0, 0.25]),
                notes=dice.choice([None, f"note {number}"]),
                valid_to=dice.choice([None, "2020"]),
                branch=branch,
            )
    knowledge.confirm_concept(ids[0], source="Ada", note="It held.")
    knowledge.mark_known([ids[1]], learner="Mia")
    db.memory.merge("trial")
    return ids


def contents(db: Stratagem) -> Contents:
    """Return every concept and relationship with all of its fields."""
    foundation = db.runtime.foundation
    with foundation.store.snapshot() as reader:
        lineage = foundation.views.view(reader, "default").lineage
        concepts, relationships = (
            {
                key: orjson.loads(version.payload or b"{}")
                for key, version in reader.records.page(lineage, space, after="", limit=1_000)[0]
            }
            for space in (CONCEPTS, RELATIONSHIPS)
        )
    return concepts, relationships


def differing_fields(ours: Contents, theirs: Contents) -> list[tuple[str, str, bool]]:
    """Return each field of either side: its record, its name, and whether both have it alike."""
    absent = object()
    return [
        (key, name, one.get(key, {}).get(name, absent) == other.get(key, {}).get(name, absent))
        for one, other in zip(ours, theirs, strict=True)
        for key in one | other
        for name in one.get(key, {}) | other.get(key, {})
    ]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else GRAPHS)
