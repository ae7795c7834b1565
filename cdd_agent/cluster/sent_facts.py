"""The facts about a client and a project that a run on a worker needs, and no more."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import Config
from cdd_agent.settings.user_folders import home_folder
from cdd_agent.text.redaction import Redactor
from cdd_agent.travel.own_tree import OwnTree

_NOT_SENT = {"record", "notifications", "approval", "commit", "jobs"}


class Sender(Struct, frozen=True):
    """The client's author of commits, and the id of its project."""

    author: tuple[str, str]
    """Name and address."""
    project: str


def settings_to_send(config: Config, root: Path) -> dict[str, Any]:
    """Return the settings of a run for a worker, without headers, which contain keys.
    Raises `BadInput` if another setting must not be sent.
    """
    sent = {
        name: value
        for name, value in to_builtins(config).items()
        if name not in _NOT_SENT
    }
    for part in (sent, *sent.get("fallbacks", ())):
        part.get("request", {}).pop("headers", None)
    text = json.dumps(sent)
    if Redactor.of_environment(config.commands.hide_env).redact(text) != text:
        raise BadInput(
            "The settings seem to hold a secret, so they are not sent to workers",
            hint="Set it in the environment of the workers instead.",
            refusal=Refusal.SECRET_NOT_SENT,
        )
    for folder in (root, home_folder()):
        if folder and len(folder.parts) > 1 and str(folder) in text:
            raise BadInput(
                f"The settings name {folder}, which exists only on this machine",
                hint="Write paths from the project's root, and commit these files.",
                refusal=Refusal.WORKER_UNUSABLE,
            )
    return {
        **sent,
        "commit": "step",
        "approval": "ask" if config.approval == "ask" else "auto",
    }


async def project_id(own: OwnTree) -> str:
    """Return the same id for all copies of a project, from its first commits. Raises
    `BadInput` for a shallow clone.
    """
    git = Git(own.trees.top)
    if (await git("rev-parse", "--is-shallow-repository")).stdout.strip() == "true":
        raise BadInput(
            "Workers need the whole history, and this clone is shallow",
            hint="Run `git fetch --unshallow`.",
            refusal=Refusal.WORKER_UNUSABLE,
        )
    first = sorted((await git("rev-list", "--max-parents=0", "HEAD")).stdout.split())
    name = hashlib.sha256("\n".join(first).encode()).hexdigest()[:20]
    if own.repository.object_format == "sha256":
        return f"{name}-sha256"
    return name


async def author_of(own: OwnTree) -> tuple[str, str]:
    """Return name and address for commits, from git's settings here."""
    answer = await own.trees.git("var", "GIT_AUTHOR_IDENT", codes=(0, 128))
    name, _, rest = answer.stdout.strip().partition(" <")
    if not rest:
        return "cdd", "cdd@localhost"
    return name, rest.partition(">")[0]
