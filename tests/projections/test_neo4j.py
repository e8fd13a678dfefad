"""Concepts and relationships in a real Neo4j server, and walks that it answers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import GraphServiceFailed, PathNotFound, ServiceUnavailable, ValidationFailed
from stratagem.knowledge.graph import BuiltInGraph, Walk
from stratagem.knowledge.services import Services
from stratagem.knowledge.spaces import CONCEPTS, TYPES
from stratagem.projections import items
from stratagem.projections.bolt import Bolt
from stratagem.storage.contract import WriteRequest
from tests.ports import free_port
from tests.projections.conftest import Fed, Opener
from tests.projections.servers import Neo4jServer


@pytest.fixture
def bolt(neo4j: Neo4jServer) -> Iterator[Bolt]:
    """A connection that is not the database's own."""
    connection = Bolt(neo4j.uri, "", "")
    yield connection
    connection.close()


def identity(db: Fed) -> str:
    return (db.runtime.foundation.store.reader().log.hash_of(1) or b"").hex()[:16]


def chain(db: Fed, *names: str, label: str = "prerequisite") -> list[str]:
    ids = [db.concept(name) for name in names]
    for source, target in itertools.pairwise(ids):
        db.relate(source, target, label)
    return ids


def names(found: Any) -> list[str]:
    return [each.name for each in found]


def test_everything_written_arrives_as_nodes_and_typed_edges(graph: Fed, bolt: Bolt) -> None:
    a, b = chain(graph, "A", "B")
    graph.relate(b, a, "confirms", strength=0.5, notes="seen")
    waiting = graph.outbox()

    graph.deliver("neo4j")

    # Two concepts and two relationships; and each time that a certainty was computed.
    assert waiting == {"pending": 9, "processed": 0, "failed": 0}
    assert graph.outbox() == {"pending": 0, "processed": 9, "failed": 0}
    assert graph.verify("neo4j").items == 4
    assert graph.verify("neo4j").different == 0
    rows = bolt.read(
        "MATCH (x:Concept {log: $log})-[r]->(y) RETURN x.name AS x, type(r) AS r, y.name AS y, "
        "r.strength AS strength ORDER BY r",
        log=identity(graph),
    )
    assert [tuple(row.values()) for row in rows] == [
        ("B", "CONFIRMS", "A", 0.5),
        ("A", "PREREQUISITE", "B", 1.0),
    ]


def test_two_nodes_of_one_concept_are_impossible(graph: Fed, bolt: Bolt) -> None:
    (a,) = chain(graph, "A")
    graph.deliver("neo4j")

    with pytest.raises(GraphServiceFailed, match="already exists"):
        bolt.alone("CREATE (:Concept {log: $log, concept_id: $id})", log=identity(graph), id=a)


def test_walks_are_answered_by_cypher(graph: Fed) -> None:
    a, _b, c, d = chain(graph, "A", "B", "C", "D")
    graph.relate(a, c, "relates_to", strength=0.3)
    graph.deliver("neo4j")
    knowledge = graph.knowledge

    related = knowledge.get_related_concepts(c)
    path = knowledge.get_concept_chain(d, a)

    assert [(each.name, each.relationship_type, each.direction) for each in related] == [
        ("B", "PREREQUISITE", "incoming"),
        ("D", "PREREQUISITE", "outgoing"),
        ("A", "RELATES_TO", "incoming"),
    ]
    assert names(knowledge.get_related_concepts(c, direction="outgoing")) == ["D"]
    assert names(knowledge.get_related_concepts(c, relationship_type="relates_to")) == ["A"]
    assert [(each.name, each.depth) for each in knowledge.get_prerequisites(d)] == [
        ("C", 1),
        ("B", 2),
        ("A", 3),
    ]
    assert names(path.path) == ["D", "C", "A"]
    assert [step.relationship_to_next for step in path.path] == ["PREREQUISITE", "RELATES_TO", None]
    assert [step.direction_to_next for step in path.path] == ["incoming", "incoming", None]
    assert knowledge.get_concept_chain(a, a).length == 0
    with pytest.raises(PathNotFound):
        knowledge.get_concept_chain(d, a, max_depth=1)


