"""The folder that a check can name: `cd backend && pytest` runs pytest in `backend`."""

import re
import shlex

_IN_FOLDER = re.compile(
    r"cd[ \t]+(?:'([^']+)'|([\w./@+-]+))[ \t]*&&[ \t]*(\S.*)", re.DOTALL
)


def in_folder(folder: str, command: str) -> str:
    """Return the text of a check that runs in a folder of the project."""
    return f"cd {shlex.quote(folder)} && {command}" if folder else command


def split_folder(text: str) -> tuple[str, str]:
    """Return the folder and the command of a check. The folder is empty for a text that
    names none, or that a shell would have to expand.
    """
    match = _IN_FOLDER.fullmatch(text.strip())
    return (match[1] or match[2], match[3]) if match else ("", text)
