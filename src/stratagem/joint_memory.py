"""Two memories read as one: that of a project, and the person's own.

In a project all writes go to its database, and the namespace `personal` is the person's own;
`personal/travel` is what that memory calls `travel`. Reads use both: a search returns the best hits
of both, a recall prefers the project's value, and a list shows first the project's entries, then
the person's. Each hit names its owner. A status is the project's, with the standing instructions of
both.

The cursor of a search says how many hits of each were shown ("8+2"). So each page goes on in both
where the one before ended, whatever had room in it.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from operator import itemgetter
from typing import Any, Final, TypeAlias

from stratagem import limits
from stratagem.answers import (
    LISTS_INSTRUCTIONS,
    NOTHING_MATCHES,
    absent_names,
    cursor_refusal,
    fit_hits,
    read_cursor,
    say_absent,
    say_end,
    whole,
)
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ValidationFailed

__all__ = [
    "PERSONAL",
    "is_personal",
    "may_miss",
    "name_own_answer",
    "name_personal_keys",
    "names_personal",
    "namespace_of",
    "own_arguments",
    "own_namespace",
    "read_both",
    "reads_both",
    "takes_namespace",
]

Answer = dict[str, Any]
Call = Callable[[Mapping[str, Any]], Answer]

PERSONAL: Final = "personal"
# How the namespaces of the person's own memory begin, but for the one that it calls `default`.
_WITHIN: Final = f"{PERSONAL}/"
_PROJECT: Final = "project"
# The branch that nearly all is on, and what the person's own memory calls `personal`.
_HOME: Final = "default"
_SEARCH: Final = "strata_search"
_RECALL: Final = "strata_recall"
_LIST: Final = "strata_list"
_STATUS: Final = "strata_status"
_READS: Final = frozenset({_SEARCH, _RECALL, _LIST, _STATUS})
# What is done to keys of the project alone, and says which of them are missing.
_KEYED: Final = frozenset({"strata_forget", "strata_history", "strata_explain_miss", _RECALL})
# What is done to a namespace as a whole, which `name` names.
_OF_WHOLE: Final = frozenset(
    {
        *("strata_delete_namespace", "strata_restore_namespace"),
        *("strata_space_create", "strata_space_exists", "strata_space_delete"),
    }
)
# It sets the namespace of the caller, whom the project knows.
_OF_CALLER: Final = "strata_space_use"
_LISTS_OF_NAMESPACES: Final = frozenset({"strata_namespaces", "strata_space_list"})
# How the cursor of a list begins once it has come to the person's own.
_CURSOR: Final = "personal:"
# Between how many hits of the project and of the person were shown.
_AND: Final = "+"
# So many hits of each are sorted by how well they answer, before both are merged: the first page.
_SORTED_TOGETHER: Final = limits.SEARCH_K_DEFAULT
# Of an answer's room, so much is the person's.
_PERSONAL_SHARE: Final = 4
# A namespace as a note names it.
_NAMED: Final = re.compile(r"(?<=\bnamespace )'([^'\n]{1,600})'")
# What is only true of the project's own database.
_OF_ONE: Final = ("branch", "as_of", "transaction")


def names_personal(namespace: Any) -> bool:
    """Whether a namespace is one of the person's own memory, as a project names it."""
    # A value that is no text is refused later, by those who know why.
    return isinstance(namespace, str) and (namespace == PERSONAL or namespace.startswith(_WITHIN))


def is_personal(name: str, arguments: Any, namespace: str) -> bool:
    """Whether a call is about the person's own memory alone; its arguments are as they were meant.

    Raises:
        ValidationFailed: It would write into both memories.
    """
    items = _items_of(arguments)
    if not items:
        named = namespace_of(name, arguments, namespace)
        return name != _OF_CALLER and names_personal(named)
    usual = namespace_of(name, arguments, namespace)
    owners = [names_personal(_namespace_of_item(each, usual, namespace)) for each in items]
    if len(set(owners)) > 1:
        other = owners.index(not owners[0])
        raise ValidationFailed(
            f"items[0] and items[{other}] belong to two memories, the project's and your own. One "
            "call is stored whole or not at all, which two databases cannot promise.",
            field="items",
            path=f"items[{other}].namespace",
            hint=f"Send the items of `{PERSONAL}` and `{_WITHIN}…` in a call of their own.",
        )
    return owners[0]


def _items_of(arguments: Any) -> Sequence[Any]:
    items = arguments.get("items") if isinstance(arguments, Mapping) else None
    return items if isinstance(items, list | tuple) else ()


def _namespace_of_item(item: Any, usual: str, namespace: str) -> str:
    """Return the namespace of one of several entries; one that says null has the caller's."""
    if isinstance(item, Mapping) and "namespace" in item:
        return item["namespace"] or namespace
    return usual


def takes_namespace(name: str, parameters: Container[str]) -> bool:
    """Whether a call of an operation can say which namespace it is about."""
    return name in _OF_WHOLE or "namespace" in parameters


