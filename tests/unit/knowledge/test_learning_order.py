"""Orders in which concepts can be learnt."""

from __future__ import annotations

import random
from itertools import pairwise

from stratagem.knowledge.learning_order import arrange


def test_random_graphs_are_ordered_and_mutual_needs_share_a_step() -> None:
    for seed in range(300):
        dice = random.Random(seed)
        nodes = [f"n{number}" for number in range(dice.randint(1, 12))]
        needs = [(dice.choice(nodes), dice.choice(nodes)) for _ in range(dice.randint(0, 16))]
        needs = [each for each in needs if each[0] != each[1]]

        order = arrange(nodes, needs)

        reach = {node: {node} for node in nodes}
        for _ in nodes:
            for source, target in needs:
                reach[target] |= reach[source]
        step = {each: number for number, group in enumerate(order.steps) for each in group}
        assert sorted(order.places.values()) == list(range(1, len(nodes) + 1))
        for source, target in needs:
            mutual = target in reach[source]
            assert step[source] == step[target] if mutual else step[source] < step[target], seed
        for node in nodes:
            if step[node]:
                group = {each for each in reach[node] if node in reach[each]}
                behind = {source for source, target in needs if target in group} - group
                assert max(step[each] for each in behind) == step[node] - 1, seed


def test_a_chain_longer_than_the_stack_is_ordered() -> None:
    nodes = [str(number) for number in range(20_000)]

    order = arrange(nodes[::-1], pairwise(nodes))

    assert [step[0] for step in order.steps] == nodes
