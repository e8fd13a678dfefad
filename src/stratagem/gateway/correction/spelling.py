"""How many slips lie between two words."""

from __future__ import annotations

__all__ = ["distance"]


def distance(one: str, other: str, most: int) -> int:
    """Return how many letters are missing, extra, wrong or swapped; `most` stands for more.

    A swap of two neighbours counts as one slip (optimal string alignment).
    """
    if abs(len(one) - len(other)) >= most or len(set(one) ^ set(other)) >= 2 * most:
        return most
    one, other = _without_ends(one, other)
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [at] + [0] * len(other)
        for to, wanted in enumerate(other, start=1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != wanted))
            swapped = at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted
            row[to] = min(cost, earlier[to - 2] + 1) if swapped else cost
        if min(row) >= most and min(before) >= most:
            return most
    return min(row[-1], most)


def _without_ends(one: str, other: str) -> tuple[str, str]:
    """Cut off what both begin and end with: slips lie in between."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    end = 0
    while end < min(len(one), len(other)) and one[-1 - end] == other[-1 - end]:
        end += 1
    return (one[:-end], other[:-end]) if end else (one, other)
