"""The parameters that several operations of developer mode have, with their words and bounds."""

from __future__ import annotations

from typing import Annotated, Final

from stratagem import limits
from stratagem.parameters import COUNT_ALIASES, Param

__all__ = ["HistoryLimit", "Indexed", "JsonPath", "KeyName", "ListLimit", "Prefix", "SpaceName"]

_SPACE_ALIASES: Final = ("ns", "space")

KeyName = Annotated[str, Param("The key", quiet=True)]
SpaceName = Annotated[
    str | None,
    Param("The space (namespace); the current one by default", quiet=True, aliases=_SPACE_ALIASES),
]
Prefix = Annotated[str | None, Param("Only keys with this prefix", quiet=True)]
JsonPath = Annotated[str, Param("JSONPath of one value, $.a.b[0]; $: all of it")]
Indexed = Annotated[bool, Param("true: strata_search finds it too")]
ListLimit = Annotated[
    int,
    Param("How many per page", quiet=True, ge=1, le=limits.LIST_PAGE_MAX, aliases=COUNT_ALIASES),
]
HistoryLimit = Annotated[
    int,
    Param("How many per page", quiet=True, ge=1, le=limits.HISTORY_PAGE_MAX, aliases=COUNT_ALIASES),
]