def namespace_of(name: str, arguments: Any, namespace: str) -> str:
    """Return the namespace that a call is about; `namespace` is that of a call that names none."""
    parameter = "name" if name in _OF_WHOLE else "namespace"
    named = arguments.get(parameter) if isinstance(arguments, Mapping) else None
    return named or namespace


def own_namespace(namespace: str) -> str:
    """Return what the person's own memory calls a namespace that a project names."""
    return namespace.removeprefix(PERSONAL).removeprefix("/") or _HOME


def own_arguments(name: str, arguments: Any, namespace: str) -> Any:
    """Return the arguments of such a call as the person's own memory takes them.

    A namespace that the call does not name is that of the caller, and no argument: not every
    operation takes one, and a search is confined to what it names.
    """
    if not isinstance(arguments, Mapping):
        return arguments
    kept = {one: each for one, each in arguments.items() if one not in {"namespace", "branch"}}
    if name in _OF_WHOLE:
        return {**kept, "name": own_namespace(arguments["name"])}
    named = arguments.get("namespace")
    if isinstance(named, str) and named.startswith(_WITHIN):
        kept["namespace"] = own_namespace(named)
    if items := _items_of(arguments):
        kept["items"] = [_own_item(each, namespace) for each in items]
    return kept


def _own_item(item: Any, namespace: str) -> Any:
    if not isinstance(item, Mapping) or "namespace" not in item:
        return item
    return {**item, "namespace": own_namespace(item["namespace"] or namespace)}


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
    if name == _STATUS:
        return _status(arguments, project, personal)
    if name == _RECALL and (arguments.get("key") is not None or arguments.get("keys") is not None):
        return _recall(arguments, project, personal)
    return _list(arguments, project, personal)


# Whether a hit says nothing new, and how well it answers.
_Place: TypeAlias = tuple[bool, float]


class _Hits(NamedTuple):
    """The next hits of one memory, and its first and its last answer.

    `total` is how many hits it has, where these are the last. `places` say where each hit comes.
    """

    hits: list[Answer]
    first: Answer
    last: Answer
    total: int
    places: list[_Place]

    def with_places(self) -> Iterator[tuple[_Place, Answer]]:
        """Yield the hits with their places."""
        return zip(self.places, self.hits, strict=True)


def _search(arguments: Mapping[str, Any], project: Call, personal: Call) -> Answer:
    """Return the best hits of either, those that answer best by themselves first."""
    k = arguments.get("k", limits.SEARCH_K_DEFAULT)
    begins = _read_places(arguments.get("cursor"))
    # What there is room for is known once both are put together.
    with whole():
        of_project = _hits_after(project, arguments, begins[0], k, _PROJECT)
        of_person = _hits_after(personal, arguments, begins[1], k, PERSONAL)
    both = heapq.merge(of_project.with_places(), of_person.with_places(), key=itemgetter(0))
    hits = [hit for _, hit in islice(both, k)]
    left = len(of_project.hits) + len(of_person.hits) > len(hits)
    more = left or any(each.last.get("next") for each in (of_project, of_person))

    def next_of(kept: int) -> str:
        shown = sum(hit["owner"] == _PROJECT for hit in hits[:kept])
        return f"{begins[0] + shown}{_AND}{begins[1] + kept - shown}"

    # No memory is entered at a later place.
    follows = more and max(_read_places(next_of(len(hits)))) <= limits.SEARCH_OFFSET_MAX
    ended_at = None if hits else of_project.total + of_person.total or None
    answer = {
        **of_project.first,
        "results": hits,
        "truncated": more or of_project.last["truncated"] or of_person.last["truncated"],
        "next": next_of(len(hits)) if follows else None,
        "note": say_end(ended_at) if ended_at else _note_of(of_project, of_person),
        "ended_at": ended_at,
    }
    room = arguments.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
    branch = answer.get("branch", _HOME)
    view = {"branch": None if branch == _HOME else branch}
    return fit_hits(_without_none(answer), room, next_of, view)


def _read_places(cursor: str | None) -> tuple[int, int]:
    """Return how many hits of the project and of the person came before."""
    if cursor is None:
        return 0, 0
    project, parted, personal = cursor.partition(_AND)
    if not parted:
        raise cursor_refusal()
    return read_cursor(project), read_cursor(personal)


def _hits_after(
    call: Call, arguments: Mapping[str, Any], begin: int, count: int, owner: str
) -> _Hits:
    """Return at least so many hits of one memory after the first ones, if it has them."""
    first = begin - begin % _SORTED_TOGETHER
    end = begin + count + -(begin + count) % _SORTED_TOGETHER
    answers = [_of(answer, owner) for answer in _answers(call, arguments, first, end)]
    found = [hit for answer in answers for hit in answer["results"]]
    places = [
        place
        for block in range(0, len(found), _SORTED_TOGETHER)
        for place in _places_of(found[block : block + _SORTED_TOGETHER])
    ]
    return _Hits(
        found[begin - first :],
        answers[0],
        answers[-1],
        answers[0].get("ended_at") or first + len(found),
        places[begin - first :],
    )


