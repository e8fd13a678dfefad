"""The operations of memory, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from stratagem import limits
from stratagem.answers import (
    add_note,
    fit_hits,
    fit_list,
    minute_of,
    plural,
    read_cursor,
    take_fitting,
)
from stratagem.errors import MergeConflict, StratagemError
from stratagem.memory.answer_text import (
    AS_DATA,
    USUAL_PLACE,
    brief,
    by_actor,
    part_of,
    say_exchange,
    searched_view,
    since,
    until,
    where,
    with_note,
)
from stratagem.memory.listing_operations import (
    LISTING_OPERATIONS,
    MissWords,
    fit_history,
    fit_recalled,
    history,
    recall,
    say_history,
    say_misses,
    say_recalled,
)
from stratagem.memory.service import Memory
from stratagem.operation import (
    MADE_UP,
    Caller,
    CommandHint,
    Operation,
    PersonNeeded,
    advise,
    operation,
)
from stratagem.search.foundation import Foundation

__all__ = ["OPERATIONS"]

Answer = dict[str, Any]


def _memory(foundation: Foundation, caller: Caller) -> Memory:
    return Memory(foundation, caller)


def _fit_stored(answer: Answer, given: Mapping[str, Any]) -> Answer:
    if given.get("items") is None:
        return answer
    return fit_list(answer, limits.ANSWER_CHARS_DEFAULT, None)


_NAMESPACES_SAID: Final = 10
_OLDER_INSTRUCTIONS: Final = "There are older ones; strata_search finds them by their words."
# Of a hit, in words: a passage has about as many.
_HIT_CHARS: Final = 800


def _fit_found(answer: Answer, given: Mapping[str, Any]) -> Answer:
    begin = read_cursor(given.get("cursor"))
    view = searched_view(answer, given)
    return fit_hits(answer, _budget(given), lambda kept: str(begin + kept), view)


def _budget(given: Mapping[str, Any]) -> int:
    chars_max: int = given.get("max_chars", limits.ANSWER_CHARS_DEFAULT)
    return chars_max


def _fit_branches(answer: Answer, given: Mapping[str, Any]) -> Answer:
    begin = read_cursor(given.get("cursor"))
    answer = {"action": given["action"], **answer}
    if "results" not in answer:
        return answer
    answer["results"] = answer["results"][begin:]
    answer["truncated"] = False
    if answer.get("conflicts"):
        answer = _with_fewer_conflicts(answer, _budget(given) // 2)
    # A merge that was carried out is not carried out again to see the rest of it.
    request_id = given.get("request_id")
    known = request_id is not None and not request_id.startswith(MADE_UP)
    again = given["action"] != "merge" or given.get("preview") or known
    return fit_list(answer, _budget(given), (lambda kept: str(begin + kept)) if again else None)


def _fit_conflicts(error: StratagemError, given: Mapping[str, Any]) -> None:
    if isinstance(error, MergeConflict):
        error.details["conflicts"] = take_fitting(
            error.details["conflicts"], _budget(given) - 1_000
        )


def _with_fewer_conflicts(answer: Answer, chars_max: int) -> Answer:
    conflicts = answer["conflicts"]
    kept = take_fitting(conflicts, chars_max)
    answer |= {"conflicts": kept, "conflict_count": len(conflicts)}
    left = len(conflicts) - len(kept)
    if not left:
        return answer
    return add_note(answer, f"{left} more conflicts were left out; decide these and preview again.")


def _purge_command(given: Mapping[str, Any]) -> list[str]:
    options = {"--sequence": given.get("sequence"), "--namespace": given.get("namespace")}
    words = [
        word for name, each in options.items() if each is not None for word in (name, str(each))
    ]
    # A key may begin with a dash.
    key = given.get("key")
    return ["purge", *words, *(["--", key] if key is not None else [])]


def _say_stored(answer: Mapping[str, Any]) -> str:
    if "results" in answer:
        place = where(answer["results"][0]) if answer["results"] else ""
        # A later item may be the next version of an earlier one.
        entries = {(each["namespace"], each["key"]) for each in answer["results"]}
        stored = plural(len(entries), "entry")
        if len(entries) < len(answer["results"]):
            stored += f" in {len(answer['results'])} versions"
        return f"Stored {stored} (version {answer['version']}{place})."
    return (
        f"Stored {answer['key']!r}: {answer['status']}, version {answer['version']}"
        f"{where(answer)}{until(answer)}."
    )


def _say_found(answer: Mapping[str, Any]) -> str:
    if answer.get("ended_at"):
        return with_note([], answer)
    if not answer["results"]:
        place = "" if answer.get("branch") in {None, USUAL_PLACE} else f" on {answer['branch']!r}"
        return with_note([f"Nothing was found{place}."], answer)
    lines = [
        line
        for place, hit in enumerate(answer["results"], 1)
        for line in _say_hit(place, hit, answer.get("namespace"))
    ]
    if answer.get("branch") not in {None, USUAL_PLACE}:
        lines.append(f"(on branch {answer['branch']!r})")
    if answer["mode"] == "lexical":
        lines.append("(found by words only, not by meaning)")
    return with_note([*lines, AS_DATA], answer)


def _say_hit(place: int, hit: Mapping[str, Any], namespace: str | None) -> Iterator[str]:
    """Say what was found, where and when it was written, and what belongs to it."""
    name = hit.get("key") or f"@{hit['sequence']} {hit['event']}"
    if "name" in hit:
        name = f"{hit['name']} [{hit['key']}]"
    lies = f", namespace {hit['namespace']!r}" if hit["namespace"] != namespace else ""
    session = f", session {hit['session']!r}" if hit.get("session") else ""
    of = f", {part_of(hit)}" if hit.get("chars") else ""
    of += f", {hit['lowered']}" if hit.get("lowered") else ""
    yield (
        f"{place}. {name} ({hit['kind']}{lies}{session}, {hit['score']:.2f}, "
        f"{minute_of(hit['timestamp'])}{since(hit)}{by_actor(hit)}{until(hit)}{of}): "
        f"{brief(hit.get('passage', hit['value']), _HIT_CHARS)}"
    )
    yield from (f"   {line}" for line in say_exchange(hit))


_FORGET_WORDS: Final = MissWords("was stored", "strata_forget")


def _say_forgotten(answer: Mapping[str, Any]) -> str:
    names = ", ".join(map(repr, answer["keys"]))
    forgot = [f"Forgot {names}{where(answer)}."] if answer["deleted"] else []
    return " ".join([*forgot, *say_misses(answer, _FORGET_WORDS)])


def _say_logged(answer: Mapping[str, Any]) -> str:
    return f"Logged as event {answer['sequence']}{where(answer)}."


def _say_branched(answer: Mapping[str, Any]) -> str:
    action = answer["action"]
    if action == "list":
        return with_note([_say_branch(each) for each in answer["results"]], answer)
    if action == "diff":
        return _say_differences(answer)
    if action == "merge":
        verb = "Would merge" if answer["preview"] else "Merged"
        counts = f"{plural(answer['merged'], 'change')} and {plural(answer['events'], 'event')}"
        line = f"{verb} {counts} from {answer['source']!r} into {answer['target']!r}."
        conflicts = [
            f"conflict {_say_place(each)}: "
            f"target {_say_side(each, 'ours')}, source {_say_side(each, 'theirs')}"
            for each in answer["conflicts"]
        ]
        notices = answer.get("notices") or []
        data = [*map(_say_change, answer["results"]), *conflicts]
        undecided = [_UNDECIDED] if conflicts else []
        return with_note([line, *undecided, *notices, *data, *([AS_DATA] if data else [])], answer)
    return _BRANCH_WORDS[action](answer)


_UNDECIDED: Final = (
    "Nothing is merged before each conflict below is decided: pass `decisions` with its id, or "
    "`strategy`."
)


def _say_place(conflict: Mapping[str, Any]) -> str:
    named = f" ({conflict['title']})" if "title" in conflict else ""
    return f"{conflict['id']}{named} at {conflict['path']}"


def _say_branch(branch: Mapping[str, Any]) -> str:
    mark = "*" if branch["current"] else " "
    parent = branch.get("parent")
    origin = f" (from {parent} at @{branch['forked_at']})" if parent else ""
    return f"{mark} {branch['name']}{origin}"


def _say_fork(answer: Mapping[str, Any]) -> str:
    name = answer["name"]
    origin = f" from {answer['parent']!r} at @{answer['forked_at']}" if "parent" in answer else ""
    work = advise(f'strata_branch with action "switch" and name {name!r}')
    verb = "Forked" if origin else "Created the empty branch"
    said = f"{verb} {name!r}{origin}. You stay where you are: {work} works on it."
    return with_note([said], answer)


def _say_delete(answer: Mapping[str, Any]) -> str:
    name = answer["name"]
    restore = advise(f'strata_branch with action "restore" and name {name!r}')
    return with_note([f"Deleted {name!r}; {restore} brings it back."], answer)


# What is said of an action that is done to one branch.
_BRANCH_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "create": _say_fork,
    "fork": _say_fork,
    "delete": _say_delete,
    "restore": lambda answer: with_note([f"Restored {answer['name']!r}."], answer),
    "switch": lambda answer: f"You are on the branch {answer['name']!r} now.",
}


def _say_differences(answer: Mapping[str, Any]) -> str:
    """Say how two branches differ, and of each difference on which of them it was made."""
    compare, branch = answer["compare"], answer["branch"]
    sides = {"theirs": f"on {compare}: ", "ours": f"on {branch}: ", "both": "on both: "}
    names = {"ours": branch, "theirs": compare, "both": "both"}
    lines = [
        f"{sides[each['side']]}{_say_change(each)}{_say_changed_by(each, names)}"
        for each in answer["results"]
    ]
    return with_note([_count_differences(answer), *lines, *([AS_DATA] if lines else [])], answer)


def _count_differences(answer: Mapping[str, Any]) -> str:
    """Say how much each of two branches changed since they were alike."""
    compare, branch = answer["compare"], answer["branch"]
    said = (
        f"{compare}: {answer['added']} added, {answer['removed']} removed, "
        f"{answer['changed']} changed since it equalled {branch}"
    )
    if answer["ours"]:
        said += f"; {branch} changed {answer['ours']}"
    if answer["both"]:
        said += f"; both changed {answer['both']}"
    for count, of in ((answer["events"], compare), (answer["ours_events"], branch)):
        if count:
            said += f"; {plural(count, 'event')} only on {of}"
    return said


def _say_change(change: Mapping[str, Any]) -> str:
    sides = {"added": ("after",), "removed": ("before",)}.get(change["change"], ("before", "after"))
    values = [_say_side(change, side) for side in sides]
    told = [" → ".join(values)]
    if change["change"] == "changed" and "kind" in change:
        told = [_say_field(change, name) for name in change["differs"]]
    elif change["change"] == "changed" and "value" not in change["differs"]:
        told = [f"{values[0]} (same value)"]
    if change["change"] != "changed":
        expiry = change.get("expires_after", change.get("expires_before"))
        told += [f"expires {expiry}"] if expiry else []
    elif "expires" in change.get("differs", ()):
        expiries = (change.get(side, "never") for side in ("expires_before", "expires_after"))
        told.append(f"expires {' → '.join(expiries)}")
    if "tags_before" in change:
        tags = (", ".join(change[side]) or "none" for side in ("tags_before", "tags_after"))
        told.append(f"tags {' → '.join(tags)}")
    return f"{change['change']} {_say_name(change)}: {'; '.join(told)}"


def _say_changed_by(change: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Say which branch changed which place of a record that both changed, where that differs."""
    changed = change.get("changed_by", {})
    if set(changed.values()) <= {"both"}:
        return ""
    places = {
        side: ", ".join(place for place, by in changed.items() if by == side) for side in names
    }
    said = (f"{places[side]} on {names[side]}" for side in names if places[side])
    return f" (changed: {'; '.join(said)})"


