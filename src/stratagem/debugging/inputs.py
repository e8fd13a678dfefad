"""What the operations of debugging take."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from stratagem import limits

__all__ = [
    "AddIncidentInput",
    "AddSolutionInput",
    "RankedSolutionsInput",
    "RecordOutcomeInput",
]

Env = Annotated[
    dict[str, Any] | Literal["auto"], Field(description='Where it was tried; "auto": here')
]
EnvBucket = Annotated[str | None, Field(description="Canonical bucket, overrides env")]
LookupId = Annotated[str | None, Field(description="From ranked_solutions")]
Branch = Annotated[str | None, Field(description="Branch")]
Steps = Annotated[str | list[str], Field(description="The fix, step by step")]
RequestId = Annotated[str | None, Field(description="Makes a retry safe")]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RankedSolutionsInput(_Input):
    """Parameters of ranked_solutions."""

    query_text: str = Field(description="Error, stack trace or log")
    env: dict[str, Any] | Literal["auto"] = Field(
        description='{"os":"linux","python":"3.12","framework":"torch 2.1",…} or "auto"'
    )
    limit: int = Field(
        limits.SOLUTIONS_DEFAULT, description="Solutions", ge=1, le=limits.SOLUTIONS_MAX
    )
    branch: Branch = None
    as_of: str | int | None = Field(None, description="Past moment")


class RecordOutcomeInput(_Input):
    """Parameters of record_outcome."""

    solution_id: str
    worked: bool
    env: Env
    lookup_id: LookupId = None
    env_bucket: EnvBucket = None
    notes: str | None = None
    branch: Branch = None
    request_id: RequestId = None


class AddSolutionInput(_Input):
    """Parameters of add_solution."""

    incident_id: str
    steps: Steps
    env: Env
    env_bucket: EnvBucket = None
    lookup_id: LookupId = None
    branch: Branch = None
    request_id: RequestId = None


class AddIncidentInput(_Input):
    """Parameters of add_incident."""

    title: str
    steps: Steps
    env: Env
    worked: bool
    error_signature: str | None = Field(None, description="Error text or stack trace")
    summary: str | None = None
    tags: list[str] | None = None
    lookup_id: LookupId = None
    env_bucket: EnvBucket = None
    notes: str | None = None
    distinct: bool = Field(default=False, description="Add although the signature is known")
    branch: Branch = None
    request_id: RequestId = None