def test_the_answer_really_comes_from_neo4j(graph: Fed, bolt: Bolt) -> None:
    a, b = chain(graph, "A", "B")
    graph.deliver("neo4j")

    bolt.alone("MATCH (:Concept {log: $log})-[r]->() DELETE r", log=identity(graph))

    assert names(graph.knowledge.get_related_concepts(a)) == []
    assert [each.what for each in graph.verify("neo4j").differences] == ["missing"]
    graph.memory.fork("trial")
    assert names(graph.knowledge.get_related_concepts(a, branch="trial")) == ["B"]
    assert graph.rebuild("neo4j") == 3
    assert graph.verify("neo4j").different == 0
    assert names(graph.knowledge.get_related_concepts(a)) == ["B"]
    del b


def test_a_cycle_that_a_merge_made_is_shown_by_whoever_answers(graph: Fed) -> None:
    one, two = graph.concept("One"), graph.concept("Two")
    graph.memory.fork("trial")
    graph.relate(one, two, "prerequisite", branch="trial")
    graph.relate(two, one, "prerequisite")
    graph.memory.merge("trial")
    waiting = graph.knowledge.get_prerequisites(one)
    graph.deliver("neo4j")

    answered = graph.knowledge.get_prerequisites(one)

    assert graph.outbox()["pending"] == 0
    assert waiting == answered
    assert [each.name for each in answered] == ["Two"]
    assert answered.cycle == [one, two, one]


def test_verify_finds_every_way_to_differ(graph: Fed, bolt: Bolt) -> None:
    chain(graph, "A", "B", "C")
    graph.deliver("neo4j")
    change = [
        "MATCH (c:Concept {log: $log, name: 'A'}) SET c.name = 'Z'",
        "MATCH (c:Concept {log: $log, name: 'B'}) SET c.sequence = c.sequence - 1",
        "MATCH (c:Concept {log: $log, name: 'C'}) DETACH DELETE c",
        "CREATE (:Concept {log: $log, concept_id: 'x', subject: 10000, deleted: false})",
    ]

    for statement in change:
        bolt.alone(statement, log=identity(graph))
    found = sorted(each.what for each in graph.verify("neo4j").differences)

    assert found == ["altered", "left over", "missing", "missing", "outdated"]


def test_deleting_hides_and_restoring_brings_back_with_relationships(graph: Fed) -> None:
    a, b, c = chain(graph, "A", "B", "C")
    graph.deliver("neo4j")

    graph.knowledge.delete_concept(b)
    graph.deliver("neo4j")
    hidden = graph.verify("neo4j")
    with pytest.raises(PathNotFound):
        graph.knowledge.get_concept_chain(a, c)
    assert names(graph.knowledge.get_prerequisites(c)) == []
    graph.knowledge.restore_concept(b)
    graph.deliver("neo4j")

    assert (hidden.items, hidden.different) == (4, 0)
    assert names(graph.knowledge.get_concept_chain(a, c).path) == ["A", "B", "C"]
    assert graph.verify("neo4j").different == 0


def test_a_rebuild_keeps_the_relationships_of_deleted_concepts(graph: Fed) -> None:
    a, b, c = chain(graph, "A", "B", "C")
    graph.knowledge.delete_concept(b)

    graph.rebuild("neo4j")
    assert graph.verify("neo4j").different == 0
    graph.knowledge.restore_concept(b)
    graph.deliver("neo4j")

    assert graph.verify("neo4j").different == 0
    assert names(graph.knowledge.get_concept_chain(a, c).path) == ["A", "B", "C"]


def test_what_arrives_late_never_takes_the_place_of_what_is_newer(graph: Fed) -> None:
    a, b, c = chain(graph, "A", "B", "C")
    graph.deliver("neo4j")
    store = graph.runtime.foundation.store
    model = graph.runtime.projections._feeders["neo4j"].model  # noqa: SLF001
    before = list(items.pages(store, model))
    graph.knowledge.update_concept(a, name="A2")
    graph.knowledge.delete_concept(c)
    graph.knowledge.delete_relationship(a, b, "prerequisite")
    graph.deliver("neo4j")

    for page in before:
        model.apply(page)

    assert graph.verify("neo4j").different == 0


def test_a_relationship_that_went_can_come_again(graph: Fed) -> None:
    a, b = chain(graph, "A", "B")
    graph.deliver("neo4j")
    graph.knowledge.delete_relationship(a, b, "prerequisite")
    graph.deliver("neo4j")
    gone = names(graph.knowledge.get_related_concepts(a))

    graph.relate(a, b, "prerequisite")
    graph.deliver("neo4j")

    assert gone == []
    assert names(graph.knowledge.get_related_concepts(a)) == ["B"]
    assert graph.verify("neo4j").different == 0


