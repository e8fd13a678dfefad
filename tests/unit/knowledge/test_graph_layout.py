"""Where concepts stand in a picture."""

from __future__ import annotations

import random
from itertools import combinations

from stratagem.knowledge.graph_layout import (
    AREA_COLOURS,
    ConceptToPlace,
    GraphLayout,
    LinkToPlace,
    lay_out,
)


def graph(seed: int, concepts: int, links: int) -> tuple[list[ConceptToPlace], list[LinkToPlace]]:
    dice = random.Random(seed)
    made = [
        ConceptToPlace(str(each), f"C{each}", dice.choice("ABC"), dice.uniform(0, 100))
        for each in range(concepts)
    ]
    ends = [sorted(dice.sample(range(concepts), 2)) for _ in range(links)]
    types = ("prerequisite", "prerequisite", "includes")
    return made, [LinkToPlace(str(a), str(b), dice.choice(types)) for a, b in ends]


def crossings(layout: GraphLayout, links: list[LinkToPlace]) -> int:
    at = {each.id: each for each in layout.concepts}
    lines = [(at[each.source], at[each.target]) for each in links if each.type == "prerequisite"]
    return sum(
        (a.y - c.y) * (b.y - d.y) < 0
        for (a, b), (c, d) in combinations(lines, 2)
        if (a.layer, b.layer) == (c.layer, d.layer)
    )


def test_a_concept_stands_right_of_all_that_it_needs_and_two_never_overlap() -> None:
    for seed in range(60):
        concepts, links = graph(seed, concepts=2 + seed, links=seed)

        layout = lay_out(concepts, links)

        at = {each.id: each for each in layout.concepts}
        assert list(at) == [each.id for each in concepts]
        for link in links:
            if link.type == "prerequisite":
                source, target = at[link.source], at[link.target]
                assert source.x < target.x, seed
                assert source.layer is not None
                assert target.layer is not None
                assert source.layer < target.layer
        for one, other in combinations(layout.concepts, 2):
            assert abs(one.x - other.x) >= 200 or abs(one.y - other.y) >= 23.8, seed
        assert all(0 <= each.x < layout.width for each in layout.concepts)
        assert all(0 <= each.y < layout.height for each in layout.concepts)


def test_concepts_without_prerequisites_stand_below_the_others() -> None:
    concepts = [ConceptToPlace(each, each) for each in "abcd"]
    links = [LinkToPlace("a", "b", "prerequisite"), LinkToPlace("c", "d", "includes")]

    layout = lay_out(concepts, links)

    a, b, c, d = layout.concepts
    assert (a.layer, b.layer, c.layer, d.layer) == (0, 1, None, None)
    assert layout.unordered_y is not None
    assert max(a.y, b.y) < layout.unordered_y <= min(c.y, d.y)
    assert c.x < d.x
    assert [(each.depth, each.concepts) for each in layout.layers] == [(0, 1), (1, 1)]


def test_the_order_in_which_a_graph_is_given_does_not_matter() -> None:
    concepts, links = graph(5, concepts=40, links=70)
    dice = random.Random(1)
    before = {each.id: each for each in lay_out(concepts, links).concepts}

    dice.shuffle(concepts)
    dice.shuffle(links)

    assert {each.id: each for each in lay_out(concepts, links).concepts} == before


def test_fewer_lines_cross_than_in_the_order_of_names() -> None:
    better = 0
    for seed in range(10):
        concepts, links = graph(seed, concepts=60, links=80)
        layout = lay_out(concepts, links)
        plain = lay_out(concepts, [])
        rows = {each.id: each.y for each in plain.concepts}
        unsorted = GraphLayout(
            [
                type(each)(each.id, each.x, rows[each.id], each.layer, 0, 0)
                for each in layout.concepts
            ],
            [],
            [],
            0,
            0,
            None,
        )
        better += crossings(layout, links) < 0.7 * crossings(unsorted, links)

    assert better == 10


def test_a_layer_with_many_concepts_takes_several_columns() -> None:
    concepts = [ConceptToPlace(str(each), f"C{each:03}") for each in range(301)]
    links = [LinkToPlace("0", str(each), "prerequisite") for each in range(1, 301)]

    layout = lay_out(concepts, links)

    assert len({each.x for each in layout.concepts}) > 4
    assert layout.height < layout.width
    assert {each.layer for each in layout.concepts} == {0, 1}


def test_colours_follow_the_size_of_areas_and_the_bands_of_certainty() -> None:
    concepts = [
        ConceptToPlace("1", "1", None, 10),
        ConceptToPlace("2", "2", "Maths", 74),
        ConceptToPlace("3", "3", "Maths", 75),
    ]

    layout = lay_out(concepts, [])

    assert [(each.name, each.concepts) for each in layout.areas] == [
        ("Maths", 2),
        ("Uncategorized", 1),
    ]
    assert layout.areas[0].colour == AREA_COLOURS[0]
    assert [each.area for each in layout.concepts] == [1, 0, 0]
    assert [each.certainty_band for each in layout.concepts] == [0, 2, 3]


def test_more_areas_than_colours_share_the_last_one() -> None:
    concepts = [ConceptToPlace(str(each), "n", f"Area {each:02}") for each in range(15)]

    colours = [each.colour for each in lay_out(concepts, []).areas]

    assert colours == [*AREA_COLOURS, *[AREA_COLOURS[-1]] * 5]


def test_a_cycle_that_a_merge_made_and_an_empty_graph_have_a_layout() -> None:
    concepts = [ConceptToPlace(each, each) for each in "ab"]
    links = [LinkToPlace("a", "b", "prerequisite"), LinkToPlace("b", "a", "prerequisite")]

    assert {each.layer for each in lay_out(concepts, links).concepts} == {0}
    assert lay_out([], []).concepts == []
