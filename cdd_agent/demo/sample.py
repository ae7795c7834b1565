"""The sample project of `cdd demo`: a copy in a temporary folder, without the user's
settings.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.git.command import CONFIG, Git
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import open_project, trust_project
from cdd_agent.settings.reading import USER_CONFIG, VARIABLES, misspelt_variables
from cdd_agent.text.secret_names import is_secret_name

SLUG = "feature-monthly-report"
_CONFIG = (
    *CONFIG,
    "user.name=cdd demo",
    "user.email=demo@localhost",
    "commit.gpgsign=false",
)
_NO_GIT_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_HIDDEN = (
    *VARIABLES,
    # addresses of models; keys are hidden by their names
    *("*_API_BASE", "*_BASE_URL", "OPENAI_*"),
    # settings of the demo's tests
    *("PYTEST_*", "PYTHONOPTIMIZE", "PYTHONWARNINGS"),
)
"""Variables that would change the demo."""


@contextmanager
def own_environment() -> Iterator[None]:
    """Hide the user's settings and keys, and put cdd's pytest first on the `PATH`."""
    original = dict(os.environ)
    hidden = (*_HIDDEN, *misspelt_variables(original))
    for name in original:
        if is_secret_name(name, hide=hidden):
            del os.environ[name]
    own_programs = str(Path(sys.executable).parent)
    os.environ |= {
        USER_CONFIG: os.devnull,
        "PATH": os.pathsep.join((own_programs, original.get("PATH", os.defpath))),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= original


def copy_sample() -> Path:
    """Copy the sample into a new temporary folder with a git repository. Raises
    `BadInput` if the disk refuses.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="cdd-demo-"))
        with as_file(files("cdd_agent.demo").joinpath("project")) as project:
            shutil.copytree(
                project,
                folder,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
    except OSError as error:
        raise BadInput(
            f"The sample project could not be copied: {error.strerror or error}",
            hint="Set TMPDIR to a folder that is writable and has space.",
            refusal=Refusal.DISK,
        ) from error
    asyncio.run(_put_under_git(folder))
    # cdd wrote the settings; without a home, trust cannot be stored
    with suppress(BadInput):
        trust_project(open_project(folder, {}))
    return folder


async def _put_under_git(folder: Path) -> None:
    """Make a first commit, so that `git diff` shows the run's changes. Without git, do
    nothing.
    """
    git = Git(folder, _NO_GIT_SETTINGS, _CONFIG, seconds=30.0)
    await git.run("init", "--quiet")
    await git.run("add", "--all")
    await git.run("commit", "--quiet", "--message", "The sample project")
