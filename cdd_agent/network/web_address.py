"""Web addresses: check that they are usable, and if they are local."""

import ipaddress
import re
from urllib.parse import urlsplit

LAST_PORT = 65_535
_LOCAL_NAMES = (".local", ".lan", ".home.arpa", ".docker.internal")
_ALLOWED = (
    "give an address that begins with http:// or https://, as http://127.0.0.1:11434/v1"
)


def web_address(text: str) -> str:
    """Return a usable address without spaces around it. Raises `ValueError` with a
    message for the user.
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port
    except ValueError as error:
        # no address or port, or a name that cannot be looked up
        raise ValueError(_ALLOWED) from error
    if not host or port == 0 or parts.scheme not in ("http", "https"):
        raise ValueError(_ALLOWED)
    if re.search(r"[\s\\]", text) or not text.isprintable():
        raise ValueError(_ALLOWED)
    # it would hide the host
    if "@" in parts.query + parts.fragment:
        raise ValueError(_ALLOWED)
    if text.isascii():
        return text
    # in this form, letters that look alike differ
    user, at, _ = parts.netloc.rpartition("@")
    shown_port = "" if port is None else f":{port}"
    return parts._replace(netloc=f"{user}{at}{host}{shown_port}").geturl()


def is_this_computer(host: str) -> bool:
    """True if a host always means this computer."""
    host = host.rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def is_local_server(address: str) -> bool:
    """True for this computer or its private network."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    if is_this_computer(host):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)
