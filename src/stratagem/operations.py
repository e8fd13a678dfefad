"""The table of all operations, gathered from the systems.

Surfaces are translations of this table; none has an operation of its own. Each system's rows are
read when one of them is first asked for, so that a server starts without those it does not serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Protocol

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import values
from stratagem.errors import (
    DatabaseCorrupt,
    InvalidInput,
    OperationNotFound,
    PermissionDenied,
    StorageUnavailable,
    StratagemError,
)
from stratagem.operation import DEFAULT_TOOLSETS, Caller, Operation
from stratagem.parameters import ADVERTISED, OWN_KEYWORDS, QUIET, UNLISTED, check

__all__ = [
    "DEFAULT_TOOLSETS",
    "SYSTEMS",
    "TABLE",
    "TOOLSETS",
    "CorrectCall",
    "Prepared",
    "Table",
    "authorise",
    "check_reach",
    "find",
    "full_schema",
    "input_schema",
    "may_call",
    "of_toolsets",
    "prepare",
    "read_call",
    "read_input",
    "similar_operations",
]

Rows = tuple[Operation, ...]


def _memory() -> Rows:
    from stratagem.memory.operations import OPERATIONS

    return OPERATIONS


def _debugging() -> Rows:
    from stratagem.debugging.operations import OPERATIONS

    return OPERATIONS


def _knowledge() -> Rows:
    from stratagem.knowledge.operations import OPERATIONS

    return OPERATIONS


def _gateway() -> Rows:
    from stratagem.gateway.operations import OPERATIONS

    return OPERATIONS


def _developer() -> Rows:
    from stratagem.developer.operations import OPERATIONS

    return OPERATIONS


def _capture() -> Rows:
    from stratagem.capture.operations import OPERATIONS

    return OPERATIONS


# Each system with the toolsets that its operations belong to.
SYSTEMS: tuple[tuple[Callable[[], Rows], tuple[str, ...]], ...] = (
    (_memory, ("memory", "admin", "memory_plus", "developer")),
    (_debugging, ("debugging", "debugging_admin", "admin")),
    (_knowledge, ("knowledge", "knowledge_plus", "admin")),
    (_gateway, ("gateway", "registry", "admin")),
    (_developer, ("developer", "admin")),
    (_capture, ("review",)),
)
TOOLSETS: tuple[str, ...] = tuple(dict.fromkeys(each for _rows, sets in SYSTEMS for each in sets))
# The registry belongs to the gateway: the right to write to one includes the other. Operations of
# memory and knowledge that agents are not offered need the same rights as the others, and the
# debugging memory is maintained by its own administrators.
_SCOPES = {
    "registry": "gateway",
    "memory_plus": "memory",
    "developer": "memory",
    "debugging_admin": "debugging",
    "knowledge_plus": "knowledge",
    "review": "memory",
}
# A merge carries the records of every system: it takes the right to write to each.
_MERGE_WRITES = ("debugging", "knowledge", "gateway")
_ALSO_WRITTEN = {
    ("strata_branch", "merge"): _MERGE_WRITES,
    ("strata_branch_merge", None): _MERGE_WRITES,
}


class Table(Mapping[str, Operation]):
    """Operations by name; systems are read in order until one has it."""

    def __init__(self) -> None:
        self._rows: dict[str, Operation] = {}
        self._read = 0

    def __getitem__(self, name: str) -> Operation:
        while name not in self._rows and self._read < len(SYSTEMS):
            self._read_next()
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        while self._read < len(SYSTEMS):
            self._read_next()
        return iter(self._rows)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _read_next(self) -> None:
        # Twice by two threads does no harm: the rows are the same, and none is ever taken away.
        at = self._read
        self._rows.update({row.name: row for row in SYSTEMS[at][0]()})
        self._read = max(self._read, at + 1)


TABLE: Mapping[str, Operation] = Table()


def of_toolsets(wanted: Iterable[str]) -> list[Operation]:
    """Return the operations of some toolsets, without reading systems that have none of them."""
    chosen = set(wanted)
    return [
        row
        for rows, sets in SYSTEMS
        if chosen.intersection(sets)
        for row in rows()
        if chosen.intersection(row.toolsets)
    ]


def authorise(operation: Operation, arguments: Any, caller: Caller) -> None:
    """Refuse a call that the caller has no right to.

    Raises:
        PermissionDenied: Its token does not allow it.
        ReadOnly: Nothing may be written in its name.
    """
    given = arguments if isinstance(arguments, Mapping) else {}
    right = operation.right_for(given)
    action = given.get("action")
    if not isinstance(action, str):
        action = None
    if operation.reading_actions and not _is_action(operation, action):
        # An unknown action is reported by the operation itself.
        right = "read"
    what = f"{operation.name} {action}" if operation.reading_actions else operation.name
    caller.require(_scope(operation), right, what)
    for toolset in _ALSO_WRITTEN.get((operation.name, action), ()):
        caller.require(toolset, "write", what)


class Prepared(NamedTuple):
    """A call that may be run: its arguments as they were sent or corrected, and as checked.

    `correction` says what was corrected; empty where nothing was.
    """

    arguments: Any
    given: Any
    correction: str = ""


class Corrected(Protocol):
    """A call as it was meant, and what was done to it."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments to run with."""

    @property
    def notice(self) -> str:
        """What was done to them, in a line."""


