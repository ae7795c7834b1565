"""The runs that are killed: projects as they start, plans, and a model whose answer
depends on the question alone.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.changes.review import Review
from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.events.question_events import Choice
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import (
    FREE,
    Done,
    Message,
    OnEvent,
    Price,
    Request,
    TextDelta,
    ToolCall,
)
from tests.crash.points import MODEL_CALLED, MODEL_HALFWAY
from tests.support.projects import SLUG, SPEC, Step, check, plan, says

_STEP = re.compile(r"^# Step (\d+) of \d+:", re.MULTILINE)
_REPAIR = LAST_FAILED
_AGAIN = "again"
"""The id of calls that were interrupted, and are made again."""


@dataclass(frozen=True)
class Chapter:
    """A step, and what the model says to it; `wrong` comes first where there is one."""

    step: Step
    reply: str
    wrong: str = ""
    rounds: tuple[tuple[ToolCall, ...], ...] = ()
    """Of tools, before the reply."""


@dataclass(frozen=True)
class Story:
    """A project and its plan."""

    chapters: tuple[Chapter, ...]
    files: Mapping[str, bytes]
    executable: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    under_git: bool = True
    is_reviewed: bool = False
    """A person is asked about all changes: a `Reviewer`."""
    generated: tuple[str, ...] = ()
    """Declared files that a command makes."""
    submodule: str = ""
    """The folder that is a submodule."""

    def write(self, root: Path) -> None:
        """Make the project as it is before the run. Under git it has a commit, a stash,
        something staged and something edited: all of that is the user's.
        """
        ticket, approval = (
            root / "tickets" / SLUG,
            "ask" if self.is_reviewed else "auto",
        )
        ticket.mkdir(parents=True)
        (root / ".cdd").mkdir()
        (root / ".cdd/config.yaml").write_text(
            f"approval: {approval}\nmax_attempts: 3\n{self.config}"
        )
        (ticket / "spec.yaml").write_text(SPEC)
        (ticket / "plan.md").write_text(plan(chapter.step for chapter in self.chapters))
        for path, content in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            (root / path).chmod(0o755 if path in self.executable else 0o644)
        for path, target in self.links.items():
            (root / path).symlink_to(target)
        if self.submodule:
            _make_submodule(root, self.submodule)
        if self.under_git:
            _put_under_git(root)

    def answer(self, step: int, *, is_repair: bool) -> str:
        chapter = self.chapters[step - 1]
        return chapter.wrong if chapter.wrong and not is_repair else chapter.reply


@dataclass
class Storyteller:
    """The model. Each call is written down, outside the project, before it is
    answered.
    """

    story: Story
    calls: Path
    name: str = "storyteller"
    window: int | None = None

    @property
    def calls_tools(self) -> bool:
        return any(chapter.rounds for chapter in self.story.chapters)

    @property
    def sees(self) -> bool:
        return False

    @property
    def price(self) -> Price:
        return FREE

    async def check(self, *, connect: bool) -> None:
        """It can always be asked."""

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        question = next(
            message.content for message in request.messages if message.role == "user"
        )
        step, is_repair = int(_STEP.findall(question)[-1]), _REPAIR in question
        call = f"{step} {2 if is_repair else 1}"
        sys.audit(MODEL_CALLED, call)
        _note(self.calls, call)
        rounds = self.story.chapters[step - 1].rounds
        calls = _interrupted(request.messages)
        answered = sum(_is_of_story(message) for message in request.messages)
        if not calls and answered < len(rounds):
            calls = rounds[answered]
        if calls:
            sys.audit(MODEL_HALFWAY, call)
            for tool_call in calls:
                on_event(tool_call)
            return Done()
        text = self.story.answer(step, is_repair=is_repair)
        on_event(TextDelta(text[: len(text) // 2]))
        sys.audit(MODEL_HALFWAY, call)
        on_event(TextDelta(text[len(text) // 2 :]))
        return Done()


def _interrupted(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the last round that were interrupted, to be made again."""
    rounds = [place for place, message in enumerate(messages) if message.tool_calls]
    if not rounds:
        return ()
    calls, answers = messages[rounds[-1]].tool_calls, messages[rounds[-1] + 1 :]
    return tuple(
        replace(call, id=_AGAIN)
        for call, answer in zip(calls, answers, strict=False)
        if "command was interrupted" in answer.content
    )