def _say_field(change: Mapping[str, Any], name: str) -> str:
    """Say what a field of a record that is no entry was, and is."""
    return f"{name} {_say_side(change['before'], name)} → {_say_side(change['after'], name)}"


def _say_name(change: Mapping[str, Any]) -> str:
    """Call an entry by its key, with its namespace, and another record by its kind and title."""
    if "kind" in change:
        return f"{change['kind']} {change.get('title', change['key'])!r}"
    where = change["namespace"]
    return str(change["key"]) if where == "default" else f"{change['key']} (namespace {where})"


def _say_side(sides: Mapping[str, Any], side: str) -> str:
    return brief(sides[side], 200) if side in sides else "nothing"


def _say_status(answer: Mapping[str, Any]) -> str:
    names, own = answer["namespaces"], answer["namespace"]
    counts = f"{plural(answer['keys'], 'key')} and {plural(answer['events'], 'event')}"
    inside = f" in {plural(len(names), 'namespace')} ({_some(names)})" if names else ""
    empty = "" if own in names else ", which is empty"
    line = (
        f"Branch {answer['branch']!r} of {answer['branches']}: {counts}{inside}. "
        f"Your namespace is {own!r}{empty}."
    )
    warnings = [answer["clock_warning"]] if answer.get("clock_warning") else []
    wanted = [
        f"- {each['text']} ({each['timestamp'][:10]}{by_actor(each)})"
        for each in answer.get("instructions", ())
    ]
    if wanted:
        title = "Standing instructions and preferences found here, newest first:"
        older = [_OLDER_INSTRUCTIONS] if answer.get("instructions_more") else []
        wanted = [title, *wanted, *older, AS_DATA]
    return with_note([line, *warnings, *wanted], answer)


