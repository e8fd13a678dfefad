"""The token command: what it makes, shows and refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stratagem.errors import StorageUnavailable
from tests.surfaces.cli.console import Cli


def run(cli: Cli, *given: str, status: int = 0) -> Any:
    result = cli.run("--json", "token", *given)
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def test_a_token_is_shown_once_and_listed_without_its_secret(cli: Cli) -> None:
    made = run(cli, "create", "alice", "--scope", "memory:read, knowledge:write", "--expires", "1d")

    (listed,) = run(cli, "list")["tokens"]

    assert made["token"].startswith("strat_")
    assert listed["scopes"] == ["knowledge:write", "memory:read"]
    assert listed["workspaces"] == {"default": "member"}
    assert listed["state"] == "active"
    assert listed["expires"] > listed["created"]
    assert made["token"] not in json.dumps(run(cli, "list"))
    assert run(cli, "revoke", listed["id"])["state"] == "revoked"
    assert run(cli, "list")["tokens"][0]["state"] == "revoked"


@pytest.mark.parametrize(
    "given",
    [
        ("create", "a b"),
        ("create", "x", "--scope", "memory:reed"),
        ("create", "x", "--scope", "memory:read", "--admin"),
        ("create", "x", "--workspace", "../up"),
        ("create", "x", "--workspace", "red:king"),
        ("create", "x", "--expires", "soon"),
    ],
)
def test_what_cannot_be_is_refused(cli: Cli, given: tuple[str, ...]) -> None:
    assert run(cli, *given, status=2)["error"] == "validation_error"
    assert run(cli, "list")["tokens"] == []


def test_a_workspace_that_is_not_there_yet_is_named(cli: Cli) -> None:
    run(cli, "create", "alice")

    made = run(cli, "create", "bob", "--workspace", "rde:reader", "--workspace", "default")
    plain = run(cli, "create", "carol", "--workspace", "default")

    assert made["note"] == "There is no workspace 'rde' yet: the first use makes it."
    assert "note" not in plain


def test_a_token_is_shown_where_the_workspaces_cannot_be_listed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_address: str) -> list[str]:
        raise StorageUnavailable("The server does not answer.")

    run(cli, "create", "alice")
    monkeypatch.setattr("stratagem.bootstrap.workspaces", fail)

    made = run(cli, "create", "bob", "--workspace", "rde")

    assert made["token"].startswith("strat_")
    assert "note" not in made


def test_a_name_is_never_used_again(cli: Cli) -> None:
    run(cli, "create", "alice")
    run(cli, "revoke", "alice")

    assert "exists or existed" in run(cli, "create", "alice", status=2)["message"]
    assert run(cli, "revoke", "nobody", status=3)["error"] == "resource_not_found"


def test_the_first_token_is_made_with_a_warning_and_off_goes_back(cli: Cli) -> None:
    first, second = run(cli, "create", "alice"), run(cli, "create", "bob")

    assert "token off" in first["note"]
    assert "note" not in second
    assert run(cli, "off", "--yes") == {"revoked": 2}
    assert {each["state"] for each in run(cli, "list")["tokens"]} == {"revoked"}
    assert "token off" in run(cli, "create", "carol")["note"]
    assert "TokensTurnedOff" in {each["event"] for each in run(cli, "audit")["events"]}


@pytest.mark.parametrize(
    "settings",
    [("--host", "192.0.2.1"), ("--server-name", "example.org"), ("--public-url", "https://x.org")],
)
def test_tokens_stay_where_others_reach_the_server(cli: Cli, settings: tuple[str, str]) -> None:
    run(cli, "create", "alice")

    assert run(cli, "off", "--yes", *settings, status=5)["error"] == "permission_denied"
    assert run(cli, "list")["tokens"][0]["state"] == "active"
