"""Read git's history: the words of commit messages, and the files that commits
changed.
"""

from array import array
from pathlib import Path

from cdd_agent.context.cache import Cache, Holders
from cdd_agent.context.words import words_in
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.git.repository import repository_of
from cdd_agent.pattern import Pattern

_COMMITS = 3_000
"""Maximum number of latest commits to read. Newer ones are added."""
_MOST_FILES = 30
"""Files of a commit. A commit with more files relates none of them."""
_MESSAGE = 2_000
"""Characters of a message to read."""
_SECONDS = 20.0
_COMMIT = Pattern(r">([0-9a-f]{40}|[0-9a-f]{64})")
_HEAD = "head"
"""The fact in the cache that names its last commit."""


async def read_past(root: Path, cache: Cache) -> None:
    """Add the commits since the last call to the cache, if there is a repository."""
    try:
        repository = await repository_of(root)
        head = await repository.head() if repository else None
        before = cache.fact(_HEAD)
        if repository is None or head is None or head == before:
            return
        git = Git(root, repository.git.env, seconds=_SECONDS)
        where = () if root == repository.top else ("--", ".")
        log = await _log_since(git, before, head, where) if before else None
        if log is None:
            before, log = "", await _log(git, head, *where)
    except GitUnusable:
        return
    if log is None:
        return
    with cache.writing():
        if cache.fact(_HEAD) != before:
            if before:
                # another process was faster
                return
            cache.clear_commits()
        _add(cache, log)
        cache.set_fact(_HEAD, head)


async def _log_since(
    git: Git, before: str, head: str, where: tuple[str, ...]
) -> str | None:
    """Return None if the cache has commits outside this branch."""
    log = await _log(git, f"{before}...{head}", *where)
    return None if log is None or "\x01<" in log else log


async def _log(git: Git, commits: str, *where: str) -> str | None:
    """Return the newest commits first; None if git lacks the commits or is too slow."""
    result = await git.run(
        "log",
        f"--max-count={_COMMITS}",
        "--no-merges",
        "--no-show-signature",
        "--no-renames",
        "--no-ext-diff",
        "--relative",
        "--name-only",
        "-z",
        "--format=%x01%m%H%x02%B%x02",
        "--encoding=UTF-8",
        commits,
        *where,
    )
    if result.return_code or result.timed_out:
        return None
    return result.stdout


def _add(cache: Cache, log: str) -> None:
    number = cache.last_commit()
    paths: dict[int, list[str]] = {}
    holders: Holders = {}
    for entry in reversed(log.split("\x01")[1:]):
        begin, message, changed = (*entry.split("\x02", 2), "", "")[:3]
        named = [path for path in changed.strip("\n\0").split("\0") if path]
        # a part of a message may look like the beginning of an entry
        is_commit = _COMMIT.fullmatch(begin) is not None
        if not is_commit or not 0 < len(named) <= _MOST_FILES:
            continue
        number += 1
        paths[number] = named
        terms = {f"@{path}" for path in named}
        terms.update(words_in(message[:_MESSAGE]))
        for term in terms:
            holders.setdefault(term, array("I")).append(number)
    cache.add_commits(paths, holders)
