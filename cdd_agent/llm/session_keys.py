"""The key of a provider: from the environment, or typed by the user.

A typed key is put into this process's environment, where every adapter looks for keys.
It is in no file, commands do not get it, and everything that is stored is redacted.
"""

import os
from collections.abc import Mapping

from msgspec import Struct

from cdd_agent.llm.providers import PROVIDERS, Provider
from cdd_agent.network.keys import Key, clean_key, is_sendable
from cdd_agent.text.redaction import hide_typed_key, is_typed_key


class KeySource(Struct, frozen=True):
    variable: str
    is_typed: bool = False

    @property
    def in_words(self) -> str:
        if self.is_typed:
            return "key of this session"
        return f"key in {self.variable}"


def find_key_source(
    provider: Provider, environment: Mapping[str, str] = os.environ
) -> KeySource | None:
    """Return where the provider's key is, or None if there is none."""
    for variable in provider.keys:
        key = clean_key(environment.get(variable, "")).text
        if key:
            return KeySource(variable, is_typed_key(key))
    return None


def read_typed_key(text: str, variable: str) -> Key:
    """Return the key in a typed or pasted text, and hide it from now on. Raises
    `ValueError` if it cannot be a key.
    """
    key = clean_key(text)
    hide_typed_key(key.text, variable)
    if not key.text:
        raise ValueError("it is empty")
    if not is_sendable(key.text):
        raise ValueError("it contains characters that no key has")
    return key


def keep_for_session(name: str, key: Key) -> str:
    """Use a key for a provider until this process ends. Return its variable."""
    variable = PROVIDERS[name].keys[0]
    hide_typed_key(key.text, variable)
    os.environ[variable] = key.text
    return variable


def export_line(
    variable: str,
    environment: Mapping[str, str] = os.environ,
    system: str = os.name,
) -> str:
    """Return the line that sets a key, in the syntax of the user's shell."""
    shell = os.path.basename(environment.get("SHELL", ""))  # noqa: PTH119  # may be of another system
    if shell == "fish":
        return f"set -gx {variable} …"
    if system == "nt" or shell in ("pwsh", "pwsh.exe"):
        return f'$env:{variable} = "…"'
    return f"export {variable}=…"