def _some(names: Sequence[str]) -> str:
    more = ["…"] if len(names) > _NAMESPACES_SAID else []
    return ", ".join([*names[:_NAMESPACES_SAID], *more])


def _say_purged(answer: Mapping[str, Any]) -> str:
    count = answer["erased"]
    said = [f"Erased {count} {'event' if count == 1 else 'events'}."]
    if not count:
        said = ["Nothing was erased: there is no such entry or event, or it was purged before."]
    if answer.get("copies"):
        said.append(f"Records that quoted it lost their content: {_counts(answer['copies'])}.")
    if answer.get("elsewhere"):
        said.append(
            f"The same text is still in: {_counts(answer['elsewhere'])}. Search for it, and "
            "purge or forget what should be removed too."
        )
    return " ".join([*said, answer["note"]])


def _counts(counts: Mapping[str, int]) -> str:
    """Return how many records of each kind there are: `3 x pipeline step`."""
    return ", ".join(
        f"{count} x {kind.replace('_', ' ')}" for kind, count in sorted(counts.items())
    )


_TAGS: Final = {"tags": ("--tag", "-t")}


def _branch_command(
    action: str,
    description: str,
    *,
    takes: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    required: bool = True,
    renderer: str = "",
    handler: str = "",
) -> CommandHint:
    """Return the command of an action; what it `takes` stands by position, `also` behind flags."""
    return CommandHint(
        ("branch", action),
        description,
        positional=takes,
        required=takes if required else (),
        only=(*takes, *also),
        fixed={"action": action},
        completions=dict.fromkeys(takes, "branches"),
        renderer=renderer,
        handler=handler,
    )