def _is_of_story(message: Message) -> bool:
    """True for a round of the story, and not one that makes a call of it again."""
    return message.role == "assistant" and any(
        call.id != _AGAIN for call in message.tool_calls
    )


ASKED = 100
"""A person's answers are written down among the model's calls, with this added to the
number of their step.
"""


@dataclass
class Reviewer(Nobody):
    """A person whose answer depends on the changes alone: nothing of what is `refused`,
    no hunk that is `unwanted`, and `by hand` what they would rather write themselves.
    """

    calls: Path

    async def review(self, review: Review) -> Decision:
        _note(self.calls, f"{ASKED + int(review.step or 0)} 1")
        if "+refused" in review.diff():
            return Decision(Choice.NO, review, "not this")
        for place, file in enumerate(review.files):
            unwanted = [
                part for part, hunk in enumerate(file.hunks) if "+unwanted" in hunk.diff
            ]
            # the same, further on
            file = file.leave(unwanted, "not wanted")  # noqa: PLW2901
            edited = (file.result or b"").replace(b"by model", b"by hand")
            review = review.with_file(
                place,
                file.edit(edited) if file.changes and file.result is not None else file,
            )
        return Decision(Choice.YES, review)


def _note(calls: Path, call: str) -> None:
    with calls.open("a") as file:
        file.write(f"{call}\n")
        file.flush()
        os.fsync(file.fileno())


def git(root: Path, *words: str) -> str:
    """Ask or tell git without it refreshing the index, and without settings of whoever
    runs the tests.
    """
    command = [
        "git",
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@localhost",
        "-c",
        "init.defaultBranch=main",
        *words,
    ]
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, **settings},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _make_submodule(root: Path, folder: str) -> None:
    place = root / folder
    for repository in (place, root):
        git(repository, "init", "--quiet")
        git(repository, "config", "user.name", "A")
        git(repository, "config", "user.email", "a@localhost")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "-m", "start of the submodule")
    git(root, "submodule", "--quiet", "add", f"./{folder}", folder)
    git(root, "submodule", "--quiet", "absorbgitdirs")


def _put_under_git(root: Path) -> None:
    """The branch has moved on from the stash's, and index, working tree and commit are
    three different things.
    """
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "start")
    (root / "stashed.txt").write_text("for later\n")
    git(root, "add", "stashed.txt")
    git(root, "stash", "--quiet")
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    (root / "staged.txt").write_text("staged, then edited\n")
    (root / "mine.txt").write_text("edited by hand\n")


def _both(*replies: str) -> str:
    return "\n\n".join(replies)


_SAYS_AND_WRITES = (
    "python -c \"open('beside.txt', 'w').write('seen'); raise SystemExit('good' not in"
    " open('six.txt').read())\""
)

TEN_STEPS = Story(
    chapters=(
        Chapter(
            Step("greeting.txt", check("greeting.txt")), says("greeting.txt", "good")
        ),
        Chapter(
            Step("deep/er/one.txt", check("deep/er/one.txt"), also=("deep/two.txt",)),
            _both(says("deep/er/one.txt", "good"), says("deep/two.txt", "two")),
        ),
        Chapter(
            Step("greeting.txt", check("greeting.txt", "better"), "Step 1"),
            says("greeting.txt", "good, better"),
            wrong=_both(
                says("greeting.txt", "worse"), says("wrong/way/extra.txt", "x")
            ),
        ),
        Chapter(
            Step("windows.txt", check("windows.txt")),
            says("windows.txt", "good\nlines"),
        ),
        Chapter(
            Step("run.sh", check("run.sh")), says("run.sh", "#!/bin/sh\necho good")
        ),
        Chapter(Step("six.txt", _SAYS_AND_WRITES), says("six.txt", "good")),
        Chapter(Step(None, "none"), "Nothing has to be written: it is decided."),
        Chapter(Step("notes/free.txt", "none"), says("notes/free.txt", "unchecked")),
        Chapter(
            Step(
                "deep/two.txt",
                depends="All previous steps",
                also=("mine.txt", "new/nine.txt"),
            ),
            _both(
                says("deep/two.txt", "two, again"),
                says("mine.txt", "by both"),
                says("new/nine.txt", "nine"),
            ),
        ),
        Chapter(
            Step(
                "deep/er/one.txt",
                check("deep/er/one.txt", "the end"),
                also=("deep/er/er/ten.txt",),
            ),
            _both(
                says("deep/er/one.txt", "good, the end"),
                says("deep/er/er/ten.txt", "ten"),
            ),
        ),
    ),
    files={
        "windows.txt": b"old\r\nlines\r\n",
        "run.sh": b"#!/bin/sh\necho old\n",
        "mine.txt": b"as committed\n",
        "staged.txt": b"as committed\n",
    },
    executable=frozenset({"run.sh"}),
    links={"link.txt": "mine.txt", "nowhere.txt": "not-there.txt"},
    config="test_command: python -c \"print('as ever')\"\n",
)
"""Every way in which a step can go, checked by commands that take no time."""


