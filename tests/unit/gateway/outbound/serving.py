"""A real HTTP server on the loopback network that answers as it is told, byte for byte."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from stratagem.gateway.outbound import Outbound
from stratagem.gateway.outbound.addresses import Address

PUBLIC = "127.0.0.2"


@dataclass
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    peer: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Reply = bytes | tuple[int, dict[str, str], bytes]
Answer = Callable[[Received], Reply]


@dataclass
class Server:
    host: str
    port: int
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"http://{host or self.host}:{self.port}{path}"


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"content-type": "application/json", **named}, json.dumps(value).encode()


def raw(reply: Reply) -> bytes:
    if isinstance(reply, bytes):
        return reply
    status, headers, body = reply
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {text}" for name, text in headers.items())]
    if "content-length" not in headers and "transfer-encoding" not in headers:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def serve(
    answer: Answer,
    host: str = "127.0.0.1",
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    delay: float = 0.0,
) -> AsyncIterator[Server]:
    served = Server(host, 0)
    open_writers: set[asyncio.StreamWriter] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        open_writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                headers = {
                    name.lower(): text.strip()
                    for name, _, text in (line.partition(":") for line in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, target, _ = first.split(" ")
                peer = writer.get_extra_info("sockname")[0]
                received = Received(method, target, headers, body, peer)
                served.received.append(received)
                served.reached.set()
                await asyncio.sleep(delay)
                data = raw(answer(received))
                writer.write(data)
                await writer.drain()
                if b"connection: close" in data[:500].lower():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            open_writers.discard(writer)
            writer.close()

    server = await asyncio.start_server(connection, host, port, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for writer in list(open_writers):
            writer.close()
        await asyncio.sleep(0)


class Names:
    """A resolver that gives what it was told, one answer after the other."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        left = self.answers.get(host)
        if not left:
            raise OSError("no such name")
        return left.pop(0) if len(left) > 1 else left[0]


def plays_public(address: Address) -> bool:
    """On one machine, one address of the loopback network plays the public one."""
    return address == ip_address(PUBLIC)


@asynccontextmanager
async def guarded(*allow: str, **options: Any) -> AsyncIterator[Outbound]:
    outbound = Outbound(allow, **options)
    try:
        yield outbound
    finally:
        await outbound.close()
