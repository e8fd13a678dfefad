"""Reading memory, as operations: one entry, several, lists of them, and what has happened.

`strata_recall` and `strata_history` are among the few tools that agents are shown, so each does
several things. Programs and people have an operation for each besides, in a toolset of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Required, TypedDict, cast

from stratagem import limits
from stratagem.answers import (
    add_note,
    chars_of,
    cursor_refusal,
    fit_list,
    fit_value,
    is_whole,
    minute_of,
    plain,
    plural,
    read_cursor,
    shorten_values,
    take_fitting,
)
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.memory.answer_text import (
    AS_DATA,
    USUAL_PLACE,
    brief,
    by_actor,
    since,
    until,
    where,
    with_note,
)
from stratagem.memory.listing import (
    AfterSequence,
    EntryOrder,
    EventLabel,
    EventSession,
    PageLimit,
    Prefix,
    Since,
    entry_cursor,
)
from stratagem.memory.misses import WILDCARDS, explain_several
from stratagem.memory.parameters import KEY_ALIASES, Key, Keys, Path, Tags, require_one
from stratagem.memory.service import Memory
from stratagem.operation import Caller, CommandHint, Operation, advise, operation
from stratagem.parameters import COUNT_ALIASES, AsOf, BranchName, Cursor, Namespace, Param
from stratagem.search.foundation import Foundation

__all__ = [
    "HISTORY_WORDS",
    "LISTING_OPERATIONS",
    "MissWords",
    "fit_events",
    "fit_history",
    "fit_listed",
    "fit_names",
    "fit_recalled",
    "history",
    "recall",
    "say_deleted",
    "say_empty_list",
    "say_events",
    "say_history",
    "say_listed",
    "say_miss",
    "say_misses",
    "say_no_events",
    "say_recalled",
]

Answer = dict[str, Any]

_HistoryLimit = Annotated[
    int,
    Param("How many per page", quiet=True, ge=1, le=limits.HISTORY_PAGE_MAX, aliases=COUNT_ALIASES),
]
_TOOLSET: Final = "memory_plus"
_RECALL: Final = "strata_recall"
_FORGET: Final = "strata_forget"
# Room for what an answer says about having been cut.
_NOTE_CHARS: Final = 250


class RecallAnswer(TypedDict, total=False):
    """What strata_recall answers: one entry, several of them, or why there is none."""

    found: Required[bool]
    key: str
    value: Any
    version: int
    timestamp: str
    namespace: str
    tags: list[str]
    expires: str
    actor: str
    source: str
    trust: str
    owner: str
    results: list[dict[str, Any]]
    missing: list[str]
    misses: list[dict[str, Any]]
    reason: str
    near: list[str]
    near_tags: list[str]
    elsewhere: list[str]
    id_of: str
    latest_sequence: int
    event: str
    version_of: str
    version_namespace: str
    before: str
    path: str
    place: str
    there: str
    truncated: bool
    next: str
    anchor: str


class HistoryAnswer(TypedDict, total=False):
    """What strata_history answers: the versions of an entry, events, or the time range."""

    oldest: str
    latest: str
    branch: str
    oldest_sequence: int
    latest_sequence: int
    results: list[dict[str, Any]]
    truncated: bool
    next: str
    key: str
    namespace: str
    reason: str
    timestamp: str
    near: list[str]
    near_sessions: list[str]
    elsewhere: list[str]
    event: str
    version_of: str
    version_namespace: str


def recall(
    memory: Memory,
    *,
    key: Key = None,
    keys: Keys | None = None,
    prefix: Prefix = None,
    tags: Tags = None,
    order: EntryOrder = "newest",
    limit: PageLimit = limits.LIST_PAGE_DEFAULT,
    namespace: Namespace = None,
    as_of: AsOf = None,
    branch: BranchName = None,
    path: Path = None,
    cursor: Cursor = None,
) -> RecallAnswer:
    """Return what is stored under a key, or under several; without a key, list what there is."""
    if keys is not None:
        require_one({"key": key, "keys": keys})
        if not keys:
            raise ValidationFailed(
                "`keys` is empty: there is nothing to recall.",
                field="keys",
                hint="Give at least one key, or leave `keys` out to list what there is.",
            )
    if key is None and keys is None:
        if path is not None:
            raise MissingRequired(
                "`path` is a place in an entry: give the key of the entry.", field="key"
            )
        listed = memory.list(
            prefix,
            tags=tags,
            namespace=namespace,
            order=order,
            limit=limit,
            branch=branch,
            as_of=as_of,
            cursor=cursor,
        )
        return cast("RecallAnswer", {"found": bool(listed.results), **plain(listed)})
    _refuse_filters(prefix, tags)
    # What cannot be continued must not be run, either.
    read_cursor(cursor)
    if keys is not None:
        found = memory.recall_many(keys, namespace=namespace, as_of=as_of, branch=branch, path=path)
        there = {entry.key for entry in found}
        missing = [each for each in dict.fromkeys(keys) if each not in there]
        misses = explain_several(
            memory, missing, namespace=namespace, branch=branch, as_of=as_of, path=path
        )
        answer = {"found": bool(found), "results": plain(found), "missing": missing}
        return cast("RecallAnswer", answer | ({"misses": plain(misses)} if misses else {}))
    assert key is not None
    entry = memory.recall(key, namespace=namespace, as_of=as_of, branch=branch, path=path)
    if entry is not None:
        return cast("RecallAnswer", {"found": True, **plain(entry)})
    miss = memory.explain_miss(key, namespace=namespace, as_of=as_of, branch=branch, path=path)
    return cast("RecallAnswer", {"found": False, **plain(miss)})


def _refuse_filters(prefix: str | None, tags: Sequence[str] | None) -> None:
    """Refuse list filters together with a key, because they would be ignored silently."""
    for name, given in (("prefix", prefix), ("tags", tags)):
        if given is not None:
            raise ValidationFailed(
                f"`{name}` filters a list of entries; a key names one.",
                field=name,
                hint=f"Leave `{name}` out, or leave the key out to list what there is.",
            )


def history(
    memory: Memory,
    *,
    key: Annotated[
        str | None, Param("Its versions, newest first", quiet=True, aliases=KEY_ALIASES)
    ] = None,
    event: EventLabel = None,
    session: EventSession = None,
    since: Since = None,
    after: AfterSequence = None,
    order: Annotated[
        Literal["oldest", "newest"] | None, Param("Which event comes first", quiet=True)
    ] = None,
    namespace: Namespace = None,
    branch: BranchName = None,
    as_of: AsOf = None,
    limit: _HistoryLimit = limits.HISTORY_PAGE_DEFAULT,
    cursor: Cursor = None,
) -> HistoryAnswer:
    """Return the versions of an entry, or logged events; without either, the time range."""
    filters = {"event": event, "session": session, "since": since, "after": after, "order": order}
    given = [name for name, each in filters.items() if each is not None]
    if key is not None:
        if given:
            raise ValidationFailed(
                f"`{given[0]}` is about logged events; a key has versions.",
                field=given[0],
                hint=f"Leave `{given[0]}` out, or leave the key out to read events.",
            )
        found = memory.history(
            key, namespace=namespace, branch=branch, as_of=as_of, limit=limit, cursor=cursor
        )
        answer: Answer = plain(found)
        if not answer["results"] and cursor is None:
            miss = memory.explain_miss(key, namespace=namespace, as_of=as_of, branch=branch)
            answer |= plain(miss)
        return cast("HistoryAnswer", answer)
    if given or cursor is not None:
        events = memory.events(
            event,
            session=session,
            since=since,
            after=after,
            order=order or "oldest",
            namespace=namespace,
            limit=limit,
            branch=branch,
            as_of=as_of,
            cursor=cursor,
        )
        return cast("HistoryAnswer", plain(events))
    span = memory.time_range(branch=branch, as_of=as_of, namespace=namespace)
    return cast("HistoryAnswer", plain(span))


def fit_recalled(answer: Answer, given: Mapping[str, Any]) -> Answer:
    """Cut entries, and the keys under which there is none, to the budget.

    The cursor of a recall of one key is a position in its value; of several, one in `keys`.
    """
    if given.get("key") is None and given.get("keys") is None:
        return fit_listed(answer, given)
    begin = read_cursor(given.get("cursor"))
    chars_max = _budget(given)
    if "results" not in answer:
        return fit_value(answer, chars_max, begin) if answer["found"] else answer
    keys = list(dict.fromkeys(given["keys"]))
    if begin and begin >= len(keys):
        raise cursor_refusal(limit=len(keys))
    page = set(keys[begin:])
    shown = [each for each in answer["results"] if each["key"] in page]
    room = chars_max - chars_max // 4
    cut: Answer = {"found": bool(shown), "results": shown, "truncated": False}
    cut = fit_list(cut, room, lambda count: str(keys.index(shown[count]["key"])))
    looked_up = set(keys[begin : int(cut.get("next") or len(keys))])
    missing = [key for key in answer["missing"] if key in looked_up]
    return _with_missing(cut, missing, answer.get("misses", ()), room // 3)


def _with_missing(
    answer: Answer, missing: list[str], misses: Sequence[Answer], chars_max: int
) -> Answer:
    """Name the keys that are missing, as far as there is room, and similar keys."""
    if not missing:
        return answer
    listed = take_fitting(missing, chars_max)
    answer["missing"] = listed
    if len(listed) < len(missing):
        answer["missing_count"] = len(missing)
    told = [each for each in misses if each["key"] in listed]
    if told and chars_of(told) <= chars_max:
        answer["misses"] = told
    return answer


def fit_listed(answer: Answer, given: Mapping[str, Any]) -> Answer:
    """Cut a list of entries to the budget, and their values to their beginnings."""
    anchor, order = answer["anchor"], given.get("order", "newest")
    results = answer["results"]
    shown = {name: each for name, each in answer.items() if name != "anchor" or is_whole()}
    short = {**shown, "results": shorten_values(results, "value", limits.LIST_VALUE_CHARS)}

    def cursor_after(kept: int) -> str:
        last = results[kept - 1]
        return entry_cursor(anchor, order, last["key"], last["version"])

    return fit_list(short, _budget(given), cursor_after)


def fit_events(answer: Answer, given: Mapping[str, Any]) -> Answer:
    """Cut logged events to the budget, and their data to their beginnings."""
    results = answer["results"]
    if len(results) > 1:
        # One event alone is shown whole, as far as there is room.
        reads_session = given.get("session") is not None
        most = limits.SESSION_MESSAGE_CHARS if reads_session else limits.LIST_VALUE_CHARS
        answer["results"] = shorten_values(results, "data", most)
    return fit_list(answer, _budget(given), lambda kept: str(results[kept - 1]["sequence"]))


def fit_history(answer: Answer, given: Mapping[str, Any]) -> Answer:
    """Cut versions or events to the budget."""
    if "results" not in answer:
        return answer
    if given.get("key") is None:
        return fit_events(answer, given)
    versions = [result["version"] for result in answer["results"]]
    return fit_list(answer, _budget(given), lambda kept: str(versions[kept - 1]))


def fit_names(answer: Answer, given: Mapping[str, Any]) -> Answer:
    """Cut a list of names to the budget; the least important come last, and go first."""
    results = answer["results"]
    kept = take_fitting(results, _budget(given) - _NOTE_CHARS)
    if left := len(results) - len(kept):
        answer = add_note(answer, f"{left} more were left out; raise max_chars to see them.")
    return answer | {"results": kept}


def _budget(given: Mapping[str, Any]) -> int:
    chars_max: int = given.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
    return chars_max


def say_recalled(answer: Mapping[str, Any]) -> str:
    """Return what a recall found as text, or why it found nothing."""
    if "reason" in answer:
        return say_miss(answer)
    if "results" not in answer:
        value = brief(answer["value"], len(brief(answer["value"], 10**9)))
        told = (
            f"(version {answer['version']}, {answer['timestamp']}{since(answer)}{by_actor(answer)}"
        )
        told += where(answer) + until(answer)
        return with_note([f"{answer['key']} = {value}", f"{told}; {AS_DATA[1:]}"], answer)
    lines = [_say_entry(entry) for entry in answer["results"]]
    lines += say_misses(answer)
    if not lines:
        return say_empty_list(answer)
    return with_note([*lines, AS_DATA] if answer["results"] else lines, answer)


def say_empty_list(answer: Mapping[str, Any]) -> str:
    """Say that a list is empty, and where there is something."""
    near, elsewhere, tags = (answer.get(name) for name in ("near", "elsewhere", "near_tags"))
    if tags:
        return f"Nothing there has all of these tags. Tags in use: {', '.join(tags)}."
    nothing = "There are no such entries."
    said = [f"No key has this prefix. Similar keys: {', '.join(near)}." if near else nothing]
    if elsewhere:
        said.append(f"Namespaces with such entries: {', '.join(elsewhere)}.")
    return " ".join(said)


def say_misses(answer: Mapping[str, Any], told: MissWords | None = None) -> list[str]:
    """Say of several keys that nothing is stored under them, and what may have been meant."""
    words = told or MissWords()
    misses = answer.get("misses", ())
    explained = {each["key"] for each in misses}
    lines = [say_miss(each, words) for each in misses]
    if rest := [key for key in answer.get("missing") or () if key not in explained]:
        lines.append(f"Nothing {words.verb} under {', '.join(map(repr, rest))}.")
    return lines


def _say_entry(entry: Mapping[str, Any]) -> str:
    tags = f", tags {', '.join(entry['tags'])}" if entry.get("tags") else ""
    told = f"{minute_of(entry['timestamp'])}{since(entry)}{by_actor(entry)}"
    told += f"{where(entry)}{until(entry)}{tags}"
    return f"{entry['key']} = {brief(entry['value'])} ({told})"


class MissWords(NamedTuple):
    """The wording of a miss: what is wrong with the key, and the operation to try instead."""

    verb: str = "is stored"
    operation: str = _RECALL


def say_miss(answer: Mapping[str, Any], told: MissWords | None = None) -> str:
    """Say why nothing was found under a key, and what may have been meant."""
    words = told or MissWords()
    key, namespace = answer["key"], answer["namespace"]
    if named := _say_what_is_there(answer, words):
        return named
    elsewhere = answer.get("elsewhere")
    usual = namespace == USUAL_PLACE and not elsewhere
    place = "" if usual else f" in the namespace {namespace!r}"
    said = [f"Nothing {words.verb} under {key!r}{place}.", *_say_time(answer)]
    if (end := answer.get("latest_sequence")) is not None:
        said.append(f"No event has that number yet: the log ends at @{end}.")
    if kind := answer.get("id_of"):
        article = "an" if kind == "incident" else "a"
        reading = advise(_READ_BY_ID[kind].format(key))
        said.append(f"It is the id of {article} {kind}: {reading} reads it.")
    if near := answer.get("near"):
        said.append(f"Near: {', '.join(near)}.")
        begin = key.rstrip(WILDCARDS)
        if sum(each.startswith(begin) for each in near) > 1:
            said.append(
                advise(f"strata_recall with prefix {begin!r} lists all keys with this prefix.")
            )
    if elsewhere:
        names = " and ".join(map(repr, elsewhere))
        found = f"{words.operation} with key {key!r} and namespace {elsewhere[0]!r}"
        said.append(f"There is such a key in the namespace {names}: {advise(found)}.")
    if branches := answer.get("branches"):
        names = " and ".join(map(repr, branches))
        given = "" if usual else f" and namespace {namespace!r}"
        found = f"{words.operation} with key {key!r}{given} and branch {branches[0]!r}"
        said.append(f"There is such a key on the branch {names}: {advise(found)}.")
    if words.operation == _RECALL and (len(said) == 1 or (" " in key and not elsewhere)):
        # Whoever knows no key asks in words.
        said.append(advise(f"strata_search with query {key!r} finds by words and meaning."))
    return " ".join(said)


def _say_what_is_there(answer: Mapping[str, Any], words: MissWords) -> str | None:
    """Say what a key names that is no miss, or not all of it; None where there is nothing."""
    key = answer["key"]
    if answer.get("reason") == "found":
        return f"{key!r} is stored."
    if answer.get("reason") == "path":
        return f"{key!r} has nothing at {answer['path']}. At {answer['place']}: {answer['there']}."
    if (label := answer.get("event")) is not None:
        return _say_event_named(key, label, words)
    return _say_version_named(answer) if "version_of" in answer else None


def _say_event_named(key: str, label: str, words: MissWords) -> str:
    """Say that a key names a logged event, to who did not ask to read it."""
    said = f"{key!r} is a logged event ({label})"
    if words.operation == _FORGET:
        number = key.rpartition("@")[2]
        correct = "log or store what holds now"
        discard = advise("review_decide with decision 'discard'")
        purge = advise(f"strata_purge with sequence '{number}'")
        return (
            f"{said}, and events are not forgotten: {correct}. {discard} hides one that hooks "
            f"captured; {purge} erases it for good."
        )
    return f"{said}, no key: {advise(f'strata_recall with key {key!r}')} reads it."


def _say_version_named(answer: Mapping[str, Any]) -> str:
    """Say that a key names a version of an entry, and what shows that version."""
    key, entry = answer["key"], answer["version_of"]
    namespace = answer.get("version_namespace")
    place = f" in the namespace {namespace!r}" if namespace else ""
    number = f"@{key.rpartition('@')[2]}"
    given = f"key {entry!r} and as_of {number!r}"
    given += f" and namespace {namespace!r}" if namespace else ""
    found = advise(f"{_RECALL} with {given}")
    return f"{key!r} is no key but a version of the entry {entry!r}{place}: {found} shows it."


# What reads a record of another system by its id.
_READ_BY_ID: Final = {
    "concept": "get_concept with concept_id {!r}",
    "incident": "show_record with record_id {!r}",
}

# A version may be there no more: what is missed is any at all.
HISTORY_WORDS: Final = MissWords("was ever stored", "strata_history")


def _say_time(answer: Mapping[str, Any]) -> list[str]:
    told = {
        "forgotten": "It was forgotten",
        "erased": "Retention erased its value of that time, written",
        "expired": "It expired",
        "later": "It was stored only later",
    }.get(answer.get("reason", ""))
    if told is None:
        return []
    before = advise(f"; as_of {answer['before']!r} shows it") if answer.get("before") else ""
    first = ", first" if answer["reason"] == "later" else ""
    at = f"{first} at {answer['timestamp']}" if answer.get("timestamp") else ""
    return [f"{told}{at}{before}."]


def say_history(answer: Mapping[str, Any]) -> str:
    """Return versions, events or a time range as text."""
    if "results" not in answer:
        branch = answer["branch"]
        if "oldest" not in answer:
            return f"The branch {branch!r} shows nothing yet."
        return (
            f"The branch {branch!r} can be seen from {answer['oldest']} "
            f"(@{answer['oldest_sequence']}) to {answer['latest']} (@{answer['latest_sequence']})."
        )
    if not answer["results"] and "key" in answer:
        return say_miss(answer, HISTORY_WORDS)
    if not answer["results"] or "event" in answer["results"][0]:
        return say_events(answer)
    lines = [
        f"version {each['version']} {each['timestamp']}{by_actor(each)} " + _say_version(each)
        for each in answer["results"]
    ]
    return with_note([*lines, AS_DATA], answer)


def _say_version(version: Mapping[str, Any]) -> str:
    if version.get("erased"):
        return "(erased)"
    return "(forgotten)" if version["deleted"] else brief(version["value"], 300)


_NEAR_EVENTS: Final = {
    "near_sessions": "Sessions",
    "near": "Labels in use",
    "elsewhere": "Namespaces with such events",
}


def say_no_events(answer: Mapping[str, Any]) -> str:
    """Say that no event fits, which sessions or labels there are, and where such events are."""
    said = ["There are no such events."]
    for name, words in _NEAR_EVENTS.items():
        if near := answer.get(name):
            said.append(f"{words}: {', '.join(near)}.")
    return " ".join(said)


def say_events(answer: Mapping[str, Any]) -> str:
    """Return logged events as text."""
    lines = [
        f"{each['sequence']} {each['timestamp']} {each['event']}{_say_session(each)}"
        f"{since(each)}{by_actor(each)}: {brief(each['data'], limits.ANSWER_CHARS_MAX)}"
        for each in answer["results"]
    ]
    return with_note([*lines, AS_DATA] if lines else [say_no_events(answer)], answer)


def _say_session(event: Mapping[str, Any]) -> str:
    return f" ({event['session']})" if event.get("session") else ""


def say_listed(answer: Mapping[str, Any]) -> str:
    """Return a list of entries as text."""
    lines = [_say_entry(entry) for entry in answer["results"]]
    return with_note([*lines, AS_DATA] if lines else [say_empty_list(answer)], answer)


def _say_namespaces(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['name']}: {plural(each['entries'], 'entry')}, {plural(each['events'], 'event')}"
        for each in answer["results"]
    ]
    return with_note(lines or ["Nothing is stored yet."], answer)


def _say_tags(answer: Mapping[str, Any]) -> str:
    lines = [f"{each['tag']}: {each['count']}" for each in answer["results"]]
    return with_note(lines or ["Nothing has a tag."], answer)


def _say_activity(answer: Mapping[str, Any]) -> str:
    if not answer["events"]:
        return "Nothing was written yet."
    busiest = max(answer["results"], key=lambda each: each["events"])
    return (
        f"{plural(answer['events'], 'event')} from {minute_of(answer['oldest'])} to "
        f"{minute_of(answer['latest'])}; most since {minute_of(busiest['start'])}: "
        f"{busiest['events']}."
    )


def _say_sessions(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['session']} ({plural(each['events'], 'event')}, {minute_of(each['latest'])})"
        + (f": {each['title']}" if each["title"] else "")
        for each in answer["results"]
    ]
    return with_note([*lines, AS_DATA] if lines else ["There are no sessions."], answer)


def _say_facets(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{facet}: " + ", ".join(f"{each['name']} {each['count']}" for each in answer[facet][:10])
        for facet in ("authors", "kinds", "days")
    ]
    return "\n".join([f"Of {plural(answer['entries'], 'entry')}:", *lines])


def _say_explained(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{hit['score']:.2f} {hit.get('key') or '@' + str(hit['sequence'])}: words "
        f"{hit['why']['words']:.2f} ({', '.join(hit['why']['matched']) or 'none'}), meaning "
        f"{hit['why']['meaning']:.2f}"
        for hit in answer["results"]
    ]
    return with_note(lines or ["Nothing was found."], answer)


def _say_compared(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['change']} {each.get('title') or each['key']} ({each['side']})"
        for each in answer["results"][:20]
    ]
    return with_note(lines or ["There are no differences."], answer)


def _say_graph(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['name']}: from {each['parent']} at @{each['forked_at']}"
        if each.get("parent")
        else each["name"]
        for each in answer["results"]
    ]
    merges = [
        f"@{each['sequence']}: {each['source']} into {each['target']}" for each in answer["merges"]
    ]
    return "\n".join([*lines, *merges])


def say_deleted(answer: Mapping[str, Any]) -> str:
    """Say what was forgotten with a namespace, and how it comes back."""
    name, kept = answer["namespace"], answer["events"]
    if not answer["deleted"]:
        return f"The namespace {name!r} has no entries.{_did_you_mean(answer)}"
    said = [f"Forgot {plural(answer['deleted'], 'entry')} of {name!r}."]
    if kept:
        said.append(f"{plural(kept, 'logged event')} stay{'s' if kept == 1 else ''}.")
    restoring = advise(
        f"strata_restore_namespace with name {name!r} and as_of {answer['before']!r}"
    )
    return " ".join([*said, f"{restoring} brings them back."])


def _did_you_mean(answer: Mapping[str, Any]) -> str:
    near = answer.get("near")
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def _say_restored(answer: Mapping[str, Any]) -> str:
    said = f"Restored {plural(answer['restored'], 'entry')} of {answer['namespace']!r}."
    if not answer["restored"] and not answer["kept"]:
        said = f"Nothing was restored: {answer['namespace']!r} had no entries at that moment."
        said += _did_you_mean(answer)
    if not answer["kept"]:
        return said
    verb = "was" if answer["kept"] == 1 else "were"
    return f"{said} {plural(answer['kept'], 'key')} {verb} in use and left unchanged."


def _memory(foundation: Foundation, caller: Caller) -> Memory:
    return Memory(foundation, caller)


_TAGS: Final = {"tags": ("--tag", "-t")}

LISTING_OPERATIONS: tuple[Operation, ...] = (
    operation(
        "strata_list",
        Memory.list,
        fit=fit_listed,
        answer_options=("max_chars",),
        own_cursor=True,
        toolset=_TOOLSET,
        title="List",
        description="List what is stored: entries by prefix of the key and by tags, newest first "
        "or by key, each with the beginning of its value.",
        service=_memory,
        answer_fields=("results", "truncated", "next"),
        summarise=say_listed,
        read_only=True,
        also_called=("ls", "keys", "entries"),
        commands=(
            CommandHint(
                ("list",),
                "List what is stored, newest first or by key.",
                panel="Memory",
                positional=("prefix",),
                flags=_TAGS,
                completions={"prefix": "keys"},
                renderer="tables.show_list",
            ),
        ),
    ),
    operation(
        "strata_events",
        Memory.events,
        fit=fit_events,
        answer_options=("max_chars",),
        toolset=_TOOLSET,
        title="Events",
        description="Read logged events in order: by label, session, tags, since a time or after "
        "a sequence.",
        service=_memory,
        summarise=say_events,
        read_only=True,
        commands=(
            CommandHint(
                ("events",),
                "Show logged events in the order in which they were logged.",
                panel="Memory",
                positional=("event",),
                flags=_TAGS,
                renderer="tables.show_events",
                handler="memory.events",
            ),
        ),
    ),
    operation(
        "strata_namespaces",
        Memory.namespaces,
        fit=fit_names,
        answer_options=("max_chars",),
        toolset=_TOOLSET,
        title="Namespaces",
        description="List the namespaces with how many entries and logged events each holds.",
        service=_memory,
        answer_fields=("results", "current"),
        summarise=_say_namespaces,
        read_only=True,
        commands=(
            CommandHint(
                ("namespaces",),
                "List the namespaces, with how much each holds.",
                panel="Memory",
                renderer="tables.show_namespaces",
            ),
        ),
    ),
    operation(
        "strata_tags",
        Memory.tags,
        fit=fit_names,
        answer_options=("max_chars",),
        toolset=_TOOLSET,
        title="Tags",
        description="List the tags in use, the most frequent first.",
        service=_memory,
        answer_fields=("results", "truncated"),
        summarise=_say_tags,
        read_only=True,
        commands=(
            CommandHint(
                ("tags",),
                "List the tags in use, the most frequent first.",
                panel="Memory",
                renderer="tables.show_tags",
            ),
        ),
    ),
    operation(
        "strata_activity",
        Memory.activity,
        toolset=_TOOLSET,
        title="Activity",
        description="How much was written when? Counts events over time, on all branches.",
        service=_memory,
        summarise=_say_activity,
        read_only=True,
        commands=(CommandHint(("activity",)),),
    ),
    operation(
        "strata_sessions",
        Memory.sessions,
        toolset=_TOOLSET,
        title="Sessions",
        description="List the latest conversations: when they took place and how they began.",
        service=_memory,
        summarise=_say_sessions,
        read_only=True,
        commands=(CommandHint(("sessions",)),),
    ),
    operation(
        "strata_facets",
        Memory.facets,
        toolset=_TOOLSET,
        title="Facets",
        description="Count entries by who wrote them, by the kind of their value and by day.",
        service=_memory,
        summarise=_say_facets,
        read_only=True,
        commands=(CommandHint(("facets",)),),
    ),
    operation(
        "strata_branch_graph",
        Memory.branch_graph,
        toolset=_TOOLSET,
        title="Graph of branches",
        description="How the branches came from each other, and which were merged into which.",
        service=_memory,
        summarise=_say_graph,
        read_only=True,
        commands=(CommandHint(("branch-graph",)),),
    ),
    operation(
        "strata_compare",
        Memory.compare,
        toolset=_TOOLSET,
        title="Compare",
        description="How do two branches differ, each at a moment of its own? Or one branch then "
        "and now: name it twice.",
        service=_memory,
        summarise=_say_compared,
        read_only=True,
        commands=(CommandHint(("compare",), positional=("compare",)),),
    ),
    operation(
        "strata_explain_search",
        Memory.explain_search,
        toolset=_TOOLSET,
        title="Explain a search",
        description="Search, and explain each hit: which words match, and how similar its "
        "meaning is.",
        service=_memory,
        summarise=_say_explained,
        read_only=True,
        commands=(CommandHint(("explain-search",), positional=("query",), joined="query"),),
    ),
    operation(
        "strata_explain_miss",
        Memory.explain_miss,
        toolset=_TOOLSET,
        title="Explain a miss",
        description="Why is nothing stored under this key? Tells whether it was forgotten "
        "or has expired, which keys are similar, and which namespaces have it.",
        service=_memory,
        summarise=say_miss,
        read_only=True,
        commands=(CommandHint(("explain-miss",), positional=("key",)),),
    ),
    operation(
        "strata_delete_namespace",
        Memory.delete_namespace,
        toolset=_TOOLSET,
        title="Delete a namespace",
        description="Forget every entry of a namespace at once. Past moments still show them, and "
        "strata_restore_namespace brings them back. Logged events stay.",
        service=_memory,
        summarise=say_deleted,
        destructive=True,
        idempotent=True,
        commands=(
            CommandHint(
                ("delete-namespace",),
                "Forget every entry of a namespace at once. It can be restored.",
                panel="Memory",
                positional=("name",),
                completions={"name": "namespaces"},
                renderer="tables.show_deleted_namespace",
                handler="memory.delete_namespace",
            ),
        ),
    ),
    operation(
        "strata_restore_namespace",
        Memory.restore_namespace,
        toolset=_TOOLSET,
        title="Restore a namespace",
        description="Store again what a namespace held at a moment and no longer holds. "
        "Keys that have a value now are left unchanged.",
        service=_memory,
        summarise=_say_restored,
        idempotent=True,
        existing_only=True,
        commands=(
            CommandHint(
                ("restore-namespace",),
                "Bring back what a namespace held at a moment.",
                panel="Memory",
                positional=("name",),
                completions={"name": "namespaces"},
            ),
        ),
    ),
)
