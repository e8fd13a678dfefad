"""Calls that are not run twice: a repeat under the same request id gets the first one's outcome.

A client that does not know whether a call succeeded repeats it under the same idempotency key. The
key is claimed in the database, together with the execution id, before the tool is run; a call that
finds its key claimed is answered from the record of that execution, whichever process ran it. A
call that is refused before it runs claims nothing, so that it can be repeated later. A claim
without a record means that a process was killed during the call: the outcome is unknown, so the
tool is not run again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Final, NoReturn, NotRequired, TypedDict

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import (
    ExecutionFailed,
    ExecutionNotFound,
    PermissionDenied,
    RequestReused,
    StratagemError,
    ValidationFailed,
)
from stratagem.gateway.calls import history
from stratagem.gateway.calls.answers import CallAnswer, CallMetadata, ExecutionRecord
from stratagem.gateway.calls.call import BegunElsewhereError, Call, Execute
from stratagem.gateway.calls.recorder import Recorder
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["IdempotentCalls", "answer_again"]

_OPERATION: Final = "tool_execute"


class _Claimed(TypedDict):
    """The claim of a key; the first releases did not record the caller's rights with it."""

    executionId: str
    reach: NotRequired[str]


class _UnclaimedError(Exception):
    """The id is new."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A call under an id. Others in the same name, with other arguments, cannot have the id."""

    foundation: Foundation
    call: Call
    request_id: str

    def made_by(self) -> str | None:
        """Return the execution that claimed the key, if there is one."""

        def refuse(_transaction: Transaction) -> NoReturn:
            raise _UnclaimedError

        try:
            answer = self._write(refuse)
        except _UnclaimedError:
            return None
        self._check_reach(answer)
        return answer["executionId"]

    def make(self, execution_id: str) -> None:
        """Claim the id for an execution.

        Raises:
            BegunElsewhereError: It stands for another one, of a moment ago.
        """
        made: _Claimed = {"executionId": execution_id, "reach": self._reach()}
        answer = self._write(lambda _transaction: made)
        if answer["executionId"] != execution_id:
            self._check_reach(answer)
            raise BegunElsewhereError(answer["executionId"])

    def _check_reach(self, answer: _Claimed) -> None:
        """Refuse the outcome of a call that was made with other rights than the caller has now."""
        if answer.get("reach", self._reach()) != self._reach():
            raise PermissionDenied(
                "This request id belongs to a call that was made with other rights than yours.",
                field="requestId",
                hint="Use a new request id.",
            )

    def _reach(self) -> str:
        return sha256(orjson.dumps(self.call.caller.reach())).hexdigest()

    def _write(self, work: Callable[[Transaction], _Claimed]) -> _Claimed:
        return self.foundation.write(
            self.call.caller,
            work,
            request_id=self.request_id,
            operation=_OPERATION,
            arguments={"call": self._fingerprint()},
        )

    def _fingerprint(self) -> str:
        call = self.call
        meant = [call.tool, call.arguments, call.branch, call.correction_id]
        try:
            return sha256(orjson.dumps(meant, option=orjson.OPT_SORT_KEYS)).hexdigest()
        except TypeError as error:
            raise ValidationFailed(
                f"The arguments are not JSON: {error}.", field="arguments"
            ) from error


class IdempotentCalls:
    """Runs calls that have a request id. Runs on the home loop."""

    def __init__(self, foundation: Foundation, recorder: Recorder, execute: Execute) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self._execute = execute
        self._under_way: dict[tuple[str, str], asyncio.Future[None]] = {}

    async def execute(self, call: Call, request_id: str) -> CallAnswer:
        """Run a call, or return the outcome of its first run.

        Raises:
            RequestReused: The id was used for something else, or nobody knows what came of it.
            StratagemError: It did not work, now or then.
        """
        name = (call.caller.actor, request_id)
        while (first := self._under_way.get(name)) is not None:
            await asyncio.shield(first)
        self._under_way[name] = ended = asyncio.get_running_loop().create_future()
        try:
            return await self._run(_Claim(self._foundation, call, request_id))
        finally:
            del self._under_way[name]
            ended.set_result(None)

    async def find_earlier(self, call: Call, request_id: str) -> str | None:
        """Return the execution that a request id stands for already."""
        return await asyncio.to_thread(_Claim(self._foundation, call, request_id).made_by)

    async def _run(self, claim: _Claim) -> CallAnswer:
        earlier = await asyncio.to_thread(claim.made_by)
        if earlier is not None:
            return await self._await_outcome(earlier, claim.call)

        async def begin(execution_id: str) -> None:
            await asyncio.to_thread(claim.make, execution_id)

        try:
            finished = await self._execute(replace(claim.call, begin=begin))
        except BegunElsewhereError as error:
            return await self._await_outcome(error.execution_id, claim.call)
        return finished.answer()

    async def _await_outcome(self, execution_id: str, call: Call) -> CallAnswer:
        """Return the outcome of an execution, waiting a while if it is still running."""
        until = time.monotonic() + limits.REPEAT_SECONDS_MAX
        while (record := await asyncio.to_thread(self._find_record, execution_id, call)) is None:
            if time.monotonic() >= until:
                raise RequestReused(
                    "A call with this request id was started before, and it is not known "
                    "how it ended.",
                    field="requestId",
                    executionId=execution_id,
                    hint="Check whether it had its effect; to run it again, use a new request id.",
                )
            await asyncio.sleep(limits.RECORD_SECONDS)
        return answer_again(record)

    def _find_record(self, execution_id: str, call: Call) -> ExecutionRecord | None:
        self._recorder.settle()
        foundation = self._foundation
        with foundation.store.snapshot() as reader:
            try:
                view = foundation.views.view(reader, call.branch)
                return history.find(reader, view, execution_id)
            except ExecutionNotFound:
                return None


def answer_again(record: ExecutionRecord) -> CallAnswer:
    """Return what was recorded of a call in the form in which it was answered."""
    if record["status"] != "success":
        error = record["error"]
        kinds = {each.code: each for each in StratagemError.__subclasses__()}
        kind = kinds.get(error["code"], ExecutionFailed)
        raise kind(error["message"], executionId=record["executionId"], repeated=True)
    metadata: CallMetadata = {
        "duration": record["duration"],
        "cached": record["cached"],
        "provider": record["provider"],
        "attempts": record["attempts"],
        "repeated": True,
    }
    if "correction" in record:
        metadata["correction"] = record["correction"]
    if "warnings" in record:
        metadata["warnings"] = record["warnings"]
    return {
        "executionId": record["executionId"],
        "result": record.get("result"),
        "metadata": metadata,
    }
