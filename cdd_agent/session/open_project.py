"""Opens a project: its folder, its tickets, and the settings that take effect."""

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
    settings: tuple[ProjectSetting, ...] = ()
    """All settings that need trust, including checks of plans."""
    left_out: tuple[ProjectSetting, ...] = ()
    """The settings that do not take effect."""
    checks: TrustedChecks = TrustedChecks()
    not_stored: str = ""
    """Why the user's answer could not be stored."""

    @property
    def accepted(self) -> list[str]:
        left_out = {setting.digest for setting in self.left_out}
        return [s.digest for s in self.settings if s.digest not in left_out]

    @property
    def left_out_keys(self) -> list[tuple[str, ...]]:
        return [setting.keys for setting in self.left_out if setting.keys]


class Project(Struct, frozen=True):
    root: Path
    config: Config
    tickets: TicketStore
    trust: ProjectTrust = ProjectTrust()
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Settings from the command line."""


class TrustAnswer(Enum):
    """The user's decision about settings that need trust."""

    TRUST = "trust"
    """Trust the settings from now on."""
    ONCE = "once"
    """Use the settings in this run."""
    DEFAULTS = "continue with defaults"
    """Ignore the settings in this run."""


class AcceptThese(Struct, frozen=True):
    """The decision to use only these settings, in this run."""

    digests: frozenset[str]


class TrustQuestion(Struct, frozen=True):
    """The settings that need a decision. They are read once: what is shown is what is
    used.
    """

    root: Path
    settings: tuple[ProjectSetting, ...]
    trusted_before: Mapping[str, str]
    """The last trusted value of each setting that has changed, by name."""
    text: str
    note: str = ""
    """Why earlier answers do not count."""


Decide = Callable[[TrustQuestion], TrustAnswer | AcceptThese]
"""Decides about trust. Raises `NotTrusted` if there is no user to ask."""


class NotTrusted(NotApproved):
    """Settings need the user's trust, and there is no user to ask."""

    refusal = Refusal.NOT_TRUSTED


def leave_out(question: TrustQuestion) -> TrustAnswer:
    """Ignore the settings: for read-only commands."""
    del question
    return TrustAnswer.DEFAULTS


def accept_once(question: TrustQuestion) -> TrustAnswer:
    """Use the settings once: for scripts that accept all settings."""
    del question
    return TrustAnswer.ONCE


def open_project(
    folder: Path,
    flags: Mapping[str, Any],
    *,
    exactly: bool = False,
    decide: Decide = leave_out,
) -> Project:
    """Open the project that contains `folder`.

    `exactly`: `folder` itself is the root, even inside another project. Raises
    `BadInput`, and `NotTrusted` from `decide`.
    """
    try:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder", refusal=Refusal.OUTSIDE_PROJECT)
    except OSError as error:  # for example, a name that is too long
        raise BadInput(
            f"{folder} cannot be used: {error.strerror or error}", refusal=Refusal.DISK
        ) from error
    root = folder.resolve() if exactly else find_root(folder)
    settings_folder = root / ".cdd"
    expect_no_link_out(
        root, [*_entries(settings_folder), *_entries(settings_folder / "runs")]
    )
    # Read once: what is shown is what is used.
    layers = SettingsLayers.read(_read_settings(root), flags)
    tickets = _open_tickets(root, layers.config)
    config, trust = _decide(layers, tickets, decide)
    given_flags = {name: value for name, value in flags.items() if value is not None}
    return Project(root, config, tickets, trust, given_flags)


def in_tree(project: Project, root: Path, **settings: Any) -> Project:
    """Return the project in a worktree that cdd made, with the same trust and settings,
    except those in `settings`. Raises `BadInput`.
    """
    config = replace(project.config, **settings)
    tickets = _open_tickets(root, config)
    return replace(project, root=root, config=config, tickets=tickets)


def config_without_user(project: Project) -> Config:
    """Return settings for a machine without a user. If a check is untrusted, all
    commands that need a question are refused.
    """
    if any(setting.name == CHECK for setting in project.trust.left_out):
        return with_setting(project.config, "commands.mode", "ask")
    return project.config


def stored_layers(project: Project) -> SettingsLayers:
    """Read the current settings of files and variables, without those that were ignored
    at the start. Raises `BadInput`.
    """
    layers = SettingsLayers.read(_read_settings(project.root), {})
    return layers.without(project.trust.left_out_keys)


def stored_config(project: Project) -> Config:
    return stored_layers(project).config


def look_at_trust(
    project: Project,
) -> tuple[list[ProjectSetting], list[ProjectSetting]]:
    """Return the settings in the current files that need trust, and the untrusted ones
    among them. Raises `BadInput`.
    """
    layers = SettingsLayers.read(_read_settings(project.root), {})
    settings = _in_need(layers, project.tickets)
    trusted = _digests(TrustStore.open().read(project.root))
    return settings, [setting for setting in settings if setting.digest not in trusted]


def trust_project(project: Project) -> list[ProjectSetting]:
    """Trust all settings in the current files, and return them. Raises `BadInput`."""
    layers = SettingsLayers.read(_read_settings(project.root), {})
    settings = _in_need(layers, project.tickets)
    if settings:
        TrustStore.open().add(project.root, settings)
    return settings


def trust_written(project: Project, text: str, names: Collection[str]) -> Project:
    """Trust only the named settings, which cdd writes into the project's file at the
    user's request. Return the project with its new trust.
    """
    root = project.root
    file = SettingsFile.parse(text, root / PROJECT_FILE)
    left_out = [s for s in project.trust.left_out if not _is_named(s, names)]
    trust = replace(project.trust, left_out=tuple(left_out))
    # Variables override the file now, but may be unset later.
    layers = SettingsLayers.read(file, {}, {}).without(trust.left_out_keys)
    written = [s for s in settings_with_rule(layers, root) if _is_named(s, names)]
    # If this fails, the next start asks.
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
        # The folder is missing, or the code that uses it reports the error.
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
    last_shown = _last_shown(answers)
    question = TrustQuestion(root, untrusted, last_shown, layers.project.text, note)
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
    """Return the earlier answers for a project, and a note for the question if they do
    not count or the next answer cannot be stored.
    """
    if store.file is None:
        note = "There is no home folder, so your answer applies only to this run."
        return {}, note
    try:
        return store.read(root), ""
    except BadInput as error:
        return {}, f"{error.message}."


def _last_shown(answers: Answers) -> dict[str, str]:
    """Return the last trusted value of each setting. Checks have no values."""
    return {
        name: values[-1].shown
        for name, values in answers.items()
        if values and name != CHECK
    }


def _ask(question: TrustQuestion, decide: Decide) -> TrustAnswer | AcceptThese:
    """Return the decision. Call `decide` only if an answer is missing."""
    if os.environ.get(TRUST, "").strip().lower() in ("1", "true", "yes"):
        return TrustAnswer.ONCE
    return decide(question) if question.settings else TrustAnswer.TRUST


def _store(store: TrustStore, root: Path, settings: Collection[ProjectSetting]) -> str:
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
    """Return the checks that may run in a shell. Checks that the user approves later
    are added to the digests in `trusted`.
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
