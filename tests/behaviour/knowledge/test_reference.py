"""The examples of the documented interface, response for response, as they were settled."""

from __future__ import annotations

import re
from typing import Any

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
LOOPS: dict[str, Any] = {
    "name": "Python For Loops",
    "explanation": "For loops iterate over sequences like lists, tuples, and strings. "
    "Syntax: for item in sequence: ...",
    "area": "Programming",
    "topic": "Python",
    "subtopic": "Control Flow",
    "certainty_score": 90,
}


@proves("knowledge:documented")
def test_ping(call: Knowing) -> None:
    answer = call("ping")

    assert ISO.fullmatch(answer.pop("timestamp"))
    assert answer == {
        "status": "ok",
        "message": "MCP Knowledge Server is running",
        "server_name": "knowledge-server",
    }


@proves("knowledge:documented")
def test_get_server_stats(call: Knowing) -> None:
    concept = call.concept("A", certainty_score=1)
    other = call.concept("B", certainty_score=1)
    call.relate(concept, other)
    call("delete_concept", concept_id=concept)

    answer = call("get_server_stats")

    # The branch itself is an event too.
    assert answer == {
        "success": True,
        "event_store": {"total_events": 5, "concept_events": 3},
        "outbox": {"pending": 0, "processed": 0, "failed": 0},
        "status": "healthy",
    }


@proves("knowledge:documented", "knowledge:availability")
def test_get_tool_availability(meaning: Knowing) -> None:
    answer = meaning("get_tool_availability")

    implementations = answer.pop("implementations")
    assert implementations["neo4j_service"] == "built-in"
    assert answer == {
        "success": True,
        "available": [
            "create_concept",
            "create_relationship",
            "delete_concept",
            "delete_relationship",
            "get_concept",
            "get_concept_chain",
            "get_concepts_by_certainty",
            "get_prerequisites",
            "get_recent_concepts",
            "get_related_concepts",
            "get_server_stats",
            "get_tool_availability",
            "list_hierarchy",
            "ping",
            "search_concepts_exact",
            "search_concepts_semantic",
            "update_concept",
        ],
        "unavailable": [],
        "total_tools": 17,
        "service_status": {
            "concept_tools": {"repository": True, "confidence_service": True},
            "search_tools": {
                "neo4j_service": True,
                "chromadb_service": True,
                "embedding_service": True,
            },
            "relationship_tools": {"neo4j_service": True, "event_store": True, "outbox": True},
            "analytics_tools": {"neo4j_service": True},
        },
    }


@proves("knowledge:documented")
def test_create_concept(call: Knowing) -> None:
    answer = call("create_concept", **LOOPS)

    assert UUID.fullmatch(answer["concept_id"])
    assert answer == {
        "success": True,
        "concept_id": answer["concept_id"],
        "message": "Created",
        "version": 2,
    }


@proves("knowledge:documented")
def test_get_concept(call: Knowing) -> None:
    created = call("create_concept", **LOOPS)

    answer = call("get_concept", concept_id=created["concept_id"], include_history=True)

    at = answer["concept"]["created_at"]
    assert ISO.fullmatch(at)
    assert answer == {
        "success": True,
        "concept": {
            "concept_id": created["concept_id"],
            **LOOPS,
            "created_at": at,
            "last_modified": at,
            "version": created["version"],
            "explanation_history": [{"explanation": LOOPS["explanation"], "timestamp": at}],
        },
        "message": "Found",
    }


@proves("knowledge:documented", "concept:history")
def test_get_concept_leaves_the_history_out_and_keeps_documented_nulls(call: Knowing) -> None:
    concept = call.get(call.concept("Plain", certainty_score=5))

    assert "explanation_history" not in concept
    assert (concept["area"], concept["topic"], concept["subtopic"]) == (None, None, None)


@proves("knowledge:documented")
def test_update_concept(call: Knowing) -> None:
    concept_id = call.concept(**LOOPS)

    answer = call(
        "update_concept",
        concept_id=concept_id,
        explanation="UPDATED: For loops in Python iterate over...",
        certainty_score=95,
    )

    assert answer == {
        "success": True,
        "concept_id": concept_id,
        "message": "Updated",
        "version": 3,
    }
    assert call.get(concept_id)["certainty_score"] == 95


