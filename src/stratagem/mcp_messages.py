"""Messages of the Model Context Protocol: as JSON, and with their context for the library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import anyio
import orjson
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId

from stratagem.deferred_dataclasses import dataclass

__all__ = ["AnswerContext", "encode_message"]


@dataclass(slots=True)
class AnswerContext(DispatchContext[TransportContext]):
    """A message that is only answered: its sender is asked nothing, and is sent no progress.

    A notification has no id.
    """

    _transport: TransportContext
    _request_id: RequestId | None = None
    _cancel_requested: anyio.Event = field(default_factory=anyio.Event, init=False)

    @property
    def transport(self) -> TransportContext:
        """What the message came over."""
        return self._transport

    @property
    def can_send_request(self) -> bool:
        """Whether the sender can be asked something: never."""
        return False

    @property
    def request_id(self) -> RequestId | None:
        """The id of the request; None: a notification."""
        return self._request_id

    @property
    def message_metadata(self) -> MessageMetadata:
        """What the transport says of the message: nothing."""
        return None

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when the sender takes the request back."""
        return self._cancel_requested

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: the sender takes no requests."""
        del params, opts
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send nothing: nothing was asked for."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report nothing: nothing was asked for."""


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Return a message as JSON."""
    try:
        return orjson.dumps(message)
    except TypeError:
        # Large integers, and halves of characters.
        return json.dumps(message, separators=(",", ":")).encode()
