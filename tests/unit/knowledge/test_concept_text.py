"""A concept as text, for a model to read."""

from __future__ import annotations

from pathlib import Path

import stratagem
from stratagem.operations import find
from tests.manifest import proves


@proves("certainty:tried")
def test_the_text_of_a_concept_says_why_it_is_certain(tmp_path: Path) -> None:
    concepts = [{"name": "Claim", "explanation": "It is so."}]
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        db.call("create_concepts", {"concepts": concepts, "source": "a talk"})
        db.call("refute_concept", {"concept_id": "Claim", "source": "Ada"})

        said = find("get_concept").describe(db.call("get_concept", {"concept_id": "Claim"}))

    assert "source: a talk" in said
    assert "confirmed 0, refuted 1" in said
