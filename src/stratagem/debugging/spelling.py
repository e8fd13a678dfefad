"""How the fields of an environment are spelled: any JSON in, plain words and versions out.

Every function here is idempotent, so that an environment that is read twice stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from unicodedata import normalize

from stratagem import limits
from stratagem.debugging import vocabulary
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import cache_texts

__all__ = [
    "KnownName",
    "find",
    "flatten",
    "fold",
    "key_of",
    "name_of",
    "own_version",
    "starting_version",
    "version_in",
]

# A number that begins a word or ends one: not the 4 of `log4j`, but the 3 of `python3`.
_VERSION: Final = re.compile(
    r"(?<![a-z0-9.])v?([0-9]+(?:\.[0-9]+)*)|(?<=[a-z+#])([0-9]+(?:\.[0-9]+)*)(?![a-z0-9])"
)
_STARTING_VERSION: Final = re.compile(r"[\s=^~<>!(]*v?([0-9]+(?:\.[0-9]+)*)")
_NO_LETTERS: Final = re.compile(r"(?:[^\w+#]|_)+")
_INTEGER_MAX: Final = 10**18
_DEPTH_MAX: Final = 4
_VERSION_PARTS: Final = 3

# What an object in place of a text calls the text and its version.
_INNER_NAMES: Final = ("name", "family", "model", "type", "distribution")
_INNER_VERSIONS: Final = ("version", "release")


class KnownName(NamedTuple):
    """A known thing in a text: its name in buckets, the name that was used, its version."""

    name: str
    alias: str
    version: str


def fold(text: str) -> str:
    """Return a text without case, extra spaces and variants of letters, cut to its limit."""
    return _fold_cached(text[: limits.ENV_VALUE_CHARS_MAX])


def key_of(key: object) -> str:
    """Return the name of a field in lower case, with single underscores."""
    return _key(str(key)[: limits.ENV_VALUE_CHARS_MAX])


def flatten(env: Mapping[Any, Any], depth: int = _DEPTH_MAX) -> Iterator[tuple[str, str]]:
    """Yield the fields of an environment as text; inner objects and lists become fields too."""
    for key, value in env.items():
        name = key_of(key)
        if name and depth:
            yield from _fields(name, value, depth - 1)


def name_of(text: str) -> str:
    """Return a name that no table has: its letters and inner digits, and no version."""
    name = _NO_LETTERS.sub("", text)
    while found := _VERSION.search(name):
        name = name[: found.start()]
    return name


def version_in(text: str) -> tuple[str, str]:
    """Return what comes before the version in a text, and the version or nothing."""
    found = _VERSION.search(text)
    if not found:
        return text, ""
    return text[: found.start()], _plain_version(found[1] or found[2])


def starting_version(text: str) -> str:
    """Return the version that a text begins with, or nothing; of a range, its first."""
    found = _STARTING_VERSION.match(text)
    return _plain_version(found[1]) if found else ""


def find(slot: str, text: str) -> KnownName | None:
    """Return what a text names among the things known for a slot."""
    table = vocabulary.NAMES[slot]
    before, version = version_in(text)
    for word in (_NO_LETTERS.sub("", before), *_NO_LETTERS.split(before)):
        alias = word if word in table else word.removesuffix("js")
        if alias in table:
            return KnownName(table[alias], alias, version)
    if not version or name_of(before):
        return None
    # The number came first: `2x RTX 4090`, `3.11 (CPython)`.
    found = find(slot, _VERSION.sub(" ", text, count=1))
    return found and found._replace(version=found.version or version)


def own_version(name: str, version: str) -> str:
    """Return a version in the numbering that its maker uses."""
    major, _, rest = version.partition(".")
    if name == "py" and len(major) > 1:
        # py311, python27
        return f"{major[0]}.{major[1:]}"
    if name == "cuda" and len(major) == 3:  # noqa: PLR2004 -- cu121
        return f"{major[:2]}.{major[2]}"
    if name == "java" and major == "1" and rest:
        # Java 8 called itself 1.8.
        return own_version(name, _plain_version(rest))
    if name == "node" and len(major) > 3:  # noqa: PLR2004 -- ES2022 is no version of Node
        return ""
    return version


# Environments repeat the same few words.
@cache_texts(4096)
def _fold_cached(text: str) -> str:
    folded = normalize("NFKD", normalize("NFKD", text).casefold())
    return " ".join(folded.split())[: limits.ENV_VALUE_CHARS_MAX].strip()


@cache_texts(4096)
def _key(text: str) -> str:
    return _NO_LETTERS.sub("_", _fold_cached(text)).strip("_")


def _plain_version(digits: str) -> str:
    major, *rest = digits.split(".")[:_VERSION_PARTS]
    return ".".join([major.lstrip("0") or "0", *rest])


def _fields(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield from _inner(name, value, depth)
    elif isinstance(value, list | tuple):
        for item in value if depth else ():
            yield from _fields(name, item, depth - 1)
    else:
        yield name, _text(value)


def _inner(name: str, value: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, str]]:
    """Yield an object: as one text if it has a name or a version, else field by field."""
    # Of two spellings of one key the first in order counts, whatever came first.
    inner = dict(sorted(flatten(value, depth), reverse=True))
    called = next((inner.pop(key) for key in _INNER_NAMES if key in inner), "")
    version = next((inner.pop(key) for key in _INNER_VERSIONS if key in inner), "")
    if called or version:
        yield name, fold(f"{called} {version}")
        yield from ((key_of(f"{name}_{key}"), text) for key, text in inner.items())
    else:
        yield from flatten(value, depth)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Python refuses to write out thousands of digits.
        return str(max(-_INTEGER_MAX, min(value, _INTEGER_MAX)))
    if isinstance(value, float):
        return f"{value:.12g}"
    return fold(str(value))
