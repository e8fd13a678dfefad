"""Headers of our own client: its branch, its namespace, and that it is a program.

A client that keeps a current branch sends it with each request and is told with the answer which
one it is then; so that it can switch without anything being remembered here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from stratagem.answers import whole
from stratagem.operation import Caller
from stratagem.sdk.http_requests import (
    ANSWERS_HEADER,
    BRANCH_HEADER,
    NAMESPACE_HEADER,
    branch_header,
    read_branch_header,
)

__all__ = ["answer_budget", "note_branch", "with_client_settings"]


def with_client_settings(caller: Caller, request: Request) -> Caller:
    """Return a caller with the branch and the namespace that a request names."""
    branch = request.headers.get(BRANCH_HEADER)
    namespace = request.headers.get(NAMESPACE_HEADER)
    if branch is None and not namespace:
        return caller
    return replace(
        caller,
        branch=read_branch_header(branch or "") or caller.branch,
        namespace=unquote(namespace or "") or caller.namespace,
        can_switch=caller.can_switch or branch is not None,
    )


def answer_budget(request: Request) -> AbstractContextManager[None]:
    """Return the context of an answer: one without a budget, where the client asks for that."""
    return whole() if request.headers.get(ANSWERS_HEADER) == "whole" else nullcontext()


def note_branch(response: Response, caller: Caller, request: Request) -> Response:
    """Add the header with the client's current branch, where it keeps one."""
    if BRANCH_HEADER in request.headers:
        response.headers[BRANCH_HEADER] = branch_header(caller.branch)
    return response
