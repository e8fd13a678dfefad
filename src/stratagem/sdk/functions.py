"""Functions of this process as tools of its gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stratagem.errors import ToolExists
from stratagem.gateway.runners.python import PythonRunner
from stratagem.gateway.switchboard import Switchboard
from stratagem.sdk.gateway import Answer, Call, GatewayMethods

__all__ = ["EmbeddedGateway"]


class EmbeddedGateway(GatewayMethods):
    """The gateway of a database in this process: it can call this process's functions too."""

    def __init__(self, call: Call, switchboard: Callable[[], Switchboard]) -> None:
        super().__init__(call)
        self._switchboard = switchboard

    def add(self, function: Callable[..., Any], **definition: Any) -> Answer:
        """Register a function; its schema comes from its type hints.

        A function that was registered before under the same name takes its place again.
        """
        runner = self._switchboard().runners["python"]
        assert isinstance(runner, PythonRunner)
        made = runner.add(function, definition.get("name"))
        given = {
            "name": made.name,
            "description": made.description or made.name,
            "longDescription": made.long_description or None,
            "inputSchema": dict(made.input_schema),
            "outputSchema": dict(made.output_schema) if made.output_schema else None,
            "handler": {"type": "python", "name": made.name},
            **made.options,
            **definition,
        }
        given = {name: each for name, each in given.items() if each is not None}
        try:
            return self.register(**given)
        except ToolExists:
            if self.get(made.name)["handler"] != given["handler"]:
                raise
            del given["name"]
            return self.update(made.name, **given)
