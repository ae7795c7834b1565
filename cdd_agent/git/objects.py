"""A repository's objects and references, read and written by git programs that stay:
started when first needed, they answer for as long as checkpoints are open. A program
that is started for each question takes longer to start than to answer.

What is written is on the disk, also after a cut of power, when its name is returned.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.process.standing import ProgramEnded, StandingProgram, exactly, up_to
from cdd_agent.sanitize import sanitize_for_display

T = TypeVar("T")
_AT_ONCE = 4096
"""Bytes of questions that are sent before their answers are read: every pipe takes so
many, so that git never waits for its answers to be read by somebody who is still
asking.
"""
_CHUNK = 1 << 20
_END = b"end\n"
_CHECK_IGNORE = (
    "check-ignore",
    "--stdin",
    "-z",
    "--verbose",
    "--non-matching",
    "--no-index",
)
HINT = (
    "Check that the folder can be written and the disk has space; files that may not be"
    " read can go to .gitignore."
)


FOLDER = "040000"
"""The mode of a tree in a tree."""


class TreeItem(NamedTuple):
    """What a tree says of one name in it."""

    mode: str
    id: str
    name: bytes

    @property
    def place(self) -> bytes:
        """It stands in the tree where this sorts it."""
        return self.name + b"/" if self.mode == FOLDER else self.name

    def __bytes__(self) -> bytes:
        return b"%s %s\0%s" % (
            self.mode.lstrip("0").encode(),
            self.name,
            bytes.fromhex(self.id),
        )


class GitObjects(Struct):
    """Used by one thread at a time, and by no process that goes on without this one.

    All raise `GitUnusable` where git ends instead of answering; the next question
    begins with another one.
    """

    git: Git
    """With the project's files."""
    references: Git
    folder: Path
    """For what git reads."""
    _programs: dict[tuple[str, ...], StandingProgram] = field(default_factory=dict)
    """By the words that they were started with."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def blob(self, content: bytes) -> str:
        """Store a content; its id."""
        return self._stored("blob", content)

    def tree(self, items: Iterable[TreeItem]) -> str:
        """Store a tree; its id. Everything in it has to be there. (`git mktree` would
        see to that, and open each file's object, which takes ten times as long; and it
        leaves what it writes to the system, whatever `core.fsync` says.)
        """
        return self._stored(
            "tree", b"".join(map(bytes, sorted(items, key=lambda item: item.place)))
        )

    def _stored(self, kind: str, content: bytes) -> str:
        path = self.folder / "content"
        try:
            path.write_bytes(content)
        except OSError as error:
            raise BadInput(
                f"{path} could not be written: {error.strerror or error}"
            ) from error
        words = ("hash-object", "-t", kind, "-w", "--no-filters", "--stdin-paths")
        return self._ask(self._bare, *words, question=b"content\n", read=_text)

    def refer(self, name: str, target: str) -> None:
        """Keep an object under a name, in place of another one."""
        question = f"start\nupdate {name} {target}\ncommit\n".encode()
        git = replace(self.references, folder=self.folder)
        self._ask(
            git,
            "update-ref",
            "--stdin",
            question=question,
            read=lambda output: [_text(output), _text(output)],
        )

    def read(self, name: str, most: int = sys.maxsize) -> bytes | None:
        """An object's content, or the beginning of it; None where it is gone."""
        return self._found(name, most)[1]

    def id_of(self, name: str) -> str | None:
        return self._found(name, 0)[0]

    def _found(self, name: str, most: int) -> tuple[str | None, bytes | None]:
        def answer(output: BufferedReader) -> tuple[str | None, bytes | None]:
            identity, *head = up_to(output, b"\n").rsplit(b" ", 2)
            if len(head) < 2:  # `missing`
                return None, None
            left = int(head[1])
            content = exactly(output, min(left, most))
            left -= len(content)
            while left:
                left -= len(exactly(output, min(left, _CHUNK)))
            exactly(output, 1)
            return identity.decode(), content

        return self._ask(
            self._bare,
            "cat-file",
            "--batch",
            question=f"{name}\n".encode(),
            read=answer,
        )

    def changes(self, before: str, after: str) -> bytes:
        """What differs between two trees, by their ids, in git's raw format
        (`diff.py`).
        """

        def answer(output: BufferedReader) -> bytes:
            up_to(output, b"\n")
            found = list[bytes]()
            while output.peek()[:1] == b":":
                found += (up_to(output, b"\0"), up_to(output, b"\0"))
            if exactly(output, len(_END)) != _END:
                raise EOFError
            return b"\0".join(found)

        words = ("diff-tree", "--stdin", "-r", "-z", "--no-renames", "--no-abbrev")
        # what is no tree is sent back, after all that came before
        question = f"{before} {after}\n".encode() + _END
        return self._ask(self._bare, *words, question=question, read=answer)

    def ignored(self, paths: Sequence[bytes]) -> set[bytes]:
        """Which of these paths, from the project's folder, the ignore files are about;
        whatever an index says.
        """

        def answers(count: int, output: BufferedReader) -> set[bytes]:
            told = [[up_to(output, b"\0") for _ in range(4)] for _ in range(count)]
            return {
                path
                for _, _, pattern, path in told
                if pattern and not pattern.startswith(b"!")
            }

        asked, question, found = 0, b"", set[bytes]()
        for number, path in enumerate(paths, 1):
            asked, question = asked + 1, question + path + b"\0"
            following = len(paths[number]) if number < len(paths) else _AT_ONCE
            if len(question) + following >= _AT_ONCE:
                found |= self._ask(
                    self.git,
                    *_CHECK_IGNORE,
                    question=question,
                    read=partial(answers, asked),
                )
                asked, question = 0, b""
        return found

    def forget_ignore_files(self) -> None:
        """They have changed, and git reads them once."""
        with self._lock:
            if program := self._programs.pop(_CHECK_IGNORE, None):
                program.close()

    def close(self) -> None:
        with self._lock:
            for program in self._programs.values():
                program.end_input()
            while self._programs:
                self._programs.popitem()[1].close()

    @property
    def _bare(self) -> Git:
        """Without the project's files: names of files are those in the folder."""
        env = {
            name: value
            for name, value in self.git.env.items()
            if name != "GIT_WORK_TREE"
        }
        return replace(self.git, folder=self.folder, env=env)

    def _ask(
        self,
        git: Git,
        *words: str,
        question: bytes,
        read: Callable[[BufferedReader], T],
    ) -> T:
        with self._lock:
            try:
                if words not in self._programs:
                    self._programs[words] = git.standing(*words)
                return self._programs[words].ask(question, read)
            except BaseException as error:
                # an answer may be left in its pipe
                if program := self._programs.pop(words, None):
                    program.close()
                if not isinstance(error, ProgramEnded):
                    raise
                _, _, why = str(error).rpartition("fatal: ")
                raise GitUnusable(
                    f"git {words[0]} failed: {sanitize_for_display(why.strip())}",
                    hint=HINT,
                ) from error


def _text(output: BufferedReader) -> str:
    return up_to(output, b"\n").decode()
