"""Defining, removing and listing guardrails, for one caller."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import ResourceNotFound, ValidationFailed
from stratagem.gateway import inputs, names
from stratagem.gateway.calls.guardrails import BUILT_IN, read_guardrails
from stratagem.gateway.definitions.contract import Runner
from stratagem.gateway.registry.answers import (
    GuardrailCheck,
    GuardrailDocument,
    GuardrailList,
    RemovedGuardrail,
)
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["GuardrailService"]

# What each kind of check takes.
_FIELDS = {
    "mask": {"level"},
    "block": {"reason"},
    "ask": {"reason"},
    "python": {"callable", "name", "timeout"},
    "tool": {"tool", "timeout"},
}


class GuardrailService:
    """See the module."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        registry: Registry,
        runners: Mapping[str, Runner],
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._registry = registry
        self._runners = runners

    def define(self, given: inputs.GuardrailInput) -> GuardrailDocument:
        """Define a guardrail, or replace it; it holds from the next call on, on every server."""
        if given.name == BUILT_IN["name"]:
            raise ValidationFailed(f"{given.name!r} is built in.", field="name")
        check = _read_check(given)
        if check["type"] == "python":
            self._runners["python"].check({**check, "type": "python"})
        document: GuardrailDocument = {
            "name": given.name,
            "when": given.when,
            "order": given.order,
            "check": check,
            "match": given.match.to_arguments() if given.match is not None else {},
            "description": given.description,
        }

        def work(transaction: Transaction) -> GuardrailDocument:
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            if check["type"] == "tool":
                self._registry.find(transaction, view, check["tool"])
            known = {each.name for each in read_guardrails(self._foundation, transaction)}
            if given.name not in known and len(known) >= limits.GUARDRAILS_MAX:
                raise ValidationFailed(
                    "There are too many guardrails.", field="name", limit=limits.GUARDRAILS_MAX
                )
            draft = Draft(names.GUARDRAIL_DEFINED, document, names.GUARDRAILS, given.name)
            transaction.append(view.branch, [draft])
            return document

        return self._foundation.write(self._caller, work)

    def remove(self, given: inputs.GuardrailNameInput) -> RemovedGuardrail:
        """Remove a guardrail."""

        def work(transaction: Transaction) -> RemovedGuardrail:
            known = [each.name for each in read_guardrails(self._foundation, transaction)]
            if given.name not in known:
                near = get_close_matches(given.name, known, n=3)
                hint = f"Did you mean {' or '.join(near)}?" if near else "See guardrails_list."
                raise ResourceNotFound(
                    f"There is no guardrail {given.name!r} that could be removed.",
                    field="name",
                    similar=near,
                    hint=hint,
                )
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            gone = {"name": given.name}
            draft = Draft(names.GUARDRAIL_REMOVED, gone, names.GUARDRAILS, given.name)
            transaction.append(view.branch, [draft])
            return {"name": given.name, "removed": True}

        return self._foundation.write(self._caller, work)

    def list(self, _given: inputs.NothingInput) -> GuardrailList:
        """Return the guardrails in the order in which they are run, the built-in one first."""
        with self._foundation.store.snapshot() as reader:
            found = read_guardrails(self._foundation, reader)
        built_in: GuardrailDocument = {
            "name": BUILT_IN["name"],
            "when": "after",
            "order": 0,
            "check": {"type": "mask"},
            "match": {},
            "description": "Removes the secrets that a call used from its result.",
            "builtIn": True,
        }
        return {"guardrails": [built_in, *(each.document for each in found)]}


def _read_check(given: inputs.GuardrailInput) -> GuardrailCheck:
    check: dict[str, Any] = given.check.to_arguments()
    kind = check["type"]
    for name in check:
        if name != "type" and name not in _FIELDS[kind]:
            raise ValidationFailed(
                f"`check.{name}` has no meaning for a check of type {kind!r}.",
                field=f"check.{name}",
                allowed=sorted(_FIELDS[kind]),
            )
    if kind == "tool" and "tool" not in check:
        raise ValidationFailed("`check.tool` must name the tool that decides.", field="check.tool")
    if kind == "ask" and given.when == "after":
        raise ValidationFailed(
            "After a call it is too late to ask for approval.",
            field="when",
            hint='Use "when": "before", or block the result.',
        )
    return cast("GuardrailCheck", check)
