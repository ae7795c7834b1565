"""Tests in another tree import the tree's own packages, also if these are installed in
editable mode in a Python environment of a folder.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.project.own_packages import OwnPackages, own_packages
from cdd_agent.project.tree_needs import Equipment
from tests.git.checkpoints import write
from tests.git.repositories import git, make_repository

pytestmark = pytest.mark.fork


@pytest.fixture(autouse=True)
def no_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repository(tmp_path.resolve() / "project")
    write(root, {".gitignore": ".venv/\n"})
    return root


def add_service(root: Path, folder: str, package: str, source: str = "src") -> None:
    """Make a package and an environment in which it is installed in editable mode."""
    place = root / folder
    write(place, {f"{source}/{package}/__init__.py": "", ".venv/pyvenv.cfg": "x"})
    command = [sys.executable, "-m", "venv", "--without-pip", str(place / ".venv")]
    subprocess.run(command, check=True)
    (site,) = (place / ".venv").glob("lib/python*/site-packages")
    (site / "editable.pth").write_text(f"{place / source}\n")


async def find(root: Path) -> tuple[Path, OwnPackages]:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    tree = root.with_name("tree")
    git(root, "worktree", "add", "--quiet", "--detach", str(tree))
    needs = await (await Equipment.find(root)).link_into(tree)
    return tree, await own_packages(tree, root, bases=needs.python_bases)


def place_of(package: str, folder: Path, env: dict[str, str]) -> Path:
    """Where Python in a folder's environment imports a package from."""
    code = f"import {package}; print({package}.__file__)"
    command = [str(folder / ".venv" / "bin" / "python"), "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return Path(done.stdout.strip())


@pytest.mark.parametrize(
    ("folder", "source", "expected"),
    [
        ("backend", "src", "backend/src"),
        ("backend", ".", "backend"),
        (".", "src", "src"),
        (".", ".", "."),
    ],
)
async def test_a_package_with_an_environment_is_the_tree_s(
    root: Path, folder: str, source: str, expected: str
) -> None:
    """The package is in `src`, or in the folder itself."""
    add_service(root, folder, "shop", source)
    tree, packages = await find(root)
    assert packages == OwnPackages(("shop",), (expected,))
    env = {**os.environ, **packages.env(tree)}
    assert place_of("shop", tree / folder, env).is_relative_to(tree)


async def test_a_package_that_a_relative_variable_finds_is_the_tree_s(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_service(root, ".", "shop", ".")
    monkeypatch.setenv("PYTHONPATH", ".")
    _, packages = await find(root)
    assert packages == OwnPackages()


async def test_packages_of_several_folders_are_found(root: Path) -> None:
    add_service(root, "backend", "shop")
    add_service(root, "tools/worker", "jobs")
    tree, packages = await find(root)
    assert packages.names == ("jobs", "shop")
    env = {**os.environ, **packages.env(tree)}
    for package, folder in (("shop", "backend"), ("jobs", "tools/worker")):
        assert place_of(package, tree / folder, env).is_relative_to(tree / folder)


async def test_two_packages_of_one_name_are_refused(root: Path) -> None:
    """One variable for all commands cannot put both first."""
    add_service(root, "backend", "app")
    add_service(root, "worker", "app")
    with pytest.raises(BadInput):
        await find(root)
