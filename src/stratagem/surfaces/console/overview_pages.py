"""The first page, and the search over everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stratagem.call_forms import reword
from stratagem.surfaces.console.pages import ConsolePage, PageRoute
from stratagem.surfaces.console.visits import Visit
from stratagem.version import VERSION

__all__ = ["OVERVIEW_PAGES"]

# What programs are told about a server at its root.
_ABOUT: Final = {
    "name": "stratagem",
    "version": VERSION,
    "mcp": "/mcp",
    "rest": "/api/docs",
    "openapi": "/api/openapi.json",
    "sockets": "/socket.io",
    "health": "/health",
    "ready": "/ready",
    "metrics": "/metrics",
}
_RECENT: Final = 8
_HITS: Final = 25
# What a search looks through, with the words for it.
KINDS: Final = (
    ("all", "Everything"),
    ("memory", "Entries and events"),
    ("concept", "Concepts"),
    ("incident", "Problems"),
    ("tool", "Tools"),
)


async def overview(visit: Visit) -> ConsolePage:
    """Show what there is, what is new, and what waits for a person."""
    if visit.moment is not None or visit.query.get("branch"):
        # A moment or branch that is none is refused here rather than shown as an empty memory.
        await visit.read("strata_list", limit=1)
    namespaces = (await visit.read_counts("strata_namespaces"))["results"]
    status = await visit.try_read("strata_status")
    debugging = await visit.read_counts("debugging_statistics")
    hierarchy = await visit.read_counts("list_hierarchy")
    recent, pinned = await _entries(visit, namespaces)
    data = {
        **_ABOUT,
        "counts": {
            "entries": sum(each["entries"] for each in namespaces),
            "events": sum(each["events"] for each in namespaces),
            "namespaces": len(namespaces),
            # How many there were is not known.
            "branches": status.get("branches", 1) if visit.moment is None else None,
            "problems": debugging.get("incidents", 0),
            "fixes": debugging.get("solutions", 0),
            "concepts": hierarchy.get("total_concepts", 0),
        },
        "namespaces": namespaces,
        "recent": recent,
        "pinned": pinned,
        "sessions": (await visit.read_counts("strata_sessions"))["results"][:_RECENT],
        "waiting": await _open_tasks(visit, debugging),
        "instructions": status.get("instructions", []) if visit.moment is None else [],
    }
    return ConsolePage("overview.html", "Overview", data, "overview")


async def _entries(
    visit: Visit, namespaces: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the newest entries of all namespaces, and those that are pinned."""
    recent: list[dict[str, Any]] = []
    pinned: list[dict[str, Any]] = []
    for each in namespaces[:_RECENT]:
        if not each["entries"]:
            continue
        listed = await visit.try_read("strata_list", namespace=each["name"], limit=_RECENT)
        recent += listed["results"]
        kept = await visit.read_counts(
            "strata_list", namespace=each["name"], tags=["pinned"], limit=_RECENT
        )
        pinned += kept["results"]
    recent.sort(key=lambda entry: -entry["version"])
    return recent[:_RECENT], pinned[:_RECENT]


async def _open_tasks(visit: Visit, debugging: dict[str, Any]) -> list[dict[str, str]]:
    """Return what somebody should look at, each with where."""
    found = [
        {
            "said": f"A fix stopped working: {each['title']}",
            "path": f"/debugging/problem?id={each['incident_id']}",
        }
        for each in debugging.get("stopped_working", [])[:3]
    ]
    if visit.moment is None:
        # What waited then is not known.
        approvals = (await visit.try_read("approvals_list")).get("approvals", [])
        found += [
            {"said": _say_approval(each), "path": "/tools"}
            for each in approvals
            if each.get("state", "waiting") == "waiting"
        ][:3]
    review = await visit.read_counts("review_knowledge")
    for name, count in review.get("counts", {}).items():
        if count and name in {"contested", "duplicates"}:
            found.append({"said": f"Concepts: {count} {name}", "path": "/knowledge/review"})
    return found


def _say_approval(approval: dict[str, Any]) -> str:
    if approval["kind"] == "definition":
        return f"The tool {approval['tool']} changed, and waits for approval"
    return f"A call of {approval['tool']} waits for approval"


async def search(visit: Visit) -> ConsolePage:
    """Find everything that has to do with some words, best first, and say why."""
    query = visit.query.get("q", "").strip()
    kind = visit.query.get("kind", "all")
    hits, note = await _find(visit, query, kind) if query else ([], None)
    data = {"q": query, "kind": kind, "kinds": KINDS, "hits": hits, "advice": note}
    return ConsolePage("search.html", f"Search: {query}" if query else "Search", data, "search")


async def _find(visit: Visit, query: str, kind: str) -> tuple[list[dict[str, Any]], str | None]:
    """Return the hits, and where there is none what is nearest or was meant, if anything is."""
    found: list[dict[str, Any]] = []
    notes: list[str] = []
    if kind in {"all", "memory"}:
        answer = await visit.read("strata_explain_search", query=query, k=_HITS)
        found += answer["results"]
        notes += _notes(answer)
    others = [each for each in ("concept", "incident") if kind in {"all", each}]
    if others:
        answer = await visit.read("strata_search", query=query, k=_HITS, kinds=others)
        found += answer["results"]
        notes += _notes(answer)
    if kind in {"all", "tool"} and visit.can("tools_discover"):
        found += await _tools(visit, query)
    hits = sorted(found, key=lambda hit: -hit["score"])[: 2 * _HITS]
    return hits, notes[0] if notes and not hits else None


def _notes(answer: Mapping[str, Any]) -> list[str]:
    """Return what an answer says beside its hits, as somebody who reads it may act on it."""
    return [reword(answer["note"], "command")] if "note" in answer else []


async def _tools(visit: Visit, query: str) -> list[dict[str, Any]]:
    answer = await visit.try_read("tools_list", search=query, limit=5)
    return [
        {
            "kind": "tool",
            "key": each["name"],
            "name": each["name"],
            "snippet": each["description"],
            "score": 0.3,
        }
        for each in answer.get("tools", [])
    ]


OVERVIEW_PAGES: Final = (PageRoute("/", overview), PageRoute("/search", search))
