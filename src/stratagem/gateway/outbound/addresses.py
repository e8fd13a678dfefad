"""Which addresses are public.

The standard library's `is_global` follows the registries of the release it came with, and older
releases take translated and embedded addresses for public ones. So the ranges are written down
here. Every IPv4 address outside the listed ranges is public. An IPv6 address is public if it lies
in the globally allocated range and outside the listed ones. An IPv6 address that embeds an IPv4
address (mapped, NAT64, 6to4, Teredo) is never public; the IPv4 address can be called directly.
"""

from __future__ import annotations

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, TypeAlias

__all__ = ["Address", "is_public", "needs_own_permission", "non_public_kind", "parse_address"]

Address: TypeAlias = IPv4Address | IPv6Address
_Network: TypeAlias = IPv4Network | IPv6Network

_LINK_LOCAL: Final = "a link-local address"
_RESERVED: Final = "a reserved address"

# In the order of how often they are met; the words end up in messages.
_CLOSED: Final[tuple[tuple[_Network, str], ...]] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("127.0.0.0/8", "a loopback address"),
        ("10.0.0.0/8", "a private address"),
        ("172.16.0.0/12", "a private address"),
        ("192.168.0.0/16", "a private address"),
        ("169.254.0.0/16", _LINK_LOCAL),
        ("100.64.0.0/10", "an address shared behind a carrier"),
        ("0.0.0.0/8", "an address of this host"),
        # Internal addresses of clouds that lie in public ranges.
        ("168.63.129.16/32", _LINK_LOCAL),
        ("192.0.0.0/24", _RESERVED),
        ("192.0.2.0/24", _RESERVED),
        ("192.88.99.0/24", _RESERVED),
        ("198.18.0.0/15", _RESERVED),
        ("198.51.100.0/24", _RESERVED),
        ("203.0.113.0/24", _RESERVED),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", _RESERVED),
        ("::1/128", "a loopback address"),
        ("::/128", "an address of this host"),
        ("::ffff:0:0/96", "an IPv4 address inside an IPv6 one"),
        ("64:ff9b::/96", "an IPv4 address inside an IPv6 one"),
        ("64:ff9b:1::/48", "an IPv4 address inside an IPv6 one"),
        ("2002::/16", "an IPv4 address inside an IPv6 one"),
        ("2001::/32", "an IPv4 address inside an IPv6 one"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", _LINK_LOCAL),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", _RESERVED),
        ("2001:db8::/32", _RESERVED),
        ("3fff::/20", _RESERVED),
    )
)
_PUBLIC_IPV6: Final = IPv6Network("2000::/3")
_OWN_PERMISSION: Final = frozenset(
    {_LINK_LOCAL, "a multicast address", "an address of this host"}
    | {"an IPv4 address inside an IPv6 one"}
)
# Where clouds keep the credentials of a machine, in ranges that are otherwise merely private.
_METADATA: Final = frozenset(map(ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254")))


def parse_address(host: str) -> Address | None:
    """Return the IP address that a host is written as, or None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def non_public_kind(address: Address) -> str | None:
    """Return the kind of a non-public address in words, or None if the address is public."""
    for network, kind in _CLOSED:
        if address.version == network.version and address in network:
            return kind
    if isinstance(address, IPv6Address) and (
        address not in _PUBLIC_IPV6 or address.scope_id is not None
    ):
        return _RESERVED
    return None


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the public internet."""
    return non_public_kind(address) is None


def needs_own_permission(address: Address) -> bool:
    """Tell whether an address must be allowed by itself, even if a name that leads to it is.

    Otherwise the DNS server of an allowed name could point it at the metadata service of a cloud,
    which holds the credentials of the machine.
    """
    return address in _METADATA or non_public_kind(address) in _OWN_PERMISSION
