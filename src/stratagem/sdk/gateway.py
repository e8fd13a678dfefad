"""The gateway's operations as methods, for a database in this process and for a server alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from stratagem.sdk.advising import AdviceMethods
from stratagem.sdk.calling import Answer, Call
from stratagem.sdk.correcting import CorrectionMethods

__all__ = ["Answer", "AsyncGatewayMethods", "Call", "GatewayMethods"]

Answers = list[dict[str, Any]]
AsyncCall = Callable[[str, dict[str, Any]], Awaitable[Answer]]


class GatewayMethods(AdviceMethods, CorrectionMethods):
    """Registering and calling tools. Options have the document's names, or those in snake case.

    What a method gives back is what the operation answers; the operations on tools lose their
    prefix (`tools_recommend` is `recommend`), the others keep their names.
    """

    def register(self, **definition: Any) -> Answer:
        """Register a tool: name, description, input_schema, handler and whatever else is known."""
        return self._call("tool_register", definition)

    def update(self, tool: str, **changes: Any) -> Answer:
        """Change a registered tool."""
        return self._call("tool_update", {"toolId": tool, **changes})

    def remove(self, tool: str, **options: Any) -> Answer:
        """Take a tool out of the registry; its history stays."""
        return self._call("tool_remove", {"toolId": tool, **options})

    def list(self, **filters: Any) -> Answers:
        """Return the tools that fit every filter."""
        tools: Answers = self._part("tools", "tools_list", filters)
        return tools

    def get(self, tool: str, **view: Any) -> Answer:
        """Return everything about a tool."""
        found: Answer = self._part("tool", "tool_get", {"toolId": tool, **view})
        return found

    def help(self, tool: str, **view: Any) -> Answer:
        """Return what one needs to know to call a tool."""
        return self._call("tool_help", {"toolName": tool, **view})

    def execute(
        self, tool: str, arguments: Mapping[str, Any] | str | None = None, **options: Any
    ) -> Answer:
        """Call a tool; return its result with what was recorded of the call."""
        given = {} if arguments is None else arguments
        given = given if isinstance(given, str) else dict(given)
        return self._call("tool_execute", {"toolName": tool, "arguments": given, **options})

    def batch(self, executions: Sequence[Mapping[str, Any]], **options: Any) -> Answer:
        """Call several tools, at once or in order; each has a result of its own."""
        calls = [dict(each) for each in executions]
        return self._call("tools_batch", {"executions": calls, **options})

    def pipeline(self, **definition: Any) -> Answer:
        """Run a pipeline, say what it would do, go on with one, or save it as a tool."""
        return self._call("tools_pipeline", definition)

    def executions(self, **filters: Any) -> Answers:
        """Return what was recorded of calls, newest first."""
        found: Answers = self._part("executions", "tool_executions", filters)
        return found

    def resources(self, **filters: Any) -> Answers:
        """Return the resources that fit every filter."""
        found: Answers = self._part("resources", "resources_list", filters)
        return found

    def resource(self, name: str, variables: Mapping[str, Any] | None = None) -> Answer:
        """Return a resource, rendered where values for its variables are given."""
        given: dict[str, Any] = {"resourceId": name}
        return self._call(
            "resource_get", given | ({} if variables is None else {"variables": dict(variables)})
        )

    def create_resource(self, **definition: Any) -> Answer:
        """Add a prompt, a template or data."""
        created: Answer = self._part("resource", "resource_create", definition)
        return created

    def _part(self, part: str, name: str, arguments: dict[str, Any]) -> Any:
        return self._call(name, arguments)[part]


class AsyncGatewayMethods(GatewayMethods):
    """The same methods, to be awaited."""

    def __init__(self, call: AsyncCall) -> None:
        # What the methods return is what the call returns: here, something to await.
        super().__init__(cast("Call", call))
        self._call_async = call

    async def _part(self, part: str, name: str, arguments: dict[str, Any]) -> Any:
        return (await self._call_async(name, arguments))[part]