@proves("knowledge:documented")
def test_delete_concept(call: Knowing) -> None:
    concept_id = call.concept(**LOOPS)

    answer = call("delete_concept", concept_id=concept_id)

    assert answer == {
        "success": True,
        "concept_id": concept_id,
        "message": "Deleted",
        "version": 3,
    }


@proves("knowledge:documented")
def test_search_concepts_semantic(meaning: Knowing) -> None:
    meaning.concept(**LOOPS)
    meaning.concept(
        "Python While Loops",
        "While loops repeat as long as a condition holds in Python.",
        area="Programming",
        topic="Python",
        certainty_score=85,
    )
    meaning.concept("Sourdough", "Bread made with wild yeast.", area="Baking", certainty_score=99)

    answer = meaning(
        "search_concepts_semantic",
        query="How do I loop through items in Python?",
        limit=5,
        min_certainty=70,
    )

    assert (answer["success"], answer["message"]) == (True, "Found")
    assert answer["total"] == len(answer["results"]) >= 2
    assert [each["name"] for each in answer["results"][:2]] == [
        "Python For Loops",
        "Python While Loops",
    ]
    first = answer["results"][0]
    documented = {"concept_id", "name", "similarity", "area", "topic", "certainty_score"}
    assert set(first) == documented | {"similarity_kind", "snippet"}
    similarities = [each["similarity"] for each in answer["results"]]
    assert similarities == sorted(similarities, reverse=True)
    assert all(0 <= each <= 1 for each in similarities)


@proves("knowledge:documented")
def test_search_concepts_exact(call: Knowing) -> None:
    concept_id = call.concept(**LOOPS)
    call.concept("Loops in music", area="Music")

    answer = call(
        "search_concepts_exact", name="loop", area="Programming", topic="Python", limit=10
    )

    assert answer == {
        "success": True,
        "results": [
            {
                "concept_id": concept_id,
                "name": "Python For Loops",
                "area": "Programming",
                "topic": "Python",
                "subtopic": "Control Flow",
                "certainty_score": 90,
                "created_at": call.get(concept_id)["created_at"],
            }
        ],
        "total": 1,
        "message": "Found 1 concepts matching criteria",
    }


@proves("knowledge:documented")
def test_get_recent_concepts(call: Knowing) -> None:
    concept_id = call.concept(**LOOPS)

    answer = call("get_recent_concepts", limit=10)

    assert answer == {
        "success": True,
        "results": [
            {
                "concept_id": concept_id,
                "name": "Python For Loops",
                "area": "Programming",
                "topic": "Python",
                "created_at": call.get(concept_id)["created_at"],
            }
        ],
        "total": 1,
        "message": "Found",
    }


@proves("knowledge:documented", "relationship:types")
def test_create_and_delete_relationship(call: Knowing) -> None:
    functions, decorators = call.concepts("Functions", "Decorators")
    ends = {
        "source_id": functions,
        "target_id": decorators,
        "relationship_type": "prerequisite",
    }

    created = call(
        "create_relationship",
        **ends,
        strength=1.0,
        notes="Must understand functions before learning decorators",
    )
    deleted = call("delete_relationship", **ends)

    relationship_id = created["relationship_id"]
    assert re.fullmatch(r"rel-[0-9a-f]{12,}", relationship_id)
    assert created == {
        "success": True,
        "relationship_id": relationship_id,
        "message": "Relationship created",
    }
    assert deleted == {
        "success": True,
        "relationship_id": relationship_id,
        "message": "Relationship deleted",
    }


@proves("knowledge:documented")
def test_get_related_concepts(call: Knowing) -> None:
    center, functions = call.concepts("Python Decorators", "Python Functions")
    relationship = call.relate(center, functions, "prerequisite")

    answer = call(
        "get_related_concepts",
        concept_id=center,
        direction="outgoing",
        relationship_type="prerequisite",
        limit=10,
    )

    assert answer == {
        "success": True,
        "results": [
            {
                "concept_id": functions,
                "name": "Python Functions",
                "relationship_type": "PREREQUISITE",
                "direction": "outgoing",
                "strength": 1.0,
                "relationship_id": relationship,
            }
        ],
        "total": 1,
        "message": "Found 1 related concepts",
    }


