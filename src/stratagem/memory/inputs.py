"""What the operations of memory take: names, types and the words that describe them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt

from stratagem import limits

__all__ = [
    "BranchInput",
    "ForgetInput",
    "HistoryInput",
    "LogInput",
    "PurgeInput",
    "RecallInput",
    "SearchInput",
    "StatusInput",
    "StoreInput",
]

# Parameters that speak for themselves have no description: a tool list is paid for in each
# conversation.
Namespace = str | None
Branch = str | None
Tags = list[str] | None
AsOf = Annotated[
    str | int | None,
    Field(description="Past moment: ISO 8601, 1h ago, yesterday 14:00, @version"),
]
Session = Annotated[
    str | None, Field(description="Conversation id; its earlier messages give context")
]
RequestId = Annotated[str | None, Field(description="Same id, written once")]
Cursor = Annotated[str | None, Field(description="`next` of the last answer")]
MaxChars = Annotated[
    int,
    Field(
        description="Answer budget",
        ge=limits.ANSWER_CHARS_MIN,
        le=limits.ANSWER_CHARS_MAX,
        json_schema_extra=lambda schema: schema.pop("maximum"),
    ),
]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StoreInput(_Input):
    """Parameters of strata_store."""

    key: str | None = None
    value: Any = Field(None, description="Any JSON")
    tags: Tags = None
    namespace: str | None = Field(None, description="Grouping; default: the client's")
    items: list[dict[str, Any]] | None = Field(
        None, description="Several entries at once, each with key and value"
    )
    branch: Branch = None
    ttl: str | StrictFloat | StrictInt | None = Field(
        None, description="Expires after: 7d, 12h, seconds"
    )
    expected_version: int | None = Field(
        None, description="Only if at this version; 0: only if new"
    )
    path: str | None = Field(None, description="Change one place: JSONPath, $.a.b[0]")
    session: Session = None
    index: bool = Field(default=True, description="false: not searchable (counters)")
    request_id: RequestId = None


class RecallInput(_Input):
    """Parameters of strata_recall."""

    key: str | None = None
    namespace: Namespace = None
    as_of: AsOf = None
    keys: list[str] | None = Field(None, description="Several keys")
    branch: Branch = None
    path: str | None = Field(None, description="One place of it: JSONPath")
    cursor: Cursor = None
    max_chars: MaxChars = limits.ANSWER_CHARS_DEFAULT


class SearchInput(_Input):
    """Parameters of strata_search."""

    query: str = Field(description="What to find, in natural language")
    k: int = Field(limits.SEARCH_K_DEFAULT, description="Results", ge=1, le=limits.SEARCH_K_MAX)
    tags: Tags = None
    namespace: str | None = Field(None, description="Only this one; default: all")
    branch: Branch = None
    as_of: AsOf = None
    cursor: Cursor = None
    max_chars: MaxChars = limits.ANSWER_CHARS_DEFAULT


class ForgetInput(_Input):
    """Parameters of strata_forget."""

    key: str | None = None
    namespace: Namespace = None
    keys: list[str] | None = Field(None, description="Several keys")
    branch: Branch = None
    request_id: RequestId = None


class LogInput(_Input):
    """Parameters of strata_log."""

    event: str = Field(description="Label: observation, decision, message")
    data: Any = Field(description="Payload: any JSON")
    namespace: Namespace = None
    tags: Tags = None
    session: Session = None
    branch: Branch = None
    request_id: RequestId = None


class BranchInput(_Input):
    """Parameters of strata_branch."""

    action: Literal["create", "switch", "list", "fork", "merge", "diff", "delete", "restore"]
    name: str | None = Field(None, description="Branch to make, switch to, delete, restore")
    source: str | None = Field(None, description="merge: from this branch")
    compare: str | None = Field(None, description="diff: with this branch")
    branch: str | None = Field(None, description="Fork from, merge into; default: current")
    as_of: AsOf = None
    strategy: Literal["source_wins", "target_wins"] | None = Field(
        None, description="merge: who wins; default: refuse and list conflicts"
    )
    preview: bool = Field(default=False, description="merge: change nothing")
    decisions: dict[str, Any] | None = Field(
        None, description="merge: {conflict id: source, target or {value: …}}"
    )
    cursor: Cursor = None
    max_chars: MaxChars = limits.ANSWER_CHARS_DEFAULT
    request_id: RequestId = None


class HistoryInput(_Input):
    """Parameters of strata_history."""

    key: str | None = Field(None, description="Key; without it: the branch's time range")
    namespace: Namespace = None
    branch: Branch = None
    as_of: AsOf = None
    limit: int = Field(
        limits.HISTORY_PAGE_DEFAULT, description="Versions", ge=1, le=limits.HISTORY_PAGE_MAX
    )
    cursor: Cursor = None
    max_chars: MaxChars = limits.ANSWER_CHARS_DEFAULT


class StatusInput(_Input):
    """strata_status takes nothing."""


class PurgeInput(_Input):
    """Parameters of strata_purge."""

    key: str | None = Field(None, description="Entry to erase, with every version on any branch")
    namespace: Namespace = None
    sequence: int | None = Field(None, description="Logged event to erase", ge=1)
