"""Three-way merge of one record.

Each of two branches has a version of a record, and the base is the version that both of them knew.
A change on one side is taken; the same change on both sides is taken once; different changes on
both sides are a conflict. Objects are merged field by field, at any depth; arrays and scalars as
wholes. A field that exists in one version and not in another is ABSENT there, so that adding and
deleting are changes like any other, and deleting what the other side edited is a conflict.

Three rules need saying:

* An object that both sides added is merged as if the base had held an empty one: two agents that
  each filled in one field of a new `settings` do not conflict.
* Where the base held an object and one side put something else in its place, there are no fields
  to compare: any edit of the other side conflicts at that place as a whole.
* Fields named in `sets` hold sets of texts, such as tags. Both sides' additions and removals are
  applied to the base, and nothing conflicts.

A record may expire at a time that is stored in one of its fields, named by `expiry`. A merge reads
that field and never the clock, so that the same versions always give the same result, whenever and
in whichever order they are merged (docs/adr/0030):

* If both sides changed a record and the versions expire at different times, the one that expires
  later is taken whole. A version without expiry counts as the latest, and so does a deletion.
* Two versions that expire together are merged by field, without open conflicts: in a place that
  conflicts, the value that is greater in the order of its JSON is taken. Their base must expire at
  the same time, because a version with another expiry went into neither of them.

Where two branches have merged each other crosswise there is no single base, and one is made by
merging the candidates (`virtual_base`). A place in which those conflict is AMBIGUOUS: like NaN, it
differs from everything, itself included. It occurs only in a base, turns any difference between the
sides into a conflict, and is never shown to a caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import Final, Literal, TypeAlias, cast

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.paths import Steps
from stratagem.engine.values import Json, same

__all__ = [
    "ABSENT",
    "AMBIGUOUS",
    "Base",
    "ChangedBy",
    "Choice",
    "Chosen",
    "FieldConflict",
    "Mark",
    "Merged",
    "Side",
    "changed_by",
    "changed_places",
    "expiry_of",
    "resolve",
    "three_way",
    "virtual_base",
]


class Mark(Enum):
    """Marks of places that have no JSON value."""

    ABSENT = "absent"
    AMBIGUOUS = "ambiguous"

    def __eq__(self, other: object) -> bool:
        # Like NaN, unequal to itself: each comparison with it finds a change.
        return self is other and self is not Mark.AMBIGUOUS

    __hash__ = Enum.__hash__


ABSENT: Final = Mark.ABSENT
AMBIGUOUS: Final = Mark.AMBIGUOUS

Side: TypeAlias = Json | Literal[Mark.ABSENT]
Base: TypeAlias = "Mapping[str, Base] | list[Json] | str | int | float | bool | Mark | None"

# Which of two sides changed something since the base.
ChangedBy: TypeAlias = Literal["ours", "theirs", "both"]

_NO_SETS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A place that both sides changed differently; ABSENT where a version has nothing there."""

    path: Steps
    base: Side
    ours: Side
    theirs: Side


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value that neither side has, chosen for a place."""

    value: Json


# The decision for a place that conflicts.
Choice: TypeAlias = Literal["ours", "theirs"] | Chosen


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge gives. Where it conflicts, `value` holds our side.

    `settled`: the sides differed, and the rules of expiry chose between them.
    """

    value: Side
    conflicts: tuple[FieldConflict, ...]
    settled: bool = False


def three_way(
    base: Base,
    ours: Side,
    theirs: Side,
    *,
    sets: frozenset[str] = _NO_SETS,
    expiry: str | None = None,
) -> Merged:
    """Merge two versions of a record that come from one base.

    All changes of both sides are in the value or among the conflicts, except those that the rules
    of expiry discarded. Keys are in our order, followed by those that the other side added. The
    arguments are not modified.
    """
    if _is_settled(ours, theirs, expiry):
        settled, value = _settle(base, ours, theirs, sets, expiry)
        return Merged(cast("Side", value), (), settled)
    merge = _Merge("ours", sets)
    value = merge.place(base, ours, theirs, ())
    return Merged(cast("Side", value), tuple(merge.conflicts))


def resolve(
    base: Base,
    ours: Side,
    theirs: Side,
    *,
    prefer: Literal["ours", "theirs"] = "ours",
    choices: Mapping[Steps, Choice] | None = None,
    sets: frozenset[str] = _NO_SETS,
) -> Side:
    """Merge two versions, and use the given decisions in the places that conflict.

    A conflict without a decision takes the preferred side.
    """
    return cast("Side", _Merge(prefer, sets, choices or {}).place(base, ours, theirs, ()))


def virtual_base(
    base: Base,
    one: Base,
    other: Base,
    *,
    sets: frozenset[str] = _NO_SETS,
    expiry: str | None = None,
) -> Base:
    """Merge two candidates for a base into one, AMBIGUOUS in the places that conflict.

    A candidate may itself be a virtual base, so that any number of them can be folded into one.
    Places that the rules of expiry decide are not ambiguous, because every branch decides them
    alike.
    """
    if _is_settled(one, other, expiry):
        return _settle(base, one, other, sets, expiry)[1]
    return _Merge("neither", sets).place(base, one, other, ())


def changed_by(base: Base, ours: Base, theirs: Base) -> ChangedBy:
    """Return which of two different sides differs from the base."""
    if base is ours or same(base, ours):
        return "theirs"
    return "ours" if same(base, theirs) else "both"


def changed_places(base: Base, ours: Base, theirs: Base) -> dict[Steps, ChangedBy]:
    """Return the places in which two sides differ, and which of them changed each.

    They are the places that a merge would look at: fields at any depth, arrays as wholes.
    """
    return dict(_changed_places(base, ours, theirs, ()))


