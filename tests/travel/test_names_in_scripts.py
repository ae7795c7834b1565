"""Tickets whose names are in any script, in real repositories: records, references,
trees, branches and remotes have these names.
"""

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.projects import SLUG, Sandbox
from tests.travel.copies import (
    GOOD,
    TWO_STEPS,
    Copies,
    cdd,
    git,
    many_processes,
    scripted,
)

# Composed and decomposed letters, right to left, vowel signs, wide and long names.
NAMES = [
    "feature-ユーザーログイン",
    unicodedata.normalize("NFD", "feature-größe-ドア"),
    "feature-вход-пользователя",
    "feature-تسجيل-الدخول",
    "feature-हिन्दी-में-लॉगिन",
    "feature-" + "語" * 57,
]


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    monkeypatch.delenv("PYTHONPATH", raising=False)


def run(sandbox: Sandbox, *replies: str, more: tuple[str, ...] = ()) -> int:
    script = scripted(sandbox, *replies)
    words = ("--max-attempts", "1", "--model", script, *more)
    return cdd(sandbox, "exec", sandbox.slug, *words)


def references(folder: Path) -> set[str]:
    """The names of the references of runs, as git has them."""
    listed = git(folder, "for-each-ref", "--format=%(refname)", "refs/cdd")
    return {name.split("/")[3] for name in listed.splitlines()}


def begun(folder: Path, name: str) -> Copies:
    copies = Copies.made(folder, *TWO_STEPS)
    tickets = copies.first.root / "tickets"
    (tickets / SLUG).rename(tickets / name)
    (tickets / name / "spec.yaml").rename(tickets / name / "spec.yml")
    git(copies.first.root, "add", "--all")
    git(copies.first.root, "commit", "--quiet", "--message=Named")
    git(copies.first.root, "push", "--quiet", "origin", "HEAD:main")
    return copies


@many_processes
@pytest.mark.parametrize("name", NAMES)
def test_a_run_in_its_own_tree_lands_and_is_renamed(tmp_path: Path, name: str) -> None:
    first = replace(begun(tmp_path / "copies", name).first, slug=name)
    slug = unicodedata.normalize("NFC", name)

    assert run(first, *GOOD, more=("--worktree",)) == 0
    assert f"cdd/{slug}" in git(first.root, "branch", "--list", "cdd/*")
    assert cdd(first, "land", slug) == 0
    assert references(first.root) == {slug}
    assert cdd(first, "undo", slug, "--step", "2") == 0
    assert not (first.root / "b.txt").exists()

    new = replace(first, slug=f"{name}-2")
    first.ticket.rename(new.ticket)
    assert run(new, *GOOD[1:]) == 0
    assert new.statuses() == ["completed"] * 2
    assert references(first.root) == {f"{slug}-2"}
    assert cdd(new, "undo", f"{slug}-2", "--step", "1") == 0
    assert not (first.root / "a.txt").exists()


@many_processes
@pytest.mark.parametrize("name", NAMES)
def test_a_run_travels(tmp_path: Path, name: str) -> None:
    copies = begun(tmp_path / "copies", name)
    slug = unicodedata.normalize("NFC", name)
    first = replace(copies.first, slug=name)
    second = replace(copies.clone("second"), slug=slug)
    run(first, *GOOD[:1])

    assert cdd(first, "push", name) == 0
    assert git(copies.remote, "for-each-ref", "--format=%(refname)", "refs/cdd") == (
        f"refs/cdd/runs/{slug}"
    )
    assert cdd(second, "pull", slug) == 0
    second = replace(second, slug=name)
    assert run(second, *GOOD[1:]) == 0
    assert second.statuses() == ["completed"] * 2
    assert cdd(second, "push", slug) == 0


@many_processes
def test_a_run_travels_to_a_copy_without_the_ticket(tmp_path: Path) -> None:
    copies = begun(tmp_path / "copies", NAMES[0])
    first = replace(copies.first, slug=NAMES[0])
    run(first, *GOOD[:1])
    assert cdd(first, "push", NAMES[0]) == 0
    second = replace(copies.clone("second"), slug=NAMES[0])
    git(second.root, "rm", "-rq", "tickets")

    assert cdd(second, "pull", NAMES[0]) == 0

    assert sorted(path.name for path in second.ticket.iterdir()) == [
        "execution-state.json",
        "plan.md",
        "spec.yml",
    ]
    for odd in ("../x", "a/b", ".x", "x y", ""):
        assert cdd(second, "pull", odd) != 0
