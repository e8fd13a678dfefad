"""The clients that `stratagem init` knows, and where each of them keeps what.

A path begins with the name of a folder in braces (`{home}/.cursor/mcp.json`); `Folders` says where
those are on this machine. Most clients have settings for one project and settings of the user; what
a client lacks is not in its row.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, Literal

from stratagem.clients.hook_lists import HookForm
from stratagem.deferred_dataclasses import dataclass

__all__ = ["CLIENTS", "AgentClient", "Folders", "Guidance", "Scope", "ServerFile"]

Scope = Literal["project", "user"]
# How a file has an MCP server: as a member of a JSON object, as a table of TOML, or as a file in
# YAML that is ours alone.
ServerForm = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class ServerFile:
    """Where a client looks for MCP servers; of several files the first that is there."""

    files: tuple[str, ...]
    section: str = "mcpServers"
    form: ServerForm = "json"
    # Fields of the entry besides how it is started.
    fields: Mapping[str, object] = field(default_factory=dict)
    # Whether program and arguments are one list, as opencode has them.
    joined: bool = False
    # What stands for the project's folder, for a client that starts servers in another.
    project_variable: str | None = None


@dataclass(frozen=True, slots=True)
class Guidance:
    """Where a client reads instructions for the agent: a section of a file, below a header."""

    file: str
    header: str = ""


@dataclass(frozen=True, slots=True)
class HookFile:
    """Where a client looks for hooks, and in which form."""

    file: str
    form: HookForm
    # A file of ours alone, and what it begins with.
    whole: bool = False
    base: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentClient:
    """A client: how it is found on a machine, and its files in each scope."""

    name: str
    title: str
    programs: tuple[str, ...]
    # Folders that only its installation makes.
    folders: tuple[str, ...]
    servers: Mapping[Scope, ServerFile]
    hooks: Mapping[Scope, HookFile] = field(default_factory=dict)
    plugins: Mapping[Scope, str] = field(default_factory=dict)
    guidance: Mapping[Scope, Guidance] = field(default_factory=dict)
    # What the person has to do in the client afterwards; with their own settings, if it differs.
    next_step: str = "Restart it."
    own_next_step: str | None = None
    # Clients whose hooks it runs as well as its own.
    reads_hooks_of: str | None = None

    def step_after(self, scope: Scope) -> str:
        """Return what the person has to do in the client after settings of a scope were written."""
        own = self.own_next_step if scope == "user" else None
        return own or self.next_step

    def is_installed(self, folders: Folders) -> bool:
        """Whether there are signs of it on this machine."""
        return any(map(shutil.which, self.programs)) or any(
            folders.path(each).is_dir() for each in self.folders
        )


class Folders:
    """Where the folders are that paths of clients begin with."""

    def __init__(self, here: Path, home: Path, environment: Mapping[str, str]) -> None:
        self.here: Final = here
        self.home: Final = home
        config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        # Where applications for the desktop keep their data.
        applications = config
        if sys.platform == "darwin":
            applications = home / "Library" / "Application Support"
        elif sys.platform == "win32":
            applications = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
        own_claude = environment.get("CLAUDE_CONFIG_DIR")
        claude = Path(own_claude or home / ".claude")
        self._named: Final = {
            "here": here,
            "home": home,
            "config": config,
            "applications": applications,
            "code": applications / "Code" / "User",
            "claude": claude,
            # Beside the folder, or in it where it was moved.
            "claude_state": claude if own_claude else home,
            "codex": Path(environment.get("CODEX_HOME") or home / ".codex"),
            "gemini": Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini",
            "zed": (applications / "Zed") if sys.platform == "win32" else config / "zed",
        }

    @classmethod
    def of_this_machine(cls, here: Path | None = None) -> Folders:
        """Return the folders of whoever runs this process; `here` is the project's."""
        return cls(here or Path.cwd(), Path.home(), os.environ)

    def path(self, template: str) -> Path:
        """Return the path that a template stands for."""
        name, _, rest = template.removeprefix("{").partition("}")
        return self._named[name].joinpath(*filter(None, rest.split("/")))


