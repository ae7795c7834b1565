"""Why a reply, or a tool's call, is refused: what the model is told, and a person who
looks on.
"""

from typing import Any

import pytest

from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.step_summary import StepFinished
from tests.engine.tool_steps import calls, create, execute, replace
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row


def block(path: str, find: str, replacement: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{find}\n=======\n{replacement}\n>>>>>>> REPLACE\n"


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / "long.txt").write_text("a\nb\n")
    (sandbox.root / ".env").write_text("A=1\n")
    (sandbox.root / "dir").mkdir()
    return sandbox


@each_row(
    ("reply", "why"),
    [
        (
            "I am done.",
            (
                "The reply was not used. The reply gives no file, and this step names files.\n"
                "Each new file is needed as a code block whose info string is `language:path`, each change as a search/replace block below the file's path."
            ),
        ),
        (
            says("../x", "x"),
            "The reply was not used. ../x contains `..` or leaves the project; write the path from the project's root",
        ),
        (
            says(".git/config", "x"),
            "The reply was not used. .git/config belongs to git or to the program itself; it must not be written",
        ),
        (
            says(f"tickets/{SLUG}/plan.md", "x"),
            "The reply was not used. tickets/feature-words/plan.md belongs to git or to the program itself; it must not be written",
        ),
        (says("dir", "x"), "The reply was not used. dir is a folder."),
        (
            says("long.txt", "x"),
            "The reply was not used. long.txt exists already and was not shown. Change it with search/replace blocks, or give it whole once you have seen it.",
        ),
        (
            block("long.txt", "not there", "x"),
            "The reply was not used. long.txt, block 1 (it begins with 'not there'): the lines to find are not in the file. Copy them exactly as the file has them, and send all edits again.",
        ),
        (
            says("a.txt", "x") + says("a.txt", "y"),
            "The reply was not used. The reply gives a.txt twice, with different content.",
        ),
        (
            "*** Begin Patch\n*** Delete File: long.txt\n*** End Patch\n",
            "The reply was not used. long.txt would be deleted, and neither was all of it shown nor does the step name it.",
        ),
        (
            block(".env", "A=1", "A=2"),
            "The reply was not used. .env is not shown: its name suggests secrets. Do not change it.",
        ),
        (
            "```text:a.txt\nx",
            "The reply was not used. The code block of a.txt is never closed: the reply seems to be cut.",
        ),
        (
            '<tool_call>\n{"name": "execute_command", "arguments": {"command": "ls"}}\n</tool_call>\n',
            (
                "The reply was not used. Line 1 of the reply is a call of `execute_command`, written as text.\n"
                "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
            ),
        ),
        (
            '<invoke name="create_file">\n<parameter name="path">a.txt</parameter>\n</invoke>\n',
            (
                "The reply was not used. Line 1 of the reply is a call of `create_file`: it has no argument `content` that is a text.\n"
                "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
            ),
        ),
        (
            "<write_to_file>\n<path>a.txt</path>\n<content>\ngood",
            (
                "The reply was not used. The call in line 1 of the reply is never closed: the reply seems to be cut.\n"
                "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
            ),
        ),
        (
            "I do.\n\n</invoke>\n",
            (
                "The reply was not used. Line 3 of the reply has a mark of a call, and no whole call: `</invoke>`.\n"
                "Calls in the text of a reply are not seen. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. The check runs by itself."
            ),
        ),
        (
            "```bash\nrm long.txt\n```\n",
            (
                "The reply was not used. Line 1 of the reply has shell commands that change long.txt.\n"
                "Shell commands in a reply are not run. Give each file as a code block whose info string is `language:path`, and each change as a search/replace block below the file's path. A file is deleted by `*** Delete File: path`, and renamed by `*** Update File: path` and `*** Move to: path`, in a patch."
            ),
        ),
        (
            "### scripts/run\n\n```sh\nexec true\n```\n",
            (
                "The reply was not used. The code block in line 3 of the reply could be scripts/run, and was read as an explanation.\n"
                "Give a file in a code block whose info string is `language:path`. Write no file's name just above a block that is none."
            ),
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
async def test_a_reply(project: Sandbox, reply: str, why: str) -> None:
    events = await run_all(project.write(Step("a.txt", check("a.txt"))).replies(reply))
    (finished,) = [event for event in events if isinstance(event, StepFinished)]
    assert finished.error == why


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
