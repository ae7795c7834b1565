"""The agents' prompts: Markdown files. A project can replace each."""

import os
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.read import SourceUnreadable, read_source
from cdd_agent.refusals.kinds import Refusal

_OURS = Path(__file__).parent / "prompts"
OWN = PurePosixPath(".cdd/prompts")
"""The folder of a project's prompts, as `<name>.md`."""
LONGEST = 50_000
"""Maximum characters of a project's prompt. It is part of every request, so it is never
cut.
"""


def load_prompt(root: Path, name: str) -> str:
    """Return a prompt such as `socrates`: the project's, otherwise cdd's.

    The file is read at each call, so an edit applies to the next turn. Raises
    `BadInput` for an unusable project's prompt.
    """
    builtin = (OWN / f"{name}.md").as_posix()
    if not os.path.lexists(root / builtin):
        return (_OURS / f"{name}.md").read_text(encoding="utf-8").strip()
    try:
        source = read_source(root, builtin, limit=LONGEST)
    except SourceUnreadable as error:
        raise BadInput(
            error.message,
            hint=f"Fix {builtin}, or delete it to use cdd's own prompt.",
            refusal=Refusal.SETTINGS_INVALID,
        ) from error
    problem = (
        (source.is_folder and "is a folder, not a prompt")
        or (source.cut and f"is longer than {LONGEST:,} characters")
        or (source.replaced and "is not UTF-8 text")
        or (not source.text.strip() and "is empty")
    )
    if problem:
        raise BadInput(
            f"{builtin} {problem}",
            hint="Fix it, or delete it to use cdd's own prompt.",
            refusal=Refusal.SETTINGS_INVALID,
        )
    return source.text.strip()