def test_a_purged_concept_leaves_nothing(graph: Fed, bolt: Bolt) -> None:
    a, b = chain(graph, "Xyzzy", "B")
    graph.deliver("neo4j")

    graph.runtime.foundation.store.purge(WriteRequest("test"), space=CONCEPTS, key=a, sequence=None)
    graph.deliver("neo4j")

    left = bolt.read("MATCH (c:Concept {log: $log}) RETURN c.name AS name", log=identity(graph))
    assert [row["name"] for row in left] == ["B"]
    assert graph.verify("neo4j").different == 0
    assert names(graph.knowledge.get_related_concepts(b)) == []


def test_databases_that_share_a_server_do_not_see_each_other(
    opened: Opener, neo4j: Neo4jServer
) -> None:
    one = opened("one.db", graph="neo4j", neo4j_uri=neo4j.uri)
    two = opened("two.db", graph="neo4j", neo4j_uri=neo4j.uri)
    chain(one, "A", "B")
    chain(two, "C", "D", "E")

    one.deliver("neo4j")
    two.deliver("neo4j")
    one.rebuild("neo4j")

    assert (one.verify("neo4j").items, two.verify("neo4j").items) == (3, 5)
    assert (one.verify("neo4j").different, two.verify("neo4j").different) == (0, 0)


def test_a_walk_sees_its_own_writes_before_they_are_delivered(graph: Fed) -> None:
    a, b = chain(graph, "A", "B")
    graph.deliver("neo4j")

    c = graph.concept("C")
    graph.relate(b, c, "prerequisite")

    assert names(graph.knowledge.get_concept_chain(a, c).path) == ["A", "B", "C"]
    assert names(graph.knowledge.get_prerequisites(c)) == ["B", "A"]


def test_names_with_cypher_in_them_are_only_names(graph: Fed, bolt: Bolt) -> None:
    evil = "x'}) DETACH DELETE c //"
    a = graph.concept(evil, "`$log` \\u0027 }) MATCH (n) DETACH DELETE n //")
    b = graph.concept("B")
    graph.relate(a, b, "relates_to", notes=evil)

    graph.deliver("neo4j")

    assert graph.verify("neo4j").different == 0
    assert names(graph.knowledge.get_related_concepts(b)) == [evil]


def in_order(walk: Walk) -> Walk:
    """Return a walk with what needs what in an order that does not depend on who was asked."""
    return walk._replace(needs=sorted(walk.needs))


def test_random_graphs_are_walked_as_the_database_walks_them(graph: Fed) -> None:
    dice = random.Random(7)
    ids = [graph.concept(f"c{number}") for number in range(30)]
    for _ in range(60):
        source, target = sorted(dice.sample(range(30), 2))
        label = dice.choice(TYPES)
        strength = dice.randrange(1, 11) / 10
        with suppress(ValidationFailed):  # The same pair may be drawn twice.
            graph.relate(ids[source], ids[target], label, strength=strength)
    for gone in dice.sample(ids, 3):
        graph.knowledge.delete_concept(gone)
    graph.deliver("neo4j")
    assert graph.verify("neo4j").different == 0
    foundation = graph.runtime.foundation

    with foundation.store.snapshot() as reader:
        view = foundation.views.view(reader, DEFAULT_BRANCH)
        services = Services(foundation)
        theirs, ours = services.graph(reader, view), BuiltInGraph(reader, view)
        assert type(theirs) is not type(ours)
        there = [each for each in ids if reader.records.current(view.lineage, CONCEPTS, each)]
        for one in there:
            for way in ("both", "incoming", "outgoing"):
                asked = {"direction": way, "label": None, "limit": 50}
                assert theirs.neighbours(one, **asked) == ours.neighbours(one, **asked)  # type: ignore[arg-type]
            assert in_order(theirs.prerequisites(one)) == in_order(ours.prerequisites(one))
            for other in dice.sample(there, 5):
                left, right = theirs.path(one, other, 10), ours.path(one, other, 10)
                assert (left and len(left)) == (right and len(right))


