"""The embedded SDK: a database opened in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, Literal, NoReturn, Self, TypeVar

from stratagem import limits
from stratagem.answers import whole
from stratagem.bootstrap import Runtime, Settings, require_database, start
from stratagem.display import html_table
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.parameters import check
from stratagem.places import is_address
from stratagem.schemas import method_schema
from stratagem.sdk.developer_groups import DeveloperGroups
from stratagem.sdk.generated.memory import MemoryMethods
from stratagem.sdk.method_calls import as_method, is_reading, reword_note
from stratagem.sdk.times import time_arguments
from stratagem.sdk.transactions import TransactionBlock, TransactionScope
from stratagem.sdk.unknown_keywords import suggest_keywords
from stratagem.search.foundation import BoundSystem

if TYPE_CHECKING:
    from stratagem.sdk.functions import EmbeddedGateway
    from stratagem.sdk.generated.debugging import DebuggingMethods
    from stratagem.sdk.generated.knowledge import KnowledgeMethods
    from stratagem.sdk.generated.review import ReviewMethods

__all__ = [
    "CheckedService",
    "Durability",
    "OpenDatabase",
    "Redaction",
    "Stratagem",
    "check_path",
    "open_database",
    "open_runtime",
    "own_caller",
    "require_there",
]

ServiceT = TypeVar("ServiceT", bound=BoundSystem)
ResultT = TypeVar("ResultT")

Durability = Literal["full", "fast"]
Redaction = Literal["none", "basic", "strict"]

# The fields of results that name the branch a caller works on.
_BRANCH_FIELDS: Final = ("branch", "current")


class CheckedService(Generic[ServiceT]):
    """A service of this process, whose methods are handed checked arguments."""

    def __init__(
        self,
        system: str,
        kind: Callable[[Any, Caller], ServiceT],
        runtime: Runtime,
        scope: TransactionScope,
        *,
        caller: Caller,
        describe: Callable[[], str],
    ) -> None:
        self._describe = describe
        self._system = system
        self._kind = kind
        self._foundation = runtime.foundation
        self._scope = scope
        self._caller = caller
        self._service = kind(runtime.foundation, caller)

    def __repr__(self) -> str:
        return self._describe()

    def __call__(
        self,
        method: Callable[Concatenate[ServiceT, ...], ResultT],
        arguments: Mapping[str, Any],
        /,
    ) -> ResultT:
        """Run a method, in the transaction that the caller is in."""
        try:
            return reword_note(self._run(method, arguments))
        except StratagemError as error:
            if isinstance(error, ValidationFailed) and is_reading(method):
                error.leave_out_writing()
            error.reword_hint(as_method)
            raise

    def _run(
        self, method: Callable[Concatenate[ServiceT, ...], ResultT], arguments: Mapping[str, Any]
    ) -> ResultT:
        name = method.__name__
        caller = self._scope.caller()
        given = self._scope.transactions.arguments_for(caller, arguments)
        checked = check(method_schema(self._system, name), given, name)
        if caller is self._caller:
            return method(self._service, **checked)
        result = method(self._kind(self._foundation, caller), **checked)
        for field in _BRANCH_FIELDS:
            if getattr(result, field, None) == caller.branch:
                setattr(result, field, caller.shown_branch)
        return result


class OpenDatabase:
    """The common base of the synchronous and the asynchronous database."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime = runtime
        self._caller = caller
        self._scope = TransactionScope(runtime.transactions, caller)
        self._closed = False

    @property
    def branch(self) -> str:
        """The current branch."""
        return self._caller.branch

    @property
    def namespace(self) -> str:
        """The default namespace."""
        return self._caller.namespace

    @property
    def runtime(self) -> Runtime:
        """The parts below, for surfaces and maintenance."""
        return self._runtime

    def _service(
        self, system: str, kind: Callable[[Any, Caller], ServiceT]
    ) -> CheckedService[ServiceT]:
        return CheckedService(
            system,
            kind,
            self._runtime,
            self._scope,
            caller=self._caller,
            describe=self.__repr__,
        )

    def _call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        given = {} if arguments is None else time_arguments(name, arguments)
        return self._runtime.call(name, given, self._scope.caller())

    def __reduce__(self) -> NoReturn:
        raise TypeError("A database cannot be pickled or copied: open it again where it is needed.")

    def __repr__(self) -> str:
        about = ", ".join(f"{name} {value!r}" for name, value in self._about())
        return f"<{type(self).__name__}: {about}>"

    def _repr_html_(self) -> str:
        return html_table([type(self).__name__, ""], self._about())

    def _about(self) -> list[tuple[str, str]]:
        told = [
            ("database", self._runtime.foundation.store.location),
            ("branch", self.branch),
            ("namespace", self.namespace),
        ]
        return [*told, ("state", "closed")] if self._closed else told


