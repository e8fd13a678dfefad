"""Two memories read as one: that of a project, and the person's own.

In a project all writes go to its database, and the namespace `personal` is the person's own. Reads
use both: a search returns the best hits of both, a recall prefers the project's value, and a list
shows first the project's entries, then the person's. Each hit names its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.answers import add_reading_note, is_whole, read_cursor

__all__ = [
    "PERSONAL",
    "is_personal",
    "may_miss",
    "name_personal",
    "name_personal_keys",
    "namespace_of",
    "read_both",
    "reads_both",
    "without_namespace",
]

Answer = dict[str, Any]
Call = Callable[[Mapping[str, Any]], Answer]

PERSONAL: Final = "personal"
_PROJECT: Final = "project"
# The branch that nearly all is on, and what the person's own memory calls `personal`.
_HOME: Final = "default"
_SEARCH: Final = "strata_search"
_RECALL: Final = "strata_recall"
_LIST: Final = "strata_list"
_READS: Final = frozenset({_SEARCH, _RECALL, _LIST})
# What is done to keys of the project alone, and says which of them are missing.
_KEYED: Final = frozenset({"strata_forget", "strata_history", "strata_explain_miss", _RECALL})
# How the cursor of a list begins once it has come to the person's own.
_CURSOR: Final = "personal:"
# Of an answer's room, so much is the person's.
_PERSONAL_SHARE: Final = 4
# What is only true of the project's own database.
_OF_ONE: Final = ("branch", "as_of", "transaction")


def is_personal(arguments: Any, namespace: str) -> bool:
    """Whether a call is about the person's own memory alone."""
    return namespace_of(arguments, namespace) == PERSONAL


def namespace_of(arguments: Any, namespace: str) -> str:
    """Return the namespace that a call is about; `namespace` is that of a call that names none."""
    named = arguments.get("namespace") if isinstance(arguments, Mapping) else None
    return named or namespace


def without_namespace(arguments: Any) -> Any:
    """Return the arguments of such a call as the person's own memory takes them."""
    if not isinstance(arguments, Mapping):
        return arguments
    return {name: value for name, value in arguments.items() if name not in {"namespace", "branch"}}


def reads_both(name: str, arguments: Any) -> bool:
    """Whether a call looks into both memories: one that names neither a namespace nor a branch."""
    if name not in _READS or not isinstance(arguments, Mapping):
        return False
    return not any(arguments.get(each) is not None for each in ("namespace", *_OF_ONE))


def may_miss(name: str) -> bool:
    """Whether an operation says of a key that nothing is stored under it."""
    return name in _KEYED


def name_personal_keys(answer: Answer, namespace: str, recall: Call) -> Answer:
    """Say of each key that the project lacks whether the person's own memory has it."""
    missing = [str(_key_of(each)) for each in _missing_keys(answer)]
    if not missing:
        return answer
    own = {each["key"] for each in recall({"keys": missing}).get("results", ())}
    if not own:
        return answer
    if "key" in answer:
        return _add_personal(answer)
    misses = {each["key"]: each for each in answer.get("misses", ())}
    for key in missing:
        if key in own:
            unexplained = {"key": key, "namespace": namespace, "reason": "absent"}
            misses[key] = _add_personal(misses.get(key, unexplained))
    return {**answer, "misses": list(misses.values())}


def _missing_keys(answer: Answer) -> list[Any]:
    """Return the keys of an answer under which nothing is stored."""
    if "key" not in answer:
        return list(answer.get("missing", ()))
    is_miss = answer.get("found") is False or ("found" not in answer and not answer.get("results"))
    return [answer["key"]] if is_miss and answer.get("reason") != "found" else []


def _add_personal(miss: Answer) -> Answer:
    return {**miss, "elsewhere": [PERSONAL, *miss.get("elsewhere", ())]}


def read_both(name: str, arguments: Mapping[str, Any], project: Call, personal: Call) -> Answer:
    """Answer a call from both memories."""
    if name == _SEARCH:
        return _search(arguments, project, personal)
    if name == _RECALL and (arguments.get("key") is not None or arguments.get("keys") is not None):
        return _recall(arguments, project, personal)
    return _list(arguments, project, personal)


