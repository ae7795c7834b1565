"""Why a reply, or a tool's call, is refused: what the user sees, and what the model
gets.
"""

from typing import Any

import pytest

from cdd_agent.changes.model import EditProblem, ReplyFault, ReplyRefused
from cdd_agent.engine.attempt import AttemptFailure
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.notices import Tone
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.wording.describe import describe
from tests.engine.tool_steps import calls, create, execute, replace
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row


def block(path: str, find: str, replacement: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{find}\n=======\n{replacement}\n>>>>>>> REPLACE\n"


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / "long.txt").write_text("a\nb\n")
    (sandbox.root / ".env").write_text("A=1\n")
    (sandbox.root / "dup.txt").write_text("same\nsame\n")
    (sandbox.root / "big.py").write_text("x = 0\n" + "y = 1\n" * 20)
    (sandbox.root / "lat.csv").write_bytes("name;price\nMüller;5\n".encode("cp1252"))
    (sandbox.root / "dir").mkdir()
    return sandbox


REPLIES: tuple[tuple[str, str, str], ...] = (
    (
        "I am done.",
        "The model's reply does not change the files of the step.",
        (
            "The reply gives no file, and this step names files.\n"
            "Each new file is needed as a code block whose info string is `language:path`, each change as a search/replace block below the file's path."
        ),
    ),
    (
        says("../x", "x"),
        "The model's reply changes a file that it may not touch (../x).",
        "../x contains `..` or leaves the project; write the path from the project's root",
    ),
    (
        says(".git/config", "x"),
        "The model's reply changes a file that it may not touch (.git/config).",
        ".git/config belongs to git or to the program itself; it must not be written",
    ),
    (
        says(f"tickets/{SLUG}/plan.md", "x"),
        "The model's reply changes a file that it may not touch (tickets/feature-words/plan.md).",
        "tickets/feature-words/plan.md belongs to git or to the program itself; it must not be written",
    ),
    (
        says("dir", "x"),
        "The model's reply changes a file that it may not touch (dir): it is a folder.",
        "dir is a folder.",
    ),
    (
        says("long.txt", "x"),
        "The model's reply changes a file that it has not seen in full (long.txt).",
        "long.txt exists already and was not shown. Change it with search/replace blocks, or give it whole once you have seen it.",
    ),
    (
        block("long.txt", "not there", "x"),
        "The model's reply changes lines that are not in the file (long.txt).",
        "long.txt, block 1 (it begins with 'not there'): the lines to find are not in the file. Copy them exactly as the file has them, and send all edits again.",
    ),
    (
        says("a.txt", "x") + says("a.txt", "y"),
        "The model's reply contradicts itself about a file (a.txt).",
        "The reply gives a.txt twice, with different content.",
    ),
    (
        "*** Begin Patch\n*** Delete File: long.txt\n*** End Patch\n",
        "The model's reply changes a file that it has not seen in full (long.txt).",
        "long.txt would be deleted, and neither was all of it shown nor does the step name it.",
    ),
    (
        block(".env", "A=1", "A=2"),
        "The model's reply changes a file that it may not touch (.env): its name suggests secrets.",
        ".env is not shown: its name suggests secrets. Do not change it.",
    ),
    (
        "```text:a.txt\nx",
        "The model's reply is not complete (a.txt).",
        "The code block of a.txt is never closed: the reply seems to be cut.",
    ),
    (
        '<tool_call>\n{"name": "execute_command", "arguments": {"command": "ls"}}\n</tool_call>\n',
        "The model's reply has tool calls or commands in its text, where they do not run.",
        (
            "Line 1 of the reply is a call of `execute_command`, written as text.\n"
            "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
        ),
    ),
    (
        '<invoke name="create_file">\n<parameter name="path">a.txt</parameter>\n</invoke>\n',
        "The model's reply has tool calls or commands in its text, where they do not run.",
        (
            "Line 1 of the reply is a call of `create_file`: it has no argument `content` that is a text.\n"
            "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
        ),
    ),
    (
        "<write_to_file>\n<path>a.txt</path>\n<content>\ngood",
        "The model's reply has tool calls or commands in its text, where they do not run.",
        (
            "The call in line 1 of the reply is never closed: the reply seems to be cut.\n"
            "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
        ),
    ),
    (
        "I do.\n\n</invoke>\n",
        "The model's reply has tool calls or commands in its text, where they do not run.",
        (
            "Line 3 of the reply has a mark of a call, and no whole call: `</invoke>`.\n"
            "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
        ),
    ),
    (
        "```bash\nrm long.txt\n```\n",
        "The model's reply has tool calls or commands in its text, where they do not run.",
        (
            "Line 1 of the reply has shell commands that change long.txt.\n"
            "Shell commands in a reply are not run. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. A file is deleted by `*** Delete File: path`, and renamed by `*** Update File: path` and `*** Move to: path`, in a patch."
        ),
    ),
    (
        "### scripts/run\n\n```sh\nexec true\n```\n",
        "The model's reply could not be read reliably (scripts/run).",
        (
            "The code block in line 3 of the reply could be scripts/run, and was read as an explanation.\n"
            "Give a file in a code block whose info string is `language:path`. Write no file's name just above a block that is none."
        ),
    ),
    (
        block("long.txt", "", "x"),
        "The model's reply changes a file that it has not seen in full (long.txt).",
        "long.txt exists already, and is given as new. Change it with search/replace blocks whose SEARCH holds lines of the file.",
    ),
    (
        block("dup.txt", "same", "x"),
        "The model's reply changes lines that are in the file more than once (dup.txt).",
        "dup.txt, block 1 (it begins with 'same'): the lines to find are there more than once, beginning in lines 1, 2. Add the lines before or after them, so that they are there once.",
    ),
    (
        says("big.py", "x = 1\n# ... rest of the code unchanged\n"),
        "The model's reply leaves out a part of a file (big.py).",
        "big.py is given with a part left out (line 2: '# ... rest of the code unchanged'). The whole file is needed, every line of it, or search/replace blocks for what changes. Word a comment that stays in the file differently.",
    ),
    (
        says("a.py", "def f(:\n"),
        "The model's reply would break the syntax of a file (a.py): line 1: invalid syntax.",
        "a.py would not be valid: line 1: invalid syntax. Check the new text, and send it in full.",
    ),
    (
        block("long.txt", "a", "b") + says("long.txt", "zzz"),
        "The model's reply contradicts itself about a file (long.txt).",
        "The reply changes parts of long.txt, and then gives all of it with something else. Send either the parts or the whole.",
    ),
    (
        "```diff\ndiff --git a/long.txt b/dup.txt\nrename from long.txt\nrename to dup.txt\n```\n",
        "The model's reply gives a file a name that is already taken (long.txt).",
        "long.txt cannot be renamed: dup.txt exists already.",
    ),
    (
        says("lat.csv", "name;price\nMüller;5\nSchröder;7 ★\n"),
        "The model's reply has characters that the encoding of the file does not allow (lat.csv).",
        "lat.csv, line 3: the file's encoding, cp1252, has no '★' (U+2605). Use other characters.",
    ),
    (
        block("nofile.txt", "a", "b"),
        "The model's reply changes a file that does not exist (nofile.txt).",
        "There is no file nofile.txt. Give a new file whole, and one that exists by its path.",
    ),
    (
        says("dir", "x") + says(".git/config", "y"),
        "The model's reply changes a file that it may not touch (dir): it is a folder. It has 1 more problem.",
        (
            "dir is a folder.\n"
            ".git/config belongs to git or to the program itself; it must not be written"
        ),
    ),
)
"""Replies, what the user sees of each, and what the model gets."""


