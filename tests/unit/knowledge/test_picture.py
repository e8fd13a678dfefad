from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import ConceptNotFound
from stratagem.knowledge.picture import picture_of
from stratagem.operation import Caller


@pytest.fixture
def db() -> Iterator[Stratagem]:
    with stratagem.open(":memory:", embedder="none") as opened:
        yield opened


def draw(db: Stratagem, concept: str | None = None, **options: Any) -> str:
    return picture_of(db.runtime.foundation, Caller(), concept, **options)


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_a_picture_has_what_is_around_a_concept(db: Stratagem) -> None:
    create = db.knowledge.create_concept
    a, b, c, d = (create(name, "e").concept_id for name in "ABCD")
    for source, target in ((a, b), (b, c), (c, d)):
        db.knowledge.create_relationship(source, target, "includes")

    shown = data(draw(db, "a", depth=2))

    assert [(each["name"], each["distance"]) for each in shown["nodes"]] == [
        ("A", 0),
        ("B", 1),
        ("C", 2),
    ]
    assert len(shown["edges"]) == 2
    assert len(data(draw(db, a, depth=3, nodes_max=2))["nodes"]) == 2


def test_nothing_in_a_name_is_read_as_html(db: Stratagem) -> None:
    evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\u2028"
    db.knowledge.create_concept("Evil </script>", evil)

    page = draw(db)

    assert data(page)["nodes"][0]["explanation"] == evil
    assert page.count("</script>") == 2
    assert "<img" not in page


def test_a_picture_loads_nothing_from_elsewhere(db: Stratagem) -> None:
    db.knowledge.create_concept("A", "e")

    page = draw(db).replace("http://www.w3.org/2000/svg", "")

    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_a_deleted_neighbour_is_not_shown(db: Stratagem) -> None:
    a, b = (db.knowledge.create_concept(name, "e").concept_id for name in "AB")
    db.knowledge.create_relationship(a, b, "includes")
    db.knowledge.delete_concept(b)

    assert [each["name"] for each in data(draw(db, a))["nodes"]] == ["A"]


def test_a_picture_does_not_lead_past_a_deleted_concept(db: Stratagem) -> None:
    create = db.knowledge.create_concept
    a, gone, far, beside = (create(name, "e").concept_id for name in ("A", "Gone", "Far", "Beside"))
    db.knowledge.create_relationship(a, gone, "includes")
    db.knowledge.create_relationship(gone, far, "includes")
    db.knowledge.create_relationship(a, beside, "includes", strength=0.1)
    db.knowledge.delete_concept(gone)

    assert [each["name"] for each in data(draw(db, a, depth=3))["nodes"]] == ["A", "Beside"]
    # What is deleted takes nobody's place.
    assert len(data(draw(db, a, nodes_max=2))["nodes"]) == 2


def test_without_the_concept_there_is_no_picture(db: Stratagem) -> None:
    with pytest.raises(ConceptNotFound):
        draw(db)
    db.knowledge.create_concept("A", "e")
    with pytest.raises(ConceptNotFound):
        draw(db, "B")
