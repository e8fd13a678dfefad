"""A house for each file of tests: a server, and one token of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.house import House, make_token, revoke, serving

# Who there is, with which scopes.
HOLDERS: dict[str, tuple[str, ...]] = {
    "admin": ("*:admin",),
    "member": ("*:write", "*:execute"),
    "reader": ("*:read",),
    "runner": ("*:read", "gateway:execute"),
    "memory": ("memory:write",),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path = tmp_path_factory.mktemp("house") / "memory.db"
    tokens = {name: make_token(path, name, *scopes) for name, scopes in HOLDERS.items()}
    tokens["revoked"] = make_token(path, "revoked", "*:admin")
    revoke(path, "revoked")
    tokens["expired"] = make_token(path, "expired", "*:admin", seconds=0)
    with serving(path) as running:
        running.tokens = tokens
        yield running
