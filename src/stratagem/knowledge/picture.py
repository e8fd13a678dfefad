"""A picture of the graph, or of what is around a concept: one HTML file that needs nothing else.

Names come from anybody, so nothing of them is ever read as HTML or as script: the page's data
is JSON in which every character that could end it is escaped, and the script puts it into the
page as text. A policy in the page forbids it to load anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ConceptNotFound
from stratagem.knowledge import checks, concept_lists, graph_layout, valid_time
from stratagem.knowledge.disputes import find_disputes
from stratagem.knowledge.graph import read_some
from stratagem.knowledge.graph_layout import CERTAINTY_BANDS, ConceptToPlace, LinkToPlace
from stratagem.knowledge.records import Concept, ConceptRecords, content_of
from stratagem.knowledge.spaces import CONCEPTS
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.catalogue import LinkEnd

__all__ = ["GraphPicture", "draw_graph", "read_graph"]

_PAGE: Final = (resources.files(__package__) / "picture.html").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """A page that shows concepts, how many it shows, and how many it had no room for."""

    html: str
    concepts: int
    relationships: int
    left_out: int


def draw_graph(
    foundation: Foundation,
    caller: Caller,
    concept: str | None = None,
    *,
    depth: int = 2,
    nodes_max: int = limits.PICTURE_CONCEPTS_DEFAULT,
    as_of: str | int | None = None,
) -> GraphPicture:
    """Return a page around a concept, by its id or name; without one, of the whole graph.

    Raises:
        ConceptNotFound: There is none.
        AmbiguousName: Several have this name.
    """
    with foundation.store.snapshot() as reader:
        records = ConceptRecords(reader, foundation.views.view(reader, caller.branch, as_of))
        graph = read_graph(records, concept, depth=depth, nodes_max=nodes_max)
    return GraphPicture(
        _page(graph), len(graph["concepts"]), len(graph["links"]), graph["left_out"]
    )


def read_graph(
    records: ConceptRecords, concept: str | None = None, *, depth: int, nodes_max: int
) -> dict[str, Any]:
    """Return concepts with their places, the relationships between them, areas and layers.

    With a concept: what lies within some steps of it, the strongest relationships first. Without
    one: all of them, the newest first where there is not room for all.

    Raises:
        ConceptNotFound: There is none.
        AmbiguousName: Several have this name.
    """
    root: str | None = None
    if concept is None:
        shown, left_out = _newest(records, nodes_max)
    else:
        root = records.concept(checks.concept_id(concept, field="concept"), field="concept").id
        shown, left_out = _surroundings(records, root, depth, nodes_max)
    ends = [link for link in _links(records, list(shown)) if link.outgoing and link.other in shown]
    return {"root": root, "left_out": left_out, **_place(records, shown, ends)}


def _newest(records: ConceptRecords, nodes_max: int) -> tuple[dict[int, Concept], int]:
    found = concept_lists.newest(records, nodes_max)
    if not found:
        raise ConceptNotFound(
            "There are no concepts on this branch.", hint="Create one with create_concept."
        )
    total = sum(count for _, count in concept_lists.counts(records))
    numbers = records.reader.records.subjects(CONCEPTS, [each.id for each in found])
    return {numbers[each.id]: each for each in found}, max(0, total - len(found))


def _surroundings(
    records: ConceptRecords, concept_id: str, depth: int, nodes_max: int
) -> tuple[dict[int, Concept], int]:
    """Return what lies within some steps of a concept, and how much of it there is no room for."""
    root = records.subject(concept_id)
    shown = records.by_subject([root])
    frontier = [root]
    left_out = 0
    for _ in range(depth):
        links = sorted(_links(records, frontier), key=lambda link: -link.weight)
        met = list(dict.fromkeys(link.other for link in links if link.other not in shown))
        living = read_some(records.by_subject, met, len(met))
        room = nodes_max - len(shown)
        frontier = [number for number in met if number in living][:room]
        left_out += len(living) - len(frontier)
        shown |= {number: living[number] for number in frontier}
    return shown, left_out


def _place(
    records: ConceptRecords, shown: Mapping[int, Concept], ends: list[LinkEnd]
) -> dict[str, Any]:
    ids = {number: each.id for number, each in shown.items()}
    scores = records.scores(shown.values())
    layout = graph_layout.lay_out(
        [
            ConceptToPlace(each.id, each.name, each.content.get("area"), scores[each.id].value)
            for each in shown.values()
        ],
        [LinkToPlace(ids[link.node], ids[link.other], link.label) for link in ends],
    )
    disputes = find_disputes(records, list(ids.values()))
    at = {each.id: each for each in layout.concepts}
    contents = records.reader.log.contents([link.sequence for link in ends])
    return {
        "concepts": [
            asdict(at[each.id])
            | {
                "name": each.name,
                "explanation": each.content["explanation"][: limits.PICTURE_EXPLANATION_CHARS],
                "place": [
                    each.content[level]
                    for level in ("area", "topic", "subtopic")
                    if level in each.content
                ],
                "certainty": scores[each.id].value,
                "computed": scores[each.id].computed,
                **valid_time.render_period(each.content),
                **(asdict(disputes[each.id]) if each.id in disputes else {}),
            }
            for each in shown.values()
        ],
        "links": [
            {
                "source": ids[link.node],
                "target": ids[link.other],
                "type": link.label,
                "strength": link.weight,
                "notes": content_of(contents[link.sequence].payload).get("notes"),
            }
            for link in ends
        ],
        "areas": [asdict(each) for each in layout.areas],
        "layers": [asdict(each) for each in layout.layers],
        "certainty_bands": CERTAINTY_BANDS,
        "width": layout.width,
        "height": layout.height,
        "unordered_y": layout.unordered_y,
    }


def _page(graph: Mapping[str, Any]) -> str:
    data = orjson.dumps(graph).decode()
    for char in "<>&\u2028\u2029":
        data = data.replace(char, f"\\u{ord(char):04x}")
    return _PAGE.replace("__DATA__", data)


def _links(records: ConceptRecords, nodes: list[int]) -> list[LinkEnd]:
    return (
        records.reader.catalogue.links(records.view, nodes, limit=limits.LINKS_READ_MAX)
        if nodes
        else []
    )
