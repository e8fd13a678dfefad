"""13. Secrets are in no event, log, error, index or export; what is erased is gone from all of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway import names
from stratagem.operation import Caller
from stratagem.redaction import mask
from tests.security.house import SURFACES, House, Surface, make_token, opened, serving
from tests.surfaces.serving import Service

PLANTED = "plantedSecretValue0123456789"
PASSWORD = "hunter2hunter2hunter2"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture(scope="module")
def keeping(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path = tmp_path_factory.mktemp("keeping") / "memory.db"
    secret = make_token(path, "alice", "*:admin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRATAGEM_SECRET_API_KEY", PLANTED)
        with serving(path, allow_hosts=(service.host,)) as house:
            house.tokens["alice"] = secret
            yield house


def kept(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file())


@pytest.mark.parametrize("surface", SURFACES)
def test_a_granted_secret_is_seen_by_its_service_only(
    keeping: House, service: Service, surface: Surface, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"hook-{surface}"
    headers = {"x-key": "${API_KEY}"}
    handler = {"type": "webhook", "url": service.url("/echo"), "headers": headers, "method": "POST"}
    tool = {"name": name, "description": "d", "inputSchema": {"type": "object"}, "handler": handler}
    client = keeping.client("alice")
    assert client.post("/api/mcp/tools", json=tool).status_code == 201
    grant = {"tool": name, "name": "API_KEY", "origin": service.host}
    assert client.post("/api/mcp/secrets", json=grant).status_code == 201
    # The service repeats what it was sent, as many do, and fails with it too.
    service.answers["/echo"] = lambda said: (
        200,
        "application/json",
        b'{"got": "%s"}' % said["headers"]["x-key"].encode(),
    )
    with caplog.at_level(logging.DEBUG, "stratagem"):
        worked = keeping.call(surface, "alice", "tool_execute", {"toolName": name, "arguments": {}})
        service.answers["/echo"] = lambda said: (
            500,
            "text/plain",
            b"bad key " + said["headers"]["x-key"].encode(),
        )
        failed = keeping.call(surface, "alice", "tool_execute", {"toolName": name, "arguments": {}})
    recorded = client.get(f"/api/mcp/tools/{name}/executions").text

    assert [each["headers"]["x-key"] for each in service.received][-1] == PLANTED
    for text in (worked.text, failed.text, recorded, caplog.text, client.get("/metrics").text):
        assert PLANTED not in text
    assert PLANTED.encode() not in kept(keeping.path.parent)


@pytest.mark.parametrize("surface", SURFACES)
def test_secrets_in_an_error_are_masked_before_they_are_kept(
    keeping: House, surface: Surface
) -> None:
    token = f"ghp_{surface.ljust(36, 'a')}"
    incident = {
        "title": f"Login fails over {surface}",
        "error_signature": f"AuthError: password={PASSWORD} token {token}",
        "steps": f"export GITHUB_TOKEN={token}",
        "env": {"os": "linux"},
        "worked": True,
    }

    added = keeping.call(surface, "alice", "add_incident", incident)

    assert added.error is None, added
    looked = {"query_text": f"AuthError over {surface}", "env": {"os": "linux"}}
    found = keeping.call("rest", "alice", "ranked_solutions", looked)
    for secret in (token, PASSWORD):
        assert secret not in found.text
        # What was called is recorded as well, where it was called as a tool.
        assert secret.encode() not in kept(keeping.path.parent)


@pytest.mark.parametrize("surface", SURFACES)
def test_secrets_that_go_through_a_pipeline_are_not_kept(keeping: House, surface: Surface) -> None:
    token = f"ghp_{surface.ljust(36, 'b')}"
    step = {"id": "a", "tool": "calculator", "arguments": {"expression": "1 + 1"}}
    shown = {"id": "b", "tool": "strata_status", "arguments": {"password": PASSWORD}}

    ran = keeping.call(
        surface,
        "alice",
        "tools_pipeline",
        {"steps": [step], "input": {"password": PASSWORD, "note": f"my token is {token}"}},
    )
    keeping.call(surface, "alice", "tools_pipeline", {"steps": [shown]})

    assert ran.error is None, ran.text
    keeping.database.runtime().gateway.recorder.settle()
    for secret in (token, PASSWORD):
        assert secret.encode() not in kept(keeping.path.parent)


def test_a_run_whose_secrets_were_not_kept_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a mask in place of the value another call would be made than was meant."""

    async def killed(*_given: object, **_more: object) -> None:
        raise RuntimeError("the server is killed here")

    given = {"steps": [{"tool": "calculator"}], "input": {"password": PASSWORD}}
    with opened(tmp_path / "memory.db") as runtime:
        with monkeypatch.context() as patch:
            patch.setattr("stratagem.gateway.calls.pipelines.run_pipeline", killed)
            with pytest.raises(RuntimeError):
                runtime.call("tools_pipeline", given, Caller("test"))
        log = list(runtime.foundation.store.log())
        (run_id,) = [each.key for each in log if each.kind == names.PIPELINE_STARTED]

        with pytest.raises(ValidationFailed, match="secret"):
            runtime.call("tools_pipeline", {"resume": run_id}, Caller("test"))


def test_tokens_of_ours_are_masked_like_any_other(keeping: House) -> None:
    assert keeping.tokens["alice"] not in mask(f"curl -H 'X: {keeping.tokens['alice']}'")


def test_what_is_erased_is_gone_from_everything(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    secret = make_token(path, "alice", "*:admin")
    with serving(path, embedder="static") as house:
        house.tokens["alice"] = secret
        for surface in ("mcp", "rest"):
            key = {"key": f"diary {surface}", "value": f"unmistakable {surface} sentence"}
            house.call("rest", "alice", "strata_store", key)
            house.call("rest", "alice", "strata_branch", {"action": "fork", "name": surface})

            erased = house.call(surface, "alice", "strata_purge", {"key": f"diary {surface}"})

            assert erased.error is None
            searched = house.call(surface, "alice", "strata_search", {"query": "unmistakable"})
            assert f"unmistakable {surface}" not in searched.text.replace("query", "")
    with opened(path) as runtime:
        runtime.foundation.store.examine(lambda _done, _all, _what: None, None)
    assert b"unmistakable" not in kept(tmp_path)
