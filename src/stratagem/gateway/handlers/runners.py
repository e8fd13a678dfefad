"""The runners of a gateway, by the type of handler that each runs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping

from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Runner

__all__ = ["Runners"]

logger = logging.getLogger(__name__)


class Runners(Mapping[str, Runner]):
    """Runners by the type of their handler, each created when it is first needed."""

    def __init__(self, makers: Mapping[str, Callable[[], Runner]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Runner] = {}
        self._shared: list[Callable[[], Awaitable[None]]] = []

    def __getitem__(self, kind: str) -> Runner:
        runner = self._made.get(kind)
        if runner is None:
            runner = self._made.setdefault(kind, self._makers[kind]())
        return runner

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def check(self, handler: Handler) -> list[str]:
        """Check a handler when it is registered; return warnings.

        Raises:
            ValidationFailed: It cannot work.
        """
        kind = handler.get("type")
        if not isinstance(kind, str) or kind not in self._makers:
            raise ValidationFailed(
                f"There is no handler of type {kind!r}.",
                field="handler.type",
                allowed=sorted(self._makers),
                hint=f"Choose one of: {', '.join(sorted(self._makers))}.",
            )
        return self[kind].check(handler)

    def close_after(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close something that runners share, once they are closed themselves."""
        self._shared.append(close)

    async def close(self) -> None:
        """Close the runners that were used, then what they share."""
        for close in (*(runner.close for runner in self._made.values()), *self._shared):
            try:
                await close()
            except Exception:  # the others must be ended too
                logger.exception("a runner did not end well")
