"""The proxy of a request, by curl's variables and rules.

`NO_PROXY` also accepts the forms of Go and other programs: brackets around IPv6
addresses, ports, `*.example.com`, and `*` among other entries. A meaningless entry
matches nothing.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from urllib.request import getproxies, proxy_bypass

import httpx

from cdd_agent.network.unusable_variable import UnusableVariable
from cdd_agent.network.web_address import LAST_PORT, is_this_computer
from cdd_agent.values.partly_shown import PartlyShown

_SCHEMES = ("http", "https", "socks5", "socks5h")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# in curl's order
_VARIABLES = {
    "http": ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
    "https": ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
}
# For a CGI program, HTTP_PROXY is the `Proxy` header of a request.
_MARK_OF_CGI = "REQUEST_METHOD"

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxy(PartlyShown, frozen=True):
    """A proxy, and the variable that names it."""

    variable: str
    url: str

    hidden_fields = ("url",)

    @property
    def shown(self) -> str:
        """The URL without user and password."""
        return _without_password(self.url)

    def __str__(self) -> str:
        return f"{self.shown} ({self.variable})"


def proxy_for(
    url: httpx.URL,
    environment: Mapping[str, str] = os.environ,
    system_proxies: Callable[[], Mapping[str, str]] = getproxies,
) -> Proxy | None:
    """Return the proxy for a URL, or None to connect directly. Raises
    `UnusableVariable` if its variable has no usable address.

    Without any variable, the settings of macOS and Windows count.
    """
    host = url.raw_host.decode("ascii", errors="replace")
    if is_this_computer(url.host) or is_without_proxy(
        host, url.port or _DEFAULT_PORTS.get(url.scheme), no_proxy_list(environment)
    ):
        return None
    for variable in _VARIABLES.get(url.scheme, ()):
        if variable == "HTTP_PROXY" and _MARK_OF_CGI in environment:
            continue
        if value := environment.get(variable, "").strip():
            return _read_proxy(variable, value)
    if any(environment.get(name) for names in _VARIABLES.values() for name in names):
        return None
    setting = system_proxies().get(url.scheme)
    if not setting or proxy_bypass(host):
        return None
    return _read_proxy("system settings", setting)


def no_proxy_list(environment: Mapping[str, str]) -> str:
    """Return the value of `no_proxy`, or of `NO_PROXY` if that is empty."""
    return environment.get("no_proxy") or environment.get("NO_PROXY", "")


def is_without_proxy(host: str, port: int | None, no_proxy: str) -> bool:
    """True if an entry of `no_proxy`, separated by commas or blanks, matches."""
    host = host.strip("[]").rstrip(".").lower()
    address = _as_address(host)
    for entry in re.split(r"[,\s]+", no_proxy.lower()):
        if entry == "*":
            return True
        pattern, entry_port = _split_port(entry)
        if entry_port is not None and entry_port != port:
            continue
        if address is None:
            if _is_domain_of(pattern, host):
                return True
        elif _is_in_network(address, pattern):
            return True
    return False


def _split_port(entry: str) -> tuple[str, int | None]:
    """Split `host:port` and `[host]:port`. An IPv6 address without brackets has no
    port.
    """
    match = re.fullmatch(r"\[(.*)\](/\d+)?(?::(\d+))?|([^:]*):(\d+)", entry)
    if match is None:
        return entry, None
    in_brackets, bits, port_behind, host, port = match.groups()
    pattern = host if in_brackets is None else in_brackets + (bits or "")
    number = port_behind or port
    return pattern, int(number) if number else None


def _is_domain_of(pattern: str, host: str) -> bool:
    domain = pattern.removeprefix("*").removeprefix(".").rstrip(".")
    if not domain.isascii():
        try:
            domain = domain.encode("idna").decode()
        except UnicodeError:
            return False
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _as_address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_in_network(address: _Address, pattern: str) -> bool:
    """True for the same address, and for one in a range such as `10.0.0.0/8`."""
    try:
        return address in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return False


def _read_proxy(variable: str, value: str) -> Proxy:
    """Parse a URL, or `host:port` of an HTTP proxy. Raises `UnusableVariable`."""
    url = value if "://" in value else f"http://{value}"
    # as desktops write a SOCKS proxy
    url = re.sub(r"^socks://", "socks5://", url, flags=re.IGNORECASE)
    try:
        parts = httpx.URL(url)
        parts.host.encode("idna")
        is_usable = parts.scheme in _SCHEMES and bool(parts.host)
        is_usable = is_usable and (parts.port or 0) <= LAST_PORT
        is_usable = is_usable and not re.search(r"\s", url)
        # then a `/` is in the password, and the host is only a part of it
        is_usable = is_usable and b"@" not in parts.raw_path
    except (httpx.InvalidURL, UnicodeError):
        is_usable = False
    if not is_usable:
        raise UnusableVariable(
            f"{variable} in the environment is no usable proxy:"
            f" {_without_password(value)}",
            hint=(
                "Write it as http://host:port or socks5://host:port, or unset the"
                " variable."
            ),
        )
    return Proxy(variable, url)


def _without_password(value: str) -> str:
    # a password may have any character, also `/`
    return re.sub(r"^(\w+://)?.*@", r"\1", value, flags=re.DOTALL)
