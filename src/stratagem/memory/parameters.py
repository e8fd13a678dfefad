"""The parameters that several methods of memory have, with their words and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from stratagem.engine.lineage import OPEN_END
from stratagem.errors import MissingRequired, ValidationFailed
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
    "require_one",
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


def require_one(given: Mapping[str, object]) -> None:
    """Refuse a call that has none, or several, of parameters of which one is needed.

    Raises:
        MissingRequired: None was given.
        ValidationFailed: Several were.
    """
    names = [name for name, value in given.items() if value is not None]
    listed = " or ".join(f"`{name}`" for name in given)
    if not names:
        raise MissingRequired(
            f"Give {listed}.", field=next(iter(given)), hint="Add one of them and call again."
        )
    if len(names) > 1:
        raise ValidationFailed(
            f"Give {listed}, not both.",
            field=names[-1],
            hint="Leave one of them out and call again; nothing was done.",
        )
