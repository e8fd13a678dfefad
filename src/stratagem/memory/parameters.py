"""The parameters that several methods of memory have, with their words and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from stratagem.engine.lineage import OPEN_END
from stratagem.parameters import Param

__all__ = [
    "KEY_ALIASES",
    "PATH_ALIASES",
    "SESSION_ALIASES",
    "TAG_ALIASES",
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

KEY_ALIASES: Final = ("name", "id", "entry")
PATH_ALIASES: Final = ("json_path",)
TAG_ALIASES: Final = ("tag", "label", "labels")
SESSION_ALIASES: Final = ("session_id", "conversation_id", "thread_id")

Key = Annotated[
    str | None,
    Param("The name that a value is stored under", quiet=True, aliases=KEY_ALIASES, plural="keys"),
]
Keys = Annotated[Sequence[str], Param("Several keys", aliases=("names", "ids"))]
Tags = Annotated[
    Sequence[str] | None, Param("Labels to filter a search by", quiet=True, aliases=TAG_ALIASES)
]
Path = Annotated[str | None, Param("One place of it: JSONPath", aliases=PATH_ALIASES)]
Session = Annotated[
    str | None,
    Param("Conversation id", aliases=SESSION_ALIASES),
]
ErasedKey = Annotated[
    str | None,
    Param("Entry to erase, with every version on any branch", aliases=KEY_ALIASES),
]
ErasedSequence = Annotated[int | None, Param("Logged event to erase", ge=1, le=OPEN_END)]
NewName = Annotated[str | None, Param("The name of the branch", quiet=True)]
MergeStrategy = Annotated[
    Literal["source_wins", "target_wins"] | None,
    Param("merge: who wins; default: refuse and list conflicts"),
]
Decisions = Annotated[
    Mapping[str, Any] | None,
    Param("merge: {conflict id: source, target or {value: …}}"),
]
