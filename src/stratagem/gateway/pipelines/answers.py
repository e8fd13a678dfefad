"""The answers of the pipeline operations as TypedDicts; at run time each is a plain dict."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, final

__all__ = [
    "ItemEnd",
    "ItemReport",
    "PipelinePreview",
    "PipelineRun",
    "StepFailure",
    "StepPreview",
    "StepReport",
]


ItemEnd = Literal["finished", "recovered", "failed", "not_run"]


class StepFailure(TypedDict):
    """The error of a step; `step` is set if it ended the pipeline."""

    code: str
    message: str
    field: NotRequired[Any]
    step: NotRequired[str]


class ItemReport(TypedDict):
    """How one element of a step's `forEach` went."""

    status: ItemEnd
    attempts: int
    error: NotRequired[StepFailure]


class StepReport(TypedDict):
    """How a step went; `duration` in milliseconds."""

    id: str
    tool: str
    status: Literal["finished", "recovered", "partial", "failed", "skipped", "not_run"]
    attempts: NotRequired[int]
    duration: NotRequired[float]
    result: NotRequired[Any]
    error: NotRequired[StepFailure]
    items: NotRequired[list[ItemReport]]


@final
class PipelineRun(TypedDict):
    """How a pipeline ended: each step with its status, and what came out.

    `running`: it was started with `async` and goes on.
    """

    runId: str
    name: str
    success: bool
    output: Any
    steps: list[StepReport]
    error: StepFailure | None
    running: NotRequired[bool]


class StepPreview(TypedDict):
    """What a step would do; `runs` and `items` are null where that is not known yet."""

    id: str
    tool: str
    toolExists: bool
    arguments: dict[str, Any]
    fromPreviousResult: list[str]
    runs: bool | None
    items: int | None
    problems: list[str]


@final
class PipelinePreview(TypedDict):
    """What a pipeline would do."""

    name: str
    valid: bool
    steps: list[StepPreview]
