"""A call of an operation as an HTTP request, and its answer: what both clients share."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import httpx2
import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import values
from stratagem.engine.lineage import CurrentBranch
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    RequestTooLarge,
    ServiceUnavailable,
    ValidationFailed,
)
from stratagem.operation import MADE_UP
from stratagem.operations import find
from stratagem.sdk.deserialization import error_of

__all__ = [
    "ANSWERS_HEADER",
    "BRANCH_HEADER",
    "NAMESPACE_HEADER",
    "TRANSACTION_HEADER",
    "PreparedRequest",
    "ServerEndpoint",
    "branch_header",
    "closed_client_error",
    "is_outcome",
    "read_branch_header",
    "unreachable_error",
]

# A client with a current branch sends it with each request, and the answer has the branch after it:
# the name and, after a semicolon, the id, because the name may be reused.
BRANCH_HEADER: Final = "x-stratagem-branch"
NAMESPACE_HEADER: Final = "x-stratagem-namespace"
# "whole" is for programs: the answer is not cut to the budget of a conversation.
ANSWERS_HEADER: Final = "x-stratagem-answers"
# The id of the transaction that a request is part of.
TRANSACTION_HEADER: Final = "x-stratagem-transaction"
_REQUEST_ID: Final = "request_id"
# The names under which a request id can be given.
_REQUEST_IDS: Final = frozenset({_REQUEST_ID, "requestId"})
_CONNECT_SECONDS: Final = 10.0
# Shorter than a server keeps an idle connection: none is used that it is just closing.
_IDLE_SECONDS: Final = 2.0


def branch_header(branch: str) -> str:
    """Return a client's branch as a header says it: its name, and its id where that is known."""
    name = quote(branch, safe="")
    return f"{name};{branch.id}" if isinstance(branch, CurrentBranch) else name


def read_branch_header(header: str) -> str:
    """Return the branch that a header says."""
    name, _, number = header.partition(";")
    return CurrentBranch(unquote(name), int(number)) if number.isdecimal() else unquote(name)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request. `repeatable`: sending it twice does no more than sending it once."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    repeatable: bool


