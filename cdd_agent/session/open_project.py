"""The project that a command works on: its folder, its settings and its tickets. This
module decides which of the settings take effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.files.paths import PathRefused, confine, expect_no_link_out, find_root
from cdd_agent.process.policy import TrustedChecks
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import PROJECT_FILE, Config
from cdd_agent.settings.reading import TRUST, SettingsFile, SettingsLayers
from cdd_agent.settings.writing import with_setting
from cdd_agent.tickets.store import TicketStore
from cdd_agent.trust.rules import (
    CHECK,
    ProjectSetting,
    check_digest,
    checks_in_need,
    is_usual_check,
    leave_out_untrusted,
    settings_in_need,
    settings_with_rule,
)
from cdd_agent.trust.store import Answers, TrustStore


class ProjectTrust(Struct, frozen=True):
    """The state of a project's settings that need trust."""

    settings: tuple[ProjectSetting, ...] = ()
    """All settings that need trust, also checks of plans."""
    left_out: tuple[ProjectSetting, ...] = ()
    """The settings that do not take effect."""
    checks: TrustedChecks = TrustedChecks()
    not_stored: str = ""
    """The reason why the user's answer could not be stored."""

    @property
    def accepted(self) -> list[str]:
        """The digests of the settings that take effect."""
        left_out = {setting.digest for setting in self.left_out}
        return [s.digest for s in self.settings if s.digest not in left_out]

    @property
    def left_out_keys(self) -> list[tuple[str, ...]]:
        """The keys of the settings that do not take effect. A check has none."""
        return [setting.keys for setting in self.left_out if setting.keys]


class Project(Struct, frozen=True):
    root: Path
    config: Config
    tickets: TicketStore
    trust: ProjectTrust = ProjectTrust()
    flags: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the command line."""


class TrustAnswer(Enum):
    """The user's decision about the settings that need trust."""

    TRUST = "trust"
    """The settings take effect from now on."""
    ONCE = "once"
    """The settings take effect in this run."""
    DEFAULTS = "continue with defaults"
    """The settings are left out of this run."""


class AcceptThese(Struct, frozen=True):
    """The decision that just these settings take effect in this run."""

    digests: frozenset[str]


class TrustQuestion(Struct, frozen=True):
    """The settings that need the user's decision. What is shown is what is used."""

    root: Path
    settings: tuple[ProjectSetting, ...]
    trusted_before: Mapping[str, str]
    """The values that were trusted last, by the name of the setting, if they differ."""
    text: str
    """The content of the project's settings file."""
    note: str = ""
    """The reason why earlier answers do not count."""


Decide = Callable[[TrustQuestion], TrustAnswer | AcceptThese]
"""Decides about trust. Raises `NotTrusted` if there is no user to ask."""


class NotTrusted(NotApproved):
    """Settings of the project need the user's trust, and there is no user to ask."""

    refusal = Refusal.NOT_TRUSTED


def leave_out(question: TrustQuestion) -> TrustAnswer:
    """Decide for a read-only command: it does without the settings."""
    del question
    return TrustAnswer.DEFAULTS


def accept_once(question: TrustQuestion) -> TrustAnswer:
    """Decide for a script that accepts all settings."""
    del question
    return TrustAnswer.ONCE


def open_project(
    folder: Path,
    flags: Mapping[str, Any],
    *,
    exactly: bool = False,
    decide: Decide = leave_out,
) -> Project:
    """Open the project that contains `folder`, with the settings that take effect.
    Raises `BadInput`, and `NotTrusted` from `decide`.

    `exactly`: the folder itself is the root, also inside another project.
    """
    try:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder", refusal=Refusal.OUTSIDE_PROJECT)
    except OSError as error:  # a name that is too long, a folder that is closed
        raise BadInput(
            f"{folder} cannot be used: {error.strerror or error}", refusal=Refusal.DISK
        ) from error
    root = folder.resolve() if exactly else find_root(folder)
    settings_folder = root / ".cdd"
    expect_no_link_out(
        root, [*_entries(settings_folder), *_entries(settings_folder / "runs")]
    )
    # read once: what is shown is what is used
    layers = SettingsLayers.read(_read_settings(root), flags)
    tickets = _open_tickets(root, layers.config)
    config, trust = _decide(layers, tickets, decide)
    given = {name: value for name, value in flags.items() if value is not None}
    return Project(root, config, tickets, trust, given)


