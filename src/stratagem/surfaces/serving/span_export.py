"""Sends spans to a collector over OTLP, where the environment names one.

The variables are OpenTelemetry's own (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`,
`OTEL_RESOURCE_ATTRIBUTES`, …). An existing configuration of OpenTelemetry, as by
`opentelemetry-instrument`, is not changed.
"""

from __future__ import annotations

import atexit
import logging
import os
from typing import Final

from stratagem.version import VERSION

__all__ = ["export_spans"]

logger = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_OFF: Final = "OTEL_SDK_DISABLED"


def export_spans() -> bool:
    """Begin to send the spans of this process; return whether there is anything to send them to."""
    if not any(os.environ.get(each) for each in _ENDPOINTS):
        return False
    if os.environ.get(_OFF, "").casefold() == "true":
        return False
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("no spans are sent: run pip install 'stratagem[telemetry]'")
        return False
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return True
    named = {"service.name": "stratagem", "service.version": VERSION}
    if os.environ.get("OTEL_SERVICE_NAME"):
        named.pop("service.name")
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    # What waits to be sent is sent before the process ends.
    atexit.register(provider.shutdown)
    return True
