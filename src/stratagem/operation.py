"""What an operation is.

Each system describes its operations once, as rows of this type; every surface is a
translation of the gathered table (`stratagem.operations`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any, Concatenate, Final, Generic, Literal, TypedDict, TypeVar, Unpack

from stratagem.answers import plain, read_cursor
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import NotInTransaction, PermissionDenied, ReadOnly, StratagemError
from stratagem.parameters import Input, Schema
from stratagem.schemas import operation_schemas

__all__ = [
    "CORRECTION",
    "DEFAULT_TOOLSETS",
    "DEVELOPER_TOOLSET",
    "MADE_UP",
    "Authority",
    "Caller",
    "CommandHint",
    "Operation",
    "PersonNeeded",
    "Right",
    "SdkMethod",
    "TransactionState",
    "advise",
    "operation",
]

Answer = dict[str, Any]
ServiceT = TypeVar("ServiceT")
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
GivenT = TypeVar("GivenT")

# The rights of a token on the operations of a toolset. `admin` includes all others, and `write`
# includes `read`.
Right = Literal["read", "write", "execute", "admin"]
_INCLUDED: dict[Right, tuple[Right, ...]] = {
    "read": ("read", "write", "admin"),
    "write": ("write", "admin"),
    "execute": ("execute", "admin"),
    "admin": ("admin",),
}

# How the identity of a caller is known. "operator": the command line, the SDK, the server itself.
# "token": by its token. "agent": a model on the other end of stdio, which may repeat the
# instructions of a web page. "network": anybody who reaches a server without tokens.
Authority = Literal["operator", "token", "agent", "network"]

# A longer command is shown without its arguments, which are then read from stdin.
_COMMAND_CHARS_MAX: Final = 2_000

# The prefix of request ids that a client generated itself, which its caller does not know.
MADE_UP = "made-up:"

# Where an answer says what was corrected about the call.
CORRECTION: Final = "correction"

# Few on purpose: a model chooses worse among many tools.
DEFAULT_TOOLSETS: tuple[str, ...] = ("memory", "debugging")
# The granular tools, which take the place of the eight of memory.
DEVELOPER_TOOLSET: Final = "developer"


@dataclass(frozen=True, slots=True)
class TransactionState:
    """A transaction that a caller is in, which works on a hidden branch of its own.

    `branch` is the one that it was begun on and will be committed to; `ends_at` is its time limit,
    in microseconds since 1970.
    """

    id: str
    branch: str
    ends_at: int
    read_only: bool = False


@dataclass(slots=True)
class Caller:
    """Who calls, and from where: the defaults of one client.

    `branch` changes when the client switches; `can_switch` is False for clients without a session
    that could hold a branch. `local`: it runs on the machine of the database, so that its
    environment can be inspected. `read_only`: nothing may be written in its name. `scopes` are the
    rights of its token, such as "memory:write" or "*:read"; None is all rights, for callers who own
    the database. `workspace` is the database of a server that it works on; None is the server's
    own.

    `authority` says how the caller's identity is known; the default is an agent. `of_host`: its
    token is that of an administrator of the server's own workspace, and so of the machine.
    `toolsets` are those whose operations a tool may run on its behalf; None is all of them.
    `origin` is the same caller with fewer restrictions: switching a branch affects both.
    `transaction`: the one it is in; `branch` is then the hidden branch of that. `transaction_id`:
    the one that it says it is in, which is looked up when an operation is run. `tool_sets` are the
    named sets of tools that it may call through the gateway; None is all tools. `budget` limits the
    number and cost of its tool calls.
    """

    actor: str = "sdk"
    namespace: str = "default"
    branch: str = "default"
    can_switch: bool = True
    local: bool = True
    read_only: bool = False
    scopes: frozenset[str] | None = None
    workspace: str | None = None
    authority: Authority = "agent"
    of_host: bool = False
    toolsets: frozenset[str] | None = None
    origin: Caller | None = None
    transaction: TransactionState | None = None
    transaction_id: str | None = None
    tool_sets: frozenset[str] | None = None
    budget: Mapping[str, Any] | None = None

    @property
    def shown_branch(self) -> str:
        """The branch that the caller works on, as it knows it."""
        return self.transaction.branch if self.transaction else self.branch

    def refuse_in_transaction(self, what: str) -> None:
        """Refuse what a transaction could not undo.

        Raises:
            NotInTransaction: The caller is in one.
        """
        if self.transaction is not None:
            raise NotInTransaction(f"{what} cannot be part of a transaction.")

    def switch_to(self, branch: str) -> None:
        """Make a branch the current one."""
        self.branch = branch
        if self.origin is not None:
            self.origin.switch_to(branch)

    def use_namespace(self, namespace: str) -> None:
        """Make a namespace the default of calls that name none."""
        self.namespace = namespace
        if self.origin is not None:
            self.origin.use_namespace(namespace)

    def may(self, toolset: str, right: Right) -> bool:
        """Whether the caller's token allows something."""
        if self.scopes is None:
            return True
        wanted = {f"{place}:{each}" for place in (toolset, "*") for each in _INCLUDED[right]}
        return not wanted.isdisjoint(self.scopes)

    def require(self, toolset: str, right: Right, what: str) -> None:
        """Raise an error if the caller lacks a right.

        Raises:
            PermissionDenied: The token does not allow it.
            ReadOnly: Nothing may be written in the caller's name.
        """
        if not self.may(toolset, right):
            raise PermissionDenied(
                f"Your token does not allow {what}: it needs the scope {toolset}:{right}.",
                required=f"{toolset}:{right}",
            )
        if self.read_only and right != "read":
            if self.transaction is not None and self.transaction.read_only:
                raise ReadOnly(
                    f"This transaction is read-only; {what} writes.",
                    hint="Write outside it, or begin another without read_only.",
                )
            raise ReadOnly(f"This server is read-only; {what} writes.")

    def require_known(self, what: str) -> None:
        """Refuse operations that run code, even in a sandbox, to unidentified callers.

        Raises:
            PermissionDenied: The caller is somebody on the network, or no administrator.
        """
        if self.authority == "network" or not self.may("gateway", "admin"):
            raise PermissionDenied(
                f"{what} runs code on the server; that takes an administrator's token, the "
                "command line or the SDK.",
                required="gateway:admin",
            )

    def speaks_for_person(self, toolset: str, *, of_host: bool = False) -> bool:
        """Whether the call is made by a person: an operator, or an administrator's token."""
        if self.authority == "operator":
            return True
        return (
            self.authority == "token"
            and self.may(toolset, "admin")
            and (self.of_host or not of_host)
        )

    def require_person(
        self,
        toolset: str,
        what: str,
        reason: str,
        command: Sequence[str],
        *,
        of_host: bool = False,
    ) -> None:
        """Refuse an operation that only a person may run, and name the command for a person.

        Raises:
            PermissionDenied: No person stands behind the call.
        """
        if self.speaks_for_person(toolset, of_host=of_host):
            return
        whose = "an administrator of the server's own workspace" if of_host else "an administrator"
        line = _command_line(command)
        # Without it the command would work on the database of the person who pastes it.
        place = "" if command[0] == "--db" else " on the machine of the server, with its --db"
        raise PermissionDenied(
            f"{what} {reason}, so a person has to do it directly: on the command line, "
            f"in the SDK or with the token of {whose}.",
            required="host administrator" if of_host else f"{toolset}:admin",
            command=line,
            hint=f"Have a person run{place}: {line}",
        )

    def without_person(self) -> Caller:
        """Return the same caller for calls written by a model or a stored tool.

        Its rights stay, but the calls no longer count as made by a person. An unidentified caller
        stays one: it registers no code, not even for the sandbox.
        """
        if self.authority == "network":
            return self
        return replace(self, authority="agent", of_host=False, origin=self)

    def sees_contents_of(self, actor: str) -> bool:
        """Whether the caller may see the arguments and the result of somebody's call."""
        return self.actor == actor or self.sees_every_call

    @property
    def sees_every_call(self) -> bool:
        """Whether the caller may see the contents of others' calls, as administrators may.

        As long as there are no tokens, every caller on loopback has all rights.
        """
        return self.authority == "network" or self.speaks_for_person("gateway")

    @property
    def is_on_machine(self) -> bool:
        """Whether the caller may know the files of the machine that the database is on."""
        return self.local or self.of_host or self.authority == "operator"

    def reach(self) -> list[Any]:
        """Return, as JSON, everything that an answer to the caller may depend on."""
        return [
            self.actor,
            self.namespace,
            self.branch,
            self.workspace,
            self.read_only,
            self.authority,
            self.of_host,
            self.local,
            None if self.scopes is None else sorted(self.scopes),
            None if self.toolsets is None else sorted(self.toolsets),
            None if self.tool_sets is None else sorted(self.tool_sets),
        ]


