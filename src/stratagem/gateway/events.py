"""What happens in the gateway, published to listeners: surfaces, metrics, tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from stratagem.gateway.home_loop import HomeLoop

__all__ = ["GatewayEvents", "Listener", "Publish"]

logger = logging.getLogger(__name__)

# Called with the name of an event and its data.
Listener = Callable[[str, Mapping[str, Any]], None]
Publish = Callable[[str, Mapping[str, Any]], None]


class GatewayEvents:
    """Calls listeners on the home loop, from whichever thread an event comes."""

    def __init__(self, home: HomeLoop) -> None:
        self._home = home
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener for each event from now on; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Call every listener soon; without one this costs nothing."""
        if self._listeners:
            self._home.post(lambda: self._call_all(name, data))

    def _call_all(self, name: str, data: Mapping[str, Any]) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(name, data)
            except Exception:  # one listener that fails must not keep events from the others
                logger.exception("a listener failed at %s", name)
