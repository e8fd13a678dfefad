"""An attempt at a call, as the path makes one, for tests of what runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stratagem.errors import PermissionDenied
from stratagem.gateway.definitions.contract import ProgressReport, Run
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.operation import Caller


class Granted:
    """Secrets by name, for one origin, and a note of what was asked for."""

    def __init__(self, origin: str = "", **values: str) -> None:
        self.origin = origin
        self.values = values
        self.asked: list[tuple[str, str]] = []

    def resolve(self, text: str, *, origin: str) -> str:
        def value(found: re.Match[str]) -> str:
            self.asked.append((found[1], origin))
            if found[1] not in self.values or origin != self.origin:
                raise PermissionDenied(f"{found[1]} was not granted for {origin}.")
            return self.values[found[1]]

        return re.sub(r"\$\{(\w+)\}", value, text)


def attempt(
    arguments: Mapping[str, Any] | None = None,
    progress: ProgressReport | None = None,
    permissions: Permissions | None = None,
    *,
    secrets: Granted | None = None,
    seconds: float = 10,
) -> Run:
    return Run(
        execution_id="e1",
        tool="t",
        arguments=arguments or {},
        seconds=seconds,
        permissions=permissions or Permissions(),
        secrets=secrets or Granted(),
        caller=Caller(actor="somebody"),
        progress=progress or (lambda _done, _words: None),
        request_key="key-1",
    )
