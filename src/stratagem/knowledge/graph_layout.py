"""Where concepts stand in a picture of the graph: layers by prerequisite depth, from left to right.

A concept stands right of everything that it needs. Within a layer concepts are put in an order in
which few lines cross: each is moved, a few times over, to the mean place of its neighbours. A
layer with many concepts takes several columns. Concepts that neither need anything nor are needed
stand below the others, in layers by whatever relationships they have.

Names are drawn to the right of a point, so columns are wide and rows are low: two names never
overlap. A page draws what it is given here; it computes no position itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, sqrt
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.knowledge import learning_order
from stratagem.knowledge.spaces import PREREQUISITE, UNCATEGORIZED

__all__ = [
    "AREA_COLOURS",
    "CERTAINTY_BANDS",
    "AreaColour",
    "ConceptToPlace",
    "GraphLayer",
    "GraphLayout",
    "LinkToPlace",
    "PlacedConcept",
    "lay_out",
]

# Colours that people who see no red or no green tell apart, on white and on black; the largest
# area has the first. Areas beyond them share the last.
AREA_COLOURS: Final = (
    "#3b82f6",
    "#e0822e",
    "#12a594",
    "#d1467f",
    "#8b6fe8",
    "#a89300",
    "#38a3d1",
    "#c2603f",
    "#5a9e3a",
    "#8a94a0",
)
# A certainty of 0 to 100 belongs to the last band that begins at or below it.
CERTAINTY_BANDS: Final = (0, 25, 50, 75)

_COLUMN_WIDTH: Final = 200.0
_ROW_HEIGHT: Final = 24.0
# Between two layers, and between those with an order and those without.
_LAYER_GAP: Final = 34.0
_BLOCK_GAP: Final = 70.0
# A column may be this high, in rows: a picture of so many concepts is then about 16 : 10.
_ROWS_MIN: Final = 12
_ROWS_PER_CONCEPT: Final = 5.5
# Rounds of moving concepts to their neighbours; more change little.
_ROUNDS: Final = 12
# Each round draws everything this much to the middle, so that what hangs together loosely, or not
# at all, does not drift apart.
_PULL: Final = 0.95


@dataclass(frozen=True, slots=True)
class ConceptToPlace:
    """What the place and the colour of a concept depend on."""

    id: str
    name: str
    area: str | None = None
    certainty: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkToPlace:
    """A relationship between two concepts of a picture."""

    source: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class PlacedConcept:
    """A concept's place; `layer` is its prerequisite depth, None where it has no prerequisites.

    `area` is an index into the areas of the layout, `certainty_band` one into `CERTAINTY_BANDS`.
    """

    id: str
    x: float
    y: float
    layer: int | None
    area: int
    certainty_band: int


@dataclass(frozen=True, slots=True)
class GraphLayer:
    """Concepts of one prerequisite depth: where their columns are, and how many they are."""

    depth: int
    x: float
    width: float
    concepts: int


@dataclass(frozen=True, slots=True)
class AreaColour:
    """An area, how many concepts of it are in the picture, and its colour."""

    name: str
    concepts: int
    colour: str


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """A picture's measures and places; concepts below `unordered_y` have no prerequisites."""

    concepts: list[PlacedConcept]
    layers: list[GraphLayer]
    areas: list[AreaColour]
    width: float
    height: float
    unordered_y: float | None


def lay_out(concepts: Sequence[ConceptToPlace], links: Sequence[LinkToPlace]) -> GraphLayout:
    """Return where to draw some concepts; links that lead elsewhere do not matter.

    The same concepts and links have the same layout, in whatever order they are given.
    """
    areas = _rank_areas(concepts)
    order = sorted(concepts, key=lambda each: (areas[_area_name(each)], each.name, each.id))
    known = {each.id for each in order}
    inner = [each for each in links if {each.source, each.target} <= known]
    needs = sorted({(each.source, each.target) for each in inner if each.type == PREREQUISITE})
    any_link = sorted({(each.source, each.target) for each in inner})
    ordered = {end for pair in needs for end in pair}
    rows = max(_ROWS_MIN, ceil(sqrt(_ROWS_PER_CONCEPT * len(order))))
    upper = _Block([each.id for each in order if each.id in ordered], needs, any_link, rows)
    rest = [each.id for each in order if each.id not in ordered]
    if upper.places:
        rows = max(_ROWS_MIN, ceil(len(rest) * _COLUMN_WIDTH / upper.width))
    lower = _Block(rest, any_link, any_link, rows)
    below = upper.height + _BLOCK_GAP if upper.places and lower.places else 0.0
    places = upper.places | {each: (x, y + below) for each, (x, y) in lower.places.items()}
    return GraphLayout(
        [
            PlacedConcept(
                each.id,
                *places[each.id],
                upper.layer_of.get(each.id),
                areas[_area_name(each)],
                _certainty_band(each.certainty),
            )
            for each in concepts
        ],
        upper.layers,
        _colour_areas(concepts, areas),
        max(upper.width, lower.width),
        below + lower.height if lower.places else upper.height,
        below if lower.places else None,
    )


