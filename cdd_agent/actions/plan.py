"""Action plans: a list of actions in YAML, as a person or a model writes it. The format
is in docs/action-plan.md.
"""

import difflib
from typing import Self

import yaml
from msgspec import Struct

from cdd_agent.actions.model import KINDS, Action
from cdd_agent.errors import BadInput
from cdd_agent.forms import NotOfForm, read
from cdd_agent.guarded_yaml import (
    Tree,
    YamlEntry,
    described,
    entries,
    line_of,
    list_items,
    read_node,
)

_MAIN_FIELD = {
    "execute": "command",
    "create_file": "file_path",
    "edit": "file_path",
    "read": "source",
    "chat_with_user": "prompt",
    "research": "queries",
}
"""The field that the plain form of an action gives: `- execute: "ls"`,
`- read: README.md`.
"""
_KINDS = ", ".join(KINDS)
_MOST_PROBLEMS = 10


class ActionPlanRefused(BadInput):
    """A text that is no action plan; the message names file, line and reason."""


class ActionPlan(Struct, frozen=True):
    """Actions in the order in which they are done, at least one."""

    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        if not self.actions:
            raise ValueError("an action plan has at least one action")

    @classmethod
    def from_yaml(cls, text: str, source: str = "plan.yaml") -> Self:
        """Raises `ActionPlanRefused`. `source` names the file in messages."""
        if text.lstrip().startswith("```"):
            raise ActionPlanRefused(
                f"{source}:1: the plan is in a code fence",
                hint="Give the YAML inside it alone.",
            )
        try:
            node = read_node(text, source)
        except BadInput as error:
            raise ActionPlanRefused(error.message, hint=error.hint) from error
        if node is None:
            raise ActionPlanRefused(
                f"{source}: the plan is empty",
                hint="Write a list of actions: `- execute: ls`.",
            )
        items = list_items(node)
        if items is None:
            raise ActionPlanRefused(
                f"{line_of(node, source)}: a plan is a list of actions; this is"
                f" {described(node)}",
                hint="Begin each action with `- `.",
            )
        if not items:
            raise ActionPlanRefused(f"{line_of(node, source)}: the plan has no actions")
        actions: list[Action] = []
        wrong: list[BadInput] = []
        for item in items:
            try:
                actions.append(_action(item, source))
            except BadInput as error:
                # also of the YAML reader, for keys that are there twice and the like
                wrong.append(error)
        if wrong:
            messages = [error.message for error in wrong[:_MOST_PROBLEMS]]
            more = (
                [f"… and {len(wrong) - _MOST_PROBLEMS} more"]
                if len(wrong) > _MOST_PROBLEMS
                else []
            )
            raise ActionPlanRefused("\n".join(messages + more), hint=wrong[0].hint)
        return cls(tuple(actions))


def _action(item: yaml.Node, source: str) -> Action:
    where = line_of(item, source)
    if described(item) == "empty":
        raise BadInput(f"{where}: an action is empty")
    if isinstance(item, yaml.ScalarNode):
        return _made("execute", {"command": YamlEntry.of(item)}, where, source)
    if not isinstance(item, yaml.MappingNode):
        raise BadInput(
            f"{where}: an action is a mapping of keys; this is {described(item)}"
        )
    fields = {str(key): entry for key, entry in entries(item, source).items()}
    kind = _kind(fields, where, source)
    if "params" in fields:
        params = fields.pop("params")
        if not isinstance(params.node, yaml.MappingNode):
            raise BadInput(
                f"{params.at(source)}: `params` is a mapping; this is"
                f" {described(params.node)}"
            )
        for key, entry in params.entries(source).items():
            _add(fields, str(key), entry, source)
    return _made(kind, fields, where, source)


def _kind(fields: dict[str, YamlEntry], where: str, source: str) -> str:
    """Take the kind of action out of its fields: `action: read`, or the short
    `read: README.md`.
    """
    if "action" in fields:
        entry = fields.pop("action")
        if not isinstance(entry.tree, str) or entry.tree not in KINDS:
            shown = (
                f"`{entry.tree[:60]}`"
                if isinstance(entry.tree, str)
                else "of that form"
            )
            raise BadInput(
                f"{entry.at(source)}: there is no action {shown}{_near(entry.tree)}"
            )
        return entry.tree
    named = [name for name in fields if name in KINDS]
    if len(named) > 1:
        raise BadInput(
            f"{where}: {' and '.join(f'`{name}`' for name in named)} are two actions;"
            " begin each with `- `"
        )
    if not named:
        first = next(iter(fields), "nothing")
        odd = (
            "; a command with `: ` in it needs quotes around it"
            if " " in first
            else _near(first)
        )
        raise BadInput(
            f"{where}: an action says which it is, as `action: execute`; here is"
            f" `{first[:60]}`{odd}"
        )
    kind = named[0]
    entry = fields.pop(kind)
    if isinstance(entry.node, yaml.MappingNode):
        for key, inner in entry.entries(source).items():
            _add(fields, str(key), inner, source)
    else:
        _add(fields, _MAIN_FIELD[kind], entry, source)
    return kind


def _add(
    fields: dict[str, YamlEntry], name: str, entry: YamlEntry, source: str
) -> None:
    if name in fields:
        first, second = sorted((fields[name].line, entry.line))
        raise BadInput(
            f"{source}:{second}: `{name}` is given twice, first in line {first}"
        )
    fields[name] = entry


def _made(kind: str, fields: dict[str, YamlEntry], where: str, source: str) -> Action:
    """Values are taken as the text that was written: `replace: 1.10` and `PORT: 8080`
    stay what they are.
    """
    given: dict[str, Tree] = {
        name: entry.tree for name, entry in fields.items() if not entry.is_null
    }
    try:
        return read(KINDS[kind], given)
    except NotOfForm as error:
        fault = error.faults[0]
        name = str(fault.place[0])
        place = fields[name].at(source) if name in fields else where
        if fault.kind != "unknown":
            raise BadInput(f"{place}: {kind}: {fault}") from error
        near = difflib.get_close_matches(name, fault.allowed, n=1)
        meant = (
            f"did you mean `{near[0]}`?"
            if near
            else f"its keys are {', '.join(fault.allowed)}"
        )
        raise BadInput(f"{place}: {kind}: there is no key `{name}`; {meant}") from error


def _near(name: Tree) -> str:
    near = difflib.get_close_matches(name, KINDS, n=1) if isinstance(name, str) else []
    return f"; did you mean `{near[0]}`?" if near else f"; there are {_KINDS}"
