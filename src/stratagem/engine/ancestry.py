"""What two branches have in common.

Each branch knows a prefix of some branches: of itself everything, of its parent what
came before the fork, of a branch it merged what that branch held and knew at the time.
Written as a vector, branch → sequence, knowledge only grows, and what two branches have
in common is the smaller of each entry. This is a version vector, with sequences of one log
for counters: because sequences number the whole log, no branch has to count for itself.

The base of a record is the version in that common knowledge which no other one in it
supersedes. After criss-cross merges there can be several such versions:

    main:   a ── b ── merges c ── …
    trial:  a ── c ── merges b ── …

Both branches know b and c, and neither of these knows the other. They are merged into a
virtual base, as recursive merge does in Git: to choose either would show the other side's
change as new, and bring back a conflict that both sides have resolved.
"""

from __future__ import annotations

from collections.abc import Mapping

from stratagem.engine.lineage import Cut

__all__ = ["Vector", "intersection", "maximal_versions", "union"]

Vector = dict[int, int]


def intersection(one: Mapping[int, int], other: Mapping[int, int]) -> Vector:
    """Return the knowledge that two branches share."""
    return {branch: min(seq, other[branch]) for branch, seq in one.items() if branch in other}


def union(one: Mapping[int, int], other: Mapping[int, int]) -> Vector:
    """Return the joint knowledge of two branches."""
    both = dict(one)
    for branch, sequence in other.items():
        both[branch] = max(sequence, both.get(branch, 0))
    return both


def maximal_versions(
    known: Mapping[Cut, Mapping[int, int]], held: Mapping[Cut, Mapping[int, int]] | None = None
) -> list[Cut]:
    """Return the versions of a record that none of the others supersedes.

    A version is named by the branch that holds it and its sequence, and comes with what that branch
    knows. One supersedes another if its branch knows that version and everything that version was
    made from: all that the other's branch knows or, if `held` is given, only the versions of the
    record in it. Two versions that supersede each other have the same content, so the later one
    represents both.
    """

    def needed_knowledge(version: Cut) -> Mapping[int, int]:
        if held is not None:
            return held[version]
        # Of its own branch the version is enough: what was written there later did not go into it.
        return {**known[version], version.branch: version.limit}

    def supersedes(other: Cut, version: Cut) -> bool:
        return all(
            known[other].get(branch, 0) >= upto
            for branch, upto in needed_knowledge(version).items()
        )

    # The latest first, so that of two that supersede each other the later is met first and stays.
    maximal: list[Cut] = []
    for version in sorted(known, key=lambda cut: cut.limit, reverse=True):
        if not any(supersedes(other, version) for other in maximal):
            maximal = [other for other in maximal if not supersedes(version, other)]
            maximal.append(version)
    return maximal
