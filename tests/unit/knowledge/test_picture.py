from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import AmbiguousName, ConceptNotFound
from stratagem.knowledge.capture import RelationshipItem
from stratagem.knowledge.picture import draw_graph
from stratagem.operation import Caller


@pytest.fixture
def db() -> Iterator[Stratagem]:
    with stratagem.open(":memory:", embedder="none") as opened:
        yield opened


def draw(db: Stratagem, concept: str | None = None, **options: Any) -> str:
    return draw_graph(db.runtime.foundation, Caller(), concept, **options).html


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_a_picture_has_what_is_around_a_concept(db: Stratagem) -> None:
    create = db.knowledge.create_concept
    a, b, c, d = (create(name, "e").concept_id for name in "ABCD")
    for source, target in ((a, b), (b, c), (c, d)):
        db.knowledge.create_relationship(source, target, "prerequisite", notes="see §2")

    shown = data(draw(db, "a", depth=2))

    assert shown["root"] == a
    assert [(each["name"], each["layer"]) for each in shown["concepts"]] == [
        ("A", 0),
        ("B", 1),
        ("C", 2),
    ]
    assert [each["notes"] for each in shown["links"]] == ["see §2"] * 2
    few = data(draw(db, a, depth=3, nodes_max=2))
    assert (len(few["concepts"]), few["left_out"]) == (2, 1)


def test_without_a_concept_the_whole_graph_is_drawn(db: Stratagem) -> None:
    old, new, _ = (db.knowledge.create_concept(name, "e").concept_id for name in ("O", "N", "X"))
    db.knowledge.create_relationship(new, old, "supersedes")

    shown = data(draw(db))
    newest = data(draw(db, nodes_max=2))

    assert {each["name"] for each in shown["concepts"]} == {"O", "N", "X"}
    named = {each["name"]: each for each in shown["concepts"]}
    assert named["O"]["superseded_by"] == [{"concept_id": new, "name": "N"}]
    assert (shown["root"], shown["left_out"]) == (None, 0)
    assert [each["name"] for each in newest["concepts"]] == ["X", "N"]
    assert newest["left_out"] == 1


def test_a_name_that_two_concepts_have_is_asked_about(db: Stratagem) -> None:
    db.knowledge.create_concept("Twin", "e", area="Maths")
    db.knowledge.create_concept("Twin", "e", area="Music")

    with pytest.raises(AmbiguousName):
        draw(db, "Twin")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_shows_every_concept_of_a_large_picture(db: Stratagem, tmp_path: Path) -> None:
    names = [f"Concept {each}" for each in range(200)]
    db.knowledge.create_concepts([{"name": each, "explanation": "e"} for each in names])
    needs: list[RelationshipItem] = [
        {"source": names[each // 3], "target": names[each], "type": "prerequisite"}
        for each in range(3, 200)
    ]
    db.knowledge.create_concepts([], relationships=needs)
    page = tmp_path / "graph.html"
    page.write_text(draw(db, "Concept 7"), "utf-8")

    # What the page's script has made of it, after the root was chosen as by a click.
    dom = subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    shown = len(data(draw(db, "Concept 7"))["concepts"])
    assert shown > 10
    assert dom.count('class="node') == shown
    assert '<h1 id="name">Concept 7</h1>' in dom
    # It needs Concept 2, and is needed for three others and for what needs them.
    assert dom.count(" after") >= 3
    assert "Learn first (1)" in dom


def test_nothing_in_a_name_is_read_as_html(db: Stratagem) -> None:
    evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\u2028"
    db.knowledge.create_concept("Evil </script>", evil)

    page = draw(db)

    assert data(page)["concepts"][0]["explanation"] == evil
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

    assert [each["name"] for each in data(draw(db, a))["concepts"]] == ["A"]


def test_a_picture_does_not_lead_past_a_deleted_concept(db: Stratagem) -> None:
    create = db.knowledge.create_concept
    a, gone, far, beside = (create(name, "e").concept_id for name in ("A", "Gone", "Far", "Beside"))
    db.knowledge.create_relationship(a, gone, "includes")
    db.knowledge.create_relationship(gone, far, "includes")
    db.knowledge.create_relationship(a, beside, "includes", strength=0.1)
    db.knowledge.delete_concept(gone)

    assert [each["name"] for each in data(draw(db, a, depth=3))["concepts"]] == ["A", "Beside"]
    # What is deleted takes nobody's place.
    assert len(data(draw(db, a, nodes_max=2))["concepts"]) == 2


def test_without_the_concept_there_is_no_picture(db: Stratagem) -> None:
    with pytest.raises(ConceptNotFound):
        draw(db)
    db.knowledge.create_concept("A", "e")
    with pytest.raises(ConceptNotFound):
        draw(db, "B")
