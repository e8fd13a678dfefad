"""MCP servers from the settings files of other programs, read as definitions of ours.

Read are `mcpServers` (Claude, Cursor and most others), `servers` of VS Code, `mcp_servers` of Codex
(TOML) and the `server.json` of the MCP registry. Nothing is started here, and no secret is taken
over: a value that may be one becomes a reference `${NAME}`, which an administrator grants.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.redaction import mask

__all__ = ["ImportedServer", "path_variables", "read_servers"]

_SECRET_NAME: Final = re.compile(
    r"authorization|cookie|token|secret|passw|credential|api[-_]?key|private[-_]?key|_key\b|pat\b",
    re.IGNORECASE,
)
# ${VAR}, ${env:VAR}, ${input:name} and $VAR, as these programs write what they put in.
_REFERENCE: Final = re.compile(r"\$\{(?:(?:env|input):)?([A-Za-z_][\w-]*)(?::-[^}$]*+)?\}")
# Paths that Cursor and VS Code put in; they are no variables of the environment.
_PATH_VARIABLE: Final = re.compile(r"\$\{(workspaceFolder(?:Basename)?|userHome|pathSeparator|/)\}")
# Folders of a project in which these programs keep their settings.
_SETTINGS_FOLDERS: Final = frozenset({".cursor", ".vscode"})
_WHOLE: Final = re.compile(r"\$\{[A-Za-z_]\w*\}")
# What masking puts in place of a credential. Homes, hosts and addresses are none.
_CREDENTIALS: Final = ("[token]", "[secret]", "[key]", "[hash]", "[hex]", "[uuid]", "[masked]")
_SCHEME: Final = re.compile(r"(Bearer|Basic|Token)\s+", re.IGNORECASE)
_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
# By kind of package: the program that runs it, its first arguments, and what precedes a version.
_PACKAGES: Final[Mapping[str, tuple[str, tuple[str, ...], str]]] = {
    "npm": ("npx", ("-y",), "@"),
    "pypi": ("uvx", (), "=="),
    "oci": ("docker", ("run", "-i", "--rm"), ":"),
}


@dataclass(slots=True)
class ImportedServer:
    """A server of a file: the arguments of `server_add`, what it needs, and what to know of it.

    `secrets` are the names that its definition refers to. `problem`: why it cannot be added.
    """

    name: str
    definition: dict[str, Any] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str | None = None


def path_variables(file: Path) -> dict[str, str]:
    """Return the paths that a settings file may refer to: of the user, and of the file's project.

    A file in the user's own home belongs to no project.
    """
    home = Path.home()
    paths = {"userHome": str(home), "pathSeparator": os.sep, "/": os.sep}
    folder = file.absolute().parent
    project = folder.parent if folder.name in _SETTINGS_FOLDERS else folder
    if project != home:
        paths |= {"workspaceFolder": str(project), "workspaceFolderBasename": project.name}
    return paths


def read_servers(text: str, paths: Mapping[str, str] | None = None) -> list[ImportedServer]:
    """Return the servers that the text of a file describes, in its order.

    `paths` are put in where the file refers to them (`path_variables`).

    Raises:
        ValidationFailed: It is none of the forms that are known.
    """
    document = _parse(text)
    listed = _find_entries(document)
    if listed is not None:
        return [
            _read_entry(str(name), _put_paths_in(entry, paths or {}))
            for name, entry in listed.items()
        ]
    if "packages" in document or "remotes" in document:
        return [_read_registry(document)]
    raise ValidationFailed(
        "This file names no MCP servers.",
        field="file",
        hint="Known keys: mcpServers (Claude, Cursor), servers (VS Code), mcp_servers (Codex) and "
        "the server.json of the MCP registry.",
    )


def _parse(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        document = _parse_otherwise(text)
    if not isinstance(document, Mapping):
        raise ValidationFailed("This file does not hold an object.", field="file")
    return document


def _parse_otherwise(text: str) -> Any:
    """Read TOML, or JSON with comments, as VS Code and Cursor take it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as toml:
        try:
            return json.loads(_without_comments(text))
        except ValueError as error:
            what = toml if not text.lstrip().startswith("{") else error
            raise ValidationFailed(
                f"This file is neither JSON nor TOML: {what}.",
                field="file",
                hint="Give the settings file of the program itself.",
            ) from error


