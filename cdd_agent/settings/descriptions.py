"""The description of a setting, declared next to its type."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Meta, Struct, field

_KEY = "setting"


class SettingGroup(StrEnum):
    MODEL = "Model"
    APPROVAL = "Approval and commands"
    CHECKS = "Checks and tests"
    BUDGET = "Budget"
    FILES = "Files and secrets"
    SHELL = "Shell"


class SettingDescription(Struct, frozen=True):
    """The words about a setting, for the settings screen and the file of `/init`."""

    title: str
    group: SettingGroup
    purpose: str
    choices: Mapping[str, str] = field(default_factory=dict)
    """A line about each value of a choice. The keys are YAML."""
    unset: str = ""
    """The meaning of `null`."""
    example: str = ""

    @property
    def in_short(self) -> str:
        """Return the purpose, or all choices, in one line."""
        choices = " | ".join(
            f"{value}: {words}" for value, words in self.choices.items()
        )
        text = choices or self.purpose
        return f"{text}; null: {self.unset}" if self.unset else text


def described(
    title: str,
    group: SettingGroup,
    purpose: str,
    *,
    choices: Mapping[str, str] | None = None,
    unset: str = "",
    example: str = "",
) -> Meta:
    """Return the annotation that describes a field's setting."""
    description = SettingDescription(
        title, group, purpose, choices or {}, unset, example
    )
    return Meta(extra={_KEY: description})


def find_description(kind: object) -> SettingDescription | None:
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.extra and _KEY in meta.extra:
            description: SettingDescription = meta.extra[_KEY]
            return description
    return None