# Returns a call that was refused as it was meant, or None.
CorrectCall = Callable[[Operation, Any, Caller, StratagemError], Corrected | None]


def prepare(
    operation: Operation,
    arguments: Any,
    caller: Caller,
    *,
    database: str | None = None,
    correct: CorrectCall | None = None,
) -> Prepared:
    """Return a call of an operation, checked, that a caller may run.

    `database` is named in the command that a person is asked to run, where one has to be.
    `correct` is asked about a call whose arguments are wrong.

    Raises:
        PermissionDenied: The caller may not, or no person stands behind the call.
        ReadOnly: Nothing may be written in its name.
        StratagemError: The arguments are wrong.
    """
    authorise(operation, arguments, caller)
    prepared = read_call(operation, arguments, caller, correct)
    if prepared.correction:
        # What was corrected may ask for more: an action may have come to light.
        authorise(operation, prepared.arguments, caller)
    given = prepared.given
    person = operation.person
    if person is not None and person.applies(given):
        caller.require_person(
            _scope(operation),
            operation.name,
            person.reason,
            [*_place_options(caller, database), *person.command(given)],
            of_host=person.of_host(given),
        )
    return prepared


def read_call(
    operation: Operation, arguments: Any, caller: Caller, correct: CorrectCall | None
) -> Prepared:
    """Return the arguments of a call, corrected if they are wrong and the correction is certain.

    Whether the caller may run it is not asked.

    Raises:
        StratagemError: The arguments are wrong.
    """
    said: list[str] = []
    try:
        given = read_input(operation, arguments)
    except StratagemError as refusal:
        corrected = correct(operation, arguments, caller, refusal) if correct else None
        if corrected is None:
            _name_other_operation(operation, refusal)
            raise
        arguments, said = corrected.arguments, [corrected.notice]
        given = read_input(operation, arguments)
    if correct is not None and operation.action_aliases:
        renamed = _rename_for_action(operation, given)
        if renamed is not None:
            given, aliases = renamed
            arguments = given
            said += [f"Corrected: `{one}` read as `{other}`." for one, other in aliases.items()]
    return Prepared(arguments, given, " ".join(said))