_BRANCH_COMMANDS: Final = (
    _branch_command(
        "list", "List the branches.", also=("cursor",), renderer="tables.show_branches"
    ),
    _branch_command(
        "create",
        "Start an empty branch.",
        takes=("name",),
        also=("request_id",),
        required=False,
        renderer="branches.show_done",
    ),
    _branch_command(
        "fork",
        "Start a branch from --branch, now or at a past moment. Nothing is copied.",
        takes=("name",),
        also=("as_of", "request_id"),
        required=False,
        renderer="branches.show_done",
    ),
    _branch_command(
        "switch",
        "Explain how to work on another branch: commands do not remember one.",
        takes=("name",),
        handler="branches.switch",
    ),
    _branch_command(
        "merge",
        "Merge a branch into --branch.",
        takes=("source",),
        also=("strategy", "preview", "decisions", "request_id", "cursor"),
        renderer="differences.show_merge",
        handler="branches.merge",
    ),
    _branch_command(
        "diff",
        "Show what another branch and --branch changed since they were equal.",
        takes=("compare",),
        also=("as_of", "cursor"),
        renderer="differences.show_diff",
    ),
    _branch_command(
        "delete",
        "Hide a branch. It can be restored.",
        takes=("name",),
        also=("request_id",),
        renderer="branches.show_done",
    ),
    _branch_command(
        "restore",
        "Restore a deleted branch; with --source under another name.",
        takes=("name",),
        also=("source", "as_of", "request_id"),
        renderer="branches.show_done",
    ),
)