@proves("knowledge:documented")
def test_get_prerequisites(call: Knowing) -> None:
    variables, functions, loops, goal = call.concepts(
        "Variables", "Functions", "Python For Loops", "Goal"
    )
    call.relate(variables, goal, "prerequisite")
    call.relate(functions, variables, "prerequisite")
    call.relate(loops, functions, "prerequisite")

    answer = call("get_prerequisites", concept_id=goal, depth=3)

    assert answer == {
        "success": True,
        "prerequisites": [
            {"concept_id": variables, "name": "Variables", "depth": 1, "order": 3, "requires": [2]},
            {"concept_id": functions, "name": "Functions", "depth": 2, "order": 2, "requires": [1]},
            {
                "concept_id": loops,
                "name": "Python For Loops",
                "depth": 3,
                "order": 1,
                "requires": [],
            },
        ],
        "total": 3,
        "message": "Found 3 prerequisites",
    }


@proves("knowledge:documented")
def test_get_concept_chain(call: Knowing) -> None:
    variables, functions, decorators = call.concepts(
        "Python Variables", "Python Functions", "Python Decorators"
    )
    call.relate(variables, functions, "prerequisite")
    call.relate(functions, decorators, "prerequisite")

    answer = call(
        "get_concept_chain", start_concept_id=variables, end_concept_id=decorators, max_depth=5
    )

    assert answer == {
        "success": True,
        "path": [
            {
                "concept_id": variables,
                "name": "Python Variables",
                "relationship_to_next": "PREREQUISITE",
                "direction_to_next": "outgoing",
            },
            {
                "concept_id": functions,
                "name": "Python Functions",
                "relationship_to_next": "PREREQUISITE",
                "direction_to_next": "outgoing",
            },
            {
                "concept_id": decorators,
                "name": "Python Decorators",
                "relationship_to_next": None,
            },
        ],
        "length": 2,
        "message": "Found path of length 2",
    }


@proves("knowledge:documented", "concept:hierarchy")
def test_list_hierarchy(call: Knowing) -> None:
    for subtopic in ("Data Structures", "Control Flow", "Control Flow"):
        call.concept("C", area="Programming", topic="Python", subtopic=subtopic)
    call.concept("Loose")

    answer = call("list_hierarchy")

    assert answer == {
        "success": True,
        "areas": [
            {
                "name": "Programming",
                "concept_count": 3,
                "topics": [
                    {
                        "name": "Python",
                        "concept_count": 3,
                        "subtopics": [
                            {"name": "Control Flow", "concept_count": 2},
                            {"name": "Data Structures", "concept_count": 1},
                        ],
                    }
                ],
            },
            {
                "name": "Uncategorized",
                "concept_count": 1,
                "topics": [
                    {
                        "name": "General",
                        "concept_count": 1,
                        "subtopics": [{"name": "General", "concept_count": 1}],
                    }
                ],
            },
        ],
        "total_concepts": 4,
        "message": "Hierarchy contains 2 areas with 4 concepts",
    }


@proves("knowledge:documented")
def test_get_concepts_by_certainty(call: Knowing) -> None:
    concept_id = call.concept(
        "Quantum Computing Basics", area="Computer Science", topic="Quantum", certainty_score=30
    )
    call.concept("Sure", certainty_score=80)

    answer = call("get_concepts_by_certainty", min_certainty=0, max_certainty=50, limit=20)

    assert answer == {
        "success": True,
        "results": [
            {
                "concept_id": concept_id,
                "name": "Quantum Computing Basics",
                "area": "Computer Science",
                "topic": "Quantum",
                "subtopic": None,
                "certainty_score": 30,
                "created_at": call.get(concept_id)["created_at"],
            }
        ],
        "total": 1,
        "message": "Found 1 concepts with certainty between 0 and 50",
    }
