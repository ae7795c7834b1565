"""Remotes as they are elsewhere: over HTTP with a password, over ssh, and such as do
not take or show a run.
"""

import subprocess
from pathlib import Path

import pytest

from cdd_agent.engine.whereabouts import load_whereabouts
from tests.support.projects import SLUG
from tests.travel.copies import GOOD, REFERENCE, Copies, cdd, git, many_processes, run
from tests.travel.http_remote import NAME, PASSWORD, served

pytestmark = many_processes
HELPER = f"!f() {{ echo username={NAME}; echo 'password={PASSWORD}'; }}; f"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own for all repositories."""
    file = tmp_path / "gitconfig"
    file.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    return file


def test_over_http_with_a_password(
    begun: Copies, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = begun.first, begun.second
    if (
        subprocess.run(
            ["git", "http-backend"], capture_output=True, check=False
        ).returncode
        == 1
    ):
        pytest.skip("git has no http-backend here")
    git(begun.remote, "config", "http.receivepack", "true")
    with served(begun.folder) as address:
        url = f"{address}/{begun.remote.name}"
        for sandbox in (first, second):
            git(sandbox.root, "remote", "set-url", "origin", url)
        assert cdd(first, "push", SLUG) == 1  # and nobody is asked
        assert "global git settings" in capsys.readouterr().err
        assert cdd(first, "push", SLUG, url.replace("//", f"//{NAME}:wrong@")) == 1
        told = capsys.readouterr().err
        assert "Authentication failed" in told
        assert "wrong" not in told
        assert load_whereabouts(first.root / ".cdd" / "runs" / SLUG) is None

        git(first.root, "config", "--file", str(settings), "credential.helper", HELPER)
        assert cdd(first, "push", SLUG) == 0
        assert cdd(second, "pull", SLUG) == 0
    assert second.text("a.txt") == "good\n"


def test_over_ssh(
    begun: Copies, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program in place of `ssh`: what git gives it, and what comes of its errors."""
    ssh = begun.folder / "ssh"
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    address = f"ssh://someone@host.invalid{begun.remote}"
    assert cdd(begun.first, "push", SLUG, address) == 0
    assert cdd(begun.second, "pull", SLUG, address) == 0
    ssh.write_text("#!/bin/sh\necho 'Host key verification failed.' >&2\nexit 255\n")
    assert cdd(begun.first, "pull", SLUG) == 1
    told = capsys.readouterr().err
    assert "Host key" in told
    assert "global git settings" in told


def test_a_remote_that_hides_what_it_is_given_leaves_the_run_here(
    begun: Copies,
) -> None:
    for setting in ("transfer.hideRefs", "uploadpack.hideRefs"):
        git(begun.remote, "config", setting, "refs/cdd")
        assert cdd(begun.first, "push", SLUG) == 1
        git(begun.remote, "config", "--unset", setting)
    assert run(begun.first, *GOOD[1:]) == 0


def test_a_remote_that_refuses_leaves_the_run_here(
    begun: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    other = begun.folder / "other.git"
    git(begun.folder, "init", "--quiet", "--bare", "--object-format=sha256", str(other))
    assert cdd(begun.first, "push", SLUG, str(other)) == 1
    assert load_whereabouts(begun.first.root / ".cdd" / "runs" / SLUG) is None

    capsys.readouterr()
    hook = begun.remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho only branches, please\nexit 1\n")
    hook.chmod(0o755)
    assert cdd(begun.first, "push", SLUG) == 1
    told = capsys.readouterr().err
    assert REFERENCE in told
    assert "only branches" in told
    assert run(begun.first, *GOOD[1:]) == 0
