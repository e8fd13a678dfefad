"""Environments: a caller's description of its machine, in a comparable form.

People write the same environment in many ways. Six things in it decide whether a fix carries
over: operating system, language, framework, runtime, GPU and architecture. Each is found under
whatever key it was given (`python: 3.11`, `language: Python` with `language_version: 3.11`,
`runtime: python3.11`) and gets the one name that `vocabulary` has for it; everything else is kept
as it is, in lower case. Reading the result again changes nothing.

The *bucket* is what outcomes are counted by: names and major versions, as in
`linux|py3|torch2|cuda12|docker`. The system's version, the runtime's and the free fields are
left out of it, and so is `x86_64`, which most people have and few mention. A name that nobody
could place by itself is prefixed by its slot: `os:haiku`. An unknown framework has no prefix beside
a system or a language; alone it might be any word. If nothing is known the bucket is `unknown`.

*Similarity* is Σ weight · match / Σ weight over everything that at least one side mentions:

    weight   2 system, language, framework; 1 runtime, GPU, architecture; 0.5 each free field
    match    1 the same; 0.75 another minor version, or a version known on one side only;
             0.5 another major version, or known on one side only; 0 different

Versions are compared as far as both are known: 3 is the same as 3.11. Two empty environments have a
similarity of 1, as any environment has with itself.

Two environments *contradict* each other in fields that both have with different values: another
name, or another major version. A missing field contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from stratagem import limits
from stratagem.debugging import spelling, vocabulary
from stratagem.debugging.environment_fields import VERSIONED, SlotValue, parse_fields, role_of
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ValidationFailed
from stratagem.function_cache import cache_texts

__all__ = [
    "Environment",
    "canonical",
    "contradictions",
    "from_bucket",
    "is_like",
    "similarity",
]

# In the order in which a bucket shows them.
_WEIGHTS: Final = {
    "os": 2.0,
    "language": 2.0,
    "framework": 2.0,
    "gpu": 1.0,
    "runtime": 1.0,
    "arch": 1.0,
}
_WEIGHT_OTHER: Final = 0.5
_SAME: Final = 1.0
_NEAR: Final = 0.75
_HALF: Final = 0.5
_DIFFERENT: Final = 0.0

_UNKNOWN: Final = "unknown"
# Six names with their slots and versions are shorter.
_BUCKET_CHARS_MAX: Final = 1024
_USUAL_ARCH: Final = "x86_64"
_ARCHES: Final = frozenset(vocabulary.ARCHITECTURES.values())
_OWNER: Final = {
    name: slot for slot, table in vocabulary.NAMES.items() for name in table.values()
} | dict.fromkeys(_ARCHES, "arch")
_TOKEN: Final = re.compile(rf"(?:({'|'.join(_WEIGHTS)}):)?((?:.*[^0-9])?)([0-9]*+)", re.DOTALL)


class _Trait(NamedTuple):
    weight: float
    name: str
    version: tuple[int, ...]


@dataclass(frozen=True)
class Environment:
    """An environment in canonical form.

    `fields` are its fields as text: the six that count first, each with its version behind it,
    then the free ones in order. Two that say the same are equal.
    """

    fields: tuple[tuple[str, str], ...]
    bucket: str

    def as_dict(self) -> dict[str, str]:
        """Return the fields; `canonical` makes this very environment of them again."""
        return dict(self.fields)

    @cached_property
    def traits(self) -> Mapping[str, _Trait]:
        """The compared traits; cached, because every outcome is compared with the caller."""
        fields = self.as_dict()
        traits = {}
        for slot, weight in _WEIGHTS.items():
            if slot in fields:
                version = fields.pop(f"{slot}_version", "") if slot in VERSIONED else ""
                traits[slot] = _Trait(weight, fields.pop(slot), _numbers(version))
        for key, text in fields.items():
            name, version = spelling.version_in(text)
            traits[key] = _Trait(_WEIGHT_OTHER, name.strip(), _numbers(version))
        return traits


def canonical(env: Mapping[str, Any] | Environment) -> Environment:
    """Return an environment in canonical form.

    Aliases, case, spaces, the order of keys and the detail of versions do not change the
    bucket, and no key or JSON value is refused. Free fields beyond the limit are left out.

    Raises:
        ValidationFailed: It is no mapping.
    """
    if isinstance(env, Environment):
        return env
    if not isinstance(env, Mapping):
        raise ValidationFailed(
            f"`env` must be an object, not {type(env).__name__}.",
            field="env",
            hint='Describe the environment, as in {"os": "linux", "python": "3.12"}.',
        )
    try:
        return _parse_cached(_cache_key(env)) if len(env) <= limits.ENV_FIELDS_MAX else _parse(env)
    except TypeError:
        # It has objects or lists inside, which cannot be remembered.
        return _parse(env)


def from_bucket(text: str) -> Environment | None:
    """Return the environment that a bucket stands for, or None if it is not in canonical form."""
    return _from_bucket(text) if len(text) <= _BUCKET_CHARS_MAX else None


# Every outcome that is read names its bucket, and there are few.
@cache_texts(4096)
def _from_bucket(text: str) -> Environment | None:
    fields: dict[str, str] = {}
    for token in text.split("|"):
        slot, name, version = _parse_token(token)
        if slot in fields:
            return None
        fields[slot] = name
        if version:
            fields[f"{slot}_version"] = version
    found = canonical(fields)
    return found if found.bucket == text else None


def similarity(one: Environment, other: Environment) -> float:
    """Return how alike two environments are, from 0 to 1; 1 if they are equal."""
    if one.fields == other.fields:
        return _SAME
    mine, theirs = one.traits, other.traits
    total = matched = 0.0
    for key in mine.keys() | theirs.keys():
        weight = (mine.get(key) or theirs[key]).weight
        total += weight
        matched += weight * _match(mine.get(key), theirs.get(key))
    return matched / total


def contradictions(one: Environment, other: Environment) -> int:
    """Return in how many things two environments contradict each other."""
    if one.fields == other.fields:
        return 0
    mine, theirs = one.traits, other.traits
    return sum(_contradict(mine[key], theirs[key]) for key in mine.keys() & theirs.keys())


def is_like(one: Environment, other: Environment) -> bool:
    """Say whether nothing that two buckets say contradicts the other one."""
    if one.bucket == other.bucket:
        return True
    if _UNKNOWN in {one.bucket, other.bucket}:
        return False
    mine, theirs = from_bucket(one.bucket), from_bucket(other.bucket)
    return mine is not None and theirs is not None and not contradictions(mine, theirs)


def _contradict(one: _Trait, other: _Trait) -> bool:
    # An empty version is a part of every other one.
    return one.name != other.name or (
        bool(one.version and other.version) and one.version[0] != other.version[0]
    )


def _match(one: _Trait | None, other: _Trait | None) -> float:
    if one is None or other is None:
        return _HALF
    if one.name != other.name:
        return _DIFFERENT
    if not one.version or not other.version:
        return _SAME if one.version == other.version else _NEAR
    if one.version[0] != other.version[0]:
        return _HALF
    minor, other_minor = one.version[1:2], other.version[1:2]
    return _SAME if minor == other_minor or not minor or not other_minor else _NEAR


def _numbers(version: str) -> tuple[int, ...]:
    numbers = spelling.starting_version(version)
    return tuple(int(part) for part in numbers.split(".")) if numbers else ()


def _cache_key(env: Mapping[str, Any]) -> tuple[tuple[str, Any, type], ...]:
    """Return the cache key of an environment; it includes the types, because True is equal to 1."""
    cut = limits.ENV_VALUE_CHARS_MAX
    return tuple(
        (str(key)[:cut], value[:cut] if isinstance(value, str) else value, type(value))
        for key, value in env.items()
    )


# Agents ask again and again from the same few environments, and every outcome has one.
@cache_texts(4096)
def _parse_cached(cache_key: tuple[tuple[str, Any, type], ...]) -> Environment:
    return _parse({key: value for key, value, _ in cache_key})


def _parse(env: Mapping[str, Any]) -> Environment:
    given = sorted(set(spelling.flatten(env)), key=lambda pair: (role_of(pair[0]) is None, pair))
    # What is known comes first, so that any number of free fields crowds out nothing.
    parts, other = parse_fields(given[: 4 * limits.ENV_FIELDS_MAX])
    fields = {}
    for slot in _WEIGHTS:
        if slot in parts:
            fields[slot] = parts[slot].name
            if parts[slot].version:
                fields[f"{slot}_version"] = parts[slot].version
    free = sorted(pair for pair in other.items() if pair[0] not in fields)
    kept = free[: limits.ENV_FIELDS_MAX - len(fields)]
    return Environment((*fields.items(), *kept), _bucket(parts))


def _bucket(parts: Mapping[str, SlotValue]) -> str:
    anchored = "os" in parts or "language" in parts
    tokens = [
        _token(slot, parts[slot], anchored=anchored)
        for slot in _WEIGHTS
        if slot in parts and parts[slot].name != _USUAL_ARCH
    ]
    return "|".join(tokens) or _UNKNOWN


def _token(slot: str, part: SlotValue, *, anchored: bool) -> str:
    """Return a part as a bucket shows it: bare if it can be read back, else with its slot."""
    major = part.version.partition(".")[0]
    text = f"{part.name}{major}"
    placed = anchored or part.name in _OWNER
    return text if placed and _parse_token(text) == (slot, part.name, major) else f"{slot}:{text}"


def _parse_token(token: str) -> tuple[str, str, str]:
    """Return the slot, the name and the major version that a token of a bucket stands for."""
    found = _TOKEN.fullmatch(token)
    assert found is not None
    slot, name, version = found.groups()
    if slot == "arch" or token in _ARCHES:
        return "arch", f"{name}{version}", ""
    return slot or _OWNER.get(name, "framework"), name, version
