"""Objects: names that are wrong, missing, in the wrong place or not wanted.

The arguments are first put into place (a wrapper taken off, a property moved to the depth where
its name belongs), then every property is read by itself. A *slot* holds the readings of one given
property: tuples of (name, value) to put into the result, empty if it is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.paths import Steps
from stratagem.gateway.correction import places, shapes
from stratagem.gateway.correction.model import CorrectionStep, HintKind
from stratagem.gateway.correction.names import NameMatch
from stratagem.gateway.correction.open_names import slip_for
from stratagem.gateway.correction.patterns import PATTERNS
from stratagem.gateway.correction.readings import Reading, combine_slots, distinct, identity
from stratagem.gateway.correction.schemas import Node
from stratagem.gateway.correction.words import (
    CALL_NAMES,
    CONSENT,
    GENERIC,
    METADATA,
    PAYLOADS,
    SPOKEN_OF,
    normal,
    same_tool,
    tokens,
)

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["readings"]

Slot = list[Reading]
_NULLS: Final = frozenset({"null", "None", "NULL"})
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_TELLING_CHARS_MIN: Final = 4
_CALL_TYPES: Final = frozenset(
    {"function", "function_call", "functioncall", "tool_use", "tool_call", "toolcall", "tools/call"}
)
# Where a call says which tool it is for.
_NAMING: Final = frozenset(
    {"name", "tool", "toolname", "function", "functionname", "action", "recipientname"}
)
_CALLS: Final = frozenset({"toolcalls", "tooluses", "calls", "functioncalls"})


def readings(
    attempt: Attempt, node: Node, value: dict[str, Any], steps: Steps, chain: int
) -> Iterator[Reading]:
    """Yield what an object that does not fit may mean."""
    for pattern, inner in _unwrap_arguments(attempt, node, value):
        found = list(attempt.read_form(pattern, node, (value, inner), steps, chain))
        yield from found
        if found and found[0].certain:
            return
    rearranged, moved = places.move_to_places(attempt, node, value, steps)
    if rearranged is None:
        return
    sorting = _Sorting(attempt, node, rearranged, steps)
    for values, changes in combine_slots(sorting.slots()):
        result = _together(values)
        if result is not None:
            yield Reading(result, (*moved, *changes))


def _together(slots: list[Any]) -> dict[str, Any] | None:
    """Put the properties of all slots into one object; None when two claim one name."""
    result: dict[str, Any] = {}
    for pairs in slots:
        for name, value in pairs:
            if name in result:
                return None
            result[name] = value
    return result


@dataclass
class _Sorting:
    """The properties of one object, each with what it may become."""

    attempt: Attempt
    node: Node
    value: dict[str, Any]
    steps: Steps
    # Parameters that a name which is not theirs certainly means, and the names that do.
    claims: dict[str, list[str]] = field(default_factory=dict)
    unexplained: bool = False

    def slots(self) -> list[Slot]:
        unknown = [key for key in self.value if not self.node.names(key)]
        absent = [name for name in self.node.properties if name not in self.value]
        missing = [name for name in self.node.required if name not in self.value]
        meant = {key: self._match_unknown(key, absent, missing) for key in unknown}
        for key, likely in meant.items():
            if len(likely) == 1:
                self.claims.setdefault(likely[0].name, []).append(key)
        # What becomes of unknown names decides whether defaults can be trusted: they come first.
        found = {
            key: self._slot_of_unknown_name(key, meant[key], absent, missing) for key in unknown
        }
        for key in self.value:
            if key not in meant:
                found[key] = self._read_known(key, self.value[key])
        slots = [found[key] for key in self.value]
        return [*slots, *self._defaults(slots)]

    def _put(self, name: str, item: Any, before: tuple[CorrectionStep, ...] = ()) -> Slot:
        """Return the readings of a value under a name."""
        node = self.node.node_for(name)
        if node is None:
            return [Reading(((name, item),), before)]
        return [
            Reading(((name, one.value),), (*before, *one.changes))
            for one in self.attempt.read(node, item, (*self.steps, name))
        ]

    def _drop(self, pattern: str, key: str, item: Any) -> Slot:
        change = self.attempt.change(pattern, (*self.steps, key), item, None)
        return [] if change is None else [Reading((), (change,))]

    def _read_known(self, key: str, item: Any) -> Slot:
        node = self.node.node_for(key)
        if node is None:
            return [Reading(((key, item),))]
        if key not in self.node.properties or node.accepts(item):
            return self._put(key, item)
        return self._read_unfit(node, key, item)

    def _read_unfit(self, node: Node, key: str, item: Any) -> Slot:
        """Return the readings of a value that its parameter does not take."""
        spelled = isinstance(item, str) and item.strip() in _NULLS
        if item is None or (spelled and not node.types & {"string", "null", "array"}):
            dropped = self._drop_given("null_removed", key, item)
            if key in self.node.required and dropped:
                return self._default(key, (*dropped[0].changes,))
            return dropped
        if isinstance(item, list) and len(item) > 1 and self._takes_several(node, item):
            return self._move("key_declared_plural", key, item, str(node.plural))
        found = self._put(key, item)
        if not found and item in _EMPTY and key not in self.node.required:
            return self._drop_given("empty_value_removed", key, item)
        return found

    def _drop_given(self, pattern: str, key: str, item: Any) -> Slot:
        """Drop a parameter; where another name would then mean it, that is not certain."""
        return self._drop(
            "key_conflict_resolved" if self._has_slip_for(key) else pattern, key, item
        )

    def _has_slip_for(self, name: str) -> bool:
        """Tell whether another name that is given would mean a parameter, were that not given."""
        others = (key for key in self.value if not self.node.names(key))
        slips = (slip_for(self.node, key, {}) for key in others)
        return any(slip is not None and slip[0] == name for slip in slips)

    def _takes_several(self, node: Node, item: list[Any]) -> bool:
        """Tell whether another parameter, which is not given, takes several of these values."""
        several = self.node.properties.get(node.plural or "")
        return several is not None and node.plural not in self.value and several.accepts(item)

    def _match_unknown(self, key: str, absent: list[str], missing: list[str]) -> list[NameMatch]:
        """Return the parameters that an unknown name may mean, where it has to mean one."""
        wanted = absent if self.node.closed else missing
        declared = self.node.declared_aliases.get(normal(key))
        if declared in absent:
            return [NameMatch(str(declared), "key_declared_alias")]
        hints = [
            hint
            for hint in self.attempt.hints(HintKind.ALIAS, self.steps, key)
            if hint.meaning in wanted
        ]
        if hints and hints[0].certain:
            return [NameMatch(str(hints[0].meaning), "key_known_alias")]
        self.attempt.spend(self.node.vocabulary.cost())
        likely = self._match_by_name(key, absent, wanted)
        return [self._surest(str(hints[0].meaning), likely, missing)] if hints else likely

    def _surest(self, meant: str, likely: list[NameMatch], missing: list[str]) -> NameMatch:
        """Return what a few earlier calls meant by a name, by the best reason there is for it.

        A confirmation must not make it less likely than its name alone does.
        """
        reasons = {match.pattern for match in likely if match.name == meant and len(likely) == 1}
        if not likely and missing == [meant]:
            reasons.add("key_only_candidate")
        reasons.add("key_alias_doubtful")
        return NameMatch(meant, max(reasons, key=lambda each: PATTERNS[each].confidence))

    def _match_by_name(self, key: str, absent: list[str], wanted: list[str]) -> list[NameMatch]:
        found = self.node.vocabulary.matches(key)
        given = [match for match in found if match.name in self.value]
        if self.node.closed and given and given[0].pattern == "key_style_variant":
            return given
        likely = [match for match in found if match.name in wanted]
        if likely:
            return likely
        # An open object may hold other names, but hardly another spelling of one it has.
        slip = slip_for(self.node, key, self.value)
        if slip is None:
            return [
                match
                for match in found
                if match.name in absent and match.pattern == "key_style_variant"
            ]
        name, pattern = slip
        return [NameMatch(name, pattern if pattern == "key_style_variant" else "key_slip_allowed")]

    def _slot_of_unknown_name(
        self, key: str, meant: list[NameMatch], absent: list[str], missing: list[str]
    ) -> Slot:
        item = self.value[key]
        found: Slot = []
        for match in meant:
            found += self._rename(key, item, match, len(meant) > 1)
        if found and meant[0].pattern == "key_slip_allowed":
            found += self._keep_allowed(key, item)
        elif not any(one.certain for one in found):
            only = not found and len(missing) == 1 and missing[0] not in self.claims
            if slip_for(self.node, key, self.value) is not None:
                # Given alone it would be examined, so it is not passed on silently.
                found += self._keep_allowed(key, item)
            else:
                found += self._drop_or_keep(key, absent, resembling=bool(meant))
            found += self._move("key_only_candidate", key, item, missing[0]) if only else []
        kept = not self.node.closed and normal(key) not in METADATA
        explained = any(one.certain and (one.changes or not kept) for one in found)
        self.unexplained |= not explained
        return distinct(found)

    def _rename(self, key: str, item: Any, match: NameMatch, doubtful: bool) -> Slot:  # noqa: FBT001
        name = match.name
        if name in self.value:
            same = self._says_the_same(name, item)
            return self._drop(
                "duplicate_key_removed" if same else "key_conflict_resolved", key, item
            )
        rivals = self.claims.get(name, [])
        if len(rivals) > 1:
            return self._rival(key, item, match, rivals)
        pattern = match.pattern
        if doubtful:
            pattern = "key_one_of_several"
        elif not self._suits(match, item):
            pattern = "key_other_word"
        if doubtful:
            names = [other for other in self.node.properties if other not in self.value]
            self.attempt.ask((*self.steps, key), "Which parameter is meant?", names)
        return self._move(pattern, key, item, name)

    def _says_the_same(self, name: str, item: Any) -> bool:
        """Tell whether a value says what a parameter already has, or nothing."""
        given = self.value[name]
        if item is None or identity(given) == identity(item):
            return True
        read = self.attempt.read(self.node.properties[name], item, (*self.steps, name))
        return len(read) == 1 and read[0].certain and identity(read[0].value) == identity(given)

    def _move(self, pattern: str, key: str, item: Any, name: str) -> Slot:
        change = self.attempt.change(
            pattern, (*self.steps, key), key, name, detail=f" becomes `{name}`"
        )
        return [] if change is None else self._put(name, item, (change,))

    def _rival(self, key: str, item: Any, match: NameMatch, rivals: list[str]) -> Slot:
        """Return what becomes of one of several names that mean the same parameter."""
        given = {identity(self.value[rival]) for rival in rivals}
        if len(given) == 1:
            if key == rivals[0]:
                return self._move(match.pattern, key, item, match.name)
            return self._drop("duplicate_key_removed", key, item)
        self.attempt.ask(
            (*self.steps, match.name),
            f"{' and '.join(rivals)} both mean `{match.name}`. Which value is right?",
            [self.value[rival] for rival in rivals],
        )
        if key == rivals[0]:
            return self._move("key_conflict_resolved", key, item, match.name)
        return self._drop("key_conflict_resolved", key, item)

    def _suits(self, match: NameMatch, item: Any) -> bool:
        """Tell whether singular and plural may be taken for each other.

        `year: 2019` is not `years: 2019`: among numbers the plural is another thing.
        """
        if match.pattern != "key_plural":
            return True
        types = self.node.properties[match.name].types
        return "array" in types or (isinstance(item, str) and "string" in types)

    def _drop_or_keep(self, key: str, absent: list[str], *, resembling: bool) -> Slot:
        """Return what becomes of a name that certainly means no parameter."""
        item = self.value[key]
        if not self.node.closed:
            return self._put(key, item)
        if not resembling and not self._speaks_of(key, absent):
            elsewhere = normal(key) in PAYLOADS or normal(key) in self.node.inside
            if item in _EMPTY and not elsewhere:
                return self._drop("empty_unknown_removed", key, item)
            if normal(key) in METADATA:
                return self._drop("call_metadata_removed", key, item)
        return self._drop("unknown_property_removed", key, item)

    def _keep_allowed(self, key: str, item: Any) -> Slot:
        """Return a name that looks like a slip as it is, in case that it is none."""
        change = self.attempt.change("key_kept", (*self.steps, key), key, key)
        return [] if change is None else [Reading(((key, item),), (change,))]

    def _speaks_of(self, key: str, absent: list[str]) -> bool:
        """Tell whether a name shares a telling word with a parameter that is not given."""
        self.attempt.spend(len(absent) // 4)
        mine = {word for word in tokens(key) if word not in GENERIC}
        mine |= SPOKEN_OF.get(normal(key), frozenset())
        for name in absent:
            theirs = {word for word in tokens(name) if word not in GENERIC}
            inside = any(len(word) >= _TELLING_CHARS_MIN and word in normal(key) for word in theirs)
            if mine & theirs or inside:
                return True
        return False

    def _defaults(self, found: list[Slot]) -> list[Slot]:
        """Return slots for required parameters that nothing given stands for."""
        there = {name for slot in found if slot for name, _ in slot[0].value}
        # In an open object a name that may be a parameter may also stay what it is.
        perhaps = {name for slot in found for one in slot[1:] for name, _ in one.value}
        absent = [
            name
            for name in self.node.required
            if name not in there | self._names_of_replaced_nulls()
        ]
        defaults = {name: self._default(name) for name in absent}
        return [slot for name, slot in defaults.items() if slot or name not in perhaps]

    def _names_of_replaced_nulls(self) -> set[str]:
        """Return the required parameters whose null was replaced where it stood."""
        return {name for name in self.node.required if name in self.value}

    def _default(self, name: str, before: tuple[CorrectionStep, ...] = ()) -> Slot:
        node = self.node.properties.get(name)
        if node is None:
            return []
        if node.options is not None and len(node.options) == 1:
            pattern, value = "constant_for_missing", node.options[0]
        elif "default" in node.view:
            pattern, value = "default_for_missing", node.view["default"]
            if self.unexplained:
                pattern = "default_beside_unknown"
        else:
            return []
        if value is True and set(tokens(name)) & CONSENT:
            pattern = "consent_for_missing"
        change = self.attempt.change(pattern, (*self.steps, name), None, value)
        if change is None or not node.accepts(value):
            return []
        return [Reading(((name, value),), (*before, change))]


def _unwrap_arguments(
    attempt: Attempt, node: Node, value: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the arguments inside an object that is not itself the arguments."""
    styles = {normal(name) for name in node.properties}
    around = [key for key in value if _surrounds(key, value[key], styles)]
    inside = [key for key in value if key not in around]
    if not inside and "function" in value:
        around, inside = [key for key in around if key != "function"], ["function"]
    if len(inside) != 1:
        return
    if normal(inside[0]) in styles:
        if len(value) == 1 and _holds_all(node, inside[0], value[inside[0]]):
            yield "arguments_unwrapped", value[inside[0]]
        return
    payload = _single(node, inside[0], value[inside[0]])
    if not isinstance(payload, dict | str) or not _wraps(attempt, inside[0], payload, styles):
        return
    yield _pattern(attempt, {key: value[key] for key in around}, payload, styles), payload


