"""The head of a response is sent with the beginning of its body, and waits for nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stratagem.surfaces.server.joined_responses import JoinedResponses

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
BODY = b"body"


class Transport:
    """Notes what is written, one entry for each system call."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.written.append(b"closed")

    def get_extra_info(self, name: str) -> Any:
        return name


@pytest.mark.anyio
async def test_head_and_body_are_one_write() -> None:
    transport = Transport()
    joined = JoinedResponses(transport, asyncio.get_running_loop())

    joined.write(HEAD)
    joined.write(BODY)
    joined.write(BODY)
    await asyncio.sleep(0)

    assert transport.written == [HEAD + BODY, BODY]
    assert joined.get_extra_info("peername") == "peername"


@pytest.mark.anyio
async def test_a_head_whose_body_comes_later_is_sent_at_once() -> None:
    transport = Transport()
    joined = JoinedResponses(transport, asyncio.get_running_loop())

    joined.write(HEAD)
    await asyncio.sleep(0)
    first = [*transport.written]
    joined.write(BODY)

    assert first == [HEAD]
    assert transport.written == [HEAD, BODY]


@pytest.mark.anyio
async def test_what_was_written_is_sent_before_the_connection_is_closed() -> None:
    transport = Transport()
    joined = JoinedResponses(transport, asyncio.get_running_loop())

    joined.write(HEAD)
    joined.close()
    await asyncio.sleep(0)

    assert transport.written == [HEAD, b"closed"]
