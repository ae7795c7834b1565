"""YAML lists of actions: as in `ActionPlan`, but only actions that change files."""

import re
from collections.abc import Sequence

from cdd_agent.actions.model import KINDS
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form
from cdd_agent.changes.model import Edit, ReplyRefused, convert_action
from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern

_KIND = rf"(?:{'|'.join(KINDS)})"
_ITEM = (
    r"(?:- *|\[? *\{ *|- *\{ *)?[\"']?(?:action[\"']?:"
    rf" *[\"']?{_KIND}\b|{_KIND}[\"']?:(?!:))"
)
_FIRST = Pattern(
    rf"^ *+{_ITEM}|^(?:- *|\[ *\{{ *|\{{ *)?[\"']?(?:actions|plan)[\"']?: *(?:\[ *)?$"
)
"""The beginning of a list of actions, even if slightly wrong."""
_UNKNOWN = Pattern(r"^ *+(?:- *|\[? *\{ *|- *\{ *)[\"']?\w+[\"']?:(?: |$)")
_FIELD = Pattern(r"[\"']?\b(?:file_path|find|replace)[\"']?: ", re.MULTILINE)
_ALONE = Pattern(rf"^ *- +action: *[\"']?{_KIND}[\"']? *$")


class Actions(Form):
    kind = "list of actions"

    def accepts(self, fence: Fence) -> bool:
        return fence.path is None and _is_list(fence.language, fence.lines)

    def read(self, fence: Fence) -> list[Edit]:
        body = re.sub(
            r"\A(?:[^\S\n]*+(?:#[^\n]*+|---[^\S\n]*+)?\n)*+actions: *\n",
            "",
            fence.content,
        )
        try:
            actions = ActionPlan.from_yaml(body, "the list of actions").actions
        except BadInput as refusal:
            raise ReplyRefused(refusal.message, hint=refusal.hint) from refusal
        edits: list[Edit] = []
        for action in actions:
            edit = convert_action(action)
            if edit is None:
                raise ReplyRefused(
                    f"The reply asks for `{action.action_type}`, and a step's reply"
                    " only changes files.",
                    hint=(
                        "Send only `create_file` and `edit`. The step's check is run"
                        " without being asked for; what it says, and the files of the"
                        " step, are shown in the next request."
                    ),
                )
            edits.append(edit)
        return edits

    def refuse_loose(self, line: str, number: int) -> None:
        if _ALONE.match(line):
            raise ReplyRefused(
                f"Line {number} of the reply begins a list of actions outside of a code"
                " block.",
                hint="Put the whole list into a ```yaml block.",
            )


def _is_list(language: str, lines: Sequence[str]) -> bool:
    filled = [
        line
        for line in lines
        if line.strip() not in ("", "---", "[") and not line.lstrip().startswith("#")
    ]
    first = filled[0] if filled else ""
    has_fields = any(_FIELD.search(line) for line in filled)
    if language in ("yaml", "yml", "json", ""):
        is_action = _UNKNOWN.match(first) is not None and has_fields
        return is_action or _FIRST.match(first) is not None
    is_plain = language in ("text", "txt", "plaintext", "actions")
    return is_plain and has_fields and _ALONE.match(first) is not None