def _rename_for_action(
    operation: Operation, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Move a value from the parameter of another action to that of this one."""
    aliases = {
        one: other
        for one, other in operation.action_aliases.get(given.get("action", ""), {}).items()
        if given.get(one) is not None and given.get(other) is None
    }
    if not aliases:
        return None
    return {aliases.get(name, name): value for name, value in given.items() if value is not None}, (
        aliases
    )


def _name_other_operation(operation: Operation, refusal: StratagemError) -> None:
    """Say which operation of the same toolset takes a parameter that this one has not."""
    name = refusal.details.get("field")
    declared = operation.parameters.get("properties", {})
    if name in declared or not refusal.hint.startswith("It takes"):
        return
    others = [
        row
        for row in of_toolsets([operation.toolset])
        if name in row.parameters.get("properties", {})
    ]
    # Of several, the one that reads as this one does.
    alike = others if len(others) == 1 else [row for row in others if row.read_only]
    if len(alike) == 1 and (len(others) == 1 or operation.read_only):
        refusal.hint = f"{refusal.hint} {alike[0].name} takes `{name}`."


def _place_options(caller: Caller, database: str | None) -> list[str]:
    """Return the options by which a command works where the caller does."""
    own = Caller()
    options = {
        "--db": database,
        "--namespace": caller.namespace if caller.namespace != own.namespace else None,
        "--branch": caller.branch if caller.branch != own.branch else None,
    }
    return [word for name, each in options.items() if each is not None for word in (name, each)]


def check_reach(name: str, caller: Caller) -> None:
    """Refuse to let a tool run an operation of a toolset that the caller does not have.

    Raises:
        PermissionDenied: It is not on.
    """
    operation = find(name)
    toolset = operation.toolset
    if caller.toolsets is not None and caller.toolsets.isdisjoint(operation.toolsets):
        on = ",".join([*sorted(caller.toolsets), toolset])
        raise PermissionDenied(
            f"{name} belongs to the toolset {toolset!r}, which is not enabled here.",
            toolset=toolset,
            hint=f"The operator of the server can enable it: --toolsets {on}"
            f"{_person_note(operation)}",
        )


def _person_note(operation: Operation) -> str:
    """Say if enabling a toolset would only lead to the next refusal, and what helps instead."""
    if operation.person is None:
        return ""
    return (
        ". Even then a person has to run, on the command line, what erases for "
        "good, runs code outside of the sandbox, starts programs or grants secrets: "
        "see stratagem --help"
    )


def may_call(operation: Operation, caller: Caller) -> bool:
    """Whether a caller may call an operation with any arguments."""
    right = "read" if operation.reading_actions else operation.right_for({})
    return caller.may(_scope(operation), right)


def _scope(operation: Operation) -> str:
    return _SCOPES.get(operation.toolset, operation.toolset)


def _is_action(operation: Operation, action: object) -> bool:
    return action in input_schema(operation.name)["properties"]["action"]["enum"]


# How many names are suggested in place of one that is not known...
_SIMILAR_MAX = 3
# ...and how much of a name stands for it.
_BEGINNING_MIN = 3

# What a store raises that cannot be read at all.
_UNREADABLE = (DatabaseCorrupt, StorageUnavailable)


def answer_unopened(name: str, error: StratagemError, now: int) -> dict[str, Any]:
    """Answer an operation whose database cannot be read: what asks about the server can be.

    Raises:
        StratagemError: The error itself, of any other operation.
    """
    run = find(name).run_unopened
    if run is None or not isinstance(error, _UNREADABLE):
        raise error
    return run(error, now)


def find(name: str) -> Operation:
    """Return an operation by its name.

    Raises:
        InvalidInput: The name is no text.
        OperationNotFound: There is none; similar names are suggested.
    """
    if not isinstance(name, str):
        raise InvalidInput(
            f"The name of an operation is text, not {type(name).__name__}.",
            field="name",
            hint="Give the name of a tool, such as strata_recall.",
        )
    operation = TABLE.get(name)
    if operation is None:
        near = similar_operations(name, TABLE.values())
        # Quoted, it stays a name on every surface: that is what was asked for.
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else None
        raise OperationNotFound(
            f"There is no operation named {name!r}.", field="name", hint=hint, similar=near
        )
    return operation


def similar_operations(name: str, among: Iterable[Operation]) -> list[str]:
    """Return the operations that a wrong name may have meant: by what they do, else by its letters.

    `strata_delete` is nearer to strata_forget than to strata_store, and `store` is `strata_store`.
    """
    rows = list(among)
    word = _bare_name(name)
    by_word = {_bare_name(row.name): row.name for row in rows}
    same = [by_word[word]] if word in by_word else []
    called = [row.name for row in rows if word in row.also_called and row.name not in same]
    return same + called or _nearest_by_letters(word, by_word)


def _bare_name(name: str) -> str:
    return name.casefold().replace("-", "_").removeprefix("strata_")


def _nearest_by_letters(word: str, by_word: Mapping[str, str]) -> list[str]:
    """Return the names that begin as a word does, then those that are spelled nearly so."""
    from difflib import get_close_matches

    begun = [each for each in by_word if len(word) >= _BEGINNING_MIN and each.startswith(word)]
    near = get_close_matches(word, by_word, n=_SIMILAR_MAX)
    return [by_word[each] for each in dict.fromkeys([*begun, *near])][:_SIMILAR_MAX]


def read_input(operation: Operation, arguments: Any) -> Any:
    """Return the checked arguments of an operation: by Python name, or as the object it takes.

    Raises:
        InvalidInput: The arguments are no object.
        MissingRequired: A parameter is missing.
        ValidationFailed: A parameter is unknown or has a value it cannot have.
    """
    checked = check(operation.parameters, arguments, operation.name)
    if operation.takes is None:
        return checked
    for name, value in arguments.items():
        # What is no JSON could be neither sent to a tool nor recorded; other systems check it
        # themselves, where they store it.
        plain = dict(value) if isinstance(value, Mapping) else value
        values.encode(plain, field=name, bytes_max=limits.REQUEST_BYTES_MAX)
    return operation.takes.read(checked)


@cache
def input_schema(name: str, *, unlisted: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of an operation's parameters, in as few characters as will do.

    `unlisted`: with those that agents are not shown.
    """
    short: dict[str, Any] = _shorten(find(name).parameters)
    if not unlisted:
        hidden = {
            each
            for each, schema in find(name).parameters["properties"].items()
            if schema.get(UNLISTED)
        }
        shown = short["properties"].items()
        short["properties"] = {each: schema for each, schema in shown if each not in hidden}
    return short


@cache
def full_schema(name: str) -> dict[str, Any]:
    """Return the whole JSON Schema of an operation's parameters: what a caller may send."""
    full: dict[str, Any] = _publish(find(name).parameters)
    return full


# A bound as high as this steers no caller.
_STEERING_MAX = 100_000


def _publish(schema: Any) -> Any:
    """Return a schema without the keywords that only steer the check."""
    if isinstance(schema, list):
        return [_publish(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    published = {
        name: {each: _publish(value) for each, value in inner.items()}
        if name == "properties"
        else _publish(inner)
        for name, inner in schema.items()
        if name not in OWN_KEYWORDS
    }
    return published | dict(schema.get(ADVERTISED, {}))


def _shorten(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop lower bounds, lengths and the null of optional parameters: leaving one out says it."""
    dropped = {"anyOf", "minimum", "minLength", "additionalProperties", *OWN_KEYWORDS}
    short = {name: value for name, value in schema.items() if name not in dropped}
    if schema.get(QUIET):
        short.pop("description", None)
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        # Some clients know one type only; the first choice is the one that can say everything.
        short |= _shorten(choices[0])
    if short.get("default", 0) in (None, [], {}):
        del short["default"]
    if short.get("maximum", 0) > _STEERING_MAX:
        del short["maximum"]
    if isinstance(short.get("items"), Mapping):
        short["items"] = _shorten(short["items"])
    if isinstance(short.get("properties"), Mapping):
        short["properties"] = {name: _shorten(each) for name, each in short["properties"].items()}
    return short | dict(schema.get(ADVERTISED, {}))
