"""The context of a project; and that looking at a project never opens anything outside
it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.files.paths import PathRefused
from cdd_agent.project.context import (
    FileContext,
    project_context,
)
from tests.support.tables import each_row


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


# The whole


def test_a_context_is_the_tree_the_place_and_the_files_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = touch(tmp_path / "shop", "src/app.py", "src/b.log", "README.md")
    (root / "src/app.py").write_text("x = 1")
    (root / ".gitignore").write_text("*.log\n")
    subprocess.run(
        ["git", "init", "--quiet", "--initial-branch=trunk", str(root)], check=True
    )
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")

    context = project_context(root, ["src/app.py", "./src", "nothing.py", "src/app.py"])

    assert context.repo_tree.split() == [
        *(
            "shop/",
            "├──",
            ".gitignore",
            "├──",
            "README.md",
            "└──",
            "src/",
            "└──",
            "app.py",
        ),
    ]
    assert context.gitignore_content == "*.log\n"
    assert context.environment_info.git == "branch trunk"
    assert context.environment_info.shell == "zsh"
    assert context.environment_info.cwd == str(root)
    assert context.environment_info.python == ".".join(map(str, sys.version_info[:3]))
    assert context.file_contexts == (
        FileContext("src/app.py", "x = 1", "found"),
        FileContext("src", "app.py\n", "found"),
        FileContext("nothing.py", None, "not_found"),
        FileContext("src/app.py", "x = 1", "found"),
    )


def test_as_json_it_is_plain_values(tmp_path: Path) -> None:
    context = project_context(touch(tmp_path, "a.py"), ["a.py", "b.py"])
    data = json.loads(json.dumps(context.to_json()))
    assert list(data) == [
        "repo_tree",
        "environment_info",
        "gitignore_content",
        "file_contexts",
    ]
    assert set(data["environment_info"]) == {"os", "python", "shell", "cwd", "git"}
    assert data["file_contexts"] == [
        {"file_path": "a.py", "content": "", "status": "found", "problem": ""},
        {"file_path": "b.py", "content": None, "status": "not_found", "problem": ""},
    ]


def test_as_text_it_is_markdown_whatever_the_files_hold(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("````python\nx = 1\n````")
    text = project_context(tmp_path, ["a.md", "b.md"]).as_text()
    assert "## a.md\n\n`````\n````python\nx = 1\n````\n`````\n\n" in text
    assert text.startswith("## Environment\n\n- os: ")
    assert "## .gitignore" not in text


def test_what_cannot_be_read_is_found_has_no_content_and_says_why(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\0")
    touch(tmp_path, ".env")
    os.mkfifo(tmp_path / "pipe")
    context = project_context(tmp_path, ["a.png", ".env", "pipe"])
    assert {(file.status, file.content) for file in context.file_contexts} == {
        ("found", None)
    }
    assert [
        file.problem.split()[0] for file in context.file_contexts if file.problem
    ] == ["a.png", ".env", "pipe"]
    assert f"## pipe\n\n({context.file_contexts[2].problem})\n" in context.as_text()


def test_a_long_file_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n" * 100_000)
    (tmp_path / ".gitignore").write_text("# x\n" * 10_000)
    context = project_context(tmp_path, ["a"])
    assert (context.file_contexts[0].content or "").splitlines()[-1].startswith("… ")
    assert context.gitignore_content.splitlines()[-1].startswith("… ")
    assert len(context.gitignore_content) < 11_000


@each_row("text", ["../x", "/etc/passwd", "", "a\0b"])
def test_a_path_outside_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PathRefused):
        project_context(tmp_path, ["a.py", text])


def test_without_a_repository_or_git_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_context(tmp_path).environment_info.git == "no repository"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHELL", raising=False)
    environment = project_context(tmp_path).environment_info
    assert (environment.git, environment.shell) == ("not installed", "unknown")