def _always(_given: Any) -> bool:
    return True


def _never(_given: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class PersonNeeded(Generic[GivenT]):
    """Why an operation needs a person, and the command for a person to run.

    `applies`: for which arguments it does. `of_host`: for which arguments it acts on the machine,
    so that an administrator of another workspace may not run it. `command` returns the words after
    `stratagem`. Each is handed the checked arguments, as the operation itself is.
    """

    reason: str
    command: Callable[[GivenT], Sequence[str]]
    applies: Callable[[GivenT], bool] = _always
    of_host: Callable[[GivenT], bool] = _never


def _command_line(words: Sequence[str]) -> str:
    import shlex

    line = shlex.join(["stratagem", *words])
    if len(line) <= _COMMAND_CHARS_MAX:
        return line
    kept = [word if len(word) <= _COMMAND_CHARS_MAX // 10 else "-" for word in words]
    return f"{shlex.join(['stratagem', *kept])} (with the same arguments on stdin)"


@dataclass(frozen=True, slots=True)
class SdkMethod:
    """How the SDK offers an operation: by a method that returns the answer, or one `part` of it.

    `positional` are the parameters that need no name. `group`: the methods that it is one of, as
    `kv` of `db.kv.put`, where the system of the operation has several such groups.
    """

    name: str
    positional: tuple[str, ...] = ()
    part: str | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class CommandHint:
    """How the command line offers an operation, or one action of it.

    `path` are the words of the command. `help` says what it does to people; the description of
    the operation is for models. `positional` are the parameters that need no flag; the one that is
    `joined` takes all words that are left. `required` are those that the command requires, though
    the operation does not. `flags` are further flags of a parameter, besides that
    of its name. `files` are parameters that are read from a file. `single`: a parameter that takes
    a list, and the one that takes a single value instead. `only` are the parameters of the
    command, where those are not all; `fixed` are arguments that it always passes.

    `renderer` displays the answer, if a sentence is not enough, and `handler` runs the operation,
    if more has to be done: functions of modules of `stratagem.surfaces.cli`. `completions` are
    functions of its module `completion`, by the parameter whose values they offer.
    """

    path: tuple[str, ...]
    help: str = ""
    panel: str = ""
    positional: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    joined: str | None = None
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    single: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    completions: Mapping[str, str] = field(default_factory=dict)
    renderer: str = ""
    handler: str = ""


_ADVICE_WORDS: ContextVar[Callable[[str], str]] = ContextVar("advice_words", default=str)


def advise(text: str) -> str:
    """Return advice that names operations, in the terms of the surface that shows it."""
    return _ADVICE_WORDS.get()(text)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a caller can ask for, alike on every surface.

    `method` is the typed method of a service that it runs, and the source of its description.
    `also_in` are other toolsets that show it too. `takes`: the method takes its parameters as one
    object of this type. `answer_options` are parameters of the answer that no method knows of:
    `cursor` and `max_chars`; `transaction` is the id of the one that the call is part of.
    `answer_fields`: the fields of a long answer that the list of tools describes. Empty
    `null_fields` are null in an answer; other empty fields are left out.

    `reading_actions`: of an operation that takes an `action`, those that write nothing.
    `existing_only`: it only changes what is stored already; of one that takes an `action`,
    `existing_actions` do.
    `action_aliases`: by action, parameters that others of its actions take, and the one that a
    caller who gives such a parameter means.
    `part` is the part of the runtime that it runs on. `run_async` is there where waiting is
    most of the work; `run` then does the same for callers without an event loop. `right` is the
    right needed to call it, if that does not follow from whether it writes. `person`: it also needs
    a person. `irreversible`: it cannot be undone, and therefore always needs a person.
    `calls_tools`: it has the effects of the registered tools that it calls. `confidential`: its
    arguments contain a secret, so that it is not offered to models, and no tool may run it.
    `run_unopened` answers where the database cannot be read: with the error, and the time.
    `commands` are its commands, if its name alone is not a good one. `also_called` are names that
    other products use for such an operation: a call by one of them is answered with the right name.
    `schemas` are those of an operation that has no generated ones. `example` are arguments that
    work on any database, for the pages and the help; an operation on what has an id of its own has
    none.
    """

    name: str
    toolset: str
    title: str
    description: str
    method: Callable[..., Any]
    run: Callable[[Any, Any, Caller], Answer]
    summarise: Callable[[Answer], str]
    takes: type[Input] | None = None
    answer_options: tuple[str, ...] = ()
    answer_fields: tuple[str, ...] | None = None
    null_fields: tuple[str, ...] = ()
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    reading_actions: tuple[str, ...] = ()
    existing_only: bool = False
    existing_actions: tuple[str, ...] = ()
    action_aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    part: Literal["foundation", "gateway", "transactions"] = "foundation"
    also_in: tuple[str, ...] = ()
    run_async: Callable[[Any, Any, Caller], Awaitable[Answer]] | None = None
    right: Right | None = None
    person: PersonNeeded[Any] | None = None
    irreversible: bool = False
    calls_tools: bool = False
    confidential: bool = False
    run_unopened: Callable[[StratagemError, int], Answer] | None = None
    sdk: SdkMethod | None = None
    commands: tuple[CommandHint, ...] = ()
    also_called: tuple[str, ...] = ()
    schemas: Mapping[str, Schema] | None = None
    example: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse a row that would let an agent run an irreversible operation."""
        assert self.person is not None or not self.irreversible, self.name

    @property
    def parameters(self) -> Schema:
        """The JSON Schema that arguments are checked against."""
        return self._schema("input")

    @property
    def output_schema(self) -> dict[str, Any]:
        """A short JSON Schema of the answer."""
        return dict(self._schema("output"))

    def _schema(self, which: str) -> Schema:
        found = self.schemas or operation_schemas(self.name)
        assert found is not None, f"run `make generate` for {self.name}"
        schema: Schema = found[which]
        return schema

    @property
    def toolsets(self) -> tuple[str, ...]:
        """Every toolset that shows it."""
        return self.toolset, *self.also_in

    @property
    def in_transaction(self) -> bool:
        """Whether it can be part of a transaction: all that it does can be undone."""
        return self.run_async is None and not self.irreversible

    def describe(self, answer: Answer, words: Callable[[str], str] = str) -> str:
        """Return an answer as text, with the corrections of the call.

        `words` translates advice that names operations into the terms of the surface.
        """
        correction = answer.get(CORRECTION)
        token = _ADVICE_WORDS.set(words)
        try:
            said = self.summarise(answer)
        finally:
            _ADVICE_WORDS.reset(token)
        return f"{said}\n({correction})" if correction else said

    def right_for(self, arguments: Mapping[str, Any]) -> Right:
        """Return the right that is needed to call the operation with these arguments."""
        if self.right is not None:
            return self.right
        if self.read_only or arguments.get("action") in self.reading_actions:
            return "read"
        return "admin" if self.toolset == "admin" else "write"

    def reads(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call writes nothing."""
        return self.read_only or self.right_for(arguments) == "read"

    def needs_database(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call has nothing to do without an existing database: it reads, or removes."""
        changes_existing = self.destructive or self.existing_only
        return (
            self.reads(arguments)
            or changes_existing
            or arguments.get("action") in self.existing_actions
        )


class Hints(TypedDict, total=False):
    """Optional hints of a row about its operation."""

    answer_fields: tuple[str, ...]
    read_only: bool
    destructive: bool
    idempotent: bool
    reading_actions: tuple[str, ...]
    existing_only: bool
    existing_actions: tuple[str, ...]
    action_aliases: Mapping[str, Mapping[str, str]]
    right: Right
    person: PersonNeeded[Mapping[str, Any]]
    irreversible: bool
    part: Literal["foundation", "gateway", "transactions"]
    also_in: tuple[str, ...]
    run_unopened: Callable[[StratagemError, int], Answer] | None
    commands: tuple[CommandHint, ...]
    also_called: tuple[str, ...]
    example: Mapping[str, Any] | None


def operation(
    name: str,
    method: Callable[Concatenate[ServiceT, ...], ResultT],
    *,
    service: Callable[[PartT, Caller], ServiceT],
    toolset: str,
    title: str,
    description: str,
    summarise: Callable[[Answer], str],
    render: Callable[[ResultT], Answer] = plain,
    fit: Callable[[Answer, Mapping[str, Any]], Answer] | None = None,
    fit_error: Callable[[StratagemError, Mapping[str, Any]], None] | None = None,
    answer_options: tuple[str, ...] = (),
    null_fields: tuple[str, ...] = (),
    own_cursor: bool = False,
    sdk: SdkMethod | None = None,
    **hints: Unpack[Hints],
) -> Operation:
    """Return the row of a method that takes its parameters by name.

    `render` makes JSON of what the method returns; `fit` cuts that to the budget that was given,
    and `fit_error` what an error lists. `own_cursor`: the cursor is not a number, and the method
    checks it.
    """

    def run(part: PartT, given: Mapping[str, Any], caller: Caller) -> Answer:
        # What cannot be continued must not be run, either.
        if not own_cursor:
            read_cursor(given.get("cursor"))
        own = {each: value for each, value in given.items() if each not in answer_options}
        try:
            result = method(service(part, caller), **own)
        except StratagemError as error:
            if fit_error is not None:
                fit_error(error, given)
            raise
        answer = {**dict.fromkeys(null_fields), **render(result)}
        return answer if fit is None else fit(answer, given)

    return Operation(
        name=name,
        toolset=toolset,
        title=title,
        description=description,
        method=method,
        run=run,
        summarise=summarise,
        answer_options=answer_options,
        null_fields=null_fields,
        sdk=sdk,
        **hints,
    )