_TEST = "from two import VALUE\n\n\ndef test_it() -> None:\n    assert VALUE == 2"

WITHOUT_GIT = Story(
    chapters=(
        Chapter(
            Step("new/one.txt", check("new/one.txt")),
            says("new/one.txt", "good"),
            wrong=says("new/one.txt", "worse"),
        ),
        Chapter(
            Step("two.py", also=("tests/test_two.py",)),
            _both(says("two.py", "VALUE = 2"), says("tests/test_two.py", _TEST)),
        ),
    ),
    files={
        "pytest.ini": b"[pytest]\naddopts = -p no:cacheprovider\npythonpath = .\n",
        "tests/test_present.py": b"def test_present() -> None:\n    pass\n",
    },
    under_git=False,
)
"""A folder that git knows nothing of, with a baseline and a check by pytest itself."""


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall("same", name, json.dumps(arguments))


_FORMAT = (
    "python -c \"p='a.txt'; t=open(p).read().strip(); open(p, 'w').write(t + '\\n')\""
)
"""A formatter: it gives a.txt one line end."""
_GENERATE = (
    "python -c \"open('made.txt', 'w').write('made');"
    " open('beside.txt', 'w').write('seen')\""
)
"""A generator: of its two files, the step declares made.txt."""
_FORMAT_AND_CHECK = (
    "python -c \"p='{0}'; t=open(p).read().strip(); open(p, 'w').write(t + '\\n');"
    " raise SystemExit('good' not in t)\""
)

WITH_TOOLS = Story(
    chapters=(
        Chapter(
            Step("a.txt", check("a.txt"), also=("made.txt",)),
            "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\n",
            rounds=(
                (
                    _call("read_file", path="old.txt"),
                    _call("read_file", path="gone.txt"),
                    _call("create_file", file_path="a.txt", content="go\n\n\n"),
                ),
                (
                    _call("edit_file", file_path="old.txt", find="", replace="new\n"),
                    _call("create_file", file_path="own.log", content="ignored\n"),
                ),
                (
                    _call("execute_command", command=_FORMAT),
                    _call("execute_command", command=_GENERATE),
                ),
                (
                    _call("edit_file", file_path="a.txt", find="nowhere", replace=""),
                    _call(
                        "edit_file", file_path="a.txt", find="go\n", replace="good\n\n"
                    ),
                    _call("execute_command", command=_FORMAT),
                    _call("create_file", file_path="deep/er/b.txt", content="b\n"),
                ),
            ),
        ),
        Chapter(
            Step("b.txt", _FORMAT_AND_CHECK.format("b.txt")),
            says("b.txt", "  good"),
            wrong=says("b.txt", "  bad"),
        ),
    ),
    files={
        "old.txt": b"old\n",
        "mine.txt": b"mine\n",
        "gone.txt": b"to be gone\n",
        "staged.txt": b"as committed\n",
        ".gitignore": b"*.log\n",
    },
    config="test_command: python -c \"print('as ever')\"\n",
    generated=("made.txt",),
)
"""A model that reads, writes and runs commands by tools, and deletes by its last words;
and a check that formats.
"""

_NUMBERS = "".join(f"line {number}\n" for number in range(1, 31))
_PARTS = "old.txt\n" + "".join(
    f"<<<<<<< SEARCH\nline {number}\n=======\n{new}\n>>>>>>> REPLACE\n"
    for number, new in ((2, "good"), (15, "unwanted"), (28, "better"))
)

