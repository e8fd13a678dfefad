"""The sandbox check of `stratagem doctor`: which layers hold here, and what to install."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.sandbox.results import Language, LayerName
from stratagem.gateway.sandbox.sandbox import Sandbox
from stratagem.gateway.sandbox.trial import LayerReport

__all__ = ["Diagnosis", "diagnose"]

_LANGUAGES: Final[tuple[Language, ...]] = ("python", "javascript")
_SMALL: Final[tuple[LayerName, ...]] = ("monty", "quickjs")
_FULL: Final[tuple[LayerName, ...]] = ("bubblewrap", "landlock")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reports on all layers, and the conclusions from them."""

    reports: Sequence[LayerReport]
    network: bool

    @property
    def works(self) -> bool:
        """Tell whether code of both languages can run here, in any interpreter."""
        return all(
            self._find_holding_layer(language, _SMALL) or self._find_holding_layer(language, _FULL)
            for language in _LANGUAGES
        )

    def as_json(self) -> dict[str, Any]:
        """Return what `stratagem doctor` shows."""
        return {
            "works": self.works,
            "languages": {
                language: {
                    "snippet": self._find_holding_layer(language, _SMALL),
                    "full": self._find_holding_layer(language, _FULL),
                }
                for language in _LANGUAGES
            },
            "network": self.network,
            "limits": {
                "memoryBytes": limits.SANDBOX_MEMORY_BYTES_DEFAULT,
                "memoryBytesMax": limits.SANDBOX_MEMORY_BYTES_MAX,
                "seconds": limits.SANDBOX_SECONDS_DEFAULT,
                "secondsMax": limits.SANDBOX_SECONDS_MAX,
                "processes": limits.SANDBOX_PROCESSES_MAX,
                "fileBytes": limits.SANDBOX_FILE_BYTES_MAX,
                "outputBytes": limits.SANDBOX_OUTPUT_BYTES_MAX,
            },
            "layers": [report.as_json() for report in self.reports],
            "advice": list(dict.fromkeys(self._advice())),
        }

    def _find_holding_layer(
        self, language: Language, layers: Sequence[LayerName]
    ) -> LayerName | None:
        """Return the first of the layers that runs the language and holds, or None."""
        for report in self.reports:
            if report.language == language and report.layer in layers and report.holds:
                return report.layer
        return None

    def _advice(self) -> Iterator[str]:
        """Yield what to install or repair for each kind of code that no layer can run."""
        for report in self.reports:
            kind = _SMALL if report.layer in _SMALL else _FULL
            if self._find_holding_layer(report.language, kind) is not None:
                continue
            if report.missing is not None:
                yield f"{report.layer}: {report.missing}"
            else:
                yield f"{report.layer} did not stop all attacks and is not used: {report.breach}"


def diagnose(sandbox: Sandbox, *, network: bool) -> Diagnosis:
    """Try every attack on every layer, which takes a second. Do not call it on an event loop."""
    return Diagnosis(sandbox.self_test(), network)
