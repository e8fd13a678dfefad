"""Resources: prompts, templates and data, kept as records of the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.errors import MissingRequired, ResourceNotFound, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.registry.answers import Resource, ResourceVersion
from stratagem.storage.contract import Reader, RecordReader, Transaction

__all__ = ["create", "every", "find", "remove", "render", "update", "versions"]

_VARIABLE: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.\-]*)\s*\}\}")
_LISTED: Final = 1000


def find(reader: Reader, view: View, name: str) -> Resource:
    """Return a resource by its name or id.

    Raises:
        ResourceNotFound: The view shows none.
    """
    version = reader.records.current(view.lineage, names.RESOURCES, name)
    if version is not None and version.payload is not None:
        return _at_revision(orjson.loads(version.payload), version.sequence)
    sequences = reader.catalogue.with_facet(view, names.facet_id(names.RESOURCE, name), limit=1)
    for hit in reader.log.contents(sequences).values():
        return _at_revision(orjson.loads(hit.payload), hit.sequence)
    raise ResourceNotFound(f"There is no resource {name!r}.", field="resourceId", resource=name)


def every(records: RecordReader, view: View) -> list[Resource]:
    """Return all resources of a view, by name."""
    found: list[Resource] = []
    after: str | None = ""
    while after is not None:
        page, after = records.page(view.lineage, names.RESOURCES, after=after, limit=_LISTED)
        found += [
            _at_revision(orjson.loads(each.payload), each.sequence)
            for _name, each in page
            if each.payload
        ]
    return found


def create(transaction: Transaction, view: View, given: Mapping[str, Any], new_id: str) -> Resource:
    """Add a resource."""
    name = given["name"]
    if transaction.records.current(view.lineage, names.RESOURCES, name) is not None:
        raise ValidationFailed(
            f"There is a resource named {name!r}.",
            field="name",
            hint="Update it, or choose another name.",
        )
    content = _complete({"id": new_id, "version": "1.0.0", **given})
    draft = Draft(names.RESOURCE_CREATED, content, names.RESOURCES, name)
    return _at_revision(content, transaction.append(view.branch, [draft])[0].sequence)


def update(transaction: Transaction, view: View, name: str, changes: Mapping[str, Any]) -> Resource:
    """Change a resource; its version goes up where none is given."""
    known = find(transaction, view, name)
    stored = {field: value for field, value in known.items() if field != "revision"}
    content = {**stored, **changes}
    if content == stored:
        return known
    if "version" not in changes:
        content["version"] = _next_version(known["version"])
    if "content" in changes and "variables" not in changes:
        content.pop("variables", None)
    content = _complete(content)
    draft = Draft(names.RESOURCE_UPDATED, content, names.RESOURCES, known["name"])
    return _at_revision(content, transaction.append(view.branch, [draft])[0].sequence)


def remove(transaction: Transaction, view: View, name: str) -> Resource:
    """Remove a resource from a branch; its history stays."""
    known = find(transaction, view, name)
    draft = Draft(names.RESOURCE_REMOVED, {"id": known["id"]}, names.RESOURCES, known["name"])
    transaction.append(view.branch, [draft])
    return known


def versions(
    reader: Reader, view: View, name: str, *, before: int, limit: int
) -> list[ResourceVersion]:
    """Return the versions of a resource, newest first."""
    known = find(reader, view, name)
    history = reader.records.history(
        view.lineage, names.RESOURCES, known["name"], before=before, limit=limit
    )
    return [
        {
            **_at_revision(orjson.loads(each.payload), each.sequence),
            "timestamp": moments.iso(each.at),
        }
        for each in history
        if each.payload is not None and each.kind != names.RESOURCE_REMOVED
    ]


def render(resource: Resource, variables: Mapping[str, Any]) -> str:
    """Return a resource's content with its variables filled in.

    What is filled in is text: it is never looked through for variables again.

    Raises:
        MissingRequired: A variable has no value; all of them are named.
    """
    wanted = dict.fromkeys(_VARIABLE.findall(resource["content"]))
    missing = [name for name in wanted if name not in variables]
    if missing:
        raise MissingRequired(
            f"Variables without a value: {', '.join(missing)}.",
            field="variables",
            missing=missing,
            hint="Pass a value for each of them in `variables`.",
        )
    return _VARIABLE.sub(lambda match: _text(variables[match[1]]), resource["content"])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _complete(content: dict[str, Any]) -> dict[str, Any]:
    """Say which variables there are, and refuse a list that says something else."""
    found = list(dict.fromkeys(_VARIABLE.findall(content["content"])))
    given = content.setdefault("variables", found)
    unknown = [name for name in found if name not in given]
    if unknown:
        raise ValidationFailed(
            f"The content uses variables that are not listed: {', '.join(unknown)}.",
            field="variables",
            hint="List them, or leave `variables` out to detect them.",
        )
    return content


def _next_version(version: str) -> str:
    head, _dot, last = version.rpartition(".")
    return f"{head}.{int(last) + 1}" if head and last.isdecimal() else f"{version}.1"


def _at_revision(stored: Mapping[str, Any], sequence: int) -> Resource:
    return cast("Resource", {**stored, "revision": sequence})