@each_row(("reply", "user", "model"), REPLIES, ids=lambda value: value[:20])
async def test_a_reply(project: Sandbox, reply: str, user: str, model: str) -> None:
    step = Step("a.txt", check("a.txt"), also=("big.py", "lat.csv"))
    project.write(step).replies(reply)
    events = await run_all(project)
    (finished,) = [event for event in events if isinstance(event, StepFinished)]
    assert finished.error == user
    (saved,) = (project.root / ".cdd" / "runs").glob("**/failure.json")
    failure = AttemptFailure.load(saved)
    assert failure is not None
    assert failure.detail == model


def test_each_fault_of_a_reply_has_a_row() -> None:
    told = " ".join(user for _, user, _ in REPLIES)
    missing = {fault for fault in ReplyFault if fault.words not in told}
    # an empty reply is an error of the model's, and the others need a second process
    assert missing == {
        ReplyFault.EMPTY,
        ReplyFault.CHANGED_SINCE,
        ReplyFault.RECORD_DAMAGED,
    }


def test_what_the_user_sees_has_no_advice_for_the_model() -> None:
    for fault in ReplyFault:
        problems = (EditProblem("a.py", "Send `a.py` again.", fault),) * 2
        text = ReplyRefused("Send it again.", problems=problems).for_user
        assert text == f"The model's reply {fault.words} (a.py)."


