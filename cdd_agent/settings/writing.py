"""Change settings, also in a file that the user edits."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import Config, Models, ModelSettings, Role, with_values
from cdd_agent.settings.models import with_settings
from cdd_agent.settings.reading import check_settings
from cdd_agent.values.guarded_yaml import YamlEntry, compose_exactly, read_mapping

_ANSWER_OPTIONS = ("effort", "temperature", "max_output_tokens")
_PLAIN_TEXT = Pattern(r"[A-Za-z][\w.+-]*[/:][\w./:@+-]*[\w/]", re.ASCII)
"""Texts that need no quotes, such as model strings."""


def with_setting(config: Config, name: str, value: object) -> Config:
    """Change one setting, such as `budget.usd`. Raises `BadInput`."""
    section, _, key = name.rpartition(".")
    content = {section: {key: value}} if section else {key: value}
    return with_values(config, check_settings(content, lambda place: "The value"))


def with_model(
    config: Config,
    model: str,
    api_base: str | None,
    where: str,
    role: Role | None = None,
) -> Config:
    """Change the model of one role, or of all roles. Raises `BadInput`, which names
    `where` it was chosen.
    """
    content = {"model": model, "api_base": api_base}
    choice = ModelSettings(**check_settings(content, lambda place: where))
    if role is None:
        return with_settings(config, choice)
    return _with_role(config, role, choice)


def only_model(config: Config, model: str, api_base: str | None) -> Config:
    """Use one model for all roles, without fallbacks. Raises `BadInput`."""
    content = {"model": model, "api_base": api_base} if api_base else {"model": model}
    given = check_settings(content, lambda place: f"--{place[0]}".replace("_", "-"))
    config = with_settings(config, ModelSettings(**given))
    return replace(config, models=Models(), fallbacks=())


def without_own_model(config: Config, role: Role) -> Config:
    return _with_role(config, role, ModelSettings())


def _with_role(config: Config, role: Role, choice: ModelSettings) -> Config:
    before: ModelSettings = getattr(config.models, role)
    options = {name: getattr(before, name) for name in _ANSWER_OPTIONS}
    return with_values(config, {"models": {role: replace(choice, **options)}})


def changed_text(text: str, source: str, changes: Mapping[str, object]) -> str:
    """Return a settings file with other values for some keys, and the rest unchanged. A
    new key follows the comment that shows it, or is at the end. Raises `BadInput`, with
    the lines to write, if the file cannot be changed line by line.
    """
    before = _read_values(text, source)
    wanted = dict(before)
    for name, value in changes.items():
        section: Any = before.get(name)
        is_section = isinstance(section, dict) and isinstance(value, dict)
        wanted[name] = section | value if is_section else value
    try:
        changed = text
        for name, value in changes.items():
            if _is_block(_read_entries(changed, source).get(name)):
                assert isinstance(value, dict)
                for key, item in value.items():
                    changed = _set_in_section(changed, source, name, key, item)
            else:
                changed = _set_line(changed, source, name, wanted[name])
        is_changed = _read_values(changed, source) == wanted
    except BadInput:
        is_changed = False
    if not is_changed:
        lines = as_lines({name: wanted[name] for name in changes})
        raise BadInput(
            f"{source} is not in block style (`key: value` lines), so it was not"
            " changed",
            hint=f"Add these lines yourself:\n{lines}",
            refusal=Refusal.SETTINGS_INVALID,
        )
    return changed


def without_setting(text: str, source: str, name: str) -> str:
    """Return a settings file without a setting such as `budget.usd`, and without its
    section if that becomes empty. Comments on other lines stay. Raises `BadInput` if
    the setting's lines cannot be removed alone.
    """
    section, _, key = name.rpartition(".")
    values = _read_values(text, source)
    wanted = {one: value for one, value in values.items() if one != (section or key)}
    place = [section or key]
    inner = values.get(section)
    if isinstance(inner, dict) and inner.keys() - {key}:
        wanted[section] = {one: value for one, value in inner.items() if one != key}
        place = [section, key]
    lines = text.splitlines(keepends=True)
    span = _lines_of(text, source, place)
    comments = []
    if section and len(place) == 1:
        # the comments between the section's heading and its only key
        first = _lines_of(text, source, [section, key]).start
        for line in lines[span.start + 1 : first]:
            if line.lstrip().startswith("#"):
                comments.append(line)
    changed = "".join([*lines[: span.start], *comments, *lines[span.stop :]])
    try:
        is_removed = _read_values(changed, source) == wanted
    except BadInput:
        is_removed = False
    if not is_removed:
        raise BadInput(
            f"{source} is not in block style (`key: value` lines), so it was not"
            " changed",
            hint=f"Remove `{name}` from line {span.start + 1} yourself.",
            refusal=Refusal.SETTINGS_INVALID,
        )
    return changed


def _lines_of(text: str, source: str, place: Sequence[str]) -> range:
    """Return the lines of a key and its value, from 0."""
    node = compose_exactly(text, source)
    first = last = 0
    for name in place:
        for key, value in node.value:
            if key.value == name:
                first, node = key.start_mark.line, value
                last = max(first, _last_line(value))
                break
    return range(first, last + 1)


def _last_line(node: Any) -> int:
    """Return the last line of a value. A block ends with its last value, although the
    parser includes the comments below it.
    """
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    if is_block and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    is_block_text = getattr(node, "style", None) in ("|", ">")
    line: int = node.end_mark.line
    return line - 1 if is_block_text and node.end_mark.column == 0 else line


def as_lines(settings: Mapping[str, object]) -> str:
    return "\n".join(f"{name}: {_as_yaml(value)}" for name, value in settings.items())


def _read_entries(text: str, source: str) -> dict[object, YamlEntry]:
    return read_mapping(text, source, "a config")


def _read_values(text: str, source: str) -> dict[object, object]:
    entries = _read_entries(text, source)
    return {name: entry.value(source) for name, entry in entries.items()}


def _is_block(entry: YamlEntry | None) -> bool:
    node: Any = entry.node if entry and entry.is_mapping else None
    return node is not None and not node.flow_style


def _set_in_section(
    text: str, source: str, section: str, name: str, value: object
) -> str:
    entry = _read_entries(text, source)[section]
    old = entry.entries(source).get(name)
    if old:
        return _replace_value(text, old.node, value)
    start = entry.node.start_mark
    margin = text[start.index - start.column : start.index]
    line = f"{name}: {_as_yaml(value)}{_line_end(text)}{margin}"
    return text[: start.index] + line + text[start.index :]


def _set_line(text: str, source: str, name: str, value: object) -> str:
    old = _read_entries(text, source).get(name)
    if old:
        return _replace_value(text, old.node, value)
    line = f"{name}: {_as_yaml(value)}{_line_end(text)}"
    comment = re.search(rf"^#[ \t]*{re.escape(name)}:.*\n", text, re.MULTILINE)
    if comment:
        return text[: comment.end()] + line + text[comment.end() :]
    if text and not text.endswith("\n"):
        text += _line_end(text)
    return text + line


def _replace_value(text: str, node: Any, value: object) -> str:
    start, end = node.start_mark, node.end_mark
    if start.line != end.line:
        return text
    before = text[: start.index]
    space = " " if before.endswith(":") else ""
    return f"{before}{space}{_as_yaml(value)}{text[end.index :]}"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _as_yaml(value: object) -> str:
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
