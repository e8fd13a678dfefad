"""Lookalikes: tools for the same job, and what tells them apart.

Catalogues that were gathered from many places hold the same tool several times over. A list of
five that are all but the same is no choice; a group with its differences is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from stratagem.gateway.advice.retrieval.texts import listed_values
from stratagem.search import analysis
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["difference", "group_duplicates", "is_duplicate"]

# Tools that share so many of their parameters, and are so alike in what they are for.
_PARAMETERS_MIN: Final = 0.6
_LIKENESS_MIN: Final = 0.85
_WORDS_MAX: Final = 8
_CHOICES_MAX: Final = 10

Content = Mapping[str, Any]


def is_duplicate(one: Content, two: Content, likeness: float) -> bool:
    """Whether two tools do the same with nearly the same parameters."""
    return likeness >= _LIKENESS_MIN and _share(set(_properties(one)), set(_properties(two)))


def group_duplicates(
    names: Sequence[str],
    content_of: Callable[[str], Content],
    likeness: Callable[[str, str], float],
) -> dict[str, list[str]]:
    """Return the tools by the first of their group, in the given order."""
    groups: dict[str, list[str]] = {}
    taken = {name: set(_properties(content_of(name))) for name in names}
    for name in names:
        first = next(
            (
                first
                for first in groups
                if _share(taken[first], taken[name]) and likeness(first, name) >= _LIKENESS_MIN
            ),
            None,
        )
        groups.setdefault(first or name, []).append(name)
    return groups


def _share(one: set[str], two: set[str]) -> bool:
    """Whether two tools take nearly the same."""
    return not (one or two) or len(one & two) >= _PARAMETERS_MIN * len(one | two)


def difference(one: Content, two: Content) -> dict[str, Any]:
    """Return what the second tool has otherwise than the first; empty where nothing differs."""
    a, b = _properties(one), _properties(two)
    shared = [name for name in a if name in b]
    found = {
        "lacks": [name for name in a if name not in b],
        "adds": [name for name in b if name not in a],
        "types": {
            name: [_kind(a[name]), _kind(b[name])]
            for name in shared
            if _kind(a[name]) != _kind(b[name])
        },
        "choices": {
            name: {
                "lacks": _without(listed_values(a[name]), listed_values(b[name])),
                "adds": _without(listed_values(b[name]), listed_values(a[name])),
            }
            for name in shared
            if listed_values(a[name]) != listed_values(b[name])
        },
        "defaults": {
            name: [a[name].get("default"), b[name].get("default")]
            for name in shared
            if a[name].get("default") != b[name].get("default")
        },
        "requires": _without(_required_names(two), _required_names(one)),
        "leavesOptional": _without(_required_names(one), _required_names(two)),
        "words": _words(one, two),
    }
    return {name: each for name, each in found.items() if each}


def _properties(content: Content) -> dict[str, Mapping[str, Any]]:
    schema = content.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return {}
    return {name: each if isinstance(each, Mapping) else {} for name, each in properties.items()}


def _required_names(content: Content) -> list[Any]:
    schema = content.get("inputSchema")
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return required if isinstance(required, list) else []


def _kind(parameter: Mapping[str, Any]) -> str:
    kind = parameter.get("type", "any")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _without(these: list[Any], those: list[Any]) -> list[Any]:
    return [each for each in these if each not in those][:_CHOICES_MAX]


def _words(one: Content, two: Content) -> list[str]:
    """Return words of the second description that the first one does not have."""
    known = set(analysis.terms(str(one.get("description") or "")))
    found: dict[str, None] = {}
    for word in str(two.get("description") or "").split():
        terms = set(analysis.terms(word)) - STOP_WORDS
        if terms and not terms & known:
            found[word.strip(".,;:!?()\"'")] = None
    return list(found)[:_WORDS_MAX]
