"""Tells an address that a call can go to from other text. Imports nothing slow."""

import re
from urllib.parse import urlsplit


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
        or re.search(r"\s", text)
        or not text.isprintable()
    ):
        raise ValueError(
            "allowed: an address that begins with http:// or https://,"
            " as http://127.0.0.1:11434/v1"
        )
    return text