class ServerEndpoint:
    """A server as one client sees it: its address, credentials, namespace and current branch."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        namespace: str | None,
        branch: str | None,
        workspace: str | None,
    ) -> None:
        _check_url(url)
        _check_header("token", token)
        _check_header("workspace", workspace)
        self.base = url.rstrip("/").removesuffix("/mcp").removesuffix("/api")
        self.branch = branch
        self.namespace = namespace
        self.headers = {"content-type": "application/json"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"
        if workspace:
            self.headers["x-stratagem-workspace"] = workspace

    def client_options(self, seconds: float) -> dict[str, Any]:
        """Return the keyword arguments for the HTTP client.

        Raises:
            ValidationFailed: Nobody can wait for so long.
        """
        if not 0 < seconds <= threading.TIMEOUT_MAX:
            raise ValidationFailed(
                "A timeout is a number of seconds, more than 0.", field="timeout"
            )
        return {
            "timeout": httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
            "limits": httpx2.Limits(keepalive_expiry=_IDLE_SECONDS),
            "headers": self.headers,
            "trust_env": False,
            # Reading the authorities takes a tenth of a second, and http:// asks none.
            "verify": self.base.lower().startswith("https://"),
        }

    def prepare_request(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        whole: bool,
        transaction: str | None = None,
    ) -> PreparedRequest:
        """Return the request that calls an operation, as part of a transaction where one is named.

        A write is given a request id where it has none, so that it can be repeated.

        Raises:
            OperationNotFound: There is no such operation.
            RequestTooLarge: No server would take it.
            ValidationFailed: An argument is no JSON.
        """
        operation = find(name)
        given = dict(arguments)
        repeatable = operation.right_for(given) == "read"
        if not repeatable and not _REQUEST_IDS.isdisjoint(operation.parameters["properties"]):
            if all(given.get(each) is None for each in _REQUEST_IDS):
                given[_REQUEST_ID] = f"{MADE_UP}{secrets.token_hex(16)}"
            repeatable = True
        headers = {BRANCH_HEADER: branch_header(self.branch or "")}
        if self.namespace:
            headers[NAMESPACE_HEADER] = quote(self.namespace, safe="")
        if transaction is not None:
            headers[TRANSACTION_HEADER] = transaction
        if whole:
            headers[ANSWERS_HEADER] = "whole"
        path = f"{self.base}/api/{operation.toolset}/{operation.name}"
        return PreparedRequest(path, _encode_arguments(given), headers, repeatable)

    def parse_answer(self, request: PreparedRequest, response: httpx2.Response) -> dict[str, Any]:
        """Return what the server answered, and follow it to another branch.

        Raises:
            StratagemError: It refused.
        """
        answered_branch = response.headers.get(BRANCH_HEADER)
        # Only where this request changed it: another thread may have switched meanwhile.
        if answered_branch and answered_branch != request.headers[BRANCH_HEADER]:
            self.branch = read_branch_header(answered_branch)
        if answered_namespace := response.headers.get(NAMESPACE_HEADER):
            self.namespace = unquote(answered_namespace)
        try:
            answer = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ServiceUnavailable(
                f"The server answered {response.status_code} with something that is not a "
                f"JSON object: {response.text[:200].strip()!r}.",
                status=response.status_code,
                hint="Is this the address of a Stratagem server?",
            )
        if not response.is_success:
            raise error_of(answer)
        return answer


def is_outcome(response: httpx2.Response) -> bool:
    """Whether a refusal is the outcome of a call that was run.

    A repeat under its request id would get the same answer.
    """
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(answer, dict):
        return False
    error = error_of(answer)
    ended = isinstance(error, ExecutionFailed | ExecutionTimeout)
    return "executionId" in error.details and (ended or "repeated" in error.details)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        # Reading the port checks it.
        fine = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        fine = fine and url.isprintable() and " " not in url
    except (ValueError, AttributeError):
        fine = False
    if not fine:
        raise ValidationFailed(
            f"{url!r} is not the address of a server.",
            field="url",
            hint="It begins with http:// or https://; `stratagem serve` prints it.",
        )


def _check_header(name: str, value: str | None) -> None:
    """Refuse a value that is no HTTP header. It may be secret, so the message leaves it out."""
    if not value:
        return
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ValidationFailed(
            f"The {name} has characters that are not allowed in a {name}.",
            field=name,
            hint=f"Check that the whole {name} was copied, and nothing else.",
        )


def unreachable_error(base: str, error: Exception) -> ServiceUnavailable:
    """Return the error for a server that did not answer."""
    if isinstance(error, httpx2.DecodingError):
        return ServiceUnavailable(
            f"The answer of the server at {base} cannot be read: {error}.",
            hint="Is this the address of a Stratagem server?",
        )
    if isinstance(error, httpx2.ReadTimeout):
        return ServiceUnavailable(
            f"The server at {base} did not answer in time.",
            hint="It may still be working: check the result before you repeat the call, "
            "or allow a longer timeout.",
        )
    return ServiceUnavailable(
        f"The server at {base} cannot be reached: {str(error) or type(error).__name__}.",
        hint="Check the address and that `stratagem serve` runs there.",
    )


def closed_client_error() -> ServiceUnavailable:
    """Return the error for a client that was closed."""
    return ServiceUnavailable("This client was closed.", hint="Connect again.")


def _encode_arguments(given: Mapping[str, Any]) -> bytes:
    """Encode arguments as JSON, under the same rules as the database, and check the size."""
    most = limits.REQUEST_BYTES_MAX
    body = _encode_object(given)
    if len(body) > most:
        raise RequestTooLarge(
            f"The request has {len(body):,} bytes; a server accepts {most:,}.", limit=most
        )
    return body


def _encode_object(given: Mapping[str, Any]) -> bytes:
    """Encode an object field by field, so that an error names the field."""
    parts = [
        orjson.dumps(name) + b":" + _encode_field(name, value) for name, value in given.items()
    ]
    return b"{" + b",".join(parts) + b"}"


def _encode_field(name: str, value: Any) -> bytes:
    most = limits.REQUEST_BYTES_MAX
    if isinstance(value, Mapping):
        value = dict(value)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        if value and all(_is_item(each) for each in value):
            return b"[" + b",".join(map(_encode_object, value)) + b"]"
        value = list(value)
    # Of several keys, the one that is wrong is told as if it were the only one.
    field = "key" if name == "keys" else name
    return values.encode(value, field=field, bytes_max=most)


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
