"""Branches: how they came from each other, how they differ, and merging with decisions."""

from __future__ import annotations

from typing import Any, Final

from stratagem.errors import MissingRequired
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute, whole_number
from stratagem.surfaces.console.visits import Visit

__all__ = ["BRANCH_PAGES"]

# How the fields of a decision begin; the id of the conflict follows.
_DECISION: Final = "decide:"
# How many changes a page of a comparison has.
_CHANGES: Final = 100
_PRESENT: Final = "Branches and merges are shown as they are now."


async def branches(visit: Visit) -> ConsolePage:
    """Show forks and merges, and what can be done with each branch."""
    graph = await visit.call("strata_branch_graph")
    data = {
        "branches": graph["results"],
        "merges": graph["merges"],
        "head": graph["head"],
        "fork": bool(visit.query.get("fork")),
    }
    return ConsolePage("branches.html", "Branches", data, "branches", present=_PRESENT)


async def compare(visit: Visit) -> ConsolePage:
    """Show how two branches, or two moments, differ, field by field."""
    ours = visit.query.get("ours") or visit.branch
    names = await _names(visit)
    theirs = visit.query.get("theirs") or _other(names, ours)
    then = visit.query.get("then", "")
    side = visit.query.get("side") or "theirs"
    offset = whole_number(visit.query.get("offset") or "0", field="offset")
    diff = await visit.call(
        "strata_compare",
        branch=ours,
        as_of=then or visit.moment,
        compare=theirs,
        compare_as_of=visit.moment,
        side=side,
        limit=_CHANGES,
        offset=offset,
    )
    listed = _count_of(diff, side)
    data = {
        "ours": ours,
        "theirs": theirs,
        "then": then,
        "names": names,
        "diff": diff,
        "side": side,
        "offset": offset,
        "listed": listed,
        "next": offset + _CHANGES if offset + _CHANGES < listed else None,
    }
    return ConsolePage("compare.html", f"{theirs} compared with {ours}", data, "branches")


def _count_of(diff: dict[str, Any], side: str) -> int:
    """Return how many changes there are of one side, or of both."""
    theirs: int = diff["added"] + diff["removed"] + diff["changed"]
    alone = {"theirs": theirs, "ours": diff["ours"], "all": theirs + diff["ours"]}
    return int(alone[side] + diff["both"])


async def _names(visit: Visit) -> list[str]:
    found = await visit.call("strata_branch", action="list")
    return [each["name"] for each in found["results"]]


def _other(names: list[str], ours: str) -> str:
    return next((name for name in names if name != ours), ours)


async def merge(visit: Visit) -> ConsolePage:
    """Show what a merge would do, and ask about each conflict."""
    source, target = _ends(dict(visit.query))
    preview = await visit.call(
        "strata_branch", action="merge", source=source, branch=target, preview=True
    )
    return _merge_page(preview, source, target)


def _merge_page(preview: dict[str, Any], source: str, target: str) -> ConsolePage:
    data = {"merge": preview, "source": source, "target": target}
    title = f"Merge {source} into {target}"
    return ConsolePage("merge.html", title, data, "branches", present=_PRESENT)


def _ends(fields: dict[str, str]) -> tuple[str, str]:
    source, target = fields.get("source"), fields.get("target")
    if not source or not target:
        raise MissingRequired("Which branch into which?", field="source")
    return source, target


async def _merge(visit: Visit, fields: dict[str, str]) -> Done:
    source, target = _ends(fields)
    decisions = {
        name.removeprefix(_DECISION): choice
        for name, choice in fields.items()
        if name.startswith(_DECISION)
    }
    done = await visit.write(
        "strata_branch",
        action="merge",
        source=source,
        branch=target,
        decisions=decisions or None,
    )
    said = (
        f"Merged {source} into {target}: {done['merged']} records, {done['events']} events, "
        f"{done['resolved']} conflicts decided."
    )
    return Done(visit.url("/branches", branch=target), said)


async def _fork(visit: Visit, fields: dict[str, str]) -> Done:
    name = fields.get("name", "").strip()
    made = await visit.call(
        "strata_branch",
        action="fork",
        name=name or None,
        branch=fields.get("from") or visit.branch,
        as_of=fields.get("as_of") or None,
    )
    said = f"Forked {made['name']} from {made['parent']} at @{made['forked_at']}."
    return Done(
        visit.url("/branches", branch=made["name"], at=None),
        said,
        {"act": "delete", "name": made["name"]},
        visit.url("/branches", branch=None, at=None),
    )


async def _delete(visit: Visit, fields: dict[str, str]) -> Done:
    name = fields.get("name", "")
    await visit.call("strata_branch", action="delete", name=name)
    return Done(
        visit.url("/branches", branch=None),
        f"Deleted {name}. What others forked from it stays, and it can be restored.",
        {"act": "restore", "name": name},
        visit.url("/branches", branch=None),
    )


async def _restore(visit: Visit, fields: dict[str, str]) -> Done:
    name = fields.get("name", "")
    await visit.call("strata_branch", action="restore", name=name)
    return Done(visit.url("/branches"), f"Restored {name}.")


BRANCH_PAGES: Final = (
    PageRoute("/branches", branches, {"fork": _fork, "delete": _delete, "restore": _restore}),
    PageRoute("/branches/compare", compare),
    PageRoute("/branches/merge", merge, {"merge": _merge}),
)
