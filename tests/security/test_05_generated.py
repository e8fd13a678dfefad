"""5. Whatever is sent with a limited token: no 500, and no 2xx where the scope forbids it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from stratagem.access.scopes import intersect_with_role
from stratagem.errors import PermissionDenied
from stratagem.operation import Caller
from stratagem.operations import authorise, find
from stratagem.surfaces.admission.middleware import PUBLIC_PATHS
from stratagem.surfaces.rest.routes import all_routes
from tests.security.house import House, make_token, serving
from tests.surfaces.generated_requests import DOCUMENTED_ROUTES, send_requests

if TYPE_CHECKING:
    from schemathesis import Case

LIMITED = {
    "reader": ("*:read",),
    "notes": ("memory:write", "knowledge:read"),
    "runner": ("gateway:execute", "debugging:read"),
}
OPERATIONS = {(route.method, route.path): route.operation for route in all_routes()}
# A tool that cannot do what it was asked says nothing about the server.
_TOOLS_FAULT = {502, 503, 504}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Counter[str]]]:
    path = tmp_path_factory.mktemp("limited") / "memory.db"
    tokens = {
        name: make_token(path, name, *scopes, rate=1_000_000) for name, scopes in LIMITED.items()
    }
    seen: Counter[str] = Counter()
    with serving(path) as house:
        house.tokens = tokens
        yield house, seen
    print(f"\nanswers by token and status: {dict(sorted(seen.items()))}")  # noqa: T201 -- figures


def is_allowed(case: Case[Any], scopes: tuple[str, ...]) -> bool:
    """Whether a token's scopes allow what a request asks for."""
    caller = Caller(scopes=intersect_with_role(scopes, "admin"))
    name = OPERATIONS.get((case.method.upper(), case.path))
    if name is None:
        # Whether the server is up is nobody's secret.
        return case.path in PUBLIC_PATHS or (
            case.path == "/metrics" and caller.may("gateway", "read")
        )
    body = case.body if isinstance(case.body, Mapping) else {}
    try:
        authorise(find(name), body, caller)
    except PermissionDenied:
        return False
    return True


def send(limited: tuple[House, Counter[str]], case: Case[Any]) -> None:
    house, seen = limited
    for name, scopes in LIMITED.items():
        headers = {"authorization": f"Bearer {house.tokens[name]}", "origin": house.url}
        response = case.call(base_url=house.url, headers=headers, timeout=60)
        status = response.status_code
        seen[f"{name} {status}"] += 1
        told = (name, case.method, case.path, status, response.content[:300])
        assert status < 500 or (status in _TOOLS_FAULT and is_allowed(case, scopes)), told
        if status < 300:
            assert is_allowed(case, scopes), told
        if status == 403 and is_allowed(case, scopes):
            # What the scope allows may be refused for another reason, and says which.
            assert b"insufficient_scope" not in response.headers.get("www-authenticate", b""), told


@pytest.mark.parametrize("route", DOCUMENTED_ROUTES)
def test_no_request_passes_its_scope(route: str, limited: tuple[House, Counter[str]]) -> None:
    send_requests(route, partial(send, limited), examples=1, derandomize=True)
