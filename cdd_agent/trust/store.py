"""The user's answers about projects' settings, in the user's own folder."""

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.shared_json import change_json
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.user_folders import state_folder
from cdd_agent.trust.rules import ProjectSetting

_NAME = "trust.json"


class Trusted(Struct, frozen=True):
    """A value of a setting that the user trusts in a project."""

    digest: str
    shown: str


Answers = dict[str, list[Trusted]]
"""By setting. The last value was trusted last."""


class TrustStore(Struct, frozen=True):
    """The answers by the real paths of projects. Several processes may use it."""

    file: Path | None
    """None: the user has no home."""

    @classmethod
    def open(cls) -> "TrustStore":
        folder = state_folder()
        return cls(folder / _NAME if folder else None)

    def read(self, root: Path) -> Answers:
        """Raises `BadInput` if the file is damaged."""
        return self._read_all().get(str(root), {})

    def add(self, root: Path, settings: Iterable[ProjectSetting]) -> None:
        """Trust these values in addition to earlier ones. A damaged file is replaced.
        Raises `BadInput` if the answer cannot be stored.
        """
        if self.file is None:
            raise BadInput(
                "Your answer cannot be stored: there is no home folder",
                hint="To accept the settings for one run, add `--trust`.",
                refusal=Refusal.NOT_TRUSTED,
            )
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.file.parent} cannot be created: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        with change_json(self.file) as saved:
            if self._is_damaged():
                saved.clear()
            answers = saved.setdefault(str(root), {})
            for setting in settings:
                trusted = {"digest": setting.digest, "shown": setting.shown}
                others = [
                    value
                    for value in answers.get(setting.name, [])
                    if value["digest"] != setting.digest
                ]
                answers[setting.name] = [*others, trusted]

    def revoke(self, root: Path) -> bool:
        """Forget all answers for a project. Return False if there were none. Raises
        `BadInput`.
        """
        if self.file is None or not self.file.exists() or not self.read(root):
            return False
        with change_json(self.file) as saved:
            del saved[str(root)]
        return True

    def _is_damaged(self) -> bool:
        try:
            self._read_all()
        except BadInput:
            return True
        return False

    def _read_all(self) -> dict[str, Answers]:
        data = read_bytes(self.file) if self.file else None
        if not data:
            return {}
        try:
            return msgspec.convert(json.loads(data), dict[str, Answers])
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"{self.file} is damaged, so no project is trusted",
                hint="Replace it with `cdd trust --give`, or by your next answer.",
                refusal=Refusal.NOT_TRUSTED,
            ) from error