def _surrounds(key: str, item: Any, styles: set[str]) -> bool:
    """Tell whether a property belongs to the call and not to the arguments."""
    name = normal(key)
    if isinstance(item, dict | list):
        return name == "meta"
    if isinstance(item, str) and item in _CALL_TYPES:
        return name in {"type", "method", "object", "role"}
    if name in {"name", "id"} and name in styles:
        # A parameter of the tool may be meant; `_pattern` looks into that.
        return True
    return name in CALL_NAMES | METADATA and name not in styles


def _holds_all(node: Node, key: str, item: Any) -> bool:
    """Tell whether a parameter that is no object was given all the arguments, itself included."""
    own = node.styles.get(normal(key))
    if own is None or not isinstance(item, dict) or "object" in node.properties[own].types:
        return False
    named = [node.styles.get(normal(name)) for name in item]
    return own in named and None not in named and len(item) > 1


def _single(node: Node, key: str, item: Any) -> Any:
    """Return the only call of a list of calls, or the object that a list of pairs stands for."""
    if not isinstance(item, list) or normal(key) not in PAYLOADS | _CALLS:
        return item
    named = shapes.pairs_of(item)
    if named is not None and all(normal(name) in node.styles for name in named):
        return named
    return item[0] if len(item) == 1 else item


