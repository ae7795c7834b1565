"""Install the tools of `make test-real` into a folder, or print those that only the
system can provide.

    python tools/real_tools.py FOLDER
    python tools/real_tools.py

Versions are in tests/real. Each Python tool gets its own environment, because they need
different versions of the same packages. Programs are in FOLDER/bin and
FOLDER/node_modules/.bin.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = Path(__file__).parents[1] / "tests" / "real"
DEBIAN = {
    "bash": "bash",
    "cargo": "cargo",
    "chromium": "chromium",
    "ctest": "cmake",
    "fish": "fish",
    "go": "golang-go",
    "make": "make",
    "node": "nodejs",
    "npm": "npm",
    "phpunit": "phpunit",
    "rspec": "ruby-rspec",
    "zsh": "zsh",
}
"""Programs to install with the system, and their Debian packages."""


def print_missing() -> None:
    missing = [name for name in DEBIAN if shutil.which(name) is None]
    if missing:
        packages = " ".join(DEBIAN[name] for name in missing)
        sys.stdout.write(
            f"Not installed, so their tests are skipped: {', '.join(missing)}\n"
            f"On Debian: apt-get install {packages}\n"
        )


def install(folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    failed = _install_python_tools(folder)
    if shutil.which("npm") and not _install_npm_tools(folder):
        failed.append("the npm packages")
    if failed:
        sys.stderr.write(f"Could not be installed: {', '.join(failed)}\n")
    return 1 if failed else 0


def _install_python_tools(folder: Path) -> list[str]:
    """Return the requirements that could not be installed."""
    places = {
        "UV_TOOL_BIN_DIR": str(folder / "bin"),
        "UV_TOOL_DIR": str(folder / "python"),
    }
    lines = (VERSIONS / "requirements.txt").read_text("utf-8").splitlines()
    failed = []
    for requirement in lines:
        if requirement.startswith("#"):
            continue
        command = ["uv", "tool", "install", "--quiet", "--python", sys.executable]
        done = subprocess.run(
            [*command, requirement], env=os.environ | places, check=False
        )
        if done.returncode != 0:
            failed.append(requirement)
    return failed


def _install_npm_tools(folder: Path) -> bool:
    shutil.copy(VERSIONS / "package.json", folder)
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    return (
        subprocess.run([*command, "--silent"], cwd=folder, check=False).returncode == 0
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(install(Path(sys.argv[1]).resolve()))
    print_missing()
