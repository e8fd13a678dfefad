"""The embedded SDK: a database opened in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, Self, TypeVar

from stratagem.bootstrap import Runtime, Settings, start
from stratagem.errors import ValidationFailed
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.parameters import check
from stratagem.schemas import method_schema
from stratagem.sdk.generated.memory import MemoryMethods

if TYPE_CHECKING:
    from stratagem.sdk.functions import EmbeddedGateway
    from stratagem.sdk.generated.debugging import DebuggingMethods
    from stratagem.sdk.generated.knowledge import KnowledgeMethods

__all__ = ["Stratagem", "open_database"]

ServiceT = TypeVar("ServiceT")
ResultT = TypeVar("ResultT")


class _CheckedService(Generic[ServiceT]):
    """A service of this process, whose methods are handed checked arguments."""

    def __init__(self, system: str, service: ServiceT) -> None:
        self._system = system
        self._service = service

    def __call__(
        self,
        method: Callable[Concatenate[ServiceT, ...], ResultT],
        arguments: Mapping[str, Any],
        /,
    ) -> ResultT:
        name = method.__name__
        return method(self._service, **check(method_schema(self._system, name), arguments, name))


class Stratagem:
    """An open database. Safe to use from several threads; close it, or use `with`."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime = runtime
        self._caller = caller
        self.memory = MemoryMethods(_CheckedService("memory", Memory(runtime.foundation, caller)))

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run any operation by its tool name on plain JSON, and return its JSON."""
        return self._runtime.call(name, {} if arguments is None else arguments, self._caller)

    # Systems other than the memory are imported when they are first used.
    @cached_property
    def debugging(self) -> DebuggingMethods:
        """Incidents, solutions and outcomes."""
        from stratagem.debugging.service import Debugging
        from stratagem.sdk.generated.debugging import DebuggingMethods

        service = Debugging(self._runtime.foundation, self._caller)
        return DebuggingMethods(_CheckedService("debugging", service))

    @cached_property
    def knowledge(self) -> KnowledgeMethods:
        """Concepts, relationships and paths."""
        from stratagem.knowledge.service import Knowledge
        from stratagem.sdk.generated.knowledge import KnowledgeMethods

        service = Knowledge(self._runtime.foundation, self._caller)
        return KnowledgeMethods(_CheckedService("knowledge", service))

    @cached_property
    def gateway(self) -> EmbeddedGateway:
        """Tools: registering and calling them."""
        from stratagem.sdk.functions import EmbeddedGateway

        return EmbeddedGateway(self.call, lambda: self._runtime.gateway)

    @property
    def branch(self) -> str:
        """The current branch."""
        return self._caller.branch

    @property
    def namespace(self) -> str:
        """The namespace of whatever names none."""
        return self._caller.namespace

    @property
    def runtime(self) -> Runtime:
        """The parts below, for surfaces and maintenance."""
        return self._runtime

    def close(self) -> None:
        """Let go of the database."""
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


def open_database(
    path: str | PathLike[str],
    *,
    durability: Literal["full", "fast"] = "full",
    embedder: str | None = None,
    namespace: str = "default",
    branch: str = "default",
    read_only: bool = False,
    redaction: Literal["none", "basic", "strict"] = "basic",
    actor: str = "sdk",
    workspace: str = "default",
) -> Stratagem:
    """Open a database file, creating it if there is none; ":memory:" is gone when closed.

    A path "postgresql://…" is the address of a server, and `workspace` the log in it.

    `durability`: "full" survives a power failure, "fast" a killed process. `embedder`:
    "static" (the default), "minilm" or "none". Writes are refused when `read_only`.
    `redaction`: how much debugging masks of what may be secret.
    """
    if not isinstance(path, str | PathLike):
        # `open(os.environ.get("DB"))` must not write into a file named None.
        raise ValidationFailed(
            f"`path` is text or a path; it was {path!r}.",
            field="path",
            hint='Give the file\'s path, or ":memory:".',
        )
    settings = Settings(
        str(path),
        durability=durability,
        embedder=embedder,
        read_only=read_only,
        redaction=redaction,
        workspace=workspace,
    )
    runtime = start(settings)
    caller = Caller(actor=actor, namespace=namespace, branch=branch, authority="operator")
    try:
        runtime.foundation.views.confirm(branch)
    except BaseException:
        runtime.close()
        raise
    return Stratagem(runtime, caller)