def _changed_places(
    base: Base, ours: Base, theirs: Base, path: Steps
) -> Iterator[tuple[Steps, ChangedBy]]:
    if isinstance(ours, dict) and isinstance(theirs, dict) and isinstance(base, dict | Mark):
        for name in ours | theirs:
            inner = base if isinstance(base, Mark) else base.get(name, ABSENT)
            sides = ours.get(name, ABSENT), theirs.get(name, ABSENT)
            yield from _changed_places(inner, *sides, (*path, name))
    elif not same(ours, theirs):
        yield path, changed_by(base, ours, theirs)


def expiry_of(side: Base, expiry: str | None) -> int | None:
    """Return when a version expires; None if it never does, also for a deletion or no version."""
    ends = side.get(expiry) if expiry is not None and isinstance(side, dict) else None
    return cast("int | None", ends)


def _is_settled(ours: Base, theirs: Base, expiry: str | None) -> bool:
    """Whether one of two versions expires, so that the rules of expiry decide between them."""
    return expiry_of(ours, expiry) is not None or expiry_of(theirs, expiry) is not None


def _settle(
    base: Base, ours: Base, theirs: Base, sets: frozenset[str], expiry: str | None
) -> tuple[bool, Base]:
    """Merge two versions of which at least one expires; say whether anything was chosen."""
    if same(base, theirs):
        return False, ours
    if same(base, ours):
        return False, theirs
    ends = [expiry_of(side, expiry) for side in (ours, theirs)]
    if ends[0] == ends[1]:
        merge = _Merge("greater", sets)
        value = merge.place(base, ours, theirs, ())
        return bool(merge.conflicts), value
    # No expiry (None) is later than any.
    ours_later = ends[0] is None or (ends[1] is not None and ends[0] > ends[1])
    return True, ours if ours_later else theirs


@dataclass(slots=True)
class _Merge:
    prefer: Literal["ours", "theirs", "greater", "neither"]
    sets: frozenset[str]
    choices: Mapping[Steps, Choice] = field(default_factory=dict)
    conflicts: list[FieldConflict] = field(default_factory=list)

    def place(self, base: Base, ours: Base, theirs: Base, path: Steps) -> Base:
        """Merge the values of the versions in one place."""
        if isinstance(ours, dict) and isinstance(theirs, dict) and isinstance(base, dict | Mark):
            return self.fields(base, ours, theirs, path)
        # The sides first: where they agree it does not matter what the base was.
        if same(ours, theirs) or same(base, theirs):
            return ours
        if same(base, ours):
            return theirs
        if self.is_set(path) and _all_sets(base, ours, theirs):
            return _merge_sets(base, ours, theirs)
        return self.conflict(base, ours, theirs, path)

    def fields(
        self,
        base: dict[str, Base] | Mark,
        ours: dict[str, Base],
        theirs: dict[str, Base],
        path: Steps,
    ) -> Base:
        """Merge three objects field by field."""
        merged: dict[str, Base] = {}
        # Our order first. A field that only the base has was removed by both sides.
        for name in ours | theirs:
            value = self.place(
                base if isinstance(base, Mark) else base.get(name, ABSENT),
                ours.get(name, ABSENT),
                theirs.get(name, ABSENT),
                (*path, name),
            )
            if value is not ABSENT:
                merged[name] = value
        return merged

    def is_set(self, path: Steps) -> bool:
        return len(path) == 1 and path[0] in self.sets

    def conflict(self, base: Base, ours: Base, theirs: Base, path: Steps) -> Base:
        """Record a conflict, and return the value to use in its place."""
        if self.prefer == "neither":
            return AMBIGUOUS
        shown = FieldConflict(
            path, _without_ambiguity(base), cast("Side", ours), cast("Side", theirs)
        )
        self.conflicts.append(shown)
        if self.prefer == "greater":
            return max(ours, theirs, key=_json_rank)
        choice = self.choices.get(path, self.prefer)
        if isinstance(choice, Chosen):
            return choice.value
        return ours if choice == "ours" else theirs


def _json_rank(value: Base) -> bytes:
    """Return a sort key for JSON values: objects come last, an absent value first."""
    # The bracket of an object is the greatest byte that JSON can begin with.
    return b"" if value is ABSENT else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _all_sets(*versions: Base) -> bool:
    return all(isinstance(version, Mark) or _is_texts(version) for version in versions)


def _is_texts(version: Base) -> bool:
    return isinstance(version, list) and all(isinstance(item, str) for item in version)


def _merge_sets(base: Base, ours: Base, theirs: Base) -> Base:
    old, left, right = _members(base), _members(ours), _members(theirs)
    # A member of the base that is missing on one side was removed there, and stays removed.
    merged = (left & right) | (left - old) | (right - old)
    # An empty list would be a value that neither side has.
    if not merged and (ours is ABSENT or theirs is ABSENT):
        return ABSENT
    return cast("list[Json]", sorted(merged))


def _members(version: Base) -> frozenset[str]:
    return frozenset() if isinstance(version, Mark) else frozenset(cast("list[str]", version))


def _without_ambiguity(base: Base) -> Side:
    """Return a base as a caller may see it: what is ambiguous counts as absent."""
    if isinstance(base, Mark):
        return ABSENT
    if not isinstance(base, dict):
        return cast("Json", base)
    fields = {name: _without_ambiguity(value) for name, value in base.items()}
    return cast("Json", {name: value for name, value in fields.items() if value is not ABSENT})
