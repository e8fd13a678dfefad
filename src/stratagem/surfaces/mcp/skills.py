"""The skill that comes with the server, and the methods that list it.

The extension `io.modelcontextprotocol/skills` serves a skill as resources, with a manifest of its
files and their digests. Ours has one file: when to store what, and how to use branches and the
debugging memory.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from stratagem.clients.skills import skill_text
from stratagem.surfaces.mcp.resource_lists import SKILL

__all__ = ["serve_skills"]

EXTENSION: Final = "io.modelcontextprotocol/skills"
# It changes with the version of the server alone.
_TTL_MS: Final = 300_000

Context = ServerRequestContext[Any, Any]


class _SkillParams(types.RequestParams):
    """Which skill is asked for."""

    uri: str


def serve_skills(server: Server[Any]) -> None:
    """Have a server say that it has a skill, list it, and describe it."""
    server.extensions[EXTENSION] = {}
    server.add_request_handler("skills/list", types.PaginatedRequestParams, _list_skills)
    server.add_request_handler("skills/get", _SkillParams, _get_skill)


async def _list_skills(context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
    del context
    if params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "This list has one page; leave the cursor out.")
    return _cacheable(skills=[_entry()])


async def _get_skill(context: Context, params: _SkillParams) -> dict[str, Any]:
    del context
    if params.uri != SKILL:
        raise MCPError(types.INVALID_PARAMS, f"There is no skill {params.uri!r}; there is {SKILL}.")
    return _cacheable(skill=_entry())


def _cacheable(**result: Any) -> dict[str, Any]:
    return {"resultType": "complete", **result, "ttlMs": _TTL_MS, "cacheScope": "public"}


@cache
def _entry() -> dict[str, Any]:
    """Return the skill as the extension describes one: its front matter, and all of its files."""
    import yaml

    text = skill_text()
    data = text.encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {
        "uri": SKILL,
        "frontmatter": yaml.safe_load(text.split("---\n")[1]),
        "resources": [{"uri": SKILL, "digest": digest, "size": len(data)}],
    }