def _without_comments(text: str) -> str:
    """Return JSON without comments, and without commas before the end of a list or object."""
    kept: list[str] = []
    at, end = 0, len(text)
    while at < end:
        char, following = text[at], at + 1
        if char == '"':
            while following < end and text[following] != '"':
                following += 2 if text[following] == "\\" else 1
            following += 1
        elif text.startswith("//", at):
            found = text.find("\n", at)
            at = end if found < 0 else found
            continue
        elif text.startswith("/*", at):
            found = text.find("*/", at + 2)
            at = end if found < 0 else found + 2
            continue
        elif char in "}]":
            while kept and kept[-1].isspace():
                kept.pop()
            if kept and kept[-1] == ",":
                kept.pop()
        kept.append(text[at:following])
        at = following
    return "".join(kept)


def _find_entries(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    vs_code = document.get("mcp")
    places = (
        document.get("mcpServers"),
        document.get("mcp_servers"),
        document.get("servers"),
        vs_code.get("servers") if isinstance(vs_code, Mapping) else None,
    )
    return next((each for each in places if isinstance(each, Mapping)), None)


def _put_paths_in(value: Any, paths: Mapping[str, str]) -> Any:
    """Return an entry with the paths that are known in place of the references to them."""
    if isinstance(value, str):
        return _PATH_VARIABLE.sub(lambda found: paths.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {name: _put_paths_in(each, paths) for name, each in value.items()}
    if isinstance(value, list):
        return [_put_paths_in(each, paths) for each in value]
    return value


def _read_entry(name: str, entry: Any) -> ImportedServer:
    server = ImportedServer(_NAME.sub("-", name).strip("-.")[:64] or "server")
    if not isinstance(entry, Mapping):
        server.problem = "its entry is not an object"
    elif entry.get("disabled") is True or entry.get("enabled") is False:
        server.problem = "it is switched off in the file"
    elif isinstance(url := entry.get("url", entry.get("serverUrl")), str):
        server.definition = {
            "name": server.name,
            "transport": "http",
            "url": _check_text("address", url, server),
            "headers": _read_headers(entry, server),
            **_read_sign_in(entry.get("auth"), server),
        }
    elif isinstance(entry.get("command"), str):
        server.definition = {
            "name": server.name,
            "transport": "stdio",
            "command": _check_text("program", entry["command"], server),
            "args": [
                _check_text("argument", str(each), server) for each in _sequence(entry.get("args"))
            ],
            "env": _read_values(entry.get("env"), server),
        }
    else:
        server.problem = "it has neither a command nor a url"
    if entry and isinstance(entry, Mapping) and entry.get("cwd"):
        server.notes.append(f"it will be started in this folder, not in {entry['cwd']}")
    if isinstance(entry, Mapping) and entry.get("envFile"):
        server.notes.append(f"{entry['envFile']} was not read: set the variables it needs in env")
    return server


def _read_headers(entry: Mapping[str, Any], server: ImportedServer) -> dict[str, str]:
    headers = _read_values(entry.get("headers", entry.get("http_headers")), server)
    # Codex names the variables instead of the values.
    for name, variable in _pairs(entry.get("env_http_headers")):
        headers[name] = _reference(str(variable), server)
    if isinstance(variable := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer {_reference(variable, server)}"
    return headers


def _read_sign_in(given: Any, server: ImportedServer) -> dict[str, Any]:
    """Return how users sign in, where Cursor's `auth` names the client that it is known as."""
    if not isinstance(given, Mapping) or not isinstance(client := given.get("CLIENT_ID"), str):
        return {}
    auth = {"type": "oauth", "clientId": _check_text("CLIENT_ID", client, server)}
    if given.get("CLIENT_SECRET"):
        (auth["clientSecret"],) = _read_values(
            {"CLIENT_SECRET": given["CLIENT_SECRET"]}, server
        ).values()
    if scopes := _sequence(given.get("scopes")):
        auth["scope"] = " ".join(map(str, scopes))
    return {"auth": auth}


def _read_values(given: Any, server: ImportedServer) -> dict[str, str]:
    """Return variables or headers, with references where a value may be a secret."""
    values: dict[str, str] = {}
    for name, value in _pairs(given):
        if unknown := _PATH_VARIABLE.search(str(value)):
            server.problem = f"{unknown[0]} in {name} is known only to the other program"
        text = _refer(str(value), server)
        if not _WHOLE.search(text) and _may_be_secret(name, text):
            scheme = found[0] if (found := _SCHEME.match(text)) else ""
            text = scheme + _reference(f"{server.name}_{name}", server)
            server.notes.append(f"{name} was not taken over: it may be a secret")
        values[name] = text
    return values


def _may_be_secret(name: str, text: str) -> bool:
    return bool(_SECRET_NAME.search(name)) or _holds_credential(text)


def _holds_credential(text: str) -> bool:
    masked = mask(text, "strict")
    return any(masked.count(each) > text.count(each) for each in _CREDENTIALS)


def _refer(text: str, server: ImportedServer) -> str:
    """Return a text whose references are ours."""
    return _REFERENCE.sub(lambda found: _reference(found[1], server), text)


def _check_text(what: str, text: str, server: ImportedServer) -> str:
    """Note a text that refers to something, or is a secret: only variables and headers can."""
    if _REFERENCE.search(text):
        server.problem = f"its {what} {text} is filled in only by the other program"
    elif _holds_credential(text):
        server.problem = f"its {what} may hold a secret: pass it by a variable or header"
        return mask(text, "strict")
    return text


def _reference(name: str, server: ImportedServer) -> str:
    known = re.sub(r"\W", "_", name, flags=re.ASCII).upper()
    if known not in server.secrets:
        server.secrets.append(known)
    return f"${{{known}}}"


def _read_registry(document: Mapping[str, Any]) -> ImportedServer:
    """Read a server.json: a remote where there is one, else the first package that can be run."""
    name = str(document.get("name") or "server").rpartition("/")[2]
    server = ImportedServer(_NAME.sub("-", name).strip("-.")[:64] or "server")
    for remote in _sequence(document.get("remotes")):
        # One by SSE is called by HTTP too: which it speaks is found when it is called.
        if isinstance(remote, Mapping) and remote.get("type") in {"streamable-http", "http", "sse"}:
            server.definition = {
                "name": server.name,
                "transport": "http",
                "url": str(remote.get("url", "")),
                "headers": dict(_read_inputs(remote.get("headers"), server)),
            }
            return server
    for package in _sequence(document.get("packages")):
        if isinstance(package, Mapping) and (
            run := _PACKAGES.get(str(package.get("registryType")))
        ):
            server.definition = _run_package(package, run, server)
            return server
    server.problem = "it has neither an HTTP remote nor a package of npm, PyPI or OCI"
    return server


def _run_package(
    package: Mapping[str, Any], run: tuple[str, Sequence[str], str], server: ImportedServer
) -> dict[str, Any]:
    command, first, separator = run
    version = package.get("version")
    identifier = str(package.get("identifier", ""))
    pinned = (
        f"{identifier}{separator}{version}" if version and ":" not in identifier else identifier
    )
    env = dict(_read_inputs(package.get("environmentVariables"), server))
    passed = [word for each in env for word in ("-e", each)] if command == "docker" else []
    return {
        "name": server.name,
        "transport": "stdio",
        "command": command,
        "args": [*first, *passed, pinned, *_arguments(package.get("packageArguments"), server)],
        "env": env,
    }


def _read_inputs(given: Any, server: ImportedServer) -> Iterator[tuple[str, str]]:
    """Yield variables or headers of a server.json, each with its value or a reference to it."""
    for each in _sequence(given):
        if not isinstance(each, Mapping) or not isinstance(name := each.get("name"), str):
            continue
        value = each.get("value", each.get("default"))
        if each.get("isSecret") or (value is None and each.get("isRequired")):
            yield name, _reference(name, server)
        elif value is not None:
            yield name, str(value)


def _arguments(given: Any, server: ImportedServer) -> Iterator[str]:
    for each in _sequence(given):
        if not isinstance(each, Mapping):
            continue
        value = each.get("value", each.get("default"))
        if each.get("type") == "named":
            yield str(each.get("name", ""))
        if value is not None:
            yield str(value)
        elif each.get("isRequired"):
            name = each.get("valueHint") or each.get("name") or "an argument"
            server.problem = f"it needs a value for {name}: add it by `stratagem tools add --mcp`"


def _pairs(given: Any) -> list[tuple[str, Any]]:
    return [(str(name), each) for name, each in given.items()] if isinstance(given, Mapping) else []


def _sequence(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else ()
