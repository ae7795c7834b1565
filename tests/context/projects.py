"""Small projects with files, and with a history."""

import subprocess
from pathlib import Path

from cdd_agent.context.places import RankedFile
from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query


def made(root: Path, files: dict[str, str | bytes]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
    return root


def git(root: Path, *words: str) -> str:
    who = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgSign=false",
    )
    return subprocess.run(
        ["git", *who, *words], cwd=root, capture_output=True, check=True, text=True
    ).stdout


def committed(root: Path, message: str, files: dict[str, str | bytes]) -> Path:
    """A commit of these files, in a repository that is made if there is none."""
    if not (root / ".git").exists():
        git(root, "init", "--quiet")
    made(root, files)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)
    return root


def ranked(root: Path, query: Query | str) -> list[RankedFile]:
    found = ProjectMap(root)
    found.update()
    answer = found.rank(Query(query) if isinstance(query, str) else query)
    found.close()
    return answer


def paths(root: Path, query: Query | str) -> list[str]:
    return [file.path for file in ranked(root, query)]