class _Block:
    """Concepts in layers: columns from left to right, rows by what is next to each."""

    def __init__(
        self,
        concept_ids: Sequence[str],
        needs: Iterable[tuple[str, str]],
        links: Iterable[tuple[str, str]],
        rows_max: int,
    ) -> None:
        steps = learning_order.arrange(concept_ids, needs).steps
        self.layer_of = {each: depth for depth, step in enumerate(steps) for each in step}
        self._neighbours: dict[str, list[str]] = {each: [] for each in concept_ids}
        for source, target in links:
            if source in self._neighbours and target in self._neighbours:
                self._neighbours[source].append(target)
                self._neighbours[target].append(source)
        self._row = {
            each: place - len(step) / 2 for step in steps for place, each in enumerate(step)
        }
        columns = self._settle([_part(step, rows_max) for step in steps])
        self._place(columns)

    def _settle(self, layers: list[list[list[str]]]) -> list[list[list[str]]]:
        """Order the concepts of each layer by their neighbours, there and back."""
        for turn in range(_ROUNDS):
            there = range(len(layers)) if turn % 2 == 0 else reversed(range(len(layers)))
            for number in there:
                columns = layers[number]
                members = [each for column in columns for each in column]
                wanted = {each: self._mean_row(each) for each in members}
                members.sort(key=lambda each: (wanted[each], self._row[each]))
                layers[number] = [members[first :: len(columns)] for first in range(len(columns))]
                for column in layers[number]:
                    self._row |= dict(
                        zip(column, _spread([wanted[each] for each in column]), strict=True)
                    )
        return layers

    def _mean_row(self, concept_id: str) -> float:
        near = self._neighbours[concept_id]
        if not near:
            return _PULL * self._row[concept_id]
        return _PULL * sum(self._row[each] for each in near) / len(near)

    def _place(self, layers: list[list[list[str]]]) -> None:
        top = min(self._row.values(), default=0.0)
        self.places: dict[str, tuple[float, float]] = {}
        self.layers: list[GraphLayer] = []
        x = 0.0
        for depth, columns in enumerate(layers):
            width = _COLUMN_WIDTH * len(columns)
            self.layers.append(GraphLayer(depth, x, width, sum(map(len, columns))))
            for number, column in enumerate(columns):
                for each in column:
                    row = round((self._row[each] - top) * _ROW_HEIGHT, 1)
                    self.places[each] = (x + number * _COLUMN_WIDTH, row)
            x += width + _LAYER_GAP
        self.width = max(x - _LAYER_GAP, 0.0)
        self.height = max((y for _, y in self.places.values()), default=-_ROW_HEIGHT) + _ROW_HEIGHT


def _part(step: Sequence[str], rows_max: int) -> list[list[str]]:
    """Return a layer in columns of about the same height."""
    count = ceil(len(step) / rows_max)
    return [list(step[first::count]) for first in range(count)]


def _spread(wanted: Sequence[float]) -> list[float]:
    """Return places in the same order, at least a row apart, as near to the wanted as can be.

    Pool adjacent violators: concepts that want the same rows become a run, whose place is the mean
    of what its members want; runs that still touch become one.
    """
    runs: list[tuple[float, int]] = []
    for place, want in enumerate(wanted):
        # A place that is 0 for a whole run, so that means can be compared.
        mean, count = want - place, 1
        while runs and runs[-1][0] > mean:
            before, many = runs.pop()
            mean = (before * many + mean * count) / (many + count)
            count += many
        runs.append((mean, count))
    rows = [mean for mean, count in runs for _ in range(count)]
    return [row + place for place, row in enumerate(rows)]


def _area_name(concept: ConceptToPlace) -> str:
    return concept.area or UNCATEGORIZED


def _rank_areas(concepts: Iterable[ConceptToPlace]) -> dict[str, int]:
    """Return the index of each area, the largest first."""
    counted = Counter(map(_area_name, concepts))
    ranked = sorted(counted, key=lambda name: (-counted[name], name))
    return {name: place for place, name in enumerate(ranked)}


def _colour_areas(concepts: Iterable[ConceptToPlace], areas: Mapping[str, int]) -> list[AreaColour]:
    counted = Counter(map(_area_name, concepts))
    last = len(AREA_COLOURS) - 1
    return [
        AreaColour(name, counted[name], AREA_COLOURS[min(at, last)]) for name, at in areas.items()
    ]


def _certainty_band(certainty: float) -> int:
    return sum(certainty >= begin for begin in CERTAINTY_BANDS[1:])
