"""The registry: tools as records of the log, with history, branches and `as_of` like any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Protocol

import orjson

from stratagem import limits
from stratagem.engine import values
from stratagem.engine.events import Draft
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import ToolExists, ToolNotFound, ValidationFailed, VersionConflict
from stratagem.gateway import names
from stratagem.gateway.definitions import schemas
from stratagem.gateway.definitions.sanitize import clean_definition
from stratagem.gateway.registry.requirements import check_requirements
from stratagem.gateway.registry.tool_names import TakenNames
from stratagem.gateway.registry.tool_sets import ToolSet, read_tool_sets
from stratagem.gateway.registry.tools import CATEGORY_DEFAULT, Tool
from stratagem.gateway.sandbox.permissions import read_permissions
from stratagem.gateway.secret_grants import follow_change
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["NoStandardTools", "Registry", "StandardTools"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*")
_SECRET_FIELD: Final = re.compile(r"authorization|token|secret|password|api[-_]?key", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_DEFINITIONS_MAX: Final = 20_000

# Checks a handler and returns warnings.
CheckHandler = Callable[[Mapping[str, Any]], list[str]]


class StandardTools(Protocol):
    """The standard tools, which change with what is installed and set on this server."""

    def tools(self, reader: Reader) -> Mapping[str, Tool]:
        """Return them by name; each says by `unavailable` what it lacks."""
        ...

    def revision(self, reader: Reader) -> int:
        """Return a number that is another one when they have changed."""
        ...


class NoStandardTools:
    """A registry without standard tools."""

    def tools(self, reader: Reader) -> Mapping[str, Tool]:  # noqa: ARG002 -- of the protocol
        """Return none."""
        return {}

    def revision(self, reader: Reader) -> int:  # noqa: ARG002 -- of the protocol
        """Return the only revision there is."""
        return 0


class Registry:
    """Tools by name, in any view. Built-in ones are there on every branch.

    So are the standard ones, but a registered tool of the same name stands before them: it may
    have been there first. Definitions never change once written, so each is read and compiled
    once and then found by the sequence that wrote it.
    """

    def __init__(
        self,
        builtin: Sequence[Tool],
        check_handler: CheckHandler,
        known: dict[int, Tool] | None = None,
        standard: StandardTools | None = None,
        reserved: Collection[str] = (),
    ) -> None:
        self.builtin = {tool.name: tool for tool in builtin}
        self.standard: StandardTools = standard or NoStandardTools()
        # Operations that are no tools themselves; a tool of their name would hide them.
        self.reserved = frozenset(reserved)
        self.check_handler = check_handler
        self.known = {} if known is None else known

    def find(self, reader: Reader, view: View, name: str) -> Tool:
        """Return a tool by its name or id.

        Raises:
            ToolNotFound: The view shows none; similar names are suggested.
        """
        found = self.get(reader, view, name)
        if found is None:
            near = get_close_matches(name, self._names(reader, view), n=3, cutoff=0.6)
            hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else None
            raise ToolNotFound(
                f"There is no tool {name!r}.", hint=hint, field="toolName", tool=name, similar=near
            )
        return found

    async def resolve(
        self, foundation: Foundation, branch: str, name: str, caller: Caller
    ) -> tuple[Tool, View]:
        """Return a tool as a branch shows it now, and that view, for a call.

        Raises:
            ToolNotFound: There is none; similar names that the caller may know are suggested.
        """

        def look_up() -> tuple[Tool, View]:
            reader = foundation.store.reader()
            view = foundation.views.view(reader, branch)
            found = self.get(reader, view, name)
            return found or self.limited_to(caller, foundation).find(reader, view, name), view

        return await foundation.read_async(look_up)

    def limited_to(self, caller: Caller, foundation: Foundation) -> Registry:
        """Return the registry limited to the tools that a caller may call."""
        if caller.tool_sets is None:
            return self
        return _LimitedRegistry(self, foundation, caller.tool_sets)

    def shows(self, _tool: Tool) -> bool:
        """Whether the caller that this registry is limited to may know of a tool."""
        return True

    def knows(self, _reader: Reader, _view: View, _name: str) -> bool:
        """Whether the caller that this registry is limited to may know of a tool, by its name."""
        return True

    def get(self, reader: Reader, view: View, name: str) -> Tool | None:
        """Return a tool by its name or id, if the view shows one.

        A tool of a server is also found as `server.tool`, whatever name was free for it.
        """
        if name in self.builtin:
            return self.builtin[name]
        version = reader.records.current(view.lineage, names.TOOLS, name)
        if version is not None and version.payload is not None:
            return self._tool(version.sequence, version.payload)
        if (standard := self.standard.tools(reader).get(name)) is not None:
            return standard
        sequences = reader.catalogue.with_facet(view, names.facet_id(names.TOOL, name), limit=1)
        for hit in reader.log.contents(sequences).values():
            return self._tool(hit.sequence, hit.payload)
        unregistered = (*self.builtin.values(), *self.standard.tools(reader).values())
        by_id = next((tool for tool in unregistered if tool.id == name), None)
        return by_id or self._find_by_source(reader, view, name)

    def _find_by_source(self, reader: Reader, view: View, name: str) -> Tool | None:
        """Return the tool that a source calls so: `files.read` is what `files` calls `read`."""
        if "." not in name:
            return None
        return next(
            (
                tool
                for tool in self.all(reader, view)
                if f"{tool.handler.get('source')}.{tool.handler.get('tool')}" == name
            ),
            None,
        )

    def all(self, reader: Reader, view: View) -> list[Tool]:
        """Return every tool that a view shows, by name."""
        tools = {**self.standard.tools(reader), **self.builtin}
        after: str | None = ""
        while after is not None:
            page, after = reader.records.page(view.lineage, names.TOOLS, after=after)
            for name, version in page:
                if version.payload is not None:
                    tools[name] = self._tool(version.sequence, version.payload)
        return [tools[name] for name in sorted(tools)]

    def taken_names(self, reader: Reader, view: View) -> TakenNames:
        """Return the names that are taken: nobody owns those of built-in tools."""
        reserved = ((name, None) for name in self.reserved)
        every = (
            (tool.name, tool.owner) for tool in self.all(reader, view) if tool.unavailable is None
        )
        return TakenNames((*reserved, *every))

    def register(
        self,
        transaction: Transaction,
        view: View,
        given: Mapping[str, Any],
        new_id: str,
        *,
        owner: str,
        taken: TakenNames | None = None,
    ) -> tuple[Tool, list[str]]:
        """Add a tool; return it, and what its author should know.

        `taken` is given by those who register many, so that names are gathered once.

        Raises:
            ToolExists: There is a tool of that name, or one of somebody else's that looks alike.
            ValidationFailed: The definition cannot be taken.
        """
        name = _check_name(given.get("name"))
        if name in self.builtin or name in self.reserved or self._is_standard(transaction, name):
            raise ToolExists(
                f"{name!r} is a built-in tool.", field="name", hint="Choose another name."
            )
        if transaction.records.current(view.lineage, names.TOOLS, name) is not None:
            raise ToolExists(f"There is a tool named {name!r}.", field="name", tool=name)
        taken = taken or self.taken_names(transaction, view)
        if (twin := taken.twin_of(name, owner)) is not None:
            raise ToolExists(
                f"{name!r} looks like {twin!r}, the name of another tool.",
                field="name",
                similar=[twin],
                hint="Choose a name that cannot be mistaken for it.",
            )
        content = {
            "id": new_id,
            "category": CATEGORY_DEFAULT,
            "provider": "custom",
            "version": "1.0.0",
            "status": "active",
            **{field: value for field, value in given.items() if value is not None},
            "owner": owner,
        }
        content = clean_definition(content)
        warnings = self._check_content(content)
        draft = Draft(names.TOOL_REGISTERED, content, names.TOOLS, name)
        appended = transaction.append(view.branch, [draft])
        taken.add(name, owner)
        return Tool(content, appended[0].sequence), warnings

    def update(
        self,
        transaction: Transaction,
        view: View,
        name: str,
        changes: Mapping[str, Any],
        *,
        expected_version: int | None = None,
    ) -> tuple[Tool, dict[str, Any], list[str]]:
        """Change a tool; return it, what changed, and what its author should know.

        Objects such as `configuration` are changed field by field, everything else whole.
        """
        tool = self._changeable(transaction, view, name)
        if expected_version is not None and expected_version != tool.revision:
            raise VersionConflict(
                f"The tool {tool.name!r} has version {tool.revision}, not {expected_version}.",
                field="expectedVersion",
                version=tool.revision,
            )
        content = dict(tool.content)
        for field, value in changes.items():
            before = content.get(field)
            if field in {"configuration", "requirements"} and isinstance(before, Mapping):
                content[field] = {**before, **value}
            elif value is None:
                content.pop(field, None)
            else:
                content[field] = value
        content = clean_definition(content)
        changed = {
            field: content.get(field)
            for field in {*content, *tool.content}
            if content.get(field) != tool.content.get(field)
        }
        if not changed:
            return tool, {}, []
        warnings = self._check_content(content)
        draft = Draft(names.TOOL_UPDATED, content, names.TOOLS, tool.name)
        appended = transaction.append(view.branch, [draft])
        if "handler" in changed:
            follow_change(transaction, view, tool.name, kind="tool", handler=content["handler"])
        return Tool(content, appended[0].sequence), changed, warnings

    def remove(self, transaction: Transaction, view: View, name: str) -> Tool:
        """Take a tool out of a branch; its history stays."""
        tool = self._changeable(transaction, view, name)
        draft = Draft(names.TOOL_REMOVED, {"id": tool.id}, names.TOOLS, tool.name)
        transaction.append(view.branch, [draft])
        follow_change(transaction, view, tool.name, kind="tool", handler=None)
        return tool

    def _is_standard(self, reader: Reader, name: str) -> bool:
        """Whether a standard tool of this name can be called; until then the name is free."""
        tool = self.standard.tools(reader).get(name)
        return tool is not None and tool.unavailable is None

    def restore(self, transaction: Transaction, view: View, name: str) -> Tool:
        """Restore a removed tool as it was.

        Raises:
            ToolExists: There is a tool of that name.
            ToolNotFound: None of that name was ever removed here.
        """
        there = transaction.records.current(view.lineage, names.TOOLS, name) is not None
        if there or self._is_standard(transaction, name):
            raise ToolExists(f"There is a tool named {name!r}.", field="toolId", tool=name)
        versions = transaction.records.history(
            view.lineage, names.TOOLS, name, before=OPEN_END, limit=2
        )
        written = (each.payload for each in versions if each.kind != names.TOOL_REMOVED)
        content = next((orjson.loads(each) for each in written if each is not None), None)
        if content is None:
            raise ToolNotFound(
                f"No tool named {name!r} was removed on this branch.",
                field="toolId",
                hint="Give its former name; tool_register adds a new tool.",
            )
        draft = Draft(names.TOOL_REGISTERED, content, names.TOOLS, name)
        return Tool(content, transaction.append(view.branch, [draft])[0].sequence)

    def _changeable(self, reader: Reader, view: View, name: str) -> Tool:
        tool = self.find(reader, view, name)
        if tool.name in self.builtin or tool is self.standard.tools(reader).get(tool.name):
            raise ValidationFailed(
                f"{tool.name!r} is a built-in tool: it cannot be changed or removed.",
                field="toolId",
                hint="Register a tool of your own under another name.",
            )
        return tool

    def _names(self, reader: Reader, view: View) -> list[str]:
        page, _next = reader.records.page(view.lineage, names.TOOLS, limit=1000)
        return [*self.builtin, *self.standard.tools(reader), *(name for name, _version in page)]

    def _tool(self, sequence: int, payload: bytes) -> Tool:
        known = self.known.get(sequence)
        if known is None:
            if len(self.known) >= _DEFINITIONS_MAX:
                self.known.clear()
            known = self.known[sequence] = Tool(orjson.loads(payload), sequence)
        return known

    def _check_content(self, content: Mapping[str, Any]) -> list[str]:
        values.encode(dict(content), field="definition", bytes_max=limits.TOOL_BYTES_MAX)
        schemas.check(content["inputSchema"], field="inputSchema")
        if content.get("outputSchema") is not None:
            schemas.check(content["outputSchema"], field="outputSchema")
        read_permissions(content.get("permissions") or {})
        check_requirements(content)
        _refuse_secrets(content["handler"], "handler")
        return [*self.check_handler(content["handler"]), *_warnings(content)]


class _LimitedRegistry(Registry):
    """What a token that is limited to sets of tools is shown. Lives for one request."""

    def __init__(
        self, registry: Registry, foundation: Foundation, tool_sets: Collection[str]
    ) -> None:
        super().__init__(
            [*registry.builtin.values()],
            registry.check_handler,
            registry.known,
            registry.standard,
            registry.reserved,
        )
        self._foundation = foundation
        self._tool_sets = tool_sets

    @cached_property
    def _sets(self) -> list[ToolSet]:
        reader = self._foundation.store.reader()
        return [*read_tool_sets(self._foundation, reader, self._tool_sets).values()]

    def shows(self, tool: Tool) -> bool:
        return any(each.has(tool) for each in self._sets)

    def knows(self, reader: Reader, view: View, name: str) -> bool:
        return self.get(reader, view, name) is not None

    def get(self, reader: Reader, view: View, name: str) -> Tool | None:
        found = super().get(reader, view, name)
        return found if found is not None and self.shows(found) else None

    def all(self, reader: Reader, view: View) -> list[Tool]:
        return [tool for tool in super().all(reader, view) if self.shows(tool)]

    def _names(self, reader: Reader, view: View) -> list[str]:
        return [tool.name for tool in self.all(reader, view)]


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValidationFailed(
            "A tool's name begins with a letter and consists of letters, digits, `_`, `-` and `.`.",
            field="name",
            limit=limits.TOOL_NAME_CHARS_MAX,
        )
    if len(name) > limits.TOOL_NAME_CHARS_MAX:
        raise ValidationFailed(
            f"The name has {len(name)} characters; {limits.TOOL_NAME_CHARS_MAX} are allowed.",
            field="name",
            limit=limits.TOOL_NAME_CHARS_MAX,
        )
    return name


def _refuse_secrets(value: Any, path: str) -> None:
    """Refuse a handler that holds a secret itself: it would stay in the log for good."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if isinstance(each, str) and _SECRET_FIELD.search(str(name)) and not _is_harmless(each):
                raise ValidationFailed(
                    f"`{path}.{name}` looks like a secret.",
                    field=f"{path}.{name}",
                    hint="Write ${NAME} instead, and have an administrator grant that name.",
                )
            _refuse_secrets(each, f"{path}.{name}")
    elif isinstance(value, list):
        for at, each in enumerate(value):
            _refuse_secrets(each, f"{path}[{at}]")


def _is_harmless(text: str) -> bool:
    """Whether nothing is left of a header once references and the scheme are taken away."""
    rest = _REFERENCE.sub("", text).replace("{{", "").strip().casefold()
    return rest in {"", "bearer", "basic", "token"} or "{" in text.replace("${", "")


def _warnings(content: Mapping[str, Any]) -> list[str]:
    warnings = []
    schema = content["inputSchema"]
    if schema.get("type") != "object":
        warnings.append('inputSchema should have "type": "object"; models expect it.')
    undescribed = [
        name
        for name, each in (schema.get("properties") or {}).items()
        if isinstance(each, Mapping) and not each.get("description")
    ]
    if undescribed:
        warnings.append(f"No description: {', '.join(undescribed[:10])}.")
    if not content.get("outputSchema"):
        warnings.append("No outputSchema: results are not checked.")
    own = schemas.Schema(schema, field="inputSchema")
    for at, example in enumerate(content.get("examples") or ()):
        if "input" in example and not own.accepts(example["input"]):
            warnings.append(f"examples[{at}].input does not fit inputSchema.")
    return warnings