def test_a_server_that_is_down_stops_the_walks_and_nothing_else(opened: Opener) -> None:
    db = opened(graph="neo4j", neo4j_uri=f"bolt://127.0.0.1:{free_port()}")
    a, b = chain(db, "A", "B")
    knowledge = db.knowledge

    for ask in (
        lambda: knowledge.get_related_concepts(a),
        lambda: knowledge.get_prerequisites(b),
        lambda: knowledge.get_concept_chain(a, b),
    ):
        with pytest.raises(ServiceUnavailable) as refused:
            ask()
        assert refused.value.details["service"] == "neo4j_service"

    availability = knowledge.get_tool_availability()
    assert availability.unavailable == [
        "get_concept_chain",
        "get_prerequisites",
        "get_related_concepts",
    ]
    assert availability.service_status["relationship_tools"] == {
        "neo4j_service": False,
        "event_store": True,
        "outbox": True,
    }
    assert availability.implementations["neo4j_service"] == "neo4j"
    knowledge.delete_relationship(a, b, "prerequisite")
    knowledge.search_concepts_semantic("A")
    knowledge.list_hierarchy()
    db.memory.fork("trial")
    assert names(knowledge.get_related_concepts(a, branch="trial")) == []
    head = db.runtime.foundation.store.reader().log.head().sequence
    assert names(knowledge.get_related_concepts(a, as_of=f"@{head - 4}")) == ["B"]


def test_computed_certainty_is_in_the_graph_and_follows_the_evidence(
    graph: Fed, bolt: Bolt
) -> None:
    plain = graph.concept("Plain")
    given = graph.concept("Given", certainty_score=90)
    graph.deliver("neo4j")

    def certainty(concept_id: str) -> list[Any]:
        rows = bolt.read(
            "MATCH (c:Concept {log: $log, concept_id: $id}) "
            "RETURN c.certainty_score AS score, c.certainty_source AS source",
            log=identity(graph),
            id=concept_id,
        )
        return [rows[0]["score"], rows[0]["source"]]

    before = certainty(plain)
    graph.knowledge.refute_concept(plain, source="a test")
    graph.deliver("neo4j")

    shown = graph.knowledge.get_concept(plain).concept.certainty_score
    assert before == [60, "computed"]
    assert certainty(plain) == [shown, "computed"]
    assert shown < 60
    assert certainty(given) == [90, None]
    assert graph.verify("neo4j").different == 0
    # Nobody's certainty is left behind when it is given, taken back, or the concept goes.
    graph.knowledge.update_concept(plain, certainty_score=10)
    graph.deliver("neo4j")
    assert certainty(plain) == [10, None]
    graph.knowledge.update_concept(plain, certainty_score=None)
    graph.knowledge.delete_concept(given)
    graph.deliver("neo4j")
    assert certainty(plain)[1] == "computed"
    assert graph.verify("neo4j").different == 0
    assert graph.outbox()["pending"] == 0


def test_a_database_of_the_server_can_be_named(opened: Opener, neo4j: Neo4jServer) -> None:
    named = opened("named.db", graph="neo4j", neo4j_uri=neo4j.uri, neo4j_database="neo4j")
    named.concept("A")
    named.deliver("neo4j")
    other = opened("other.db", graph="neo4j", neo4j_uri=neo4j.uri, neo4j_database="nowhere")

    assert named.verify("neo4j").different == 0
    with pytest.raises((GraphServiceFailed, ServiceUnavailable), match="nowhere"):
        other.rebuild("neo4j")


def test_a_deadlock_is_tried_again(graph: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    from neo4j import AsyncSession
    from neo4j.exceptions import TransientError

    graph.concept("A")
    attempts: list[str] = []
    run = AsyncSession.run

    async def refuse_twice(session: Any, *given: Any, **more: Any) -> Any:
        attempts.append("tried")
        if len(attempts) < 3:
            raise TransientError("ForsetiClient[...] can't acquire the lock: deadlock")
        return await run(session, *given, **more)

    monkeypatch.setattr(AsyncSession, "run", refuse_twice)

    graph.rebuild("neo4j")

    assert len(attempts) > 3
    assert graph.verify("neo4j").different == 0


def test_a_server_that_is_down_makes_the_status_degraded(opened: Opener) -> None:
    lost = opened(graph="neo4j", neo4j_uri=f"bolt://127.0.0.1:{free_port()}")

    stats = lost.knowledge.get_server_stats()

    assert stats.status == "degraded"
    assert "neo4j" in (stats.note or "")