def in_tree(project: Project, root: Path, **settings: Any) -> Project:
    """Return the project in a tree that cdd made for one of its runs. It has the same
    settings, but for those given, and inherits the user's trust. Raises `BadInput`.
    """
    config = replace(project.config, **settings)
    tickets = _open_tickets(root, config)
    return replace(project, root=root, config=config, tickets=tickets)


def config_without_user(project: Project) -> Config:
    """Return the settings for a machine without a user to ask. It refuses checks that
    are not trusted, and so all commands that the user would be asked about.
    """
    if any(setting.name == CHECK for setting in project.trust.left_out):
        return with_setting(project.config, "commands.mode", "ask")
    return project.config


def stored_layers(project: Project) -> SettingsLayers:
    """Return the current settings of the files and variables. What was left out at the
    start is left out here, too. Raises `BadInput`.
    """
    layers = SettingsLayers.read(_read_settings(project.root), {})
    return layers.without(project.trust.left_out_keys)


def stored_config(project: Project) -> Config:
    """Return the values of `stored_layers`. Raises `BadInput`."""
    return stored_layers(project).config


def look_at_trust(
    project: Project,
) -> tuple[list[ProjectSetting], list[ProjectSetting]]:
    """Return the settings that need trust in the current files, and those among them
    that are not trusted. Raises `BadInput`.
    """
    layers = SettingsLayers.read(_read_settings(project.root), {})
    settings = _in_need(layers, project.tickets)
    trusted = _digests(TrustStore.open().read(project.root))
    return settings, [setting for setting in settings if setting.digest not in trusted]


def trust_project(project: Project) -> list[ProjectSetting]:
    """Trust all settings of the project's current files, and return them. Raises
    `BadInput`.
    """
    layers = SettingsLayers.read(_read_settings(project.root), {})
    settings = _in_need(layers, project.tickets)
    if settings:
        TrustStore.open().add(project.root, settings)
    return settings


def trust_written(project: Project, text: str, names: Collection[str]) -> Project:
    """Trust the settings that cdd writes into the project's file at the user's request.
    Other settings of the file do not become trusted. Returns the project with its new
    state.
    """
    root = project.root
    file = SettingsFile.parse(text, root / PROJECT_FILE)
    left_out = [s for s in project.trust.left_out if not _is_named(s, names)]
    trust = replace(project.trust, left_out=tuple(left_out))
    # a variable that goes before the file today may be gone tomorrow
    layers = SettingsLayers.read(file, {}, {}).without(trust.left_out_keys)
    written = [s for s in settings_with_rule(layers, root) if _is_named(s, names)]
    # what cannot be stored is asked about at the next start
    with suppress(BadInput):
        TrustStore.open().add(root, written)
    return replace(project, trust=trust)


def _is_named(setting: ProjectSetting, names: Collection[str]) -> bool:
    return any(f"{setting.name}.".startswith(f"{name}.") for name in names)


def _read_settings(root: Path) -> SettingsFile:
    try:
        confine(root, PROJECT_FILE.as_posix())
    except PathRefused as refusal:
        raise BadInput(
            f"{root / PROJECT_FILE} is a link that leads outside the project",
            hint="Replace the link by the file itself.",
            refusal=Refusal.OUTSIDE_PROJECT,
        ) from refusal
    return SettingsFile.read(root / PROJECT_FILE)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        # it is missing, or reported where it is used
        return []


