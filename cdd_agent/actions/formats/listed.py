"""A YAML list of actions in a reply: the same list that `cdd run` takes (`ActionPlan`), as far as it is about files."""

import re
from collections.abc import Sequence

from cdd_agent.actions.edits import Edit, ReplyRefused, edit_of
from cdd_agent.actions.model import KINDS
from cdd_agent.actions.plan import ActionPlan, ActionPlanRefused

_KINDS = "|".join(KINDS)
_FIRST = re.compile(
    rf"^- +(?:action: *[\"']?(?:{_KINDS})\b|(?:execute|create_file|edit|chat_with_user|research|read):)"
    r"|^actions: *$"
)


def is_list_of_actions(language: str, lines: Sequence[str]) -> bool:
    """Whether a block without a path begins as a list of actions does."""
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    return language in ("yaml", "yml", "") and _FIRST.match(first) is not None


def read_actions(text: str) -> list[Edit]:
    """Raises `ReplyRefused` for a list that cannot be read, or holds what is no change of a file."""
    body = re.sub(r"\A(?:\s*#[^\n]*\n)*actions: *\n", "", text)
    try:
        actions = ActionPlan.from_yaml(body, "the list of actions").actions
    except ActionPlanRefused as refusal:
        raise ReplyRefused(refusal.message, hint=refusal.hint) from refusal
    edits: list[Edit] = []
    for action in actions:
        edit = edit_of(action)
        if edit is None:
            raise ReplyRefused(
                f"The reply asks for `{action.action_type}`, and a step's reply only changes files.",
                hint="Send only `create_file` and `edit`. The step's check is run without being asked for; what it "
                "says, and the files of the step, are shown in the next request.",
            )
        edits.append(edit)
    return edits
