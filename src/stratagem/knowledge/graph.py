"""Walking the graph of concepts.

A path is searched for from both ends at once, each step on the side that has fewer
relationships to read. So a well-connected concept is walked through, but its own relationships
are read only when both ends have nothing smaller left, and then up to a bound.

Walks and paths do not pass through deleted concepts. Whether a concept is deleted is asked of
those on the path that was found, not of every one that was met: a deleted concept is rare, and
asking costs as much as the step. A path with one on it is searched for again without it. Asked
about a moment, relationships and concepts that did not hold then are passed over like deleted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Literal, Protocol, TypeVar

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import View
from stratagem.knowledge.models import PathStep, Related
from stratagem.knowledge.records import Concept, ConceptRecords, content_of
from stratagem.knowledge.spaces import CONCEPTS, PREREQUISITE
from stratagem.knowledge.valid_time import holds_at
from stratagem.storage.catalogue import LinkEnd
from stratagem.storage.contract import Reader

__all__ = ["BuiltInGraph", "Graph", "Required", "Walk", "read_some"]

Way = tuple[bool, str] | None
Living = Callable[[Sequence[int]], dict[int, Concept]]
N = TypeVar("N", int, str)

# A side with more relationships than this is a large one, whatever their number.
_LARGE: Final = 2_000
# Of a step so many concepts are looked at together; the last step often ends among the first.
_AT_ONCE: Final = 16
# Concepts that are read together on a walk that may end before it has read them all.
_READ_AT_ONCE: Final = 256
# How often a path is searched for again before every concept that is met is looked at.
_TRIES: Final = 8


class Required(NamedTuple):
    """A concept that another requires, at the end of a shortest way of so many steps."""

    concept: Concept
    depth: int


class Walk(NamedTuple):
    """Everything that a concept requires, nearest first, and the pairs of which needs which.

    `more`: there is more than a walk reads. Nobody can write a cycle of prerequisites, but two
    branches that have none may have one together, and a merge unites what they have: `circular`
    says that the concept requires itself.
    """

    found: list[Required]
    needs: list[tuple[str, str]]
    more: bool = False
    circular: bool = False


class Graph(Protocol):
    """What answers questions about relationships: for one view, in ids of live concepts."""

    def neighbours(
        self, concept_id: str, *, direction: str, label: str | None, limit: int
    ) -> list[Related]:
        """Return the concepts next to one, those with the strongest relationships first."""
        ...

    def prerequisites(self, concept_id: str, known: Collection[str] = ()) -> Walk:
        """Return what a concept requires, nearest first, and nothing beyond what is `known`."""
        ...

    def path(self, start_id: str, end_id: str, depth_max: int) -> list[PathStep] | None:
        """Return a shortest path, along relationships or against them; None where none is."""
        ...


class _Links(NamedTuple):
    """Relationships that a view shows; with a moment, those that held then."""

    reader: Reader
    view: View
    at: int | None

    def read(self, nodes: Sequence[int], limit: int, by: Way = None) -> list[LinkEnd]:
        """Return the relationships of some concepts."""
        return self.select_held(self.reader.catalogue.links(self.view, nodes, limit=limit, by=by))

    def select_held(self, links: list[LinkEnd]) -> list[LinkEnd]:
        """Return the relationships that held at the moment."""
        if self.at is None or not links:
            return links
        contents = self.reader.log.contents([link.sequence for link in links])
        return [
            link for link in links if holds_at(content_of(contents[link.sequence].payload), self.at)
        ]


class BuiltInGraph:
    """See `Graph`: answered by the database itself, in any view and about any moment."""

    def __init__(self, reader: Reader, view: View, at: int | None = None) -> None:
        self._reader = reader
        self._view = view
        self._at = at
        self._links = _Links(reader, view, at)
        self._records = ConceptRecords(reader, view)

    def _read_living(self, subjects: Sequence[int]) -> dict[int, Concept]:
        """Return concepts that are there, and held at the moment."""
        found = self._records.by_subject(subjects)
        return {node: each for node, each in found.items() if self._holds_then(each)}

    def _holds_then(self, concept: Concept) -> bool:
        return self._at is None or holds_at(concept.content, self._at)

    def neighbours(
        self, concept_id: str, *, direction: str, label: str | None, limit: int
    ) -> list[Related]:
        """See `Graph`."""
        node = self._records.subject(concept_id)
        # How many of the strongest held then is known when they are read.
        most = limit if self._at is None else limits.LINKS_READ_MAX
        links = [
            link
            for outgoing in _ways(direction)
            for each in ([label] if label else self._records.labels())
            for link in self._reader.catalogue.strongest_links(
                self._view, node, outgoing=outgoing, label=each, limit=most
            )
        ]
        links = self._links.select_held(links)
        links.sort(key=lambda link: (-link.weight, link.sequence))
        concepts = self._read_living([link.other for link in links[:most]])
        nearest = [link for link in links[:most] if link.other in concepts][:limit]
        return [
            Related(
                concepts[link.other].id,
                concepts[link.other].name,
                link.label.upper(),
                _direction(outgoing=link.outgoing),
                link.weight,
            )
            for link in nearest
        ]

    def prerequisites(self, concept_id: str, known: Collection[str] = ()) -> Walk:
        """See `Graph`."""
        root = self._records.subject(concept_id)
        barred = set(self._reader.records.subjects(CONCEPTS, sorted(known)).values()) - {root}
        reached: dict[int, Required] = {}
        frontier = [root]
        seen = {root} | barred
        links: list[LinkEnd] = []
        more = False
        while frontier and not more:
            step = self._links.read(frontier, limits.LINKS_READ_MAX, (False, PREREQUISITE))
            links += step
            met = list(dict.fromkeys(link.other for link in step if link.other not in seen))
            seen.update(met)
            room = limits.PREREQUISITES_MAX - len(reached)
            concepts = read_some(self._read_living, met, room + 1)
            depth = reached[frontier[0]].depth + 1 if frontier[0] in reached else 1
            frontier = [number for number in met if number in concepts]
            more = len(frontier) > room or len(step) == limits.LINKS_READ_MAX
            reached |= {each: Required(concepts[each], depth) for each in frontier[:room]}
        circular = any(link.other == root for link in links)
        ids = {node: each.concept.id for node, each in reached.items()} | {root: concept_id}
        needs = [
            (ids[link.other], ids[link.node])
            for link in links
            if link.other in ids and link.node in ids
        ]
        return Walk(list(reached.values()), needs, more, circular)

    def path(self, start_id: str, end_id: str, depth_max: int) -> list[PathStep] | None:
        """See `Graph`."""
        ends = self._records.subject(start_id), self._records.subject(end_id)
        barred: set[int] = set()
        for attempt in range(_TRIES + 1):
            search = _Search(self._links, *ends, barred=barred)
            living = self._read_living if attempt == _TRIES else None
            steps = search.run(depth_max, living)
            if steps is None:
                return None
            concepts = self._records.by_subject([step.node for step in steps])
            # The ends were asked about, whenever they held.
            held = {
                node for node, each in concepts.items() if node in ends or self._holds_then(each)
            }
            dead = {step.node for step in steps} - held
            if not dead:
                return [
                    PathStep(
                        concepts[step.node].id,
                        concepts[step.node].name,
                        step.label.upper() if step.label else None,
                        None if step.outgoing is None else _direction(outgoing=step.outgoing),
                    )
                    for step in steps
                ]
            barred |= dead
        raise AssertionError("the last search meets no deleted concept")

    def cycle(self, source_id: str, target_id: str) -> list[str] | None:
        """Return the concepts of the cycle that a prerequisite would close, in order.

        Deleted concepts count: a restored one must not bring a cycle with it.
        """
        source, target = self._records.subject(source_id), self._records.subject(target_id)
        ways: tuple[Way, Way] = ((True, PREREQUISITE), (False, PREREQUISITE))
        # All of it is read: what is not found here is written.
        search = _Search(self._links, target, source, ways=ways, links_max=-1)
        steps = search.run(limits.CYCLE_DEPTH_MAX)
        if steps is None:
            return None
        named = self._reader.records.names([step.node for step in steps])
        return [source_id, *(named[step.node][1] for step in steps)]

    def needs(self, concept_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return what some concepts require themselves: pairs of what is needed, and by what."""
        numbers = self._reader.records.subjects(CONCEPTS, concept_ids)
        links = self._links.select_held(
            self._reader.catalogue.links(
                self._view, sorted(numbers.values()), by=(False, PREREQUISITE)
            )
        )
        named = self._reader.records.names(sorted({link.other for link in links}))
        ids = {number: concept_id for concept_id, number in numbers.items()}
        return [(named[link.other][1], ids[link.node]) for link in links]

    def circle(self, concept_id: str) -> list[str]:
        """Return a cycle of prerequisites that a concept is on, in order; empty where none is."""
        root = self._records.subject(concept_id)
        # By concept: what it is a prerequisite of, on the way from the root.
        after: dict[int, int] = {}
        frontier = [root]
        while frontier:
            links = self._links.read(frontier, limits.LINKS_READ_MAX, (False, PREREQUISITE))
            living = self._read_living(list({link.other for link in links}))
            frontier = []
            for link in links:
                if link.other == root:
                    circle = [root, link.node]
                    while circle[-1] != root:
                        circle.append(after[circle[-1]])
                    named = self._reader.records.names(circle)
                    return [named[node][1] for node in circle]
                if link.other in living and link.other not in after:
                    after[link.other] = link.node
                    frontier.append(link.other)
        return []


