"""Calls that a person approves, one by one.

A call that needs it is refused, and noted with its arguments; a person decides; the same call by
the same caller is then run once. An approval is for one revision of a tool with exactly these
arguments, on one branch and in one namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, NotRequired, TypedDict

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.errors import PermissionDenied, RateLimited, ResourceNotFound, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.calls.call import Call
from stratagem.gateway.registry.answers import Approval
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.redaction import mask_json
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["CallApprovals"]

_BRANCH: Final = "default"
_MICROSECONDS: Final = 1_000_000
# A call that asks does not wait for more to be written.
_FORGOTTEN_AT_ONCE: Final = 100


class _Asked(TypedDict):
    """A call that waits, as it is kept: times in microseconds."""

    id: str
    tool: str
    caller: str
    arguments: Any
    branch: NotRequired[str]
    namespace: NotRequired[str]
    askedAt: int
    state: Literal["waiting", "approved", "rejected"]
    decidedAt: NotRequired[int]
    decidedBy: NotRequired[str]
    reason: NotRequired[str | None]


@dataclass(frozen=True, slots=True)
class CallApprovals:
    """See the module."""

    foundation: Foundation

    def require(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        call: Call,
        *,
        uses: bool,
        why: str | None = None,
    ) -> None:
        """Require the approval of a call, or ask for it; `why` is told to whoever waits.

        `uses` it up: the same call needs another one afterwards.

        Raises:
            PermissionDenied: A person has not approved it yet, or has rejected it.
            RateLimited: The caller has asked for too many that are undecided.
        """
        id_ = _id_of(tool, arguments, call)

        def work(transaction: Transaction) -> _Asked | None:
            asked = self._read(transaction, id_)
            now = self.foundation.store.now()
            if asked is None or self._is_over(asked, now):
                asked = self._ask(transaction, tool, arguments, call, id_)
            elif asked["state"] == "approved":
                if uses:
                    self._append(transaction, names.APPROVAL_USED, {"id": id_}, id_)
                return None
            return asked

        left = self.foundation.write(Caller(actor="gateway"), work)
        if left is not None:
            raise _refusal(left, why)

    def visible_to(self, caller: Caller) -> list[Approval]:
        """Return what a caller may see of the calls that wait or were decided, oldest first."""
        now = self.foundation.store.now()
        with self.foundation.store.snapshot() as reader:
            every = [each for each in self._every(reader) if not self._is_over(each, now)]
        every.sort(key=lambda each: each["askedAt"])
        return [_entry(each) for each in every if caller.sees_contents_of(each["caller"])]

    def decide(
        self, id_: str, state: Literal["approved", "rejected"], reason: str | None, caller: Caller
    ) -> str:
        """Decide about a call that waits; return its tool.

        Raises:
            ResourceNotFound: Nothing waits under that id.
            ValidationFailed: It was decided already.
        """

        def work(transaction: Transaction) -> str:
            asked = self._read(transaction, id_)
            if asked is None:
                raise ResourceNotFound(
                    f"Nothing with the id {id_!r} is waiting.",
                    field="id",
                    hint="See approvals_list.",
                )
            if asked["state"] != "waiting":
                raise ValidationFailed(f"{id_} was {asked['state']} already.", field="id")
            decided = asked.copy()
            decided["state"] = state
            decided["decidedAt"] = self.foundation.store.now()
            decided["decidedBy"] = caller.actor
            decided["reason"] = reason
            self._append(transaction, names.APPROVAL_DECIDED, decided, id_)
            return decided["tool"]

        return self.foundation.write(caller, work)

    def _ask(
        self,
        transaction: Transaction,
        tool: Tool,
        arguments: Mapping[str, Any],
        call: Call,
        id_: str,
    ) -> _Asked:
        caller = call.caller
        every = self._every(transaction)
        self._forget_old(transaction, every)
        waiting = [
            each for each in every if (each["caller"], each["state"]) == (caller.actor, "waiting")
        ]
        if len(waiting) >= limits.APPROVALS_WAITING_MAX:
            raise RateLimited(
                f"{len(waiting)} of your calls are already waiting for approval; that is "
                "the limit.",
                limit=limits.APPROVALS_WAITING_MAX,
                hint="Have a person approve or reject them first: see approvals_list.",
            )
        asked: _Asked = {
            "id": id_,
            "tool": tool.name,
            "caller": caller.actor,
            "arguments": mask_json(dict(arguments), self.foundation.redaction),
            "branch": call.branch,
            "namespace": caller.namespace,
            "askedAt": self.foundation.store.now(),
            "state": "waiting",
        }
        self._append(transaction, names.APPROVAL_ASKED, asked, id_)
        return asked

    def _is_over(self, asked: _Asked, now: int) -> bool:
        """Whether a decision holds no longer: somebody may ask again.

        One that lies ahead was made by a wrong clock: nobody can tell how old it is.
        """
        decided = asked.get("decidedAt")
        if decided is None:
            return False
        seconds = (now - decided) / _MICROSECONDS
        return not -limits.CLOCK_AHEAD_SECONDS <= seconds <= limits.APPROVAL_SECONDS

    def _read(self, reader: Reader, id_: str) -> _Asked | None:
        view = self.foundation.views.view(reader, _BRANCH)
        version = reader.records.current(view.lineage, names.APPROVALS, id_)
        if version is None or version.payload is None:
            return None
        asked: _Asked = orjson.loads(version.payload)
        return asked

    def _every(self, reader: Reader) -> list[_Asked]:
        view = self.foundation.views.view(reader, _BRANCH)
        found: list[_Asked] = []
        after: str | None = ""
        while after is not None:
            page, after = reader.records.page(view.lineage, names.APPROVALS, after=after)
            found += [orjson.loads(version.payload) for _key, version in page if version.payload]
        return found

    def _forget_old(self, transaction: Transaction, every: Sequence[_Asked]) -> None:
        """End what was decided long ago: whoever looks for what waits should not read all of it."""
        now = self.foundation.store.now()
        over = [each["id"] for each in every if self._is_over(each, now)]
        for id_ in over[:_FORGOTTEN_AT_ONCE]:
            self._append(transaction, names.APPROVAL_USED, {"id": id_}, id_)

    def _append(
        self, transaction: Transaction, kind: str, content: Mapping[str, Any], id_: str
    ) -> None:
        view = self.foundation.views.view(transaction, _BRANCH)
        transaction.append(view.branch, [Draft(kind, content, names.APPROVALS, id_)])


def _id_of(tool: Tool, arguments: Mapping[str, Any], call: Call) -> str:
    place = [call.branch, call.caller.namespace]
    meant = [call.caller.actor, tool.id, tool.revision, arguments, *place]
    digest = sha256(orjson.dumps(meant, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return f"call_{digest[:24]}"


def _entry(asked: _Asked) -> Approval:
    return {
        "id": asked["id"],
        "kind": "call",
        "tool": asked["tool"],
        "state": asked["state"],
        "caller": asked["caller"],
        "arguments": asked["arguments"],
        "branch": asked.get("branch", _BRANCH),
        "namespace": asked.get("namespace", "default"),
        "askedAt": moments.iso(asked["askedAt"]),
    }


def _refusal(asked: _Asked, reason: str | None) -> PermissionDenied:
    id_, tool = asked["id"], asked["tool"]
    if asked["state"] == "rejected":
        why = f": {asked['reason']}" if asked.get("reason") else ""
        return PermissionDenied(
            f"A person has rejected this call of {tool}{why}.",
            reason="rejected",
            approvalId=id_,
            hint="Call it with other arguments, or do without it.",
        )
    command = f"stratagem tools approve {id_}"
    return PermissionDenied(
        f"A person has to approve this call of {tool}{': ' + reason if reason else ''}.",
        reason="approval_needed",
        approvalId=id_,
        command=command,
        hint=f"Have a person run: {command}. Then send the same call again.",
    )
