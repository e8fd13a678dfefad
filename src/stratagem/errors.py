"""Every error a caller can meet.

An error names a condition, carries a stable `code`, says what went wrong in
`message`, where in `details`, and what to do next in `hint`. Surfaces translate it;
none of them invents one. `TABLE` gives each code its HTTP status, JSON-RPC code and
exit code, so that one condition looks alike on every surface.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypedDict

from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "TABLE",
    "AmbiguousName",
    "AuthorizationRequired",
    "Blame",
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
    "GatewayErrorBody",
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
    "Row",
    "SecretUnavailable",
    "ServiceUnavailable",
    "ShuttingDown",
    "SolutionNotFound",
    "StorageBusy",
    "StorageFull",
    "StorageUnavailable",
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
    "blame_of",
]


class GatewayErrorBody(TypedDict):
    """An error as the gateway's own events and answers show it."""

    code: str
    message: str
    details: dict[str, Any]
    hint: str


class StratagemError(Exception):
    """The base of every error that leaves Stratagem."""

    code: ClassVar[str] = "internal_error"
    hint_default: ClassVar[str] = ""
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.hint_default if hint is None else hint
        self.details = details
        if self.hint:
            # A traceback shows it below the message.
            self.add_note(self.hint)

    def reword(self, message: str, details: dict[str, Any]) -> None:
        """Replace the message everywhere, also in the text form, and drop the cause.

        For messages that nobody may see: the old one is in no traceback either.
        """
        if (message, details) == (self.message, self.details):
            return
        self.message, self.details, self.args = message, details, (message,)
        self.__cause__ = None
        self.__suppress_context__ = True

    def reword_hint(self, words: Callable[[str], str]) -> None:
        """Rewrite the hint in the terms of the surface that shows it."""
        said, self.hint = self.hint, words(self.hint)
        notes = getattr(self, "__notes__", None)
        if notes:
            notes[:] = [self.hint if note == said else note for note in notes]

    def envelope(self) -> dict[str, Any]:
        """Return the error as the result object that every surface shows."""
        return {
            "success": False,
            "error": self.code,
            "message": self.message,
            "details": self.details,
            "hint": self.hint,
        }

    def gateway_body(self) -> GatewayErrorBody:
        """Return the error as the gateway's own events and answers show it."""
        return {
            "code": TABLE[self.code].gateway_code,
            "message": self.message,
            "details": self.details,
            "hint": self.hint,
        }


class InvalidInput(StratagemError):
    """The input is not even the right kind of JSON."""

    code = "invalid_input"
    hint_default = "Send a JSON object with the parameters of the operation."


class MissingRequired(StratagemError):
    """A required parameter was left out."""

    code = "missing_required"
    hint_default = "Add the parameter and call again."


class ValidationFailed(StratagemError):
    """A parameter has an invalid value."""

    code = "validation_error"
    hint_default = "Correct the parameter and call again; nothing was written."

    def leave_out_writing(self) -> None:
        """Say nothing of writing: the operation only reads."""
        self.reword_hint(lambda hint: hint.replace("; nothing was written", ""))


class OperationNotFound(StratagemError):
    """No operation has this name."""

    code = "unknown_operation"
    hint_default = "List the operations with `stratagem operations`."


class BranchNotFound(StratagemError):
    """No live branch has this name."""

    code = "branch_not_found"
    hint_default = 'List the branches with strata_branch, action "list".'


class BranchExists(StratagemError):
    """A live branch already has this name."""

    code = "branch_exists"
    hint_default = "Choose another name, or leave the name out to get a generated one."


class BranchProtected(StratagemError):
    """The branch cannot be used that way."""

    code = "branch_protected"
    hint_default = "Name another branch."


class IncidentNotFound(StratagemError):
    """The branch shows no incident with this id."""

    code = "incident_not_found"
    hint_default = "Call ranked_solutions to find incidents and their ids."


