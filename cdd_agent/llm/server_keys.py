"""Keys that the user typed for servers at an address. Each goes to its server alone,
and lasts until this process ends.
"""

from urllib.parse import urlsplit

from cdd_agent.network.keys import Key

_keys: dict[tuple[str, str], Key] = {}


def keep_for_server(address: str, key: Key) -> None:
    _keys[_server_of(address)] = key


def key_of_server(address: str) -> Key | None:
    return _keys.get(_server_of(address))


def forget_server_keys() -> None:
    """For tests: a process has one user."""
    _keys.clear()


def _server_of(address: str) -> tuple[str, str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        # the call itself reports a wrong address
        return "", address
    return parts.scheme, parts.netloc
