"""Questions about relationships, answered by a service outside of the database.

It decides which concepts are found; their names and their existence are read from the log. So
writes of other clients to the service, or deleted concepts that it still has, cannot be seen in an
answer.
"""

from __future__ import annotations

from collections.abc import Collection

from stratagem import limits
from stratagem.engine.lineage import View
from stratagem.knowledge.graph import BuiltInGraph, Required, Walk, read_some
from stratagem.knowledge.models import Direction, PathStep, Related
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.spaces import PREREQUISITE, TYPES
from stratagem.search.external_services import GraphService
from stratagem.storage.contract import Reader

__all__ = ["ExternalGraph"]

_WAYS = {"outgoing": True, "incoming": False}


class ExternalGraph:
    """See `stratagem.knowledge.graph.Graph`."""

    def __init__(self, service: GraphService, reader: Reader, view: View) -> None:
        self._service = service
        self._reader = reader
        self._view = view
        self._records = ConceptRecords(reader, view)

    def neighbours(
        self, concept_id: str, *, direction: str, label: str | None, limit: int
    ) -> list[Related]:
        """See `Graph`."""
        if label is not None and label not in TYPES:
            # The service keeps declared types under one name.
            ours = BuiltInGraph(self._reader, self._view)
            return ours.neighbours(concept_id, direction=direction, label=label, limit=limit)
        found = self._service.neighbours(
            concept_id, outgoing=_WAYS.get(direction), label=label, limit=limit
        )
        concepts = self._records.by_id([each.key for each in found])
        return [
            Related(
                each.key,
                concepts[each.key].name,
                each.label.upper(),
                _direction(outgoing=each.outgoing),
                each.weight,
            )
            for each in found
            if each.key in concepts
        ]

    def prerequisites(self, concept_id: str, known: Collection[str] = ()) -> Walk:
        """See `Graph`."""
        reached: dict[str, Required] = {}
        frontier, seen = [concept_id], {concept_id, *known}
        circular = more = False
        depth = 0
        while frontier and not more:
            depth += 1
            sources = self._service.sources(frontier, PREREQUISITE, limit=limits.LINKS_READ_MAX)
            circular = circular or concept_id in sources
            met = list(dict.fromkeys(each for each in sources if each not in seen))
            seen.update(met)
            room = limits.PREREQUISITES_MAX - len(reached)
            concepts = read_some(self._records.by_id, met, room + 1)
            frontier = [each for each in met if each in concepts]
            more = len(frontier) > room or len(sources) == limits.LINKS_READ_MAX
            reached |= {each: Required(concepts[each], depth) for each in frontier[:room]}
        # The service says what is reached; what needs what is read from the log, as names are.
        needs = BuiltInGraph(self._reader, self._view).needs([concept_id, *reached])
        kept = [each for each in needs if each[0] in reached or each[0] == concept_id]
        return Walk(list(reached.values()), kept, more, circular)

    def path(self, start_id: str, end_id: str, depth_max: int) -> list[PathStep] | None:
        """See `Graph`."""
        steps = self._service.path(start_id, end_id)
        if steps is None or len(steps) - 1 > depth_max:
            return None
        concepts = self._records.by_id([step.key for step in steps])
        if any(step.key not in concepts for step in steps):
            # Written between the question and the answer: the log knows a path of its own time.
            return BuiltInGraph(self._reader, self._view).path(start_id, end_id, depth_max)
        return [
            PathStep(
                step.key,
                concepts[step.key].name,
                step.label.upper() if step.label else None,
                None if step.outgoing is None else _direction(outgoing=step.outgoing),
            )
            for step in steps
        ]


def _direction(*, outgoing: bool) -> Direction:
    return "outgoing" if outgoing else "incoming"
