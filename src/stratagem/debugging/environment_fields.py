"""Parse the fields of an environment as a caller describes it.

Each field claims a value for a slot: the system, the language, the framework, the GPU, the
runtime or the architecture. A field that names its slot (`language`) wins over one that names
the thing (`python`); between several things the one first in the vocabulary wins. Claims that lost
become free fields. The result does not depend on the order of the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from stratagem.debugging import spelling, vocabulary
from stratagem.debugging.spelling import KnownName
from stratagem.debugging.vocabulary import ABSENT, PRESENT
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_patterns import deferred_pattern
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import cache_texts

__all__ = ["VERSIONED", "Role", "SlotValue", "parse_fields", "role_of"]

# The slots whose major version tells environments apart.
VERSIONED: Final = ("language", "framework", "gpu")

# Where a name is looked for that the table of its own slot does not have.
_ELSEWHERE: Final = {
    "os": ("runtime", "language"),
    "language": ("framework",),
    "framework": ("language", "runtime"),
    "runtime": ("language", "framework"),
    "gpu": (),
}
# Up to this rank a field certainly belongs to its slot, whatever its value.
_RANK_SURE: Final = 1
# After every field that names its slot: things found elsewhere, and fields named after a thing.
_RANK_ELSEWHERE: Final = 5
_RANK_NAMED: Final = 6
# Values that mean "none".
_NOTHING: Final = {"gpu": "cpu", "runtime": "bare"}
# Values that name nothing, such as "unknown".
_NO_NAMES: Final = vocabulary.MISSING | ABSENT | PRESENT
_BOXES: Final = ("docker", "container")

_ARCH: Final = deferred_pattern(
    r"(?<![a-z0-9])(?:x86[_-]64|"
    + "|".join(sorted(vocabulary.ARCHITECTURES, key=len, reverse=True))
    + r")(?![a-z0-9])"
)
_DISTRIBUTION: Final = deferred_pattern(
    rf"(?<![a-z])(?:{'|'.join(vocabulary.DISTRIBUTIONS)})(?![a-z])"
)
_WSL: Final = deferred_pattern(
    r"(?<![a-z])(?:wsl|microsoft-standard|windows[ _-]?subsystem[ _-]?for[ _-]?linux)"
)
_SUBSYSTEM: Final = deferred_pattern(
    r"windows[ _-]?subsystem[ _-]?for[ _-]?linux(?:[ -]?v?[12](?![0-9.]))?"
)
# Here the digits are part of the name.
_NAME_DIGITS: Final = deferred_pattern(r"(?<![a-z])(win|wsl)(?:32|64|[12](?![0-9]))")
_GPU_MODELS: Final = (
    (re.compile(r"(?<![a-z0-9])(?:[abhlptv][0-9]{1,4}[a-z]{0,2}|[rg]tx)(?![a-z])"), "cuda"),
    (re.compile(r"(?<![a-z0-9])mi[0-9]{2,3}"), "rocm"),
    (re.compile(r"(?<![a-z0-9])m[1-9](?![a-z0-9])"), "mps"),
)
_DEVICE_NUMBER: Final = deferred_pattern(r":[0-9]+$")


class SlotValue(NamedTuple):
    """What an environment has in a slot."""

    name: str
    version: str


class Role(NamedTuple):
    """What a key is for: `kind` is slot, version, named or wsl."""

    kind: str
    slot: str = ""
    rank: int = _RANK_NAMED
    name: str = ""
    alias: str = ""


class _Claim(NamedTuple):
    """A claim that a slot holds something; the lowest one wins."""

    rank: int
    priority: int
    name: str
    version: str
    alias: str


def parse_fields(given: Iterable[tuple[str, str]]) -> tuple[dict[str, SlotValue], dict[str, str]]:
    """Return what an environment has in each slot, and its free fields."""
    parser = _EnvironmentParser()
    for key, text in given:
        if text not in vocabulary.MISSING:
            parser.add_field(key, text)
    return parser.resolve_slots(), parser.other


@cache_texts(4096)
def role_of(key: str) -> Role | None:
    """Return what a key is for, or None for a free one."""
    plain = key.replace("_", "")
    stem = plain.removesuffix("version")
    if plain == "wsl":
        return Role("wsl")
    if stem in vocabulary.ROLES:
        slot, rank = vocabulary.ROLES[stem]
        return Role("slot" if stem == plain else "version", slot, rank)
    for slot in ("language", "framework", "gpu", "runtime"):
        table = vocabulary.NAMES[slot]
        alias = stem if stem in table else stem.removesuffix("js")
        if alias in table and alias not in vocabulary.NOT_KEYS:
            return Role("named", slot, name=table[alias], alias=alias)
    return None


@dataclass
class _EnvironmentParser:
    """The claims and free fields collected from an environment so far."""

    claims: dict[str, list[_Claim]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)

    def add_field(self, key: str, text: str) -> None:
        """Interpret a field, or keep it as a free one."""
        role = role_of(key)
        if role is None:
            before = self.other.get(key)
            self.other[key] = spelling.fold(f"{before}, {text}") if before else text
        elif not self._interpret(role, text):
            self._add_free_field(key, text)

    def resolve_slots(self) -> dict[str, SlotValue]:
        """Return the winning value of each slot; claims that lost become free fields."""
        if "wsl" in self.other:
            self.claims["os"] = [each for each in self.claims.get("os", ()) if each.name == "linux"]
            self._claim("os", "linux")
        parts = {slot: self._resolve_slot(slot) for slot in self.claims}
        for slot, version in self.versions.items():
            self.other.setdefault(f"{slot}_version", version)
        return parts

    def _interpret(self, role: Role, text: str) -> bool:
        if role.kind == "wsl":
            return text in ABSENT or self._add_free_field("wsl", "true")
        if role.kind == "version":
            return self._read_version(role, text)
        if role.kind == "named":
            return self._read_thing(role, text)
        if role.slot == "os":
            return self._read_system(role.rank, text)
        if role.slot == "arch":
            return self._read_architecture(role.rank, text)
        return self._read_slot(role, text)

    def _claim(
        self, slot: str, name: str, version: str = "", *, rank: int = _RANK_NAMED, alias: str = ""
    ) -> bool:
        alias = alias or name
        own = "" if _has_own_number(slot, alias) else spelling.own_version(name, version)
        priority = vocabulary.PRIORITY.get(name, -1)
        self.claims.setdefault(slot, []).append(_Claim(rank, priority, name, own, alias))
        return True

    def _add_free_field(self, key: str, text: str) -> bool:
        self.other.setdefault(key, text)
        return True

    def _read_version(self, role: Role, text: str) -> bool:
        version = spelling.starting_version(text)
        if version:
            self.versions.setdefault(role.slot, version)
        return bool(version)

    def _read_thing(self, role: Role, text: str) -> bool:
        """Read a field that is named after a thing: its value is a version, or yes or no."""
        if text in PRESENT and text != "1":
            return self._claim(role.slot, role.name, alias=role.alias)
        version = spelling.starting_version(text)
        if text in ABSENT or version == "0":
            boxed = role.slot == "gpu" or role.name in _BOXES
            return boxed and self._claim(role.slot, _NOTHING[role.slot])
        if version:
            if _has_own_number(role.slot, role.alias):
                self._add_free_field(role.alias, version)
            return self._claim(role.slot, role.name, version, alias=role.alias)
        found = spelling.find(role.slot, text)
        if found is None or found.name != role.name:
            return False
        return self._claim(role.slot, found.name, found.version, alias=found.alias)

    def _read_system(self, rank: int, text: str) -> bool:
        if _WSL.search(text):
            self._add_free_field("wsl", "true")
            # Named after its host, it is Linux all the same.
            text = _SUBSYSTEM.sub("linux", text)
        if arch := _ARCH.search(text):
            self._read_architecture(_RANK_ELSEWHERE, arch[0])
            text = f"{text[: arch.start()]} {text[arch.end() :]}"
        text = _NAME_DIGITS.sub(r"\1 ", text)
        found = spelling.find("os", text)
        if found is None:
            return self._claim_other_slot("os", text) or (
                rank <= _RANK_SURE and self._claim_unknown_name("os", rank, text)
            )
        if distribution := _DISTRIBUTION.search(text):
            self._add_free_field("distro", distribution[0])
        return self._claim("os", found.name, found.version, rank=rank)

    def _read_architecture(self, rank: int, text: str) -> bool:
        plain = "".join(letter for letter in text if letter.isalnum())
        known = _ARCH.search(text)
        name = vocabulary.ARCHITECTURES.get(plain) or (known and _architecture_of(known[0]))
        if not name and rank > _RANK_SURE:
            return False
        return plain in _NO_NAMES or self._claim("arch", name or plain, rank=rank)

    def _read_slot(self, role: Role, text: str) -> bool:
        """Read a field that names its slot: a language, a framework, a runtime or a GPU."""
        slot, rank = role.slot, role.rank
        if text in ABSENT:
            return slot not in _NOTHING or self._claim(slot, _NOTHING[slot], rank=rank)
        if text in PRESENT or (slot == "gpu" and text.isdecimal()):
            name = {"gpu": "gpu", "runtime": "container"}.get(slot)
            # The presence of a GPU tells less than its model.
            return name is None or self._claim(slot, name, rank=_RANK_NAMED)
        found = _find_gpu(text) if slot == "gpu" else spelling.find(slot, text)
        if found:
            return self._claim(slot, found.name, found.version, rank=rank, alias=found.alias)
        if self._claim_other_slot(slot, text):
            return True
        return self._claim_unknown_name(slot, rank, text)

    def _claim_other_slot(self, slot: str, text: str) -> bool:
        for place in _ELSEWHERE[slot]:
            if found := spelling.find(place, text):
                rank = _RANK_ELSEWHERE
                return self._claim(place, found.name, found.version, rank=rank, alias=found.alias)
        return False

    def _claim_unknown_name(self, slot: str, rank: int, text: str) -> bool:
        """Claim a slot for a name that no table has, or note a version without a name."""
        before, version = spelling.version_in(text)
        name = spelling.name_of(before)
        if name and name not in _NO_NAMES:
            return self._claim(slot, name, version, rank=rank)
        if version:
            self.versions.setdefault(slot, version)
        return True

    def _resolve_slot(self, slot: str) -> SlotValue:
        ranked = sorted(self.claims[slot])
        winner = ranked[0]
        explicit = self.versions.pop(slot, "")
        if explicit and _has_own_number(slot, winner.alias):
            self._add_free_field(winner.alias, explicit)
            explicit = ""
        version = spelling.own_version(winner.name, explicit) or _most_detailed(ranked, winner.name)
        for claim in ranked:
            if claim.name != winner.name:
                self._demote_claim(slot, claim, _most_detailed(ranked, claim.name))
        if slot in VERSIONED:
            return SlotValue(winner.name, version)
        if version:
            self._add_free_field(f"{slot}_version", version)
        return SlotValue(winner.name, "")

    def _demote_claim(self, slot: str, claim: _Claim, version: str) -> None:
        """Keep a rejected claim as a free field, if parsing that field gives the same claim."""
        key = claim.alias if _has_own_number(slot, claim.alias) else claim.name
        role = role_of(key)
        free = role is None or (role.slot, role.name) == (slot, claim.name)
        if free and slot in ("language", "framework", "runtime") and claim.name != "bare":
            self._add_free_field(key, version or "true")


def _find_gpu(text: str) -> KnownName | None:
    found = spelling.find("gpu", _DEVICE_NUMBER.sub("", text))
    if found:
        return found
    models = (name for model, name in _GPU_MODELS if model.search(text))
    name = next(models, None)
    return KnownName(name, name, "") if name else None


def _has_own_number(slot: str, alias: str) -> bool:
    return alias in vocabulary.OWN_NUMBERS and alias in vocabulary.NAMES.get(slot, ())


def _architecture_of(word: str) -> str:
    return vocabulary.ARCHITECTURES[word.replace("_", "").replace("-", "")]


def _most_detailed(claims: Iterable[_Claim], name: str) -> str:
    versions = [claim.version for claim in claims if claim.name == name]
    return max(versions, key=lambda version: len(version.split(".")) if version else 0)
