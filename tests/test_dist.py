"""The wheel and the sdist: their contents, and a start in a clean environment."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from cdd_agent.version import VERSION

pytestmark = [pytest.mark.fork, pytest.mark.xdist_group("dist")]
ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
BUILD = ["build", "--quiet", "--offline", "--no-build-isolation", "--python"]


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment or None,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(UV, *BUILD, sys.executable, "--out-dir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return dist / f"cdd_shell-{VERSION}-py3-none-any.whl"


def read_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_sdist_builds_the_wheel_of_the_project(
    dist: Path, wheel: Path, tmp_path: Path
) -> None:
    run(UV, *BUILD, sys.executable, "--wheel", "--out-dir", tmp_path, ROOT)
    assert read_wheel(tmp_path / wheel.name) == read_wheel(wheel)
    with tarfile.open(dist / f"cdd_shell-{VERSION}.tar.gz") as archive:
        names = archive.getnames()
    top = {name.split("/")[1] for name in names if "/" in name}
    assert not top & {"tests", "tickets", "benchmarks", "tools", ".cdd"}
    tracked = run("git", "ls-files", "docs", "README.md", "PACKAGE.md").splitlines()
    prefix = f"cdd_shell-{VERSION}/"
    assert set(tracked) <= {name.removeprefix(prefix) for name in names}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    info = f"cdd_shell-{VERSION}.dist-info"
    tracked = run("git", "ls-files", "-z", "cdd_agent").split("\0")
    names = {name for name in read_wheel(wheel) if not name.startswith(info)}
    assert names == {name for name in tracked if name and (ROOT / name).exists()}
    assert f"{info}/licenses/LICENSE" in read_wheel(wheel)


def test_the_wheel_starts_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = ["pip", "install", "--quiet", "--offline", "--no-deps", "--python"]
    run(UV, *install, python, wheel)
    # The dependencies of this environment, without its editable install of the project:
    # the path files of an added folder are not read.
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(python, "-c", purelib).strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    home = tmp_path / "home"
    home.mkdir()
    path = os.pathsep.join([str(folder / "bin"), os.defpath])
    cdd = folder / "bin" / "cdd"

    def start(*arguments: str) -> str:
        return run(cdd, *arguments, cwd=home, HOME=str(home), PATH=path, LANG="C.UTF-8")

    where = run(python, "-c", "import cdd_agent; print(cdd_agent.__file__)", cwd=home)
    assert Path(where.strip()).is_relative_to(packages)
    assert start("--version") == f"cdd-shell {VERSION}\n"
    assert "exec" in start("--help")
    assert "step" in start("demo", "--headless")
    for shell in ("bash", "zsh", "fish"):
        assert "cdd" in start("completion", shell)


def test_the_versions_of_python_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    versions = [
        each.removeprefix("Programming Language :: Python :: ")
        for each in project["classifiers"]
        if each.startswith(prefix)
    ]
    assert project["requires-python"] == f">={versions[0]}"
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    listed = ", ".join(f'"{each}"' for each in versions)
    assert workflow.count(f"python: [{listed}]") == 2
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## {VERSION} (" in changes