class OutcomeNotFound(StratagemError):
    """The branch shows no outcome with this id."""

    code = "outcome_not_found"
    hint_default = "Call list_outcomes to find outcomes and their ids."


class RecordRetired(StratagemError):
    """Somebody has withdrawn this incident or fix, and said why."""

    code = "record_retired"
    hint_default = (
        "Look for another fix. A person can restore this one: `stratagem debug restore ID`."
    )


class SolutionNotFound(StratagemError):
    """The branch shows no solution with this id."""

    code = "solution_not_found"
    hint_default = "Call ranked_solutions to find solutions and their ids."


class LookupNotFound(StratagemError):
    """The branch shows no lookup with this id."""

    code = "lookup_not_found"
    hint_default = "Use the lookup_id of a ranked_solutions call on this branch, or leave it out."


class ConceptNotFound(StratagemError):
    """The branch shows no concept with this id."""

    code = "concept_not_found"
    hint_default = "Search for it with search_concepts_semantic or search_concepts_exact."


class AmbiguousName(StratagemError):
    """Several concepts have this name."""

    code = "ambiguous_name"
    hint_default = "Give the `concept_id` of the concept you mean; `candidates` lists them."


class RelationshipNotFound(StratagemError):
    """The branch shows no such relationship."""

    code = "relationship_not_found"
    hint_default = "Call get_related_concepts to see the relationships of a concept."


class PathNotFound(StratagemError):
    """No path leads from one concept to the other."""

    code = "path_not_found"
    hint_default = "Try a larger max_depth, up to 10."


class CollectionExists(StratagemError):
    """A collection already has this name."""

    code = "collection_exists"
    hint_default = "Choose another name, or delete the collection first."


class CollectionNotFound(StratagemError):
    """No collection has this name, on this branch at this moment."""

    code = "collection_not_found"
    hint_default = "List the collections, or create it."


class GenerationUnavailable(StratagemError):
    """No model is configured that could generate text, or it cannot be reached."""

    code = "generation_unavailable"
    hint_default = "Configure one with strata_configure_model: an OpenAI-compatible endpoint."


class VersionConflict(StratagemError):
    """The entry changed after `expected_version` was read."""

    code = "version_conflict"
    hint_default = "Recall the entry, apply the change to its present value, and store again."


class MergeConflict(StratagemError):
    """Both branches changed the same thing; nothing was merged."""

    code = "merge_conflict"
    hint_default = (
        "Pass decisions for the listed conflicts, or strategy source_wins or target_wins."
    )


class TransactionConflict(StratagemError):
    """Another caller changed a record that the transaction changed too."""

    code = "transaction_conflict"
    hint_default = "Begin a new transaction, read again, and repeat the work."


class TransactionEnded(StratagemError):
    """The transaction was committed, rolled back, or ended by its time limit."""

    code = "transaction_ended"
    hint_default = "Begin a new transaction; what was not committed is not stored."


class VersionErased(StratagemError):
    """The version that was current at that moment was erased by retention."""

    code = "version_erased"
    hint_default = (
        "The history shows which versions are left; choose a moment at which one "
        "of them was current."
    )


class NotInTransaction(StratagemError):
    """The operation cannot be part of a transaction."""

    code = "not_in_transaction"
    hint_default = "Call it before the transaction begins or after it has ended."


class RequestReused(StratagemError):
    """The request id was used before, with other arguments."""

    code = "request_id_reused"
    hint_default = "Use a new request id for a new request."


class SwitchUnavailable(StratagemError):
    """This connection cannot remember a current branch."""

    code = "switch_unavailable"
    hint_default = "Pass `branch` with each call instead."


class ReadOnly(StratagemError):
    """The database was opened for reading only."""

    code = "read_only"
    hint_default = "To write, leave out --read-only (in Python: read_only)."


