"""How the operations of developer mode become rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Unpack

import orjson

from stratagem import limits
from stratagem.answers import fit_list, plain
from stratagem.operation import Hints, Operation, SdkMethod, operation

__all__ = [
    "TOOLSET",
    "TRANSACTION",
    "Answer",
    "budget",
    "fit_results",
    "render_optional",
    "row",
    "say_json",
]

Answer = dict[str, Any]
TOOLSET: Final = "developer"
# Every call can be part of a transaction, by its id.
TRANSACTION: Final = "transaction"


def say_json(answer: Mapping[str, Any]) -> str:
    """Return an answer as JSON: whoever calls these operations reads JSON."""
    return orjson.dumps(answer).decode()


def render_optional(result: Any) -> Answer:
    """Return a result with whether there is one; a miss is no error."""
    return {"found": False} if result is None else {"found": True, **plain(result)}


def budget(given: Mapping[str, Any]) -> int:
    """Return how many characters an answer may have."""
    chars_max: int = given.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
    return chars_max


def fit_results(answer: Answer, given: Mapping[str, Any]) -> Answer:
    """Cut a list that cannot be continued to the budget."""
    return fit_list(answer, budget(given), None)


def row(
    name: str,
    method: Callable[..., Any],
    title: str,
    description: str,
    *,
    service: Callable[[Any, Any], Any],
    group: str,
    positional: tuple[str, ...] = (),
    answer_options: tuple[str, ...] = (TRANSACTION,),
    toolset: str = TOOLSET,
    summarise: Callable[[Answer], str] = say_json,
    render: Callable[[Any], Answer] = plain,
    fit: Callable[[Answer, Mapping[str, Any]], Answer] | None = None,
    own_cursor: bool = False,
    **hints: Unpack[Hints],
) -> Operation:
    """Return the row of a method, which the SDK has as `db.GROUP.METHOD`."""
    return operation(
        name,
        method,
        service=service,
        toolset=toolset,
        title=title,
        description=description,
        summarise=summarise,
        render=render,
        fit=fit,
        own_cursor=own_cursor,
        answer_options=answer_options,
        sdk=SdkMethod(method.__name__, positional, group=group),
        **hints,
    )
