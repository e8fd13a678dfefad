"""Corrections that were offered, until somebody confirms one.

The id of an offer says which arguments it stands for, so that an offer can also be made anew from
the call it was made for: a server that was started since, or another one, can still honour it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.gateway.correction import Candidate, Fault

__all__ = ["Offered", "Offers", "is_brief", "offer_id"]

_KEPT_MAX: Final = 10_000
Offered = tuple[Candidate, tuple[Fault, ...]]


def offer_id(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of a correction: of the tool and the arguments it would run with."""
    data = orjson.dumps([tool, arguments], option=orjson.OPT_SORT_KEYS)
    return f"corr_{hashlib.sha256(data).hexdigest()[:16]}"


def is_brief(arguments: Any) -> bool:
    """Whether arguments are short enough to be kept in memory."""
    try:
        return len(orjson.dumps(arguments)) <= limits.CORRECTION_KEPT_BYTES_MAX
    except (TypeError, ValueError, RecursionError):
        return False


class Offers:
    """The offers of this process, each for the caller and the tool it was made for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], Offered] = OrderedDict()

    def put(self, caller: str, tool: str, offered: Offered) -> str:
        """Keep an offer, unless it is long: it can be made anew. Return its id."""
        made = offer_id(tool, offered[0].arguments)
        if not is_brief(offered[0].arguments):
            return made
        key = (caller, tool, made)
        self._kept[key] = offered
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return made

    def get(self, caller: str, tool: str, made: str) -> Offered | None:
        """Return an offer that was made to a caller for a tool."""
        return self._kept.get((caller, tool, made))
