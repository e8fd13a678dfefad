"""The resources of the gateway for one caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stratagem import limits
from stratagem.engine.lineage import OPEN_END, View
from stratagem.gateway import inputs
from stratagem.gateway.events import Publish
from stratagem.gateway.registry import resources
from stratagem.gateway.registry.answers import (
    Resource,
    ResourceAnswer,
    ResourceList,
    ResourceVersions,
)
from stratagem.operation import Caller
from stratagem.parameters import Input
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["ResourceService"]


class ResourceService:
    """Prompts, templates and data, for one caller."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        new_id: Callable[[str], str],
        publish: Publish,
    ) -> None:
        self._foundation = foundation
        self._publish = publish
        self._new_id = new_id
        self._caller = caller

    def list(self, given: inputs.ListResourcesInput) -> ResourceList:
        """Return the resources that fit every filter."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            fitting = [
                each for each in resources.every(reader.records, view) if _matches(each, given)
            ]
        page = fitting[given.offset : given.offset + given.limit]
        return {"resources": page, "total": len(fitting)}

    def get(self, given: inputs.ResourceInput) -> ResourceAnswer:
        """Return a resource, rendered where values for its variables are given."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            resource = resources.find(reader, view, given.resource_id)
        if given.variables is None:
            return {"resource": resource}
        return {"resource": resource, "rendered": resources.render(resource, given.variables)}

    def versions(self, given: inputs.ResourceInput) -> ResourceVersions:
        """Return the versions of a resource, newest first."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(given.branch), given.as_of)
            found = resources.versions(
                reader, view, given.resource_id, before=OPEN_END, limit=limits.HISTORY_PAGE_MAX
            )
        return {"versions": found}

    def create(self, given: inputs.ResourceCreateInput) -> ResourceAnswer:
        """Add a resource."""
        fields = _fields(given)
        new_id = self._new_id("res")
        return self._write(
            lambda transaction, view: resources.create(transaction, view, fields, new_id), given
        )

    def update(self, given: inputs.ResourceUpdateInput) -> ResourceAnswer:
        """Change a resource."""
        changes = _fields(given)
        name = changes.pop("resourceId")
        return self._write(
            lambda transaction, view: resources.update(transaction, view, name, changes), given
        )

    def remove(self, given: inputs.ResourceRemoveInput) -> ResourceAnswer:
        """Remove a resource from a branch; its history stays."""
        return self._write(
            lambda transaction, view: resources.remove(transaction, view, given.resource_id), given
        )

    def _branch(self, branch: str | None) -> str:
        return branch or self._caller.branch

    def _write(
        self,
        change: Callable[[Transaction, View], Resource],
        given: inputs.ResourceCreateInput | inputs.ResourceUpdateInput | inputs.ResourceRemoveInput,
    ) -> ResourceAnswer:
        def work(transaction: Transaction) -> ResourceAnswer:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            return {"resource": change(transaction, view)}

        answer = self._foundation.write(
            self._caller,
            work,
            request_id=given.request_id,
            operation=type(given).__name__,
            arguments=_fields(given),
        )
        kinds = (
            {"resources", "prompts"} if answer["resource"]["type"] == "prompt" else {"resources"}
        )
        for kind in sorted(kinds):
            self._publish("primitives", {"server": None, "kind": kind})
        return answer


def _fields(given: Input) -> dict[str, Any]:
    said = given.to_arguments(leave_out={"branch", "request_id"})
    return {name: value for name, value in said.items() if value is not None}


def _matches(resource: Resource, given: inputs.ListResourcesInput) -> bool:
    text = f"{resource['name']} {resource.get('description', '')}".casefold()
    return (
        given.type in {None, resource["type"]}
        and set(given.tags or ()) <= set(resource.get("tags", ()))
        and all(word in text for word in (given.search or "").casefold().split())
    )
