"""The cost of a schema, computed without evaluating it.

A schema of two kilobytes can need a thousand million evaluations: thirty definitions, each of which
refers twice to the next. The validator would carry them out, blocking the whole process, and
collect an error for each. So the cost is computed first.

A schema is read as a graph of *parts*. Two kinds of edges leave a part: to parts that hold for the
same value (`allOf`, `$ref`, `if` …) and to parts that hold for what is inside it (`properties`,
`items` …). Three numbers come from it:

* The **expansion** of a part is how much is evaluated at one value, each reference written out
  where it stands. It is a sum over the first kind of edges, so each part is looked at once.
* The **load** is the most evaluations that any single value within the arguments can need, at any
  depth. It also follows the second kind of edges. If a schema contains itself in several ways at
  one place there is no bound, and `load` is None.
* The **work** of a call is at most the load times the values in the arguments. That is one
  multiplication, and for ordinary schemas and arguments it is all that is done. Only where it
  proves too much, or there is no load, are the pairs of part and value counted one by one.

Patterns are counted apart, because they cost as much as the text they read is long.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass

__all__ = [
    "Excess",
    "Load",
    "SchemaCost",
    "Size",
    "measure",
    "pattern_states",
    "values_most",
    "work_of",
]

_SAME_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SAME_SINGLE: Final = ("not", "if", "then", "else")
_SAME_NAMED: Final = ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
# Keywords that are only for readers.
_ANNOTATIONS: Final = frozenset(
    {"$comment", "$defs", "definitions", "title", "description", "default", "examples", "$id"}
)
# A pattern reads each text; a format is checked by a reader of the validator's own.
_FORMAT_STATES: Final = 4
_CLASS_STATES: Final = 4
# A class such as \\p{L} names hundreds of ranges.
_UNICODE_STATES: Final = 50
# Comparing so many bytes of a listed value takes as long as one evaluation.
_COMPARED_BYTES: Final = 8
# The schema of schemas, which the validator knows: its vocabularies, at each value.
_METASCHEMAS: Final = ("https://json-schema.org/draft/", "http://json-schema.org/draft-")
_METASCHEMA_EVALUATIONS: Final = 100
# Counting stops at this number: everything above it is too much.
_CAP: Final = 1 << 40
# A load that still grows at this depth of the arguments grows for ever.
_ROUNDS_MAX: Final = 64
# A pattern that is not matched in linear time may be tried anew at each character.
_RETRIED_CHARS: Final = 500
_REPEATED: Final = re.compile(r"\{\s*+(\d{1,9}+)\s*+(?:,\s*+(\d{0,9}+)\s*+)?\}")
_PATH_CHARS_MAX: Final = 300
_CONTAINERS: Final = (dict, list, tuple)


class Excess(Exception):
    """A schema that would make too much work: where, what, and the limit it is over."""

    def __init__(self, place: str, message: str, limit: int | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.limit = limit


@dataclass(slots=True, eq=False)
class _Part:
    """One schema within a document, with the parts that it leads to."""

    place: str
    weight: int = 1
    states: int = 0
    slow_states: int = 0
    same: list[_Part] = field(default_factory=list)
    named: dict[str, _Part] = field(default_factory=dict)
    # What is asked of the names themselves.
    names: list[_Part] = field(default_factory=list)
    leading: list[_Part] = field(default_factory=list)
    # What may hold for any value inside, by the kind of value it is inside of.
    members: list[_Part] = field(default_factory=list)
    elements: list[_Part] = field(default_factory=list)
    is_rewalked: bool = False
    rank: int = 0
    height: int = 0
    expansion: int = 0

    @property
    def inner(self) -> Iterator[_Part]:
        """The parts that hold for what is inside a value."""
        yield from self.named.values()
        yield from self.names
        yield from self.leading
        yield from self.members
        yield from self.elements

    @property
    def has_inner(self) -> bool:
        """Whether anything inside a value is looked at."""
        return bool(self.named or self.names or self.leading or self.members or self.elements)


@dataclass(frozen=True, slots=True)
class Load:
    """The most that one value can meet: evaluations, and states of patterns that read it."""

    evaluations: int
    states: int
    slow_states: int

    def work(self, values: int, size: int) -> int:
        """Return the most that so many values, of so many bytes in all, can cost."""
        reading = self.states * size + self.slow_states * size * (1 + size // _RETRIED_CHARS)
        return self.evaluations * values + reading


@dataclass(frozen=True, slots=True)
class Size:
    """How large a value is: as JSON, in values, in levels, and its longest name."""

    bytes: int
    values: int
    depth: int
    name_chars: int


@dataclass(frozen=True, slots=True)
class SchemaCost:
    """What is known of a schema's work."""

    root: _Part
    load: Load | None
    # How many parts may hold for one value, each reached through the one before.
    height: int
    # The largest list of values that an error would repeat.
    listed_bytes: int
    # Whether one error may hold errors about what is inside a value, as those of `anyOf` do.
    nests_errors: bool
    # Whether an error about a name repeats the whole object.
    names_members: bool

    def fits(self, data: bytes, value: Any, budget: int) -> bool:
        """Whether a value, written as `data`, can be evaluated within a budget."""
        brackets = data.count(b"{") + data.count(b"[")
        if brackets * self.height > limits.VALIDATION_DEPTH_MAX and self._is_too_deep(value):
            return False
        if self.load is not None and self.load.work(values_most(data), len(data)) <= budget:
            return True
        return self.count(value, budget) is not None

    def _is_too_deep(self, value: Any) -> bool:
        """Whether the validator would call itself too often within itself."""
        levels = limits.VALIDATION_DEPTH_MAX // self.height
        pending = [(value, 1)]
        while pending:
            here, depth = pending.pop()
            if isinstance(here, Mapping | list | tuple):
                if depth > levels:
                    return True
                inner = here.values() if isinstance(here, Mapping) else here
                pending += ((each, depth + 1) for each in inner if isinstance(each, _CONTAINERS))
        return False

    def count(self, value: Any, budget: int) -> int | None:
        """Return the most evaluations that a value can take; None if that is over the budget.

        How often a part holds for a value is carried along, so each pair is looked at once,
        however many ways lead to it.
        """
        total = pairs = 0
        pending: list[tuple[Any, dict[_Part, int]]] = [(value, {self.root: 1})]
        while pending:
            here, times = pending.pop()
            inside: dict[Any, dict[_Part, int]] = {}
            for part, often in _closure(times):
                pairs += 1
                total += often * _cost(part, here)
                if total > budget or pairs > limits.EVALUATION_PAIRS_MAX:
                    return None
                if _is_too_wide(part, here, limits.EVALUATION_PAIRS_MAX - pairs):
                    return None
                _descend(part, here, often, inside)
            pending += ((_member(here, key), parts) for key, parts in inside.items())
        return total


