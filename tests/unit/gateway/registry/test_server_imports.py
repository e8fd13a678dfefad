"""Settings files of other programs, read as definitions of servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway.registry.server_imports import path_variables, read_servers
from stratagem.gateway.registry.sources import guess_category

FILES = {"command": "npx", "args": ["-y", "server-files", "/data"]}
COMMENTED = """{ // of VS Code
 "servers": {"files": {"command": "npx", /* ,} */ "args": ["-y", "server-files", "/data",],},},}"""
STDIO = {"transport": "stdio", "env": {}, **FILES}


def definitions(text: str) -> dict[str, dict[str, Any]]:
    return {
        each.name: {name: part for name, part in each.definition.items() if name != "name"}
        for each in read_servers(text)
    }


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"mcpServers": {"files": FILES}}),
        json.dumps({"servers": {"files": {"type": "stdio", **FILES}}, "inputs": []}),
        json.dumps({"mcp": {"servers": {"files": FILES}}}),
        COMMENTED,
        '[mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "server-files", "/data"]\n',
    ],
    ids=["mcpServers", "vscode", "vscode settings", "with comments", "codex"],
)
def test_the_forms_of_claude_cursor_vscode_and_codex_say_the_same(text: str) -> None:
    assert definitions(text) == {"files": STDIO}


def test_no_secret_is_taken_over() -> None:
    env = {"GITHUB_TOKEN": "ghp_1234567890abcdefghijklmnopqrstuvwxyzAB", "HOME_DIR": "/data"}
    headers = {"Authorization": "Bearer abc.def", "X-Team": "red", "X-Api-Key": "${input:api-key}"}
    given = {
        "gh": {**FILES, "env": env},
        "web": {"url": "https://x.example/mcp", "headers": headers},
    }

    process, remote = read_servers(json.dumps({"mcpServers": given}))

    assert process.definition["env"] == {"GITHUB_TOKEN": "${GH_GITHUB_TOKEN}", "HOME_DIR": "/data"}
    assert process.secrets == ["GH_GITHUB_TOKEN"]
    assert remote.definition["headers"] == {
        "Authorization": "Bearer ${WEB_AUTHORIZATION}",
        "X-Team": "red",
        "X-Api-Key": "${API_KEY}",
    }
    assert "ghp_" not in str((process, remote))


def test_paths_that_cursor_puts_in_are_those_of_the_project(tmp_path: Path) -> None:
    entry = {
        "command": "${userHome}/bin/server",
        "args": ["--root=${workspaceFolder}${/}data", "${workspaceFolderBasename}"],
        "env": {"DATA": "${workspaceFolder}${pathSeparator}data", "API_KEY": "${env:API_KEY}"},
        "envFile": "${workspaceFolder}/.env",
    }

    (server,) = read_servers(
        json.dumps({"mcpServers": {"x": entry}}), path_variables(tmp_path / ".cursor" / "mcp.json")
    )

    assert server.problem is None
    assert server.definition["command"] == str(Path.home() / "bin" / "server")
    assert server.definition["args"] == [f"--root={tmp_path / 'data'}", tmp_path.name]
    assert server.definition["env"] == {"DATA": str(tmp_path / "data"), "API_KEY": "${API_KEY}"}
    assert server.secrets == ["API_KEY"]
    assert str(tmp_path / ".env") in server.notes[0]


def test_the_users_own_file_belongs_to_no_project() -> None:
    assert "workspaceFolder" not in path_variables(Path.home() / ".cursor" / "mcp.json")


def test_the_client_that_cursor_signs_in_as_is_kept_without_its_secret() -> None:
    auth = {"CLIENT_ID": "desk", "CLIENT_SECRET": "hunter22", "scopes": ["read", "write"]}
    entry = {"url": "https://x.example/mcp", "auth": auth}

    (server,) = read_servers(json.dumps({"mcpServers": {"x": entry}}))

    assert server.definition["auth"] == {
        "type": "oauth",
        "clientId": "desk",
        "clientSecret": "${X_CLIENT_SECRET}",
        "scope": "read write",
    }
    assert server.secrets == ["X_CLIENT_SECRET"]


def test_homes_hosts_and_addresses_are_no_secrets() -> None:
    process = {
        "command": "/home/bob/bin/server",
        "args": ["/home/bob/notes", "--host=127.0.0.1"],
        "env": {"API_URL": "https://api.example.com/v4", "OWNER": "bob@example.com"},
    }
    remote = {"url": "https://api.example.com/mcp", "headers": {"X-Team": "red.example.com"}}

    found = definitions(json.dumps({"mcpServers": {"process": process, "remote": remote}}))

    assert found == {
        "process": {"transport": "stdio", **process},
        "remote": {"transport": "http", **remote},
    }


@pytest.mark.parametrize(
    "url", ["https://x.example/mcp?api_key=abcd1234efgh5678", "https://bob:hunter22@x.example/mcp"]
)
def test_an_address_that_holds_a_secret_is_not_taken_over(url: str) -> None:
    (server,) = read_servers(json.dumps({"mcpServers": {"x": {"url": url}}}))

    assert server.problem
    assert server.definition["url"] != url


@pytest.mark.parametrize("kind", [{}, {"type": "sse"}, {"transport": "sse"}, {"type": "http"}])
def test_a_server_of_the_older_transport_is_added_by_its_address(kind: dict[str, str]) -> None:
    entry = {**kind, "url": "https://x.example/sse"}
    remote = {"type": "sse", "url": entry["url"]}

    (of_file,) = read_servers(json.dumps({"mcpServers": {"x": entry}}))
    (of_registry,) = read_servers(json.dumps({"name": "a/x", "remotes": [remote]}))

    assert of_file.definition == of_registry.definition
    assert of_file.definition["transport"] == "http"
    assert of_file.problem is None


def test_codex_names_variables_of_headers() -> None:
    text = '[mcp_servers.web]\nurl = "https://x.example/mcp"\nbearer_token_env_var = "WEB_TOKEN"\n'

    (server,) = read_servers(text)

    assert server.definition["headers"] == {"Authorization": "Bearer ${WEB_TOKEN}"}


def test_a_server_json_of_the_registry_is_a_package_or_a_remote() -> None:
    variables = [
        {"name": "API_KEY", "isSecret": True, "isRequired": True},
        {"name": "MODE", "default": "fast"},
        {"name": "UNUSED"},
    ]
    package = {
        "registryType": "npm",
        "identifier": "@acme/server",
        "version": "1.2.3",
        "packageArguments": [{"type": "named", "name": "--port", "value": "1"}],
        "environmentVariables": variables,
    }
    remote = {"type": "streamable-http", "url": "https://x.example/mcp"}

    (run,) = read_servers(json.dumps({"name": "io.github.acme/server", "packages": [package]}))
    (called,) = read_servers(
        json.dumps({"name": "x/y", "packages": [package], "remotes": [remote]})
    )
    (unknown,) = read_servers(json.dumps({"name": "x", "packages": [{"registryType": "nuget"}]}))

    assert run.definition == {
        "name": "server",
        "transport": "stdio",
        "command": "npx",
        "args": ["-y", "@acme/server@1.2.3", "--port", "1"],
        "env": {"API_KEY": "${API_KEY}", "MODE": "fast"},
    }
    assert called.definition["url"] == "https://x.example/mcp"
    assert unknown.problem


@pytest.mark.parametrize(
    "entry",
    [
        {"disabled": True, **FILES},
        {**FILES, "args": ["--token", "${input:token}"]},
        {"command": "${userHome}/bin/server"},
        {**FILES, "env": {"ROOT": "${workspaceFolder}/data"}},
        {"url": "${env:ADDRESS}"},
        {"url": "https://x.example/mcp", "auth": {"CLIENT_ID": "${env:CLIENT}"}},
        {"args": []},
        "npx",
    ],
)
def test_what_cannot_be_added_says_why(entry: Any) -> None:
    (server,) = read_servers(json.dumps({"mcpServers": {"x": entry}}))

    assert server.problem


@pytest.mark.parametrize("text", ["[]", "{}", "{", "[mcp"])
def test_another_file_is_refused_with_the_forms_that_are_known(text: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        read_servers(text)

    assert refusal.value.details["field"] == "file"


@pytest.mark.parametrize(
    ("name", "description", "hints", "category"),
    [
        ("search_code", "Search files for words.", {}, "search"),
        ("read_text_file", "Read a file.", {}, "filesystem"),
        ("createIssue", "Open an issue in a repository.", {}, "integration"),
        ("ping", "Ask whether it is there.", {"openWorldHint": True}, "integration"),
        ("ping", "Ask whether it is there.", {}, "utility"),
    ],
)
def test_a_category_is_guessed(name: str, description: str, hints: Any, category: str) -> None:
    assert guess_category(name, description, hints) == category
