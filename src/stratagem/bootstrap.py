"""The only place that chooses concrete parts from settings."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import field, replace
from datetime import tzinfo
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from stratagem import operations
from stratagem.call_correction import CallCorrector
from stratagem.capture.spool_files import Spool
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import asyncio, defer
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft, Head
from stratagem.engine.likeness import nearest
from stratagem.engine.lineage import View
from stratagem.engine.records import Kinds, RecordKind
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import (
    BranchExists,
    DatabaseCorrupt,
    DatabaseNotFound,
    InvalidInput,
    NotInTransaction,
    ServiceUnavailable,
    StorageBusy,
    StorageUnavailable,
    StratagemError,
    ValidationFailed,
)
from stratagem.git_branches import memory_branch_of
from stratagem.joint_memory import (
    is_personal,
    may_miss,
    name_own_answer,
    name_personal_keys,
    names_personal,
    namespace_of,
    own_arguments,
    own_namespace,
    read_both,
    reads_both,
    takes_namespace,
)
from stratagem.knowledge.spaces import CERTAINTY, CONCEPT, RELATIONSHIP, TYPES
from stratagem.memory.kinds import ENTRY, EVENT
from stratagem.memory.kinds import KINDS as MEMORY_KINDS
from stratagem.memory.spans import memory_span
from stratagem.operation import CORRECTION, Caller, Operation
from stratagem.operations import CorrectCall, Prepared
from stratagem.places import (
    check_place,
    check_there,
    database_path,
    display_place,
    is_address,
    local_zone,
    personal_path,
    removed_working_folder,
)
from stratagem.projections.assembly import Subscribed, assemble
from stratagem.projections.service import Projections
from stratagem.projections.settings import ExternalSettings
from stratagem.search import embedding
from stratagem.search.collections import CollectionIndex
from stratagem.search.foundation import Foundation
from stratagem.search.index import Index
from stratagem.search.record_finders import FinderQuery, FoundByName, RecordFinder
from stratagem.search.transactions import Transactions
from stratagem.storage.clock_watch import clock_gap
from stratagem.storage.contract import Finding, Progress, Store
from stratagem.storage.copy_mark import CopyMark, read_mark, remove_mark, set_mark
from stratagem.storage.relational.store import Adapters
from stratagem.storage.sqlite.store import MEMORY, SqliteStore
from stratagem.storage.views import Views, find_branch
from stratagem.version import VERSION

if TYPE_CHECKING:
    from stratagem.access import service as access_service
    from stratagem.gateway.parts import GatewayParts
    from stratagem.gateway.settings import SignInPlace
    from stratagem.storage.log_copy import Copied
    from stratagem.storage.postgres.store import PostgresStore
    from stratagem.storage.rescue import Loss, Salvage
else:
    access_service = defer("stratagem.access.service")

__all__ = [
    "KINDS",
    "Rescued",
    "Runtime",
    "Settings",
    "built_in",
    "clock_warning",
    "copy",
    "database_path",
    "discard_copy",
    "examine_unopened",
    "finish_copy",
    "has_workspace",
    "hidden_warning",
    "index_warning",
    "mark_copy",
    "now",
    "open_store",
    "require_database",
    "rescue",
    "scratch_folder",
    "start",
    "workspaces",
]

logger = logging.getLogger(__name__)

# How long to wait before a failed write of the spool is retried.
_SPOOL_PAUSE_SECONDS: Final = 30.0
# A warning names no more namespaces than this.
_NAMED_MAX: Final = 5
# The default workspace.
DEFAULT = "default"


def _load_kinds(system: str) -> Sequence[RecordKind]:
    kinds: Sequence[RecordKind] = import_module(f"stratagem.{system}.kinds").KINDS
    return kinds


# Every kind of record that a database may hold; those of other systems than memory are imported
# when a record of theirs is met.
KINDS = Kinds(
    MEMORY_KINDS,
    *(
        partial(_load_kinds, system)
        for system in ("debugging", "knowledge", "gateway", "access", "developer", "capture")
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to open a database. `embedder` None follows the database, then the default.

    `external` says which services outside of the database are used; None asks `environment`,
    where the gateway takes secrets from too.
    `relevance_min`: how likely a known problem must be the one at hand for a fix to be recommended.
    `deliver`: whether this process tells them, in the background, what they have to know.
    `path` is a file, or the address of a PostgreSQL server, where each `workspace` is a log of
    its own; the address may name it after a "#". `copying`: also one that a copy is unfinished in.
    `allow_hosts` are private hosts that tools may call, `allow_callables` the Python functions that
    stored tools may name ("package.tools:*"); None is any, for a program that opens its own.
    `sign_in_address`: where browsers come back to whose users sign in to upstream servers, and the
    workspace that is to know of it.
    `personal`: the person's own database, which is read beside a project's. `git_folder`: where
    callers work, if the memory is to follow the git branch that is checked out there.
    `bundles` is the folder that branches are exported to and imported from by their names.
    """

    path: str
    durability: Literal["full", "fast"] = "full"
    embedder: str | None = None
    read_only: bool = False
    redaction: Literal["none", "basic", "strict"] = "basic"
    relevance_min: float = TRY_MIN
    adapters: Adapters = field(default_factory=lambda: Adapters(now, os.urandom))
    zone: tzinfo | None = None
    external: ExternalSettings | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    deliver: bool = True
    workspace: str = DEFAULT
    allow_hosts: tuple[str, ...] = ()
    copying: bool = False
    allow_callables: tuple[str, ...] | None = None
    sign_in_address: Callable[[], tuple[str, str] | None] = lambda: None
    personal: str | None = None
    git_folder: str | None = None
    bundles: str | None = None