def _member(value: Any, key: Any) -> Any:
    """Return what is inside a value; the name itself where the name is what is looked at."""
    return key[0] if isinstance(key, tuple) else value[key]


def _closure(times: dict[_Part, int]) -> Iterator[tuple[_Part, int]]:
    """Yield the parts that hold for one value, each once, with how often each does."""
    waiting = [(-part.rank, id(part), part) for part in times]
    heapq.heapify(waiting)
    while waiting:
        part = heapq.heappop(waiting)[2]
        often = times[part]
        yield part, often
        for next_part in part.same:
            if next_part not in times:
                times[next_part] = 0
                heapq.heappush(waiting, (-next_part.rank, id(next_part), next_part))
            times[next_part] += often * (2 if part.is_rewalked else 1)


def _cost(part: _Part, value: Any) -> int:
    if isinstance(value, str):
        reading = part.states + part.slow_states * (1 + len(value) // _RETRIED_CHARS)
        return part.weight + reading * len(value)
    if part.is_rewalked and isinstance(value, dict | list):
        return part.weight + part.expansion * len(value)
    return part.weight


def _is_too_wide(part: _Part, value: Any, most: int) -> bool:
    """Whether a part looks at the values inside a value more often than may be counted."""
    if isinstance(value, Mapping):
        return len(value) * (len(part.members) + len(part.names)) > most
    return isinstance(value, list | tuple) and len(value) * len(part.elements) > most


def _descend(part: _Part, value: Any, often: int, inside: dict[Any, dict[_Part, int]]) -> None:
    """Note which parts hold for what is inside a value."""
    if isinstance(value, Mapping):
        every = bool(part.members or part.names)
        for name in value if every else part.named.keys() & value.keys():
            own = part.named.get(name)
            _add(inside, name, part.members if own is None else [own, *part.members], often)
            _add(inside, (name,), part.names, often)
    elif isinstance(value, list | tuple):
        for at in range(len(value) if part.elements else min(len(value), len(part.leading))):
            _add(inside, at, [*part.leading[at : at + 1], *part.elements], often)


def _add(inside: dict[Any, dict[_Part, int]], key: Any, parts: Iterable[_Part], often: int) -> None:
    for part in parts:
        times = inside.setdefault(key, {})
        times[part] = times.get(part, 0) + often


def values_most(data: bytes) -> int:
    """Return how many values a JSON text has at most: what looks like more in a text counts too."""
    return 1 + data.count(b"{") + data.count(b"[") + data.count(b",")


def measure(value: Any, data: bytes, most: int) -> Size | None:
    """Return how large a value is that was written as `data`; None if it holds over `most`."""
    values = depth = name_chars = 0
    level = [value]
    while level:
        depth += 1
        values += len(level)
        below: list[Any] = []
        for each in level:
            if isinstance(each, Mapping):
                below += each.values()
                name_chars = max(name_chars, max(map(len, map(str, each)), default=0))
            elif isinstance(each, list | tuple):
                below += each
            if values + len(below) > most:
                return None
        level = below
    return Size(len(data), values, depth, name_chars)


def work_of(document: Any, is_linear: Callable[[str], bool]) -> SchemaCost:
    """Return what is known of the work that a schema makes.

    `is_linear` tells whether a pattern is matched in a time that grows with the text alone.

    Raises:
        Excess: It is more than any schema needs.
    """
    graph = _Graph(document, is_linear)
    root = graph.root
    order = _order_parts(graph.parts)
    _expand(order)
    for part in graph.parts:
        _check(part)
    load = _loads(order, root)
    if load is not None and load.evaluations > limits.SCHEMA_EXPANSION_MAX:
        if not _is_recursive(root):
            raise Excess(
                root.place,
                f"asks for {_format_count(load.evaluations)} evaluations of one value",
                limits.SCHEMA_EXPANSION_MAX,
            )
        load = None
    return SchemaCost(
        root,
        load,
        height=max(part.height for part in graph.parts),
        listed_bytes=graph.listed_bytes,
        nests_errors=graph.nests_errors(),
        names_members=graph.names_members,
    )


def _check(part: _Part) -> None:
    if part.expansion > limits.SCHEMA_EXPANSION_MAX:
        raise Excess(
            part.place,
            f"expands to {_format_count(part.expansion)} rules",
            limits.SCHEMA_EXPANSION_MAX,
        )
    if part.height > limits.SCHEMA_HEIGHT_MAX:
        raise Excess(
            part.place,
            f"leads through {part.height} schemas for one value",
            limits.SCHEMA_HEIGHT_MAX,
        )


def _format_count(number: int) -> str:
    return f"{number:,}" if number < _CAP else f"more than {_CAP:,}"


class _Graph:
    """The parts of a document that its root leads to."""

    def __init__(self, document: Any, is_linear: Callable[[str], bool]) -> None:
        self._document = document
        self._is_linear = is_linear
        self._resources: dict[str, list[Any]] = {}
        self._anchors: dict[str, list[Any]] = {}
        # By the identity of a node of the document, which lives for as long as this does.
        self._bases: dict[int, str] = {}
        self._known: dict[int, _Part] = {}
        self._pending: list[tuple[_Part, Mapping[str, Any]]] = []
        self._forms: list[_Part] = []
        self._states = 0
        self.listed_bytes = 0
        self.names_members = False
        # True and false are schemas too, and all alike.
        self._constant = _Part("")
        self.parts: list[_Part] = [self._constant]
        self._index()
        self.root = self._part(document, "")
        while self._pending:
            part, schema = self._pending.pop()
            self._read(part, schema)

    def nests_errors(self) -> bool:
        """Whether a form of several looks at what is inside a value."""
        seen: set[_Part] = set()
        pending = list(self._forms)
        while pending:
            part = pending.pop()
            if part in seen:
                continue
            seen.add(part)
            if part.has_inner:
                return True
            pending += part.same
        return False

    def _index(self) -> None:
        """Note which resource each node belongs to, and what references may name."""
        pending: list[tuple[Any, str]] = [(self._document, "")]
        while pending:
            node, base = pending.pop()
            if isinstance(node, list):
                pending += ((each, base) for each in node)
            if not isinstance(node, Mapping):
                continue
            if isinstance(own := node.get("$id"), str):
                base = urldefrag(urljoin(base, own)).url
                self._resources.setdefault(base, []).append(node)
            self._bases[id(node)] = base
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := node.get(keyword), str):
                    self._anchors.setdefault(name, []).append(node)
            self._count_patterns(node)
            pending += ((each, base) for each in node.values())

    def _count_patterns(self, node: Mapping[str, Any]) -> None:
        patterns = [
            node.get("pattern"),
            *(name for name, _ in _items(node.get("patternProperties"))),
        ]
        self._states += sum(pattern_states(each) for each in patterns if isinstance(each, str))
        if self._states > limits.PATTERN_STATES_MAX:
            raise Excess(
                "",
                f"has patterns that repeat {_format_count(self._states)} steps",
                limits.PATTERN_STATES_MAX,
            )

    def _part(self, schema: Any, place: str) -> _Part:
        if not isinstance(schema, Mapping):
            return self._constant
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = _Part(place[:_PATH_CHARS_MAX])
            self.parts.append(known)
            self._pending.append((known, schema))
        return known

    def _read(self, part: _Part, schema: Mapping[str, Any]) -> None:
        place = part.place
        part.weight = 1 + sum(
            self._weight(keyword, value)
            for keyword, value in schema.items()
            if keyword not in _ANNOTATIONS
        )
        part.is_rewalked = any(keyword in schema for keyword in _UNEVALUATED)
        self._read_texts(part, schema)
        for keyword in _SAME_LISTS:
            listed = schema.get(keyword)
            for at, each in enumerate(listed if isinstance(listed, list) else ()):
                form = self._part(each, f"{place}/{keyword}/{at}")
                part.same.append(form)
                if keyword != "allOf":
                    self._forms.append(form)
        for keyword in _SAME_SINGLE:
            if keyword in schema:
                part.same.append(self._part(schema[keyword], f"{place}/{keyword}"))
        for keyword in _SAME_NAMED:
            for name, each in _items(schema.get(keyword)):
                part.same.append(self._part(each, f"{place}/{keyword}/{name}"))
        for keyword in _REFERENCES:
            if isinstance(reference := schema.get(keyword), str):
                self._refer(part, schema, keyword, reference)
        self._read_members(part, schema)
        self._read_elements(part, schema)

    def _weight(self, keyword: str, value: Any) -> int:
        if keyword in {"enum", "const"}:
            size = len(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str))
            self.listed_bytes = max(self.listed_bytes, size)
            values = value if keyword == "enum" and isinstance(value, list) else [value]
            # Texts and numbers are looked up, lists and objects compared one by one.
            compared = any(isinstance(each, dict | list) for each in values)
            return 1 + (size // _COMPARED_BYTES if compared else 0)
        if keyword == "required" and isinstance(value, list):
            return 1 + len(value) // 4
        if keyword == "dependentRequired":
            return 1 + sum(1 + len(each) for _name, each in _items(value) if isinstance(each, list))
        return 1

    def _read_texts(self, part: _Part, schema: Mapping[str, Any]) -> None:
        if isinstance(pattern := schema.get("pattern"), str):
            self._read_pattern(part, pattern)
        if "format" in schema:
            part.states += _FORMAT_STATES
        if "minLength" in schema or "maxLength" in schema:
            part.states += 1

    def _read_pattern(self, part: _Part, pattern: str) -> None:
        if self._is_linear(pattern):
            part.states += pattern_states(pattern)
        else:
            part.slow_states += pattern_states(pattern)

    def _read_members(self, part: _Part, schema: Mapping[str, Any]) -> None:
        place = part.place
        for name, each in _items(schema.get("properties")):
            part.named[name] = self._part(each, f"{place}/properties/{name}")
        for pattern, each in _items(schema.get("patternProperties")):
            where = f"{place}/patternProperties/{pattern}"[:_PATH_CHARS_MAX]
            part.members.append(self._part(each, where))
            # Each name is held against each pattern.
            matching = _Part(where)
            self._read_pattern(matching, pattern)
            self.parts.append(matching)
            part.names.append(matching)
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if isinstance(schema.get(keyword), Mapping):
                part.members.append(self._part(schema[keyword], f"{place}/{keyword}"))
        if isinstance(schema.get("propertyNames"), Mapping):
            part.names.append(self._part(schema["propertyNames"], f"{place}/propertyNames"))
            self.names_members = True

    def _read_elements(self, part: _Part, schema: Mapping[str, Any]) -> None:
        place = part.place
        for keyword in ("prefixItems", "items"):
            listed = schema.get(keyword)
            for at, each in enumerate(listed if isinstance(listed, list) else ()):
                part.leading.append(self._part(each, f"{place}/{keyword}/{at}"))
        for keyword in ("items", "additionalItems", "contains", "unevaluatedItems"):
            if isinstance(schema.get(keyword), Mapping):
                part.elements.append(self._part(schema[keyword], f"{place}/{keyword}"))

    def _refer(self, part: _Part, schema: Mapping[str, Any], keyword: str, reference: str) -> None:
        targets = list(self._targets(self._bases.get(id(schema), ""), reference))
        if targets:
            part.same += (self._part(each, reference.lstrip("#")) for each in targets)
            return
        if reference.startswith(_METASCHEMAS):
            leaf = _Part(reference, weight=_METASCHEMA_EVALUATIONS)
            leaf.members, leaf.elements = [leaf], [leaf]
            leaf.expansion, leaf.height = leaf.weight, 1
            self.parts.append(leaf)
            part.same.append(leaf)
            return
        raise Excess(part.place, f"has a `{keyword}` that cannot be followed: {reference[:100]}")

    def _targets(self, base: str, reference: str) -> Iterator[Any]:
        """Yield whatever a reference may mean, each once: rather too much than too little."""
        url, fragment = urldefrag(urljoin(base, reference))
        fragment = unquote(fragment)
        roots = [self._document] if reference.startswith("#") or not url else []
        roots += self._resources.get(url, [])
        seen: set[int] = set()
        found = (
            [target for root in roots for target in _at(root, fragment)]
            if not fragment or fragment.startswith("/")
            else self._anchors.get(fragment, [])
        )
        for target in found:
            if id(target) not in seen:
                seen.add(id(target))
                yield target


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


def _at(root: Any, pointer: str) -> Iterator[Any]:
    here = root
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = here[name]
        elif isinstance(here, list) and name in map(str, range(len(here))):
            here = here[int(name)]
        else:
            return
    yield here


def _order_parts(parts: list[_Part]) -> list[_Part]:
    """Return the parts such that what holds for the same value comes before what refers to it.

    Raises:
        Excess: A part holds for a value only if itself does, for the same value.
    """
    order: list[_Part] = []
    state: dict[_Part, bool] = {}
    for start in parts:
        pending: list[tuple[_Part, Iterator[_Part]]] = []
        if start not in state:
            state[start] = False
            pending.append((start, iter(start.same)))
        while pending:
            part, following = pending[-1]
            inner = next(following, None)
            if inner is None:
                state[part] = True
                part.rank = len(order)
                order.append(part)
                pending.pop()
            elif inner not in state:
                state[inner] = False
                pending.append((inner, iter(inner.same)))
            elif not state[inner]:
                raise Excess(part.place, "refers to itself for the same value")
    return order


def _expand(order: list[_Part]) -> None:
    for part in order:
        again = 2 if part.is_rewalked else 1
        below = again * sum(inner.expansion for inner in part.same)
        part.expansion = min(part.weight + below, _CAP)
        part.height = 1 + max((inner.height for inner in part.same), default=0)


def _loads(order: list[_Part], root: _Part) -> Load | None:
    evaluations = _load(order, root, lambda part: part.weight, rewalks=True)
    states = _load(order, root, lambda part: part.states)
    slow = _load(order, root, lambda part: part.slow_states)
    if evaluations is None or states is None or slow is None:
        return None
    return Load(evaluations, states, slow)


def _load(
    order: list[_Part], root: _Part, own: Callable[[_Part], int], *, rewalks: bool = False
) -> int | None:
    """Return the most of something that any one value can meet; None where it has no bound.

    The first round sees values at the root, each further one a level more. When a round changes
    nothing, no level will.
    """
    here: dict[_Part, int] = {}
    for part in order:
        again = 2 if part.is_rewalked else 1
        here[part] = min(own(part) + again * sum(here[each] for each in part.same), _CAP)
    most = dict(here)
    # The others say nothing about what is inside a value.
    active = [part for part in order if part.same or part.has_inner]
    for _ in range(_ROUNDS_MAX if any(here.values()) else 0):
        inside: dict[_Part, int] = {}
        is_settled = True
        for part in active:
            inside[part] = min(
                _inside(part, most, rewalks=rewalks)
                + sum(inside.get(each, 0) for each in part.same),
                _CAP,
            )
            if inside[part] > most[part]:
                most[part], is_settled = inside[part], False
        if is_settled:
            return most[root]
    return None if any(here.values()) else 0


def _inside(part: _Part, most: Mapping[_Part, int], *, rewalks: bool) -> int:
    """Return the most that one value inside can meet because of this part alone."""
    members = sum(most[each] for each in (*part.members, *part.names))
    members += max((most[each] for each in part.named.values()), default=0)
    elements = sum(most[each] for each in part.elements)
    elements += max((most[each] for each in part.leading), default=0)
    # What nothing else has looked at is found by asking everything else again.
    return max(members, elements) + (part.expansion if rewalks and part.is_rewalked else 0)


def _is_recursive(root: _Part) -> bool:
    """Whether a schema contains itself."""
    state: dict[_Part, bool] = {root: False}
    pending: list[tuple[_Part, Iterator[_Part]]] = [(root, _next(root))]
    while pending:
        part, following = pending[-1]
        inner = next(following, None)
        if inner is None:
            state[part] = True
            pending.pop()
        elif inner not in state:
            state[inner] = False
            pending.append((inner, _next(inner)))
        elif not state[inner]:
            return True
    return False


def _next(part: _Part) -> Iterator[_Part]:
    yield from part.same
    yield from part.inner


def pattern_states(pattern: str) -> int:
    """Return how many steps a pattern has once its repetitions are written out, or more."""
    groups, last, at = [0], 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "(":
            groups.append(0)
            at, last = at + 1, 0
            continue
        if char == "{" and (repeated := _REPEATED.match(pattern, at)):
            times = max(int(each) for each in repeated.groups() if each)
            groups[-1] = min(groups[-1] + last * max(0, times - 1), _CAP)
            last = min(last * max(1, times), _CAP)
            at = repeated.end()
            continue
        if char == ")" and len(groups) > 1:
            last, at = groups.pop() + 1, at + 1
        else:
            at, last = _step(pattern, at)
        groups[-1] = min(groups[-1] + last, _CAP)
    return max(1, sum(groups))


def _step(pattern: str, at: int) -> tuple[int, int]:
    """Return where the next step of a pattern begins, and how many this one counts for."""
    char = pattern[at]
    if char == "\\":
        return at + 2, _UNICODE_STATES if pattern[at + 1 : at + 2] in {"p", "P"} else 1
    if char == "[":
        end = at + 1
        while end < len(pattern) and pattern[end] != "]":
            end += 2 if pattern[end] == "\\" else 1
        return end + 1, _class_states(pattern[at + 1 : end])
    return at + 1, _CLASS_STATES if char == "." else 1


def _class_states(inside: str) -> int:
    """Return how many steps it takes to read one character of a class."""
    if "\\p" in inside.casefold():
        return _UNICODE_STATES * inside.casefold().count("\\p")
    # A character beyond ASCII is several bytes, and the engine reads bytes.
    return 1 if inside.isascii() and not inside.startswith("^") else _CLASS_STATES
