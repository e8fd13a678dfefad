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

# What a token may do with the operations of a toolset. An administrator may do all of it, and
# whoever may write may read.
Right = Literal["read", "write", "execute", "admin"]
_INCLUDED: dict[Right, tuple[Right, ...]] = {
    "read": ("read", "write", "admin"),
    "write": ("write", "admin"),
    "execute": ("execute", "admin"),
    "admin": ("admin",),
}

# How it is known on whose behalf somebody calls. "operator": the command line, the SDK, the server
# itself. "token": what the token says. "agent": a model on the other end of stdio, whose words may
# be those of a web page it has read. "network": whoever reaches a server that has no tokens yet.
Authority = Literal["operator", "token", "agent", "network"]

# A longer command is shown without its arguments, which are then read from stdin.
_COMMAND_CHARS_MAX: Final = 2_000

# How a request id begins that a client made up by itself: whoever called does not know it.
MADE_UP = "made-up:"

# Where an answer says what was corrected about the call.
CORRECTION: Final = "correction"

# Few on purpose: a model chooses worse the more tools it is shown.
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

    `branch` changes when the client switches; `can_switch` is False for clients that
    have nothing to remember a branch by. `local`: it runs where the database is, so that its
    environment can be looked at. `read_only`: nothing may be written in its name. `scopes` are
    what its token allows, such as "memory:write" or "*:read"; None is everything, for callers
    whose own the database is. `workspace` says which of a server's databases it works on; None is
    the server's own.

    `authority` says how far the caller's word goes; whoever does not say is an agent. `of_host`:
    its token is an administrator's of the server's own workspace, and so of the machine.
    `toolsets` are those whose operations a tool may run on its behalf; None is all of them.
    `origin` is the same caller, less restricted: a branch that one switches to is the other's too.
    `transaction`: the one it is in; `branch` is then the hidden branch of that. `transaction_id`:
    the one that it says it is in, which is looked up when an operation is run.
    `tool_sets` are the named sets of tools that it may call through the gateway; None is all tools.
    `budget` is how much its calls of tools may come to.
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
        """Make a namespace the one of whatever names none."""
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
        """Refuse what the caller may not do.

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
        """Refuse what runs code, even in a sandbox, unless it is known who asks for it.

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
        """Whether a person stands behind the call: an operator, or an administrator's token."""
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
        """Refuse what takes a person's word, and say by which command a person gives it.

        Raises:
            PermissionDenied: No person stands behind the call.
        """
        if self.speaks_for_person(toolset, of_host=of_host):
            return
        whose = "an administrator of the server's own workspace" if of_host else "an administrator"
        line = _command_line(command)
        # Without it the command works on the database of whoever pastes it.
        place = "" if command[0] == "--db" else " on the machine of the server, with its --db"
        raise PermissionDenied(
            f"{what} {reason}, so a person has to do it directly: on the command line, "
            f"in the SDK or with the token of {whose}.",
            required="host administrator" if of_host else f"{toolset}:admin",
            command=line,
            hint=f"Have a person run{place}: {line}",
        )

    def without_person(self) -> Caller:
        """Return the same caller for words that are not its own: a model's, or a stored tool's.

        What it may do stays; that a person stands behind it does not. Who is nobody on the network
        stays so: it registers no code, not even for the sandbox.
        """
        if self.authority == "network":
            return self
        return replace(self, authority="agent", of_host=False, origin=self)

    def sees_contents_of(self, actor: str) -> bool:
        """Whether the caller may see what a call of somebody said, and what it was told."""
        return self.actor == actor or self.sees_every_call

    @property
    def sees_every_call(self) -> bool:
        """Whether the caller may see the contents of others' calls, as administrators may.

        Before there are tokens, whoever reaches a server on loopback owns all of it.
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
    """Why an operation takes a person's word, and the command by which a person gives it.

    `applies`: with which arguments it does. `of_host`: with which it acts on the machine, so that
    the administrator of another workspace has no say. `command` returns the words after
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

    `renderer` shows the answer, where a sentence does not do, and `handler` runs the operation,
    where more is to be done: functions of modules of `stratagem.surfaces.cli`. `completions` are
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
    """Return advice that names operations, in the words of whoever reads the answer."""
    return _ADVICE_WORDS.get()(text)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a caller can ask for, alike on every surface.

    `method` is what it runs, and the source of its description: a typed method of a service.
    `also_in` are other toolsets that show it too.
    `takes`: the method takes its parameters as one object of this type. `answer_options` are
    parameters of the answer that no method knows of: `cursor` and `max_chars`; `transaction` is the
    id of the one that the call is part of. `answer_fields`: of a long answer, what the list of
    tools says of it. `null_fields` stand in an answer as null
    where they are empty; others are left out of it.

    `reading_actions`: of an operation that takes an `action`, those that write nothing.
    `existing_only`: it only changes what is stored already; of one that takes an `action`,
    `existing_actions` do.
    `action_aliases`: by action, parameters that others of its actions take, and the one that a
    caller who gives such a parameter means.
    `part` is the part of the runtime that it runs on. `run_async` is there where waiting is
    most of the work; `run` then does the same for callers that have no event loop. `right` is
    what it takes to call it, where that does not follow from what it does. `person`: it takes a
    person's word besides. `irreversible`: what it does cannot be undone, which always does.
    `calls_tools`: it does, and reaches, whatever a registered tool does. `confidential`: its
    arguments hold a secret, so that no model is offered it, and no tool runs it.
    `run_unopened` answers where the database cannot be read: with the error, and the time.
    `commands` are its commands, where its name alone makes no good one. `also_called` are words by
    which others know such an operation: whoever calls it so is told its name. `schemas` are
    those of an operation that has no generated ones. `example` are arguments that work on any
    database, for the pages and the help; an operation on what has an id of its own has none.
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
        """Refuse a row that could let an agent do what nobody can undo."""
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
        """Say an answer in words, and what was corrected about the call that it answers.

        `words` returns advice that names operations as whoever reads the answer calls them.
        """
        correction = answer.get(CORRECTION)
        token = _ADVICE_WORDS.set(words)
        try:
            said = self.summarise(answer)
        finally:
            _ADVICE_WORDS.reset(token)
        return f"{said}\n({correction})" if correction else said

    def right_for(self, arguments: Mapping[str, Any]) -> Right:
        """Return what it takes to call the operation with these arguments."""
        if self.right is not None:
            return self.right
        if self.read_only or arguments.get("action") in self.reading_actions:
            return "read"
        return "admin" if self.toolset == "admin" else "write"

    def reads(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call writes nothing."""
        return self.read_only or self.right_for(arguments) == "read"

    def needs_database(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call has nothing to do where no database is: it reads, or removes."""
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
