"""Knowledge: the graph of concepts, each with its history and certainty, and learning paths."""

from __future__ import annotations

from typing import Any, Final

from stratagem.errors import ConceptNotFound, StratagemError
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute, whole_number
from stratagem.surfaces.console.visits import Visit

__all__ = ["KNOWLEDGE_PAGES"]

_RELATED: Final = 50


async def graph(visit: Visit) -> ConsolePage:
    """Show all concepts in layers by what each needs, with a path between two of them."""
    try:
        found = await visit.read("get_graph", concept=visit.query.get("around") or None)
    except ConceptNotFound:
        found = {"concepts": [], "links": [], "areas": [], "layers": [], "left_out": 0}
    start, end = visit.query.get("start", ""), visit.query.get("end", "")
    path = await _path(visit, start, end) if start and end else {"path": []}
    data = {
        "graph": found,
        "colour": visit.query.get("colour", "area"),
        "find": visit.query.get("find", ""),
        "start": start,
        "end": end,
        "path": path,
        "on_path": [each["concept_id"] for each in path.get("path", [])],
    }
    return ConsolePage("graph.html", "Knowledge", data, "knowledge")


async def _path(visit: Visit, start: str, end: str) -> dict[str, Any]:
    try:
        return await visit.read("get_concept_chain", start_concept_id=start, end_concept_id=end)
    except StratagemError as error:
        return {"path": [], "message": error.message}


async def concept(visit: Visit) -> ConsolePage:
    """Show a concept: what it means, how sure that is and why, and what it is related to."""
    which = visit.query.get("id", "")
    found = await visit.read("get_concept", concept_id=which, include_history=True)
    if not found.get("concept"):
        raise ConceptNotFound(f"There is no concept {which!r} here.")
    related = await visit.read(
        "get_related_concepts", concept_id=which, direction="both", limit=_RELATED
    )
    data = {
        "concept": found["concept"],
        "history": found["concept"].get("explanation_history", []),
        "related": related["results"],
    }
    return ConsolePage("concept.html", str(found["concept"]["name"]), data, "knowledge")


async def learning_path(visit: Visit) -> ConsolePage:
    """Show what to learn before a concept, in order, as a list to tick off."""
    target, learner = visit.query.get("target", ""), visit.query.get("learner") or "me"
    found = await visit.read("get_learning_path", target=target, learner=learner)
    known = await visit.read("list_known", learner=learner, limit=100)
    data = {
        "target": target,
        "learner": learner,
        "path": found,
        "known": known.get("results", []),
    }
    return ConsolePage("learning.html", f"Learn {found['target']}", data, "knowledge")


async def review(visit: Visit) -> ConsolePage:
    """Show concepts that want attention."""
    data = {"review": await visit.read("review_knowledge", limit=25)}
    return ConsolePage("knowledge_review.html", "Concepts to review", data, "knowledge")


def _address(visit: Visit, fields: dict[str, str]) -> str:
    return visit.url("/knowledge/concept", id=fields.get("id", ""))


async def _edit(visit: Visit, fields: dict[str, str]) -> Done:
    version = fields.get("version")
    await visit.write(
        "update_concept",
        concept_id=fields.get("id", ""),
        explanation=fields.get("explanation", "").replace("\r\n", "\n"),
        expected_version=whole_number(version, field="version") if version else None,
    )
    undo = {
        "act": "edit",
        "id": fields.get("id", ""),
        "explanation": fields.get("was", ""),
    }
    return Done(_address(visit, fields), "Stored.", undo, _address(visit, fields))


async def _judge(visit: Visit, fields: dict[str, str]) -> Done:
    confirmed = fields.get("act") == "confirm"
    await visit.write(
        "confirm_concept" if confirmed else "refute_concept",
        concept_id=fields.get("id", ""),
        source=fields.get("source") or None,
        note=fields.get("note") or None,
    )
    return Done(_address(visit, fields), "Confirmed." if confirmed else "Refuted.")


async def _merge(visit: Visit, fields: dict[str, str]) -> Done:
    done = await visit.write(
        "merge_concepts", keep=fields.get("keep", ""), merge=fields.get("merge", "")
    )
    return Done(visit.url("/knowledge/concept", id=done["concept_id"]), done["message"])


async def _mark(visit: Visit, fields: dict[str, str]) -> Done:
    known = fields.get("act") == "know"
    learner = fields.get("learner") or "me"
    await visit.write("mark_known", concepts=[fields.get("id", "")], known=known, learner=learner)
    path = visit.url("/knowledge/learn", target=fields.get("target", ""), learner=learner)
    return Done(path, "Known." if known else "Not known after all.")


KNOWLEDGE_PAGES: Final = (
    PageRoute("/knowledge", graph),
    PageRoute("/knowledge/concept", concept, {"edit": _edit, "confirm": _judge, "refute": _judge}),
    PageRoute("/knowledge/learn", learning_path, {"know": _mark, "unknow": _mark}),
    PageRoute("/knowledge/review", review, {"merge": _merge}),
)