REVIEWED = Story(
    chapters=(
        Chapter(
            Step("old.txt", check("old.txt"), also=("gone.txt", "unwanted.txt")),
            _both(
                _PARTS,
                says("unwanted.txt", "unwanted"),
                "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch",
            ),
        ),
        Chapter(
            Step("a.txt", check("a.txt")),
            says("a.txt", "good, by model"),
            wrong=says("a.txt", "refused"),
        ),
        Chapter(
            Step("b.txt", check("b.txt")),
            "Done.",
            rounds=(
                (
                    _call("read_file", path="old.txt"),
                    _call("create_file", file_path="b.txt", content="by model\n"),
                ),
                (
                    _call("create_file", file_path="c.txt", content="refused\n"),
                    _call("read_file", path="b.txt"),
                ),
                (
                    _call(
                        "edit_file",
                        file_path="old.txt",
                        find="line 5\n",
                        replace="unwanted\n",
                    ),
                    _call("execute_command", command="python -c pass"),
                ),
                (
                    _call(
                        "edit_file", file_path="b.txt", find="by hand", replace="good"
                    ),
                ),
            ),
        ),
    ),
    files={
        "old.txt": _NUMBERS.encode(),
        "gone.txt": b"gone\n",
        "mine.txt": b"mine\n",
        "staged.txt": b"as committed\n",
    },
    config="test_command: python -c \"print('as ever')\"\n",
    is_reviewed=True,
)
"""Changes of which a person takes a part, edits some and refuses others, in replies and
in calls of tools.
"""

_MAKES = (
    "python -c \"open('made.txt', 'w').write('made'); open('a.txt',"
    " 'a').write('good')\""
)

SIDE_BY_SIDE = Story(
    chapters=(
        Chapter(
            Step("a.txt", check("a.txt")),
            "Done.",
            rounds=(
                (
                    _call("read_file", path="old.txt"),
                    _call("create_file", file_path="a.txt", content="a\n"),
                ),
                (_call("execute_command", command=_MAKES),),
            ),
        ),
        Chapter(
            Step("b.txt", check("b.txt")),
            says("b.txt", "good"),
            wrong=says("b.txt", "bad"),
        ),
        Chapter(
            Step("deep/er/c.txt", check("deep/er/c.txt"), also=("gone.txt (deleted)",)),
            _both(
                says("deep/er/c.txt", "good"),
                "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\n",
            ),
        ),
        Chapter(
            Step("b.txt", check("b.txt", "better"), "Step 1, Step 2"),
            says("b.txt", "better"),
        ),
        Chapter(Step("d.txt", check("d.txt")), says("d.txt", "good")),
        Chapter(Step(None, "none"), "Nothing has to be written: it is decided."),
        Chapter(
            Step("mine.txt", depends="All previous steps"), says("mine.txt", "by both")
        ),
    ),
    files={
        "old.txt": b"old\n",
        "mine.txt": b"mine\n",
        "gone.txt": b"to be gone\n",
        "staged.txt": b"as committed\n",
    },
    config="test_command: python -c \"print('as ever')\"\njobs: 3\n",
)
"""Steps that run at once, one of them with tools, one with a repair, and those that
wait for them.
"""

COMMITTED = Story(
    chapters=(
        Chapter(
            Step("a.txt", check("a.txt"), also=("lib/b.txt", "lib/new/c.txt")),
            _both(
                says("a.txt", "good"),
                says("lib/b.txt", "good"),
                says("lib/new/c.txt", "new"),
            ),
            wrong=_both(says("a.txt", "bad"), says("lib/b.txt", "bad")),
        ),
        Chapter(
            Step("lib/b.txt", _FORMAT_AND_CHECK.format("lib/b.txt")),
            says("lib/b.txt", "  good again"),
        ),
    ),
    files={
        "a.txt": b"old\n",
        "lib/b.txt": b"old\n",
        "mine.txt": b"mine\n",
        "staged.txt": b"as committed\n",
    },
    config="test_command: python -c \"print('as ever')\"\ncommit: step\n",
    submodule="lib",
)
"""Steps that change files of a submodule too, and each of which is committed."""

STORIES = {
    "ten-steps": TEN_STEPS,
    "without-git": WITHOUT_GIT,
    "with-tools": WITH_TOOLS,
    "reviewed": REVIEWED,
    "side-by-side": SIDE_BY_SIDE,
    "committed": COMMITTED,
}
