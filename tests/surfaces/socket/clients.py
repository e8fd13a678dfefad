"""The official JavaScript client, as a process that a test speaks to."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.registries import npm_package

SCRIPT = str(Path(__file__).with_name("client.js"))


def javascript_client() -> tuple[str, str]:
    """Return node and the client's package.

    Raises:
        LookupError: Node is missing, or nothing can be fetched.
    """
    node, package = npm_package("socket.io-client")
    return node, str(package)


class Client:
    """A client process. What it hears is kept until somebody asks for it."""

    def __init__(self, url: str, transport: str = "websocket", origin: str = "") -> None:
        node, package = javascript_client()
        self.process = subprocess.Popen(
            [node, SCRIPT, package, url, transport, origin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.first = self.hear(lambda each: "connected" in each or "refused" in each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()

    def send(self, emit: str, data: Any = None) -> int:
        self._number += 1
        self._write({"emit": emit, "data": data, "id": self._number})
        return self._number

    def write_raw(self, text: str) -> None:
        self._write({"raw": text})

    def ask(self, emit: str, data: Any = None) -> dict[str, Any]:
        """Emit an event; return its acknowledgement."""
        number = self.send(emit, data)
        given: dict[str, Any] = self.hear(lambda each: each.get("ack") == number)["data"]
        return given

    def event(self, name: str, fits: Callable[[Any], bool] = lambda _data: True) -> Any:
        """Return the data of the next event of a name."""
        return self.hear(lambda each: each.get("event") == name and fits(each["data"]))["data"]

    def none(self, name: str, seconds: float = 0.3) -> bool:
        """Whether no event of a name has come, and none comes."""
        time.sleep(seconds)
        while not self._heard.empty():
            self._kept.append(self._heard.get())
        return all(each.get("event") != name for each in self._kept)

    def hear(self, fits: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
        for place, each in enumerate(self._kept):
            if fits(each):
                return self._kept.pop(place)
        end = time.monotonic() + seconds
        while True:
            try:
                each = self._heard.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not heard; only {str(self._kept)[:2000]}") from None
            if fits(each):
                return each
            self._kept.append(each)

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._heard.put(json.loads(line))
