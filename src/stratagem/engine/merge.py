"""Three-way merge of one record.

Two branches hold a record each, and a base says what both of them knew. What only one side
changed is taken; what both changed alike is taken once; what both changed differently is a
conflict. Objects are merged field by field, at any depth; arrays and scalars as wholes. A field
that exists in one version and not in another is ABSENT there, so that adding and deleting are
changes like any other, and deleting what the other side edited is a conflict.

Three rules need saying:

* An object that both sides added is merged as if the base had held an empty one: two agents that
  each filled in one field of a new `settings` do not conflict.
* Where the base held an object and one side put something else in its place, there are no fields
  to compare: any edit of the other side conflicts at that place as a whole.
* Fields named in `sets` hold sets of texts, such as tags. Both sides' additions and removals are
  applied to the base, and nothing conflicts.

A record may expire at a time that stands in one of its fields, named in `expiry`. A merge reads
that field and never the clock, so that the same versions always give the same, whenever and in
whichever order they are merged (docs/adr/0025):

* Where both sides changed a record of which at least one expires, nothing is left to decide: in
  the places that conflict, the side that expires later stands. No expiry is the latest; a deletion
  shows nothing at any time, and so it is the earliest. Of two that expire together the greater in
  the order of their JSON stands, so that every branch chooses alike.
* What comes of it expires when the later of the two does.

Where two branches have merged each other crosswise there is no single base, and one is made by
merging the candidates (`virtual_base`). A place in which those conflict is AMBIGUOUS: the NaN of
this module, different from everything, itself included. It can only lie in a base, it makes any
difference between the sides a conflict, and it is never shown to a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, TypeAlias, cast

import orjson

from stratagem.engine.paths import Steps
from stratagem.engine.values import Json, same

__all__ = [
    "ABSENT",
    "AMBIGUOUS",
    "Base",
    "Choice",
    "Chosen",
    "FieldConflict",
    "Mark",
    "Merged",
    "Side",
    "resolve",
    "three_way",
    "virtual_base",
]


class Mark(Enum):
    """What stands where there is no JSON value."""

    ABSENT = "absent"
    AMBIGUOUS = "ambiguous"

    def __eq__(self, other: object) -> bool:
        return self is other and self is not Mark.AMBIGUOUS

    __hash__ = Enum.__hash__


ABSENT: Final = Mark.ABSENT
AMBIGUOUS: Final = Mark.AMBIGUOUS

Side: TypeAlias = Json | Literal[Mark.ABSENT]
Base: TypeAlias = "Mapping[str, Base] | list[Json] | str | int | float | bool | Mark | None"

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


# What is to stand in a place that conflicts.
Choice: TypeAlias = Literal["ours", "theirs"] | Chosen


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge gives. Where it conflicts, `value` holds our side.

    `settled`: the sides differed in a place, and the one that expires later stands there.
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

    Each side's changes are all in the value, or among the conflicts, but for what the later
    expiry settled. Keys stand in our order, then come those that the other side added. Nothing
    given is changed.
    """
    if expiry is not None and (_expires(ours, expiry) or _expires(theirs, expiry)):
        settled, value = _merge_expiring(base, ours, theirs, sets, expiry)
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
    """Merge two versions, taking in the places that conflict, and only there, what was chosen.

    Where nothing was chosen for a place of its own, the preferred side stands.
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

    A candidate may itself be such a base, so that any number of them can be folded into one. What
    the later expiry settles is not ambiguous: every branch has settled it alike.
    """
    if expiry is not None and (_expires(one, expiry) or _expires(other, expiry)):
        return _merge_expiring(base, one, other, sets, expiry)[1]
    return _Merge("neither", sets).place(base, one, other, ())


def _merge_expiring(
    base: Base, ours: Base, theirs: Base, sets: frozenset[str], expiry: str
) -> tuple[bool, Base]:
    """Merge two versions of which at least one expires; say whether a place had to be settled."""
    if same(ours, theirs) or same(base, theirs):
        return False, ours
    if same(base, ours):
        return False, theirs
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        # One is deleted, and the other shows something for a while; or nobody knows what was there.
        return True, next(side for side in (ours, theirs) if side is not ABSENT)
    later = max(ours, theirs, key=lambda side: _expiry_rank(side, expiry))
    merge = _Merge("ours" if later is ours else "theirs", sets)
    old, left, right = (_without_field(side, expiry) for side in (base, ours, theirs))
    value = merge.place(old, left, right, ())
    if expiry in later:
        value = {**cast("dict[str, Base]", value), expiry: later[expiry]}
    return bool(merge.conflicts), value


def _expires(side: Base, expiry: str) -> bool:
    return isinstance(side, dict) and expiry in side


def _expiry_rank(side: Mapping[str, Base], expiry: str) -> tuple[bool, int, bytes]:
    """Return how long a version lasts, as something that can be compared."""
    content = orjson.dumps(side, option=orjson.OPT_SORT_KEYS)
    return expiry not in side, cast("int", side.get(expiry, 0)), content


def _without_field(side: Base, name: str) -> Base:
    if not isinstance(side, dict):
        return side
    return {field: value for field, value in side.items() if field != name}


@dataclass(slots=True)
class _Merge:
    prefer: Literal["ours", "theirs", "neither"]
    sets: frozenset[str]
    choices: Mapping[Steps, Choice] = field(default_factory=dict)
    conflicts: list[FieldConflict] = field(default_factory=list)

    def place(self, base: Base, ours: Base, theirs: Base, path: Steps) -> Base:
        """Merge what the versions hold in one place."""
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
        """Note a conflict, and return what stands in its place."""
        if self.prefer == "neither":
            return AMBIGUOUS
        shown = FieldConflict(
            path, _without_ambiguity(base), cast("Side", ours), cast("Side", theirs)
        )
        self.conflicts.append(shown)
        choice = self.choices.get(path, self.prefer)
        if isinstance(choice, Chosen):
            return choice.value
        return ours if choice == "ours" else theirs


def _all_sets(*versions: Base) -> bool:
    return all(isinstance(version, Mark) or _is_texts(version) for version in versions)


def _is_texts(version: Base) -> bool:
    return isinstance(version, list) and all(isinstance(item, str) for item in version)


def _merge_sets(base: Base, ours: Base, theirs: Base) -> Base:
    old, left, right = _members(base), _members(ours), _members(theirs)
    merged = (left & right) | (left - old) | (right - old)
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