class Runtime:
    """An open database and all systems on it."""

    def __init__(
        self, foundation: Foundation, settings: Settings, projections: Projections
    ) -> None:
        self.foundation = foundation
        self.projections = projections
        self.transactions = Transactions(foundation, settings.adapters.entropy)
        self._settings = settings
        self._assembling = threading.Lock()
        self._gateway: GatewayParts | None = None
        self._correct = CallCorrector(foundation)
        self.hooks_place: Final = _hooks_place(settings, foundation.store.location)
        self._spool = _SpoolWatch(foundation, self.hooks_place)
        self._git_branch = DEFAULT
        self._personal = _PersonalMemory(settings) if settings.personal else None

    @property
    def gateway(self) -> GatewayParts:
        """The gateway, put together when it is first needed."""
        if self._gateway is None:
            with self._assembling:
                if self._gateway is None:
                    from stratagem.advice import DebuggingAdvisor
                    from stratagem.gateway.assembly import assemble
                    from stratagem.gateway.settings import GatewaySettings

                    self._gateway = assemble(
                        self.foundation,
                        operations.TABLE,
                        self.call_async,
                        check_operation=self._check_nested,
                        schema_of=operations.full_schema,
                        settings=GatewaySettings(
                            allow_hosts=self._settings.allow_hosts,
                            allow_callables=self._settings.allow_callables,
                            environment=self._settings.environment,
                            sign_in_place=self._sign_in_place,
                        ),
                        advisor=DebuggingAdvisor(self.foundation),
                        random=self._settings.adapters.entropy,
                    )
        return self._gateway

    def _sign_in_place(self) -> SignInPlace | None:
        from stratagem.gateway.settings import SignInPlace

        address = self._settings.sign_in_address()
        return None if address is None else SignInPlace(*address)

    def call(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation by name on plain JSON."""
        with _hints_for(name, arguments):
            return self._call_either(name, arguments, caller)

    def _call_either(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        self.take_spooled()
        if self._personal is None:
            return self._call(name, arguments, caller)
        # Whose memory a call is about is known once it is read as it was meant.
        call = self._read_as_meant(operations.find(name), arguments, caller)
        if is_personal(name, call.arguments, caller.namespace):
            home = own_namespace(namespace_of(name, call.arguments, caller.namespace))
            own = own_arguments(name, call.arguments, caller.namespace)
            answer = name_own_answer(name, self._personal.call(name, own, caller, home))
        else:
            answer = self._call_beside(self._personal, name, call, caller)
        return _with_correction(answer, call)

    def _read_as_meant(self, operation: Operation, arguments: Any, caller: Caller) -> Prepared:
        """Return a call with its arguments as they were meant, where these may name a namespace.

        Raises:
            NotInTransaction: It is about another memory than the transaction that it is part of.
        """
        if not _takes_namespace(operation):
            return Prepared(arguments, arguments)
        part_of = {}
        if _names_transaction(operation, arguments):
            part_of = {"transaction": arguments["transaction"]}
            arguments = {each: arguments[each] for each in arguments if each != "transaction"}
        call = operations.read_call(operation, arguments, caller, self._correct)
        if caller.transaction is not None or _transaction_of(operation, part_of, caller):
            begun = caller.transaction is None and names_personal(caller.namespace)
            if is_personal(operation.name, call.arguments, caller.namespace) != begun:
                raise NotInTransaction(
                    "The transaction is one of the project's database, and the call is about your "
                    "own memory, or the other way round.",
                    field="namespace",
                    hint="Make this call by itself, without the transaction.",
                )
        return call._replace(arguments={**call.arguments, **part_of})

    def _call_beside(
        self, personal: _PersonalMemory, name: str, call: Prepared, caller: Caller
    ) -> dict[str, Any]:
        """Run an operation of the project, beside which the person's own memory is read."""
        if caller.transaction is None and reads_both(name, call.arguments):
            return read_both(
                name,
                call.given,
                lambda given: self._call(name, given, caller),
                lambda given: personal.read(name, given, caller),
            )
        answer = self._call(name, call.arguments, caller)
        if caller.transaction is not None or not may_miss(name):
            return answer
        return name_personal_keys(
            answer,
            namespace_of(name, call.arguments, caller.namespace),
            lambda given: personal.read("strata_recall", given, caller),
        )

    def _call(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        operation, call, caller = self._prepare(name, arguments, caller)
        if _is_act(operation, call.arguments, caller):
            access_service.record_act(self.foundation, caller, name)
        with memory_span(name, call.arguments, caller) as note:
            answer = operation.run(getattr(self, operation.part), call.given, caller)
            note(answer)
        return _with_correction(_hide_transaction(answer, caller), call)

    async def call_async(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation without holding up the event loop."""
        with _hints_for(name, arguments):
            return await self._call_async(name, arguments, caller)

    async def _call_async(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        if self._spool.waits:
            await asyncio.to_thread(self._spool.take)
        if self._personal is not None and (
            names_personal(caller.namespace) or _takes_namespace(operations.find(name))
        ):
            return await asyncio.to_thread(self.call, name, arguments, caller)
        operation, call, caller = await self._prepare_async(name, arguments, caller)
        if _is_act(operation, call.arguments, caller):
            await asyncio.to_thread(access_service.record_act, self.foundation, caller, name)
        if operation.run_async is not None:
            if self._gateway is None:
                # Putting it together reads the whole table.
                await asyncio.to_thread(lambda: self.gateway)
            # A server's own loop is the best home: nothing has to cross to another.
            self.gateway.home.adopt()
            return await operation.run_async(self.gateway, call.given, caller)
        part = getattr(self, operation.part)
        with memory_span(name, call.arguments, caller) as note:
            answer = await asyncio.to_thread(operation.run, part, call.given, caller)
            note(answer)
        return _with_correction(_hide_transaction(answer, caller), call)

    def take_spooled(self) -> None:
        """Write what hooks left to be written, if that can be done now."""
        self._spool.take()

    def look_at_clock(self) -> None:
        """Warn in the log where the clock has jumped."""
        self.foundation.store.look_at_clock()

    def clock_warning(self) -> str | None:
        """Say how far the log is ahead of the clock, and what to do; None where it is not."""
        return clock_warning(self.foundation.store)

    async def _prepare_async(
        self, name: str, arguments: Any, caller: Caller
    ) -> tuple[Operation, Prepared, Caller]:
        """Prepare a call; what is wrong with it is looked for in another thread."""
        try:
            # Looking a transaction up reads the store.
            if _transaction_of(operations.find(name), arguments, caller) is None:
                return self._prepare(name, arguments, caller, _put_off)
        except _PutOff:
            pass
        return await asyncio.to_thread(self._prepare, name, arguments, caller)

    def _prepare(
        self, name: str, arguments: Any, caller: Caller, correct: CorrectCall | None = None
    ) -> tuple[Operation, Prepared, Caller]:
        operation = operations.find(name)
        caller, arguments = self._enter_transaction(operation, arguments, caller)
        if not operation.in_transaction:
            caller.refuse_in_transaction(name)
        self._follow_git(operation, arguments, caller)
        self._bind_branch(caller)
        if isinstance(arguments, Mapping):
            arguments = self.transactions.arguments_for(caller, arguments)
        database = _database_of(self.foundation.store.location) if caller.local else None
        call = operations.prepare(
            operation, arguments, caller, database=database, correct=correct or self._correct
        )
        if call.correction:
            # A branch may have come to light that the transaction of the caller does not allow.
            given = self.transactions.arguments_for(caller, call.arguments)
            again = operations.prepare(operation, given, caller, database=database)
            call = again._replace(correction=call.correction)
        return operation, call, caller

    def _enter_transaction(
        self, operation: Operation, arguments: Any, caller: Caller
    ) -> tuple[Caller, Any]:
        """Return the caller within the transaction that a call names, and its other arguments."""
        wanted = _transaction_of(operation, arguments, caller)
        if wanted is None or caller.transaction is not None:
            return caller, arguments
        if _names_transaction(operation, arguments):
            arguments = {each: arguments[each] for each in arguments if each != "transaction"}
        return self.transactions.resume(caller, wanted), arguments

    def _follow_git(self, operation: Operation, arguments: Any, caller: Caller) -> None:
        """Put a caller on the memory branch of the git branch; forked by the first write on it."""
        folder = self._settings.git_folder
        by_hand = caller.branch not in {DEFAULT, self._git_branch}
        if folder is None or caller.transaction is not None or by_hand:
            return
        given = arguments if isinstance(arguments, Mapping) else {}
        wanted = memory_branch_of(folder)
        if self.foundation.store.reader().branches.by_name(wanted) is None:
            if operation.right_for(given) == "read" or given.get("branch") is not None:
                wanted = DEFAULT
            else:
                from stratagem.memory.service import Memory

                with suppress(BranchExists):
                    Memory(self.foundation, Caller("git")).fork(wanted, branch=DEFAULT)
        self._git_branch = wanted
        if caller.branch != wanted:
            caller.switch_to(wanted)

    def _bind_branch(self, caller: Caller) -> None:
        """Bind a client to the branch that it begins on: the name may come to mean another."""
        if caller.can_switch and caller.transaction is None:
            bound = self.foundation.views.bind(caller.branch)
            if bound is not caller.branch:
                caller.switch_to(bound)

    def _check_nested(self, name: str, arguments: Any, caller: Caller) -> None:
        """Refuse what a tool may not run on a caller's behalf; without arguments, ever."""
        operations.check_reach(name, caller)
        if arguments is not None:
            self._prepare(name, arguments, caller)

    async def leave_loop(self) -> None:
        """End the connections that live on this event loop, before it ends."""
        if self._gateway is not None:
            await self._gateway.runners.close()

    def close(self) -> None:
        """Close the database."""
        if self._gateway is not None:
            self._gateway.close()
        if self._personal is not None:
            self._personal.close()
        self.projections.close()
        self.foundation.index.close()
        self.foundation.store.close()


@contextmanager
def _hints_for(name: str, arguments: Any) -> Iterator[None]:
    """Say of an operation that only reads nothing about writing."""
    try:
        yield
    except ValidationFailed as error:
        given = arguments if isinstance(arguments, Mapping) else {}
        if operations.find(name).reads(given):
            error.leave_out_writing()
        raise


class _PersonalMemory:
    """The person's own memory beside that of a project, opened when it is first asked."""

    def __init__(self, settings: Settings) -> None:
        assert settings.personal is not None
        self._path = settings.personal
        self._settings = settings
        self._opening = threading.Lock()
        self._runtime: Runtime | None = None

    def call(self, name: str, arguments: Any, caller: Caller, namespace: str) -> dict[str, Any]:
        """Run an operation on it alone; one that writes makes it where there is none.

        `namespace` is that of a call that names none.
        """
        operation = operations.find(name)
        given = arguments if isinstance(arguments, Mapping) else {}
        if operation.right_for(given) == "read":
            check_there(self._path)
        return self._open().call(name, arguments, _at_home(caller, namespace))

    def read(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Read beside the project; a memory that cannot be read now has nothing."""
        nothing: dict[str, Any] = {"results": [], "truncated": False, "found": False}
        if not Path(self._path).is_file():
            return nothing
        try:
            return self._open().call(name, arguments, _at_home(caller))
        except StratagemError as error:
            logger.warning("Your personal memory was not read: %s", error.message)
            return nothing

    def close(self) -> None:
        """Let go of it."""
        with self._opening:
            if self._runtime is not None:
                self._runtime.close()

    def _open(self) -> Runtime:
        with self._opening:
            if self._runtime is None:
                own = replace(
                    self._settings,
                    path=self._path,
                    personal=None,
                    git_folder=None,
                    external=built_in(),
                    deliver=False,
                )
                self._runtime = start(own)
            return self._runtime


def _at_home(caller: Caller, namespace: str = "default") -> Caller:
    """Return a caller as its own memory knows it."""
    return replace(caller, namespace=namespace, branch="default", can_switch=False, origin=None)


def _refuse_personal(drafts: Sequence[Draft]) -> None:
    """Keep what is the person's own out of a project's database, by whatever way it comes.

    What earlier versions wrote there under such a name can be forgotten, merged and restored.

    Raises:
        ValidationFailed: One of them is in a namespace of the person's own memory.
    """
    for draft in drafts:
        known = draft.origin is not None or draft.repeats is not None
        if draft.space is None or known or not draft.content:
            continue
        if names_personal(draft.space.namespace):
            raise ValidationFailed(
                f"In a project `{draft.space.namespace}` is a namespace of your own memory, so "
                "nothing is stored under that name in the project's database.",
                field="namespace",
                invalid_value=draft.space.namespace,
                hint="Choose another namespace, or write to your own memory: by this name on the "
                "command line in the project, without --db; or by its own file, where it is the "
                f"namespace `{own_namespace(draft.space.namespace)}`.",
            )


def _hooks_place(settings: Settings, location: str) -> str:
    """Return the database as hooks name it; empty for one in memory, which has none.

    The store's own name of a server is for display.
    """
    if not is_address(location):
        return "" if location == MEMORY else location
    address, _, workspace = settings.path.partition("#")
    named = settings.workspace if settings.workspace != DEFAULT else workspace or DEFAULT
    return f"{address}#{named}"


class _SpoolWatch:
    """Writes the hooks' spool before anybody reads."""

    def __init__(self, foundation: Foundation, place: str) -> None:
        self._foundation = foundation
        self._place = place
        writes = bool(place) and not foundation.store.read_only
        self._spool = Spool(place) if writes else None
        self._not_before = 0.0

    @property
    def waits(self) -> bool:
        """Whether anything is to be written now."""
        return (
            self._spool is not None
            and not self._spool.is_empty()
            and time.monotonic() >= self._not_before
        )

    def take(self) -> None:
        """Write what waits; a call is not refused because that cannot be written now."""
        if not self.waits:
            return
        from stratagem.capture.intake import take_spooled

        try:
            take_spooled(self._foundation, self._place)
        except (StratagemError, OSError) as error:
            self._not_before = time.monotonic() + _SPOOL_PAUSE_SECONDS
            logger.warning("Memories that hooks captured have not been written yet: %s", error)


class _PutOff(Exception):
    """A call has to be corrected, which may take longer than an event loop can wait."""


def _put_off(*_call: Any) -> None:
    raise _PutOff


def _takes_namespace(operation: Operation) -> bool:
    """Whether a call can say which namespace it is about."""
    return takes_namespace(operation.name, operation.parameters["properties"])


def _transaction_of(operation: Operation, arguments: Any, caller: Caller) -> str | None:
    """Return the id of the transaction that a call is part of, as the call or its client says."""
    if operation.part == "transactions":
        return None
    named = arguments.get("transaction") if _names_transaction(operation, arguments) else None
    return named if isinstance(named, str) else caller.transaction_id


def _names_transaction(operation: Operation, arguments: Any) -> bool:
    """Whether `transaction` is among the arguments, and means the one that a call is part of.

    Every operation takes it, of whichever system, unless a parameter of its own is called that.
    """
    if not isinstance(arguments, Mapping) or "transaction" not in arguments:
        return False
    own = "transaction" in operation.parameters["properties"]
    return "transaction" in operation.answer_options or not own


def _hide_transaction(answer: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Name the branch that a transaction works on, where an answer names its hidden one."""
    if caller.transaction is None:
        return answer
    shown = {
        each: caller.shown_branch
        for each in ("branch", "current")
        if answer.get(each) == caller.branch
    }
    return {**answer, **shown}


def _with_correction(answer: dict[str, Any], call: Prepared) -> dict[str, Any]:
    """Say in an answer what was corrected about its call."""
    return {**answer, CORRECTION: call.correction} if call.correction else answer


def _is_act(operation: Operation, arguments: Any, caller: Caller) -> bool:
    """Whether a holder of a token uses an administrator's right."""
    return caller.scopes is not None and operation.right_for(arguments) == "admin"


def _database_of(location: str) -> str | None:
    """Return the database to name in a command; an address may hold a password."""
    return None if location == MEMORY or is_address(location) else location


def clock_warning(store: Store) -> str | None:
    """Say how far a log is ahead of the clock, and what to do; None where it is not."""
    gap = clock_gap(store.reader().log, store.now())
    return gap.warning if gap else None


def hidden_warning(store: Store) -> str | None:
    """Name the namespaces of a project's database that its folder takes for the person's own."""
    if personal_path(store.location) is None:
        return None
    with store.snapshot() as reader:
        branch = find_branch(reader.branches, DEFAULT)
        view = View(branch, reader.branches.lineage(branch), store.now())
        spaces = reader.records.spaces()
        counts = reader.listing.space_counts(view, (ENTRY, EVENT))
        found = {spaces[each.space].namespace for each in counts}
    hidden = sorted(filter(names_personal, found))
    if not hidden:
        return None
    import shlex

    return (
        f"In the project's folder {', '.join(map(repr, hidden[:_NAMED_MAX]))} would be your own "
        "memory, so what an earlier version stored here under such names is only read, and "
        f"forgotten, with --db {shlex.quote(store.location)}."
    )


def index_warning(store: Store) -> str | None:
    """Name the indexes that could not be compared with their tables, and what mends them."""
    if not store.remote:
        return None
    from stratagem.storage.postgres.index_checks import list_unchecked_indexes
    from stratagem.storage.postgres.store import PostgresStore

    names = list_unchecked_indexes(store) if isinstance(store, PostgresStore) else []
    if not names:
        return None
    return (
        "These indexes were not compared with their tables, because the server "
        f"does not read through them: {', '.join(names)}. doctor --repair rebuilds them."
    )


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """Open only the store of a database, because a damaged one may not support the rest."""
    _check(settings)
    path = settings.path
    if path != MEMORY and not is_address(path):
        path = _absolute(path)
    store = _store(settings, path, _index(settings, path, settings.embedder))
    with closing(store):
        yield store


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(Path(path).expanduser())  # noqa: PTH100 -- links stay as they are
    except FileNotFoundError as error:
        raise removed_working_folder() or error from None


def start(settings: Settings) -> Runtime:
    """Open a database, creating it where there is none."""
    _check(settings)
    path = settings.path
    if path != MEMORY and not is_address(path):
        path = _absolute(path)
        _make_folder(Path(path).parent, read_only=settings.read_only)
        _make_private(Path(path), read_only=settings.read_only)
    external = settings.external or ExternalSettings.from_environment(settings.environment)
    embedder = settings.embedder or external.embedder
    if external.unknown_embedder and settings.embedder is None:
        logger.warning(
            "EMBEDDING_MODEL=%s is not an embedder of Stratagem and is ignored; choose "
            "all-MiniLM-L6-v2, static or none.",
            external.unknown_embedder[:100],
        )
    index = _index(settings, path, embedder)
    store = _store(settings, path, index)
    try:
        index.attach(store, follow=embedder is None)
        projections, services = assemble(
            external,
            store,
            index,
            Subscribed(CONCEPT, RELATIONSHIP, CERTAINTY, TYPES),
            beside=_beside(path, "chroma"),
        )
        _register(projections)
    except BaseException:
        store.close()
        raise
    views = Views(store, lambda: settings.zone or local_zone())
    foundation = Foundation(
        store,
        views,
        index,
        settings.durability,
        VERSION,
        settings.redaction,
        services,
        relevance_min=settings.relevance_min,
        finders=_FINDERS,
        bundles=None if settings.bundles is None else Path(settings.bundles).expanduser(),
        collections=CollectionIndex(_vector_path(settings, path, "-collection-")),
        check=_refuse_personal if settings.personal or personal_path(path) else None,
    )
    if settings.deliver:
        projections.start()
    runtime = Runtime(foundation, settings, projections)
    runtime.take_spooled()
    return runtime


def _find_concepts(foundation: Foundation, caller: Caller, query: FinderQuery) -> list[FoundByName]:
    from stratagem.knowledge.query_finder import find_concepts

    return find_concepts(foundation, caller, query)


def _find_incidents(
    foundation: Foundation, caller: Caller, query: FinderQuery
) -> list[FoundByName]:
    from stratagem.debugging.query_finder import find_by_query

    return find_by_query(foundation, caller, query)


# Read when they are first asked for: a command about an entry needs neither system.
_FINDERS: Final = {
    "concept": RecordFinder("knowledge", _find_concepts),
    "incident": RecordFinder("debugging", _find_incidents),
}


def _register(projections: Projections) -> None:
    try:
        projections.register()
    except DatabaseCorrupt as error:
        # What is told to services elsewhere must not keep anyone from reading or mending the rest.
        logger.warning("No external service receives changes: %s", error.message)


def built_in() -> ExternalSettings:
    """Return the environment's settings without services outside of the database."""
    asked = ExternalSettings.from_environment(os.environ)
    return ExternalSettings(embedder=asked.embedder)


def workspaces(database: str) -> list[str]:
    """Return the workspaces that a database holds; an address that names one is that one alone."""
    if not is_address(database):
        from stratagem.access.workspaces import files_of

        return files_of(database)
    address, _, workspace = database.partition("#")
    if workspace:
        return [workspace]
    _postgres()
    from stratagem.storage.postgres.workspaces import workspaces as held

    return held(address)


def require_database(
    place: str,
    *,
    other: str = "Name another with --db.",
    creation: str = "The first write creates one.",
) -> None:
    """Refuse to read a file or a workspace that is not there; what is named alike is suggested.

    `other` and `creation` say how the caller names another one, and creates one.

    Raises:
        DatabaseNotFound: There is none.
        StratagemError: The server does not answer.
    """
    if not is_address(place):
        check_there(place, other=other, creation=creation)
        return
    address, _, workspace = place.partition("#")
    name, there = workspace or DEFAULT, workspaces(address)
    if name in there:
        return
    near = nearest(name, there, len(there))
    named = f"Did you mean {' or '.join(map(repr, near))}?" if near else other
    raise DatabaseNotFound(
        f"{display_place(address)} has no workspace {name!r}.",
        path=display_place(place),
        similar=near,
        hint=f"{named} {creation}",
    )


def has_workspace(address: str) -> bool:
    """Whether a server has the workspace that an address names; asking makes none.

    Raises:
        StratagemError: The server does not answer.
    """
    place, _, workspace = address.partition("#")
    return (workspace or DEFAULT) in workspaces(place)


def copy(source: str, target: str, progress: Progress, mark: CopyMark) -> Copied:
    """Copy a database into another that is empty, or go on with a copy that was begun.

    The target stays marked as unfinished until `finish_copy`.
    """
    from stratagem.storage import log_copy

    mark = replace(mark, made=not _is_there(target))
    with (
        closing(start(_plain(source, read_only=True))) as here,
        closing(start(_plain(target, copying=True))) as there,
    ):
        return log_copy.copy(here.foundation.store, there.foundation.store, progress, mark)


def mark_copy(target: str, mark: CopyMark) -> bool:
    """Mark a database as the target of a copy if it is empty; say whether it is.

    One that holds something is left as it is.
    """
    from stratagem.storage.log_copy import is_empty

    mark = replace(mark, made=not _is_there(target))
    with closing(start(_plain(target, copying=True))) as there:
        empty = is_empty(there.foundation.store)
        if empty:
            set_mark(there.foundation.store, mark)
        return empty


def finish_copy(target: str) -> None:
    """Say that a copy is whole."""
    with closing(start(_plain(target, copying=True))) as there:
        remove_mark(there.foundation.store)


def discard_copy(target: str) -> bool:
    """Throw away what an unfinished copy wrote into a database; False where there is none.

    Raises:
        StorageBusy: The copy is still being made.
        InvalidInput: The database held something before, which cannot be told apart from it.
    """
    if not _is_there(target):
        return False
    with closing(start(_plain(target, copying=True))) as there:
        store = there.foundation.store
        mark = read_mark(store.reader().settings)
        if mark is None:
            return False
        if mark.process_lives:
            raise StorageBusy(
                f"Process {mark.process} is still copying into it.", path=store.location
            )
        if mark.events > 1:
            raise InvalidInput(
                f"The database held {mark.events:,} events of the same log before.",
                hint=f"Repeat `stratagem {mark.command}` to continue the copy.",
                path=store.location,
            )
        store.discard()
    if not mark.made:
        start(_plain(target)).close()
    return True


def _plain(path: str, *, read_only: bool = False, copying: bool = False) -> Settings:
    """Return how a database is opened to be copied: with nothing that stands on it."""
    return Settings(
        path,
        embedder="none",
        read_only=read_only,
        deliver=False,
        external=ExternalSettings(),
        copying=copying,
    )


def _is_there(database: str) -> bool:
    """Whether there is a database at a place."""
    if not is_address(database):
        return Path(database).is_file()
    address, _, workspace = database.partition("#")
    return (workspace or DEFAULT) in workspaces(address)


def examine_unopened(path: str, progress: Progress) -> list[Finding]:
    """Say what is lost of a file that SQLite cannot open, page by page."""
    from stratagem.storage.sqlite import examination

    return examination.examine_unopened(path, progress)


def scratch_folder(prefix: str) -> AbstractContextManager[Path]:
    """Give an empty folder until the block ends."""
    from stratagem.storage import scratch

    return scratch.scratch_folder(prefix)


class Rescued(NamedTuple):
    """A new database of what could be read of a damaged one, and what could not."""

    head: Head
    losses: list[Loss]
    unverified: list[int]


def rescue(source: str, target: str, progress: Progress) -> Rescued:
    """Make a healthy database, in a file that is not there yet, of what can be read of another.

    Raises:
        ValidationFailed: The source is a database in memory.
    """
    from stratagem.storage.rescue import Rescue, fill

    quiet: dict[str, Any] = {"deliver": False, "external": ExternalSettings()}
    with (
        _salvage(source, progress) as found,
        closing(start(Settings(target, durability="fast", **quiet))) as there,
    ):
        made = Rescue(found)
        store = there.foundation.store
        fill(store, made.events(progress))
        findings = store.examine(progress, None)
        if findings:
            raise DatabaseCorrupt(
                f"The rescued database is not healthy: {findings[0].what}", where=findings[0].where
            )
        return Rescued(store.reader().log.head(), made.losses, made.unverified)


def _salvage(source: str, progress: Progress) -> AbstractContextManager[Salvage]:
    """Give what can be read of a damaged log, wherever it lies."""
    if source == MEMORY:
        raise ValidationFailed("A database in memory cannot be rescued.", field="rescue")
    if is_address(source):
        _postgres()
        from stratagem.storage.postgres import salvage

        address, _, workspace = source.partition("#")
        return salvage.salvage(address, workspace or DEFAULT, progress)
    from stratagem.storage.sqlite.salvage import salvage as salvage_file

    return salvage_file(source, progress)


def _check(settings: Settings) -> None:
    """Refuse a setting that would silently be misread."""
    check_place(settings.path)
    for field_name, allowed in (
        ("durability", ("full", "fast")),
        ("redaction", ("none", "basic", "strict")),
    ):
        value = getattr(settings, field_name)
        if value not in allowed:
            raise ValidationFailed(
                f"There is no {field_name} {value!r}.",
                field=field_name,
                allowed=list(allowed),
                hint=f"Choose one of: {', '.join(allowed)}.",
            )
    least: object = settings.relevance_min
    if not isinstance(least, (int, float)) or isinstance(least, bool) or not 0 <= least <= 1:
        raise ValidationFailed(
            f"`relevance_min` is a probability; it was {least!r}.",
            field="relevance_min",
            hint=f"Choose a number from 0 to 1. {TRY_MIN} is the default.",
        )


def _store(settings: Settings, path: str, index: Index) -> Store:
    if not is_address(path):
        return SqliteStore(
            path,
            kinds=KINDS,
            indexer=index,
            adapters=settings.adapters,
            durability=settings.durability,
            read_only=settings.read_only,
            copying=settings.copying,
        )
    address, _, workspace = path.partition("#")
    return _postgres()(
        address,
        # One that was asked for in so many words is never another.
        workspace=settings.workspace if settings.workspace != DEFAULT else workspace or DEFAULT,
        kinds=KINDS,
        indexer=index,
        adapters=settings.adapters,
        durability=settings.durability,
        read_only=settings.read_only,
        server_clock=settings.adapters.clock is now,
        copying=settings.copying,
    )


def _postgres() -> type[PostgresStore]:
    """Return the store on a server.

    Raises:
        StorageUnavailable: What it needs is not installed.
    """
    try:
        from stratagem.storage.postgres.store import PostgresStore
    except ImportError as error:
        raise StorageUnavailable(
            f"A package that PostgreSQL needs is missing: {error}.",
            hint="Install it with: pip install 'stratagem[postgres]'.",
        ) from error
    return PostgresStore


def _beside(path: str, name: str) -> str:
    """Return where something goes that belongs beside a database."""
    if is_address(path):
        from platformdirs import user_data_dir

        return str(Path(user_data_dir("stratagem", appauthor=False)) / name)
    # What is gone when it is closed has nothing beside it.
    return "" if path == MEMORY else f"{path}-{name}"


def _index(settings: Settings, path: str, name: str | None) -> Index:
    return Index(_embedder(settings, name), _vector_path(settings, path, "-vectors"))


def _vector_path(settings: Settings, path: str, suffix: str) -> Path | None:
    """Return where a file of vectors lies beside a database; None: it is private to the process."""
    private = path == MEMORY or settings.read_only or is_address(path)
    return None if private else Path(f"{path}{suffix}")


def _embedder(settings: Settings, name: str | None) -> embedding.Embedder | None:
    try:
        return embedding.choose(name or "static")
    except ServiceUnavailable as error:
        if settings.embedder is not None:
            raise
        # EMBEDDING_MODEL may be meant for another program, so it is only a default.
        logger.warning("%s", error.message)
        return embedding.choose("static")


def _make_private(path: Path, *, read_only: bool) -> None:
    """Make the file of a new database one that only its user can read."""
    if read_only:
        return
    # Whatever is wrong with the place is told when the database is opened.
    with suppress(OSError, ValueError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _make_folder(folder: Path, *, read_only: bool) -> None:
    if read_only:
        return
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise StorageUnavailable(
            f"The folder of the database cannot be created: {error}.",
            path=str(folder),
            hint="Check its permissions and the disk, or keep the database elsewhere: commands "
            "take `--db FILE`, or STRATAGEM_DB in the environment.",
        ) from error


def now() -> int:
    """Return the time by the clock, in microseconds."""
    return time.time_ns() // 1000  # noqa: TID251 -- the one clock
