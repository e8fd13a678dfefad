"""Our server, hooks and guidance in the text of a settings file, and out of it again.

The result is parsed and compared with the intended settings; a text that cannot be changed safely
is refused, and the caller shows what to paste.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from stratagem.clients.catalogue import HookFile, ServerFile
from stratagem.clients.hook_lists import Hook, HookTarget, hook_group, is_own_handler
from stratagem.clients.json_edit import JsonText, Path
from stratagem.errors import InvalidInput

__all__ = [
    "NAME",
    "drop_hooks",
    "drop_server",
    "hook_targets",
    "put_hooks",
    "put_server",
    "read_server",
    "server_snippet",
    "with_section",
    "without_section",
]

NAME: Final = "stratagem"
BEGIN: Final = "<!-- stratagem:begin -->"
END: Final = "<!-- stratagem:end -->"
_HOOKS: Final = "hooks"
# The parts of the path of a group, or of a plain command.
_GROUP: Final = ("hooks", "event", "number")


def read_server(text: str, place: ServerFile) -> dict[str, Any] | None:
    """Return our server as a file has it, with `command` and `args`; None where it has none.

    Raises:
        InvalidInput: The text is not of the form that was expected.
    """
    entry = _servers(_parse_settings(text, place), place.section).get(NAME)
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        raise _not_servers(place.section)
    if place.joined:
        command = entry.get("command")
        program, *args = command if isinstance(command, list) and command else [None]
        return {**entry, "command": program, "args": args, "env": entry.get("environment")}
    return dict(entry)


def put_server(text: str, place: ServerFile, entry: Mapping[str, Any]) -> str:
    """Return a file's text with our server in it; fields that somebody added to it are kept.

    Raises:
        InvalidInput: It cannot be changed safely.
    """
    if place.form == "yaml":
        return _put_yaml_server(text, entry)
    settings = _parse_settings(text, place)
    there = _servers(settings, place.section).get(NAME, {})
    if not isinstance(there, Mapping):
        raise _not_servers(place.section)
    wanted = {**there, **entry}
    if there == wanted:
        return text
    expected = {**settings, place.section: {**settings.get(place.section, {}), NAME: wanted}}
    if place.form == "toml":
        changed = _toml_with(text, place.section, entry)
        return _check_result(changed, tomllib.loads, expected)
    return _edit_json(text, lambda it: it.with_value((place.section, NAME), wanted), expected)


def drop_server(text: str, place: ServerFile) -> str:
    """Return a file's text without our server.

    Raises:
        InvalidInput: It cannot be changed safely.
    """
    settings = _parse_settings(text, place)
    servers = _servers(settings, place.section)
    if NAME not in servers:
        return text
    rest = {name: each for name, each in servers.items() if name != NAME}
    expected = {**settings, place.section: rest}
    if place.form == "toml":
        changed = _toml_without(text, place.section)
        # A table of tables that has none left is not written at all.
        loaded = tomllib.loads(changed)
        return _check_result(changed, lambda _: {place.section: {}, **loaded}, expected)
    return _edit_json(text, lambda it: it.without((place.section, NAME)), expected)


def server_snippet(place: ServerFile, entry: Mapping[str, Any]) -> str:
    """Return what to paste where a file cannot be changed."""
    if place.form == "toml":
        fields = ", ".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()
        )
        return f"stratagem = {{{fields}}}"
    return f'"{NAME}": {json.dumps(entry, ensure_ascii=False)}'


def hook_targets(text: str) -> list[str]:
    """Return what the hooks of ours that a file has call, each once: commands and addresses.

    Raises:
        InvalidInput: The text is not of the form that was expected.
    """
    settings = JsonText(text or "{}").value
    handlers = [handler for _, handler in _own_handlers(_hook_lists(settings))]
    return sorted({each.get("url") or each["command"] for each in handlers})


def put_hooks(text: str, place: HookFile, hooks: Iterable[Hook], target: HookTarget) -> str:
    """Return a file's text with one hook of ours for each event, and those of others as they are.

    Raises:
        InvalidInput: It cannot be changed safely.
    """
    wanted = {hook.event: hook_group(place.form, hook, target) for hook in hooks}
    lists = {event: [group] for event, group in wanted.items()}
    if place.whole or not text.strip():
        fresh = {**place.base, _HOOKS: lists}
        same = text.strip() and JsonText(text).value == fresh
        return text if same else json.dumps(fresh, indent=2, ensure_ascii=False) + "\n"
    there = _hook_lists(JsonText(text).value)
    if all(
        _own_groups(there.get(event, [])) == [group] for event, group in wanted.items()
    ) and not any(_own_groups(groups) for event, groups in there.items() if event not in wanted):
        return text
    changed = drop_hooks(text)
    for key, value in place.base.items():
        if key not in JsonText(changed).value:
            changed = JsonText(changed).with_value((key,), value)
    for event, group in wanted.items():
        document = JsonText(changed)
        if isinstance(_hook_lists(document.value).get(event), list):
            changed = document.with_element((_HOOKS, event), group)
        else:
            changed = document.with_value((_HOOKS, event), [group])
    return _check_result(changed, hook_targets, hook_targets(json.dumps({_HOOKS: lists})))


def drop_hooks(text: str) -> str:
    """Return a file's text without any hook of ours.

    Raises:
        InvalidInput: It cannot be changed safely.
    """
    while True:
        document = JsonText(text)
        paths = [path for path, _ in _own_handlers(_hook_lists(document.value))]
        if not paths:
            return text
        # The last first, so that the numbers of those before it stay.
        path = paths[-1]
        # A group of one handler goes with it.
        in_group = len(path) > len(_GROUP)
        group = path[: len(_GROUP)]
        alone = in_group and len(_at(document.value, group)[_HOOKS]) == 1
        text = document.without(group if alone else path)


def with_section(text: str, words: str) -> str:
    """Return a text with our words between our marks, in the place of what was between them."""
    section = f"{BEGIN}\n{words.strip()}\n{END}"
    begin, end = text.find(BEGIN), text.find(END)
    if 0 <= begin < end:
        return text[:begin] + section + text[end + len(END) :]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{section}\n"


def without_section(text: str) -> str:
    """Return a text without our marks, what is between them, and the empty line above."""
    begin, end = text.find(BEGIN), text.find(END)
    if not 0 <= begin < end:
        return text
    before, after = text[:begin], text[end + len(END) :].removeprefix("\n")
    if before.endswith("\n\n") and (not after or after.startswith("\n")):
        before = before[:-1]
    return before + after


def _parse_settings(text: str, place: ServerFile) -> dict[str, Any]:
    """Return the settings of a file.

    Raises:
        InvalidInput: They cannot be read.
    """
    if place.form == "toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"It is not TOML: {error}.") from error
    if place.form == "yaml":
        return _parse_yaml(text)
    settings = JsonText(text).value if text.strip() else {}
    if not isinstance(settings, dict):
        raise InvalidInput("It is JSON, but not an object.")
    return settings


def _parse_yaml(text: str) -> dict[str, Any]:
    """Return the settings of a file in YAML, its list of servers as an object by their names."""
    import yaml

    try:
        settings = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise InvalidInput("It is not YAML.") from error
    listed = settings.get("mcpServers", []) if isinstance(settings, dict) else None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise _not_servers("mcpServers")
    servers = {str(each.get("name")): each for each in listed}
    return {**settings, "mcpServers": servers}


def _put_yaml_server(text: str, entry: Mapping[str, Any]) -> str:
    import yaml

    server = {"name": NAME, **entry}
    there = _parse_yaml(text).get("mcpServers", {})
    if there == {NAME: server}:
        return text
    if there.keys() - {NAME}:
        raise InvalidInput("It has other servers, too.")
    block = {"name": "Stratagem", "version": "0.0.1", "schema": "v1", "mcpServers": [server]}
    return yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=10_000)


def _servers(settings: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    servers = settings.get(section, {})
    if not isinstance(servers, Mapping):
        raise _not_servers(section)
    return servers


def _not_servers(section: str) -> InvalidInput:
    return InvalidInput(f"Its `{section}` is not an object of servers.")


def _toml_with(text: str, section: str, entry: Mapping[str, Any]) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    if section not in document or NAME not in document[section]:
        fields = "\n".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()
        )
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        appended = f"{text}{gap}[{section}.{NAME}]\n{fields}\n"
        try:
            tomllib.loads(appended)
        except tomllib.TOMLDecodeError:
            # The section is an inline table, to which nothing can be added below.
            document[section][NAME] = tomlkit.inline_table()
        else:
            return appended
    for name, value in entry.items():
        document[section][NAME][name] = value
    return tomlkit.dumps(document)


def _toml_without(text: str, section: str) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    del document[section][NAME]
    # The line that set the table apart.
    return tomlkit.dumps(document).rstrip("\n") + "\n"


def _hook_lists(settings: Any) -> Mapping[str, Any]:
    lists = settings.get(_HOOKS, {}) if isinstance(settings, dict) else None
    if not isinstance(lists, dict) or not all(isinstance(each, list) for each in lists.values()):
        raise InvalidInput(f"Its `{_HOOKS}` is not an object of lists of hooks.")
    return lists


def _own_groups(groups: list[Any]) -> list[Any]:
    """Return the groups of an event, or its plain commands, that run our command."""
    return [
        group
        for group in groups
        if is_own_handler(group)
        or (
            isinstance(group, Mapping)
            and isinstance(group.get(_HOOKS), list)
            and any(map(is_own_handler, group[_HOOKS]))
        )
    ]


def _own_handlers(lists: Mapping[str, Any]) -> list[tuple[Path, Mapping[str, Any]]]:
    """Return our handlers of a file, each with its place."""
    found: list[tuple[Path, Mapping[str, Any]]] = []
    for event, groups in lists.items():
        for at, group in enumerate(groups):
            if is_own_handler(group):
                found.append(((_HOOKS, event, at), group))
            elif isinstance(group, Mapping) and isinstance(group.get(_HOOKS), list):
                found += [
                    ((_HOOKS, event, at, _HOOKS, number), handler)
                    for number, handler in enumerate(group[_HOOKS])
                    if is_own_handler(handler)
                ]
    return found


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _edit_json(text: str, edit: Callable[[JsonText], str], expected: Any) -> str:
    if not text.strip():
        return json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    return _check_result(edit(JsonText(text)), lambda changed: JsonText(changed).value, expected)


def _check_result(changed: str, read: Callable[[str], Any], expected: Any) -> str:
    """Return a changed text after checking that it has the intended settings."""
    try:
        same = read(changed) == expected
    except (InvalidInput, ValueError):
        same = False
    if not same:
        raise InvalidInput("It is in a form that cannot be changed safely.")
    return changed
