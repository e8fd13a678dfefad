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

from stratagem.gateway.correction import Candidate

__all__ = ["Offers", "offer_id"]

_KEPT_MAX: Final = 10_000


def offer_id(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of a correction: of the tool and the arguments it would run with."""
    data = orjson.dumps([tool, arguments], option=orjson.OPT_SORT_KEYS)
    return f"corr_{hashlib.sha256(data).hexdigest()[:16]}"


class Offers:
    """The offers of this process, each for the caller it was made to."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Candidate] = OrderedDict()

    def put(self, caller: str, tool: str, candidate: Candidate) -> str:
        """Keep an offer; return its id."""
        made = offer_id(tool, candidate.arguments)
        self._kept[caller, made] = candidate
        self._kept.move_to_end((caller, made))
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return made

    def get(self, caller: str, made: str) -> Candidate | None:
        """Return an offer that was made to a caller."""
        return self._kept.get((caller, made))
