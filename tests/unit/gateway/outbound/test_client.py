"""Requests from end to end: redirects, bounds, time, TLS and connections that are kept."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stratagem import limits
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    PermissionDenied,
    ValidationFailed,
)
from tests.unit.gateway.outbound.serving import (
    PUBLIC,
    Names,
    Received,
    Reply,
    guarded,
    json_reply,
    plays_public,
    serve,
)

pytestmark = pytest.mark.anyio

SECRETS = {"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Cookie": "sid=s3cret"}


def echo(received: Received) -> Reply:
    return json_reply({"method": received.method, "headers": received.headers})


async def test_a_request_arrives_as_it_was_made_and_so_does_the_answer() -> None:
    async with serve(echo) as server, guarded("127.0.0.1:*") as outbound:
        response = await outbound.request(
            "PUT", server.url("/a%2Fb?x=1&y=%C3%A9"), headers={"X-One": "1"}, body=b"\x00\xff"
        )

    (received,) = server.received
    assert response.status == 200
    assert response.content_type == "application/json"
    assert (received.method, received.target) == ("PUT", "/a%2Fb?x=1&y=%C3%A9")
    assert received.body == b"\x00\xff"
    assert received.headers["x-one"] == "1"
    assert received.headers["user-agent"] == "stratagem"


async def test_connections_are_kept_for_the_next_request() -> None:
    async with serve(echo) as server, guarded("127.0.0.1:*") as outbound:
        for _ in range(5):
            await outbound.request("GET", server.url())

    assert (server.connections, len(server.received)) == (1, 5)


async def test_no_cookie_is_left_behind_for_another_call() -> None:
    def answer(_: Received) -> Reply:
        return json_reply(1, set_cookie="sid=1")

    async with serve(answer) as server, guarded("127.0.0.1:*") as outbound:
        first = await outbound.request("GET", server.url())
        await outbound.request("GET", server.url())

    assert first.headers["set-cookie"] == "sid=1"
    assert "cookie" not in server.received[1].headers


async def test_redirects_within_an_origin_keep_the_credentials() -> None:
    def answer(received: Received) -> Reply:
        return (307, {"location": "/next"}, b"") if received.target == "/" else echo(received)

    async with serve(answer) as server, guarded("127.0.0.1:*") as outbound:
        response = await outbound.request("POST", server.url(), headers=SECRETS, body=b"{}")

    assert response.url.endswith("/next")
    assert server.received[1].method == "POST"
    assert server.received[1].body == b"{}"
    assert server.received[1].headers["authorization"] == "Bearer s3cret"


async def test_redirects_to_another_origin_leave_every_secret_behind() -> None:
    async with serve(echo) as other:

        def answer(_: Received) -> Reply:
            return 303, {"location": other.url("/landed")}, b""

        async with serve(answer) as server, guarded("127.0.0.1:*") as outbound:
            headers = {**SECRETS, "Content-Type": "application/json", "Idempotency-Key": "k"}
            await outbound.request("POST", server.url(), headers=headers, body=b'{"a": "s3cret"}')

    (received,) = other.received
    assert (received.method, received.target, received.body) == ("GET", "/landed", b"")
    assert "s3cret" not in str(received.headers)
    assert set(received.headers) == {"host", "accept", "accept-encoding", "user-agent"}


async def test_a_body_is_not_carried_to_another_origin() -> None:
    async with serve(echo) as other:
        async with (
            serve(lambda _: (308, {"location": other.url()}, b"")) as server,
            guarded("127.0.0.1:*") as outbound,
        ):
            with pytest.raises(ExecutionFailed, match="another origin") as caught:
                await outbound.request("POST", server.url(), body=b"{}")

        assert not caught.value.safe
        assert other.received == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_post_that_is_sent_elsewhere_becomes_a_get(status: int) -> None:
    def answer(received: Received) -> Reply:
        return (status, {"location": "next"}, b"") if received.method == "POST" else echo(received)

    async with serve(answer) as server, guarded("127.0.0.1:*") as outbound:
        await outbound.request("POST", server.url("/a/b"), body=b"{}")

    assert [(each.method, each.target) for each in server.received] == [
        ("POST", "/a/b"),
        ("GET", "/a/next"),
    ]


async def test_a_chain_of_redirects_ends() -> None:
    async with (
        serve(lambda _: (302, {"location": "/again"}, b"")) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        with pytest.raises(ExecutionFailed, match="redirects more than"):
            await outbound.request("GET", server.url())

    assert len(server.received) == limits.OUTBOUND_REDIRECTS_MAX + 1


async def test_a_failure_after_a_redirect_is_not_safe_to_repeat() -> None:
    async with (
        serve(lambda _: (302, {"location": "http://nowhere.test/"}, b"")) as server,
        guarded("127.0.0.1:*", resolver=Names()) as outbound,
    ):
        with pytest.raises(ExecutionFailed) as caught:
            await outbound.request("POST", server.url())

    assert not caught.value.safe


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://x/", "http://[/", "\\\\evil"])
async def test_a_redirect_to_no_address_is_not_followed(location: str) -> None:
    async with (
        serve(lambda _: (302, {"location": location}, b"")) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        with pytest.raises((ExecutionFailed, PermissionDenied)):
            await outbound.request("GET", server.url())


async def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    whole: Reply = (200, {}, b"x" * 200_000)
    chunked = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        + b"1000\r\n%s\r\n" % (b"x" * 0x1000) * 100
    )
    async with (
        serve(lambda received: whole if received.target == "/" else chunked) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        for path in ("/", "/chunked"):
            with pytest.raises(ExecutionFailed, match="larger than 100,000") as caught:
                await outbound.request("GET", server.url(path), bytes_max=100_000)
            assert caught.value.details["limit"] == 100_000

        assert (await outbound.request("GET", server.url(), bytes_max=200_000)).status == 200


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "raw"])
async def test_a_packed_answer_is_unpacked(coding: str) -> None:
    text = b"many words " * 100_000
    packers: dict[str, Callable[[bytes], bytes]]
    packers = {"deflate": zlib.compress, "raw": _raw_deflate}
    packed = packers.get(coding, gzip.compress)(text)
    name = "deflate" if coding == "raw" else coding
    async with (
        serve(lambda _: (200, {"content-encoding": name}, packed)) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        response = await outbound.request("GET", server.url())

    assert response.body == text
    assert "content-encoding" not in response.headers


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


async def test_several_packed_parts_are_one_answer() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    async with (
        serve(lambda _: (200, {"content-encoding": "gzip"}, packed)) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        assert (await outbound.request("GET", server.url())).body == b"one two"


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"\x00" * 5_000_000)),
        ("gzip", gzip.compress(b"") * 1_000),
        ("gzip", gzip.compress(b"words " * 1_000)[:-20]),
        ("gzip", b"not packed at all"),
        ("br", b"unasked"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"words"))),
        ("deflate", zlib.compress(b"words") + b"rest"),
    ],
    ids=["bomb", "parts", "cut", "plain", "unasked", "twice", "rest"],
)
async def test_a_packed_answer_that_is_a_trick_is_refused(coding: str, body: bytes) -> None:
    async with (
        serve(lambda _: (200, {"content-encoding": coding}, body)) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        with pytest.raises(ExecutionFailed) as caught:
            await outbound.request("GET", server.url(), bytes_max=1_000_000)

    assert caught.value.details["reason"] in {"too_large", "broken_answer"}


async def test_time_is_over_for_the_whole_request() -> None:
    async with (
        serve(lambda _: (302, {"location": "/again"}, b""), delay=0.15) as server,
        guarded("127.0.0.1:*") as outbound,
    ):
        with pytest.raises(ExecutionTimeout) as caught:
            await outbound.request("GET", server.url(), seconds=0.25)

    assert caught.value.details["seconds"] == 0.25


async def test_a_cancelled_request_ends_its_connection() -> None:
    async with serve(echo, delay=30) as server, guarded("127.0.0.1:*") as outbound:
        task = asyncio.create_task(outbound.request("GET", server.url()))
        await server.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nshort",
        b"not http at all\r\n\r\nconnection: close",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\n\r\nconnection: close",
        b"connection: close",
    ],
    ids=["cut", "garbage", "headers", "nothing"],
)
async def test_an_answer_that_breaks_off_fails_and_is_not_safe_to_repeat(reply: bytes) -> None:
    async with serve(lambda _: reply) as server, guarded("127.0.0.1:*") as outbound:
        with pytest.raises(ExecutionFailed) as caught:
            await outbound.request("POST", server.url(), body=b"{}", seconds=5)

    assert not caught.value.safe
    assert caught.value.details["reason"] == "connection_lost"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-One": "a\r\nX-Two: b"},
        {"X-One": "a\x00"},
        {"X One": "a"},
        {"": "a"},
        {"Host": "inside.test"},
        {"host": "inside.test"},
        {"Content-Length": "5"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "upgrade"},
        {"Proxy-Authorization": "x"},
        {"X-Long": "a" * 10_000},
        {f"X-{number}": "a" for number in range(200)},
    ],
)
async def test_headers_that_would_change_the_request_itself_are_refused(
    headers: dict[str, str],
) -> None:
    async with serve(echo) as server, guarded("127.0.0.1:*") as outbound:
        with pytest.raises(ValidationFailed) as caught:
            await outbound.request("GET", server.url(), headers=headers)

    assert caught.value.details["field"].startswith("headers")
    assert server.connections == 0


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "get", "GET /x", ""])
async def test_other_methods_are_refused(method: str) -> None:
    async with guarded() as outbound:
        with pytest.raises(ValidationFailed):
            await outbound.request(method, "http://example.com/")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `service.test`, made for this run only."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=service.test",
            "-addext",
            "subjectAltName=DNS:service.test",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


async def test_tls_goes_by_the_name_although_an_address_is_dialled(certificate: Path) -> None:
    asked: list[Any] = []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    names = Names(service_test=[[PUBLIC]], other_test=[[PUBLIC]])
    trusting = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    async with (
        serve(echo, PUBLIC, tls=tls) as server,
        guarded(resolver=names, public=plays_public, tls=trusting) as outbound,
    ):
        response = await outbound.request("GET", f"https://service.test:{server.port}/")
        with pytest.raises(ExecutionFailed, match="certificate") as caught:
            await outbound.request("GET", f"https://other.test:{server.port}/")

    assert response.status == 200
    assert asked == ["service.test", "other.test"]
    assert caught.value.safe


async def test_nothing_goes_on_from_https_to_http(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    trusting = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    names = Names(service_test=[[PUBLIC]])
    async with serve(echo, PUBLIC) as plain:
        reply = (302, {"location": plain.url()}, b"")
        async with (
            serve(lambda _: reply, PUBLIC, tls=tls) as server,
            guarded(resolver=names, public=plays_public, tls=trusting) as outbound,
        ):
            with pytest.raises(ExecutionFailed, match="https to http"):
                await outbound.request("GET", f"https://service.test:{server.port}/")

        assert plain.connections == 0


async def test_a_client_streams_events_without_an_end_but_bounds_each_line() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    events = head + b"data: 0123456789\n\n" * 1_000
    line = head + b"data: " + b"x" * 10_000 + b"\n\n"
    async with (
        serve(lambda received: events if received.target == "/" else line) as server,
        guarded("127.0.0.1:*") as outbound,
        outbound.client(bytes_max=5_000) as client,
    ):
        async with client.stream("GET", server.url()) as response:
            lines = [text async for text in response.aiter_lines() if text]
        with pytest.raises(ExecutionFailed, match="larger"):
            await client.get(server.url("/line"))

    assert len(lines) == 1_000


async def test_a_client_bounds_and_unpacks_what_is_no_stream() -> None:
    small, large = gzip.compress(b"words"), gzip.compress(b"\x00" * 10_000_000)
    async with (
        serve(
            lambda received: (
                200,
                {"content-encoding": "gzip"},
                small if received.target == "/" else large,
            )
        ) as server,
        guarded("127.0.0.1:*") as outbound,
        outbound.client(headers={"X-One": "1"}) as client,
    ):
        assert (await client.get(server.url())).content == b"words"
        assert server.received[0].headers["x-one"] == "1"
        with pytest.raises(ExecutionFailed, match="larger"):
            await client.get(server.url("/large"))


async def test_a_client_sends_the_host_of_the_address_whatever_it_is_told() -> None:
    async with (
        serve(echo) as server,
        guarded("127.0.0.1:*") as outbound,
        outbound.client() as client,
    ):
        await client.get(server.url(), headers={"Host": "inside.test"})

    assert server.received[0].headers["host"] == f"127.0.0.1:{server.port}"


async def test_a_client_follows_no_redirect_by_itself() -> None:
    async with (
        serve(lambda _: (302, {"location": "/next"}, b"")) as server,
        guarded("127.0.0.1:*") as outbound,
        outbound.client() as client,
    ):
        response = await client.get(server.url())

    assert response.status_code == 302
    assert len(server.received) == 1


async def test_a_client_gives_the_errors_of_its_library_when_nobody_answers() -> None:
    async with serve(echo) as server:
        url = server.url()
    async with guarded("127.0.0.1:*") as outbound, outbound.client() as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(url)
