"""The skill that the server comes with, over the protocol."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError
from mcp_types import Request, RequestParams, Result
from pydantic import ConfigDict

from stratagem.clients.skills import skill_text
from tests.surfaces.mcp.clients import MODES, Mode, connected

pytestmark = pytest.mark.anyio

URI = "skill://stratagem-memory/SKILL.md"


class _Params(RequestParams):
    uri: str | None = None


class _Answer(Result):
    model_config = ConfigDict(extra="allow")


class _ListSkills(Request[_Params, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"
    params: _Params = _Params()


class _GetSkill(Request[_Params, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"
    params: _Params


async def ask(client: Client, request: Any) -> dict[str, Any]:
    answer = await client.session.send_request(request, _Answer)
    return answer.model_dump(by_alias=True, mode="json")


@pytest.mark.parametrize("mode", MODES)
async def test_the_skill_is_listed_with_a_digest_of_what_is_read(path: Path, mode: Mode) -> None:
    async with connected(path, mode) as client:
        listed = await ask(client, _ListSkills())
        got = await ask(client, _GetSkill(params=_Params(uri=URI)))
        (content,) = (await client.read_resource(URI)).contents

    (skill,) = listed["skills"]
    data = getattr(content, "text", "").encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert skill == got["skill"]
    assert skill["uri"] == URI
    assert skill["resources"] == [{"uri": URI, "digest": digest, "size": len(data)}]
    assert skill["frontmatter"]["name"] == "stratagem-memory"
    assert data.decode() == skill_text()


async def test_a_server_of_the_present_protocol_says_that_it_has_skills(path: Path) -> None:
    async with connected(path, "auto") as client:
        capabilities = client.server_capabilities

    assert (capabilities.extensions or {}).get("io.modelcontextprotocol/skills") == {}


async def test_another_skill_is_a_wrong_parameter(path: Path) -> None:
    async with connected(path, "auto") as client:
        with pytest.raises(MCPError) as caught:
            await ask(client, _GetSkill(params=_Params(uri="skill://other/SKILL.md")))

    assert caught.value.error.code == -32602
