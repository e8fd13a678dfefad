"""10. Code that is not trusted stays in its box; the attack list is in tests/unit/gateway/sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.security.house import SURFACES, House, Surface, make_token, serving

ATTACKS = {
    "reads a file of the server": "open({path!r}, 'rb').read(16)",
    "reads the environment": "import os\ndict(os.environ)",
    "opens a socket": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)",
    "starts a program": "import subprocess\nsubprocess.run(['id'], capture_output=True).stdout",
    "writes outside": "open('/etc/stratagem-was-here', 'w').write('x')",
}


@pytest.fixture(scope="module")
def _boxed(house: House) -> None:
    tried = house.call("rest", "admin", "code_executor", {"language": "python", "code": "1 + 1"})
    if tried.error is not None:
        # Where nothing holds, nothing runs: that is checked, and there is no more to check.
        assert tried.error in {"permission_denied", "execution_error", "service_unavailable"}
        pytest.skip("there is no sandbox here that holds")


@pytest.mark.usefixtures("_boxed")
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gains_nothing(
    house: House, surface: Surface, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_IN_ENVIRONMENT", "planted-value")
    port = house.url.rpartition(":")[2]
    code = ATTACKS[attack].format(path=str(house.path), port=port)
    arguments: dict[str, Any] = {"language": "python", "code": code}

    outcome = house.call(surface, "admin", "code_executor", arguments)

    assert "planted-value" not in outcome.text
    assert "SQLite format" not in outcome.text
    assert house.tokens["admin"] not in outcome.text
    if attack != "reads the environment":
        assert outcome.error is not None or not _worked(outcome.answer), outcome


def _worked(answer: Any) -> bool:
    """Whether the code ran to its end, as it would have to for the attack to count."""
    if not isinstance(answer, dict):
        return True
    ended = answer.get("result", answer) if "executionId" in answer else answer
    return bool(ended["success"])


@pytest.mark.parametrize("allowed", ["", "no", "yes"])
def test_code_reaches_private_addresses_only_where_that_was_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    monkeypatch.setenv("STRATAGEM_SANDBOX_NETWORK", allowed)
    path = tmp_path / "memory.db"
    secret = make_token(path, "boss", "*:admin")
    with serving(path) as house:
        house.tokens["boss"] = secret
        port = house.url.rpartition(":")[2]
        tool = {
            "name": "reach",
            "description": "Reaches the server itself.",
            "inputSchema": {"type": "object"},
            "permissions": {"network": True},
            "handler": {
                "type": "code",
                "language": "python",
                "code": f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\n1",
            },
        }
        assert house.call("rest", "boss", "tool_register", tool).error is None
        outcome = house.call("rest", "boss", "tool_execute", {"toolName": "reach"})

    if outcome.error == "execution_error":
        pytest.skip("there is no sandbox here that holds")
    assert outcome.error == (None if allowed == "yes" else "permission_denied"), outcome


def test_code_is_run_only_for_those_who_may_run_tools(house: House) -> None:
    outcome = house.call("mcp", "reader", "tool_execute", {"toolName": "code_executor"})

    assert outcome.error == "permission_denied"
