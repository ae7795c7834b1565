"""Settings without the question about trust."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdd_agent.settings.config import PROJECT_FILE, Config
from cdd_agent.settings.reading import SettingsFile, SettingsLayers


def load_config(
    root: Path, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> Config:
    """Return the settings of a project whose file is fully trusted. `flags` with the
    value None were not given.
    """
    project = SettingsFile.read(root / PROJECT_FILE)
    return SettingsLayers.read(project, flags, environment).config
