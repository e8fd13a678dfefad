"""What must never be reached, and what may: the list of the security notes, over real sockets."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import httpx2
import pytest

from stratagem.errors import (
    ExecutionFailed,
    PermissionDenied,
    StratagemError,
    ValidationFailed,
)
from stratagem.gateway.outbound import Outbound, parse_allowed_hosts
from stratagem.gateway.outbound.addresses import is_public
from tests.unit.gateway.outbound.serving import (
    PUBLIC,
    Names,
    guarded,
    json_reply,
    plays_public,
    serve,
)

pytestmark = pytest.mark.anyio

FORBIDDEN_HOSTS = [
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "0.0.0.0",  # noqa: S104 - called, not bound to
    "0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "169.254.169.254",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fd00:ec2::254]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "100.100.100.200",
    "168.63.129.16",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "lo\u00adcalhost",
    "%31%32%37.0.0.1",
    "127.0.0.1%00.example.com",
    "user@127.0.0.1",
    "example.com@127.0.0.1",
    "127.0.0.1\\@example.com",
    "example.com:80@127.0.0.1",
    "127.0.0.1#@example.com",
    "127.0.0.1?@example.com",
]


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
async def test_no_spelling_of_a_private_host_is_reached(host: str) -> None:
    async with serve(lambda _: json_reply("reached"), "0.0.0.0") as server, guarded() as outbound:  # noqa: S104
        with pytest.raises((PermissionDenied, ValidationFailed)):
            await outbound.request("GET", f"http://{host}:{server.port}/")
        with pytest.raises((StratagemError, httpx2.HTTPError, httpx2.InvalidURL)):
            async with outbound.client() as client:
                await client.get(f"http://{host}:{server.port}/")

        assert server.connections == 0


# 127.0.0.2 plays the public address here.
@pytest.mark.parametrize("host", [host for host in FORBIDDEN_HOSTS if host != PUBLIC])
async def test_no_redirect_leads_to_one(host: str) -> None:
    async with serve(lambda _: json_reply("reached"), "127.0.0.1") as inside:
        location = f"http://{host}:{inside.port}/"
        reply = (302, {"location": location}, b"")
        async with (
            serve(lambda _: _latin(reply), PUBLIC) as outside,
            guarded(public=plays_public) as outbound,
        ):
            with pytest.raises((PermissionDenied, ExecutionFailed)):
                await outbound.request("GET", outside.url())

            assert inside.connections == 0
            assert len(outside.received) == 1


def _latin(reply: tuple[int, dict[str, str], bytes]) -> bytes:
    status, headers, _ = reply
    return f"HTTP/1.1 {status} x\r\nlocation: {headers['location']}\r\ncontent-length: 0\r\n\r\n".encode()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "ws://example.com/",
        "unix:///var/run/docker.sock",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
        "javascript:alert(1)",
        "//example.com/",
        "example.com",
        "",
        "http://",
        "http:///path",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:-1/",
        "http://example.com:80:80/",
        "http://exa mple.com/",
        "http://a..b/",
        "http://-a.example/",
        f"http://{'a' * 64}.example/",
        "http://example.com/\r\nX: y",
        "http://example.com/" + "a" * 10_000,
    ],
)
async def test_what_is_no_plain_http_address_is_refused(url: str) -> None:
    async with guarded() as outbound:
        with pytest.raises(ValidationFailed) as caught:
            await outbound.request("GET", url)

    assert caught.value.details["field"] == "url"


async def test_a_name_that_answers_publicly_first_and_privately_next_stays_outside() -> None:
    names = Names(rebind_test=[[PUBLIC], ["127.0.0.1"]])
    close = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    async with (
        serve(lambda _: close, PUBLIC) as outside,
        serve(lambda _: close, "127.0.0.1", port=outside.port) as inside,
        guarded(resolver=names, public=plays_public) as outbound,
    ):
        url = outside.url("/", "rebind.test")
        response = await outbound.request("GET", url)

        assert response.body == b"ok"
        assert names.asked == ["rebind.test"]
        assert outside.received[0].peer == PUBLIC
        assert outside.received[0].headers["host"] == f"rebind.test:{outside.port}"

        with pytest.raises(PermissionDenied):
            await outbound.request("GET", url)

        assert inside.connections == 0


async def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    names = Names(mixed_test=[[PUBLIC, "127.0.0.1"]], reverse_test=[["::1", PUBLIC]])
    async with (
        serve(lambda _: json_reply(1), PUBLIC) as outside,
        guarded(resolver=names, public=plays_public) as outbound,
    ):
        for name in ("mixed.test", "reverse.test"):
            with pytest.raises(PermissionDenied):
                await outbound.request("GET", outside.url("/", name))

        assert outside.connections == 0


async def test_a_refusal_does_not_tell_where_a_private_name_leads() -> None:
    names = Names(db_corp_test=[["10.20.30.40"]])
    async with guarded(resolver=names) as outbound:
        with pytest.raises(PermissionDenied) as caught:
            await outbound.request("GET", "http://db.corp.test/")

    error = caught.value
    assert "10.20" not in f"{error.message} {error.details} {error.hint}"
    assert error.details["reason"] == "not_public"
    assert "--allow-host db.corp.test:80" in error.hint


async def test_a_connection_failure_does_not_tell_the_address_either() -> None:
    names = Names(service_test=[[PUBLIC]])
    with socket.socket() as taken:
        taken.bind((PUBLIC, 0))
        port = taken.getsockname()[1]
        async with guarded(resolver=names, public=plays_public) as outbound:
            with pytest.raises(ExecutionFailed) as caught:
                await outbound.request("GET", f"http://service.test:{port}/")

    assert caught.value.safe
    assert PUBLIC not in f"{caught.value.message} {caught.value.details}"


async def test_the_next_address_of_a_name_is_tried_when_the_first_does_not_answer() -> None:
    names = Names(twice_test=[["127.0.0.3", PUBLIC]])
    async with (
        serve(lambda _: json_reply("here"), PUBLIC) as outside,
        guarded(
            resolver=names, public=lambda address: str(address) in {PUBLIC, "127.0.0.3"}
        ) as outbound,
    ):
        response = await outbound.request("GET", outside.url("/", "twice.test"))

    assert response.body == b'"here"'


async def test_an_unknown_name_fails_safely() -> None:
    async with guarded(resolver=Names()) as outbound:
        with pytest.raises(ExecutionFailed, match="cannot be found") as caught:
            await outbound.request("GET", "https://nowhere.test/")

    assert caught.value.safe


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        serve(lambda _: json_reply("proxy")) as proxy,
        serve(lambda _: json_reply("service")) as service,
        guarded(f"127.0.0.1:{service.port}") as outbound,
    ):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        response = await outbound.request("GET", service.url())
        async with outbound.client() as client:
            streamed = await client.get(service.url())

        assert (response.body, streamed.json()) == (b'"service"', "service")
        assert proxy.connections == 0


async def test_an_allowed_host_is_allowed_as_it_is_written_and_on_its_port() -> None:
    async with (
        serve(lambda _: json_reply(1)) as one,
        serve(lambda _: json_reply(2)) as two,
        guarded(f"localhost:{one.port}") as outbound,
    ):
        response = await outbound.request("GET", one.url("/", "localhost"))

        assert response.body == b"1"
        for url in (one.url("/", "127.0.0.1"), two.url("/", "localhost")):
            with pytest.raises(PermissionDenied):
                await outbound.request("GET", url)
        assert two.connections == 0


async def test_a_star_allows_every_port() -> None:
    async with serve(lambda _: json_reply(1)) as one, guarded("localhost:*") as outbound:
        response = await outbound.request("GET", one.url("/", "LocalHost"))

    assert response.status == 200


async def test_an_allowed_name_does_not_open_the_credentials_of_the_machine() -> None:
    names = Names(inside_test=[["169.254.169.254"]], cloud_test=[["100.100.100.200"]])
    async with guarded("inside.test:80", "cloud.test:80", resolver=names) as outbound:
        for name in ("inside.test", "cloud.test"):
            with pytest.raises(PermissionDenied):
                await outbound.request("GET", f"http://{name}/")


def test_entries_are_read_from_a_text_or_a_list() -> None:
    read = parse_allowed_hosts("localhost:8000, 10.0.0.5:443\n[::1]:80 Host.Example.:*")

    assert [(entry.host, entry.port) for entry in read] == [
        ("localhost", 8000),
        ("10.0.0.5", 443),
        ("::1", 80),
        ("host.example", None),
    ]
    assert parse_allowed_hosts(None) == parse_allowed_hosts("") == ()
    assert parse_allowed_hosts(["a:1", "a:1"]) == parse_allowed_hosts("a:1")


@pytest.mark.parametrize(
    "entry",
    [
        "localhost",
        "localhost:",
        "localhost:0",
        "localhost:65536",
        "localhost:8e3",
        "localhost:١",
        ":80",
        "*:80",
        "*.example.com:80",
        "http://localhost:80",
        "user@localhost:80",
        "::1:80",
        "[localhost]:80",
        "[127.0.0.1]:80",
        "[fe80::1%eth0]:80",
        "127.1:80",
        "2130706433:80",
        "10.0.0.0/8:80",
        "a b:80",
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(entry: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        Outbound([entry])

    assert caught.value.details["field"] == "allow_hosts"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("1.1.1.1", True),
        ("100.63.255.255", True),
        ("100.128.0.0", True),
        ("172.15.0.1", True),
        ("172.32.0.1", True),
        ("169.253.0.1", True),
        ("223.255.255.255", True),
        ("2606:4700::1111", True),
        ("2a00:1450:4001::200e", True),
        ("240.0.0.1", False),
        ("203.0.113.1", False),
        ("2001:db8::1", False),
        ("2001:10::1", False),
        ("3fff::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("100::1", False),
        ("4000::1", False),
        ("5f00::1", False),
    ],
)
def test_only_addresses_given_out_to_the_public_are_public(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public
