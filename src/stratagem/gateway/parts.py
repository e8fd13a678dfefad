"""The parts of the gateway that all callers of a database share, for as long as it is open.

`assembly` puts them together. Each part was handed the parts it needs; this record is for those
who serve callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.calls.breakers import BreakerNotes, Breakers
from stratagem.gateway.calls.concurrency import ConcurrencyLimits
from stratagem.gateway.calls.executor import Executor
from stratagem.gateway.calls.idempotency import IdempotentCalls
from stratagem.gateway.calls.metrics import Metrics, MetricsPage, metrics_page
from stratagem.gateway.calls.pipelines import Pipelines
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.calls.result_cache import Cache
from stratagem.gateway.calls.work import WorkInProgress
from stratagem.gateway.definitions.contract import Runners
from stratagem.gateway.events import GatewayEvents
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.learning.corrector import LearningCorrector
from stratagem.gateway.registry.secrets import SecretGrants
from stratagem.gateway.registry.sign_ins import SignIns
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.search.foundation import Foundation

if TYPE_CHECKING:
    from stratagem.gateway.advice.recommender import Recommender
    from stratagem.gateway.outbound import Outbound
    from stratagem.gateway.sandbox.sandbox import Sandbox

__all__ = ["GatewayParts"]


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """The parts of a gateway. Those that are functions here are made when first called."""

    foundation: Foundation
    home: HomeLoop
    events: GatewayEvents
    new_id: Callable[[str], str]
    registry: Registry
    runners: Runners
    executor: Executor
    idempotency: IdempotentCalls
    pipelines: Pipelines
    recorder: Recorder
    work: WorkInProgress
    cache: Cache
    breakers: Breakers
    breaker_notes: BreakerNotes
    lanes: ConcurrencyLimits
    metrics: Metrics
    corrector: LearningCorrector
    secrets: SecretGrants
    outbound: Callable[[], Outbound]
    sandbox: Callable[[], Sandbox]
    sign_ins: Callable[[], SignIns]
    recommender: Callable[[], Recommender]

    def metrics_page(self) -> MetricsPage:
        """Return what Prometheus reads. To be called on the home loop."""
        return metrics_page(self.metrics, self.cache, self.breakers, self.lanes, self.recorder)

    def close(self) -> None:
        """End connections and processes, and write what is still to be recorded."""
        self.home.close(self.runners.close)
        self.recorder.close()