class _Step(NamedTuple):
    """A place on a path, and the relationship that leads on from it."""

    node: int
    label: str | None = None
    outgoing: bool | None = None


class _Side:
    """One end of a search, and what was reached from it."""

    def __init__(self, root: int, way: Way) -> None:
        self.root = root
        self.way = way
        self.depth = 0
        self.frontier = [root]
        # About how many relationships the frontier has; None until somebody asks.
        self.size: int | None = None
        # By node: the relationship it was first reached by.
        self.reached: dict[int, LinkEnd | None] = {root: None}

    def back(self, node: int) -> Iterator[LinkEnd]:
        """Return the relationships from a node back to the root."""
        link = self.reached[node]
        while link is not None:
            yield link
            link = self.reached[link.node]


class _Search:
    """One search for a shortest path."""

    def __init__(
        self,
        links: _Links,
        start: int,
        end: int,
        *,
        ways: tuple[Way, Way] = (None, None),
        barred: set[int] | frozenset[int] = frozenset(),
        links_max: int | None = None,
    ) -> None:
        self._links = links
        self._fore = _Side(start, ways[0])
        self._back = _Side(end, ways[1])
        self._barred = barred
        # In one step; -1 for all.
        self._links_max = limits.LINKS_READ_MAX if links_max is None else links_max

    def run(self, depth_max: int, living: Living | None = None) -> list[_Step] | None:
        """Return the path; looking only at concepts that are there, where it can read them."""
        fore, back = self._fore, self._back
        if fore.root == back.root:
            return [_Step(fore.root)]
        while fore.depth + back.depth < depth_max and fore.frontier and back.frontier:
            near, far = (fore, back) if self._size(fore) <= self._size(back) else (back, fore)
            meeting = self._grow(near, far, living)
            if meeting is not None:
                return list(self._steps(meeting))
        return None

    def _size(self, side: _Side) -> tuple[int, int]:
        if side.size is None:
            side.size = self._links.reader.catalogue.link_count(side.frontier, _LARGE)
        return side.size, len(side.frontier)

    def _grow(self, side: _Side, other: _Side, living: Living | None) -> int | None:
        """Take one step on a side, or as much of it as it takes to meet the other one."""
        frontier, side.frontier, side.size = side.frontier, [], None
        side.depth += 1
        room = self._links_max
        for begin in range(0, len(frontier), _AT_ONCE):
            links = self._links.read(frontier[begin : begin + _AT_ONCE], room, side.way)
            room = room if room < 0 else max(0, room - len(links))
            met = self._newly_reached(side, links, living)
            side.reached.update(met)
            side.frontier += met
            meeting = next((node for node in met if node in other.reached), None)
            if meeting is not None:
                return meeting
        return None

    def _newly_reached(
        self, side: _Side, links: list[LinkEnd], living: Living | None
    ) -> dict[int, LinkEnd]:
        """Return the nodes that are reached for the first time, and by which link."""
        met: dict[int, LinkEnd] = {}
        for link in links:
            if link.other not in side.reached and link.other not in self._barred:
                met.setdefault(link.other, link)
        if living is None:
            return met
        there = living(list(met))
        ends = {self._fore.root, self._back.root}
        return {node: link for node, link in met.items() if node in there or node in ends}

    def _steps(self, meeting: int) -> Iterator[_Step]:
        for link in reversed(list(self._fore.back(meeting))):
            yield _Step(link.node, link.label, link.outgoing)
        for link in self._back.back(meeting):
            # It was walked from the end; seen from the start it leads the other way.
            yield _Step(link.other, link.label, not link.outgoing)
        yield _Step(self._back.root)


def read_some(
    read: Callable[[Sequence[N]], dict[N, Concept]], met: Sequence[N], most: int
) -> dict[N, Concept]:
    """Read concepts in their order, until there are at least so many that are not deleted."""
    found: dict[N, Concept] = {}
    for begin in range(0, len(met), _READ_AT_ONCE):
        found |= read(met[begin : begin + _READ_AT_ONCE])
        if len(found) >= most:
            break
    return found


def _ways(direction: str) -> Sequence[bool]:
    return {"outgoing": (True,), "incoming": (False,)}.get(direction, (True, False))


def _direction(*, outgoing: bool) -> Literal["incoming", "outgoing"]:
    return "outgoing" if outgoing else "incoming"
