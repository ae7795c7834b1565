"""A server's or a library's words, made fit for a message: one short line, without keys, markup or controls."""

import os
import re

from cdd_agent.workspace.secret_names import is_secret_name

LONGEST_QUOTE = 300
"""Characters of a server's own words in our message."""


def presentable(text: str) -> str:
    """One short line without keys, markup or control characters."""
    if re.search(r"<!doctype|<html", text, re.IGNORECASE):
        text = _MARKUP.sub(" ", text)
    for secret in _secrets_of_environment():
        text = text.replace(secret, _REDACTED)
    text = _SECRET.sub(_REDACTED, text)
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"


_MARKUP = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_SECRET = re.compile(
    r"\bsk-[^\s'\",;)}\]]+"  # OpenAI, Anthropic, OpenRouter, also half masked by the server
    r"|(?<=Bearer )\S+"
    r"|(?<=//)[^/@\s]+(?=@)"  # user:password@host
    r"|\b(?=[\w+=-]*\d)[\w+=-]{24,}",  # any long token with a digit in it
    re.IGNORECASE,
)
_REDACTED = "[redacted]"


def _secrets_of_environment() -> list[str]:
    """All keys in the environment, the longest first. Too short ones would redact plain words."""
    values = {value.strip() for name, value in os.environ.items() if is_secret_name(name)}
    return sorted((value for value in values if len(value) >= 6), key=len, reverse=True)
