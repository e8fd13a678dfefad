"""The two services that answer from records of calls, under the names of the document.

The *validation service* reports how calls went, the *pattern service* how tools are called. Where
one of them fails, a request is answered without it, and the answer says so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import orjson

from stratagem.engine.evidence import Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.advice.answers import (
    AgentPerformance,
    ArgumentExample,
    ServiceReport,
    ToolReliability,
)
from stratagem.gateway.advice.execution_records import (
    Chain,
    Execution,
    ExecutionRecords,
    ExecutionRecordsCache,
    read_arguments,
)
from stratagem.gateway.advice.retrieval.catalogue import ToolCatalogue
from stratagem.gateway.advice.retrieval.request_history import RequestSupport
from stratagem.gateway.registry.tools import Tool
from stratagem.storage.catalogue import CatalogueReader
from stratagem.storage.contract import Reader

__all__ = ["PatternService", "RecordServices", "ValidationService", "placeholders"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
_EXAMPLES_MAX: Final = 3
# From which share of calls that worked on a caller is a low or a medium risk.
_LOW_RISK_MIN: Final = 0.8
_MEDIUM_RISK_MIN: Final = 0.5
_READ_MAX: Final = 50
_PLACEHOLDERS: Final = {
    "string": "<text>",
    "integer": 0,
    "number": 0.0,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}


class ValidationService:
    """Reports how calls went."""

    def __init__(self, records: ExecutionRecordsCache) -> None:
        self._records = records

    def counts(self, catalogue: CatalogueReader, view: View) -> dict[str, tuple[int, int]]:
        """Return for every tool how many calls worked and failed, exactly."""
        worked = catalogue.group_counts(view.lineage, names.EXECUTION_OK)
        failed = catalogue.group_counts(view.lineage, names.EXECUTION_FAILED)
        return {tool: (worked.get(tool, 0), failed.get(tool, 0)) for tool in {*worked, *failed}}

    def records(self, reader: Reader, view: View) -> ExecutionRecords:
        """Return the newest executions."""
        return self._records.of(reader, view)

    def insights(
        self, records: ExecutionRecords, tool: str, counts: tuple[int, int]
    ) -> ToolReliability:
        """Return how the calls of a tool went."""
        worked, failed = counts
        return {
            "successRate": round(worked / (worked + failed), 4) if worked + failed else None,
            "commonErrors": records.common_errors(tool),
            "avgRecoveryTime": records.recovery_ms(tool),
        }

    def performance(self, executions: list[Execution]) -> AgentPerformance:
        """Return how a caller's calls went; null where there were none."""
        if not executions:
            return {"agentPerformanceScore": None, "riskLevel": None}
        belief = believe([Observation(worked=each.worked, weight=1) for each in executions])
        return {
            "agentPerformanceScore": round(belief.mean, 4),
            "riskLevel": "low"
            if belief.mean >= _LOW_RISK_MIN
            else "medium"
            if belief.mean >= _MEDIUM_RISK_MIN
            else "high",
        }


class PatternService:
    """Reports how tools are called."""

    def __init__(self, catalogue: ToolCatalogue, records: ExecutionRecordsCache) -> None:
        self._catalogue = catalogue
        self._records = records

    def support(self, reader: Reader, view: View, intent: str) -> dict[str, RequestSupport]:
        """Return how calls of tools went after similar requests."""
        return self._catalogue.intents(reader, view).support(intent)

    def examples(
        self, reader: Reader, view: View, tool: Tool, caller: str
    ) -> list[ArgumentExample]:
        """Return arguments of a tool: the caller's own, registered ones, or placeholders."""
        own = self._records.of(reader, view).of(tool=tool.name, caller=caller)
        return (
            _own_examples(reader, own)
            or _registered_examples(tool)
            or [_example(placeholders(tool), "What it requires, by type", None, 0)]
        )

    def chains(self, reader: Reader, view: View, tool: str | None = None) -> list[Chain]:
        """Return the chains that a tool is part of, the most reliable first."""
        chains = self._records.of(reader, view).chains()
        return [each for each in chains if tool is None or tool in each.sequence]