class ImportRefused(StratagemError):
    """The file is damaged, or not in a format that can be imported."""

    code = "import_refused"
    hint_default = "Nothing was imported. Export the file again, or name its format."

    @classmethod
    def at(cls, place: str, error: Exception, **details: Any) -> ImportRefused:
        """Return the refusal of a record at a place, with all that an error says about it."""
        reason, hint = str(error), None
        if isinstance(error, StratagemError):
            reason = error.message
            about = ("field", "place", "limit", "allowed")
            details |= {name: error.details[name] for name in about if name in error.details}
            if error.hint and error.hint != error.hint_default:
                words = error.hint.replace("; nothing was written", "")
                hint = f"Nothing was imported. {words}"
        return cls(f"{place}: {reason.rstrip('.')}.", hint=hint, **details)


class StorageBusy(StratagemError):
    """Another process locked the database for too long."""

    code = "storage_busy"
    hint_default = "Nothing was written. Try again."
    retryable = True


class StorageFull(StratagemError):
    """The disk is full."""

    code = "storage_full"
    hint_default = (
        "Nothing was written; earlier writes that were acknowledged are safe. Free some space."
    )
    retryable = True


class StorageUnavailable(StratagemError):
    """The database cannot be opened, read or written."""

    code = "storage_unavailable"
    hint_default = "Check the path, its permissions and the disk."
    retryable = True


class RouteNotFound(StratagemError):
    """The server has no route for this path."""

    code = "not_found"
    hint_default = "GET /api/openapi.json lists every route."


class MethodNotAllowed(StratagemError):
    """The server has this path, but not with this method."""

    code = "method_not_allowed"
    hint_default = "Use one of the methods that the header `Allow` lists."


class HostNotAllowed(StratagemError):
    """The `Host` of a request is none of the names under which the server is reached."""

    code = "host_not_allowed"
    hint_default = "Call the server by its own address, or have it started with --server-name."


class OriginNotAllowed(StratagemError):
    """A web page of another site sent the request."""

    code = "origin_not_allowed"
    hint_default = (
        "Call it from a page of this server, or from a program, without the header `Origin`."
    )


class DatabaseNotFound(StratagemError):
    """There is no database at this place, and reading does not create one."""

    code = "database_not_found"
    hint_default = "Choose another database, or store something first."


class DatabaseCorrupt(StratagemError):
    """The file is damaged, or is not a Stratagem database."""

    code = "database_corrupt"
    hint_default = (
        "Run `stratagem doctor`: it shows what is damaged and how to repair or rescue it."
    )


class DatabaseTooNew(StratagemError):
    """The database was written by a newer Stratagem."""

    code = "database_too_new"
    hint_default = "Use the Stratagem that wrote it, or a newer one."


class CopyUnfinished(StratagemError):
    """A copy or a restore into the database was interrupted."""

    code = "copy_unfinished"
    hint_default = (
        "Repeat the command to continue, or repeat it with --discard to delete the unfinished copy."
    )


class ServiceUnavailable(StratagemError):
    """A part that this operation needs is not available."""

    code = "service_unavailable"
    hint_default = "Operations that do not need it still work."
    retryable = True


class ToolNotFound(StratagemError):
    """The branch shows no tool with this name or id."""

    code = "tool_not_found"
    hint_default = "List the tools, or search for one with tools_discover."


class ToolUnavailable(StratagemError):
    """A standard tool lacks what it needs: a library, a key or a connection."""

    code = "tool_unavailable"
    hint_default = "The hint of each error says what to install or to set."


class ToolExists(StratagemError):
    """A tool of this name is registered already."""

    code = "tool_exists"
    hint_default = "Update the tool, or choose another name."


class ResourceNotFound(StratagemError):
    """The branch shows no resource with this id."""

    code = "resource_not_found"
    hint_default = "List the resources."


class ExecutionNotFound(StratagemError):
    """There is no execution with this id."""

    code = "execution_not_found"
    hint_default = "List the executions of the tool."


