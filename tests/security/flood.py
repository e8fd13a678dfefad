"""A process that asks a server for as much as it gets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PROGRAM = """
import asyncio, collections, json, signal, sys, httpx2

async def main(url, token):
    seen = collections.Counter()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    headers = {"authorization": f"Bearer {token}"}
    limits = httpx2.Limits(max_connections=32)
    async with httpx2.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=30) as client:
        async def ask():
            while not stop.is_set():
                answer = await client.post("/api/memory/strata_recall", json={"key": "k"})
                seen[answer.status_code] += 1
        await asyncio.gather(*(ask() for _ in range(32)))
    print(json.dumps(seen))

asyncio.run(main(*sys.argv[1:]))
"""


class Flood:
    """How the flood fared."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._heard: dict[str, int] | None = None

    def answered(self) -> dict[str, int]:
        """Stop, and return how many answers there were of each status."""
        if self._heard is None:
            self._process.terminate()
            out, _ = self._process.communicate(timeout=30)
            self._heard = json.loads(out)
        return self._heard


@contextmanager
def flooding(url: str, token: str) -> Iterator[Flood]:
    """Ask on 32 connections without a pause, in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, url, token], stdout=subprocess.PIPE)
    flood = Flood(process)
    try:
        yield flood
        flood.answered()
    finally:
        process.kill()
        process.wait()
