"""A picture of the graph around a concept: one HTML file that needs nothing else.

Names come from anybody, so nothing of them is ever read as HTML or as script: the page's data
is JSON in which every character that could end it is escaped, and the script puts it into the
page as text. A policy in the page forbids it to load anything.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import ConceptNotFound
from stratagem.knowledge import checks, concept_lists
from stratagem.knowledge.graph import read_some
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.spaces import NAME_FACET, fold_name
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.catalogue import LinkEnd

__all__ = ["NODES_MAX", "draw", "picture_of", "surroundings"]

# More than this is a ball of wool.
NODES_MAX: Final = 200
_PAGE: Final = (resources.files(__package__) / "picture.html").read_text("utf-8")


def picture_of(
    foundation: Foundation,
    caller: Caller,
    concept: str | None = None,
    *,
    depth: int = 2,
    nodes_max: int = 60,
    as_of: str | int | None = None,
) -> str:
    """Return a page around a concept, by its id or name; without one, the one created last.

    Raises:
        ConceptNotFound: There is none.
    """
    with foundation.store.snapshot() as reader:
        records = ConceptRecords(reader, foundation.views.view(reader, caller.branch, as_of))
        return draw(records, _resolve_concept(records, concept), depth=depth, nodes_max=nodes_max)


def _resolve_concept(records: ConceptRecords, concept: str | None) -> str:
    if concept is None:
        last = concept_lists.newest(records, 1)
        if not last:
            raise ConceptNotFound(
                "There are no concepts on this branch.", hint="Create one with create_concept."
            )
        return last[0].id
    checks.concept_id(concept, field="concept")
    if records.find(concept) is not None:
        return concept
    named = records.reader.catalogue.with_facet(
        records.view, NAME_FACET + fold_name(concept), limit=1
    )
    return records.by_version(named)[0].id if named else concept


def draw(records: ConceptRecords, concept_id: str, *, depth: int = 2, nodes_max: int = 60) -> str:
    """Return a page that shows a concept and what is around it.

    Raises:
        ConceptNotFound: The view shows none with this id.
    """
    data = orjson.dumps(
        surroundings(records, concept_id, depth=depth, nodes_max=nodes_max)
    ).decode()
    for char in "<>&\u2028\u2029":
        data = data.replace(char, f"\\u{ord(char):04x}")
    return _PAGE.replace("__DATA__", data)


def surroundings(
    records: ConceptRecords, concept_id: str, *, depth: int, nodes_max: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the concepts within some steps of one, nearest first, and their relationships."""
    records.concept(concept_id)
    root = records.subject(concept_id)
    distance = {root: 0}
    concepts = records.by_subject([root])
    frontier = [root]
    for step in range(1, depth + 1):
        links = sorted(_links(records, frontier), key=lambda link: -link.weight)
        met = list(dict.fromkeys(link.other for link in links if link.other not in distance))
        room = nodes_max - len(distance)
        living = read_some(records.by_subject, met, room)
        frontier = [number for number in met if number in living][:room]
        distance |= dict.fromkeys(frontier, step)
        concepts |= {number: living[number] for number in frontier}
    scores = records.scores(concepts.values())
    nodes = [
        {
            "id": number,
            "name": concepts[number].name,
            "explanation": concepts[number].content["explanation"][:500],
            "area": concepts[number].content.get("area"),
            "certainty": scores[concepts[number].id].value,
            "distance": steps,
        }
        for number, steps in distance.items()
    ]
    edges = [
        {"from": link.node, "to": link.other, "type": link.label, "strength": link.weight}
        for link in _links(records, list(concepts))
        if link.outgoing and link.other in concepts
    ]
    return {"nodes": nodes, "edges": edges}


def _links(records: ConceptRecords, nodes: list[int]) -> list[LinkEnd]:
    return (
        records.reader.catalogue.links(records.view, nodes, limit=limits.LINKS_READ_MAX)
        if nodes
        else []
    )
