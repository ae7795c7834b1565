"""Find the command that runs a project's tests, by the files of the project."""

import shlex
from pathlib import Path

from cdd_agent.files.manifests import Manifests, section
from cdd_agent.process.policy import Command
from cdd_agent.process.programs import as_started
from cdd_agent.verification.check import Check

_NPM_PLACEHOLDER = "no test specified"
"""What `npm init` writes as the test script."""


def detect(root: Path) -> tuple[Check, ...]:
    """Find the project's tests by its files; empty if there is no runner that cdd
    knows.
    """
    manifests = Manifests(root)
    if _uses_pytest(manifests):
        return (_detected(root, "pytest"),)
    npm_test = str(
        section(manifests.content("package.json"), "scripts").get("test", "")
    )
    if npm_test and _NPM_PLACEHOLDER not in npm_test:
        return (_detected(root, "npm", "test"),)
    if manifests.has("Cargo.toml"):
        return (_detected(root, "cargo", "test"),)
    if manifests.has("go.mod"):
        return (_detected(root, "go", "test", "./..."),)
    if "test" in manifests.targets:
        return (_detected(root, "make", "test"),)
    return ()


def _detected(root: Path, *argv: str) -> Check:
    started = as_started(argv, root)
    shown = argv
    if started[1:] != argv[1:]:
        shown = (Path(started[0]).name, *started[1:])
    return Check(Command(shlex.join(shown), started, root), found=True)


def _uses_pytest(manifests: Manifests) -> bool:
    if manifests.has("pytest.ini", "conftest.py", ".pytest.ini"):
        return True
    if "pytest" in section(manifests.content("pyproject.toml"), "tool"):
        return True
    configured = (("tox.ini", b"[pytest]"), ("setup.cfg", b"[tool:pytest]"))
    if any(words in manifests.data(name) for name, words in configured):
        return True
    folders = (manifests.root, *(manifests.root / name for name in ("tests", "test")))
    return any(
        file for folder in folders if folder.is_dir() for file in _test_files(folder)
    )


def _test_files(folder: Path) -> list[Path]:
    depth = ("*", "*/*", "*/*/*") if folder.name in ("tests", "test") else ("*",)
    return [
        file
        for pattern in depth
        for file in folder.glob(f"{pattern}.py")
        if file.name.startswith("test_") or file.stem.endswith("_test")
    ]
