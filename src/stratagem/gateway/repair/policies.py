"""The policies of corrections, kept in the log: one for all, and what a tool has of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.correction import PRESETS, Policy
from stratagem.storage.contract import Reader, Transaction

__all__ = ["Policies", "change"]

_KEY: Final = "auto_correction"
_OWN: Final = "auto_correction:"


class Policies:
    """Reads policies as a view shows them; each is read once and found by its sequence then."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Policy] = {}

    def policy(self, reader: Reader, view: View, tool: str | None = None) -> Policy:
        """Return the policy that holds for a tool, or for all."""
        common = reader.current(view.lineage, names.SETTINGS, _KEY)
        own = reader.current(view.lineage, names.SETTINGS, _OWN + tool) if tool else None
        key = (common.sequence if common else 0, own.sequence if own else 0)
        known = self._known.get(key)
        if known is None:
            settings = [
                orjson.loads(each.payload)["settings"]
                for each in (common, own)
                if each is not None and each.payload is not None
            ]
            known = Policy()
            for each in settings:
                known = known.with_settings(each)
            self._known[key] = known
        return known


def change(
    transaction: Transaction,
    view: View,
    settings: Mapping[str, Any],
    *,
    tool: str | None,
    preset: str | None,
) -> tuple[Policy, Policy]:
    """Change a policy; return what held before and what holds now.

    Raises:
        ValidationFailed: A setting is unknown or has a value it cannot have.
    """
    policies = Policies()
    before = policies.policy(transaction, view, tool)
    start = PRESETS[preset] if preset is not None else before
    after = start.with_settings(settings)
    key = _OWN + tool if tool else _KEY
    content = {"settings": after.settings(), "preset": preset}
    transaction.append(view.branch, [Draft(names.SETTING_CHANGED, content, names.SETTINGS, key)])
    return before, after
