"""The packages of `plugins/`: Stratagem as clients install it from a folder or a marketplace.

All of them are made from the lists of hooks, the skill and the version that the rest of the code
uses, by `make generate`; a test holds that the files are what this module makes. They start
`stratagem` from the PATH: what is shared must not name a folder of one machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from stratagem.clients.guidance import GUIDANCE
from stratagem.clients.hook_lists import (
    HOOKS,
    HookForm,
    HookTarget,
    hook_command,
    hook_group,
    plugin_source,
)
from stratagem.clients.skills import SKILL_NAME, skill_text
from stratagem.version import VERSION

__all__ = ["package_files"]

_PROGRAM: Final = ["stratagem"]
_SERVER: Final = {"command": "stratagem", "args": ["mcp"]}
_DESCRIPTION: Final = (
    "Long-term memory for coding agents: automatic recall, fixes ranked by evidence, branches."
)
_KEYWORDS: Final = ["memory", "mcp", "debugging", "agents", "branching"]
_AUTHOR: Final = {"name": "The Stratagem authors"}
_LICENSE: Final = "Apache-2.0"
# Of the registry of MCP servers: the account that publishes it owns the name.
_REGISTRY_NAME: Final = "io.github.stratagem-memory/stratagem"


def package_files() -> dict[str, str]:
    """Return every file of the packages, by its path below `plugins/`."""
    documents: dict[str, Any] = {
        **_claude_code(),
        **_codex(),
        **_cursor(),
        **_gemini(),
        **_agent_plugin(),
        "server.json": _registry_entry(),
    }
    files = {
        name: json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        for name, document in documents.items()
    }
    for package in ("claude-code", "codex", "cursor", "gemini", "agent-plugin"):
        files[f"{package}/skills/{SKILL_NAME}/SKILL.md"] = skill_text()
    files["gemini/GEMINI.md"] = GUIDANCE
    files["opencode/stratagem.js"] = plugin_source(_PROGRAM)
    return files


def _about(**more: Any) -> dict[str, Any]:
    return {
        "name": "stratagem",
        "version": VERSION,
        "description": _DESCRIPTION,
        "author": _AUTHOR,
        "license": _LICENSE,
        "keywords": _KEYWORDS,
        **more,
    }


def _hooks(client: str, form: HookForm, **base: Any) -> dict[str, Any]:
    target = HookTarget(hook_command(_PROGRAM, client))
    lists = {hook.event: [hook_group(form, hook, target)] for hook in HOOKS[client]}
    return {**base, "hooks": lists}


def _claude_code() -> Mapping[str, Any]:
    return {
        "claude-code/.claude-plugin/plugin.json": _about(),
        "claude-code/.mcp.json": {"mcpServers": {"stratagem": _SERVER}},
        "claude-code/hooks/hooks.json": _hooks("claude-code", "groups"),
        ".claude-plugin/marketplace.json": {
            "name": "stratagem",
            "owner": _AUTHOR,
            "metadata": {"description": _DESCRIPTION, "version": VERSION},
            "plugins": [
                {
                    "name": "stratagem",
                    "source": "./claude-code",
                    "version": VERSION,
                    "description": _DESCRIPTION,
                }
            ],
        },
    }


def _codex() -> Mapping[str, Any]:
    interface = {
        "displayName": "Stratagem",
        "shortDescription": "Automatic long-term memory",
        "longDescription": _DESCRIPTION,
        "developerName": _AUTHOR["name"],
        "category": "Productivity",
        "capabilities": ["Interactive", "Write"],
        "defaultPrompt": ["What do you remember about this repository?"],
    }
    source = {"source": "local", "path": "./codex"}
    policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    return {
        "codex/.codex-plugin/plugin.json": _about(
            skills="./skills/",
            mcpServers="./.mcp.json",
            hooks="./hooks/hooks.json",
            interface=interface,
        ),
        "codex/.mcp.json": {"mcpServers": {"stratagem": _SERVER}},
        "codex/hooks/hooks.json": _hooks("codex", "groups"),
        ".agents/plugins/marketplace.json": {
            "name": "stratagem",
            "interface": {"displayName": "Stratagem"},
            "plugins": [
                {
                    "name": "stratagem",
                    "source": source,
                    "policy": policy,
                    "category": interface["category"],
                }
            ],
        },
    }


def _cursor() -> Mapping[str, Any]:
    return {
        "cursor/.cursor-plugin/plugin.json": _about(
            skills="./skills/", hooks="./hooks/hooks.json", mcpServers="./mcp.json"
        ),
        "cursor/mcp.json": {"mcpServers": {"stratagem": _SERVER}},
        "cursor/hooks/hooks.json": _hooks("cursor", "cursor", version=1),
        ".cursor-plugin/marketplace.json": {
            "name": "stratagem",
            "owner": _AUTHOR,
            "plugins": [{"name": "stratagem", "source": "./cursor", "description": _DESCRIPTION}],
        },
    }


def _gemini() -> Mapping[str, Any]:
    return {
        "gemini/gemini-extension.json": {
            "name": "stratagem",
            "version": VERSION,
            "description": _DESCRIPTION,
            "mcpServers": {"stratagem": _SERVER},
            "contextFileName": "GEMINI.md",
        },
        "gemini/hooks/hooks.json": _hooks("gemini", "groups-ms"),
    }


def _agent_plugin() -> Mapping[str, Any]:
    """Return the package that any client of Agent Plugins 1.0 reads; VS Code finds hooks in it."""
    schemas = "https://agent-plugins.org/schemas/1.0.0"
    return {
        "agent-plugin/plugin.json": {"$schema": f"{schemas}/plugin.schema.json", **_about()},
        "agent-plugin/mcp.json": {
            "$schema": f"{schemas}/mcp.schema.json",
            "mcpServers": {"stratagem": {"type": "stdio", **_SERVER}},
        },
        "agent-plugin/com.github.copilot/hooks/hooks.json": _hooks("vscode", "commands"),
    }


def _registry_entry() -> dict[str, Any]:
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": _REGISTRY_NAME,
        "title": "Stratagem",
        "description": _DESCRIPTION,
        "version": VERSION,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "stratagem",
                "version": VERSION,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "mcp"}],
                "environmentVariables": [
                    {
                        "name": "STRATAGEM_DB",
                        "description": "Which database: a file, or postgresql://…",
                        "isRequired": False,
                    },
                    {
                        "name": "STRATAGEM_TOOLSETS",
                        "description": "Which tools to offer, separated by commas",
                        "isRequired": False,
                    },
                ],
            }
        ],
    }
