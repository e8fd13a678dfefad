"""Answers as plain JSON, cut to what fits beside a conversation.

An answer that was cut says so, says how much was left out, and gives the cursor that
continues it. Nothing is ever cut silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

__all__ = ["fit_list", "fit_value", "plain"]

# Null is a value that can be stored, so these are kept when they are None.
_KEPT = frozenset({"value"})
_ENVELOPE_CHARS = 400


def plain(answer: Any) -> Any:
    """Return an answer as JSON, without the optional fields that are empty."""
    if is_dataclass(answer):
        return {
            each.name: plain(value)
            for each in fields(answer)
            if (value := getattr(answer, each.name)) is not None or each.name in _KEPT
        }
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return answer


def fit_list(
    answer: dict[str, Any], chars_max: int, next_of: Callable[[int], str], *, field: str = "results"
) -> dict[str, Any]:
    """Keep as many results as fit, at least one, and say where the rest begins."""
    results = answer[field]
    room = chars_max - _ENVELOPE_CHARS
    kept: list[Any] = []
    for result in results:
        size = _chars(result)
        if kept and size > room:
            break
        kept.append(result if size <= room else _shortened(result, room))
        room -= size
    left = len(results) - len(kept)
    if left:
        following = next_of(len(kept))
        answer |= {
            field: kept,
            "truncated": True,
            "next": following,
            "note": f"{left} more {'was' if left == 1 else 'were'} left out to stay within "
            f"{chars_max} characters; call again with cursor={following!r}.",
        }
    return answer | {field: kept}


def fit_value(answer: dict[str, Any], chars_max: int, begin: int) -> dict[str, Any]:
    """Cut a single value that is too long, and say how to go on reading it."""
    room = max(chars_max - _ENVELOPE_CHARS, 1)
    value = answer.get("value")
    if begin == 0 and _chars(value) <= room:
        return answer
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    end = begin + room
    cut = answer | {"value": text[begin:end], "truncated": end < len(text)}
    of = "text" if isinstance(value, str) else "the value's JSON text"
    note = f"Characters {begin} to {min(end, len(text))} of {len(text)} of {of}"
    if end < len(text):
        return cut | {
            "next": str(end),
            "note": f"{note}; call again with cursor={str(end)!r}, or name a path.",
        }
    return cut | {"note": f"{note}; this is the end."}


def _shortened(result: Any, room: int) -> Any:
    """Return one result whose value alone is too long, with the value's beginning."""
    if not isinstance(result, Mapping):
        return result
    shortened = dict(result)
    for name in ("value", "before", "after", "base", "ours", "theirs"):
        if name in shortened and _chars(shortened[name]) > room // 3:
            value = shortened[name]
            text = value if isinstance(value, str) else orjson.dumps(value).decode()
            shortened[name] = text[: room // 3] + "…"
            shortened["value_truncated"] = True
    return shortened


def _chars(value: Any) -> int:
    return len(orjson.dumps(value).decode())
