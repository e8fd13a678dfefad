"""Adding one server to somebody else's settings file, and leaving the rest as it is.

The text is changed in one place, not parsed and written anew, so that order, indentation and
everything a newer version of the client may have put there stay as they were. What comes out
is parsed and compared with what was meant; a file that cannot be changed so is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final, NamedTuple

from stratagem.errors import InvalidInput

__all__ = ["with_json_server", "with_section", "with_toml_server"]

BEGIN: Final = "<!-- stratagem:begin -->"
END: Final = "<!-- stratagem:end -->"

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SERVER: Final = "stratagem"


class _Member(NamedTuple):
    """A member of a JSON object in its text: where its value begins and ends."""

    key: str
    begin: int
    end: int


def with_json_server(text: str, section: str, server: dict[str, Any]) -> str:
    """Return settings in JSON with our server in a section, such as `mcpServers`.

    Fields that somebody added to our server are kept.

    Raises:
        InvalidInput: The text is not plain JSON, or not of the form that was expected.
    """
    if not text.strip():
        return json.dumps({section: {_SERVER: server}}, indent=2, ensure_ascii=False) + "\n"
    settings = _parse(text)
    servers = settings.setdefault(section, {})
    if not isinstance(servers, dict) or not isinstance(servers.get(_SERVER, {}), dict):
        raise InvalidInput(f"Its `{section}` does not hold servers.")
    wanted = {**servers.get(_SERVER, {}), **server}
    if servers.get(_SERVER) == wanted:
        return text
    servers[_SERVER] = wanted
    changed = _insert_server(text, section, wanted)
    if json.loads(changed) != settings:
        raise InvalidInput("It cannot be changed safely.")
    return changed


def with_toml_server(text: str, section: str, server: dict[str, Any]) -> str:
    """Return settings in TOML with our server in a section, such as `mcp_servers`.

    Raises:
        InvalidInput: The text is not TOML, or our server stands there in another form.
    """
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"It is not TOML: {error}.") from error
    servers = settings.get(section, {})
    there = servers.get(_SERVER, {}) if isinstance(servers, dict) else None
    if not isinstance(there, dict):
        raise InvalidInput(f"Its `{section}` does not hold servers.")
    there = servers.get(_SERVER)
    if there is not None and {**there, **server} == there:
        return text
    block = "\n".join(f"{name} = {json.dumps(value)}" for name, value in server.items())
    header = f"[{section}.{_SERVER}]"
    if there is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        changed = f"{text}{gap}{header}\n{block}\n"
    else:
        changed = _toml_replaced(text, header, server)
    settings.setdefault(section, {})[_SERVER] = {**(there or {}), **server}
    if _toml_or_none(changed) != settings:
        raise InvalidInput(f"Its `{section}` is in a form that cannot be changed safely.")
    return changed


def _toml_or_none(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def with_section(text: str, words: str) -> str:
    """Return a text with our words between our marks, in the place of what was between them."""
    section = f"{BEGIN}\n{words.strip()}\n{END}"
    begin, end = text.find(BEGIN), text.find(END)
    if 0 <= begin < end:
        return text[:begin] + section + text[end + len(END) :]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{section}\n"


def _parse(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"It is not plain JSON (line {error.lineno}: {error.msg}). Comments and trailing "
            "commas would be lost.",
        ) from error
    if not isinstance(settings, dict):
        raise InvalidInput("It is JSON, but not an object.")
    return settings


def _insert_server(text: str, section: str, server: dict[str, Any]) -> str:
    """Put the server into the text, into its section, making that where there is none."""
    indent = min(_INDENT.findall(text), key=len, default="  ")
    top = _SPACE.match(text).end()  # type: ignore[union-attr]
    holder = _member(text, top, section)
    if holder is None:
        return _add_member(text, top, section, {_SERVER: server}, indent, depth=1)
    ours = _member(text, holder.begin, _SERVER)
    if ours is None:
        return _add_member(text, holder.begin, _SERVER, server, indent, depth=2)
    return text[: ours.begin] + _dump(server, indent, depth=2) + text[ours.end :]


def _add_member(
    text: str, begin: int, key: str, value: dict[str, Any], indent: str, *, depth: int
) -> str:
    """Add a member at the end of the object that begins there."""
    members = list(_members(text, begin))
    last = members[-1].end if members else begin + 1
    comma = "," if members else ""
    member = f"{comma}\n{indent * depth}{json.dumps(key)}: {_dump(value, indent, depth=depth)}"
    rest = text[last:]
    if not members:
        # An empty object's brackets may stand together.
        rest = "\n" + indent * (depth - 1) + rest.lstrip()
    return text[:last] + member + rest


def _dump(value: dict[str, Any], indent: str, *, depth: int) -> str:
    lines = json.dumps(value, indent=indent, ensure_ascii=False).splitlines()
    return ("\n" + indent * depth).join(lines)


def _member(text: str, begin: int, key: str) -> _Member | None:
    # Of a key that occurs twice a parser takes the last.
    found = [member for member in _members(text, begin) if member.key == key]
    return found[-1] if found else None


def _members(text: str, begin: int) -> Iterator[_Member]:
    """Return the members of the object whose bracket opens at a place of a valid text."""
    decoder = json.JSONDecoder()
    at = _after_space(text, begin + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1)
        value = _after_space(text, _after_space(text, at) + 1)
        _, at = decoder.raw_decode(text, value)
        yield _Member(key, value, at)
        at = _after_space(text, at)
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _toml_replaced(text: str, header: str, server: dict[str, Any]) -> str:
    """Change our keys in our own table, which goes on to the next header."""
    table = re.compile(rf"^{re.escape(header)}[ \t]*$.*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
    found = table.search(text)
    if found is None:
        return text
    changed = found[0]
    for name, value in server.items():
        line = f"{name} = {json.dumps(value)}"
        key = re.compile(rf"^{name}[ \t]*=.*$", re.MULTILINE)
        if key.search(changed):
            changed = key.sub(lambda _, line=line: line, changed, count=1)  # type: ignore[misc]
        else:
            changed = changed.replace(header, f"{header}\n{line}", 1)
    return text[: found.start()] + changed + text[found.end() :]
