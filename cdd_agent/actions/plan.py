"""Action plans: lists of actions in YAML (docs/reference/commands.md)."""

from typing import Annotated, Self

import yaml
from msgspec import Meta

from cdd_agent.actions.model import KINDS, Action
from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.values.guarded_yaml import (
    Tree,
    YamlEntry,
    describe_kind,
    list_items,
    locate,
    read_entries,
    read_node,
)
from cdd_agent.values.typed_values import Checked, WrongValue, read, suggest

_MOST_PROBLEMS = 10
_LONGEST_NAME = 60


class ActionPlan(Checked, frozen=True):
    """Actions, in their order."""

    actions: Annotated[tuple[Action, ...], Meta(min_length=1)]

    @classmethod
    def from_yaml(cls, text: str, source: str = "plan.yaml") -> Self:
        """Return the plan in a text. Raises `BadInput`. `source` names the file in
        messages.
        """
        actions: list[Action] = []
        mistakes: list[BadInput] = []
        for item in _read_items(text, source):
            try:
                actions.append(_read_action(item, source))
            except BadInput as error:
                mistakes.append(error)
        if not mistakes:
            return cls(tuple(actions))
        messages = [error.message for error in mistakes[:_MOST_PROBLEMS]]
        if len(mistakes) > _MOST_PROBLEMS:
            messages.append(f"… and {len(mistakes) - _MOST_PROBLEMS} more")
        raise BadInput(
            "\n".join(messages),
            hint=mistakes[0].hint,
            refusal=Refusal.ACTION_PLAN_INVALID,
        )


def _read_items(text: str, source: str) -> list[yaml.Node]:
    if text.lstrip().startswith("```"):
        raise BadInput(
            f"{source}:1: the plan is in a code fence",
            hint="Remove the lines of the code fence.",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    node = read_node(text, source)
    if node is None:
        raise BadInput(
            f"{source}: the plan is empty",
            hint="Write a list of actions: `- execute: ls`.",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    place = locate(node, source)
    items = list_items(node)
    if items is None:
        raise BadInput(
            f"{place}: a plan is a list of actions; this is {describe_kind(node)}",
            hint="Begin each action with `- `.",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    if not items:
        raise BadInput(
            f"{place}: the plan has no actions", refusal=Refusal.ACTION_PLAN_INVALID
        )
    return items


def _read_action(item: yaml.Node, source: str) -> Action:
    place = locate(item, source)
    if describe_kind(item) == "empty":
        raise BadInput(
            f"{place}: an action is empty", refusal=Refusal.ACTION_PLAN_INVALID
        )
    if isinstance(item, yaml.ScalarNode):
        return _make_action(
            "execute", {"command": YamlEntry.from_node(item)}, place, source
        )
    if not isinstance(item, yaml.MappingNode):
        raise BadInput(
            f"{place}: an action is a mapping of keys; this is {describe_kind(item)}",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    fields = {str(key): entry for key, entry in read_entries(item, source).items()}
    kind = _pop_kind(fields, place, source)
    if "params" in fields:
        params = fields.pop("params")
        if not isinstance(params.node, yaml.MappingNode):
            raise BadInput(
                f"{params.at(source)}: `params` is a mapping; this is"
                f" {describe_kind(params.node)}",
                refusal=Refusal.ACTION_PLAN_INVALID,
            )
        _add_fields(fields, params, source)
    return _make_action(kind, fields, place, source)


def _pop_kind(fields: dict[str, YamlEntry], place: str, source: str) -> str:
    """Remove the kind from the fields: `action: read`, or the short `read: a.md`."""
    if "action" in fields:
        entry = fields.pop("action")
        kind = entry.tree
        if isinstance(kind, str) and kind in KINDS:
            return kind
        name = "of that form"
        if isinstance(kind, str):
            name = f"`{kind[:_LONGEST_NAME]}`"
        raise BadInput(
            f"{entry.at(source)}: unknown action {name}{_suggest_kind(kind)}",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    kinds = [name for name in fields if name in KINDS]
    if len(kinds) > 1:
        names = " and ".join(f"`{name}`" for name in kinds)
        raise BadInput(
            f"{place}: {names} are two actions; begin each with `- `",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    if not kinds:
        first = next(iter(fields), "nothing")
        advice = _suggest_kind(first)
        if " " in first:
            advice = "; a command with `: ` in it needs quotes around it"
        raise BadInput(
            f"{place}: an action names its kind, as `action: execute`; here is"
            f" `{first[:_LONGEST_NAME]}`{advice}",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    entry = fields.pop(kinds[0])
    if isinstance(entry.node, yaml.MappingNode):
        _add_fields(fields, entry, source)
    else:
        main_field = KINDS[kinds[0]].__struct_fields__[0]
        _add_field(fields, main_field, entry, source)
    return kinds[0]


def _add_fields(fields: dict[str, YamlEntry], mapping: YamlEntry, source: str) -> None:
    for key, entry in mapping.entries(source).items():
        _add_field(fields, str(key), entry, source)


def _add_field(
    fields: dict[str, YamlEntry], name: str, entry: YamlEntry, source: str
) -> None:
    if name in fields:
        first, second = sorted((fields[name].line, entry.line))
        raise BadInput(
            f"{source}:{second}: `{name}` is given twice, first in line {first}",
            refusal=Refusal.ACTION_PLAN_INVALID,
        )
    fields[name] = entry


def _make_action(
    kind: str, fields: dict[str, YamlEntry], place: str, source: str
) -> Action:
    values = {name: entry.tree for name, entry in fields.items() if not entry.is_null}
    try:
        return read(KINDS[kind], values)
    except WrongValue as error:
        for name in error.place[:1]:
            if name in fields:
                place = fields[str(name)].at(source)
        raise BadInput(
            f"{place}: {kind}: {error}", refusal=Refusal.ACTION_PLAN_INVALID
        ) from error


def _suggest_kind(name: Tree) -> str:
    return suggest(name if isinstance(name, str) else "", KINDS)
