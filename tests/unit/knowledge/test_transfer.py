from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stratagem
from benchmarks.round_trips import contents
from benchmarks.round_trips import fill as make_random_graph
from stratagem import Stratagem
from stratagem.errors import ImportRefused, ValidationFailed
from stratagem.knowledge.transfer import GraphExport, GraphImport, export_to, import_from
from stratagem.operation import Caller


@pytest.fixture
def db() -> Iterator[Stratagem]:
    with stratagem.open(":memory:", embedder="none") as opened:
        yield opened


@pytest.fixture
def other() -> Iterator[Stratagem]:
    with stratagem.open(":memory:", embedder="none") as opened:
        yield opened


def take(db: Stratagem, path: Path, **options: Any) -> GraphImport:
    return import_from(db.runtime.foundation, Caller(), path, **options)


def give(db: Stratagem, path: Path, **options: Any) -> GraphExport:
    return export_to(db.runtime.foundation, path, branch="default", **options)


def fill(db: Stratagem) -> tuple[str, str]:
    knowledge = db.knowledge
    one = knowledge.create_concept("One", "First.\nOf all.", area="A", topic="T")
    two = knowledge.create_concept("Two", "Second.", certainty_score=70)
    knowledge.create_relationship(
        one.concept_id, two.concept_id, "prerequisite", strength=0.5, notes="why"
    )
    gone = knowledge.create_concept("Gone", "No more.").concept_id
    knowledge.create_relationship(gone, one.concept_id, "contradicts")
    knowledge.delete_concept(gone)
    return one.concept_id, two.concept_id


def written(path: Path, *records: object) -> Path:
    path.write_text("\n".join(json.dumps(each) for each in records), encoding="utf-8")
    return path


def test_knowledge_goes_out_and_comes_in_the_same(
    db: Stratagem, other: Stratagem, tmp_path: Path
) -> None:
    one, two = fill(db)

    out = give(db, tmp_path / "k.jsonl")
    done = take(other, tmp_path / "k.jsonl")

    assert (out.concepts, out.relationships) == (2, 1)
    assert (done.created, done.related, done.format) == (2, 1, "jsonl")
    for concept_id in (one, two):
        ours, theirs = (each.knowledge.get_concept(concept_id).concept for each in (db, other))
        assert (ours.name, ours.explanation, ours.created_at) == (
            theirs.name,
            theirs.explanation,
            theirs.created_at,
        )
        assert ours.certainty_score == theirs.certainty_score
    related = other.knowledge.get_related_concepts(one).results
    assert [(each.relationship_type, each.strength) for each in related] == [("PREREQUISITE", 0.5)]


def test_importing_again_changes_nothing(db: Stratagem, other: Stratagem, tmp_path: Path) -> None:
    fill(db)
    give(db, tmp_path / "k.jsonl")
    take(other, tmp_path / "k.jsonl")
    head = other.memory.status().head

    again = take(other, tmp_path / "k.jsonl")

    assert (again.created, again.unchanged, again.related, again.known) == (0, 2, 0, 1)
    assert other.memory.status().head == head


def test_a_changed_concept_is_brought_up_to_date(db: Stratagem, tmp_path: Path) -> None:
    one, _ = fill(db)
    give(db, tmp_path / "k.jsonl")
    db.knowledge.update_concept(one, explanation="Changed.")

    done = take(db, tmp_path / "k.jsonl")

    assert (done.updated, done.unchanged) == (1, 1)
    assert db.knowledge.get_concept(one).concept.explanation == "First.\nOf all."


def test_a_preview_writes_nothing(db: Stratagem, other: Stratagem, tmp_path: Path) -> None:
    fill(db)
    give(db, tmp_path / "k.jsonl")
    head = other.memory.status().head

    done = take(other, tmp_path / "k.jsonl", preview=True)

    assert (done.created, done.related, done.preview) == (2, 1, True)
    assert other.memory.status().head == head


