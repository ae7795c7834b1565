"""Web addresses: which text is one that a call can go to, and which are local. Imports
nothing slow.
"""

import ipaddress
import re
from urllib.parse import urlsplit

_LOCAL_NAMES = (".local", ".lan", ".home.arpa", ".docker.internal")


def web_address(text: str) -> str:
    """An address that calls can go to, without the spaces around it. Raises
    `ValueError`, in words for people.
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        leads_somewhere = (
            bool((parts.hostname or "").encode("idna")) and parts.port != 0
        )
    except ValueError:
        # an address or a port that is none, a name that cannot be looked up
        leads_somewhere = False
    if (
        not leads_somewhere
        or parts.scheme not in ("http", "https")
        or re.search(r"[\s\\]", text)
        or not text.isprintable()
        # it would read as if the host stood behind the sign
        or "@" in parts.query + parts.fragment
    ):
        raise ValueError(
            "allowed: an address that begins with http:// or https://,"
            " as http://127.0.0.1:11434/v1"
        )
    if not text.isascii():
        # letters that look alike are told apart
        user, at, _ = parts.netloc.rpartition("@")
        host = (parts.hostname or "").encode("idna").decode()
        port = "" if parts.port is None else f":{parts.port}"
        text = parts._replace(netloc=f"{user}{at}{host}{port}").geturl()
    return text


def is_this_computer(host: str) -> bool:
    """True if a host's name or address is always this computer."""
    host = host.rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def is_local_server(address: str) -> bool:
    """True if an address is of this computer, or of the private network around it."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    if is_this_computer(host):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)
