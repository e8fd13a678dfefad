"""Which parts of the corrections work. A part that fails is done without, and said so.

* Without the patterns, corrections come from the schema alone.
* Without the policy nothing is corrected: what it forbids is not known.
* Without the engine nothing is corrected.
* Without the learning pipeline nothing new is learned.

Calls whose arguments fit need none of these parts.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Literal

__all__ = ["PARTS", "Health", "Part"]

logger = logging.getLogger(__name__)

Part = Literal[
    "patternService",
    "policyService",
    "validationService",
    "correctionEngine",
    "learningPipeline",
]
PARTS: Final[tuple[Part, ...]] = (
    "patternService",
    "validationService",
    "policyService",
    "correctionEngine",
    "learningPipeline",
)


class Health:
    """The faults of the parts, as they were when each was last used."""

    def __init__(self) -> None:
        self._faults: dict[Part, str] = {}

    def failed(self, part: Part, error: BaseException) -> None:
        """Note that a part did not work."""
        if part not in self._faults:
            logger.warning("corrections do without the %s: %s", part, error)
        self._faults[part] = f"{type(error).__name__}: {error}"[:300]

    def worked(self, part: Part) -> None:
        """Note that a part worked."""
        if self._faults:
            self._faults.pop(part, None)

    @property
    def fallback(self) -> bool:
        """Whether something is missing."""
        return bool(self._faults)

    def status(self) -> dict[str, str]:
        """Return the state of each part."""
        return {part: "unavailable" if part in self._faults else "healthy" for part in PARTS}

    def faults(self) -> dict[str, str]:
        """Return what is wrong with the parts that do not work."""
        return {str(part): fault for part, fault in self._faults.items()}

    def told(self) -> dict[str, Any]:
        """Return what an answer says where something is missing; nothing where all is well."""
        return {"fallbackMode": True, "serviceStatus": self.status()} if self._faults else {}
