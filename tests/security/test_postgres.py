"""Tokens and workspaces on PostgreSQL are what they are on SQLite."""

from __future__ import annotations

import os
import secrets
import time

import pytest

from stratagem.access.service import Access
from stratagem.access.workspaces import home_of, place_of
from stratagem.bootstrap import Runtime, Settings, start
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings


def test_a_workspace_of_an_address_is_a_workspace_of_its_server() -> None:
    address = "postgresql://user@host/db#team"

    assert home_of(address) == "team"
    assert place_of(address, "red") == ("postgresql://user@host/db", "red")


def test_tokens_are_kept_and_workspaces_apart(
    postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stratagem.access.token_cache import TokenCache

    home, red, blue = (f"{name}-{secrets.token_hex(4)}" for name in ("home", "red", "blue"))
    address = f"{postgres_address.partition('#')[0]}#{home}"
    database = Database(ServerSettings(address, embedder="none"))
    other: Runtime = start(Settings(address, embedder="none"))
    try:
        book = TokenCache(database.runtime().foundation, time.monotonic)
        access = Access(other.foundation, Caller("test"), os.urandom)
        token, _secret = access.create("alice", ["*:read"], {red: "member"})
        book.check()
        found = book.find(token.hash)
        assert found is not None
        assert found.state(access.now()) == "active"

        access.revoke("alice")
        monkeypatch.setattr("stratagem.limits.TOKEN_CHECK_SECONDS", -1.0)
        book.check()

        found = book.find(token.hash)
        assert found is not None
        assert found.state(access.now()) == "revoked"
        given = {"key": "k", "value": "red"}
        database.call("strata_store", given, Caller("test", workspace=red))
        seen = database.call("strata_recall", {"key": "k"}, Caller("test", workspace=red))
        hidden = database.call("strata_recall", {"key": "k"}, Caller("test", workspace=blue))
        assert (seen["found"], hidden["found"]) == (True, False)
    finally:
        other.close()
        database.close()
