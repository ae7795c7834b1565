"""Public and other addresses of hosts."""

import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from cdd_agent.threads import in_thread

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Awaitable[tuple[Address, ...]]]
"""Returns the addresses, best first. Raises `OSError` or `UnicodeError` if there are
none.
"""
Judge = Callable[[Address], bool]
"""True for an address that may be connected to."""

_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC = (
    ip_network("192.0.0.0/24"),  # protocol assignments
    ip_network("192.88.99.0/24"),  # relays of 6to4
    ip_network("2002::/16"),  # 6to4: leads to any IPv4 address
)


async def system_resolve(host: str) -> tuple[Address, ...]:
    """Ask the system, which also reads spellings such as `0x7f.1`."""
    entries = await in_thread(
        lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM), name="resolve"
    )
    return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in entries))


def is_public(address: Address) -> bool:
    """True for an address on the public internet. An IPv4 address in an IPv6 address
    decides.
    """
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner:
            return is_public(inner)
        if address not in _GLOBAL_V6:
            return False
    elif address.is_reserved:
        return False
    special = address.is_multicast or any(address in network for network in _NOT_PUBLIC)
    return address.is_global and not special
