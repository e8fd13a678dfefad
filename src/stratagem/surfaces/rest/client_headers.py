"""Headers of our own client: its branch, its namespace, and that it is a program.

A client that keeps a current branch sends it with each request and is told with the answer which
one it is then; so that it can switch without anything being remembered here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from stratagem.answers import whole
from stratagem.operation import Caller
from stratagem.sdk.http_requests import (
    ANSWERS_HEADER,
    BRANCH_HEADER,
    NAMESPACE_HEADER,
    TRANSACTION_HEADER,
    branch_header,
    read_branch_header,
)

__all__ = ["answer_budget", "note_place", "with_client_settings"]


def with_client_settings(caller: Caller, request: Request) -> Caller:
    """Return a caller with the branch, the namespace and the transaction that a request names."""
    branch = request.headers.get(BRANCH_HEADER)
    namespace = request.headers.get(NAMESPACE_HEADER)
    transaction = request.headers.get(TRANSACTION_HEADER)
    if branch is None and not namespace and transaction is None:
        return caller
    return replace(
        caller,
        branch=read_branch_header(branch or "") or caller.branch,
        namespace=unquote(namespace or "") or caller.namespace,
        can_switch=caller.can_switch or branch is not None,
        transaction_id=transaction,
    )


def answer_budget(request: Request) -> AbstractContextManager[None]:
    """Return the context of an answer: one without a budget, where the client asks for that."""
    return whole() if request.headers.get(ANSWERS_HEADER) == "whole" else nullcontext()


def note_place(response: Response, caller: Caller, request: Request, namespace: str) -> Response:
    """Add headers with the client's current branch and namespace, where it keeps them.

    `namespace` is the one it had before: it is told where it has another now.
    """
    if BRANCH_HEADER in request.headers:
        response.headers[BRANCH_HEADER] = branch_header(caller.branch)
        if caller.namespace != namespace:
            response.headers[NAMESPACE_HEADER] = quote(caller.namespace, safe="")
    return response
