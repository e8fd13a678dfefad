"""Environments: what a caller says of the machine, made comparable.

People write the same environment in many ways. Six things in it decide whether a fix carries
over: operating system, language, framework, runtime, GPU and architecture. Each is found under
whatever key it was given (`python: 3.11`, `language: Python` with `language_version: 3.11`,
`runtime: python3.11`) and gets the one name that `vocabulary` has for it; everything else is kept
as it is, in lower case. Reading the result again changes nothing.

The *bucket* is what outcomes are counted by: names and major versions, as in
`linux|py3|torch2|cuda12|docker`. The system's version, the runtime's and the free fields are
left out of it, and so is `x86_64`, which most people have and few mention. A name that nobody
could place by itself says where it belongs: `os:haiku`. An unknown framework stands bare beside a
system or a language; alone it might be any word. Without anything known the bucket is `unknown`.

*Similarity* is Σ weight · match / Σ weight over everything that at least one side mentions:

    weight   2 system, language, framework; 1 runtime, GPU, architecture; 0.5 each free field
    match    1 the same; 0.75 another minor version, or a version known on one side only;
             0.5 another major version, or known on one side only; 0 different

Versions are compared as far as both are known: 3 is the same as 3.11. Nothing compared with
nothing is 1, as any environment with itself: whoever says nothing asks about all who said nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

from stratagem import limits
from stratagem.debugging import spelling, vocabulary
from stratagem.errors import ValidationFailed

__all__ = ["Environment", "canonical", "from_bucket", "similarity"]

_WEIGHTS: Final = {
    "os": 2.0,
    "language": 2.0,
    "framework": 2.0,
    "gpu": 1.0,
    "runtime": 1.0,
    "arch": 1.0,
}
_WEIGHT_OTHER: Final = 0.5
_SAME, _NEAR, _HALF, _DIFFERENT = 1.0, 0.75, 0.5, 0.0
_VERSIONED: Final = ("language", "framework", "gpu")
_UNKNOWN: Final = "unknown"
_USUAL_ARCH: Final = "x86_64"

# Where a name is looked for that the table of its own slot does not have.
_ELSEWHERE: Final = {
    "os": ("runtime", "language"),
    "language": ("framework",),
    "framework": ("language", "runtime"),
    "runtime": ("language", "framework"),
    "gpu": (),
}
# After every field that names its slot, before those that are named after a thing.
_RANK_ELSEWHERE: Final = 5
_RANK_NAMED: Final = 6
_OWNER: Final = {
    name: slot for slot, table in vocabulary.NAMES.items() for name in table.values()
} | dict.fromkeys(vocabulary.ARCHITECTURES.values(), "arch")
_TOKEN: Final = re.compile(r"(?:([a-z]+):)?(.*?)([0-9]*)")
_ARCH_WORD: Final = re.compile(
    r"(?<![a-z0-9])(x86[_-]64|"
    + "|".join(sorted(vocabulary.ARCHITECTURES, key=len, reverse=True))
    + r")(?![a-z0-9])"
)
# The numbers here are part of the name.
_NAME_DIGITS: Final = re.compile(r"\b(?:win(?:32|64)|wsl[12]?)\b")


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
        """What is compared; kept, for every outcome is compared with the caller."""
        fields = self.as_dict()
        traits = {}
        for slot, weight in _WEIGHTS.items():
            if slot in fields:
                version = fields.pop(f"{slot}_version", "") if slot in _VERSIONED else ""
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
    given = sorted(set(spelling.flatten(env)), key=lambda pair: (_role(pair[0]) is None, pair))
    # What is known comes first, so that any number of free fields crowds out nothing.
    return _canonical(tuple(given[: 4 * limits.ENV_FIELDS_MAX]))


def from_bucket(text: str) -> Environment | None:
    """Return the environment that a bucket stands for, or None if it is not in canonical form."""
    fields: dict[str, str] = {}
    for token in text.split("|"):
        slot, name, version = _parsed(token)
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
    for key, trait in mine.items():
        total += trait.weight
        facing = theirs.get(key)
        matched += trait.weight * (_match(trait, facing) if facing else _HALF)
    missing = sum(trait.weight for key, trait in theirs.items() if key not in mine)
    return (matched + missing * _HALF) / (total + missing)


def _match(one: _Trait, other: _Trait) -> float:
    if one.name != other.name:
        return _DIFFERENT
    if one.version and other.version:
        if one.version[0] != other.version[0]:
            return _HALF
        return _SAME if _agree(one.version[1:2], other.version[1:2]) else _NEAR
    return _SAME if one.version == other.version else _NEAR


def _agree(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return not one or not other or one == other


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")) if version else ()


class _Claim(NamedTuple):
    """That a slot holds something; the lowest rank is heard."""

    rank: int
    priority: int
    name: str
    version: str = ""
    alias: str = ""


# Agents ask again and again from the same few environments.
@lru_cache(maxsize=4096)
def _canonical(given: tuple[tuple[str, str], ...]) -> Environment:
    reading = _Reading()
    for key, text in given:
        reading.take(key, text)
    return reading.environment()


@dataclass
class _Reading:
    """What has been gathered of an environment so far."""

    claims: dict[str, list[_Claim]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)

    def take(self, key: str, text: str) -> None:
        """Take a field for what it says, or else as a free one."""
        if text in vocabulary.MISSING:
            return
        role = _role(key)
        if role is None or not self._understood(*role, text):
            self.other.setdefault(key, text)

    def environment(self) -> Environment:
        """Return what was gathered."""
        if "wsl" in self.other:
            self.claims["os"] = [_Claim(0, 0, "linux")]
        parts = {slot: self._settled(slot) for slot in _WEIGHTS if slot in self.claims}
        for slot, version in self.versions.items():
            self.other.setdefault(f"{slot}_version", version)
        fields = list(chain.from_iterable(_fields(slot, *part) for slot, part in parts.items()))
        free = sorted(self.other.items())[: limits.ENV_FIELDS_MAX - len(fields)]
        return Environment((*fields, *free), _bucket(parts))
