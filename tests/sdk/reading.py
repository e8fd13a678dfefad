"""What a database holds, read from its log with nothing in between."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import orjson

import stratagem
from stratagem.memory.kinds import EVENT_LOGGED


def logged(place: str) -> list[tuple[str, Any]]:
    """Return the label and the data of every logged event."""
    with closing(stratagem.open(place, read_only=True, embedder="none")) as db:
        return [
            (content["event"], content["data"])
            for event in db.runtime.foundation.store.log()
            if event.kind == EVENT_LOGGED and event.payload is not None
            for content in (orjson.loads(event.payload),)
        ]