def _places_of(block: Sequence[Answer]) -> list[_Place]:
    """Return where hits come beside those of another memory: by how well they answer.

    What says nothing new comes last. The order of a memory is kept, which knows more than the
    scores: a hit comes where the best does that follows it. They are looked at a few at a time, or
    each page would be cut out of another order.
    """
    own = [("lowered" in hit, -hit["score"]) for hit in block]
    return list(accumulate(reversed(own), _place_before))[::-1]


def _place_before(following: _Place, own: _Place) -> _Place:
    """Return the place of a hit that comes before another."""
    return min(following, own) if following[0] == own[0] else own


def _answers(call: Call, arguments: Mapping[str, Any], begin: int, end: int) -> Iterator[Answer]:
    """Search one memory until it has given the hits of some places."""
    while True:
        k = min(end - begin, limits.SEARCH_K_MAX)
        cursor = str(begin) if begin else None
        answer = call(_without_none({**arguments, "k": k, "cursor": cursor}))
        yield answer
        begin += len(answer["results"])
        if begin >= end or answer.get("next") is None:
            return


def _note_of(of_project: _Hits, of_person: _Hits) -> str | None:
    """Return the note of the first that has hits: what the other says of having none is not true.

    Where neither has any, the first note counts that says more than that.
    """
    either = (of_project, of_person)
    notes = [each.first.get("note") for each in either if each.hits]
    notes = notes[:1] or [each.first.get("note") for each in either]
    said = sorted(filter(None, notes), key=lambda note: note.startswith(NOTHING_MATCHES))[:1]
    # A name that one of them lacks the other may have, if anything was found there.
    absent = [absent_names(each.first.get("note") or "")[0] for each in either if each.hits]
    shared = [name for name in absent[0] if name in absent[-1]] if absent else []
    said = [rest for note in said if (rest := absent_names(note)[1])]
    if shared:
        said.insert(0, say_absent(shared))
    # A status lists the instructions of both, whichever has hits.
    listed = any(LISTS_INSTRUCTIONS in (each.first.get("note") or "") for each in either)
    if listed and not any(LISTS_INSTRUCTIONS in note for note in said):
        said.append(LISTS_INSTRUCTIONS)
    return " ".join(said) or None


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


def _status(arguments: Mapping[str, Any], project: Call, personal: Call) -> Answer:
    """Return the project's status with the newest standing instructions of both."""
    answer, other = project(arguments), personal(arguments)
    own = [{**each, "owner": PERSONAL} for each in other.get("instructions", ())]
    if not own:
        return answer
    wanted = [*answer["instructions"], *own]
    wanted.sort(key=lambda each: each["timestamp"], reverse=True)
    more = (
        len(wanted) > limits.INSTRUCTIONS_MAX
        or answer.get("instructions_more")
        or other.get("instructions_more")
    )
    shown = {**answer, "instructions": wanted[: limits.INSTRUCTIONS_MAX]}
    return shown | {"instructions_more": True} if more else shown


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
    named = {**answer, **_personal_namespaces(answer)}
    for name in ("results", "misses"):
        if name in answer:
            named[name] = [_name_record(each) for each in answer[name]]
    if isinstance(answer.get("note"), str):
        named["note"] = _NAMED.sub(lambda name: repr(_personal_name(name[1])), answer["note"])
    return named


def name_own_answer(name: str, answer: Answer) -> Answer:
    """Return an answer of the person's own memory alone, by the names that a project has for it."""
    named = name_personal(answer)
    if name == "strata_status":
        named["namespaces"] = list(map(_personal_name, named["namespaces"]))
    elif name in _LISTS_OF_NAMESPACES:
        named["current"] = _personal_name(named["current"])
        named["results"] = [
            {**each, "name": _personal_name(each["name"])} for each in named["results"]
        ]
    elif name in _OF_WHOLE and "name" in named:
        named["name"] = _personal_name(named["name"])
    return named


def _name_record(record: Any) -> Any:
    return {**record, **_personal_namespaces(record)} if isinstance(record, Mapping) else record


def _personal_namespaces(record: Mapping[str, Any]) -> Answer:
    named: Answer = {}
    if isinstance(record.get("namespace"), str):
        named["namespace"] = _personal_name(record["namespace"])
    if record.get("elsewhere"):
        named["elsewhere"] = list(map(_personal_name, record["elsewhere"]))
    return named


def _personal_name(namespace: str) -> str:
    return PERSONAL if namespace == _HOME else f"{_WITHIN}{namespace}"


def _personal_room(arguments: Mapping[str, Any]) -> int:
    room = arguments.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
    least = limits.ANSWER_CHARS_MIN
    return max(room // _PERSONAL_SHARE, least) if isinstance(room, int) else least


def _key_of(missing: Any) -> Any:
    return missing.get("key") if isinstance(missing, Mapping) else missing


def _without_none(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