OPERATIONS: tuple[Operation, ...] = (
    operation(
        "strata_store",
        Memory.store,
        fit=_fit_stored,
        toolset="memory",
        example={"key": "city", "value": "Oslo, since 2019", "tags": ["home"]},
        title="Store",
        description="Remember this: store any JSON value under a key (or several `items`). "
        "Replaces what was there; history keeps it. Searchable at once.",
        service=_memory,
        answer_fields=("key", "version", "timestamp", "namespace", "status", "results"),
        summarise=_say_stored,
        idempotent=True,
        also_called=("set", "put", "save", "add", "write", "remember", "insert", "update"),
        commands=(
            CommandHint(
                ("store",),
                "Remember a value under a key. What was there stays in its history.",
                panel="Memory",
                positional=("key", "value"),
                flags=_TAGS,
                files=("items",),
                completions={"key": "keys"},
            ),
        ),
    ),
    operation(
        "strata_recall",
        recall,
        fit=fit_recalled,
        answer_options=("max_chars",),
        own_cursor=True,
        toolset="memory",
        example={"key": "city"},
        title="Recall",
        description="What is stored under this exact key (or `keys`), now or `as_of` a past "
        "moment? Without a key: lists what is stored.",
        service=_memory,
        answer_fields=(
            "found",
            "key",
            "value",
            "version",
            "timestamp",
            "results",
            "truncated",
            "next",
        ),
        summarise=say_recalled,
        read_only=True,
        also_called=("get", "read", "fetch", "load", "show", "retrieve", "list", "ls", "keys"),
        commands=(
            CommandHint(
                ("recall",),
                "Show what is stored under a key, now or at a past moment; without a key, list it.",
                panel="Memory",
                positional=("keys",),
                single={"keys": "key"},
                completions={"keys": "keys"},
                handler="memory.recall",
            ),
        ),
    ),
    operation(
        "strata_search",
        Memory.search,
        fit=_fit_found,
        answer_options=("max_chars", "transaction"),
        toolset="memory",
        example={"query": "where do I live"},
        title="Search",
        description="Find entries and events by words and meaning, best first, when you do not "
        "know the key. `kinds`: entry, event, concept, incident.",
        service=_memory,
        summarise=_say_found,
        answer_fields=("results", "truncated", "next", "mode"),
        read_only=True,
        also_in=("developer",),
        also_called=("find", "query", "grep", "lookup", "look_up"),
        commands=(
            CommandHint(
                ("search",),
                "Find entries and logged events by words and by meaning, best first.",
                panel="Memory",
                positional=("query",),
                joined="query",
                flags={**_TAGS, "k": ("-k", "--limit"), "kinds": ("--kind",)},
                renderer="tables.show_hits",
            ),
        ),
    ),
    operation(
        "strata_forget",
        Memory.forget,
        toolset="memory",
        example={"key": "city"},
        title="Forget",
        description="Delete what is stored under a key. Past moments (`as_of`) still show it.",
        service=_memory,
        answer_fields=("deleted", "keys"),
        summarise=_say_forgotten,
        destructive=True,
        idempotent=True,
        also_called=("delete", "remove", "del", "rm", "erase", "unset"),
        commands=(
            CommandHint(
                ("forget",),
                "Remove what is stored under a key. Past moments still show it.",
                panel="Memory",
                positional=("keys",),
                required=("keys",),
                single={"keys": "key"},
                completions={"keys": "keys"},
            ),
        ),
    ),
    operation(
        "strata_log",
        Memory.log,
        toolset="memory",
        example={"event": "decision", "data": "Deploy on Mondays only"},
        title="Log",
        description="This happened: append an immutable event (action, observation, message). "
        "Searchable; give `session` to keep a conversation together.",
        service=_memory,
        answer_fields=("sequence", "timestamp"),
        summarise=_say_logged,
        also_called=("append", "event", "record", "note"),
        commands=(
            CommandHint(
                ("log",),
                "Append an event: something that happened and will not change.",
                panel="Memory",
                positional=("event", "data"),
                flags=_TAGS,
            ),
        ),
    ),
    operation(
        "strata_branch",
        Memory.branch,
        fit=_fit_branches,
        fit_error=_fit_conflicts,
        answer_options=("cursor", "max_chars"),
        toolset="memory",
        example={"action": "list"},
        title="Branch",
        description="Work in isolation: fork the current state, try something, then "
        "diff and merge it back or delete it. `create` starts empty, `switch` changes the "
        "current branch.",
        service=_memory,
        answer_fields=("action", "name", "conflicts", "results", "truncated", "next"),
        summarise=_say_branched,
        reading_actions=("list", "diff", "switch"),
        existing_actions=("delete", "restore", "merge"),
        also_called=("fork", "merge", "diff", "switch", "checkout", "branches"),
        action_aliases={
            "merge": {"name": "source"},
            "diff": {"name": "compare"},
            **{each: {"branch": "name"} for each in ("create", "switch", "delete", "restore")},
        },
        commands=_BRANCH_COMMANDS,
    ),
    operation(
        "strata_history",
        history,
        fit=fit_history,
        answer_options=("max_chars",),
        toolset="memory",
        example={"key": "city"},
        title="History",
        description="How did this key change? Its versions, newest first. With `event`, `session`, "
        "`since` or `after`: logged events in order. With neither: the time range.",
        service=_memory,
        answer_fields=("oldest", "latest", "branch", "results", "truncated", "next"),
        summarise=say_history,
        read_only=True,
        also_called=("versions", "changes", "events", "audit"),
        commands=(
            CommandHint(
                ("history",),
                "Show the versions of an entry, newest first; without a key, the time range.",
                panel="Memory",
                positional=("key",),
                completions={"key": "keys"},
                renderer="differences.show_history",
            ),
        ),
    ),
    operation(
        "strata_status",
        Memory.status,
        toolset="memory",
        example={},
        title="Status",
        description="The user's standing instructions; branch, namespace, counts.",
        service=_memory,
        summarise=_say_status,
        answer_fields=(
            "version",
            "branch",
            "namespace",
            "auto_embed",
            "branches",
            "keys",
            "events",
        ),
        read_only=True,
        also_called=("info", "stats"),
        commands=(
            CommandHint(
                ("status",),
                "Show the current branch and namespace, and how much is stored.",
                panel="Memory",
                renderer="tables.show_status",
            ),
        ),
    ),
    operation(
        "strata_purge",
        Memory.erase,
        toolset="admin",
        title="Purge",
        description="Erase an entry or a logged event for good: from the log, every branch, every "
        "past moment, the index and records of calls that quote it. Cannot be undone.",
        service=_memory,
        answer_fields=("erased", "copies", "elsewhere", "note"),
        summarise=_say_purged,
        destructive=True,
        idempotent=True,
        person=PersonNeeded("erases for good", _purge_command),
        irreversible=True,
    ),
    *LISTING_OPERATIONS,
)