def _search(arguments: Mapping[str, Any], project: Call, personal: Call) -> Answer:
    """Return the best hits of either, those that answer best by themselves first."""
    cursor, k = arguments.get("cursor"), arguments.get("k", limits.SEARCH_K_DEFAULT)
    skip = read_cursor(cursor) if isinstance(cursor, str) else 0
    if not isinstance(k, int) or skip + k > limits.SEARCH_K_MAX or (cursor and not skip):
        # Beyond what can be put together, or not to be read: the project's own goes on, or says so.
        return _of(project(arguments), _PROJECT)
    # All pages before this one are needed to put the lists together.
    whole = {**arguments, "k": skip + k, "cursor": None}
    answer = project(_without_none(whole))
    other = personal(_without_none({**whole, "max_chars": _personal_room(arguments)}))
    if not answer["results"]:
        # What it says of a search without a hit is not true of both.
        notes = [other.get("note")] if other["results"] else [answer.get("note"), other.get("note")]
        answer = _without_none({**answer, "note": next(filter(None, notes), None)})
    hits = [*_of(answer, _PROJECT)["results"], *_of(other, PERSONAL)["results"]]
    hits.sort(key=lambda hit: -hit["score"])
    more = len(hits) > skip + k or answer["truncated"] or other["truncated"]
    answer["results"] = hits[skip : skip + k]
    answer["truncated"] = more
    answer.pop("next", None)
    if more:
        answer["next"] = str(skip + k)
    if is_whole():
        return answer
    branch = answer.get("branch", _HOME)
    return add_reading_note(answer, {"branch": None if branch == _HOME else branch})


def _recall(arguments: Mapping[str, Any], project: Call, personal: Call) -> Answer:
    """Return what the project has under a key, else what the person has."""
    answer = _of(project(arguments), _PROJECT)
    if answer.get("found") and not answer.get("missing"):
        return answer
    missing = answer.get("missing")
    wanted = {**arguments, "keys": missing} if missing else arguments
    other = _of(personal(wanted), PERSONAL)
    if not other.get("found"):
        return answer
    if "results" not in other or not missing:
        return other
    found = {each["key"] for each in other["results"]}
    answer["results"] = [*answer.get("results", ()), *other["results"]]
    answer["found"] = True
    for name in ("missing", "misses"):
        left = [each for each in answer.get(name, ()) if _key_of(each) not in found]
        answer.pop(name, None)
        if left:
            answer[name] = left
    return answer


def _list(arguments: Mapping[str, Any], project: Call, personal: Call) -> Answer:
    """Return a page of the project's entries, or, once those are through, of the person's."""
    cursor = arguments.get("cursor")
    if isinstance(cursor, str) and cursor.startswith(_CURSOR):
        rest = cursor.removeprefix(_CURSOR) or None
        return _personal_page(personal(_without_none({**arguments, "cursor": rest})))
    answer = _of(project(arguments), _PROJECT)
    if answer.get("next"):
        return answer
    room = limits.LIST_PAGE_DEFAULT if arguments.get("limit") is None else arguments["limit"]
    left = room - len(answer.get("results", ())) if isinstance(room, int) else 0
    if left <= 0:
        return {**answer, "truncated": True, "next": _CURSOR}
    other = personal({**arguments, "limit": left, "max_chars": _personal_room(arguments)})
    if not other.get("results"):
        return answer
    page = _personal_page(other)
    if not answer.get("results"):
        return page
    joined = {**answer, "results": [*answer["results"], *page["results"]]}
    return joined | {name: page[name] for name in ("truncated", "next") if page.get(name)}


def _personal_page(answer: Answer) -> Answer:
    page = _of(answer, PERSONAL)
    if page.get("next"):
        page["next"] = f"{_CURSOR}{page['next']}"
    return page


def _of(answer: Answer, owner: str) -> Answer:
    """Say of everything in an answer whose it is."""
    if "results" in answer:
        answer["results"] = [{**each, "owner": owner} for each in answer["results"]]
    elif answer.get("found"):
        answer["owner"] = owner
    return name_personal(answer) if owner == PERSONAL else answer


def name_personal(answer: Answer) -> Answer:
    """Return an answer of the person's own memory with the namespace that a project reads it by."""
    named = {**answer, **_personal_namespace(answer)}
    if "results" in answer:
        named["results"] = [{**each, **_personal_namespace(each)} for each in answer["results"]]
    return named


def _personal_namespace(record: Mapping[str, Any]) -> Answer:
    return {"namespace": PERSONAL} if record.get("namespace") == _HOME else {}


def _personal_room(arguments: Mapping[str, Any]) -> int:
    room = arguments.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
    least = limits.ANSWER_CHARS_MIN
    return max(room // _PERSONAL_SHARE, least) if isinstance(room, int) else least


def _key_of(missing: Any) -> Any:
    return missing.get("key") if isinstance(missing, Mapping) else missing


def _without_none(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