class ExecutionFailed(StratagemError):
    """The tool itself failed.

    `safe`: nothing was done yet, so that a retry can do no harm. `answered`: the tool works, and
    answered that it cannot do what was asked.
    """

    code = "execution_error"
    hint_default = "The details say what the tool answered."

    def __init__(
        self,
        message: str,
        *,
        safe: bool = False,
        answered: bool = False,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, **details)
        self.safe = safe
        self.answered = answered


class ExecutionTimeout(StratagemError):
    """The tool did not answer in time and was stopped."""

    code = "timeout"
    hint_default = "Give it more time with options.timeout, or ask for less."
    retryable = True


class PermissionDenied(StratagemError):
    """The caller may not do this."""

    code = "permission_denied"
    hint_default = "Ask an administrator for the permission."


class Unauthenticated(StratagemError):
    """The token is missing or not known."""

    code = "unauthenticated"
    hint_default = (
        "Send a valid token: Authorization: Bearer ..., or token=... in Python. "
        "`stratagem token create NAME` makes one."
    )


class SecretUnavailable(StratagemError):
    """A secret is not available: it was not set, or cannot be encrypted or read."""

    code = "secret_unavailable"
    hint_default = "See: stratagem secrets list"


class AuthorizationRequired(StratagemError):
    """An upstream server has to know the user, who has not signed in to it."""

    code = "authorization_required"
    hint_default = "Have the user sign in, then call again."


class GuardrailBlocked(StratagemError):
    """A guardrail blocked the call or its result."""

    code = "guardrail_blocked"
    hint_default = "Call it with other arguments, or ask an administrator about the guardrail."


class GuardrailFailed(StratagemError):
    """A guardrail failed, so the call was refused."""

    code = "guardrail_failed"
    hint_default = "An administrator has to correct or remove it: stratagem guardrails list"


class RateLimited(StratagemError):
    """The caller sent too many requests."""

    code = "rate_limited"
    hint_default = "Wait for `retry_after` seconds, then call again."
    retryable = True


class BudgetExceeded(StratagemError):
    """The budget of a tool or a token, in calls or cost, is used up."""

    code = "budget_exceeded"
    hint_default = "Wait until it resets, or ask an administrator for a larger budget."


class RequestTooLarge(StratagemError):
    """The request is larger or deeper than the limit."""

    code = "request_too_large"
    hint_default = "Send less at once."


class RequestTimedOut(StratagemError):
    """The body of a request did not arrive in time; nothing was done."""

    code = "request_timeout"
    hint_default = "Send the complete request again."
    retryable = True


class ShuttingDown(StratagemError):
    """The server was told to stop before the call was answered."""

    code = "shutting_down"
    hint_default = "Send it again in a moment; the details say whether that is safe."
    retryable = True


class CorrectionUnavailable(StratagemError):
    """The arguments do not fit, and the service that corrects them does not work."""

    code = "auto_correction_unavailable"
    hint_default = "Correct the arguments yourself; the details say what is wrong with them."
    retryable = True


class GraphServiceFailed(StratagemError):
    """The graph database answered with an error."""

    code = "neo4j_error"
    hint_default = "Read the message and the log of Neo4j; other branches are not affected."
    retryable = True


class VectorServiceFailed(StratagemError):
    """The vector database answered with an error."""

    code = "chromadb_error"
    hint_default = "Read the message and the log of Chroma; other branches are not affected."
    retryable = True


class EmbeddingFailed(StratagemError):
    """A text has no vector, because there is no embedder or it does not work."""

    code = "embedding_error"
    hint_default = "Choose an embedder that is installed, with --embedder."
    retryable = True


class InternalFault(StratagemError):
    """A defect of Stratagem itself."""

    code = "internal_error"
    hint_default = "This is a defect: please report it with the message."


