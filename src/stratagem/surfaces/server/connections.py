"""The open connections of a process: their number, their time limits, and which is closed first.

A connection costs the server a file descriptor and some memory before its client has authenticated,
so nothing here depends on identity. A connection is in one of three states:

* silent: it has not sent the head of its first request;
* idle: its last request was answered, and the next has not begun;
* busy: a request is being answered, or it has become a websocket.

Silent and idle connections have a time limit each. If all places are taken, the longest silent
connection of the address that has most of them is closed for the new one, then the longest idle
one; only if all are busy is the new one refused. So a flood of silent connections takes places from
itself: a client that sends at once is among the youngest. A client that does not read its answer is
cut off in any state.

uvicorn reads and writes the bytes; `counted_http` and `counted_websocket` extend its protocols to
report what happens to each connection.

Requests that a client sends ahead (HTTP pipelining) are parsed a few at a time, and no more is read
of a connection while some of them wait: a megabyte holds thirty thousand, and parsing them all
would keep every other client waiting.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import h11
from uvicorn.protocols.http.flow_control import FlowControl

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.surfaces.server.joined_responses import JoinedResponses

__all__ = [
    "Connections",
    "HttpConnection",
    "TrustedProxies",
    "connection_capacity",
    "counted_http",
    "counted_websocket",
]

logger = logging.getLogger(__name__)

State = Literal["silent", "idle", "busy"]
_TOO_LONG_A_HEAD: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class TrustedProxies:
    """Addresses that many clients share: proxies that the operator named, and this machine.

    A proxy or a load balancer on this machine comes from loopback.
    """

    def __init__(self, given: Iterable[str] = ()) -> None:
        """Read addresses and networks.

        Raises:
            ValidationFailed: One is neither.
        """
        self._networks = [_network(each) for each in given]

    def includes(self, address: str) -> bool:
        """Whether an address is one of them; what is no address is a socket of this machine."""
        try:
            own = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return True
        mapped = own.ipv4_mapped if isinstance(own, ipaddress.IPv6Address) else None
        own = mapped or own
        return own.is_loopback or any(own in network for network in self._networks)


def _network(given: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(given, strict=False)
    except ValueError as error:
        raise ValidationFailed(
            f"{given!r} is neither an address nor a network.",
            field="trusted_proxies",
            hint="Such as 10.0.0.7 or 10.0.0.0/24.",
        ) from error


def connection_capacity(wanted: int) -> int:
    """Return how many connections a process can hold, raising its limit of open files if need be.

    Less than wanted where it may not open enough files; that is logged.
    """
    try:
        import resource
    except ImportError:  # Windows counts otherwise.
        return wanted
    needed = max(
        int(wanted / (1 - limits.FILES_RESERVED_SHARE)) + 1, wanted + limits.FILES_RESERVED_MIN
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    reserved = max(limits.FILES_RESERVED_MIN, int(soft * limits.FILES_RESERVED_SHARE))
    room = max(soft - reserved, soft // 2, 1)
    logger.warning(
        "this process may open only %s files: it accepts %s connections, not %s; raise the limit "
        "(LimitNOFILE of the unit, ulimit -n) or lower --max-connections",
        f"{soft:,}",
        f"{room:,}",
        f"{wanted:,}",
    )
    return room


class HttpConnection:
    """One connection. `owner` is its address, or nothing where many clients share that."""

    __slots__ = ("begun", "head_bytes", "owner", "state", "taken_at", "transport", "unsent")

    def __init__(self, transport: Any, owner: str, now: float) -> None:
        self.transport = transport
        self.owner = owner
        self.state: State = "silent"
        # When the present state began, and when the client last took something.
        self.begun = now
        self.taken_at = now
        self.unsent = 0
        self.head_bytes = 0


class Connections:
    """See the module. Runs on one event loop."""

    def __init__(self, most: int, proxies: TrustedProxies, monotonic: Callable[[], float]) -> None:
        self.most = most
        self._of_one_address = max(1, int(most * limits.CONNECTIONS_ADDRESS_SHARE))
        self._proxies = proxies
        self._monotonic = monotonic
        self._open: dict[Any, HttpConnection] = {}
        self._of: Counter[str] = Counter()
        # The longest in their state come first.
        self._silent: dict[str, OrderedDict[Any, HttpConnection]] = {}
        self._idle: OrderedDict[Any, HttpConnection] = OrderedDict()
        # Until when unwanted bodies have used up the bytes that are read of them.
        self._unwanted_until = 0.0

    def __len__(self) -> int:
        """Count those that are open."""
        return len(self._open)

    def add(self, transport: Any, address: str) -> HttpConnection:
        """Count a connection from now on."""
        connection = HttpConnection(transport, self._owner(address), self._monotonic())
        self._open[transport] = connection
        self._of[connection.owner] += 1
        self._silent.setdefault(connection.owner, OrderedDict())[transport] = connection
        return connection

    def drop(self, transport: Any) -> None:
        """Count a connection no longer."""
        connection = self._open.pop(transport, None)
        if connection is None:
            return
        self._leave_state(connection)
        self._of[connection.owner] -= 1
        if not self._of[connection.owner]:
            del self._of[connection.owner]

    def enter(self, connection: HttpConnection, state: State) -> None:
        """Note that a connection is in another state from now on."""
        if connection.transport not in self._open:
            return
        self._leave_state(connection)
        connection.state = state
        connection.begun = self._monotonic()
        connection.head_bytes = 0
        if state == "idle":
            self._idle[connection.transport] = connection

    def make_room(self, address: str) -> bool:
        """Whether one more connection of an address may be; others may have to go for it."""
        owner = self._owner(address)
        while owner and self._of[owner] >= self._of_one_address:
            if not self._close_one(owner):
                return False
        while len(self._open) >= self.most:
            if not self.close_one():
                return False
        return True

    def close_one(self) -> bool:
        """Close the least useful connection, if one waits for its client."""
        if self._silent:
            return self._close_one(max(self._silent, key=lambda each: len(self._silent[each])))
        if self._idle:
            self._close(next(iter(self._idle.values())))
            return True
        return False

    def close_late(self) -> None:
        """Close what has kept the server waiting for too long."""
        now = self._monotonic()
        for of_owner in list(self._silent.values()):
            self._close_older(of_owner, now - limits.HEAD_SECONDS)
        # uvicorn closes one that sends nothing after an answer; what is left has sent half a head.
        self._close_older(self._idle, now - limits.KEEP_ALIVE_SECONDS - limits.HEAD_SECONDS)
        for each in list(self._open.values()):
            self._check_taken(each, now)

    def pause_after(self, unwanted_bytes: int) -> float:
        """Return how long to read nothing after the rest of a body that was answered already.

        All connections share what is taken of such bodies in a second.
        """
        now = self._monotonic()
        begin = max(now, self._unwanted_until)
        self._unwanted_until = begin + unwanted_bytes / limits.UNWANTED_BYTES_PER_SECOND
        return self._unwanted_until - now

    def note_taken(self, connection: HttpConnection) -> None:
        """Note that a client has taken what it was sent."""
        connection.taken_at = self._monotonic()

    def _close_one(self, owner: str) -> bool:
        silent = self._silent.get(owner)
        of_owner = (each for each in self._idle.values() if each.owner == owner)
        found = next(iter(silent.values())) if silent else next(of_owner, None)
        if found is not None:
            self._close(found)
        return found is not None

    def _close_older(self, connections: OrderedDict[Any, HttpConnection], moment: float) -> None:
        for each in list(connections.values()):
            if each.begun > moment:
                return
            self._close(each)

    def _check_taken(self, connection: HttpConnection, now: float) -> None:
        """Cut a client off that takes nothing of what it was sent."""
        unsent = connection.transport.get_write_buffer_size()
        if not unsent or unsent < connection.unsent:
            connection.taken_at = now
        connection.unsent = unsent
        if unsent and now - connection.taken_at > limits.UNREAD_SECONDS:
            self._close(connection)

    def _close(self, connection: HttpConnection) -> None:
        """Close a connection, and count it no longer: its file is free a moment later."""
        self.drop(connection.transport)
        # Closing would wait until everything was taken.
        connection.transport.abort()

    def _leave_state(self, connection: HttpConnection) -> None:
        if connection.state == "idle":
            self._idle.pop(connection.transport, None)
        elif connection.state == "silent" and (of_owner := self._silent.get(connection.owner)):
            of_owner.pop(connection.transport, None)
            if not of_owner:
                del self._silent[connection.owner]

    def _owner(self, address: str) -> str:
        return "" if self._proxies.includes(address) else address


def counted_http(base: type[Any], connections: Connections) -> type[Any]:
    """Return a protocol of uvicorn's for HTTP whose connections are counted and have their times.

    It makes no difference which of them it is: both keep the request that is being answered in
    `cycle`, and replace it with the next.
    """

    class CountedHttp(_PiecewiseParsing, base):  # type: ignore[misc]
        _connection: HttpConnection

        def connection_made(self, transport: Any) -> None:
            joined = JoinedResponses(transport, self.loop)
            super().connection_made(joined)
            self._connection = connections.add(joined, self.client[0] if self.client else "")

        def connection_lost(self, exc: Exception | None) -> None:
            connections.drop(self.transport)
            super().connection_lost(exc)

        def note_parsed(self, size: int) -> None:
            if self._connection.state == "busy" or self.is_wordy:
                _check_words(self)
            elif _is_answering(self) or self.transport.get_protocol() is not self:
                connections.enter(self._connection, "busy")
            elif self.cycle is not None and self.cycle.more_body:
                self.flow.pause_reading()
                pause = connections.pause_after(size)
                self.loop.call_later(pause, self.flow.resume_reading)
            else:
                _check_head(self, self._connection, size)

        def on_response_complete(self) -> None:
            connections.enter(self._connection, "idle")
            super().on_response_complete()
            # A request that was sent ahead is answered at once.
            if _is_answering(self):
                connections.enter(self._connection, "busy")
            self.parse_more()

        def resume_writing(self) -> None:
            connections.note_taken(self._connection)
            super().resume_writing()

    return CountedHttp


class _PiecewiseParsing(asyncio.Protocol):
    """What one of uvicorn's protocols for HTTP is given of the bytes that come: a piece at a time.

    Nothing is parsed, nor read, that comes after requests that wait for their turn. What stands
    within or behind a body in chunks beside its bytes is dropped, and bounded: httptools would add
    such trailers to the headers, where nobody has looked for them, without end.
    """

    flow: Any
    transport: Any
    loop: asyncio.AbstractEventLoop
    _unparsed: bytes = b""
    _in_body: bool = False
    # What has come since the last byte of a body.
    _beside_body: int = 0

    @property
    def is_wordy(self) -> bool:
        """Whether more has come beside the bytes of a body than a head may have."""
        return self._beside_body > limits.HEAD_BYTES_MAX

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = _ReadingFlow(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed = b""
        super().connection_lost(exc)

    # The methods of uvicorn's protocol that httptools calls; h11 bounds trailers by itself.

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            return
        # White space around a value is no part of it (RFC 9110, 5.5); httptools leaves some.
        super().on_header(name, value.strip(b" \t"))  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        self._in_body, self._beside_body = True, 0
        super().on_headers_complete()  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        self._beside_body = 0
        super().on_body(body)  # type: ignore[misc]

    def on_message_complete(self) -> None:
        self._in_body, self._beside_body = False, 0
        super().on_message_complete()  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    def parse_more(self) -> None:
        """Go on with what has come already; others first."""
        if self._unparsed:
            self.loop.call_soon(self._parse)

    def note_parsed(self, size: int) -> None:
        """Hear that so many bytes were parsed."""
        raise NotImplementedError

    def _parse(self) -> None:
        if self.transport.is_closing():
            return
        data, at = self._unparsed, 0
        # A body in chunks of a byte each takes a hundred times as long as one that is whole.
        until = self.loop.time() + limits.PARSED_AT_ONCE_SECONDS
        while at < len(data) and _reads_http(self) and not _has_waiting_requests(self):
            piece = data[at : at + limits.PARSED_AT_ONCE_BYTES]
            at += limits.PARSED_AT_ONCE_BYTES
            if self._in_body:
                self._beside_body += len(piece)
            super().data_received(piece)
            if self.is_wordy:
                break
            if self.loop.time() > until:
                self.loop.call_soon(self._parse)
                break
        self._unparsed = data[at:] if _reads_http(self) else b""
        self.flow.hold(bool(self._unparsed))
        if at:
            self.note_parsed(min(at, len(data)))


class _ReadingFlow(FlowControl):
    """Reads nothing of a connection while uvicorn wants a pause, or bytes of it are unparsed.

    uvicorn goes on whenever a request asks for its body, whatever else waits already.
    """

    _paused = False
    _held = False

    def pause_reading(self) -> None:
        self._paused = True
        self._apply()

    def resume_reading(self) -> None:
        self._paused = False
        self._apply()

    def hold(self, held: bool) -> None:  # noqa: FBT001 -- it is the state, and nothing else
        """Read nothing until this is called with False."""
        self._held = held
        self._apply()

    def _apply(self) -> None:
        if self._paused or self._held:
            super().pause_reading()
        else:
            super().resume_reading()


def _is_answering(protocol: Any) -> bool:
    return protocol.cycle is not None and not protocol.cycle.response_complete


def _reads_http(protocol: Any) -> bool:
    """Whether what comes next is HTTP still: neither the end of a connection, nor a websocket."""
    return not protocol.transport.is_closing() and protocol.transport.get_protocol() is protocol


def _has_waiting_requests(protocol: Any) -> bool:
    """Whether parts of requests have come that wait for the answer to an earlier one."""
    parser = getattr(protocol, "conn", None)
    if isinstance(parser, h11.Connection):
        return _is_answering(protocol) and bool(parser.trailing_data[0])
    return bool(protocol.pipeline)


def _check_head(protocol: Any, connection: HttpConnection, size: int) -> None:
    """Refuse a head that is longer than any."""
    connection.head_bytes += size
    if connection.head_bytes > limits.HEAD_BYTES_MAX:
        protocol.transport.write(_TOO_LONG_A_HEAD)
        protocol.transport.close()


def _check_words(protocol: Any) -> None:
    """Refuse more beside the bytes of a body than a head may have."""
    if protocol.is_wordy:
        protocol.transport.write(b"" if protocol.cycle.response_started else _TOO_LONG_A_HEAD)
        protocol.transport.close()


def counted_websocket(base: type[Any], connections: Connections) -> type[Any]:
    """Return a protocol of uvicorn's for websockets whose connections are counted."""

    class CountedWebsocket(base):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.close_timeout = limits.WEBSOCKET_CLOSE_SECONDS

        def connection_lost(self, exc: Exception | None) -> None:
            connections.drop(self.transport)
            super().connection_lost(exc)

    return CountedWebsocket
