"""A server's or a library's words, made fit for a message: one short line, without
keys, markup or controls.
"""

import re

from cdd_agent.llm.web_page import is_web_page, page_text
from cdd_agent.redaction import Redactor

LONGEST_QUOTE = 300
"""Characters of a server's own words in our message."""


def quoted(text: str) -> str:
    """One short line without keys, markup or control characters; names of models and
    hosts stay readable.
    """
    if is_web_page(text):
        text = page_text(text)
    text = Redactor.of_environment().redact(text)
    text = _SAID_TO_BE_A_KEY.sub(
        lambda found: f"{found['assigned'] or found['named'] or ''}[redacted]", text
    )
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"


# Keys without a shape of their own, and parts of keys: told by what stands around them.
_NAMED = r"[\w-]{0,40}?(?:key|token|secret|passw(?:or)?d|credential|authorization)s?"
_SAID_TO_BE_A_KEY = re.compile(
    rf"""
      (?<=Bearer\ ) (?!token|auth|key|scheme|realm|error) [^\s"',;)}}\[\]]+
    | (?<=//) [^/@\s\[\]]+ (?=@)                       # user:password@host
    | \b [\w-]{{2,60}} (?:\*{{3,}}|…) [\w*…-]*          # half masked by the server
    | \b (?P<assigned>
              {_NAMED} (?:\ (?:provided|given|used|is|was))*
              ["'`]? \s* [:=] \s* ["'`]? (?:Basic\ )?)
          (?=[^\s"'`,;&)}}\]]*\d) (?=[^\s"'`,;&)}}\]]*[A-Za-z])
          [\w+/=.~-]{{7,}} [\w+/=~-]
    | \b (?P<named>{_NAMED} ["'`]? \s+ ["'`]?)
          (?: (?=\w*\d) (?=\w*[A-Za-z]) [A-Za-z0-9+/=]{{16,}}
            | [0-9a-f]{{8}} (?:-[0-9a-f]{{4}}){{3}} -[0-9a-f]{{12}})
    """,
    re.IGNORECASE | re.VERBOSE,
)
