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
from stratagem.knowledge import checks, listing
from stratagem.knowledge.graph import read_some
from stratagem.knowledge.records import Book
from stratagem.knowledge.spaces import NAME_FACET, folded
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
        book = Book(reader, foundation.views.view(reader, caller.branch, as_of))
        return draw(book, _meant(book, concept), depth=depth, nodes_max=nodes_max)


def _meant(book: Book, concept: str | None) -> str:
    if concept is None:
        last = listing.newest(book, 1)
        if not last:
            raise ConceptNotFound(
                "There are no concepts on this branch.", hint="Create one with create_concept."
            )
        return last[0].id
    checks.concept_id(concept, field="concept")
    if book.find(concept) is not None:
        return concept
    named = book.reader.catalogue.with_facet(book.view, NAME_FACET + folded(concept), limit=1)
    return book.by_version(named)[0].id if named else concept


def draw(book: Book, concept_id: str, *, depth: int = 2, nodes_max: int = 60) -> str:
    """Return a page that shows a concept and what is around it.

    Raises:
        ConceptNotFound: The view shows none with this id.
    """
    data = orjson.dumps(surroundings(book, concept_id, depth=depth, nodes_max=nodes_max)).decode()
    for char in "<>&\u2028\u2029":
        data = data.replace(char, f"\\u{ord(char):04x}")
    return _PAGE.replace("__DATA__", data)


def surroundings(
    book: Book, concept_id: str, *, depth: int, nodes_max: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the concepts within some steps of one, nearest first, and their relationships."""
    book.concept(concept_id)
    root = book.subject(concept_id)
    distance = {root: 0}
    concepts = book.by_subject([root])
    frontier = [root]
    for step in range(1, depth + 1):
        links = sorted(_links(book, frontier), key=lambda link: -link.weight)
        met = list(dict.fromkeys(link.other for link in links if link.other not in distance))
        room = nodes_max - len(distance)
        living = read_some(book.by_subject, met, room)
        frontier = [number for number in met if number in living][:room]
        distance |= dict.fromkeys(frontier, step)
        concepts |= {number: living[number] for number in frontier}
    scores = book.scores(concepts.values())
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
        for link in _links(book, list(concepts))
        if link.outgoing and link.other in concepts
    ]
    return {"nodes": nodes, "edges": edges}


def _links(book: Book, nodes: list[int]) -> list[LinkEnd]:
    return (
        book.reader.catalogue.links(book.view, nodes, limit=limits.LINKS_READ_MAX) if nodes else []
    )
