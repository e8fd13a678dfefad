"""An attempt at a call, as the path makes one, for tests of what runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratagem.gateway.definitions.contract import ProgressReport, Run
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.operation import Caller


class NoSecrets:
    """Nothing was granted, and nothing is looked for."""

    def resolve(self, text: str, *, host: str) -> str:
        assert host
        return text


def attempt(
    arguments: Mapping[str, Any] | None = None,
    progress: ProgressReport | None = None,
    permissions: Permissions | None = None,
) -> Run:
    return Run(
        execution_id="e1",
        tool="t",
        arguments=arguments or {},
        seconds=10,
        permissions=permissions or Permissions(),
        secrets=NoSecrets(),
        caller=Caller(),
        progress=progress or (lambda _done, _words: None),
    )
