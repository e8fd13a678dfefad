"""What a workspace allows corrections to do.

A policy can only restrict: an uncertain correction is never applied, whatever the thresholds are.
Settings have the names of the document (`confidenceThreshold`, `maxRetries`, `strategies`); where
it defines a preset twice, the stricter value of each setting holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.gateway.correction.model import Candidate, Risk, Strategy

__all__ = ["PRESETS", "Policy", "StrategySetting", "preset"]


@dataclass(frozen=True, slots=True)
class StrategySetting:
    """Whether a strategy is used at all, and how confident each of its changes must be."""

    enabled: bool = True
    confidence: float = 0.0


# The first three are the document's.
_THRESHOLDS: Final[Mapping[Strategy, StrategySetting]] = MappingProxyType(
    {
        Strategy.TYPE_CONVERSION: StrategySetting(confidence=0.85),
        Strategy.MISSING_PARAMETERS: StrategySetting(confidence=0.75),
        Strategy.UNKNOWN_PROPERTIES: StrategySetting(confidence=0.9),
        Strategy.ENUM_VARIANTS: StrategySetting(confidence=0.85),
        Strategy.WRAPPERS: StrategySetting(confidence=0.85),
        Strategy.LIST_SHAPES: StrategySetting(confidence=0.85),
        Strategy.CONSTRAINTS: StrategySetting(confidence=0.9),
        Strategy.FORMATS: StrategySetting(confidence=0.85),
    }
)

# Other names that the document has for a strategy.
_STRATEGY_NAMES: Final = {
    **{strategy.value: strategy for strategy in Strategy},
    "unknownPropertyRemoval": Strategy.UNKNOWN_PROPERTIES,
    "propertyFiltering": Strategy.UNKNOWN_PROPERTIES,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """How corrections are treated. The default applies whatever is certain."""

    enabled: bool = True
    confidence_threshold: float = 0.7
    max_retries: int = 3
    strategies: Mapping[Strategy, StrategySetting] = field(default_factory=lambda: _THRESHOLDS)
    restricted_tools: frozenset[str] = frozenset()
    restricted_categories: frozenset[str] = frozenset()
    # Corrections of this risk or a higher one wait for confirmation; None asks for none.
    confirm_risk: Risk | None = Risk.HIGH
    confirm_categories: frozenset[str] = frozenset()
    enable_learning: bool = True
    enable_circuit_breaker: bool = True
    require_audit_log: bool = False
    experimental_features: bool = False
    debug_mode: bool = False

    def uses(self, strategy: Strategy) -> bool:
        """Say whether a strategy may be used."""
        return self.enabled and self.strategies.get(strategy, StrategySetting()).enabled

    def withholds(
        self, candidate: Candidate, *, tool: str | None = None, categories: Iterable[str] = ()
    ) -> str | None:
        """Return why a candidate is only offered, or None when it may be applied."""
        kinds = frozenset(categories)
        if not candidate.certain:
            return "It is not certain what was meant."
        if tool in self.restricted_tools or kinds & self.restricted_categories:
            return "Calls of this tool are not corrected unasked."
        if kinds & self.confirm_categories:
            return "Corrections for this category of tools are confirmed first."
        if self.confirm_risk and candidate.risk.rank >= self.confirm_risk.rank:
            return f"Corrections of {candidate.risk.value} risk are confirmed first."
        return self._below_threshold(candidate)

    def _below_threshold(self, candidate: Candidate) -> str | None:
        if candidate.confidence < self.confidence_threshold:
            return (
                f"Its confidence {candidate.confidence:.2f} is below {self.confidence_threshold}."
            )
        for change in candidate.changes:
            least = self.strategies.get(change.strategy, StrategySetting()).confidence
            if change.confidence < least:
                return f"{change.strategy.value} requires a confidence of {least}."
        return None

    def settings(self) -> dict[str, Any]:
        """Return the policy under the names of the document; `with_settings` reads it back."""
        return {
            "enabled": self.enabled,
            "confidenceThreshold": self.confidence_threshold,
            "maxRetries": self.max_retries,
            "strategies": {
                strategy.value: {"enabled": setting.enabled, "confidence": setting.confidence}
                for strategy, setting in self.strategies.items()
            },
            "restrictedTools": sorted(self.restricted_tools),
            "restrictedCategories": sorted(self.restricted_categories),
            "confirmationRequired": {
                "riskLevel": self.confirm_risk.value if self.confirm_risk else None,
                "toolCategories": sorted(self.confirm_categories),
            },
            "enableLearning": self.enable_learning,
            "enableCircuitBreaker": self.enable_circuit_breaker,
            "requireAuditLog": self.require_audit_log,
            "experimentalFeatures": self.experimental_features,
            "debugMode": self.debug_mode,
        }

    def with_settings(self, settings: Mapping[str, Any]) -> Policy:
        """Return the policy with some settings changed; those not named stay.

        Raises:
            ValidationFailed: A setting is unknown or has a value it cannot have.
        """
        if not isinstance(settings, Mapping):
            raise ValidationFailed("`settings` must be an object.", field="settings")
        changed = self
        for name, value in settings.items():
            if name not in _READERS:
                known = ", ".join(sorted(_READERS))
                raise ValidationFailed(
                    f"There is no setting `{name}`.", field=name, hint=f"There are: {known}."
                )
            changed = replace(changed, **_READERS[name](changed, name, value))
        return changed


_Read = dict[str, Any]


def _flag(attribute: str) -> Callable[[Policy, str, Any], _Read]:
    def read(_policy: Policy, name: str, value: Any) -> _Read:
        return {attribute: _boolean(value, name)}

    return read


def _names(attribute: str) -> Callable[[Policy, str, Any], _Read]:
    def read(_policy: Policy, name: str, value: Any) -> _Read:
        return {attribute: _texts(value, name)}

    return read


def _threshold(_policy: Policy, name: str, value: Any) -> _Read:
    return {"confidence_threshold": _share(value, name)}


def _retries(_policy: Policy, name: str, value: Any) -> _Read:
    most = limits.CORRECTION_RETRIES_MAX
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValidationFailed(
            f"`{name}` must be a whole number from 0 to {most}.", field=name, limit=most
        )
    return {"max_retries": value}


def _strategies(policy: Policy, name: str, value: Any) -> _Read:
    if not isinstance(value, Mapping):
        raise ValidationFailed(f"`{name}` must be an object by strategy.", field=name)
    changed = dict(policy.strategies)
    for key, setting in value.items():
        strategy = _strategy(key, name)
        changed[strategy] = _read_setting(setting, changed[strategy], f"{name}.{key}")
    return {"strategies": MappingProxyType(changed)}


def _read_setting(value: Any, current: StrategySetting, name: str) -> StrategySetting:
    if isinstance(value, bool):
        return replace(current, enabled=value)
    if not isinstance(value, Mapping) or not set(value) <= {"enabled", "confidence"}:
        raise ValidationFailed(
            f"`{name}` must be an object of `enabled` and `confidence`.", field=name
        )
    return StrategySetting(
        enabled=_boolean(value.get("enabled", current.enabled), f"{name}.enabled"),
        confidence=_share(value.get("confidence", current.confidence), f"{name}.confidence"),
    )


def _only(policy: Policy, name: str, value: Any) -> _Read:
    """Read a list of the strategies that are on; all others are off."""
    listed = _texts(value, name)
    chosen = {_strategy(key, name) for key in listed - {"all"}}
    every = "all" in listed
    return {
        "strategies": MappingProxyType(
            {
                strategy: replace(setting, enabled=every or strategy in chosen)
                for strategy, setting in policy.strategies.items()
            }
        )
    }


def _confirmation(_policy: Policy, name: str, value: Any) -> _Read:
    """Read `true` (whatever is not of low risk), `false` (nothing), or a level and categories."""
    if isinstance(value, bool):
        return {"confirm_risk": Risk.MEDIUM if value else None}
    if not isinstance(value, Mapping) or not set(value) <= {"riskLevel", "toolCategories"}:
        raise ValidationFailed(
            f"`{name}` must be true, false, or an object of `riskLevel` and `toolCategories`.",
            field=name,
        )
    found: _Read = {}
    if "riskLevel" in value:
        level = value["riskLevel"]
        if level is not None and level not in set(Risk):
            raise ValidationFailed(f"`{name}.riskLevel` must be low, medium or high.", field=name)
        found["confirm_risk"] = None if level is None else Risk(level)
    if "toolCategories" in value:
        found["confirm_categories"] = _texts(value["toolCategories"], f"{name}.toolCategories")
    return found


def _strategy(key: Any, name: str) -> Strategy:
    found = _STRATEGY_NAMES.get(key) if isinstance(key, str) else None
    if found is None:
        known = ", ".join(strategy.value for strategy in Strategy)
        raise ValidationFailed(
            f"There is no strategy {key!r}.", field=name, hint=f"There are: {known}."
        )
    return found


def _boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ValidationFailed(f"`{name}` must be true or false.", field=name)
    return value


def _share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValidationFailed(f"`{name}` must be a number from 0 to 1.", field=name)
    return float(value)


def _texts(value: Any, name: str) -> frozenset[str]:
    if not isinstance(value, list | tuple | set | frozenset) or not all(
        isinstance(item, str) for item in value
    ):
        raise ValidationFailed(f"`{name}` must be a list of names.", field=name)
    return frozenset(value)


_READERS: Final[Mapping[str, Callable[[Policy, str, Any], _Read]]] = {
    "enabled": _flag("enabled"),
    "confidenceThreshold": _threshold,
    "maxRetries": _retries,
    "maxCorrectionAttempts": _retries,
    "strategies": _strategies,
    "enabledStrategies": _only,
    "allowedCorrectionTypes": _only,
    "restrictedTools": _names("restricted_tools"),
    "restrictedCategories": _names("restricted_categories"),
    "requireConfirmation": _confirmation,
    "confirmationRequired": _confirmation,
    "enableLearning": _flag("enable_learning"),
    "enableCircuitBreaker": _flag("enable_circuit_breaker"),
    "requireAuditLog": _flag("require_audit_log"),
    "experimentalFeatures": _flag("experimental_features"),
    "debugMode": _flag("debug_mode"),
}

PRESETS: Final[Mapping[str, Policy]] = MappingProxyType(
    {
        "production": Policy().with_settings(
            {
                "confidenceThreshold": 0.8,
                "maxRetries": 3,
                "requireConfirmation": True,
                "enabledStrategies": ["typeConversion"],
                "requireAuditLog": True,
            }
        ),
        "staging": Policy().with_settings(
            {
                "confidenceThreshold": 0.7,
                "maxRetries": 5,
                "enableCircuitBreaker": False,
                "experimentalFeatures": True,
            }
        ),
        # Given twice, with 0.6 and 5 retries, and with 0.5 and 10.
        "development": Policy().with_settings(
            {
                "confidenceThreshold": 0.6,
                "maxRetries": 5,
                "requireConfirmation": False,
                "enabledStrategies": ["all"],
                "enableCircuitBreaker": False,
                "debugMode": True,
            }
        ),
    }
)


def preset(name: str) -> Policy:
    """Return a preset by its name.

    Raises:
        ValidationFailed: There is none of this name.
    """
    if name not in PRESETS:
        raise ValidationFailed(
            f"There is no preset {name!r}.",
            field="preset",
            hint=f"There are: {', '.join(PRESETS)}.",
        )
    return PRESETS[name]
