"""The kinds of record that the gateway keeps, and what their events mean.

An execution is a fact that stands for itself. Successes and failures are two kinds, grouped by
tool, because the store keeps count of each group in every view: that is a tool's evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from stratagem.engine.records import EventKind, Projection, RecordKind
from stratagem.gateway import names
from stratagem.gateway.secret_grants import settle_grants

__all__ = ["KINDS", "is_evidence"]

# Records that were written before they said whose fault it was are read as they always were.
_NO_EVIDENCE: Final = frozenset(
    {"validation_error", "missing_required", "invalid_input", "permission_denied", "rate_limited"}
)


def is_evidence(error: Mapping[str, Any]) -> bool:
    """Whether a recorded failure says something about the tool."""
    blame = error.get("blame")
    return error.get("code") not in _NO_EVIDENCE if blame is None else blame == "tool"


# Tools and resources have no text for the search index: `advice` has an index of its own, which
# also holds tools that are in no store, and nothing searches resources by their words.


def _tool(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        tags=tuple(content.get("tags", ())),
        facets=(names.facet_id(names.TOOL, content["id"]),),
        group=content.get("category") or "utility",
    )


def _resource(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        tags=tuple(content.get("tags", ())),
        facets=(names.facet_id(names.RESOURCE, content["id"]),),
    )


def _execution(content: Mapping[str, Any], _key: str | None) -> Projection:
    facets = [
        names.FACET_EXECUTION,
        names.facet_tool(content["tool"]),
        names.facet_execution(content["executionId"]),
    ]
    context = content.get("context") or {}
    if agent := context.get("agentId"):
        facets.append(names.facet_agent(agent))
    if request := context.get("requestId"):
        facets.append(names.facet_request(request))
    error = content.get("error") or {}
    if error.get("knownFix"):
        facets.append(names.facet_fix(content["tool"]))
    # What the caller did wrong is no evidence against the tool.
    group = content["tool"] if is_evidence(error) else None
    return Projection(facets=tuple(facets), group=group)


def _correction(content: Mapping[str, Any], _key: str | None) -> Projection:
    # Counted by tool and pattern: that is the evidence for a pattern.
    tool = content["tool"]
    patterns = content.get("patterns") or (content["pattern"],)
    return Projection(
        facets=(
            names.FACET_CORRECTION,
            names.facet_corrected(tool),
            *(names.facet_correction(tool, each) for each in patterns),
        ),
        group=names.PART.join((tool, content["pattern"])),
    )


def _refusal(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(names.facet_corrected(content["tool"]),), group=content["tool"])


def _lesson(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        group=names.PART.join(
            (
                content["tool"],
                content["kind"],
                content["path"],
                content["form"],
                content["meaning"],
                content["teacher"],
            )
        )
    )


def _step(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(names.facet_run(content["runId"]),))


def _recommendation(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(names.FACET_RECOMMENDATION,))


def _plain(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection()


def _deletion(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(deleted=True)


def _simple(name: str, writes: str, deletes: str, quoting: tuple[str, ...] = ()) -> RecordKind:
    events = (EventKind(writes, _plain), EventKind(deletes, _deletion, deletes=True))
    return RecordKind(name, events, writes=writes, deletes=deletes, quoting=quoting)


def _of_no_branch(name: str, writes: str, deletes: str) -> RecordKind:
    return replace(_simple(name, writes, deletes), derived=True)


# The fields of call records with arguments and results.
_CALL: Final = ("arguments", "originalArguments", "result", "error", "context", "correction")
_RUN: Final = ("definition", "input", "result", "error")
_AUDIT: Final = ("audit",)


KINDS: Final = (
    RecordKind(
        names.TOOL,
        (
            EventKind(names.TOOL_REGISTERED, _tool),
            EventKind(names.TOOL_UPDATED, _tool),
            EventKind(names.TOOL_REMOVED, _deletion, deletes=True),
        ),
        writes=names.TOOL_UPDATED,
        deletes=names.TOOL_REMOVED,
        set_fields=frozenset({"tags", "capabilities"}),
        grouped=True,
        owned_by="owner",
        guarded=("rights", "pricing"),
    ),
    RecordKind(
        names.RESOURCE,
        (
            EventKind(names.RESOURCE_CREATED, _resource),
            EventKind(names.RESOURCE_UPDATED, _resource),
            EventKind(names.RESOURCE_REMOVED, _deletion, deletes=True),
        ),
        writes=names.RESOURCE_UPDATED,
        deletes=names.RESOURCE_REMOVED,
        set_fields=frozenset({"tags"}),
    ),
    RecordKind(
        names.EXECUTION_OK,
        (EventKind(names.EXECUTION_SUCCEEDED, _execution),),
        grouped=True,
        quoting=_CALL,
        named_by="executionId",
    ),
    RecordKind(
        names.EXECUTION_FAILED,
        (EventKind(names.EXECUTION_FAILED_EVENT, _execution),),
        grouped=True,
        quoting=_CALL,
        named_by="executionId",
    ),
    RecordKind(
        names.CORRECTION_OK,
        (EventKind(names.CORRECTION_HELD, _correction),),
        grouped=True,
        quoting=_AUDIT,
    ),
    RecordKind(
        names.CORRECTION_FAILED,
        (EventKind(names.CORRECTION_FELL, _correction),),
        grouped=True,
        quoting=_AUDIT,
    ),
    RecordKind(
        names.CORRECTION_REFUSED,
        (EventKind(names.CORRECTION_WITHHELD, _refusal),),
        grouped=True,
        quoting=_AUDIT,
    ),
    RecordKind(
        names.CORRECTION_OPEN,
        (EventKind(names.CORRECTION_LEFT_OPEN, _plain),),
        quoting=_AUDIT,
    ),
    RecordKind(names.LESSON_FOR, (EventKind(names.LESSON_CONFIRMED, _lesson),), grouped=True),
    RecordKind(
        names.LESSON_AGAINST, (EventKind(names.LESSON_CONTRADICTED, _lesson),), grouped=True
    ),
    RecordKind(
        names.RECOMMENDATION,
        (EventKind(names.TOOLS_RECOMMENDED, _recommendation),),
        quoting=("intent", "context"),
    ),
    RecordKind(names.STEP, (EventKind(names.STEP_RECORDED, _step),), quoting=_RUN),
    RecordKind(
        names.PIPELINE_RUN,
        (EventKind(names.PIPELINE_STARTED, _plain), EventKind(names.PIPELINE_ENDED, _plain)),
        writes=names.PIPELINE_ENDED,
        quoting=_RUN,
    ),
    _simple(names.RESULT, names.RESULT_KEPT, names.RESULT_DROPPED, quoting=("result", "outcome")),
    # Who may call what holds on every branch; nobody changes it by a merge.
    RecordKind(
        names.TOOL_SET,
        (
            EventKind(names.TOOL_SET_DEFINED, _plain),
            EventKind(names.TOOL_SET_REMOVED, _deletion, deletes=True),
        ),
        writes=names.TOOL_SET_DEFINED,
        deletes=names.TOOL_SET_REMOVED,
        derived=True,
    ),
    RecordKind(
        names.APPROVAL,
        (
            EventKind(names.APPROVAL_ASKED, _plain),
            EventKind(names.APPROVAL_DECIDED, _plain),
            EventKind(names.APPROVAL_USED, _deletion, deletes=True),
        ),
        writes=names.APPROVAL_ASKED,
        deletes=names.APPROVAL_USED,
        derived=True,
        quoting=("arguments",),
    ),
    # No branch has work of its own, and no merge carries it.
    RecordKind(
        names.WORK_IN_PROGRESS,
        (
            EventKind(names.WORK_NOTED, _plain),
            EventKind(names.WORK_CANCELLED, _plain),
            EventKind(names.WORK_ENDED, _deletion, deletes=True),
        ),
        writes=names.WORK_NOTED,
        deletes=names.WORK_ENDED,
        derived=True,
    ),
    # What may be sent where, and by what somebody is let in, is no branch's: no merge carries it.
    RecordKind(
        names.GRANT,
        (
            EventKind(names.SECRET_GRANTED, _plain),
            EventKind(names.SECRET_SUSPENDED, _plain),
            EventKind(names.SECRET_WITHDRAWN, _deletion, deletes=True),
        ),
        writes=names.SECRET_GRANTED,
        deletes=names.SECRET_WITHDRAWN,
        derived=True,
        settle=settle_grants,
    ),
    _of_no_branch(names.SECRET, names.SECRET_SET, names.SECRET_REMOVED),
    _of_no_branch(names.CREDENTIAL, names.CREDENTIAL_SET, names.CREDENTIAL_REMOVED),
    _of_no_branch(names.SIGN_IN, names.SIGN_IN_BEGUN, names.SIGN_IN_ENDED),
    _of_no_branch(names.OAUTH_CLIENT, names.OAUTH_CLIENT_KEPT, names.OAUTH_CLIENT_REMOVED),
    _of_no_branch(names.BREAKER, names.BREAKER_OPENED, names.BREAKER_CLOSED),
    _of_no_branch(names.GUARDRAIL, names.GUARDRAIL_DEFINED, names.GUARDRAIL_REMOVED),
    _simple(names.SERVER, names.SERVER_ADDED, names.SERVER_REMOVED),
    _simple(names.PROVIDER, names.PROVIDER_CONFIGURED, names.PROVIDER_REMOVED),
    _simple(names.SETTING, names.SETTING_CHANGED, names.SETTING_REMOVED),
    _simple(names.CONNECTION, names.CONNECTION_SET, names.CONNECTION_REMOVED),
)
