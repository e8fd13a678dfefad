"""Numbers are found at the same places by a table as by a binary search."""

import numpy as np
import pytest

from stratagem.storage.sorted_numbers import SortedNumbers

SEARCHES = 20


@pytest.mark.parametrize("step", [1, 3, 1_000])
def test_numbers_are_found_however_often_is_asked(step: int) -> None:
    numbers = np.arange(50, 50 + 400 * step, step)
    numbers = np.delete(numbers, [0, 7, 8, 200])
    wanted = np.random.default_rng(0).permutation(np.arange(40, 60 + 400 * step, max(step // 2, 1)))
    known = SortedNumbers(numbers)

    for _ in range(SEARCHES):
        there, places = known.find(wanted)

        assert there.tolist() == np.isin(wanted, numbers).tolist()
        assert numbers[places[there]].tolist() == wanted[there].tolist()


def test_passages_are_found_though_some_are_missing() -> None:
    passages = [(text, number) for text in range(3, 90) for number in range(text % 5)]
    rows = np.array([text << 8 | number for text, number in passages if (text, number) != (9, 1)])
    wanted = np.array([2 << 8, *rows[::3], 9 << 8 | 1, 9 << 8 | 2, 14 << 8 | 77, 91 << 8])
    known = SortedNumbers(rows, bits=8)

    for _ in range(SEARCHES):
        there, places = known.find(wanted)

        assert there.tolist() == np.isin(wanted, rows).tolist()
        assert rows[places[there]].tolist() == wanted[there].tolist()