def _open_tickets(root: Path, config: Config) -> TicketStore:
    try:
        confine(root, config.tickets_dir)
    except PathRefused as refusal:
        raise BadInput(
            f"tickets_dir: {refusal.message}",
            hint="Name a folder inside the project.",
            refusal=Refusal.SETTINGS_INVALID,
        ) from refusal
    return TicketStore(root, config.tickets_dir)


def _in_need(layers: SettingsLayers, tickets: TicketStore) -> list[ProjectSetting]:
    return [
        *settings_in_need(layers, tickets.root),
        *checks_in_need(layers.config, tickets),
    ]


def _digests(answers: Mapping[str, Iterable[Any]]) -> set[str]:
    return {value.digest for values in answers.values() for value in values}


def _decide(
    layers: SettingsLayers,
    tickets: TicketStore,
    decide: Decide,
) -> tuple[Config, ProjectTrust]:
    root, store = tickets.root, TrustStore.open()
    settings = _in_need(layers, tickets)
    if not settings and layers.config.commands.mode != "unsafe":
        return layers.config, ProjectTrust()
    answers, note = _read_answers(store, root)
    trusted = _digests(answers)
    untrusted = tuple(s for s in settings if s.digest not in trusted)
    before = _last_shown(answers)
    question = TrustQuestion(root, untrusted, before, layers.project.text, note)
    answer, not_stored = _ask(question, decide), ""
    if answer is TrustAnswer.TRUST:
        not_stored = _store(store, root, untrusted)
        trusted |= {setting.digest for setting in untrusted}
    if answer is TrustAnswer.ONCE:
        return layers.config, ProjectTrust(tuple(settings))
    if isinstance(answer, AcceptThese):
        trusted |= answer.digests
    layers, left_out = leave_out_untrusted(layers, root, trusted)
    left_out += [s for s in untrusted if s.name == CHECK and s.digest not in trusted]
    config = layers.config
    checks = _trusted_checks(config, root, store, trusted)
    trust = ProjectTrust(tuple(settings), tuple(left_out), checks, not_stored)
    return config, trust


def _read_answers(store: TrustStore, root: Path) -> tuple[Answers, str]:
    """Return the earlier answers for a project, and a note for the question if they
    do not count or the next one cannot be stored.
    """
    if store.file is None:
        note = "There is no home folder, so your answer applies only to this run."
        return {}, note
    try:
        return store.read(root), ""
    except BadInput as error:
        return {}, f"{error.message}."


def _last_shown(answers: Answers) -> dict[str, str]:
    """Return the value of each setting that was trusted last. Checks have no values."""
    return {
        name: values[-1].shown
        for name, values in answers.items()
        if values and name != CHECK
    }


def _ask(question: TrustQuestion, decide: Decide) -> TrustAnswer | AcceptThese:
    """Return the decision. `decide` is called only if no earlier answer counts."""
    if os.environ.get(TRUST, "").strip().lower() in ("1", "true", "yes"):
        return TrustAnswer.ONCE
    return decide(question) if question.settings else TrustAnswer.TRUST


def _store(store: TrustStore, root: Path, settings: Collection[ProjectSetting]) -> str:
    """Store the user's answer. Return why that could not be done, or nothing."""
    if not settings:
        return ""
    try:
        store.add(root, settings)
    except BadInput as error:
        return f"{error.message}. cdd asks again at the next start."
    return ""


def _trusted_checks(
    config: Config, root: Path, store: TrustStore, trusted: set[str]
) -> TrustedChecks:
    """Return the checks that may run in a shell. `trusted` holds digests; a check that
    the user approves later is added to it.
    """

    def accepts(check: str) -> bool:
        return check_digest(check) in trusted or is_usual_check(config, check, root)

    def add(checks: Iterable[str]) -> None:
        new = [check for check in checks if not accepts(check)]
        trusted.update(map(check_digest, new))
        with suppress(BadInput):
            store.add(root, [_as_setting(check) for check in new])

    return TrustedChecks(accepts, add)


def _as_setting(check: str) -> ProjectSetting:
    return ProjectSetting(CHECK, "", "", "", 0, check_digest(check))
