"""The policies of corrections, stored in the log: one for all tools, and overrides for some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.errors import ValidationFailed
from stratagem.function_cache import cache_texts
from stratagem.gateway import names
from stratagem.gateway.correction import Policy, preset
from stratagem.storage.contract import Reader, RecordReader, Transaction, Version

__all__ = ["EffectivePolicy", "change", "describe_changes", "overrides", "preview", "read"]

_KEY: Final = "auto_correction"
_OWN: Final = "auto_correction:"
# Settings that the document has two names for, under the one they are kept by.
_KEPT_AS: Final = {
    "maxCorrectionAttempts": "maxRetries",
    "enabledStrategies": "strategies",
    "allowedCorrectionTypes": "strategies",
    "requireConfirmation": "confirmationRequired",
}
_PARTS: Final = {
    "enableLearning": "learning pipeline",
    "enableCircuitBreaker": "circuit breaker protection",
    "requireAuditLog": "audit log",
    "experimentalFeatures": "experimental features",
    "debugMode": "debug mode",
    "enabled": "auto-correction",
}
_NUMBERS: Final = {"maxRetries": "max retries", "confidenceThreshold": "confidence threshold"}


class EffectivePolicy(NamedTuple):
    """A policy, and its version: the sequences of the events that made it."""

    policy: Policy
    stamp: tuple[int, int]


def read(records: RecordReader, view: View, tool: str | None = None) -> EffectivePolicy:
    """Return the policy that holds for a tool, or for all, as a view shows it.

    Raises:
        ValidationFailed: It was written by something newer, or is damaged.
    """
    common = records.current(view.lineage, names.SETTINGS, _KEY)
    own = records.current(view.lineage, names.SETTINGS, _OWN + tool) if tool else None
    stamp = (common.sequence if common else 0, own.sequence if own else 0)
    return EffectivePolicy(_parse(_payload(common), _payload(own)), stamp)


@cache_texts(128)
def _parse(common: bytes | None, own: bytes | None) -> Policy:
    return Policy().with_settings(_parse_settings(common)).with_settings(_parse_settings(own))


def change(
    transaction: Transaction,
    view: View,
    settings: Mapping[str, Any],
    *,
    tool: str | None = None,
    preset_name: str | None = None,
    reset: bool = False,
) -> tuple[Policy | None, Policy, int | None]:
    """Change a policy; return the settings before and after, and the version of the change.

    The settings before are None if they could not be read.

    Raises:
        ValidationFailed: A setting is unknown or has a value it cannot have.
    """
    before, after = preview(
        transaction, view, settings, tool=tool, preset_name=preset_name, reset=reset
    )
    key = _OWN + tool if tool else _KEY
    drafts: list[Draft] = []
    if reset and transaction.records.current(view.lineage, names.SETTINGS, key) is not None:
        drafts.append(Draft(names.SETTING_REMOVED, {}, names.SETTINGS, key))
    if settings or preset_name:
        whole = tool is None or preset_name is not None
        kept = (
            after.settings()
            if whole
            else _own_settings(transaction.records, view, key, settings, after, reset=reset)
        )
        content = {"settings": kept, "preset": preset_name}
        drafts.append(Draft(names.SETTING_CHANGED, content, names.SETTINGS, key))
    if not drafts:
        return before, after, None
    return before, after, transaction.append(view.branch, drafts)[-1].sequence


def preview(
    reader: Reader,
    view: View,
    settings: Mapping[str, Any],
    *,
    tool: str | None = None,
    preset_name: str | None = None,
    reset: bool = False,
) -> tuple[Policy | None, Policy]:
    """Return the settings in force, and those after a change.

    Raises:
        ValidationFailed: A setting is unknown or has a value it cannot have.
    """
    _check_size(settings)
    before: Policy | None = None
    try:
        before = read(reader.records, view, tool).policy
    except ValidationFailed as error:
        # What cannot be read can still be replaced.
        if preset_name is None and not reset:
            error.hint = "Pass reset: true to start from the default."
            raise
    if preset_name is not None:
        start = preset(preset_name)
    elif reset:
        start = read(reader.records, view).policy if tool else Policy()
    else:
        assert before is not None
        start = before
    return before, start.with_settings(settings)


def overrides(records: RecordReader, view: View) -> dict[str, dict[str, Any]]:
    """Return the overrides of single tools, by the name of the tool."""
    found: dict[str, dict[str, Any]] = {}
    after: str | None = _OWN
    while after is not None:
        page, after = records.page(view.lineage, names.SETTINGS, after=after)
        for key, version in page:
            if not key.startswith(_OWN):
                return found
            found[key.removeprefix(_OWN)] = _settings(version)
    return found


def describe_changes(before: Policy | None, after: Policy) -> list[str]:
    """Say in words what a change of the policy changed."""
    if before is None:
        return ["Replaced settings that could not be read"]
    return list(_sentences(before.settings(), after.settings()))


def _sentences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name, what in _NUMBERS.items():
        if old[name] != new[name]:
            verb = "Increased" if new[name] > old[name] else "Lowered"
            yield f"{verb} {what} from {old[name]} to {new[name]}"
    for name, what in _PARTS.items():
        if old[name] != new[name]:
            yield f"{'Enabled' if new[name] else 'Disabled'} {what}"
    for name, setting in new["strategies"].items():
        yield from _strategy_sentences(name, old["strategies"].get(name, {}), setting)
    for name in ("restrictedTools", "restrictedCategories", "confirmationRequired"):
        if old[name] != new[name]:
            yield f"Changed {name} to {orjson.dumps(new[name]).decode()}"


def _strategy_sentences(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old.get("enabled") != new["enabled"]:
        yield f"{'Enabled' if new['enabled'] else 'Disabled'} the strategy {name}"
    if old.get("confidence") != new["confidence"]:
        yield f"Changed the threshold of {name} from {old.get('confidence')} to {new['confidence']}"


def _own_settings(
    records: RecordReader,
    view: View,
    key: str,
    settings: Mapping[str, Any],
    after: Policy,
    *,
    reset: bool,
) -> dict[str, Any]:
    """Return what a tool has of its own: what it had, and what it is given now."""
    had = {} if reset else _settings(records.current(view.lineage, names.SETTINGS, key))
    every = after.settings()
    return had | {kept: every[kept] for kept in (_KEPT_AS.get(each, each) for each in settings)}


def _payload(version: Version | None) -> bytes | None:
    return version.payload if version is not None else None


def _settings(version: Version | None) -> dict[str, Any]:
    return _parse_settings(_payload(version))


def _parse_settings(payload: bytes | None) -> dict[str, Any]:
    if payload is None:
        return {}
    found = orjson.loads(payload).get("settings")
    if not isinstance(found, dict):
        raise ValidationFailed("The settings of the policy are damaged.", field="settings")
    return found


def _check_size(settings: Mapping[str, Any]) -> None:
    most = limits.CORRECTION_SETTINGS_BYTES_MAX
    try:
        size = len(orjson.dumps(settings))
    except (TypeError, ValueError) as error:
        raise ValidationFailed(f"The settings are not JSON: {error}.", field="settings") from error
    if size > most:
        raise ValidationFailed(
            f"The settings have {size:,} bytes; {most:,} are allowed.",
            field="settings",
            limit=most,
        )
