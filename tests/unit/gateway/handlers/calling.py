"""What a runner is given for one attempt, with secrets that are bound to a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stratagem.errors import PermissionDenied
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.operation import Caller


class Granted:
    """Secrets by name and host, and a note of what was asked for."""

    def __init__(self, host: str = "", **values: str) -> None:
        self.host = host
        self.values = values
        self.asked: list[tuple[str, str]] = []

    def resolve(self, text: str, *, host: str) -> str:
        def value(found: re.Match[str]) -> str:
            self.asked.append((found[1], host))
            if found[1] not in self.values or host != self.host:
                raise PermissionDenied(f"{found[1]} was not granted for {host}.")
            return self.values[found[1]]

        return re.sub(r"\$\{(\w+)\}", value, text)


def run_of(
    arguments: Mapping[str, Any], secrets: Granted | None = None, *, seconds: float = 10.0
) -> Run:
    return Run(
        execution_id="e1",
        tool="tool",
        arguments=arguments,
        seconds=seconds,
        permissions=Permissions(),
        secrets=secrets or Granted(),
        caller=Caller(actor="somebody"),
        progress=lambda _done, _what: None,
        request_key="key-1",
    )
