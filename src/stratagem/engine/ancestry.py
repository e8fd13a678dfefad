"""What two branches have in common.

Each branch knows a prefix of some branches: of itself everything, of its parent what
came before the fork, of a branch it merged what that branch held and knew at the time.
Written as a vector, branch → sequence, knowledge only grows, and what two branches have
in common is the smaller of each entry.

The base of a record is the version in that common knowledge which no other one in it
supersedes. After criss-cross merges there can be several such versions; they are merged
into a virtual base, as nothing else gives every side its due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stratagem.engine.lineage import Cut

__all__ = ["Vector", "common", "joined", "maximal"]

Vector = dict[int, int]


def common(one: Mapping[int, int], other: Mapping[int, int]) -> Vector:
    """Return what both know."""
    return {branch: min(seq, other[branch]) for branch, seq in one.items() if branch in other}


def joined(one: Mapping[int, int], other: Mapping[int, int]) -> Vector:
    """Return what either knows."""
    both = dict(one)
    for branch, sequence in other.items():
        both[branch] = max(sequence, both.get(branch, 0))
    return both


def maximal(versions: Sequence[Cut], knowledge: Callable[[int, int], Vector]) -> list[Cut]:
    """Return the versions that no other of them knew of when it was written.

    A version is named by its branch and sequence.
    """
    if len(versions) < 2:  # noqa: PLR2004 -- one version is its own maximum
        return list(versions)
    known = [knowledge(branch, sequence) for branch, sequence in versions]
    return [
        version
        for place, version in enumerate(versions)
        if not any(
            other != place and vector.get(version.branch, 0) >= version.limit
            for other, vector in enumerate(known)
        )
    ]
