"""The folder in a check's text: `cd backend && pytest` runs pytest in `backend`."""

import re
import shlex

from cdd_agent.pattern import Pattern

_IN_FOLDER = Pattern(
    r"cd[ \t]+(?:'([^']+)'|([\w./@+-]+))[ \t]*&&[ \t]*(\S.*)", re.DOTALL
)


def in_folder(folder: str, command: str) -> str:
    return f"cd {shlex.quote(folder)} && {command}" if folder else command


def split_folder(text: str) -> tuple[str, str]:
    """Return the folder and the command of a check. The folder is empty if the text
    names none, or if a shell would have to expand it.
    """
    match = _IN_FOLDER.fullmatch(text.strip())
    return (match[1] or match[2], match[3]) if match else ("", text)