def _wraps(attempt: Attempt, key: str, payload: Any, styles: set[str]) -> bool:
    name = normal(key)
    if name in PAYLOADS | _CALLS or (attempt.tool and name == normal(attempt.tool)):
        return isinstance(payload, dict) or payload.strip()[:1] in {"{", "`", "["}
    inner = payload if isinstance(payload, dict) else {}
    return bool(inner) and all(normal(one) in styles for one in inner)


def _pattern(attempt: Attempt, around: dict[str, Any], payload: Any, styles: set[str]) -> str:
    named = [item for key, item in around.items() if normal(key) in _NAMING]
    texts = [item for item in named if isinstance(item, str) and item not in _CALL_TYPES]
    if attempt.tool is not None:
        if not all(same_tool(text, attempt.tool) for text in texts):
            return "call_of_another_tool"
    elif any(_doubtful(key, payload, styles) for key in around):
        return "call_name_doubtful"
    return "call_object_unwrapped" if around else "arguments_unwrapped"


def _doubtful(key: str, payload: Any, styles: set[str]) -> bool:
    """Tell whether a name beside the arguments may be one of them: they lack it."""
    name = normal(key)
    if name not in styles or name not in {"name", "id"}:
        return False
    return not isinstance(payload, dict) or name not in {normal(inner) for inner in payload}
