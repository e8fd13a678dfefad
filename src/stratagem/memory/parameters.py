"""The parameters that several methods of memory have, with their words and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from stratagem.engine.lineage import OPEN_END
from stratagem.parameters import Param
from stratagem.storage.branch_merge import Strategy

__all__ = [
    "Decisions",
    "ErasedKey",
    "ErasedSequence",
    "Key",
    "Keys",
    "MergeStrategy",
    "NewName",
    "Path",
    "Session",
    "Tags",
]

Key = Annotated[str | None, Param("The name that a value is stored under", quiet=True)]
Keys = Annotated[Sequence[str], Param("Several keys")]
Tags = Annotated[Sequence[str] | None, Param("Labels to filter a search by", quiet=True)]
Path = Annotated[str | None, Param("One place of it: JSONPath")]
Session = Annotated[str | None, Param("Conversation id")]
ErasedKey = Annotated[str | None, Param("Entry to erase, with every version on any branch")]
ErasedSequence = Annotated[int | None, Param("Logged event to erase", ge=1, le=OPEN_END)]
NewName = Annotated[str | None, Param("The name of the branch", quiet=True)]
MergeStrategy = Annotated[
    Strategy | None, Param("merge: who wins; default: refuse and list conflicts")
]
Decisions = Annotated[
    Mapping[str, Any] | None,
    Param("merge: {conflict id: source, target or {value: …}}"),
]