class RecordServices:
    """Asks the two services for one request, and notes which of them failed."""

    def __init__(self, validation: ValidationService, patterns: PatternService) -> None:
        self.validation = validation
        self.patterns = patterns
        self._away: dict[str, bool] = {"validationService": False, "patternService": False}

    def ask_validation(self, ask: Callable[[ValidationService], T], default: T) -> T:
        """Return an answer of the validation service, or the default where it fails."""
        return self._ask("validationService", lambda: ask(self.validation), default)

    def ask_patterns(self, ask: Callable[[PatternService], T], default: T) -> T:
        """Return an answer of the pattern service, or the default where it fails."""
        return self._ask("patternService", lambda: ask(self.patterns), default)

    def is_away(self, service: str) -> bool:
        """Whether a service failed."""
        return self._away[service]

    def status(self) -> ServiceReport:
        """Return the documented fields."""
        return {
            "fallbackMode": any(self._away.values()),
            "serviceStatus": {
                name: "unavailable" if away else "available" for name, away in self._away.items()
            },
        }

    def _ask(self, service: str, ask: Callable[[], T], default: T) -> T:
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, the rest answers
            logger.warning("the %s does not answer: %s", service, error)
            self._away[service] = True
            return default


def placeholders(tool: Tool) -> dict[str, Any]:
    """Return a value of the right type for each parameter that a tool requires."""
    schema = tool.content["inputSchema"]
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = [each for each in _required_names(schema) if each in properties]
    return {name: _placeholder(properties[name]) for name in required}


def _required_names(schema: Mapping[str, Any]) -> Iterable[str]:
    """Yield what has to be given: in the first form, where a schema has several."""
    yield from schema.get("required") or ()
    forms = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(forms, list) and forms and isinstance(forms[0], Mapping):
        yield from forms[0].get("required") or ()


def _placeholder(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = schema.get("type")
    forms = schema.get("anyOf") or schema.get("oneOf")
    if kind is None and isinstance(forms, list) and forms:
        return _placeholder(forms[0])
    return _PLACEHOLDERS.get(kind[0] if isinstance(kind, list) and kind else kind or "")


def _own_examples(reader: Reader, executions: list[Execution]) -> list[ArgumentExample]:
    worked = [each for each in executions if each.worked][-_READ_MAX:]
    failed = [each for each in executions if not each.worked][-_READ_MAX:]
    counts: Counter[bytes] = Counter()
    for arguments in read_arguments(reader.log, worked):
        counts[orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)] += 1
    against = [_shape(arguments) for arguments in read_arguments(reader.log, failed)]
    found = []
    for text, count in counts.most_common(_EXAMPLES_MAX):
        arguments = orjson.loads(text)
        belief = believe(
            [
                Observation(worked=True, weight=count),
                Observation(worked=False, weight=against.count(_shape(arguments))),
            ]
        )
        said = f"Worked for you {count} {'time' if count == 1 else 'times'}"
        found.append(_example(arguments, said, round(belief.mean, 4), count))
    return found


def _registered_examples(tool: Tool) -> list[ArgumentExample]:
    return [
        _example(each["input"], each.get("description") or "Registered with the tool", None, 0)
        for each in (tool.content.get("examples") or ())[:_EXAMPLES_MAX]
        if isinstance(each, Mapping) and "input" in each
    ]


def _example(
    example: Any, description: str, confidence: float | None, count: int
) -> ArgumentExample:
    return {
        "example": example,
        "description": description,
        "confidence": confidence,
        "usageCount": count,
    }


def _shape(arguments: Any) -> tuple[str, ...]:
    return tuple(sorted(arguments)) if isinstance(arguments, Mapping) else ()
