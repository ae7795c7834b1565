"""A run goes on in another copy of the project, and comes back."""

import json
import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from cdd_agent.engine.whereabouts import load_whereabouts, save_whereabouts
from cdd_agent.travel.lease import DURATION
from tests.support.projects import SLUG, Sandbox, says
from tests.travel.copies import (
    GOOD,
    STEPS,
    TWO_STEPS,
    Copies,
    cdd,
    events,
    files,
    git,
    left_running,
    many_processes,
    run,
)


def record_of(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG


def lapse(sandbox: Sandbox) -> None:
    """As if the lease of this copy had been taken long ago."""
    known = load_whereabouts(record_of(sandbox))
    assert known
    assert known.until
    save_whereabouts(record_of(sandbox), replace(known, until=known.until - DURATION))


def gits(folder: Path) -> list[list[str]]:
    """Return the programs of git that this process started there and that still run."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # another test's, which ends just now
            if Path(child.cwd()).is_relative_to(folder):
                found.append(child.cmdline())
    return found


def test_pull_takes_no_other_ticket_for_the_beginning_of_its_slug(
    pushed: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ticket that is meant may be in the remote alone."""
    second = pushed.second
    unchanged = files(second.root)

    assert cdd(second, "pull", SLUG[:-1]) == 2
    assert f"has no run of {SLUG[:-1]}\n" in capsys.readouterr().err
    assert files(second.root) == unchanged
    assert cdd(second, "pull", SLUG.upper()) == 0


@pytest.mark.story
def test_a_run_goes_on_elsewhere_where_it_stopped_and_comes_back(
    pushed: Copies,
) -> None:
    first, second = pushed.first, pushed.second

    def done(sandbox: Sandbox, *words: str) -> bool:
        """Each command ends well, and leaves no program behind."""
        return cdd(sandbox, *words) == 0 and gits(pushed.folder) == []

    assert done(second, "pull", SLUG)
    assert files(second.root) == files(first.root)
    assert second.statuses()[0] == "completed"
    assert done(second, "diff", SLUG)
    assert done(second, "undo", SLUG)
    assert done(second, "redo", SLUG)
    assert done(second, "status", SLUG)
    assert run(second, *GOOD[1:]) == 0
    assert second.statuses() == ["completed"] * 2
    assert done(second, "push", SLUG)
    assert done(first, "pull", SLUG)
    assert files(first.root) == files(second.root)
    assert done(first, "undo", SLUG, "--step", "1")
    assert not (first.root / "a.txt").exists()


@many_processes
def test_a_command_that_outlived_its_run_is_ended_before_that_is_pushed(
    begun: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    with left_running(record_of(begun.first)) as command:
        assert cdd(begun.first, "push", SLUG, "--json") == 0
        assert command.poll() is not None
    assert "command_ended" in [
        event.get("kind") for event in events(capsys.readouterr().out)
    ]


@many_processes
def test_a_saved_reply_is_not_paid_for_twice(copies: Copies) -> None:
    first, second = copies.first, copies.second
    (first.root / ".cdd" / "config.yaml").write_text("approval: ask\n")
    assert run(first, *GOOD) == 3
    assert cdd(first, "push", SLUG) == 0
    # left by a pull that was killed
    torn = second.ticket / ".cdd-0123456789ab-999999999-01234567.tmp"
    torn.touch()
    assert cdd(second, "pull", SLUG) == 0
    assert not torn.exists()
    assert run(second, *GOOD[1:], more=("--yes",)) == 0
    assert second.text("a.txt") == "good\n"


def test_what_a_person_has_not_committed_travels_and_so_do_their_commits(
    begun: Copies,
) -> None:
    first, second = begun.first, begun.second
    (first.root / "README").write_text("changed by hand\n")
    (first.root / "notes").mkdir()
    (first.root / "notes" / "mine.txt").write_text("not committed\n")
    (first.root / "tool.sh").write_text("#!/bin/sh\n")
    (first.root / "tool.sh").chmod(0o755)
    (first.root / "link").symlink_to("notes/mine.txt")
    assert cdd(first, "push", SLUG) == 0
    assert cdd(second, "pull", SLUG) == 0
    assert files(second.root) == files(first.root)
    assert git(second.root, "log", "--oneline") == git(first.root, "log", "--oneline")


def test_a_tree_or_a_plan_that_differs_is_named_and_left_alone(
    pushed: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    second, tip = pushed.second, pushed.tip()
    (second.root / "README").write_text("mine\n")
    (second.root / "a.txt").write_text("mine, too\n")
    before = files(second.root)
    assert cdd(second, "pull", SLUG) == 2
    told = capsys.readouterr().err
    assert "README" in told
    assert "a.txt" in told
    assert (files(second.root), pushed.tip()) == (before, tip)
    assert load_whereabouts(record_of(second)) is None

    git(second.root, "checkout", "--quiet", "README")
    (second.root / "a.txt").unlink()
    with (second.ticket / "plan.md").open("a") as file:
        file.write("\nMine.\n")
    before = files(second.root)
    assert cdd(second, "pull", SLUG) == 2
    assert "plan.md" in capsys.readouterr().err
    assert (files(second.root), pushed.tip()) == (before, tip)


@many_processes
def test_another_commit_is_named_with_what_to_do(
    begun: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = begun.first, begun.second
    (first.root / "README").write_text("committed here only\n")
    git(first.root, "commit", "--quiet", "--all", "--message=Mine")
    head = git(first.root, "rev-parse", "HEAD")
    assert cdd(first, "push", SLUG) == 0
    assert cdd(second, "pull", SLUG) == 2
    assert f"git checkout {head[:12]}" in capsys.readouterr().err
    git(second.root, "checkout", "--quiet", head[:12])  # it is here by now
    assert cdd(second, "pull", SLUG) == 0
    assert files(second.root) == files(first.root)


def test_a_run_goes_on_only_where_it_is_held_and_who_lost_it_finds_out(
    pushed: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = pushed.first, pushed.second
    assert run(first, *GOOD[1:]) == 2
    assert f"cdd pull {SLUG} origin" in capsys.readouterr().err
    assert cdd(first, "undo", SLUG) == 2
    assert cdd(second, "pull", SLUG) == 0
    capsys.readouterr()
    assert run(first, *GOOD[1:]) == 2
    assert "held by" in capsys.readouterr().err
    assert cdd(first, "pull", SLUG) == 2
    assert cdd(first, "push", SLUG) == 2
    assert cdd(first, "diff", SLUG) == 0  # looking is fine
    assert first.statuses()[1] != "completed"

    assert cdd(first, "pull", SLUG, "--take-over") == 0
    capsys.readouterr()
    assert run(second, *GOOD[1:]) == 2
    assert "held by" in capsys.readouterr().err
    assert cdd(second, "undo", SLUG) == 2
    assert cdd(second, "diff", SLUG) == 0
    assert second.text("a.txt") == "good\n"
    assert run(first, *GOOD[1:]) == 0
    assert second.statuses()[1] != "completed"


@many_processes
def test_a_lease_that_is_over_is_renewed_and_without_the_remote_it_ends(
    pushed: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    second = pushed.second
    assert cdd(second, "pull", SLUG) == 0
    tip = pushed.tip()
    lapse(second)
    assert cdd(second, "undo", SLUG) == 0
    assert pushed.tip() != tip
    lease = json.loads(pushed.file("lease.json"))
    assert lease["host"]
    assert lease["until"] > lease["since"]

    pushed.remote.rename(pushed.folder / "away.git")
    capsys.readouterr()
    assert run(second, GOOD[0], more=("--json",)) != 0
    assert "lease" in [event.get("kind") for event in events(capsys.readouterr().out)]
    assert second.statuses() == ["completed", "pending"]
    lapse(second)
    assert run(second, GOOD[1]) == 2
    assert second.statuses() == ["completed", "pending"]


@many_processes
def test_a_copy_of_the_folder_is_another_copy(pushed: Copies) -> None:
    second = pushed.second
    assert cdd(second, "pull", SLUG) == 0
    third = Sandbox(pushed.folder / "third")
    second.root.rename(third.root)
    assert run(third, *GOOD[1:]) == 2
    assert cdd(third, "pull", SLUG) == 2
    assert cdd(third, "pull", SLUG, "--take-over") == 0
    assert run(third, *GOOD[1:]) == 0


@many_processes
def test_another_run_that_is_here_is_only_set_aside_by_word(pushed: Copies) -> None:
    first, second = pushed.first, pushed.second
    assert run(second, *GOOD) == 0
    before = files(second.root)
    assert cdd(second, "pull", SLUG) == 2
    assert files(second.root) == before
    assert cdd(second, "push", SLUG) == 2  # nor is the one that is there replaced

    (second.root / "b.txt").unlink()
    assert cdd(second, "pull", SLUG, "--replace") == 0
    assert files(second.root) == files(first.root)
    (earlier,) = record_of(second).glob("earlier-*")
    assert (
        json.loads((earlier / "execution-state.json").read_text())["step_executions"][
            "2"
        ]["status"]
        == "completed"
    )
    assert run(second, *GOOD[1:]) == 0


def push_secrets(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Push a run from `first` with secrets in its files; return the secrets."""
    monkeypatch.setenv("SHOP_API_KEY", "9f8e7d6c5b4a39281706")
    first = copies.first.write(*STEPS)
    copies.second.write(*STEPS)
    (first.root / ".env").write_text("PASSWORD=hunter2hunter2\n")
    (first.root / "settings.txt").write_text("key = 9f8e7d6c5b4a39281706\n")
    for again in ("copy.txt", "zz/copy.txt"):  # the same content is one object for git
        (first.root / again).parent.mkdir(exist_ok=True)
        (first.root / again).write_text("key = 9f8e7d6c5b4a39281706\n")
    (first.root / "fine.txt").write_text("nothing secret\n")
    key = "ghp_" + "a1B2c3D4e5" * 4
    assert run(first, says("a.txt", "good"), says("b.txt", f"good\n{key}")) != 0
    assert first.statuses()[1] == "completed"
    assert cdd(first, "push", SLUG) == 0
    return [b"hunter2hunter2", b"9f8e7d6c5b4a39281706", key.encode()]


def test_secrets_do_not_travel(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = push_secrets(copies, monkeypatch)
    sent = copies.everything_sent()
    assert [secret for secret in secrets if secret in sent] == []
    assert json.loads(copies.file("run.json"))["left_out"] == [
        f".cdd/runs/{SLUG}/step-02/attempt-1/reply.md",
        ".env",
        "b.txt",
        "copy.txt",
        "settings.txt",
        "zz/copy.txt",
    ]


@many_processes
def test_a_copy_keeps_its_files_that_did_not_travel(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_secrets(copies, monkeypatch)
    monkeypatch.delenv("SHOP_API_KEY")
    first, second = copies.first, copies.second
    assert cdd(second, "pull", SLUG) == 0
    assert second.text("fine.txt") == "nothing secret\n"
    assert not (second.root / ".env").exists()
    (second.root / "b.txt").write_text("good, by hand\n")
    assert run(second, says("c.txt", "good")) == 0
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 2  # there are two versions of b.txt
    (first.root / "b.txt").unlink()
    assert cdd(first, "pull", SLUG) == 0
    assert first.text("c.txt") == "good\n"
    assert first.text(".env") == "PASSWORD=hunter2hunter2\n"
    assert cdd(first, "undo", SLUG, "--step", "1") == 0
    assert first.text(".env") == "PASSWORD=hunter2hunter2\n"


def test_a_ticket_with_a_secret_is_not_pushed(
    copies: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first = copies.first
    with (first.ticket / "plan.md").open("a") as file:
        file.write(f"\nUse ghp_{'a1B2c3D4e5' * 4}.\n")
    assert cdd(first, "push", SLUG) == 2
    assert "plan.md" in capsys.readouterr().err
    assert git(copies.remote, "for-each-ref", "refs/cdd") == ""
    assert load_whereabouts(record_of(first)) is None


def test_names_of_this_machines_folders_do_not_travel(begun: Copies) -> None:
    first = begun.first
    where = f"print(__import__('os').getcwd()); print('{Path.home()}/x')"
    attempt = record_of(first) / "step-01" / "attempt-1"
    (attempt / "output.txt").write_text(
        f"rootdir: {first.root}\n{first.root}/tests/test_a.py:3\n{first.root}-evil\n"
    )
    (record_of(first) / "baseline.txt").write_text(where)
    assert cdd(first, "push", SLUG) == 0
    sent = begun.file("record/step-01/attempt-1/output.txt")
    assert sent == f"rootdir: .\ntests/test_a.py:3\n{first.root}-evil"
    assert "'~/x'" in begun.file("record/baseline.txt")
    for name in (
        "run.json",
        "record/events.jsonl",
        "record/state.json",
        "ticket/execution-state.json",
    ):
        assert str(first.root) not in begun.file(name)


@many_processes
def test_a_project_below_the_top_of_its_repository_travels(copies: Copies) -> None:
    first, second = copies.first, copies.second
    for sandbox in (first, second):
        inner = Sandbox(sandbox.root / "app")
        inner.root.mkdir()
    inner = Sandbox(first.root / "app").write(*TWO_STEPS)
    other = Sandbox(second.root / "app")
    (other.root / ".cdd").mkdir()
    assert run(inner, GOOD[0]) != 0
    assert cdd(inner, "push", SLUG) == 0
    assert cdd(other, "pull", SLUG) == 0
    assert files(other.root) == files(inner.root)
    assert run(other, *GOOD[1:]) == 0


@many_processes
def test_a_project_without_git_travels_by_an_address(
    copies: Copies, tmp_path: Path
) -> None:
    first, second = (
        Sandbox(tmp_path.resolve() / "one"),
        Sandbox(tmp_path.resolve() / "two"),
    )
    first.write(*TWO_STEPS)
    (second.root / ".cdd").mkdir(parents=True)
    assert run(first, GOOD[0]) != 0
    assert cdd(first, "push", SLUG) == 2  # there is no origin
    assert cdd(first, "push", SLUG, str(copies.remote)) == 0
    assert cdd(second, "pull", SLUG, str(copies.remote)) == 0
    assert files(second.root) == files(first.root)
    assert run(second, *GOOD[1:]) == 0
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 0
    assert cdd(first, "undo", SLUG, "--step", "1") == 0


@many_processes
def test_a_clone_without_all_of_the_history_can_take_a_run_and_send_it(
    begun: Copies,
) -> None:
    first = begun.first
    for number in range(3):
        git(
            first.root, "commit", "--quiet", "--allow-empty", f"--message=More {number}"
        )
    git(first.root, "push", "--quiet", "origin", "HEAD:main")
    git(
        begun.folder,
        "clone",
        "--quiet",
        "--depth=1",
        f"file://{begun.remote}",
        "shallow",
    )
    second = Sandbox(begun.folder / "shallow")
    assert cdd(first, "push", SLUG) == 0
    assert cdd(second, "pull", SLUG) == 0
    assert run(second, *GOOD[1:]) == 0
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 0
    assert files(first.root) == files(second.root)


def test_nothing_of_a_repositorys_own_settings_is_run(begun: Copies) -> None:
    first = begun.first
    said = begun.folder / "said"
    script = begun.folder / "run-me"
    script.write_text(f'#!/bin/sh\necho $0 >> {said}\nexec git receive-pack "$@"\n')
    script.chmod(0o755)
    for key in (
        "core.sshCommand",
        "remote.origin.receivepack",
        "remote.origin.uploadpack",
        "credential.helper",
    ):
        git(first.root, "config", key, str(script))
    hook = first.root / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(script.read_text())
    hook.chmod(0o755)
    assert cdd(first, "push", SLUG) == 0
    git(first.root, "config", "remote.evil.url", f"ext::{script}")
    assert cdd(first, "push", SLUG, "evil") != 0
    assert not said.exists()


@many_processes
def test_what_is_told_and_the_words_for_what_is_not_there(
    begun: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = begun.first, begun.second
    assert cdd(second, "pull", SLUG) == 2
    assert cdd(second, "pull", SLUG, "nowhere") == 2
    assert "origin" in capsys.readouterr().err
    assert not record_of(second).exists()
    assert cdd(first, "push", SLUG, "--json") == 0
    assert [event["kind"] for event in events(capsys.readouterr().out)] == ["run_moved"]
    assert cdd(second, "pull", SLUG, "--json") == 0
    assert [event["kind"] for event in events(capsys.readouterr().out)] == ["run_moved"]
    log = (record_of(second) / "events.jsonl").read_text()
    assert json.loads(log.splitlines()[-1])["kind"] == "run_moved"
    assert os.environ["XDG_STATE_HOME"] not in log
