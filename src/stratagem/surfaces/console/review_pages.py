"""Capture and review: what hooks stored and injected, and what waits for a person's word."""

from __future__ import annotations

from typing import Any, Final

from stratagem.operations import TABLE
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute
from stratagem.surfaces.console.visits import Visit

__all__ = ["REVIEW_PAGES"]

_LIST: Final = "review_list"
_DECIDE: Final = "review_decide"


async def review(visit: Visit) -> ConsolePage:
    """Show the queue; where nothing is captured yet, how that is turned on."""
    there = _LIST in TABLE
    decided = bool(visit.query.get("decided"))
    found: dict[str, Any] = {"results": []}
    if there:
        found = await visit.try_read(
            _LIST,
            kind=visit.query.get("kind") or None,
            decided=decided,
            cursor=visit.query.get("cursor") or None,
        )
    data: dict[str, Any] = {
        "available": there,
        "queue": found,
        "next": found.get("next"),
        "decided": decided,
        "kind": visit.query.get("kind", ""),
        "characters": sum(len(each.get("text", "")) for each in found["results"]),
        "decidable": there and visit.can(_DECIDE),
    }
    return ConsolePage("review.html", "Capture and review", data, "review")


async def _decide(visit: Visit, fields: dict[str, str]) -> Done:
    decision = fields.get("decision", "")
    await visit.write(
        _DECIDE,
        ids=[fields.get("id", "")],
        decision=decision,
        text=fields.get("text") or None if decision == "correct" else None,
    )
    words = {"keep": "Kept.", "pin": "Pinned.", "correct": "Corrected.", "discard": "Discarded."}
    return Done(visit.url("/review"), words.get(decision, "Decided."))


REVIEW_PAGES: Final = (PageRoute("/review", review, {"decide": _decide}),)
