"""Hosts that may be called although they are not public, by name and port.

One function reads what the command line, the environment and the SDK give. An entry holds for
the host exactly as an address (URL) names it: allowing `localhost:8000` opens neither
`127.0.0.1:8000` nor another name that leads there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import idna

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.outbound.addresses import as_address

__all__ = ["AllowedHost", "host_fault", "normal_host", "parse_allowed_hosts"]

PORT_MAX: Final = 65_535
_HOST_CHARS_MAX: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_ENTRY: Final = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<plain>[^:\[\]/@]*)):(?P<port>.*)")
# What C libraries read as a number: a host that ends like this is an address in disguise.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HINT: Final = "Write HOST:PORT, such as localhost:8000, [::1]:8000, or host:* for every port."


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """A host and a port that may be called; no port means every port."""

    host: str
    port: int | None

    def covers(self, host: str, port: int) -> bool:
        """Tell whether a call to this host, in its normal form, and port is allowed."""
        return self.host == host and self.port in {None, port}


def normal_host(host: str) -> str:
    """Return the one spelling of a host: small letters, no final dot, addresses shortened."""
    address = as_address(host)
    return str(address) if address is not None else host.lower().removesuffix(".")


def host_fault(host: str) -> str | None:
    """Say what is wrong with a host in its normal form, if anything."""
    if as_address(host) is not None:
        return "it names a network interface" if "%" in host else None
    if not host:
        return "it is empty"
    labels = host.split(".")
    if len(host) > _HOST_CHARS_MAX or not all(map(_LABEL.fullmatch, labels)):
        return "it is not the name of a host"
    if _NUMBER.fullmatch(labels[-1]):
        return "it is a number that only some programs read as an address"
    return None


def parse_allowed_hosts(entries: str | Iterable[str] | None) -> tuple[AllowedHost, ...]:
    """Read `HOST:PORT` entries, from a list or from one text with commas or spaces between.

    Raises:
        ValidationFailed: An entry is malformed; `details` has it.
    """
    if entries is None:
        return ()
    texts = re.split(r"[,\s]+", entries) if isinstance(entries, str) else list(entries)
    texts = [text for text in texts if text != ""]
    if len(texts) > limits.ALLOWED_HOSTS_MAX:
        raise ValidationFailed(
            f"There are {len(texts)} allowed hosts; the limit is {limits.ALLOWED_HOSTS_MAX}.",
            field="allow_hosts",
            limit=limits.ALLOWED_HOSTS_MAX,
        )
    return tuple(dict.fromkeys(map(_parse, texts)))


def _parse(text: str) -> AllowedHost:
    if not isinstance(text, str):
        raise _wrong(repr(text), "it is not text")
    found = _ENTRY.fullmatch(text.strip())
    if found is None:
        raise _wrong(text, "it needs a host and a port")
    bracketed = found["bracketed"]
    host = normal_host(_ascii(found["plain"], text) if bracketed is None else bracketed)
    address = as_address(host)
    if bracketed is not None and (address is None or address.version == 4):  # noqa: PLR2004 - IPv4
        raise _wrong(text, "only an IPv6 address stands in brackets")
    if fault := host_fault(host):
        raise _wrong(text, fault)
    return AllowedHost(host, _port(found["port"], text))


def _ascii(host: str, text: str) -> str:
    """Return a name with its foreign letters encoded, as it goes over the wire."""
    if host.isascii():
        return host
    try:
        return idna.encode(host.lower()).decode("ascii")
    except idna.IDNAError:
        raise _wrong(text, "it is not the name of a host") from None


def _port(port: str, text: str) -> int | None:
    if port == "*":
        return None
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= PORT_MAX):
        raise _wrong(text, f"the port must be * or from 1 to {PORT_MAX}")
    return int(port)


def _wrong(text: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"The allowed host {text[:100]!r} cannot be used: {why}.",
        field="allow_hosts",
        entry=text[:100],
        hint=_HINT,
    )
