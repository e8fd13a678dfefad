"""Spans are sent to the collector that OpenTelemetry's own variables name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.surfaces.serving import Service

_SERVE = """
import stratagem, sys
from stratagem.surfaces.serving.span_export import export_spans
assert export_spans()
with stratagem.open(sys.argv[1], embedder="none") as db:
    db.call("strata_store", {"key": "city", "value": "Oslo"})
"""


def test_spans_reach_a_collector(tmp_path: Path) -> None:
    with Service() as collector:
        collector.answers["/v1/traces"] = lambda _said: (200, "application/x-protobuf", b"")
        address = f"http://{collector.host}"
        done = subprocess.run(
            [sys.executable, "-c", _SERVE, str(tmp_path / "m.db")],
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        received = collector.count("/v1/traces")

    assert done.returncode == 0, done.stderr
    assert received >= 1


def test_without_a_collector_nothing_is_imported() -> None:
    code = (
        "import sys; from stratagem.surfaces.serving.span_export import export_spans;"
        "assert not export_spans(); assert 'opentelemetry.sdk' not in sys.modules"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}

    done = subprocess.run([sys.executable, "-c", code], env=clean, check=False)

    assert done.returncode == 0
