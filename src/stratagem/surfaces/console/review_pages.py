"""Capture and review: what hooks stored and injected, and what waits for a person's word."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from stratagem.engine.moments import iso
from stratagem.hooks.session_files import log_path, read_lines
from stratagem.places import is_address
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute
from stratagem.surfaces.console.visits import Visit

__all__ = ["REVIEW_PAGES"]

_LIST: Final = "review_list"
_DECIDE: Final = "review_decide"
_INJECTIONS_SHOWN: Final = 50
_LOG_BYTES_READ: Final = 1_000_000
_PRESENT: Final = "What waits, and what hooks injected, is shown as it is now."


async def review(visit: Visit) -> ConsolePage:
    """Show the queue; where nothing is captured yet, how that is turned on."""
    decided = bool(visit.query.get("decided"))
    found = await visit.try_read(
        _LIST,
        kind=visit.query.get("kind") or None,
        decided=decided,
        cursor=visit.query.get("cursor") or None,
    )
    data: dict[str, Any] = {
        "queue": found,
        "next": found.get("next"),
        "decided": decided,
        "kind": visit.query.get("kind", ""),
        "characters": sum(len(each.get("text", "")) for each in found["results"]),
        "decidable": visit.can(_DECIDE),
        **await asyncio.to_thread(_injections, visit),
    }
    return ConsolePage("review.html", "Capture and review", data, "review", present=_PRESENT)


def _injections(visit: Visit) -> dict[str, Any]:
    """Return what hooks put before models of late, why, and at what cost; newest first.

    It stands in a file beside the database, which only whoever reads that database may see.
    """
    place = visit.console.settings.database
    own = visit.caller.workspace is None and not is_address(place)
    if not own or not visit.caller.may("memory", "read"):
        return {"injections": [], "tokens": 0}
    lines = list(read_lines(log_path(place), _LOG_BYTES_READ))
    return {
        "injections": [
            {**line, "at": iso(int(line["at"] * 1_000_000))}
            for line in reversed(lines[-_INJECTIONS_SHOWN:])
        ],
        "tokens": sum(line.get("tokens", 0) for line in lines),
    }


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