def _json(*files: str, section: str = "mcpServers", **fields: object) -> ServerFile:
    return ServerFile(files, section, fields=fields)


_STDIO: Final = {"type": "stdio"}
_CLINE: Final = "{code}/globalStorage/saoudrizwan.claude-dev"
_AGENTS: Final = Guidance("{here}/AGENTS.md")

CLIENTS: Final[Mapping[str, AgentClient]] = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code",
            "Claude Code",
            programs=("claude",),
            folders=("{claude}",),
            servers={
                "project": ServerFile(("{here}/.mcp.json",), fields=_STDIO),
                "user": ServerFile(("{claude_state}/.claude.json",), fields=_STDIO),
            },
            # The local file: how a command is started differs between machines.
            hooks={
                "project": HookFile("{here}/.claude/settings.local.json", "groups"),
                "user": HookFile("{claude}/settings.json", "groups"),
            },
            guidance={
                "project": Guidance("{here}/CLAUDE.md"),
                "user": Guidance("{claude}/CLAUDE.md"),
            },
            next_step="Restart it; it asks once whether to use the project's server.",
            own_next_step="Restart it.",
        ),
        AgentClient(
            "claude-desktop",
            "Claude Desktop",
            programs=(),
            folders=("{applications}/Claude",),
            servers={"user": _json("{applications}/Claude/claude_desktop_config.json")},
            next_step="Quit it and start it again.",
        ),
        AgentClient(
            "cursor",
            "Cursor",
            programs=("cursor", "cursor-agent"),
            folders=("{home}/.cursor", "{applications}/Cursor"),
            servers={
                "project": ServerFile(
                    ("{here}/.cursor/mcp.json",), project_variable="${workspaceFolder}"
                ),
                "user": _json("{home}/.cursor/mcp.json"),
            },
            hooks={
                "project": HookFile("{here}/.cursor/hooks.json", "cursor", base={"version": 1}),
                "user": HookFile("{home}/.cursor/hooks.json", "cursor", base={"version": 1}),
            },
            guidance={
                "project": Guidance(
                    "{here}/.cursor/rules/stratagem.mdc",
                    "---\ndescription: How to use the project's memory\nalwaysApply: true\n---\n",
                )
            },
            next_step="Enable the server under Settings, Tools & MCP.",
        ),
        AgentClient(
            "vscode",
            "VS Code",
            programs=("code", "code-insiders", "codium"),
            folders=("{code}",),
            servers={
                "project": ServerFile(("{here}/.vscode/mcp.json",), "servers", fields=_STDIO),
                "user": ServerFile(("{code}/mcp.json",), "servers", fields=_STDIO),
            },
            hooks={
                "project": HookFile("{here}/.github/hooks/stratagem.json", "commands", whole=True),
                "user": HookFile("{home}/.copilot/hooks/stratagem.json", "commands", whole=True),
            },
            guidance={"project": _AGENTS},
            next_step="It starts the server with the next chat and asks once whether to trust it.",
            reads_hooks_of="claude-code",
        ),
        AgentClient(
            "codex",
            "Codex",
            programs=("codex",),
            folders=("{codex}",),
            servers={
                "project": ServerFile(("{here}/.codex/config.toml",), "mcp_servers", "toml"),
                "user": ServerFile(("{codex}/config.toml",), "mcp_servers", "toml"),
            },
            hooks={
                "project": HookFile("{here}/.codex/hooks.json", "groups"),
                "user": HookFile("{codex}/hooks.json", "groups"),
            },
            guidance={"project": _AGENTS, "user": Guidance("{codex}/AGENTS.md")},
            next_step="Start it in this folder, trust the project, and approve the hooks: /hooks.",
            own_next_step="Restart it, and approve the hooks: /hooks.",
        ),
        AgentClient(
            "gemini",
            "Gemini CLI",
            programs=("gemini",),
            folders=("{gemini}",),
            servers={
                "project": _json("{here}/.gemini/settings.json"),
                "user": _json("{gemini}/settings.json"),
            },
            hooks={
                "project": HookFile("{here}/.gemini/settings.json", "groups-ms"),
                "user": HookFile("{gemini}/settings.json", "groups-ms"),
            },
            guidance={
                "project": Guidance("{here}/GEMINI.md"),
                "user": Guidance("{gemini}/GEMINI.md"),
            },
            next_step="Restart it and trust the folder; it warns once about new hooks.",
            own_next_step="Restart it.",
        ),
        AgentClient(
            "windsurf",
            "Windsurf",
            programs=("windsurf",),
            folders=("{home}/.codeium/windsurf", "{applications}/Windsurf"),
            servers={"user": _json("{home}/.codeium/windsurf/mcp_config.json")},
            guidance={
                "project": Guidance(
                    "{here}/.windsurf/rules/stratagem.md", "---\ntrigger: always_on\n---\n"
                )
            },
            next_step="Refresh the servers in Cascade.",
        ),
        AgentClient(
            "zed",
            "Zed",
            programs=("zed", "zeditor"),
            folders=("{zed}", "{applications}/Zed"),
            servers={
                "project": _json("{here}/.zed/settings.json", section="context_servers"),
                "user": _json("{zed}/settings.json", section="context_servers"),
            },
            guidance={"project": _AGENTS},
            next_step="It starts the server by itself.",
        ),
        AgentClient(
            "opencode",
            "opencode",
            programs=("opencode",),
            folders=("{config}/opencode",),
            servers={
                "project": ServerFile(
                    ("{here}/opencode.json", "{here}/opencode.jsonc"),
                    "mcp",
                    fields={"type": "local", "enabled": True},
                    joined=True,
                ),
                "user": ServerFile(
                    ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
                    "mcp",
                    fields={"type": "local", "enabled": True},
                    joined=True,
                ),
            },
            plugins={
                "project": "{here}/.opencode/plugins/stratagem.js",
                "user": "{config}/opencode/plugins/stratagem.js",
            },
            guidance={"project": _AGENTS, "user": Guidance("{config}/opencode/AGENTS.md")},
        ),
        AgentClient(
            "cline",
            "Cline",
            programs=("cline",),
            folders=(_CLINE, "{home}/.cline"),
            servers={
                "user": _json(
                    f"{_CLINE}/settings/cline_mcp_settings.json",
                    "{home}/.cline/data/settings/cline_mcp_settings.json",
                )
            },
            guidance={"project": Guidance("{here}/.clinerules/stratagem.md")},
            next_step="Enable the server under MCP Servers.",
        ),
        AgentClient(
            "continue",
            "Continue",
            programs=("cn",),
            folders=("{home}/.continue",),
            servers={
                "project": ServerFile(("{here}/.continue/mcpServers/stratagem.yaml",), form="yaml"),
                "user": ServerFile(("{home}/.continue/mcpServers/stratagem.yaml",), form="yaml"),
            },
            guidance={
                "project": Guidance(
                    "{here}/.continue/rules/stratagem.md",
                    "---\nname: Memory\nalwaysApply: true\n---\n",
                ),
                "user": Guidance(
                    "{home}/.continue/rules/stratagem.md",
                    "---\nname: Memory\nalwaysApply: true\n---\n",
                ),
            },
            next_step="Reload its window. MCP tools are offered in agent mode.",
        ),
        AgentClient(
            "jetbrains",
            "JetBrains (Junie)",
            programs=("junie", "idea", "pycharm", "webstorm", "goland", "phpstorm", "rider"),
            folders=("{home}/.junie", "{applications}/JetBrains"),
            servers={
                "project": ServerFile(("{here}/.junie/mcp/mcp.json",), project_variable="{here}"),
                "user": _json("{home}/.junie/mcp/mcp.json"),
            },
            guidance={"project": Guidance("{here}/.junie/guidelines.md")},
            next_step="AI Assistant takes the same server in its own settings, under MCP.",
        ),
    )
}