def test_a_file_is_only_replaced_when_asked(db: Stratagem, tmp_path: Path) -> None:
    path = tmp_path / "k.jsonl"
    path.write_text("mine")

    with pytest.raises(ValidationFailed):
        give(db, path)

    assert path.read_text() == "mine"
    give(db, path, overwrite=True)
    assert "stratagem-knowledge" in path.read_text()


def test_the_graph_of_the_memory_server_becomes_concepts(db: Stratagem, tmp_path: Path) -> None:
    path = written(
        tmp_path / "memory.jsonl",
        {
            "type": "entity",
            "name": "Ada",
            "entityType": "person",
            "observations": ["Wrote", "Knew"],
        },
        {"type": "entity", "name": "Engine", "entityType": "machine", "observations": []},
        {"type": "relation", "from": "Ada", "to": "Engine", "relationType": "wrote programs for"},
        {"type": "relation", "from": "Ada", "to": "Engine", "relationType": "depends on"},
    )

    done = take(db, path)

    assert (done.format, done.created, done.related) == ("mcp-memory", 2, 2)
    ada = db.knowledge.search_concepts_exact(name="ada").results[0]
    assert ada.topic == "person"
    assert db.knowledge.get_concept(ada.concept_id).concept.explanation == "Wrote\nKnew"
    related = db.knowledge.get_related_concepts(ada.concept_id).results
    assert {(each.relationship_type, each.direction) for each in related} == {
        ("WROTE_PROGRAMS_FOR", "outgoing"),
        ("PREREQUISITE", "incoming"),
    }
    assert take(db, path).unchanged == 2


def test_notes_become_concepts_and_wikilinks_relationships(db: Stratagem, tmp_path: Path) -> None:
    (tmp_path / "Area" / "Topic").mkdir(parents=True)
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "x.md").write_text("hidden")
    (tmp_path / "Start.md").write_text(
        "---\ntags: [a]\n---\nSee [[Deep note|it]], [[Area/Topic/deep note#Part]], [[Nowhere]].\n"
        "- prerequisite: [[Other]]\n"
    )
    (tmp_path / "Other.md").write_text("")
    (tmp_path / "Area" / "Topic" / "Deep note.md").write_text("Deep.")

    done = take(db, tmp_path)

    assert (done.format, done.created, done.related, done.dangling) == ("markdown", 3, 2, 1)
    deep = db.knowledge.search_concepts_exact(name="Deep note").results[0]
    start = db.knowledge.search_concepts_exact(name="Start").results[0]
    assert (deep.area, deep.topic) == ("Area", "Topic")
    related = db.knowledge.get_related_concepts(start.concept_id).results
    assert {(each.name, each.relationship_type) for each in related} == {
        ("Deep note", "RELATES_TO"),
        ("Other", "PREREQUISITE"),
    }


@pytest.mark.parametrize("form", ["mcp-memory", "markdown"])
def test_other_forms_go_out_and_come_in(
    db: Stratagem, other: Stratagem, tmp_path: Path, form: Any
) -> None:
    fill(db)
    db.knowledge.create_concept("../evil: name?", "Named badly.")

    give(db, tmp_path / "out", form=form)
    done = take(other, tmp_path / "out", form=form)

    assert (done.created, done.related) == (3, 1)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "out"]
    assert other.knowledge.search_concepts_exact(name="One").results