# Whose fault a failure is. `arguments`: the request itself, so that a retry does not help.
# `caller`: the caller's rights or limits, likewise. `tool`: the called tool, so that others may
# meet it too. `nobody`: no evidence about either, and a retry may succeed.
Blame = Literal["arguments", "caller", "tool", "nobody"]

# Reasons for which the tool is not to blame, whatever the code of the failure is.
_EXCUSES: Final = frozenset({"cancelled", "circuit_open", "callers_time", "not_begun"})


class Row(NamedTuple):
    """How one error code looks on each surface, and whose fault it is."""

    http_status: int
    json_rpc_code: int
    exit_code: int
    gateway_code: str
    blame: Blame


TABLE: dict[str, Row] = {
    "invalid_input": Row(400, -32602, 2, "VALIDATION_ERROR", "arguments"),
    "missing_required": Row(400, -32602, 2, "VALIDATION_ERROR", "arguments"),
    "validation_error": Row(400, -32602, 2, "VALIDATION_ERROR", "arguments"),
    "unknown_operation": Row(404, -32601, 2, "TOOL_NOT_FOUND", "arguments"),
    "branch_not_found": Row(404, -32004, 3, "BRANCH_NOT_FOUND", "arguments"),
    "incident_not_found": Row(404, -32004, 3, "INCIDENT_NOT_FOUND", "arguments"),
    "outcome_not_found": Row(404, -32004, 3, "OUTCOME_NOT_FOUND", "arguments"),
    "record_retired": Row(409, -32009, 4, "RECORD_RETIRED", "arguments"),
    "solution_not_found": Row(404, -32004, 3, "SOLUTION_NOT_FOUND", "arguments"),
    "lookup_not_found": Row(404, -32004, 3, "LOOKUP_NOT_FOUND", "arguments"),
    "concept_not_found": Row(404, -32004, 3, "CONCEPT_NOT_FOUND", "arguments"),
    "ambiguous_name": Row(409, -32009, 4, "AMBIGUOUS_NAME", "arguments"),
    "relationship_not_found": Row(404, -32004, 3, "RELATIONSHIP_NOT_FOUND", "arguments"),
    "path_not_found": Row(404, -32004, 3, "PATH_NOT_FOUND", "arguments"),
    "not_found": Row(404, -32004, 3, "NOT_FOUND", "arguments"),
    "method_not_allowed": Row(405, -32601, 2, "METHOD_NOT_ALLOWED", "arguments"),
    "host_not_allowed": Row(403, -32003, 5, "HOST_NOT_ALLOWED", "caller"),
    "origin_not_allowed": Row(403, -32003, 5, "ORIGIN_NOT_ALLOWED", "caller"),
    "tool_not_found": Row(404, -32004, 3, "TOOL_NOT_FOUND", "arguments"),
    "resource_not_found": Row(404, -32004, 3, "RESOURCE_NOT_FOUND", "arguments"),
    "execution_not_found": Row(404, -32004, 3, "EXECUTION_NOT_FOUND", "arguments"),
    "tool_unavailable": Row(503, -32050, 6, "EXECUTION_ERROR", "nobody"),
    "tool_exists": Row(409, -32009, 4, "VALIDATION_ERROR", "arguments"),
    "execution_error": Row(502, -32010, 8, "EXECUTION_ERROR", "tool"),
    "timeout": Row(504, -32010, 8, "TIMEOUT", "tool"),
    "permission_denied": Row(403, -32003, 5, "PERMISSION_DENIED", "caller"),
    "unauthenticated": Row(401, -32001, 5, "PERMISSION_DENIED", "caller"),
    "secret_unavailable": Row(503, -32050, 6, "SECRET_UNAVAILABLE", "nobody"),
    "authorization_required": Row(403, -32003, 5, "AUTHORIZATION_REQUIRED", "caller"),
    "guardrail_blocked": Row(403, -32003, 5, "GUARDRAIL_BLOCKED", "caller"),
    "guardrail_failed": Row(503, -32050, 6, "GUARDRAIL_FAILED", "nobody"),
    "rate_limited": Row(429, -32029, 6, "RATE_LIMITED", "nobody"),
    "budget_exceeded": Row(429, -32029, 6, "RATE_LIMITED", "nobody"),
    "request_too_large": Row(413, -32602, 2, "REQUEST_TOO_LARGE", "arguments"),
    "request_timeout": Row(408, -32050, 6, "TIMEOUT", "arguments"),
    "shutting_down": Row(503, -32050, 6, "SHUTTING_DOWN", "arguments"),
    "branch_exists": Row(409, -32009, 4, "BRANCH_EXISTS", "arguments"),
    "branch_protected": Row(409, -32009, 4, "BRANCH_PROTECTED", "arguments"),
    "collection_exists": Row(409, -32009, 4, "COLLECTION_EXISTS", "arguments"),
    "collection_not_found": Row(404, -32004, 3, "COLLECTION_NOT_FOUND", "arguments"),
    "generation_unavailable": Row(503, -32010, 6, "GENERATION_UNAVAILABLE", "nobody"),
    "version_conflict": Row(409, -32009, 4, "VERSION_CONFLICT", "arguments"),
    "merge_conflict": Row(409, -32009, 4, "MERGE_CONFLICT", "arguments"),
    "transaction_conflict": Row(409, -32009, 4, "TRANSACTION_CONFLICT", "arguments"),
    "transaction_ended": Row(409, -32009, 4, "TRANSACTION_ENDED", "arguments"),
    "version_erased": Row(410, -32004, 3, "VERSION_ERASED", "arguments"),
    "not_in_transaction": Row(409, -32009, 4, "NOT_IN_TRANSACTION", "arguments"),
    "request_id_reused": Row(409, -32009, 4, "REQUEST_ID_REUSED", "arguments"),
    "switch_unavailable": Row(409, -32009, 4, "SWITCH_UNAVAILABLE", "arguments"),
    "read_only": Row(403, -32003, 5, "PERMISSION_DENIED", "caller"),
    "import_refused": Row(422, -32602, 2, "IMPORT_REFUSED", "arguments"),
    "storage_busy": Row(503, -32050, 6, "EXECUTION_ERROR", "nobody"),
    "storage_full": Row(507, -32050, 6, "EXECUTION_ERROR", "nobody"),
    "storage_unavailable": Row(503, -32050, 6, "EXECUTION_ERROR", "nobody"),
    "database_not_found": Row(404, -32050, 6, "DATABASE_NOT_FOUND", "nobody"),
    "database_corrupt": Row(500, -32050, 7, "DATABASE_CORRUPT", "nobody"),
    "database_too_new": Row(500, -32050, 7, "DATABASE_TOO_NEW", "nobody"),
    "copy_unfinished": Row(503, -32050, 7, "COPY_UNFINISHED", "nobody"),
    "service_unavailable": Row(503, -32050, 6, "EXECUTION_ERROR", "tool"),
    "auto_correction_unavailable": Row(503, -32050, 6, "AUTO_CORRECTION_UNAVAILABLE", "nobody"),
    "neo4j_error": Row(500, -32050, 6, "NEO4J_ERROR", "tool"),
    "chromadb_error": Row(500, -32050, 6, "CHROMADB_ERROR", "tool"),
    "embedding_error": Row(503, -32050, 6, "EMBEDDING_ERROR", "tool"),
    "internal_error": Row(500, -32603, 1, "EXECUTION_ERROR", "tool"),
}


def blame_of(code: str | None, reason: Any = None) -> Blame:
    """Return whose fault a failure is, by its code and the reason in its details.

    Breakers and a tool's reliability count only failures that are the tool's fault; a pipeline does
    not retry those of the caller; a correction learns nothing from those that are nobody's.
    """
    if reason in _EXCUSES:
        return "nobody"
    row = TABLE.get(code or "")
    return "tool" if row is None else row.blame
