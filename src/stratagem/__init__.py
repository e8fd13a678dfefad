"""Stratagem: a memory for AI agents that knows how it came to know things."""

import gc
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratagem.errors import (
        AmbiguousName,
        AuthorizationRequired,
        BranchExists,
        BranchNotFound,
        BranchProtected,
        BudgetExceeded,
        CollectionExists,
        CollectionNotFound,
        ConceptNotFound,
        CopyUnfinished,
        CorrectionUnavailable,
        DatabaseCorrupt,
        DatabaseNotFound,
        DatabaseTooNew,
        EmbeddingFailed,
        ExecutionFailed,
        ExecutionNotFound,
        ExecutionTimeout,
        GenerationUnavailable,
        GraphServiceFailed,
        GuardrailBlocked,
        GuardrailFailed,
        HostNotAllowed,
        ImportRefused,
        IncidentNotFound,
        InternalFault,
        InvalidInput,
        LookupNotFound,
        MergeConflict,
        MethodNotAllowed,
        MissingRequired,
        NotInTransaction,
        OperationNotFound,
        OriginNotAllowed,
        OutcomeNotFound,
        PathNotFound,
        PermissionDenied,
        RateLimited,
        ReadOnly,
        RecordRetired,
        RelationshipNotFound,
        RequestReused,
        RequestTimedOut,
        RequestTooLarge,
        ResourceNotFound,
        RouteNotFound,
        SecretUnavailable,
        ServiceUnavailable,
        ShuttingDown,
        SolutionNotFound,
        StorageBusy,
        StorageFull,
        StorageUnavailable,
        StratagemError,
        SwitchUnavailable,
        ToolExists,
        ToolNotFound,
        ToolUnavailable,
        TransactionConflict,
        TransactionEnded,
        Unauthenticated,
        ValidationFailed,
        VectorServiceFailed,
        VersionConflict,
        VersionErased,
    )
    from stratagem.gateway.handlers.functions import tool
    from stratagem.sdk.embedded import Stratagem
    from stratagem.sdk.embedded import open_database as open  # noqa: A004 -- reads like `open`
    from stratagem.sdk.embedded_async import AsyncStratagem, open_async
    from stratagem.sdk.remote import connect, connect_async

__all__ = [
    "AmbiguousName",
    "AsyncStratagem",
    "AuthorizationRequired",
    "BranchExists",
    "BranchNotFound",
    "BranchProtected",
    "BudgetExceeded",
    "CollectionExists",
    "CollectionNotFound",
    "ConceptNotFound",
    "CopyUnfinished",
    "CorrectionUnavailable",
    "DatabaseCorrupt",
    "DatabaseNotFound",
    "DatabaseTooNew",
    "EmbeddingFailed",
    "ExecutionFailed",
    "ExecutionNotFound",
    "ExecutionTimeout",
    "GenerationUnavailable",
    "GraphServiceFailed",
    "GuardrailBlocked",
    "GuardrailFailed",
    "HostNotAllowed",
    "ImportRefused",
    "IncidentNotFound",
    "InternalFault",
    "InvalidInput",
    "LookupNotFound",
    "MergeConflict",
    "MethodNotAllowed",
    "MissingRequired",
    "NotInTransaction",
    "OperationNotFound",
    "OriginNotAllowed",
    "OutcomeNotFound",
    "PathNotFound",
    "PermissionDenied",
    "RateLimited",
    "ReadOnly",
    "RecordRetired",
    "RelationshipNotFound",
    "RequestReused",
    "RequestTimedOut",
    "RequestTooLarge",
    "ResourceNotFound",
    "RouteNotFound",
    "SecretUnavailable",
    "ServiceUnavailable",
    "ShuttingDown",
    "SolutionNotFound",
    "StorageBusy",
    "StorageFull",
    "StorageUnavailable",
    "Stratagem",
    "StratagemError",
    "SwitchUnavailable",
    "ToolExists",
    "ToolNotFound",
    "ToolUnavailable",
    "TransactionConflict",
    "TransactionEnded",
    "Unauthenticated",
    "ValidationFailed",
    "VectorServiceFailed",
    "VersionConflict",
    "VersionErased",
    "connect",
    "connect_async",
    "open",
    "open_async",
    "tool",
]

# Imported on first use: a server answers the handshake before it needs a database, and a hook of
# an agent's client needs none of it.
_ERRORS = "stratagem.errors"
_LATER = {
    "AsyncStratagem": ("stratagem.sdk.embedded_async", "AsyncStratagem"),
    "Stratagem": ("stratagem.sdk.embedded", "Stratagem"),
    "connect": ("stratagem.sdk.remote", "connect"),
    "connect_async": ("stratagem.sdk.remote", "connect_async"),
    "open": ("stratagem.sdk.embedded", "open_database"),
    "open_async": ("stratagem.sdk.embedded_async", "open_async"),
    "tool": ("stratagem.gateway.handlers.functions", "tool"),
}


if not TYPE_CHECKING:
    # A type checker that saw it would take any name for one of ours.

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _LATER.get(name, (_ERRORS, name))
        value = globals()[name] = getattr(_import(module), attribute)
        return value


def _import(name: str) -> ModuleType:
    """Import a module without a collection of garbage after every few hundred objects.

    What is imported stays; to look through it again and again took an eighth of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    # What is for users, and not the modules that happen to be imported.
    return sorted(__all__)