async def test_a_refused_reply_is_asked_for_again_with_the_number_of_the_attempt(
    project: Sandbox,
) -> None:
    project.write(Step("a.txt", check("a.txt"))).replies(
        says(".git/config", "x"), says("a.txt", "good")
    )
    failed = [
        describe(event)
        for event in await run_all(project, attempts=3)
        if isinstance(event, AttemptFailed)
    ]
    assert failed == [
        [
            (
                (
                    "Attempt 1 failed: The model's reply changes a file that it may"
                    " not touch (.git/config). Asking again, attempt 2 of 3."
                ),
                Tone.WARNING,
            )
        ]
    ]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            replace("long.txt", "nope", "x"),
            "long.txt: the lines to find are not in the file. Copy them exactly as the file has them.",
        ),
        (
            replace("long.txt", "", "all new\n"),
            "long.txt exists already and was not shown. Change it with `edit_file`, or give it whole once you have seen it.",
        ),
        (
            create("long.txt", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"),
            "long.txt exists already, and is given as new. Change it with `edit_file`.",
        ),
        (
            create("marks.py", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"),
            "marks.py would have the line '<<<<<<< SEARCH' in it. To change a part of a file, use `edit_file`.",
        ),
        (
            replace("long.txt", "a", "... rest of the file as before"),
            "long.txt is given with a part left out (line 1: '... rest of the file as before'). The whole file is needed, every line of it, or `edit_file` for what changes. Word a comment that stays in the file differently.",
        ),
        (
            ("read_file", {"path": "lang.txt"}),
            "lang.txt does not exist. Did you mean long.txt?",
        ),
        (
            create("long.txt", "x"),
            "long.txt exists already, and is given as new. Change it with `edit_file`.",
        ),
        (
            create("../x", "x"),
            "../x contains `..` or leaves the project; write the path from the project's root",
        ),
        (execute("rm -rf ."), "Command 'rm' is not allowed"),
        (execute("ls | wc"), "`|` needs a shell, and commands run without one"),
        (
            ("read_file", {"file": "x"}),
            "read_file was called wrongly: `file` is unknown; allowed are `path`, `start_line`, `end_line`. Its parameters: `path` (string, required), `start_line` (integer, default 1), `end_line` (integer, optional).",
        ),
        (
            ("launch", {}),
            "There is no tool 'launch'. The tools are read_file, grep_files, create_file, edit_file, execute_command.",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
async def test_a_call(project: Sandbox, call: Any, why: str) -> None:
    project.write(Step("a.txt", "none")).replies(
        calls(call), calls(create("a.txt", "x")), "Done."
    )
    problem, *_ = [
        event.problem
        for event in await run_all(project)
        if isinstance(event, ToolFinished)
    ]
    assert problem == why
