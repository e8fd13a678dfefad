"""Pipelines: tools called one after another, each with what the ones before it found.

`definition` reads and checks one, `machine` says what is to be done next and can begin anywhere,
`running` does it, `preview` tells it beforehand. `expressions` and `templates` are the language.
"""

from stratagem.gateway.pipelines.definition import Pipeline, Step, plan
from stratagem.gateway.pipelines.machine import (
    State,
    StepCall,
    StepEvent,
    apply,
    next_steps,
    resumed,
    start,
)
from stratagem.gateway.pipelines.preview import dry_run
from stratagem.gateway.pipelines.running import PipelineResult, run_pipeline

__all__ = [
    "Pipeline",
    "PipelineResult",
    "State",
    "Step",
    "StepCall",
    "StepEvent",
    "apply",
    "dry_run",
    "next_steps",
    "plan",
    "resumed",
    "run_pipeline",
    "start",
]
