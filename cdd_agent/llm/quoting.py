"""Quote texts of servers and libraries in messages: one short line without keys, markup
and control characters.
"""

import re

from cdd_agent.llm.web_page import is_web_page, page_text
from cdd_agent.pattern import Pattern
from cdd_agent.text.redaction import Redactor

LONGEST_QUOTE = 300
"""Characters of a server's text in a message."""
# The word before it reveals a partial key or a key of unknown format.
_KEY_NAME = r"[\w-]{0,40}?(?:key|token|secret|passw(?:or)?d|credential|authorization)s?"
_KEY = Pattern(
    rf"""
      (?<=Bearer\ ) (?!token|auth|key|scheme|realm|error) [^\s"',;)}}\[\]]+
    | (?<=//) [^/@\s\[\]]+ (?=@)                       # user:password@host
    | \b [\w-]{{2,60}} (?:\*{{3,}}|…) [\w*…-]*          # half masked by the server
    | \b (?P<assigned>
              {_KEY_NAME} (?:\ (?:provided|given|used|is|was))*
              ["'`]? \s* [:=] \s* ["'`]? (?:Basic\ )?)
          (?=[^\s"'`,;&)}}\]]*\d) (?=[^\s"'`,;&)}}\]]*[A-Za-z])
          [\w+/=.~-]{{7,}} [\w+/=~-]
    | \b (?P<named>{_KEY_NAME} ["'`]? \s+ ["'`]?)
          (?: (?=\w*\d) (?=\w*[A-Za-z]) [A-Za-z0-9+/=]{{16,}}
            | [0-9a-f]{{8}} (?:-[0-9a-f]{{4}}){{3}} -[0-9a-f]{{12}})
    """,
    re.IGNORECASE | re.VERBOSE,
)


def quoted(text: str) -> str:
    """Return one short line without keys, markup and control characters. Names of
    models and hosts stay readable.
    """
    if is_web_page(text):
        text = page_text(text)
    text = Redactor.of_environment().redact(text)
    text = _KEY.sub(_without_key, text)
    one_line = " ".join(text.split())
    line = "".join(filter(str.isprintable, one_line))
    if len(line) <= LONGEST_QUOTE:
        return line
    return f"{line[: LONGEST_QUOTE - 1]}…"


def _without_key(match: re.Match[str]) -> str:
    name = match["assigned"] or match["named"] or ""
    return f"{name}[redacted]"