class Stratagem(OpenDatabase, DeveloperGroups):
    """An open database. Safe to use from several threads; close it, or use `with`."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        super().__init__(runtime, caller)
        self.memory = MemoryMethods(self._service("memory", Memory))

    # Systems other than the memory are imported when they are first used.
    @cached_property
    def debugging(self) -> DebuggingMethods:
        """Incidents, solutions and outcomes."""
        from stratagem.debugging.curation import CuratedDebugging
        from stratagem.sdk.generated.debugging import DebuggingMethods

        return DebuggingMethods(self._service("debugging", CuratedDebugging))

    @cached_property
    def review(self) -> ReviewMethods:
        """Captured memory, and what is decided about it."""
        from stratagem.capture.review import Review
        from stratagem.sdk.generated.review import ReviewMethods

        return ReviewMethods(self._service("review", Review))

    @cached_property
    def knowledge(self) -> KnowledgeMethods:
        """Concepts, relationships and paths."""
        from stratagem.knowledge.service import Knowledge
        from stratagem.sdk.generated.knowledge import KnowledgeMethods

        return KnowledgeMethods(self._service("knowledge", Knowledge))

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON.

        Where it takes a moment or a duration, that may be a `datetime`, `date` or `timedelta`.
        """
        return self._call(name, arguments)

    def _call_typed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with whole():
                return self._call(name, arguments)
        except StratagemError as error:
            error.reword_hint(as_method)
            raise

    def transaction(
        self,
        *,
        read_only: bool = False,
        time_limit: timedelta | float = limits.TRANSACTION_SECONDS_DEFAULT,
    ) -> TransactionBlock:
        """Return a block whose operations are stored all together, or none of them.

        It sees the current branch as it was when the block began, and its own writes; nobody else
        sees these before it ends. An error that leaves the block rolls it back.

        Args:
            read_only: Refuse writes: all reads of the block see the same moment.
            time_limit: After how long it is rolled back by itself; a number is in seconds.

        Raises:
            TransactionConflict: At the end of the block: a record that it changed was changed by
                somebody else meanwhile. Nothing was stored.
            TransactionEnded: It took longer than its time limit. Nothing was stored.
        """
        return TransactionBlock(self._scope, {"read_only": read_only, "time_limit": time_limit})

    @cached_property
    def gateway(self) -> EmbeddedGateway:
        """Tools: registering and calling them."""
        from stratagem.sdk.functions import EmbeddedGateway

        return EmbeddedGateway(self.call, lambda: self._runtime.gateway)

    def close(self) -> None:
        """Close the database."""
        self._closed = True
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@suggest_keywords
def open_database(
    path: str | PathLike[str],
    *,
    durability: Durability = "full",
    embedder: str | None = None,
    namespace: str = "default",
    branch: str = "default",
    read_only: bool = False,
    redaction: Redaction = "basic",
    relevance_min: float = TRY_MIN,
    actor: str = "sdk",
    workspace: str = "default",
    create: bool = True,
    allow_hosts: Sequence[str] = (),
    bundles: str | PathLike[str] | None = None,
) -> Stratagem:
    """Open a database file, creating it if there is none; ":memory:" is gone when closed.

    With `create=False` a missing file raises `DatabaseNotFound`, and nothing is created.

    A path "postgresql://…" is the address of a server, and `workspace` the log in it.

    `durability`: "full" survives a power failure, "fast" a killed process. `embedder`:
    "static" (the default), "minilm" or "none". Writes are refused when `read_only`.
    `redaction`: how strictly the debugging memory masks secrets. `relevance_min`: how likely a
    known problem must be the one at hand for its fix to be recommended. `allow_hosts`: hosts that
    tools may call though they are not public, such as "localhost:8888". `bundles`: the folder of
    `db.bundle`.
    """
    if not create:
        require_there(path, workspace)
    settings = Settings(
        check_path(path),
        durability=durability,
        embedder=embedder,
        read_only=read_only,
        redaction=redaction,
        relevance_min=relevance_min,
        workspace=workspace,
        allow_hosts=tuple(allow_hosts),
        bundles=None if bundles is None else str(bundles),
    )
    return Stratagem(*open_runtime(settings, own_caller(actor, namespace, branch)))


def require_there(path: str | PathLike[str], workspace: str) -> None:
    """Refuse to open a database that is not there.

    Raises:
        DatabaseNotFound: There is none.
    """
    place = check_path(path)
    named = is_address(place) and "#" not in place
    require_database(
        f"{place}#{workspace}" if named else place,
        other="Give another path." if not is_address(place) else "Give another workspace.",
        creation="Without create=False it is created.",
    )


def check_path(path: str | PathLike[str]) -> str:
    """Return the path of a database as text."""
    if not isinstance(path, str | PathLike):
        # `open(os.environ.get("DB"))` must not write into a file named None.
        raise ValidationFailed(
            f"`path` is text or a path; it was {path!r}.",
            field="path",
            hint='Give the file\'s path, or ":memory:".',
        )
    return str(path)


def own_caller(actor: str, namespace: str, branch: str) -> Caller:
    """Return the caller of a program that opens its own database."""
    return Caller(actor=actor, namespace=namespace, branch=branch, authority="operator")


def open_runtime(settings: Settings, caller: Caller) -> tuple[Runtime, Caller]:
    """Open a database for a caller whose branch has to be there."""
    runtime = start(settings)
    try:
        runtime.foundation.views.confirm(caller.branch)
        caller.switch_to(runtime.foundation.views.bind(caller.branch))
        runtime.transactions.end_overdue()
    except BaseException:
        runtime.close()
        raise
    return runtime, caller