def test_a_concept_is_known_by_its_name(db: Stratagem, tmp_path: Path) -> None:
    concept_id = db.knowledge.create_concept("Ada", "Old.").concept_id
    path = written(
        tmp_path / "m.jsonl",
        {"type": "entity", "name": "ADA", "entityType": "p", "observations": ["New."]},
    )

    assert take(db, path).updated == 1
    assert db.knowledge.get_concept(concept_id).concept.explanation == "New."


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([{"type": "concept", "concept_id": "a", "name": "N"}], "no explanation"),
        ([{"type": "concept", "name": "N", "explanation": "e"}], "concept_id"),
        (
            [{"type": "concept", "concept_id": "a", "name": "x" * 201, "explanation": "e"}],
            "201 characters",
        ),
        (
            [{"type": "relationship", "source_id": "a", "target_id": "b"}],
            "relationship type",
        ),
        (
            [
                {
                    "type": "relationship",
                    "source_id": "a",
                    "target_id": "b",
                    "relationship_type": "includes",
                }
            ],
            "not in the file",
        ),
        (
            [
                {"type": "concept", "concept_id": "a", "name": "N", "explanation": "e"},
                {
                    "type": "relationship",
                    "source_id": "a",
                    "target_id": "a",
                    "relationship_type": "includes",
                },
            ],
            "itself",
        ),
        (
            [
                {
                    "type": "concept",
                    "concept_id": "a",
                    "name": "N",
                    "explanation": "e",
                    "created_at": "yesterday",
                }
            ],
            "ISO 8601",
        ),
        ([{"type": "concept"}, ["list"]], "no name"),
        (
            [
                {
                    "type": "concept",
                    "concept_id": "a",
                    "name": "N",
                    "explanation": "e",
                    "certainty_score": 2**64,
                }
            ],
            "`certainty_score` cannot be stored: .* is an integer beyond 64 bits",
        ),
    ],
)
def test_what_cannot_be_taken_is_refused_whole(
    db: Stratagem, tmp_path: Path, records: list[object], reason: str
) -> None:
    head = db.memory.status().head

    with pytest.raises(ImportRefused, match=reason):
        take(db, written(tmp_path / "k.jsonl", *records))

    assert db.memory.status().head == head


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_come_back_field_by_field(
    db: Stratagem, other: Stratagem, tmp_path: Path, form: Any, seed: int
) -> None:
    make_random_graph(db, random.Random(seed))

    give(db, tmp_path / "out", form=form)
    take(other, tmp_path / "out", form=form)
    again = take(db, tmp_path / "out", form=form)

    assert contents(other) == contents(db)
    assert (again.created, again.updated, again.related) == (0, 0, 0)
    if form == "jsonl":
        assert other.knowledge.list_known(learner="Mia").total == 1
        assert again.facts == 0


def test_relations_of_the_memory_server_keep_their_types_and_names_their_case(
    db: Stratagem, other: Stratagem, tmp_path: Path
) -> None:
    entities = [
        {"type": "entity", "name": name, "entityType": "thing", "observations": [f"About {name}."]}
        for name in ("US", "us", "Ada", "Acme")
    ]
    relations = [
        {"type": "relation", "from": source, "to": target, "relationType": label}
        for source, target, label in (
            ("Ada", "Acme", "works_at"),
            ("Ada", "Acme", "founded"),
            ("US", "us", "differs from"),
        )
    ]
    path = written(tmp_path / "memory.jsonl", *entities, *relations)

    done = take(db, path)
    db.knowledge.update_concept("Ada", certainty_score=70, area="People")
    given = give(db, tmp_path / "out.jsonl", form="mcp-memory")
    take(other, tmp_path / "out.jsonl")

    assert given.left_out == {
        "area": 1,
        "certainty_score": 1,
        "notes": 1,
        "relationship_type": 3,
    }
    assert (done.created, done.related, done.declared) == (4, 3, 3)
    for each in (db, other):
        related = each.knowledge.get_related_concepts("Ada").results
        assert {item.relationship_type for item in related} == {"WORKS_AT", "FOUNDED"}
        assert each.knowledge.get_related_concepts("US").results[0].name == "us"
    assert take(db, path).unchanged == 4


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b'{"type": "song"}', b""])
def test_a_file_that_is_something_else_is_refused(
    db: Stratagem, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "k.jsonl").write_bytes(content)

    with pytest.raises(ImportRefused):
        take(db, tmp_path / "k.jsonl")
    with pytest.raises(ImportRefused):
        take(db, tmp_path / "missing")


