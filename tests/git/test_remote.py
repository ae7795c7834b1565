"""A remote: where it is, what is sent to it, and its references changed by
compare-and-swap.
"""

import subprocess
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.git.remote import Address, PushRefused, Remote, address_of
from cdd_agent.git.repository import repository_of

REFERENCE = "refs/cdd/runs/words"


def git(folder: Path, *words: str) -> str:
    who = (
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(tmp_path, "init", "--quiet", "project")
    git(root, "commit", "--quiet", "--allow-empty", "--message=First")
    git(root, "remote", "add", "origin", "../remote.git")
    return root


async def remote_of(root: Path, name: str = "origin") -> Remote:
    private = root / ".cdd" / "private.git"
    git(root, "init", "--quiet", "--bare", str(private))
    env = {
        "GIT_DIR": str(private),
        "GIT_OBJECT_DIRECTORY": str(root / ".git" / "objects"),
    }
    return Remote.of(
        await address_of(await repository_of(root), name), Git(root, env), None
    )


def commit(root: Path, text: str) -> str:
    return git(root, "commit-tree", "-m", text, git(root, "rev-parse", "HEAD^{tree}"))


async def test_a_reference_moves_only_from_where_it_is_expected(root: Path) -> None:
    remote, one, two = await remote_of(root), commit(root, "one"), commit(root, "two")
    assert await remote.tip(REFERENCE) is None
    assert not await remote.swap(REFERENCE, two, one)
    assert await remote.swap(REFERENCE, None, one)
    assert await remote.tip(REFERENCE) == one
    assert not await remote.swap(REFERENCE, None, two)
    assert not await remote.swap(REFERENCE, two, commit(root, "three"))
    assert await remote.swap(REFERENCE, one, two)
    # its answer was lost, and it is sent once more
    assert await remote.swap(REFERENCE, one, two)
    assert await remote.tip(REFERENCE) == two


async def test_a_refusal_is_told_from_a_remote_that_is_not_there(root: Path) -> None:
    remote, one = await remote_of(root), commit(root, "one")
    hook = root.parent / "remote.git" / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(PushRefused):
        await remote.swap(REFERENCE, None, one)
    (root.parent / "remote.git").rename(root.parent / "away.git")
    with pytest.raises(GitUnusable) as refused:
        await remote.swap(REFERENCE, None, one)
    assert not isinstance(refused.value, PushRefused)


async def test_what_comes_is_kept_apart_until_it_is_accepted(root: Path) -> None:
    remote, other = await remote_of(root), root.parent / "other"
    await remote.swap(REFERENCE, None, commit(root, "one"))
    git(root.parent, "init", "--quiet", "other")
    git(other, "remote", "add", "origin", str(root.parent / "remote.git"))
    theirs = await remote_of(other)
    found = await theirs.fetch(REFERENCE, (), 10_000_000)
    assert (await theirs.quarantined("cat-file", "-t", found)).stdout == "commit\n"
    assert (
        await theirs.git("cat-file", "-e", found, codes=(0, 1, 128))
    ).return_code != 0
    theirs.accept()
    theirs.accept()
    await theirs.clear()
    assert (await theirs.git("cat-file", "-t", found)).stdout == "commit\n"
    assert git(other, "for-each-ref") == ""


async def test_of_the_repositorys_settings_only_what_belongs_to_the_remote_is_sent(
    root: Path,
) -> None:
    git(
        root,
        "config",
        "http.https://example.org/.extraheader",
        "AUTHORIZATION: basic abc",
    )
    git(root, "config", "http.sslVerify", "false")
    git(root, "config", "core.sshCommand", "evil")
    address = await address_of(await repository_of(root), "origin")
    assert address.settings == (
        ("http.https://example.org/.extraheader", "AUTHORIZATION: basic abc"),
    )
    remote = await remote_of(root)
    heard = await remote._speak(
        "config", "--get-urlmatch", "http.extraheader", "https://example.org/x.git"
    )
    assert heard.stdout == "AUTHORIZATION: basic abc\n"
    assert (await remote._speak("config", "core.sshCommand", codes=(1,))).stdout == ""


async def test_an_address_is_one_of_a_remote_or_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, there = await repository_of(root), str(root.parent / "remote.git")
    inner = root / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    # from the top, wherever one is
    assert (await address_of(repository, "origin")).fetch == there
    assert (await address_of(repository, "../../remote.git")).push == there
    for address in (
        "git@example.org:team/runs.git",
        "https://example.org/runs.git",
        "ssh://example.org/runs.git",
    ):
        assert await address_of(repository, address) == Address(
            address, address, address
        )
    git(root, "remote", "set-url", "--push", "origin", "ssh://example.org/push.git")
    assert (await address_of(repository, "origin")).push == "ssh://example.org/push.git"
    for wrong in ("upstream", "--upload-pack=evil", ""):
        with pytest.raises(BadInput):
            await address_of(repository, wrong)


async def test_an_address_that_runs_a_program_is_not_spoken_to(root: Path) -> None:
    remote = await remote_of(root, f"ext::touch {root / 'evil'}")
    with pytest.raises(GitUnusable):
        await remote.tip(REFERENCE)
    assert not (root / "evil").exists()


async def test_passwords_in_an_address_are_not_told(root: Path) -> None:
    remote = await remote_of(root, "http://ann:correct-horse@127.0.0.1:9/runs.git")
    with pytest.raises(GitUnusable) as refused:
        await remote.tip(REFERENCE)
    assert "correct-horse" not in refused.value.in_a_line
