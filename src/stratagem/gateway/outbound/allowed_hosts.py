"""The allow list: hosts that may be called although they are not public, by name and port.

One function parses the entries of the command line, the environment and the SDK. An entry matches
the host exactly as a URL names it: allowing `localhost:8000` allows neither `127.0.0.1:8000` nor
another name that resolves to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import idna

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.gateway.outbound.addresses import parse_address

__all__ = ["AllowedHost", "host_fault", "normalize_host", "parse_allowed_hosts"]

PORT_MAX: Final = 65_535
_HOST_CHARS_MAX: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_ENTRY: Final = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<plain>[^:\[\]/@]*)):(?P<port>.*)")
# C libraries parse such a label as a number, and so the host as an IP address.
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


def normalize_host(host: str) -> str:
    """Return a host in its normal form: lower case, no final dot, IP addresses compressed."""
    address = parse_address(host)
    return str(address) if address is not None else host.lower().removesuffix(".")


def host_fault(host: str) -> str | None:
    """Return what is wrong with a host in its normal form, or None."""
    if parse_address(host) is not None:
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
    """Parse `HOST:PORT` entries, from a list or from one text separated by commas or spaces.

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
    return tuple(dict.fromkeys(map(_parse_entry, texts)))


def _parse_entry(text: str) -> AllowedHost:
    if not isinstance(text, str):
        raise _entry_error(repr(text), "it is not text")
    found = _ENTRY.fullmatch(text.strip())
    if found is None:
        raise _entry_error(text, "it needs a host and a port")
    bracketed = found["bracketed"]
    host = normalize_host(_encode_idna(found["plain"], text) if bracketed is None else bracketed)
    address = parse_address(host)
    if bracketed is not None and (address is None or address.version == 4):  # noqa: PLR2004 - IPv4
        raise _entry_error(text, "only an IPv6 address stands in brackets")
    if fault := host_fault(host):
        raise _entry_error(text, fault)
    return AllowedHost(host, _parse_port(found["port"], text))


def _encode_idna(host: str, text: str) -> str:
    """Return an internationalized name in its ASCII form (IDNA), as it is sent."""
    if host.isascii():
        return host
    try:
        return idna.encode(host.lower()).decode("ascii")
    except idna.IDNAError:
        raise _entry_error(text, "it is not the name of a host") from None


def _parse_port(port: str, text: str) -> int | None:
    if port == "*":
        return None
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= PORT_MAX):
        raise _entry_error(text, f"the port must be * or from 1 to {PORT_MAX}")
    return int(port)


def _entry_error(text: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"The allowed host {text[:100]!r} cannot be used: {why}.",
        field="allow_hosts",
        entry=text[:100],
        hint=_HINT,
    )
