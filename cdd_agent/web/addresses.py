"""Where a host name leads to, and whether that is a public place."""

import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from cdd_agent.threads import in_thread

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Awaitable[tuple[Address, ...]]]
"""Finds all addresses of a host, the best one first. Raises `OSError` or `UnicodeError`
when there are none.
"""
Judge = Callable[[Address], bool]
"""Says whether an address may be connected to."""

_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC = (
    ip_network("192.0.0.0/24"),  # protocol assignments
    ip_network("192.88.99.0/24"),  # relays of 6to4
    ip_network("2002::/16"),  # 6to4: leads to any IPv4 address
)


async def system_resolve(host: str) -> tuple[Address, ...]:
    """Ask the system, which also knows `/etc/hosts` and spellings such as `0x7f.1` and
    `2130706433`.
    """
    found = await in_thread(
        lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM), name="resolve"
    )
    return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet: not to this computer, its
    network, or a group of receivers.

    Addresses that wrap an IPv4 address are judged by that one. Beyond what `ipaddress`
    knows, of IPv6 only the part that is given out is public.
    """
    if isinstance(address, IPv6Address):
        inner = (
            IPv4Address(int(address) & 0xFFFFFFFF)
            if address in _NAT64
            else address.ipv4_mapped
        )
        if inner:
            return is_public(inner)
        if address not in _GLOBAL_V6:
            return False
    elif address.is_reserved:
        return False
    special = address.is_multicast or any(address in network for network in _NOT_PUBLIC)
    return address.is_global and not special