def test_an_import_brings_a_deleted_concept_back_and_what_hangs_on_it(
    db: Stratagem, tmp_path: Path
) -> None:
    one, _ = fill(db)
    doubt = db.knowledge.create_concept("Doubt", "Not so.").concept_id
    db.knowledge.create_relationship(doubt, one, "contradicts")
    scores = [db.knowledge.get_concept(each).concept.certainty_score for each in (one, doubt)]
    give(db, tmp_path / "k.jsonl")
    db.knowledge.delete_concept(doubt)
    assert db.knowledge.get_concept(one).concept.certainty_score > scores[0]

    done = take(db, tmp_path / "k.jsonl")

    assert (done.created, done.unchanged, done.known) == (1, 2, 2)
    again = [db.knowledge.get_concept(each).concept.certainty_score for each in (one, doubt)]
    assert again == scores


def test_a_place_that_a_decision_cleared_is_no_folder(db: Stratagem, tmp_path: Path) -> None:
    one, _ = fill(db)
    db.memory.fork("trial")
    db.knowledge.update_concept(one, area="B", branch="trial")
    db.knowledge.update_concept(one, area="C")
    cleared = {"value": {"area": None, "topic": None}}
    db.memory.merge("trial", decisions={f"concept:knowledge/{one}": cleared})

    give(db, tmp_path / "notes", form="markdown")

    assert (tmp_path / "notes" / "One.md").exists()


@pytest.mark.parametrize("form", ["jsonl", "mcp-memory", "markdown"])
@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\r\n", "\n\n", "\n"])
def test_whatever_ends_a_line_elsewhere_stays_in_a_text(
    db: Stratagem, other: Stratagem, tmp_path: Path, form: Any, mark: str
) -> None:
    explanation = f"One{mark}two.{mark}"
    db.knowledge.create_concept("Separators", explanation)
    place = tmp_path / "out"
    give(db, place, form=form)

    assert take(db, place, form=form).unchanged == 1
    take(other, place, form=form)
    assert other.knowledge.get_concept("Separators").concept.explanation == explanation


def test_when_something_was_said_or_learnt_goes_out_and_comes_in(
    db: Stratagem, other: Stratagem, tmp_path: Path
) -> None:
    one, _ = fill(db)
    db.knowledge.confirm_concept(one, source="Ada", note="tried it")
    db.knowledge.mark_known([one], learner="Mia")
    give(db, tmp_path / "k.jsonl")

    first = take(other, tmp_path / "k.jsonl")
    again = take(other, tmp_path / "k.jsonl")
    here = take(db, tmp_path / "k.jsonl")

    assert (first.facts, again.facts, here.facts) == (2, 0, 0)
    given, taken = (each.knowledge.get_concept(one).concept.evidence for each in (db, other))
    assert given is not None
    assert given == taken
    known, learnt = (list(each.knowledge.list_known(learner="Mia")) for each in (db, other))
    assert known == learnt


def test_an_import_that_changes_a_period_computes_what_hangs_on_it(
    db: Stratagem, other: Stratagem, tmp_path: Path
) -> None:
    claim, doubt = (db.knowledge.create_concept(name, "e").concept_id for name in ("C", "D"))
    db.knowledge.create_relationship(doubt, claim, "contradicts")
    give(db, tmp_path / "k.jsonl")
    take(other, tmp_path / "k.jsonl")
    db.knowledge.update_concept(doubt, valid_to="2000")
    give(db, tmp_path / "later.jsonl")

    take(other, tmp_path / "later.jsonl")

    assert other.knowledge.get_concept(claim).concept.certainty_score == 60
    assert other.knowledge.get_concept(claim, valid_at="1999").concept.certainty_score < 60
